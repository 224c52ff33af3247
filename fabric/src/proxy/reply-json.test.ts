import { createCodecList, formatDay, packPropertyId, parseDay, unpackPropertyId } from '@vacancy/shared'
import { law } from '@vacancy/shared/testing/law'
import {
  COMMAND_LIST,
  type CommandName,
  decodeReply,
  encodeError,
  encodeReply,
  FRAME_HEADER_BYTES,
  STAY_STATES,
  type StayLine,
} from '@vacancy/shared/wire'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { JSON_COMMANDS, type JsonCommand } from './commands.ts'
import { createJsonWriter, JSON_ROOM_BYTES, releaseJson, setReplyContext, writeReply } from './reply-json.ts'

const CODECS = createCodecList(['breakfast', 'free_wifi', "chef's 100% \u00e9toil\u00e9", 'sea view'])
const CONTEXT = { baseYear: 2026, codecs: CODECS }
const FIRST_DAY = parseDay('2026-01-01') as number

const writer = createJsonWriter()
/** All dates of searches here: those of one year. */
const REQUESTED = Array.from({ length: 365 }, (_, n) => formatDay(FIRST_DAY + n))
const READ = { dates: REQUESTED, codecs: CODECS }
setReplyContext(writer, CODECS, REQUESTED)

const commandOf = (name: CommandName) => JSON_COMMANDS.get(name) as JsonCommand

function write(name: CommandName, frame: Uint8Array) {
  return writeReply(writer, commandOf(name), frame.subarray(FRAME_HEADER_BYTES))
}

function jsonOf(name: CommandName, frame: Uint8Array): object {
  const written = write(name, frame)
  if (written.kind !== 'success') throw new Error(JSON.stringify(written))
  return JSON.parse(written.json.toString())
}

/** The response as the design words it, from what the reference decoder reads. */
function expected(name: CommandName, frame: Uint8Array): object {
  const reply = decodeReply(name, frame.subarray(FRAME_HEADER_BYTES), READ)
  if (!reply.ok) throw new Error('an error')
  const result = reply.result as { readonly [key: string]: unknown }
  const json: { [key: string]: unknown } = { status: 'success' }
  for (const [key, value] of Object.entries(result))
    Object.assign(json, RENAMED[key]?.(value as never) ?? { [key]: value })
  return json
}

type Night = { date: string; availability: number; finalPrice: number; rateFeatures: string[] }
const nightOf = ({ date, availability, finalPrice, rateFeatures }: Night) => ({
  date,
  availability,
  final_price: finalPrice,
  rate_feature: rateFeatures,
})
const exact = (value: number | bigint) => (typeof value === 'bigint' ? String(value) : value)

const RENAMED: { readonly [key: string]: (value: never) => object } = {
  numDays: () => ({}),
  propertyIds: (properties: string[]) => ({ properties }),
  propertyId: (property_id: string) => ({ property_id }),
  finalPrice: (final_price: number) => ({ final_price }),
  rateFeatures: () => ({}),
  roomTypes: (room_types: string[]) => ({ room_types }),
  index: (index: number | bigint) => ({ index: exact(index) }),
  segments: (segments: { segment: string; propertyCount: number }[]) => ({
    segments: segments.map(({ segment, propertyCount: count }) => ({ segment, prop_count: count, propCount: count })),
  }),
  properties: (properties: { propertyId: string; days: Night[] }[]) => ({
    properties: properties.map(({ propertyId, days }) => ({ property_id: propertyId, days: days.map(nightOf) })),
  }),
  total: (total: number | bigint) => ({ total: exact(total) }),
  appliedIndex: (index: number | bigint) => ({ applied_index: exact(index) }),
  deadlineMs: (ms: number) => ({ deadline: utc(ms) }),
  lines: (lines: (StayLine & { days?: Night[] })[]) => ({
    lines: lines.map(({ days, ...rest }) => ({
      ...lineOf(rest),
      ...(days && { days: days.map(nightOf).map(({ availability: left, ...day }) => ({ ...day, left })) }),
    })),
  }),
  stays: (stays: Stay[]) => ({
    stays: stays.map(({ stayId, timeMs, index, lines, ...rest }) => ({
      ...rest,
      stay_id: stayId,
      index: exact(index),
      time: utc(timeMs),
      lines: lines.map(lineOf),
    })),
  }),
  explain: (explain: Explain) => ({
    explain: {
      rows_examined: explain.rowsExamined,
      waiting_micros: explain.waitingMicros,
      searching_micros: explain.searchingMicros,
      applied_index: exact(explain.appliedIndex),
      ...(explain.stages && {
        planning_micros: explain.stages.planningMicros,
        examining_micros: explain.stages.examiningMicros,
        writing_micros: explain.stages.writingMicros,
      }),
    },
  }),
}
const lineOf = ({ propertyId: property_id, roomType: room_type, ...rest }: StayLine) => ({
  property_id,
  room_type,
  ...rest,
})
const utc = (ms: number) => new Date(ms).toISOString()
type Stay = { stayId: string; index: number | bigint; timeMs: number; lines: StayLine[] }
type Explain = {
  rowsExamined: number
  waitingMicros: number
  searchingMicros: number
  appliedIndex: number | bigint
  stages?: { planningMicros: number; examiningMicros: number; writingMicros: number }
}

const text = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1 }),
  fc.string({ minLength: 1 }),
  fc.constant('"\\\u0000\u2028\u{1f600}'),
)
const shortId = fc
  .string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 1,
    maxLength: 14,
  })
  .filter((id) => packPropertyId(id) !== undefined)
const propertyId = fc.oneof(shortId, fc.uuid({ version: [1, 2, 3, 4, 5, 7] }))
const u32 = fc.oneof(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.constantFrom(0, 9, 10, 99, 100, 2 ** 32 - 1))
const u8 = fc.integer({ min: 0, max: 255 })
const u64 = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.maxSafeNat())
const date = fc.integer({ min: 0, max: 364 }).map((day) => formatDay(FIRST_DAY + day))
const night = fc.record({
  date,
  availability: u8,
  finalPrice: u32,
  rateFeatures: fc.subarray([...CODECS.names]),
})
const explain = fc.option(
  fc.record(
    {
      ...{ rowsExamined: u32, waitingMicros: u32, searchingMicros: u32, appliedIndex: u64 },
      stages: fc.record({ planningMicros: u32, examiningMicros: u32, writingMicros: u32 }),
    },
    { requiredKeys: ['rowsExamined', 'waitingMicros', 'searchingMicros', 'appliedIndex'] },
  ),
  { nil: undefined },
)
const withExplain = <T>(value: T, explained: unknown) =>
  explained === undefined ? value : { ...value, explain: explained }
const index = fc.option(u64, { nil: undefined }).map((at) => (at === undefined ? {} : { index: at }))

const state = fc.constantFrom(...STAY_STATES)
const moment = fc.integer({ min: 1, max: 2 ** 52 })
const line = fc.record(
  {
    propertyId: text,
    roomType: text,
    arrival: date,
    nights: u8,
    rooms: u8,
    uncounted: fc.constant(true),
  },
  { requiredKeys: ['propertyId', 'roomType', 'arrival', 'nights', 'rooms'] },
)

/** Nights are those of their line. */
const ofLine = ({ arrival, nights }: StayLine, days: Night[]) =>
  days.slice(0, nights).map((day, n) => ({ ...day, date: formatDay((parseDay(arrival) as number) + n) }))

const RESULTS: { readonly [kind: string]: fc.Arbitrary<object> } = {
  empty: index,
  segments: fc.record({ segments: fc.array(fc.record({ segment: text, propertyCount: u32 })) }),
  properties: fc
    .tuple(fc.array(propertyId), explain)
    .map(([propertyIds, explained]) => withExplain({ propertyIds }, explained)),
  stays: fc
    .tuple(
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.tuple(propertyId, fc.array(night, { minLength: 5, maxLength: 5 }))),
      explain,
    )
    .map(([numDays, found, explained]) =>
      withExplain(
        { numDays, properties: found.map(([id, days]) => ({ propertyId: id, days: days.slice(0, numDays) })) },
        explained,
      ),
    ),
  availability: fc.tuple(u8, index).map(([availability, extra]) => ({ availability, ...extra })),
  exists: fc.record({ exists: fc.boolean() }),
  roomTypes: fc.record({ roomTypes: fc.array(text) }),
  dates: fc.record({ dates: fc.array(date) }),
  night: fc.tuple(propertyId, night).map(([id, day]) => ({ propertyId: id, ...day })),
  stay: fc
    .tuple(state, fc.array(line, { maxLength: 16 }), fc.array(night, { maxLength: 30 }), u64, u64, moment, index)
    .map(([reached, lines, days, total, at, deadline, extra]) => ({
      state: reached,
      ...(reached === 'held' && { deadlineMs: deadline }),
      total,
      index: at,
      lines:
        reached === 'held' || reached === 'booked'
          ? lines.map((each) => ({ ...each, days: ofLine(each, days) }))
          : lines,
      ...(extra.index !== undefined && { appliedIndex: extra.index }),
    })),
  stayList: fc.record({
    stays: fc.array(
      fc.record({ stayId: propertyId, state, index: u64, timeMs: moment, source: text, lines: fc.array(line) }),
      { maxLength: 5 },
    ),
    cursor: text,
  }),
}

const DATA_COMMANDS = COMMAND_LIST.filter(({ reply }) => Object.hasOwn(RESULTS, reply))

test.each(DATA_COMMANDS.map(({ name, reply }) => [name, reply] as const))(
  '%s: any reply as the reference decoder reads it',
  (name, kind) => {
    law([RESULTS[kind] as fc.Arbitrary<never>], (result) => {
      const frame = encodeReply(name, 1, result, CONTEXT)

      const wanted = expected(name, frame) as { [key: string]: unknown }
      if (kind === 'night')
        wanted['rate_feature'] = (result as Night).rateFeatures.toSorted(
          (a, b) => CODECS.names.indexOf(a) - CODECS.names.indexOf(b),
        )
      expect(jsonOf(name, frame)).toEqual(wanted)
    })
  },
)

test('kept JSON is not overwritten, and the room in front of it may be', () => {
  const json = (name: string) => {
    const written = write('PROPROOMLIST', encodeReply('PROPROOMLIST', 1, { roomTypes: [name] }, CONTEXT))
    if (written.kind !== 'success') throw new Error(JSON.stringify(written))
    new Uint8Array(written.json.buffer, 0, JSON_ROOM_BYTES).fill(0x20)
    return written.json
  }
  const first = json('first')
  releaseJson(writer, true)
  const second = json('second')
  releaseJson(writer, false)
  const third = json('third')

  expect(first.toString()).toBe('{"status":"success","room_types":["first"]}')
  expect(third.toString()).toBe('{"status":"success","room_types":["third"]}')
  expect(second.buffer).toBe(third.buffer)
})

test('GETCODECS: the names in order', () => {
  const frame = encodeReply('GETCODECS', 1, { rateFeatures: [...CODECS.names] }, CONTEXT)

  expect(jsonOf('GETCODECS', frame)).toEqual({ status: 'success', rate_features: CODECS.names })
})

test('the fields of a night are in the documented order', () => {
  const days = [{ date: '2026-12-24', availability: 11, finalPrice: 110, rateFeatures: ['free_wifi', 'breakfast'] }]
  const frame = encodeReply('SEARCHAVAIL', 1, { numDays: 1, properties: [{ propertyId: 's1_seg1_p1', days }] }, CONTEXT)

  const written = write('SEARCHAVAIL', frame)

  expect(written.kind === 'success' && written.json.toString()).toBe(
    '{"status":"success","properties":[{"property_id":"s1_seg1_p1","days":[' +
      '{"date":"2026-12-24","availability":11,"final_price":110,"rate_feature":["breakfast","free_wifi"]}]}]}',
  )
})

test('around New Year nights are those of the request or of the stay, whatever the year of the node', () => {
  const nights = ['2026-12-31', '2027-01-01']
  const days = nights.map((date) => ({ date, availability: 1, finalPrice: 9, rateFeatures: [] }))
  const line = { propertyId: 'p', roomType: 'r', arrival: '2026-12-31', nights: 2, rooms: 1 }
  setReplyContext(writer, CODECS, nights)
  for (const baseYear of [2025, 2026]) {
    const context = { baseYear, codecs: CODECS }
    const search = encodeReply('SEARCHAVAIL', 1, { numDays: 2, properties: [{ propertyId: 'p', days }] }, context)
    const stay = encodeReply('GETSTAY', 1, { state: 'booked', total: 1, index: 1, lines: [{ ...line, days }] }, context)

    expect(jsonOf('SEARCHAVAIL', search)).toMatchObject({ properties: [{ days: nights.map((date) => ({ date })) }] })
    expect(jsonOf('GETSTAY', stay)).toMatchObject({ lines: [{ days: nights.map((date) => ({ date })) }] })
  }
  setReplyContext(writer, CODECS, REQUESTED)
})

test.each([0, 1, 2, 200])('SEARCHPROP with %i results is a success with that many ids', (count) => {
  const propertyIds = Array.from({ length: count }, (_, i) => `p${i}`)

  expect(jsonOf('SEARCHPROP', encodeReply('SEARCHPROP', 1, { propertyIds }, CONTEXT))).toEqual({
    status: 'success',
    properties: propertyIds,
  })
})

test('counts of a search are beside its properties, and each has the names of the request', () => {
  const facets = {
    stars: [{ value: 4, count: 2 }],
    rateFeatures: [{ value: 'sea view', count: 1 }],
    total: [
      { minTotal: 0, maxTotal: 249, count: 1 },
      { minTotal: 250, count: 3 },
    ],
  }
  const cell = { column: 1, row: 0, count: 2, latitude: 47.1, longitude: -179.5 }
  const cells = [{ ...cell, lowestTotal: 2n ** 60n }, cell]
  const frame = encodeReply('SEARCHAVAIL', 1, { numDays: 0, properties: [], facets, cells }, CONTEXT)

  setReplyContext(writer, CODECS, REQUESTED, 'page')
  expect(jsonOf('SEARCHAVAIL', frame)).toEqual({
    ...{ status: 'success', properties: [] },
    facets: {
      stars: facets.stars,
      rate_features: facets.rateFeatures,
      total: [
        { min_total: 0, max_total: 249, count: 1 },
        { min_total: 250, count: 3 },
      ],
    },
    cells: [{ ...cell, lowest_total: '1152921504606846976' }, cell],
  })
  const properties = encodeReply('SEARCHPROP', 1, { propertyIds: ['p'], facets: { stars: [] } }, CONTEXT)
  expect(jsonOf('SEARCHPROP', properties)).toEqual({ status: 'success', properties: ['p'], facets: { stars: [] } })
  setReplyContext(writer, CODECS, REQUESTED)
})

test('a search without any field is an empty result, as some servers send it', () => {
  expect(jsonOf('SEARCHAVAIL', encodeReply('SEARCHPROP', 1, { propertyIds: [] }, CONTEXT))).toEqual({
    status: 'success',
    properties: [],
  })
})

test('a packed property id in a night, as some servers send it', () => {
  const frame = encodeReply(
    'GETPROPROOMDAY',
    1,
    { propertyId: 'sixteen-bytes-id', date: '2026-05-01', availability: 1, finalPrice: 2, rateFeatures: [] },
    CONTEXT,
  )
  frame.set(packPropertyId('p"1') as Uint8Array, FRAME_HEADER_BYTES + 10 + 7)

  expect(jsonOf('GETPROPROOMDAY', frame)).toMatchObject({ property_id: 'p"1' })
})

test('any 16 bytes are a property id that JSON can hold', () => {
  law([fc.uint8Array({ minLength: 16, maxLength: 16 }), fc.boolean()], (bytes, isShort) => {
    if (isShort) bytes[6] = 0xf0
    const frame = encodeReply('SEARCHPROP', 1, { propertyIds: ['x'] }, CONTEXT)
    frame.set(bytes, frame.length - 16)

    expect(jsonOf('SEARCHPROP', frame)).toEqual({ status: 'success', properties: [unpackPropertyId(bytes, 0)] })
  })
})

test('an error keeps code and text, in both forms that servers send', () => {
  expect(write('SETROOMAVL', encodeError(1, 'UNDERFLOW: 2 left'))).toEqual({
    kind: 'error',
    code: 'UNDERFLOW',
    text: '2 left',
  })
  expect(write('SETROOMAVL', encodeError(1, '404'))).toEqual({ kind: 'error', code: '404', text: '' })
  const existing = Buffer.from(
    'ff07000000160000000545 52524f5201000100010400000003000000343034'.replace(' ', ''),
    'hex',
  )
  expect(write('SETROOMAVL', existing)).toEqual({ kind: 'error', code: '404', text: '' })
})

test('a feature beyond the codec list asks for a new list', () => {
  const days = [{ date: '2026-12-24', availability: 11, finalPrice: 110, rateFeatures: ['sea view'] }]
  const frame = encodeReply('SEARCHAVAIL', 1, { numDays: 1, properties: [{ propertyId: 'p', days }] }, CONTEXT)
  const other = createJsonWriter()
  setReplyContext(other, createCodecList(['breakfast']), ['2026-12-24'])

  expect(writeReply(other, commandOf('SEARCHAVAIL'), frame.subarray(FRAME_HEADER_BYTES))).toMatchObject({
    kind: 'malformed',
    unknownFeature: true,
  })
})

test('a damaged reply is malformed exactly where the reference decoder refuses it, and never anything worse', () => {
  const cases = DATA_COMMANDS.map(({ name, reply }) =>
    fc.tuple(fc.constant(name), RESULTS[reply] as fc.Arbitrary<never>),
  )
  law([fc.oneof(...cases), fc.nat(), u8, fc.nat()], ([name, result], where, byte, cut) => {
    const whole = encodeReply(name, 1, result, CONTEXT).subarray(FRAME_HEADER_BYTES)
    const damaged = Uint8Array.from(whole)
    damaged[where % damaged.length] = byte
    for (const payload of [damaged, whole.subarray(0, cut % whole.length)]) {
      const written = writeReply(writer, commandOf(name), payload)
      let isRead = true
      try {
        isRead = decodeReply(name, payload, READ).ok
      } catch {
        isRead = false
      }
      const isEmptySearch = commandOf(name).spec.reply === 'stays' && payload.length === 10
      if (!isEmptySearch) expect(written.kind === 'success').toBe(isRead)
      if (written.kind === 'success') JSON.parse(written.json.toString())
    }
  })
})
