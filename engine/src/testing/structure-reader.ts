/**
 * A thread that reads a store continuously while another one changes it: unsliced and sliced searches, and cheap reads.
 * Each reply is sent back with the range of commands it may include, and checked there.
 */

import { parentPort, workerData } from 'node:worker_threads'
import { assert, formatDay, yearOf } from '@vacancy/shared'
import { type CommandName, decodeReply, encodeRequest } from '@vacancy/shared/wire'
import { seeded, type Uniform } from '@vacancy/testkit/random'
import { runSlice, takeSlices } from '../search/search.ts'
import { attachMemory, scratchOf } from '../store/store.ts'
import { answerRead, KEEPS_CHANGING, openRequest, UNFINISHED } from '../tcp/dispatch.ts'
import { loadKernels } from '../threads/kernels.ts'
import { dispatcherOf, type LooseFields } from './node-in-memory.ts'
import { referenceKernels } from './search-reference.ts'

export type ReaderOptions = {
  readonly memory: WebAssembly.Memory
  readonly reader: number
  readonly seed: number
  readonly today: number
  readonly isReference: boolean
  /** Cells of CLOCK. */
  readonly clock: SharedArrayBuffer
}

/** State shared by both threads: the last started and the last ended command, and a stop flag. */
export const CLOCK = { begun: 0, ended: 1, stop: 2, cells: 3 } as const
export const SHAPE = {
  segments: ['s0', 's1', 's2'],
  roomTypes: ['r0', 'r1'],
  types: ['hotel', 'villa', 'hostel'],
  amenities: ['wifi', 'pool', 'gym', 'bar'],
  areas: Array.from({ length: 70 }, (_, i) => `area${i}`),
  properties: 400,
  /** Days from today that are ever sold. */
  days: 14,
} as const

export type SeenAnswer = {
  readonly command: CommandName
  readonly fields: LooseFields
  /** Commands up to `from` had ended before the read; commands after `to` had not started when it ended. */
  readonly from: number
  readonly to: number
  /** Error code; '' for SUCCESS. */
  readonly error: string
  readonly result: unknown
  /** Number of slices; 1 when unsliced. */
  readonly slices: number
}
export type FromReader = { readonly answers: SeenAnswer[]; readonly isLast: boolean }

const SLAB_BYTES = 1 << 20
const FRAME_HEADER = 9
const BATCH = 32
const RESTARTS_MAX = 64
const SLICE_PAUSE_MS = 0.1
/** One in this many replies without overlapping commands is checked. */
const QUIET_KEPT = 50
/** Smallest possible slices, in every other search. */
const SLICE_WORKS = [Number.POSITIVE_INFINITY, 1] as const

/** A property; some are met far more often than others, by reads and writes. */
export function someId(random: Uniform): string {
  return `p${Math.floor(random() ** (random() < 0.5 ? 1 : 4) * SHAPE.properties)}`
}

const pick = <T>(list: readonly T[], random: Uniform) => list[Math.floor(random() * list.length)] as T

function question(random: Uniform, today: number): { command: CommandName; fields: LooseFields } {
  const some = (fields: LooseFields) => (random() < 0.3 ? fields : {})
  const date = () => formatDay(today + Math.floor(random() * SHAPE.days))
  const propertyId = someId(random)
  const roomType = pick(SHAPE.roomTypes, random)
  const filters = {
    segment: pick(SHAPE.segments, random),
    ...some({ propertyType: pick(SHAPE.types, random) }),
    ...some({ stars: 1 + Math.floor(random() * 5) }),
    ...some({ amenities: [pick(SHAPE.amenities, random)] }),
    ...(random() < 0.1 ? { area: pick(SHAPE.areas, random) } : {}),
  }
  switch (Math.floor(random() * 10)) {
    case 0:
      return { command: 'GETPROPROOMDAY', fields: { propertyId, roomType, date: date() } }
    case 1:
      return { command: 'PROPROOMDATELIST', fields: { propertyId, roomType } }
    case 2:
      return { command: 'PROPROOMEXIST', fields: { propertyId, roomType } }
    case 3:
    case 4:
      return { command: 'SEARCHPROP', fields: filters }
    default: {
      const dates = Array.from({ length: 1 + Math.floor(random() * 6) }, date)
      return {
        command: 'SEARCHAVAIL',
        fields: {
          ...filters,
          roomType,
          dates,
          ...some({ availability: Math.floor(random() * 4) }),
          ...some({ rateFeatures: ['wifi'] }),
          ...(random() < 0.1 ? { propertyId } : {}),
        },
      }
    }
  }
}

function readerOf(options: ReaderOptions) {
  const memory = attachMemory(options.memory)
  const kernels = options.isReference ? referenceKernels(memory) : loadKernels(memory)
  const random = seeded(options.seed)
  const clock = new Int32Array(options.clock)
  const at = scratchOf(memory, options.reader) + 16_384
  const end = at + SLAB_BYTES
  const wallMs = () => options.today * 86_400_000
  const dispatchers = SLICE_WORKS.map((sliceWork) =>
    dispatcherOf(memory, options.reader, { kernels, wallMs, sliceWork }),
  )

  /** @returns undefined when the table kept changing */
  return function readOnce(): SeenAnswer | undefined {
    const { command, fields } = question(random, options.today)
    const dispatcher = pick(dispatchers, random)
    const { searcher, codecs } = dispatcher
    const payload = encodeRequest({ command, correlationId: 7, fields: fields as never }).subarray(FRAME_HEADER)
    const from = Atomics.load(clock, CLOCK.ended)
    const spec = openRequest(dispatcher, payload, 0, payload.length)
    assert(spec !== undefined, 'the request is valid')
    searcher.workLeft = searcher.sliceWork
    let stop = answerRead(dispatcher, spec, 7, memory.u8, at, end, 0)
    let bytes = memory.u8
    let first = at
    let count = 1
    if (stop === UNFINISHED) {
      const slices = takeSlices(searcher, 0)
      while (stop === UNFINISHED && slices.restarts < RESTARTS_MAX) {
        // Simulates other requests of the thread between slices, so that commands can change the planned data. No
        // writer wakes this word.
        Atomics.wait(memory.fence, 0, 0, random() * SLICE_PAUSE_MS)
        openRequest(dispatcher, payload, 0, payload.length)
        stop = runSlice(searcher, command === 'SEARCHAVAIL', 7, slices, at, end, 0)
        count++
      }
      bytes = slices.reply.bytes
      first = 0
    }
    if (stop === KEEPS_CHANGING || stop === UNFINISHED) return undefined
    const to = Atomics.load(clock, CLOCK.begun)
    const reply = decodeReply(command, bytes.slice(first + FRAME_HEADER, stop), {
      baseYear: yearOf(options.today),
      codecs,
    })
    const error = reply.ok ? '' : reply.code
    return { command, fields, from, to, error, result: reply.ok ? reply.result : undefined, slices: count }
  }
}

const port = parentPort
if (port) {
  const options = workerData as ReaderOptions
  const readOnce = readerOf(options)
  const clock = new Int32Array(options.clock)
  let answers: SeenAnswer[] = []
  let reads = 0
  let isLast = false
  while (!isLast) {
    isLast = Atomics.load(clock, CLOCK.stop) === 1
    const answer = readOnce()
    reads++
    if (answer && (answer.from !== answer.to || reads % QUIET_KEPT === 0)) answers.push(answer)
    if (answers.length < BATCH && !isLast) continue
    port.postMessage({ answers, isLast } satisfies FromReader)
    answers = []
  }
}
