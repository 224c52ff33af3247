import fc from 'fast-check'
import { expect, test } from 'vitest'
import { law } from '../testing/law.ts'
import { bytesOfHex, hexOf, requestVectors } from '../testing/vectors.ts'
import { fitErrorText } from '../text.ts'
import { COMMAND_LIST, COMMANDS } from './commands.ts'
import {
  addBytes,
  addF64,
  addText,
  addU8,
  addU16,
  addU32,
  addU64,
  beginFrame,
  createFieldWriter,
  createRequestScan,
  finishFrame,
  LINES_PLACE,
  readU64,
  scanRequest,
} from './fields.ts'
import { decodeStayLines, encodeStayLine } from './stay.ts'

type Field = { id: number; type: number; data: readonly number[]; claimed?: number }

function payloadOf(name: string, fields: readonly Field[], count = fields.length): Uint8Array {
  const bytes = [name.length, ...new TextEncoder().encode(name), count & 0xff, count >>> 8]
  for (const { id, type, data, claimed = data.length } of fields) {
    bytes.push(id & 0xff, id >>> 8, type)
    for (let shift = 0; shift < 32; shift += 8) bytes.push((claimed >>> shift) & 0xff)
    bytes.push(...data)
  }
  return Uint8Array.from(bytes)
}

function faultOf(payload: Uint8Array): string {
  return scanRequest(createRequestScan(), payload, 0, payload.length)
}

const text = (id: number, value = 'x'): Field => ({ id, type: 1, data: [...new TextEncoder().encode(value)] })
const lines = (n: number): Field => ({ id: 16 + n, type: 10, data: [1] })
const u8 = (id: number, value = 1): Field => ({ id, type: 2, data: [value] })

test('fields are found in any order, at their index in the table', () => {
  const payload = payloadOf('SETROOMAVL', [u8(4, 20), text(3, '2026-12-24'), text(1, 'p'), text(2, 'suite')])
  const padded = Uint8Array.of(9, 9, 9, ...payload, 9)
  const scan = createRequestScan()

  expect(scanRequest(scan, padded, 3, 3 + payload.length)).toBe('')
  expect(scan.command).toBe(COMMANDS.SETROOMAVL)
  const found = scan.command.fields.map((_, place) => {
    const start = scan.start[place] as number
    return start < 0 ? undefined : [...padded.subarray(start, start + (scan.length[place] as number))]
  })
  expect(found.slice(0, 4)).toEqual([[112], [...new TextEncoder().encode('suite')], expect.any(Array), [20]])
  expect(found.slice(4)).toEqual([undefined, undefined, undefined, undefined, undefined])
})

test('a scan keeps nothing of the previous request', () => {
  const scan = createRequestScan()
  const full = payloadOf('SEARCHPROP', [text(1), text(2), u8(4)])
  const bare = payloadOf('SEARCHPROP', [text(1)])

  expect(scanRequest(scan, full, 0, full.length)).toBe('')
  expect(scanRequest(scan, bare, 0, bare.length)).toBe('')
  expect(scan.start[1]).toBe(-1)
  expect(scan.start[3]).toBe(-1)
})

test('the lines of a stay are at their own places, and those of the previous request are gone', () => {
  const scan = createRequestScan()
  const line = (n: number): Field => ({ id: 16 + n, type: 10, data: [n] })
  const three = payloadOf('BOOKSTAY', [text(1, 's'), line(2), line(0), line(1)])
  const all = payloadOf('BOOKSTAY', [text(1, 's'), ...Array.from({ length: 16 }, (_, n) => line(n))])
  const found = (payload: Uint8Array) => {
    expect(scanRequest(scan, payload, 0, payload.length)).toBe('')
    return [...scan.start.subarray(LINES_PLACE)].filter((at) => at >= 0).map((at) => payload[at])
  }

  expect(found(all)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
  expect(found(three)).toEqual([0, 1, 2])
  expect(scan.length[LINES_PLACE + 2]).toBe(1)
})

test('zero-length optional text is absent, but a required field and cleared features are present', () => {
  const scan = createRequestScan()
  const search = payloadOf('SEARCHPROP', [text(1, ''), text(2, ''), text(6, '')])
  const package_ = payloadOf('SETROOMPKG', [text(1), text(2), text(3), text(6, '')])

  expect(scanRequest(scan, search, 0, search.length)).toBe('')
  expect([...scan.start.subarray(0, 6)]).toEqual([expect.any(Number), -1, -1, -1, -1, -1])
  expect(scan.start[0]).toBeGreaterThan(0)
  expect(scan.length[0]).toBe(0)
  expect(scanRequest(scan, package_, 0, package_.length)).toBe('')
  expect(scan.start[5]).toBe(package_.length)
  expect(scan.length[5]).toBe(0)
})

test.each([
  ['an empty payload', new Uint8Array(), 'PARSE_ERROR: the payload is empty'],
  ['no name', Uint8Array.of(0, 0, 0), 'PARSE_ERROR: the command name is empty'],
  ['half a name', Uint8Array.of(9, 65), 'PARSE_ERROR: the command name runs past the end of the payload'],
  ['no field count', Uint8Array.of(5, 76, 79, 71, 73, 78, 0), 'PARSE_ERROR: the payload ends before its field count'],
  ['an unknown command', payloadOf('FLUSHALL', []), 'VALIDATION_ERROR: unknown command FLUSHALL'],
  ['a hostile name', payloadOf('A":\\\n', []), 'VALIDATION_ERROR: unknown command A????'],
  ['a field header cut off', payloadOf('PROPEXIST', [text(1)], 2), 'PARSE_ERROR: field 2 runs past the end'],
  ['data cut off', payloadOf('PROPEXIST', [{ ...text(1), claimed: 2 }]), 'PARSE_ERROR: field 1 runs past the end'],
  [
    'a length of 4 GiB',
    payloadOf('PROPEXIST', [{ ...text(1), claimed: 0xffff_ffff }]),
    'PARSE_ERROR: field 1 runs past the end of the payload',
  ],
  [
    '256 fields, of which one is there',
    payloadOf('PROPEXIST', [text(1)], 256),
    'PARSE_ERROR: field 2 runs past the end',
  ],
  [
    'a name of the whole payload',
    Uint8Array.of(5, 76, 79, 71, 73, 78),
    'PARSE_ERROR: the payload ends before its field',
  ],
  [
    'lines with a gap',
    payloadOf('BOOKSTAY', [text(1), lines(0), lines(2)]),
    'VALIDATION_ERROR: lines must follow each',
  ],
  ['lines without the first', payloadOf('BOOKSTAY', [text(1), lines(1)]), 'VALIDATION_ERROR: lines must follow each'],
  ['no lines', payloadOf('BOOKSTAY', [text(1)]), 'VALIDATION_ERROR: lines 0 is required'],
  ['line 1 twice', payloadOf('BOOKSTAY', [text(1), lines(1), lines(1)]), 'VALIDATION_ERROR: field lines 1 is repeated'],
  ['text as line 15', payloadOf('BOOKSTAY', [text(31)]), 'VALIDATION_ERROR: field lines 15 must have type 10, got 1'],
  ['a line beyond the last id', payloadOf('BOOKSTAY', [lines(16)]), 'VALIDATION_ERROR: BOOKSTAY has no field 32'],
  ['bytes left over', payloadOf('PROPROOMEXIST', [text(1), text(2)], 1), 'PARSE_ERROR: 8 bytes follow the last field'],
  ['an unknown field', payloadOf('PROPEXIST', [text(1), text(77)]), 'VALIDATION_ERROR: PROPEXIST has no field 77'],
  ['an unknown extension', payloadOf('PROPEXIST', [text(0x8010)]), 'VALIDATION_ERROR: PROPEXIST has no field 32784'],
  ['an id between', payloadOf('PROPEXIST', [text(0x7fff)]), 'VALIDATION_ERROR: PROPEXIST has no field 32767'],
  ['an id beyond', payloadOf('PROPEXIST', [text(0x8040)]), 'VALIDATION_ERROR: PROPEXIST has no field 32832'],
  ['a field twice', payloadOf('PROPEXIST', [text(1), text(1)]), 'VALIDATION_ERROR: field propertyId is repeated'],
  ['an empty field twice', payloadOf('SEARCHPROP', [text(2, ''), text(2)]), 'VALIDATION_ERROR: field area is repeated'],
  ['a wrong type', payloadOf('PROPEXIST', [u8(1)]), 'VALIDATION_ERROR: field propertyId must have type 1, got 2'],
  [
    'a wrong width',
    payloadOf('SEARCHPROP', [text(1), { id: 9, type: 3, data: [1, 0, 0, 0] }]),
    'VALIDATION_ERROR: field limit must have 8 bytes, got 4',
  ],
  ['a u8 of no bytes', payloadOf('SEARCHPROP', [{ id: 4, type: 2, data: [] }]), 'field stars must have 1 bytes, got 0'],
  ['a missing field', payloadOf('SEARCHPROP', []), 'VALIDATION_ERROR: segment is required'],
  [
    'a search without room type, or what replaces it',
    payloadOf('SEARCHAVAIL', [text(1), text(11)]),
    'VALIDATION_ERROR: roomType is required',
  ],
  [
    'a field beyond the first 32 twice',
    payloadOf('SEARCHAVAIL', [text(1), text(2), text(11), u8(0x8022), u8(0x8022)]),
    'VALIDATION_ERROR: field linearizable is repeated',
  ],
  ['two missing fields', payloadOf('PROPROOMEXIST', []), 'VALIDATION_ERROR: propertyId is required'],
  ['the later one missing', payloadOf('PROPROOMEXIST', [text(1)]), 'VALIDATION_ERROR: roomType is required'],
])('%s is refused', (_, payload, message) => {
  expect(faultOf(payload)).toContain(message)
})

test.each([u8(0x800b), { id: 0x800c, type: 10, data: [1, 65] }])(
  'field $id replaces the room type of a search',
  (field) => {
    expect(faultOf(payloadOf('SEARCHAVAIL', [text(1), text(11), field, u8(0x8022)]))).toBe('')
  },
)

test('structure is checked before required fields, and the name before both', () => {
  expect(faultOf(payloadOf('NOPE', [{ ...text(1), claimed: 9 }]))).toMatch(/unknown command/)
  expect(faultOf(payloadOf('PROPROOMEXIST', [{ ...text(2), claimed: 9 }]))).toMatch(/^PARSE_ERROR/)
  expect(faultOf(payloadOf('PROPROOMEXIST', [text(77)]))).toMatch(/no field 77/)
})

test('the scan never throws, and its errors follow the rules for error texts', () => {
  const name = fc.constantFrom(...COMMAND_LIST.map((spec) => spec.name), 'X')
  const field = fc.record({
    id: fc.oneof(fc.integer({ min: 0, max: 18 }), fc.integer({ min: 0x8000, max: 0x8030 }), fc.nat(0xffff)),
    type: fc.integer({ min: 0, max: 4 }),
    data: fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 9 }),
  })
  const built = fc.tuple(name, fc.array(field, { maxLength: 6 })).map(([n, fields]) => payloadOf(n, fields))
  const damaged = fc
    .tuple(fc.constantFrom(...requestVectors.cases), fc.nat(500), fc.integer({ min: 0, max: 255 }))
    .map(([{ hex }, place, byte]) => {
      const bytes = bytesOfHex(hex).slice(9)
      if (bytes.length > 0) bytes[place % bytes.length] = byte
      return bytes
    })
  const scan = createRequestScan()
  law(
    [fc.oneof(fc.uint8Array({ maxLength: 80 }), built, damaged)],
    (payload) => {
      const text = scanRequest(scan, payload, 0, payload.length)

      if (text !== '') return expect(text).toBe(fitErrorText(text))
      for (const [place, { required, unless }] of scan.command.fields.entries()) {
        const start = scan.start[place] as number
        if (required && unless.length === 0) expect(start).toBeGreaterThan(0)
        if (start >= 0) expect(start + (scan.length[place] as number)).toBeLessThanOrEqual(payload.length)
      }
    },
    3000,
  )
})

test('the fields of a frame are written byte for byte', () => {
  const writer = createFieldWriter()
  beginFrame(writer, 0x01020304, 'NAME')
  addText(writer, 1, 9, 'é')
  addU8(writer, 2, 255)
  addU16(writer, 3, 0x0102)
  addU32(writer, 4, 0x01020304)
  addU64(writer, 5, 0x0102030405060708n)
  addU64(writer, 6, 7)
  addF64(writer, 0xffff, -2)
  addBytes(writer, 0x0100, 10, Uint8Array.of(9, 8))

  expect(hexOf(finishFrame(writer))).toBe(
    [
      // Magic, correlation id, payload length, name, 8 fields: 1 + 4 + 2 bytes, 8 headers of 7, 35 of data.
      'ff 04030201 62000000 04 4e414d45 0800',
      '0100 09 02000000 c3a9',
      '0200 02 01000000 ff',
      '0300 02 02000000 0201',
      '0400 03 04000000 04030201',
      '0500 03 08000000 0807060504030201',
      '0600 03 08000000 0700000000000000',
      'ffff 03 08000000 00000000000000c0',
      '0001 0a 02000000 0908',
    ]
      .join('')
      .replaceAll(' ', ''),
  )
})

test('a u64 is a number while that is exact', () => {
  const read = (hex: string) => {
    const bytes = bytesOfHex(hex)
    return readU64(new DataView(bytes.buffer), 0)
  }

  expect(read('ffffffffffff1f00')).toBe(9_007_199_254_740_991)
  expect(read('0000000000002000')).toBe(9_007_199_254_740_992n)
  expect(read('ffffffffffffffff')).toBe(18_446_744_073_709_551_615n)
})

const LINE = { propertyId: 'ab', roomType: 'c', arrival: '2026-12-24', nights: 3, rooms: 2 }
/** The same as a record: 02 ab, 01 c, the ten digits and hyphens of the date, nights, rooms, no flags. */
const RECORD = '026162' + '0163' + '323032362d31322d3234' + '03' + '02' + '00'
function decode(hex: string) {
  const bytes = bytesOfHex(hex)
  return decodeStayLines(bytes, 0, bytes.length)
}

/** A record of names of this many bytes, all of them `x`. */
function recordOf(idBytes: number, roomTypeBytes: number): string {
  const name = (length: number) => length.toString(16).padStart(2, '0') + '78'.repeat(length)
  return `${name(idBytes)}${name(roomTypeBytes)}323032362d31322d3234010100`
}

test('a line is written and read byte for byte', () => {
  expect(hexOf(encodeStayLine(LINE, 0))).toBe(RECORD)
  expect(decode(RECORD)).toEqual([LINE])
  expect(hexOf(encodeStayLine({ ...LINE, uncounted: true }, 0))).toBe(`${RECORD.slice(0, -2)}01`)
  expect(decode(`${RECORD.slice(0, -2)}01`)).toEqual([{ ...LINE, uncounted: true }])
  expect(hexOf(encodeStayLine({ ...LINE, uncounted: false }, 0))).toBe(RECORD)
})

test('flags of later versions do not make a line uncounted', () => {
  expect(decode(`${RECORD.slice(0, -2)}02`)).toEqual([LINE])
  expect(decode(`${RECORD.slice(0, -2)}03`)).toEqual([{ ...LINE, uncounted: true }])
})

test('sixteen lines of the longest names are read, and one line more is not', () => {
  const longest = recordOf(255, 255)
  const sixteen = longest.repeat(16)

  expect(decode(sixteen)).toHaveLength(16)
  expect(decode(sixteen)?.[15]).toEqual({
    propertyId: 'x'.repeat(255),
    roomType: 'x'.repeat(255),
    arrival: '2026-12-24',
    nights: 1,
    rooms: 1,
  })
  expect(decode(sixteen + recordOf(0, 0))).toBeUndefined()
})

test.each([
  ['a date that does not exist', RECORD.replace('323032362d31322d3234', '323032362d30322d3330')],
  ['a date with another separator', RECORD.replace('2d31322d', '2f31322f')],
  ['an id that is not UTF-8', RECORD.replace('026162', '02c328')],
  ['a room type that is not UTF-8', RECORD.replace('0163', '01ff')],
  ['a first byte of the next line', `${RECORD}00`],
])('a line with %s cannot be read', (_, hex) => {
  expect(decode(hex)).toBeUndefined()
  expect(decode(RECORD + hex)).toBeUndefined()
})

test.each<[string, unknown, string]>([
  ['no object', 'ab', 'line 7 must be an object'],
  ['null', null, 'line 7 must be an object'],
  ['an unknown field', { ...LINE, price: 1 }, 'line 7 has no field price'],
  ['a number as id', { ...LINE, propertyId: 5 }, 'line 7 propertyId must be text of at most 255 bytes'],
  ['an id of 256 bytes', { ...LINE, propertyId: 'é'.repeat(128) }, 'line 7 propertyId must be text of at most 255'],
  ['a room type of 256 bytes', { ...LINE, roomType: 'r'.repeat(256) }, 'line 7 roomType must be text of at most 255'],
  ['no room type', { ...LINE, roomType: undefined }, 'line 7 roomType must be text of at most 255 bytes'],
  ['no arrival', { ...LINE, arrival: undefined }, 'line 7 has no arrival date'],
  ['an arrival that does not exist', { ...LINE, arrival: '2026-02-29' }, 'line 7 has no arrival date'],
  ['256 nights', { ...LINE, nights: 256 }, 'line 7 nights must be a whole number, 0 to 255'],
  ['half a night', { ...LINE, nights: 0.5 }, 'line 7 nights must be a whole number, 0 to 255'],
  ['nights as text', { ...LINE, nights: '3' }, 'line 7 nights must be a whole number, 0 to 255'],
  ['fewer than no rooms', { ...LINE, rooms: -1 }, 'line 7 rooms must be a whole number, 0 to 255'],
  ['a number for uncounted', { ...LINE, uncounted: 1 }, 'line 7 uncounted must be true or false'],
])('%s is refused with the number of the line', (_, value, message) => {
  expect(() => encodeStayLine(value, 7)).toThrow(
    expect.objectContaining({ code: 'validation_error', message: expect.stringContaining(message) }),
  )
})
