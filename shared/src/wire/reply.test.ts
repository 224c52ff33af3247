import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCodecList } from '../codecs.ts'
import { formatDay, parseDay } from '../dates.ts'
import { LIMITS } from '../domain.ts'
import { VacancyError } from '../errors.ts'
import { law } from '../testing/law.ts'
import { bytesOfHex, extensionVectors, replyVectors } from '../testing/vectors.ts'
import type { CommandName } from './commands.ts'
import { decodeReply, encodeError, encodeReply, type ReplyContext, type ReplyResult, type StayEntry } from './reply.ts'
import type { NightPackage } from './reply-search.ts'
import { FRAME_HEADER_BYTES } from './routing.ts'
import type { StayLine } from './stay.ts'

const codecs = createCodecList(replyVectors.codecLists['codecs24'] ?? [])
const context: ReplyContext = { baseYear: 2026, codecs }
const FIRST_DAY = parseDay('2026-01-01') as number

const bytesIn = (name: string) => new TextEncoder().encode(name).length
const text = fc.string({ unit: 'grapheme', maxLength: 40 })
const u8 = fc.integer({ min: 0, max: 255 })
const u32 = fc.integer({ min: 0, max: 0xffff_ffff })
const u64 = fc.oneof(fc.maxSafeNat(), fc.bigInt({ min: 1n << 53n, max: (1n << 64n) - 1n }))
const id = fc.oneof(fc.constantFrom('p', 'hotel_123', 'abcdefghijklmn'), fc.uuid({ version: [1, 2, 3, 4, 5, 7] }))
const date = fc.nat(730).map((offset) => formatDay(FIRST_DAY + offset))
const features = fc.subarray([...codecs.names])
const night = fc.record({ date, availability: u8, finalPrice: u32, rateFeatures: features })
const explain = fc.record(
  {
    ...{ rowsExamined: u32, waitingMicros: u32, searchingMicros: u32, appliedIndex: u64 },
    stages: fc.record({ planningMicros: u32, examiningMicros: u32, writingMicros: u32 }),
  },
  { requiredKeys: ['rowsExamined', 'waitingMicros', 'searchingMicros', 'appliedIndex'] },
)
const stays = fc.integer({ min: 1, max: 4 }).chain((numDays) => {
  const days = fc.array(night, { minLength: numDays, maxLength: numDays })
  const properties = fc.array(fc.record({ propertyId: id, days }), { maxLength: 5 })
  return fc.record({ numDays: fc.constant(numDays), properties, explain }, { requiredKeys: ['numDays', 'properties'] })
})

const stayLine = fc
  .record(
    { propertyId: text, roomType: text, arrival: date, nights: u8, rooms: u8, uncounted: fc.constant(true) },
    {
      requiredKeys: ['propertyId', 'roomType', 'arrival', 'nights', 'rooms'],
    },
  )
  .filter(({ propertyId, roomType }) => Math.max(bytesIn(propertyId), bytesIn(roomType)) < 256)
/** Nights are those of their line. */
const ofLine = ({ arrival, nights }: StayLine, days: NightPackage[]) =>
  days.slice(0, nights).map((day, n) => ({ ...day, date: formatDay((parseDay(arrival) as number) + n) }))
const deadlineMs = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
const stayed = fc.constantFrom('held', 'booked', 'released', 'expired', 'void').chain((state) => {
  const days = fc.array(night, { maxLength: 3 })
  const line =
    state === 'held' || state === 'booked'
      ? fc.tuple(stayLine, days).map(([l, d]) => ({ ...l, days: ofLine(l, d) }))
      : stayLine
  return fc.record(
    {
      state: fc.constant(state),
      deadlineMs,
      total: u64,
      index: u64,
      lines: fc.array(line, { maxLength: 16 }),
      appliedIndex: u64,
    },
    { requiredKeys: ['state', 'total', 'index', 'lines'] },
  )
}) as fc.Arbitrary<ReplyResult>
const listed = fc.record(
  {
    stayId: id,
    state: fc.constantFrom('held', 'booked', 'released', 'expired', 'void'),
    deadlineMs,
    index: u64,
    timeMs: fc.maxSafeNat(),
    source: fc.string({ maxLength: 32 }),
    lines: fc.array(stayLine, { maxLength: 16 }),
  },
  { requiredKeys: ['stayId', 'state', 'index', 'timeMs', 'source', 'lines'] },
) as fc.Arbitrary<StayEntry>

const RESULTS: { readonly [name in CommandName]?: fc.Arbitrary<ReplyResult> } = {
  GETCODECS: fc.constant({ rateFeatures: [...codecs.names] }),
  GETSEGMENTS: fc.record({ segments: fc.array(fc.record({ segment: text, propertyCount: u32 }), { maxLength: 5 }) }),
  SETPROP: fc.record({ index: u64 }, { requiredKeys: [] }),
  SEARCHPROP: fc.record({ propertyIds: fc.array(id, { maxLength: 5 }), explain }, { requiredKeys: ['propertyIds'] }),
  SEARCHAVAIL: stays,
  DECROOMAVL: fc.record({ availability: u8, index: u64 }, { requiredKeys: ['availability'] }),
  PROPEXIST: fc.record({ exists: fc.boolean() }),
  PROPROOMLIST: fc.record({ roomTypes: fc.array(text, { maxLength: 5 }) }),
  PROPROOMDATELIST: fc.record({ dates: fc.array(date, { maxLength: 5 }) }),
  GETSTAY: stayed,
  BOOKSTAY: stayed,
  LISTSTAYS: fc.record({ stays: fc.array(listed, { maxLength: 3 }), cursor: text }),
  GETPROPROOMDAY: fc.tuple(id, night).map(([propertyId, day]) => ({ propertyId, ...day })),
}

function payloadOf(command: CommandName, result: ReplyResult): Uint8Array {
  return encodeReply(command, 1, result as never, context).subarray(FRAME_HEADER_BYTES)
}

test.each(Object.entries(RESULTS) as [CommandName, fc.Arbitrary<ReplyResult>][])(
  'a reply to %s is decoded as it was encoded',
  (command, results) => {
    law([results], (result) => {
      expect(decodeReply(command, payloadOf(command, result), context)).toEqual({ ok: true, result })
    })
  },
)

test('any bytes decode, or fail as a malformed reply', () => {
  const commands = Object.keys(RESULTS) as CommandName[]
  const vector = fc.constantFrom(...replyVectors.cases.filter(({ unframed }) => !unframed))
  const edits = fc.array(fc.tuple(fc.nat(4000), u8), { maxLength: 3 })
  law(
    [vector, edits, fc.nat(4000), fc.constantFrom(...commands), fc.uint8Array({ maxLength: 60 })],
    ({ hex, json }, changes, cut, other, random) => {
      const payload = bytesOfHex(hex).slice(FRAME_HEADER_BYTES)
      for (const [place, byte] of changes) payload[place % payload.length] = byte
      const tries: [CommandName, Uint8Array][] = [
        [json.command, payload],
        [json.command, payload.subarray(0, cut % payload.length)],
        [other, payload],
        [other, random],
      ]
      for (const [command, bytes] of tries) {
        try {
          decodeReply(command, bytes, context)
        } catch (error) {
          if (!(error instanceof VacancyError) || error.code !== 'malformed_reply') throw error
        }
      }
    },
    2000,
  )
})

const SUCCESS = '0753554343455353'

test.each<[string, CommandName, string, string]>([
  ['no payload', 'SETPROP', '', 'it has no status'],
  ['a status of another length', 'SETPROP', '0653554343455353 0000', 'it has no status'],
  ['an unknown status', 'SETPROP', '07534c434345535300 00', 'its status is neither SUCCESS nor ERROR'],
  ['an unknown status of five letters', 'SETPROP', '054552524f53 0000', 'its status is neither SUCCESS nor ERROR'],
  ['no field count', 'SETPROP', `${SUCCESS} 00`, 'it has no status'],
  ['a field too many', 'SETPROP', `${SUCCESS} 0100 0100 02 01000000 01`, 'it has 1 fields too many'],
  ['a byte too many', 'SETPROP', `${SUCCESS} 0000 00`, 'bytes follow the last field'],
  ['a field too few', 'DECROOMAVL', `${SUCCESS} 0000`, 'a field is missing'],
  ['a wrong id', 'DECROOMAVL', `${SUCCESS} 0100 0200 02 01000000 01`, 'field 1 has id 2'],
  ['a wrong type', 'DECROOMAVL', `${SUCCESS} 0100 0100 03 01000000 01`, 'field 1 has type 3, not 2'],
  ['a wrong width', 'DECROOMAVL', `${SUCCESS} 0100 0100 02 02000000 0100`, 'field 1 has 2 bytes, not 1'],
  ['a field past the end', 'DECROOMAVL', `${SUCCESS} 0100 0100 02 ffffffff 01`, 'a field runs past its end'],
  ['a field header cut off', 'DECROOMAVL', `${SUCCESS} 0100 0100 02 010000`, 'a field runs past its end'],
  ['an error without a text', 'SETPROP', '054552524f52 0000', 'it is an error without a text'],
  ['an error of another type', 'SETPROP', '054552524f52 0100 0100 02 01000000 31', 'field 1 has type 2, not 1'],
  ['a text that is not UTF-8', 'PROPROOMLIST', `${SUCCESS} 0100 0100 01 02000000 c328`, 'a text is not valid UTF-8'],
  ['a frame for LOGIN', 'LOGIN', `${SUCCESS} 0000`, 'it is a frame, not bare text'],
  ['a short property id', 'SEARCHPROP', `${SUCCESS} 0100 0100 01 01000000 70`, 'field 1 has 1 bytes, not 16'],
  ['an index of 4 bytes', 'SETPROP', `${SUCCESS} 0100 ffff 03 04000000 01000000`, 'field 65535 has 4 bytes, not 8'],
  ['an index of type 2', 'SETPROP', `${SUCCESS} 0100 ffff 02 08000000 0100000000000000`, 'has type 2, not 3'],
  [
    'an extension before the last field',
    'SETPROP',
    `${SUCCESS} 0200 ffff 03 08000000 0100000000000000 0100 02 01000000 01`,
    'it has 2 fields too many',
  ],
  ['no number of days', 'SEARCHAVAIL', `${SUCCESS} 0100 0100 02 01000000 01`, 'field 1 has 1 bytes, not 2'],
])('a reply with %s is malformed', (_, command, hex, reason) => {
  expect(() => decodeReply(command, bytesOfHex(hex.replaceAll(' ', '')), context)).toThrow(
    expect.objectContaining({
      code: 'malformed_reply',
      fields: expect.objectContaining({ command, reason: expect.stringContaining(reason) }),
    }),
  )
})

const vectors = [...replyVectors.cases, ...extensionVectors.replies].filter(({ unframed }) => !unframed)

test('a reply that is cut at any byte is malformed, and so is a success with a byte more', () => {
  for (const { name, hex, json, baseYear = 2026, codecs: list = 'codecs8' } of vectors) {
    const payload = bytesOfHex(hex).subarray(FRAME_HEADER_BYTES)
    const its = { baseYear, codecs: createCodecList(replyVectors.codecLists[list] ?? []) }
    const isMalformed = (bytes: Uint8Array) => {
      try {
        decodeReply(json.command, bytes, its)
        return false
      } catch (error) {
        return (error as VacancyError).code === 'malformed_reply'
      }
    }
    for (let end = 0; end < payload.length; end++) {
      expect(isMalformed(payload.subarray(0, end)), `${name} cut at ${end}`).toBe(true)
    }
    if (json.error === undefined) expect(isMalformed(Uint8Array.of(...payload, 0)), name).toBe(true)
  }
})

const STAY_ID = '6f726465722df0310000000000000000'
const STAY_LINE = '0170 0172 323032362d31322d3234 01 01 00'

/** A reply to GETSTAY: state, deadline, total, index, lines, then more fields. */
function stayReply(state: string, lines: string, fields = 5, more = ''): string {
  const length = lines.replaceAll(' ', '').length / 2
  const u32 = `${length.toString(16).padStart(2, '0')}000000`
  return `${SUCCESS} ${fields.toString(16).padStart(2, '0')}00
    0100 02 01000000 ${state}
    0200 03 08000000 0000000000000000
    0300 03 08000000 6400000000000000
    0400 03 08000000 0900000000000000
    0500 0a ${u32} ${lines} ${more}`
}

/** A reply to LISTSTAYS with one stay and an empty cursor. */
function listReply(stay: string): string {
  const length = stay.replaceAll(/\s/g, '').length / 2
  return `${SUCCESS} 0200 0100 0a ${length.toString(16).padStart(2, '0')}000000 ${stay} 0200 01 00000000`
}

/** Id, state, deadline, index, time. */
const LISTED = `${STAY_ID} 02 0000000000000000 0900000000000000 0a00000000000000`

const LINE = { propertyId: 'p', roomType: 'r', arrival: '2026-12-24', nights: 1, rooms: 1 }
const DAY = { date: '2026-12-24', availability: 4, finalPrice: 100, rateFeatures: [] }
/** 2026-12-24 is year 0 of 2026, month 11, day 23: 0x0177. */
const DAYS = '0100 7701 04 64000000 00000000'

test.each<[string, CommandName, string, ReplyResult]>([
  [
    'a released stay',
    'GETSTAY',
    stayReply('03', STAY_LINE),
    { state: 'released', total: 100, index: 9, lines: [LINE] },
  ],
  [
    'a booked stay of two lines, one of them without packages',
    'GETSTAY',
    stayReply('02', STAY_LINE + STAY_LINE, 7, `0600 08 0d000000 ${DAYS} 0700 08 02000000 0000`),
    {
      state: 'booked',
      total: 100,
      index: 9,
      lines: [
        { ...LINE, days: [DAY] },
        { ...LINE, days: [] },
      ],
    },
  ],
  [
    'a void stay at the index of its write',
    'RELEASESTAY',
    stayReply('05', '', 6, 'ffff 03 08000000 0c00000000000000'),
    { state: 'void', total: 100, index: 9, lines: [], appliedIndex: 12 },
  ],
  [
    'a listed stay',
    'LISTSTAYS',
    listReply(`${LISTED} 03 6f7461 01 ${STAY_LINE}`),
    {
      stays: [{ stayId: 'order-1', state: 'booked', index: 9, timeMs: 10, source: 'ota', lines: [LINE] }],
      cursor: '',
    },
  ],
  [
    'a listed stay without source and lines',
    'LISTSTAYS',
    listReply(`${LISTED} 00 00`),
    { stays: [{ stayId: 'order-1', state: 'booked', index: 9, timeMs: 10, source: '', lines: [] }], cursor: '' },
  ],
])('%s is read from the bytes of its contract', (_, command, hex, result) => {
  expect(decodeReply(command, bytesOfHex(hex.replaceAll(/\s/g, '')), context)).toEqual({ ok: true, result })
})

test.each<[string, CommandName, string, string]>([
  ['state 0', 'GETSTAY', stayReply('00', ''), 'field 1 has an unknown state'],
  ['state 6', 'GETSTAY', stayReply('06', ''), 'field 1 has an unknown state'],
  ['half a line', 'GETSTAY', stayReply('03', '0170 01'), 'field 5 has lines that cannot be read'],
  ['a booked line without its days', 'GETSTAY', stayReply('02', STAY_LINE), 'a field is missing'],
  ['a held line without its days', 'GETSTAY', stayReply('01', STAY_LINE), 'a field is missing'],
  ['days of one byte', 'GETSTAY', stayReply('02', STAY_LINE, 6, '0600 08 01000000 00'), 'field 6 has no days'],
  [
    'days that are cut',
    'GETSTAY',
    stayReply('02', STAY_LINE, 6, `0600 08 0c000000 ${DAYS.slice(0, -2)}`),
    'field 6 has no days',
  ],
  [
    'another number of days than stated',
    'GETSTAY',
    stayReply('02', STAY_LINE, 6, `0600 08 0d000000 02${DAYS.slice(2)}`),
    'field 6 has different days',
  ],
  [
    'days of a released stay',
    'GETSTAY',
    stayReply('03', STAY_LINE, 6, `0600 08 0d000000 ${DAYS}`),
    '1 fields too many',
  ],
  ['a listed stay of a head alone', 'LISTSTAYS', listReply(`${LISTED} 00`), 'field 1 is not a stay'],
  ['a listed stay whose source takes its lines', 'LISTSTAYS', listReply(`${LISTED} 01 00`), 'field 1 is not a stay'],
  ['fewer lines than listed', 'LISTSTAYS', listReply(`${LISTED} 00 02 ${STAY_LINE}`), 'field 1 is not a stay'],
  ['more lines than listed', 'LISTSTAYS', listReply(`${LISTED} 00 00 ${STAY_LINE}`), 'field 1 is not a stay'],
  ['a listed state 0', 'LISTSTAYS', listReply(`${LISTED.replace(' 02 ', ' 00 ')} 00 00`), 'has an unknown state'],
  ['a source that is not UTF-8', 'LISTSTAYS', listReply(`${LISTED} 01 ff 00`), 'a text is not valid UTF-8'],
])('a stay with %s is malformed', (_, command, hex, reason) => {
  expect(() => decodeReply(command, bytesOfHex(hex.replaceAll(/\s/g, '')), context)).toThrow(
    expect.objectContaining({
      code: 'malformed_reply',
      fields: expect.objectContaining({ reason: expect.stringContaining(reason) }),
    }),
  )
})

test.each([
  ['4 bytes claimed and 7 sent', '04000000 03000000 343034', { ok: false, code: '404', message: '' }],
  ['3 bytes claimed and sent', '03000000 343034', { ok: false, code: '404', message: '' }],
  ['7 bytes claimed and sent', '07000000 3430343a20206f', { ok: false, code: '404', message: 'o' }],
])('the error of a router with %s has its code', (_, field, reply) => {
  const payload = bytesOfHex(`054552524f52 0100 0100 01 ${field}`.replaceAll(' ', ''))

  expect(decodeReply('PROPEXIST', payload, context)).toEqual(reply)
})

test.each([
  ['the old year', 2026, ['2026-12-31', '2027-01-01']],
  ['a year ago', 2025, ['2026-12-31', '2027-01-01']],
  ['the same date in two years', 2026, ['2026-12-31', '2027-12-31']],
  ['29 February', 2027, ['2028-02-28', '2028-02-29', '2028-03-01']],
])('nights are those of the request, and of the line of a stay, whatever the base year: %s', (_, baseYear, dates) => {
  const days = dates.map((date) => ({ date, availability: 1, finalPrice: 1, rateFeatures: [] }))
  const search = { numDays: days.length, properties: [{ propertyId: 'p', days }] }
  const nights = (parseDay(dates.at(-1) as string) as number) - (parseDay(dates[0] as string) as number) + 1
  const line = { propertyId: 'p', roomType: 'r', arrival: dates[0] as string, nights, rooms: 1, days }
  const stay = { state: 'booked' as const, total: 1, index: 1, lines: [line] }
  const written = { baseYear, codecs }
  const searched = encodeReply('SEARCHAVAIL', 1, search, written).subarray(FRAME_HEADER_BYTES)

  expect(decodeReply('SEARCHAVAIL', searched, { dates, codecs })).toEqual({ ok: true, result: search })
  if (nights > LIMITS.stayNightsMax) return
  const booked = encodeReply('BOOKSTAY', 1, stay, written).subarray(FRAME_HEADER_BYTES)
  expect(decodeReply('BOOKSTAY', booked, { codecs })).toEqual({ ok: true, result: stay })
})

test('nights are those of the request, whatever the request and the reply before', () => {
  const dates = ['']
  const packed = (date: string, baseYear: number) => {
    const days = [{ date, availability: 1, finalPrice: 1, rateFeatures: [] }]
    const search = { numDays: 1, properties: [{ propertyId: 'p', days }] }
    return encodeReply('SEARCHAVAIL', 1, search, { baseYear, codecs }).subarray(FRAME_HEADER_BYTES)
  }

  for (const [date, baseYear] of [
    ['2026-03-01', 2026],
    ['2027-03-01', 2027],
    ['2027-03-01', 2026],
    ['2027-03-02', 2026],
  ] as const) {
    dates[0] = date
    const reply = decodeReply('SEARCHAVAIL', packed(date, baseYear), { dates, codecs })

    expect(reply.ok && reply.result.properties[0]?.days[0]?.date).toBe(date)
  }
})

test('a night that was not requested makes a reply malformed, not another date', () => {
  const day = { date: '2026-03-01', availability: 1, finalPrice: 1, rateFeatures: [] }
  const payload = payloadOf('SEARCHAVAIL', { numDays: 1, properties: [{ propertyId: 'p', days: [day] }] })

  expect(() => decodeReply('SEARCHAVAIL', payload, { dates: ['2026-03-02'], codecs })).toThrow('not requested')
})

test('a date that does not exist makes a reply malformed', () => {
  const day = { date: '2026-03-01', availability: 1, finalPrice: 1, rateFeatures: [] }
  const payload = payloadOf('SEARCHAVAIL', { numDays: 1, properties: [{ propertyId: 'p', days: [day] }] })
  // 2026-02-30: month − 1 is 1, day − 1 is 29.
  payload[payload.length - 11] = (1 << 5) | 29

  expect(() => decodeReply('SEARCHAVAIL', payload, context)).toThrow('a date that does not exist')
})

test('a feature that the codec list does not name makes a reply malformed, not a wrong offer', () => {
  const payload = payloadOf('GETPROPROOMDAY', {
    propertyId: 'p',
    date: '2026-03-01',
    availability: 1,
    finalPrice: 1,
    rateFeatures: ['feature_24'],
  })

  for (const other of [createCodecList(['wifi']), undefined]) {
    expect(() => decodeReply('GETPROPROOMDAY', payload, { baseYear: 2026, codecs: other })).toThrow('codec list')
  }
})

test('a packed id in the reply to GETPROPROOMDAY is accepted as well', () => {
  const payload = bytesOfHex(
    '0753554343455353 0500 0100 01 10000000 73315f736567f0315f70310000000000 0200 01 0a000000 323032362d31322d3234 0300 02 01000000 0a 0400 03 04000000 c7000000 0500 03 04000000 00000000'.replaceAll(
      ' ',
      '',
    ),
  )

  expect(decodeReply('GETPROPROOMDAY', payload, context)).toMatchObject({
    ok: true,
    result: { propertyId: 's1_seg1_p1' },
  })
})

test('an error text is cut at its first colon', () => {
  const decode = (text: string) => decodeReply('SETPROP', encodeError(1, text).subarray(FRAME_HEADER_BYTES), context)

  expect(decode('NOT_FOUND: property not found')).toEqual({
    ok: false,
    code: 'NOT_FOUND',
    message: 'property not found',
  })
  expect(decode('429')).toEqual({ ok: false, code: '429', message: '' })
  expect(decode('NOT_FOUND: a:"b"\\')).toEqual({ ok: false, code: 'NOT_FOUND', message: 'a??b??' })
})

test('a search reply with as many properties as fit keeps the ids of its fields', () => {
  const propertyIds = Array.from({ length: 65_535 }, (_, i) => `p${i}`)
  const full = decodeReply('SEARCHPROP', payloadOf('SEARCHPROP', { propertyIds }), context)
  const reply = { propertyIds: propertyIds.slice(0, 65_279), explain: explained }
  const explainedReply = decodeReply('SEARCHPROP', payloadOf('SEARCHPROP', reply), context)

  expect(full.ok && full.result.propertyIds).toHaveLength(65_535)
  expect(explainedReply).toEqual({ ok: true, result: reply })
})

const explained = { rowsExamined: 7, waitingMicros: 1, searchingMicros: 2, appliedIndex: 3 }

// Frames of pages, by hand from docs/design/protocol.md#pages-of-a-search.
const P = '70 0000000000 f0 000000000000000000'
const Q = P.replace('70', '71')
const PAGE = 'f8ff 0a 14000000 9c01000000000000 0700000000000000 01 02 4151'
const UNCOUNTED = 'f8ff 0a 12000000 ffffffffffffffff 0700000000000000 00 00'
const VALUES = '2c01000000000000 57000000 a87fe902 801cdcff 0000'
const NAMES = '0100 06 646f75626c65'
const [POSITION, TOTAL_AND_ROOM] = [
  { latitude: 48.857, longitude: -2.352 },
  { total: 300, roomType: 'double' },
]

test.each<[string, CommandName, string, object]>([
  [
    'days, page and values',
    'SEARCHAVAIL',
    `0500 0100 02 02000000 0100 0200 01 10000000 ${P} 0300 08 0d000000 ${DAYS} ${PAGE} f9ff 0a 20000000 0f ${VALUES} ${NAMES}`,
    {
      numDays: 1,
      properties: [{ propertyId: 'p', days: [DAY], ...TOTAL_AND_ROOM, distanceMetres: 87, ...POSITION }],
      page: { matches: 412, index: 7, more: true, cursor: 'AQ' },
    },
  ],
  [
    'a compact list, a page without a number',
    'SEARCHAVAIL',
    `0300 0100 02 02000000 0300 0200 0a 42000000 09 02000000 ${P} 2c01000000000000 0000 ${Q} 9001000000000000 0000 ${NAMES} ${UNCOUNTED}`,
    {
      numDays: 3,
      properties: [
        { propertyId: 'p', days: [], total: 300, roomType: 'double' },
        { propertyId: 'q', days: [], total: 400, roomType: 'double' },
      ],
      page: { index: 7, more: false, cursor: '' },
    },
  ],
  [
    'an empty compact list',
    'SEARCHAVAIL',
    `0300 0100 02 02000000 0300 0200 0a 05000000 01 00000000 ${UNCOUNTED}`,
    { numDays: 3, properties: [], page: { index: 7, more: false, cursor: '' } },
  ],
  [
    'distances of properties, and statistics',
    'SEARCHPROP',
    `0400 0100 01 10000000 ${P} ${PAGE} f9ff 0a 05000000 02 57000000 ffff 09 14000000 07000000 01000000 02000000 0300000000000000`,
    {
      propertyIds: ['p'],
      values: [{ distanceMetres: 87 }],
      page: { matches: 412, index: 7, more: true, cursor: 'AQ' },
      explain: { rowsExamined: 7, waitingMicros: 1, searchingMicros: 2, appliedIndex: 3 },
    },
  ],
])('a search reply with %s', (_, command, hex, result) => {
  const payload = bytesOfHex(`${SUCCESS}${hex}`.replaceAll(' ', ''))

  expect(decodeReply(command, payload, { ...context, dates: ['2026-12-24'] })).toEqual({ ok: true, result })
})

test.each([
  ['a page that is cut', 'f8ff 0a 11000000 ffffffffffffffff 0700000000000000 00', 'field 65528 is not a page'],
  ['a cursor of another length', 'f8ff 0a 12000000 ffffffffffffffff 0700000000000000 00 01', 'is not a page'],
  ['values of another number of hits', 'f9ff 0a 05000000 02 57000000', 'has other values than it says'],
  ['values without a mask', 'f9ff 0a 00000000', 'field 65529 has no mask'],
])('a search reply with %s is malformed', (_, trailer, reason) => {
  const payload = bytesOfHex(`${SUCCESS} 0200 0100 02 02000000 0100 ${trailer}`.replaceAll(' ', ''))

  expect(() => decodeReply('SEARCHAVAIL', payload, { ...context, dates: ['2026-12-24'] })).toThrow(reason)
})
