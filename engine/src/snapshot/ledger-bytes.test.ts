/** The bytes of a ledger, written field by field: what is read from them, and which of them are refused. */

import { LIMITS } from '@vacancy/shared'
import { STAY_STATE } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { createFieldWriter, putBytes, putTexts, putU8, putU32, putU64, written } from './columns.ts'
import { decodeLedger } from './ledger.ts'

type Line = {
  id: number
  generation: number
  roomType: number
  arrival: number
  nights: number
  rooms: number
  flags: number
}
type Stay = { id: number; state: number; moments: number[]; source: string; lines: Line[] }
type Night = { id: number; roomType: number; day: number; held: number; debt: number }
type Ledger = {
  roomTypes: string[]
  settled: Stay[]
  held: Stay[]
  nights: Night[]
  generations: { id: number; generation: number }[]
}

const idOf = (n: number) => Uint8Array.from({ length: 16 }, (_, i) => n + i)
const MOMENTS = [2 ** 40 + 1, 2, 3, 2 ** 41 + 4, 5, 6]
const line = (changes: Partial<Line> = {}): Line => ({
  ...{ id: 40, generation: 7, roomType: 1, arrival: 20_000, nights: 3, rooms: 2, flags: 1 },
  ...changes,
})
const stay = (id: number, state: number, changes: Partial<Stay> = {}): Stay => ({
  ...{ id, state, moments: MOMENTS, source: 'ota', lines: [line()] },
  ...changes,
})

const LEDGER: Ledger = {
  roomTypes: ['double', 'suite'],
  settled: [stay(1, STAY_STATE.booked), stay(2, STAY_STATE.void, { source: '', lines: [] })],
  held: [stay(3, STAY_STATE.held, { lines: [line({ roomType: 0 }), line({ id: 60 })] })],
  nights: [{ id: 40, roomType: 1, day: 20_001, held: 2, debt: 1 }],
  generations: [{ id: 40, generation: 8 }],
}

function bytesOf({ roomTypes, settled, held, nights, generations }: Ledger): Uint8Array {
  const writer = createFieldWriter()
  putTexts(writer, roomTypes)
  for (const stays of [settled, held]) {
    putU32(writer, stays.length)
    for (const { id, state, moments, source, lines } of stays) {
      putBytes(writer, idOf(id))
      putU8(writer, state)
      for (const value of moments) putU64(writer, value)
      putU8(writer, source.length)
      putBytes(writer, new TextEncoder().encode(source))
      putU8(writer, lines.length)
      for (const { id, generation, roomType, arrival, nights, rooms, flags } of lines) {
        putBytes(writer, idOf(id))
        for (const value of [generation, roomType, arrival]) putU32(writer, value)
        for (const value of [nights, rooms, flags]) putU8(writer, value)
      }
    }
  }
  putU32(writer, nights.length)
  for (const { id, roomType, day, held, debt } of nights) {
    putBytes(writer, idOf(id))
    putU32(writer, roomType)
    putU32(writer, day)
    putU8(writer, held)
    putU8(writer, debt)
  }
  putU32(writer, generations.length)
  for (const { id, generation } of generations) {
    putBytes(writer, idOf(id))
    putU32(writer, generation)
  }
  return written(writer)
}

const decode = (changes: Partial<Ledger>) => decodeLedger(bytesOf({ ...LEDGER, ...changes }), 'file')

test('no bytes are an empty ledger', () => {
  expect(decodeLedger(new Uint8Array(0), 'file')).toEqual({ roomTypes: [], stays: [], nights: [], generations: [] })
})

test('each field is read, settled stays before held ones', () => {
  const record = {
    ...{ deadlineMs: 2 ** 40 + 1, total: 2, index: 3, timeMs: 2 ** 41 + 4, bookedIndex: 5, heldSinceMs: 6 },
  }
  const read = (of: Line) => ({ ...of, id: idOf(of.id) })
  const readStay = ({ id, state, source, lines }: Stay) => ({
    ...{ id: idOf(id), record: { ...record, state }, source: new TextEncoder().encode(source), lines: lines.map(read) },
  })

  expect(decode({})).toEqual({
    roomTypes: LEDGER.roomTypes,
    stays: [...LEDGER.settled, ...LEDGER.held].map(readStay),
    nights: LEDGER.nights.map((night) => ({ ...night, id: idOf(night.id) })),
    generations: LEDGER.generations.map(({ id, generation }) => ({ id: idOf(id), generation })),
  })
})

test('a ledger may have a part of its lists only', () => {
  expect(decode({ settled: [], held: [], nights: [] })).toMatchObject({ stays: [], nights: [] })
  expect(decode({ generations: [] }).generations).toEqual([])
})

test.each([
  [STAY_STATE.held, 'held', true],
  [STAY_STATE.held, 'settled', false],
  [STAY_STATE.booked, 'held', false],
  [STAY_STATE.booked, 'settled', true],
  [STAY_STATE.void, 'settled', true],
  [STAY_STATE.held - 1, 'settled', false],
  [STAY_STATE.void + 1, 'settled', false],
])('a stay of state %i in the list of %s stays is valid: %s', (state, list, isValid) => {
  const read = () => decode({ settled: [], held: [], [list]: [stay(9, state)] })

  if (isValid) expect(read().stays).toHaveLength(1)
  else expect(read).toThrow(`a stay has state ${state}`)
})

const sourceOf = (bytes: number) => stay(9, STAY_STATE.booked, { source: 'x'.repeat(bytes) })
const linesOf = (count: number) => stay(9, STAY_STATE.booked, { lines: Array.from({ length: count }, () => line()) })

test.each<[string, Partial<Ledger>, string | undefined]>([
  ['a source of 32 bytes', { settled: [sourceOf(LIMITS.sourceBytesMax)] }, undefined],
  ['a source of 33 bytes', { settled: [sourceOf(LIMITS.sourceBytesMax + 1)] }, 'a source has 33 bytes'],
  ['16 lines', { settled: [linesOf(LIMITS.stayLinesMax)] }, undefined],
  ['17 lines', { settled: [linesOf(LIMITS.stayLinesMax + 1)] }, 'a stay has 17 lines'],
  ['a stay in both lists', { settled: [stay(3, STAY_STATE.released)] }, 'a stay occurs twice'],
  [
    'a line of an unknown room type',
    { settled: [stay(9, STAY_STATE.booked, { lines: [line({ roomType: 2 })] })] },
    'room type 2 of 2',
  ],
  [
    'a night of an unknown room type',
    { nights: [{ id: 1, roomType: 5, day: 1, held: 1, debt: 0 }] },
    'room type 5 of 2',
  ],
])('%s: read, or refused with a reason', (_, changes, reason) => {
  if (reason === undefined) expect(decode(changes).stays).toHaveLength(2)
  else
    expect(() => decode(changes)).toThrow(
      expect.objectContaining({ code: 'corrupt_data', message: expect.stringContaining(reason) }),
    )
})

test('a ledger that ends early or late is damage, and the error names file and block', () => {
  const bytes = bytesOf(LEDGER)
  for (let end = 1; end < bytes.length; end++) {
    expect(() => decodeLedger(bytes.slice(0, end), 'file')).toThrow(expect.objectContaining({ code: 'corrupt_data' }))
  }
  expect(() => decodeLedger(Uint8Array.from([...bytes, 0]), 'seed.snapshot')).toThrow(
    /seed\.snapshot \(stays\).*1 bytes are left over/,
  )
})

const shortest = (id: number) => stay(id, STAY_STATE.void, { source: '', lines: [] })
const EMPTY: Ledger = { roomTypes: ['double', 'suite'], settled: [], held: [], nights: [], generations: [] }
const times = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n))

/** Of each list so many records that one byte more each would not fit the end of the block. */
test.each<[string, Partial<Ledger>, number, number, number]>([
  ['stays', { settled: times(13, shortest) }, 13, 67, 12],
  ['nights', { nights: times(5, (id) => ({ id, roomType: 0, day: 1, held: 1, debt: 0 })) }, 5, 26, 4],
  ['generations', { generations: times(2, (id) => ({ id, generation: 1 })) }, 2, 20, 0],
])('a list of %s fits the bytes that are left, or its count is refused', (_, list, count, bytesEach, after) => {
  const bytes = bytesOf({ ...EMPTY, ...list })
  expect(() => decodeLedger(bytes, 'file')).not.toThrow()
  const short = bytes.slice(0, bytes.length - after - 1)

  expect(() => decodeLedger(short, 'file')).toThrow(
    `a count of ${count} does not fit the ${count * bytesEach - 1} bytes that are left`,
  )
})

test('lines of a stay fit the bytes that are left, or are missing', () => {
  const bytes = bytesOf({ ...EMPTY, settled: [stay(1, STAY_STATE.booked, { lines: times(13, () => line()) })] })
  expect(decodeLedger(bytes, 'file').stays[0]?.lines).toHaveLength(13)

  expect(() => decodeLedger(bytes.slice(0, bytes.length - 13), 'file')).toThrow('lines of a stay are missing')
})
