/** A search in one go, and the same cut into the smallest slices. */

import { assert } from '@vacancy/shared'
import { encodeRequest, type RequestFields } from '@vacancy/shared/wire'
import { createSearcher, runSearch, runSlice, type Searcher, takeSlices, UNFINISHED } from '../search/search.ts'
import { scratchOf } from '../store/store.ts'
import { type Dispatcher, openRequest } from '../tcp/dispatch.ts'
import type { NodeInMemory } from './node-in-memory.ts'

export const SLAB_BYTES = 1 << 20
/** Where replies are written, behind the parameter block. */
const REPLIES_AT = 16_384
type SearchCommand = 'SEARCHAVAIL' | 'SEARCHPROP' | 'PRICECAL' | 'SEARCHFLEX'

export function payloadOf(command: SearchCommand, fields: RequestFields): Uint8Array {
  return encodeRequest({ command, correlationId: 9, fields }).subarray(9)
}

/** A searcher like a node's, with the smallest possible slices. */
export function slicedLike(node: NodeInMemory, { searcher }: Dispatcher): Searcher {
  return createSearcher({
    ...searcher,
    kernels: { ...searcher.pages, search: searcher.kernel },
    codecs: node.codecs,
    monotonicMs: () => 0,
    sliceWork: 1,
  })
}

/** Reads the request into the searcher. @returns whether it is of stays */
export function open(node: NodeInMemory, searcher: Searcher, payload: Uint8Array): boolean {
  const dispatcher = { ...(node.dispatchers[0] as Dispatcher), searcher, values: searcher.values }
  const command = openRequest(dispatcher, payload, 0, payload.length)
  assert(command?.group === 'search', `the request is a search, not refused: ${dispatcher.error}`)
  return command.name !== 'SEARCHPROP'
}

export function inOneGo(node: NodeInMemory, searcher: Searcher, payload: Uint8Array, waitedMs = 0): Uint8Array {
  const forStay = open(node, searcher, payload)
  const at = scratchOf(node.store.memory, searcher.reader) + REPLIES_AT
  return node.store.memory.u8.slice(at, runSearch(searcher, forStay, 9, at, at + SLAB_BYTES, waitedMs))
}

/** @param between called after each slice except the last */
export function inSlices(
  node: NodeInMemory,
  searcher: Searcher,
  payload: Uint8Array,
  between: () => void,
  waitedMs = 0,
) {
  const forStay = open(node, searcher, payload)
  const at = scratchOf(node.store.memory, searcher.reader) + REPLIES_AT
  const { u8 } = node.store.memory
  searcher.workLeft = searcher.sliceWork
  let stop = runSearch(searcher, forStay, 9, at, at + SLAB_BYTES, waitedMs)
  if (stop !== UNFINISHED) return { bytes: u8.slice(at, stop), slices: 1, restarts: 0 }
  const slices = takeSlices(searcher, 0)
  let count = 1
  while (stop === UNFINISHED) {
    between()
    // Simulates another request of the thread in between.
    searcher.values.scan.start.fill(-1)
    u8.fill(0xee, at, at + SLAB_BYTES)
    open(node, searcher, payload)
    stop = runSlice(searcher, forStay, 9, slices, at, at + SLAB_BYTES, waitedMs)
    count++
  }
  return { bytes: slices.reply.bytes.slice(0, stop), slices: count, restarts: slices.restarts }
}
