import { expect, test } from 'vitest'
import { bytesOfHex, hexOf } from '../testing/vectors.ts'
import { decodeStayLines, encodeStayLine } from './stay.ts'

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
