/** One call of a search at its limits: the rows of a slice, the room of its reply, tries, counters and times. */

import { formatDay, parseDay } from '@vacancy/shared'
import { decodeReply, encodeRequest, scanRequest } from '@vacancy/shared/wire'
import { beforeAll, describe, expect, test } from 'vitest'
import { KIND, writeU8, writeU32 } from '../store/command.ts'
import { scratchOf } from '../store/store.ts'
import { mark, READ_TRIES_MAX, unmark } from '../store/version.ts'
import { applyOwn, ask, createNodeInMemory, type LooseFields, type NodeInMemory } from '../testing/node-in-memory.ts'
import { PARAMETER, type SearchKernel } from './parameters.ts'
import {
  createSearcher,
  KEEPS_CHANGING,
  NO_ROOM,
  runSearch,
  runSlice,
  type Searcher,
  takeSlices,
  triesOfTurn,
  UNFINISHED,
} from './search.ts'
import { setToday } from './values.ts'

const TODAY = parseDay('2026-11-20') as number
const ROWS = 300
const ID = 0x8765_4321
const SLAB_BYTES = 100_000
const FRAME_HEADER = 9
const EXPLAIN_FIELD_BYTES = 27
const night = (n: number) => formatDay(TODAY + n)

/** Property n has area n and an amenity n, which are more than have bitmaps, and three nights. */
function build(): NodeInMemory {
  const node = createNodeInMemory(TODAY, 64 << 20)
  for (let n = 0; n < ROWS; n++) {
    const own = { segment: 's', propertyId: `p${n}`, area: `a${n}`, amenities: ['pool', `m${n}`], stars: 1 + (n % 5) }
    ask(node, 'SETPROP', { ...own, propertyType: 't', category: 'c', latitude: 1, longitude: 2 })
    for (let at = 0; at < 3; at++) {
      const where = { propertyId: `p${n}`, roomType: 'r', date: night(at) }
      ask(node, 'SETROOMPKG', { ...where, availability: 2, finalPrice: n })
    }
  }
  return node
}

let node: NodeInMemory
beforeAll(() => {
  node = build()
})

const parameterOf = ({ memory, parameters }: Searcher, name: keyof typeof PARAMETER) =>
  memory.u32[(parameters >>> 2) + PARAMETER[name]] as number

/** A searcher whose clock advances by 2.5 ms with each reading. */
function searcherWith(options: { sliceWork?: number; kernel?: SearchKernel; day?: number } = {}): Searcher {
  const { searcher } = node.dispatchers[0] as NodeInMemory['dispatchers'][number]
  let nowMs = 1000
  const monotonicMs = () => {
    nowMs += 2.5
    return nowMs
  }
  const { memory, reader, parameters, limits } = searcher
  const { sliceWork = Number.POSITIVE_INFINITY, kernel = searcher.kernel } = options
  const own = createSearcher({
    ...{ memory, reader, parameters, limits, kernel, codecs: node.codecs, monotonicMs, sliceWork },
  })
  setToday(own.values, options.day ?? TODAY)
  return own
}

function open({ values }: Searcher, fields: LooseFields): boolean {
  const forStay = fields['dates'] !== undefined
  const command = forStay ? 'SEARCHAVAIL' : 'SEARCHPROP'
  const all = { segment: 's', ...(forStay ? { roomType: 'r' } : {}), ...fields }
  const request = encodeRequest({ command, correlationId: ID, fields: all as never }).subarray(FRAME_HEADER)
  values.fault = ''
  expect(scanRequest(values.scan, request, 0, request.length)).toBe('')
  return forStay
}

const outAt = ({ memory, reader }: Searcher) => scratchOf(memory, reader) + 16_384

function run(searcher: Searcher, fields: LooseFields, bytes = SLAB_BYTES, waitedMs = 0): number {
  const forStay = open(searcher, fields)
  const at = outAt(searcher)
  const stop = runSearch(searcher, forStay, ID, at, at + bytes, waitedMs)
  return stop < 0 ? stop : stop - at
}

function replyOf(searcher: Searcher, fields: LooseFields, stop: number) {
  const at = outAt(searcher)
  return decoded(fields, searcher.memory.u8.slice(at, at + stop))
}

function decoded(fields: LooseFields, frame: Uint8Array) {
  const view = new DataView(frame.buffer)
  expect(view.getUint32(1, true)).toBe(ID)
  expect(view.getUint32(5, true)).toBe(frame.length - FRAME_HEADER)
  const command = fields['dates'] === undefined ? 'SEARCHPROP' : 'SEARCHAVAIL'
  return decodeReply(command, frame.subarray(FRAME_HEADER), { baseYear: 2026, codecs: node.codecs })
}

/** Runs the next slice with room for so many bytes of hits. */
function next(searcher: Searcher, fields: LooseFields, slices: ReturnType<typeof takeSlices>, bytes = SLAB_BYTES) {
  const forStay = open(searcher, fields)
  const at = outAt(searcher)
  return runSlice(searcher, forStay, ID, slices, at, at + bytes, 7)
}

const STAY = { dates: [night(0), night(1), night(2)] }
const POINT = { latitude: 1, longitude: 2 }

describe('the rows of a slice', () => {
  test.each<[string, LooseFields, number]>([
    ['its row', {}, 1],
    ['a column', { minStars: 2 }, 9],
    ['two columns', { minStars: 2, area: 'a299' }, 17],
    ['a position', POINT, 9],
    ['an amenity without a bitmap', { amenities: ['m299'] }, 17],
    ['two amenities without bitmaps', { amenities: ['m299', 'm298'] }, 33],
    ['filters with bitmaps', { propertyType: 't', amenities: ['pool'] }, 1],
    ['one night', { dates: [night(1)] }, 1],
    ['three nights', STAY, 3],
    ['three nights, position and column', { ...STAY, ...POINT, minStars: 2 }, 19],
  ])('cost what is compared: %s', (_, fields, weight) => {
    const ends: number[] = []
    for (const sliceWork of [weight * 256 - 1, weight * 256, weight * ROWS - 1, weight * ROWS]) {
      const searcher = searcherWith({ sliceWork })
      run(searcher, fields)
      ends.push(parameterOf(searcher, 'endRow'))
    }
    expect(ends).toEqual([128, 256, 256, ROWS])
  })

  test('are at least a group of the kernel, and begin with the first planned one', () => {
    const ranges: number[][] = []
    const searcher = searcherWith({ sliceWork: 1 })
    expect(run(searcher, {})).toBe(UNFINISHED)
    const slices = takeSlices(searcher, 0)
    do {
      ranges.push([parameterOf(searcher, 'firstRow'), parameterOf(searcher, 'endRow')])
      searcher.workLeft = 1
    } while (next(searcher, {}, slices) === UNFINISHED)
    ranges.push([parameterOf(searcher, 'firstRow'), parameterOf(searcher, 'endRow')])

    expect(ranges).toEqual([
      [0, 128],
      [128, 256],
      [256, 300],
    ])
    expect(searcher).toMatchObject({ hits: ROWS, examined: ROWS, retries: 0 })
  })

  test('are deducted from the work of the turn: a word for 32 rows, and the compared ones', () => {
    const searcher = searcherWith({ sliceWork: 3 * 128 })
    expect(run(searcher, STAY)).toBe(UNFINISHED)
    const left = 3 * 128 - (4 + 128 * 3)
    expect(searcher.workLeft).toBe(left)

    const slices = takeSlices(searcher, 0)
    expect(next(searcher, STAY, slices)).toBe(UNFINISHED)
    expect(searcher.workLeft).toBe(left - (4 + 128 * 3))
    expect(next(searcher, STAY, slices)).toBeGreaterThan(0)
    // 44 rows: one word is whole.
    expect(searcher.workLeft).toBe(left - (4 + 128 * 3) - (1 + 44 * 3))
  })

  test('of a search in one go are not deducted', () => {
    const searcher = searcherWith({ sliceWork: 1e6 })
    expect(run(searcher, STAY)).toBeGreaterThan(0)
    expect(searcher.workLeft).toBe(1e6)
  })

  test.each([
    [127, UNFINISHED],
    [128, UNFINISHED],
    [129, UNFINISHED],
  ])('without work left none is searched, whatever the limit: %i', (limit, expected) => {
    const searcher = searcherWith({ sliceWork: 1 })
    searcher.workLeft = 0
    expect(run(searcher, { limit: BigInt(limit) })).toBe(expected)
    expect(takeSlices(searcher, 5)).toMatchObject({ nextRow: 0, hits: 0, examined: 0, workedMs: 5, today: TODAY })
  })

  test.each([127, 128, 129])('are enough when they hold the limit of %i hits', (limit) => {
    const searcher = searcherWith({ sliceWork: 1 })
    const fields = { limit: BigInt(limit) }
    const stop = run(searcher, fields)
    expect(stop > 0).toBe(limit <= 128)
    if (stop > 0) expect(replyOf(searcher, fields, stop).ok).toBe(true)
    expect(searcher.hits).toBe(Math.min(limit, 128))
    if (stop > 0) return
    const slices = takeSlices(searcher, 0)
    expect(slices).toMatchObject({ nextRow: 128, hits: 128, examined: 128, restarts: 0 })
    const end = next(searcher, fields, slices)
    expect(decoded(fields, slices.reply.bytes.slice(0, end))).toMatchObject({ ok: true })
    // The second slice looks for the one hit that is missing.
    expect([parameterOf(searcher, 'limit'), parameterOf(searcher, 'hits')]).toEqual([1, 1])
    expect(searcher.hits).toBe(129)
  })
})

describe('the room of a reply', () => {
  test.each<[string, LooseFields, number]>([
    // Header 19, each id 23, the field of nights 9, each hit of three nights 42 more.
    ['no property', { segment: 'nowhere' }, 19],
    ['two properties', { limit: 2n }, 19 + 2 * 23],
    ['no stay', { ...STAY, roomType: 'cave' }, 19 + 9],
    ['two stays', { ...STAY, limit: 2n }, 19 + 9 + 2 * (23 + 9 + 33)],
    ['a property, explained', { limit: 1n, explain: 1 }, 19 + 23 + EXPLAIN_FIELD_BYTES],
    ['a stay, explained', { ...STAY, limit: 1n, explain: 1 }, 19 + 9 + 65 + EXPLAIN_FIELD_BYTES],
  ])('%s fits exactly or not at all', (_, fields, bytes) => {
    const searcher = searcherWith()
    expect(run(searcher, fields)).toBe(bytes)
    expect(run(searcher, fields, bytes)).toBe(bytes)
    expect(replyOf(searcher, fields, bytes).ok).toBe(true)
    const { u8 } = searcher.memory
    for (let room = 0; room < bytes; room++) {
      const end = outAt(searcher) + room
      u8.fill(0xee, end, end + 200)
      expect(run(searcher, fields, room), `${room} of ${bytes} bytes`).toBe(NO_ROOM)
      expect(
        u8.subarray(end, end + 200).every((byte) => byte === 0xee),
        `behind ${room} bytes`,
      ).toBe(true)
    }
  })

  test('a slice whose hits do not fit continues with the row that lacked', () => {
    const searcher = searcherWith({ sliceWork: 1 })
    expect(run(searcher, {})).toBe(UNFINISHED)
    const slices = takeSlices(searcher, 0)
    expect(next(searcher, {}, slices, 23 * 5 + 22)).toBe(UNFINISHED)
    expect(slices).toMatchObject({ nextRow: 133, hits: 133 })
    while (next(searcher, {}, slices) === UNFINISHED);
    const whole = searcherWith()
    const stop = run(whole, {})
    expect(decoded({}, slices.reply.bytes.slice(0, slices.reply.at))).toEqual(replyOf(whole, {}, stop))
  })
})

describe('a table that is being changed', () => {
  const tableOf = (fields: LooseFields) => {
    const searcher = searcherWith({ sliceWork: 1 })
    run(searcher, fields)
    return takeSlices(searcher, 0).table
  }

  test.each([
    [Number.POSITIVE_INFINITY, 0, READ_TRIES_MAX],
    [100, 1, 4],
    [100, 0, 1],
    [100, -1, 1],
  ])('is tried as often as the turn allows: slices of %d, %d left', (sliceWork, workLeft, tries) => {
    const searcher = searcherWith({ sliceWork })
    searcher.workLeft = workLeft
    expect(triesOfTurn(searcher)).toBe(tries)
    const table = tableOf({})
    mark(node.store, table)
    const stop = run(searcher, {})
    unmark(node.store, table)
    expect([stop, searcher.retries]).toEqual([KEEPS_CHANGING, tries])
  })

  test('defers a slice, which continues unchanged only with the same version', () => {
    const searcher = searcherWith({ sliceWork: 1 })
    const table = tableOf(STAY)
    run(searcher, STAY)
    const slices = takeSlices(searcher, 0)
    mark(node.store, table)
    expect(next(searcher, STAY, slices)).toBe(KEEPS_CHANGING)
    unmark(node.store, table)
    expect(searcher.retries).toBe(1)
    expect(slices).toMatchObject({ nextRow: 128, restarts: 0 })

    expect(next(searcher, STAY, slices)).toBe(UNFINISHED)
    expect(slices).toMatchObject({ nextRow: 128, hits: 128, restarts: 1 })
    expect(searcher.retries).toBe(1)
  })

  test('gives no reply when its kernel ran during the change', () => {
    let changes = 1
    const { kernel } = (node.dispatchers[0] as NodeInMemory['dispatchers'][number]).searcher
    const table = tableOf({})
    const changing = (parameters: number) => {
      kernel(parameters)
      if (changes-- <= 0) return
      mark(node.store, table)
      unmark(node.store, table)
    }
    const searcher = searcherWith({ kernel: changing })
    expect(run(searcher, {})).toBe(19 + ROWS * 23)
    expect(searcher).toMatchObject({ hits: ROWS, examined: ROWS, retries: 1 })
  })
})

describe('counters and times', () => {
  const explained = (frame: Uint8Array) => {
    const view = new DataView(frame.slice(-20).buffer)
    const number = (at: number) => view.getUint32(at, true)
    return { examined: number(0), waitedUs: number(4), tookUs: number(8), index: view.getBigUint64(12, true) }
  }

  test('explain reports examined rows, waiting and working time in microseconds, and the applied index', () => {
    const searcher = searcherWith()
    const fields = { ...STAY, limit: 1n, explain: 1 }
    const stop = run(searcher, fields, SLAB_BYTES, 1.2345)
    const at = outAt(searcher)
    expect(explained(searcher.memory.u8.slice(at, at + stop))).toEqual({
      ...{ examined: searcher.examined, waitedUs: 1235, tookUs: 2500, index: BigInt(node.index) },
    })
    expect(searcher).toMatchObject({ hits: 1, retries: 0 })
  })

  test('explain of a split search adds the times of its slices', () => {
    const searcher = searcherWith({ sliceWork: 1 })
    const fields = { ...STAY, explain: 1 }
    expect(run(searcher, fields)).toBe(UNFINISHED)
    const slices = takeSlices(searcher, 10)
    expect(next(searcher, fields, slices)).toBe(UNFINISHED)
    expect(slices.workedMs).toBe(12.5)
    const stop = next(searcher, fields, slices)
    expect(explained(slices.reply.bytes.slice(0, stop))).toEqual({
      ...{ examined: ROWS, waitedUs: 7000, tookUs: 15_000, index: BigInt(node.index) },
    })
    expect(decoded(fields, slices.reply.bytes.slice(0, stop))).toMatchObject({ ok: true })
  })

  test('a search with an error has no hits', () => {
    const searcher = searcherWith()
    run(searcher, {})
    expect(searcher).toMatchObject({ hits: ROWS, examined: ROWS })
    Object.assign(searcher, { retries: 3 })
    const stop = run(searcher, { minStars: 9 })
    expect(replyOf(searcher, {}, stop)).toMatchObject({ ok: false, code: 'VALIDATION_ERROR' })
    expect(searcher).toMatchObject({ hits: 0, examined: 0, retries: 0 })
    expect(run(searcher, { minStars: 9 }, 20)).toBe(NO_ROOM)
  })

  test('a search without a table has no hits either', () => {
    const searcher = searcherWith()
    run(searcher, {})
    expect(run(searcher, { segment: 'nowhere' })).toBe(19)
    expect(searcher).toMatchObject({ hits: 0, examined: 0 })
  })
})

describe('days between two slices', () => {
  test('a search whose first day has passed ends with an error', () => {
    const searcher = searcherWith({ sliceWork: 1 })
    expect(run(searcher, STAY)).toBe(UNFINISHED)
    const slices = takeSlices(searcher, 0)
    setToday(searcher.values, TODAY + 1)
    const stop = next(searcher, STAY, slices)
    expect(decoded(STAY, slices.reply.bytes.slice(0, stop))).toMatchObject({ ok: false, code: 'VALIDATION_ERROR' })
  })

  test('a search of later days restarts on the next day', () => {
    const fields = { dates: [night(1), night(2)] }
    const searcher = searcherWith({ sliceWork: 1 })
    expect(run(searcher, fields)).toBe(UNFINISHED)
    const slices = takeSlices(searcher, 0)
    setToday(searcher.values, TODAY + 1)
    expect(next(searcher, fields, slices)).toBe(UNFINISHED)
    expect(slices).toMatchObject({ today: TODAY + 1, nextRow: 128, hits: 128, restarts: 1 })
    expect(searcher.retries).toBe(1)
  })

  test('a search whose days were dropped, or whose table is gone, finds nothing', () => {
    const own = node
    node = build()
    const searcher = searcherWith({ sliceWork: 1 })
    expect(run(searcher, STAY)).toBe(UNFINISHED)
    const [dropped, gone] = [takeSlices(searcher, 0), takeSlices(searcher, 0)]
    applyOwn(node, KIND.dropBefore, (writer) => {
      writeU32(writer, TODAY + 1)
      writeU8(writer, 1)
    })
    const stop = next(searcher, STAY, dropped)
    expect(decoded(STAY, dropped.reply.bytes.slice(0, stop))).toMatchObject({ ok: true, result: { properties: [] } })
    expect(searcher).toMatchObject({ hits: 0, examined: 0 })
    ask(node, 'DELSEGMENT', { segment: 's' })
    const end = next(searcher, STAY, gone)
    expect(decoded(STAY, gone.reply.bytes.slice(0, end))).toMatchObject({ ok: true, result: { properties: [] } })
    expect(gone).toMatchObject({ hits: 0, examined: 0, restarts: 1 })
    node = own
  })
})
