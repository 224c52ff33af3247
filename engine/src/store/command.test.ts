/**
 * The bytes of logged commands, and how outcomes are reported. Both are permanent: logs are read by later versions, and
 * voters of different versions apply the same entries.
 */

import { expect, test } from 'vitest'
import {
  beginCommand,
  COMMAND_HEADER_BYTES,
  createCommandReader,
  createCommandWriter,
  decodeBulkLoad,
  encodeBulkLoad,
  encodeSetTime,
  KIND,
  kindOfCommand,
  OUTCOME,
  openCommand,
  outcomeText,
  REQUEST_KEY_BYTES,
  readBytes,
  readF64,
  readName,
  readU8,
  readU32,
  stampCommand,
  timeOfCommand,
  timeSetBy,
  writeBytes,
  writeF64,
  writeName,
  writeU8,
  writeU32,
} from './command.ts'

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const counted = (length: number, from = 1) => Uint8Array.from({ length }, (_, i) => from + i)
const TIME = Date.UTC(2026, 0, 15, 12)
const DAY = 20_468

/** A command with a value of each type, after `before` bytes. */
function written(before: number, key?: Uint8Array) {
  const writer = createCommandWriter(4)
  writeBytes(writer, new Uint8Array(before), 0, before)
  beginCommand(writer, KIND.increaseAvailability, key, 1)
  writeU8(writer, 200)
  writeU32(writer, 0xfedcba98)
  writeF64(writer, -1.5)
  writeName(writer, counted(9), 2, 5)
  writeBytes(writer, counted(9), 7, 9)
  stampCommand(writer.view, before, TIME, DAY)
  return writer
}

test.each([
  ['without a request key', undefined, '040000de86c19b010000f44f000000c898badcfe000000000000f8bf030304050809'],
  [
    'with a request key',
    counted(REQUEST_KEY_BYTES + 2, 0x10),
    '040000de86c19b010000f44f0000011112131415161718191a1b1c1d1e1f202122232425262728c898badcfe000000000000f8bf030304050809',
  ],
])('a command %s', (_, key, bytes) => {
  const writer = written(3, key)
  expect(hexOf(writer.bytes.subarray(3, writer.at))).toBe(bytes)

  const reader = createCommandReader()
  openCommand(reader, writer.bytes, 3, writer.at)
  const { kind, timeMs, day } = reader
  expect({ kind, timeMs, day }).toEqual({ kind: KIND.increaseAvailability, timeMs: TIME, day: DAY })
  expect(reader.key).toBe(key ? 3 + COMMAND_HEADER_BYTES : -1)
  expect([readU8(reader), readU32(reader), readF64(reader)]).toEqual([200, 0xfedcba98, -1.5])
  const name = readName(reader)
  expect([...writer.bytes.subarray(name, reader.at)]).toEqual([3, 4, 5])
  const rest = readBytes(reader, 2)
  expect([...writer.bytes.subarray(rest, reader.at)]).toEqual([8, 9])
  expect(reader.at).toBe(writer.at)
  for (const read of [readU8, readName]) expect(() => read(reader)).toThrow('a logged command is whole')
  expect(kindOfCommand(writer.view, 3)).toBe(KIND.increaseAvailability)
  expect(timeOfCommand(writer.view, 3)).toBe(TIME)
})

test('a command that is cut is refused', () => {
  const writer = written(0, counted(REQUEST_KEY_BYTES + 1))
  const reader = createCommandReader()
  const end = COMMAND_HEADER_BYTES + REQUEST_KEY_BYTES
  openCommand(reader, writer.bytes, 0, end)
  expect(() => openCommand(reader, writer.bytes, 0, end - 1)).toThrow('a logged command is whole')
  expect(() => openCommand(reader, writer.bytes, 0, COMMAND_HEADER_BYTES - 1)).toThrow('a logged command has a header')
  openCommand(reader, writer.bytes, 0, end + 2)
  expect(() => readBytes(reader, 3)).toThrow('a logged command is whole')
  // Its first byte is the length of a name that is longer than what follows.
  openCommand(reader, writer.bytes, 0, end + 2)
  expect(() => readName(reader)).toThrow('a logged command is whole')
})

test('a name has at most 255 bytes', () => {
  const writer = createCommandWriter()
  writeName(writer, new Uint8Array(256), 1, 256)
  expect([writer.at, writer.bytes[0]]).toEqual([256, 255])
  expect(() => writeName(writer, new Uint8Array(256), 0, 256)).toThrow('names are checked before')
})

test('bodies of bulk loads and of set-time', () => {
  const digest = counted(32)
  const writer = createCommandWriter()
  beginCommand(writer, KIND.bulkLoad)
  const body = encodeBulkLoad(digest, DAY)
  writeBytes(writer, body, 0, body.length)

  expect(hexOf(body)).toBe(`${hexOf(digest)}f44f0000`)
  expect(decodeBulkLoad(writer.bytes, 0)).toEqual({ digest, day: DAY })
  expect(() => encodeBulkLoad(counted(31), DAY)).toThrow('a content digest has 32 bytes')
  const at = writer.at
  beginCommand(writer, KIND.setTime)
  const time = encodeSetTime(TIME)
  writeBytes(writer, time, 0, time.length)
  expect(hexOf(time)).toMatchInlineSnapshot(`"0000e06d18bc7942"`)
  expect(timeSetBy(writer.view, at)).toBe(TIME)
  expect(() => decodeBulkLoad(writer.bytes, at)).toThrow('this is a bulk load')
})

test('the numbers of kinds and outcomes, and the texts of outcomes', () => {
  expect(KIND).toMatchInlineSnapshot(`
    {
      "bookStay": 42,
      "bulkLoad": 37,
      "confirmStay": 44,
      "decreaseAvailability": 5,
      "deleteDay": 8,
      "deletePackage": 10,
      "deleteProperty": 6,
      "deleteRoom": 9,
      "deleteSegment": 7,
      "digestCheck": 35,
      "dropBefore": 32,
      "expireHolds": 46,
      "featureLevel": 38,
      "genesis": 34,
      "holdStay": 43,
      "increaseAvailability": 4,
      "memoryBudget": 40,
      "orderRows": 36,
      "releaseStay": 45,
      "setAvailability": 3,
      "setAvailabilityAsOf": 49,
      "setPackage": 2,
      "setPackageAsOf": 48,
      "setProperty": 1,
      "setTime": 39,
      "setting": 47,
      "settings": 33,
      "swapRows": 41,
    }
  `)
  const rows = Object.entries(OUTCOME).map(([name, code]) => `${code} ${name} ${outcomeText(code, 7)}`)
  expect(rows.join('\n')).toMatchInlineSnapshot(`
    "0 done SUCCESS
    1 unknownProperty NOT_FOUND: property not found
    2 unknownRoomType NOT_FOUND: room type not found
    3 noPackage NOT_FOUND: package not found
    4 unknownSegment NOT_FOUND: segment not found
    5 overflow OVERFLOW: availability would pass 255, it is 7
    6 underflow UNDERFLOW: not enough rooms left, there are 7
    7 tooManyRoomTypes VALIDATION_ERROR: a property has at most 256 room types
    8 outsideWindow VALIDATION_ERROR: the date lies outside the window of today to one year ahead
    9 keyReused VALIDATION_ERROR: this request key was used for another command
    10 tooOld 408
    11 sessionExpired 408
    12 refused 503
    13 unknownStay NOT_FOUND: stay not found
    14 unknownReplaced NOT_FOUND: stay to replace not found
    15 soldOut SOLD_OUT
    16 priceChanged PRICE_CHANGED
    17 expired EXPIRED
    18 conflict CONFLICT
    19 updateTooOld TOO_OLD
    20 overflowHeld OVERFLOW: availability would pass 255 with the rooms on hold, 7 are left
    21 unknownIndex UNKNOWN_INDEX"
  `)
  for (const code of [-1, rows.length]) expect(() => outcomeText(code, 0)).toThrow('outcomes are numbered')
})
