/**
 * A thread that searches for the first and the last night of stays while another one books and releases them. Every stay
 * takes the same rooms of both, so they must always be equal (docs/design/stays.md#all-or-none).
 */

import { parentPort, workerData } from 'node:worker_threads'
import { assert, yearOf } from '@vacancy/shared'
import { decodeReply, encodeRequest, FRAME_HEADER_BYTES } from '@vacancy/shared/wire'
import { attachMemory, scratchOf } from '../store/store.ts'
import { answerRead, KEEPS_CHANGING, openRequest } from '../tcp/dispatch.ts'
import { loadKernels } from '../threads/kernels.ts'
import { dispatcherOf } from './node-in-memory.ts'

export type StaysReaderOptions = {
  readonly memory: WebAssembly.Memory
  readonly reader: number
  readonly today: number
  readonly segment: string
  readonly roomType: string
  /** The first and the last night. */
  readonly dates: readonly [string, string]
  /** Cells of READER. */
  readonly cells: SharedArrayBuffer
}

/** Shared by both threads: a stop flag, replies, and those that differ from the one before. */
export const READER = { stop: 0, replies: 1, changes: 2, cells: 3 } as const

const SLAB_BYTES = 1 << 20

/** @returns the first reply in which two nights differ; '' when there was none */
function searchUntilStopped({
  memory: wasm,
  reader,
  today,
  segment,
  roomType,
  dates,
  cells,
}: StaysReaderOptions): string {
  const memory = attachMemory(wasm)
  const at = scratchOf(memory, reader) + 16_384
  const wallMs = () => today * 86_400_000
  const dispatcher = dispatcherOf(memory, reader, { kernels: loadKernels(memory), wallMs })
  const fields = { segment, roomType, dates: [...dates] }
  const payload = encodeRequest({ command: 'SEARCHAVAIL', correlationId: 7, fields }).subarray(FRAME_HEADER_BYTES)
  const seen = new Int32Array(cells)
  let before = ''
  while (Atomics.load(seen, READER.stop) === 0) {
    const command = openRequest(dispatcher, payload, 0, payload.length)
    assert(command !== undefined, 'the request is valid')
    const stop = answerRead(dispatcher, command, 7, memory.u8, at, at + SLAB_BYTES, 0)
    if (stop === KEEPS_CHANGING) continue
    const bytes = memory.u8.slice(at + FRAME_HEADER_BYTES, stop)
    const reply = decodeReply('SEARCHAVAIL', bytes, { baseYear: yearOf(today), codecs: dispatcher.codecs })
    assert(reply.ok, 'the search succeeds')
    const rooms = reply.result.properties.map(({ days }) => days.map(({ availability }) => availability).join(' and '))
    const torn = rooms.find((text) => new Set(text.split(' and ')).size > 1)
    if (torn !== undefined) return `rooms left on two nights of the same stays: ${torn}`
    const text = rooms.join()
    Atomics.add(seen, READER.replies, 1)
    if (text !== before) Atomics.add(seen, READER.changes, 1)
    before = text
  }
  return ''
}

parentPort?.postMessage(searchUntilStopped(workerData as StaysReaderOptions))
