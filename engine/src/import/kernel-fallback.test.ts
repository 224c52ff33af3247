/** The fallback kernel over one memory: what its calls store, refuse and read back. kernel.test.ts reads whole files with it. */

import { createCodecList, LIMITS, packPropertyId } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { nameHash, roomHash, rowKey } from '../store/digest.ts'
import { createPackageParser, parsePackage, readRecord } from './csv.ts'
import { createFallback, highOf, lowOf, putPackage, wordAt } from './kernel-fallback.ts'
import {
  BLOCK_BYTES,
  CHUNK_BYTES,
  CONTEXT,
  finishHash,
  HEADER,
  hashId,
  type ImportKernel,
  PAGE_BYTES,
  ROOM,
  ROOM_TEXT_AT,
  ROW,
  STOP,
} from './layout.ts'
import { beginPass, createMemory, createStaging, forEachRecord, type Staging } from './staging.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const FIRST_DAY = 20_454 // 2026-01-01
/** Not a multiple of 16. */
const DAYS = 75
/** Nights of the window, rounded up to whole chunks. */
const SPAN = 80
const MEMORY_BYTES = 64 * PAGE_BYTES
const IDS = ['p', 'q', 'hotel_123', '550e8400-e29b-41d4-a716-446655440000', 'last']
const codecs = createCodecList(['a', 'b', 'c'])
const encoder = new TextEncoder()

type Machine = {
  readonly staging: Staging
  readonly kernel: ImportKernel
  readonly context: number
  readonly u8: Uint8Array
  readonly u32: Uint32Array
  readonly f64: Float64Array
}

/** Four slot bits for five properties: some share a slot with others. */
function indexOf(ids: readonly string[]) {
  const packed = new Uint8Array(ids.length * 16)
  const slots = new Uint32Array(16)
  for (const [ordinal, id] of ids.entries()) {
    const bytes = packPropertyId(id) as Uint8Array
    packed.set(bytes, ordinal * 16)
    const [w0, w1, w2, w3] = new Uint32Array(bytes.slice().buffer) as unknown as [number, number, number, number]
    let slot = hashId(w0, w1, w2, w3) >>> 28
    while (slots[slot] !== 0) slot = (slot + 1) & 15
    slots[slot] = ordinal + 1
  }
  return { ids: packed, slots, shift: 28 }
}

const parser = createPackageParser(codecs)

function createMachine(
  pass: { explain?: boolean; strictWindow?: boolean } = {},
  ids: readonly string[] = IDS,
  threads = 1,
): Machine {
  const memory = createMemory(MEMORY_BYTES, 0)
  const options = {
    memory,
    index: indexOf(ids),
    codecs,
    firstDay: FIRST_DAY,
    days: DAYS,
    threads,
    blockBytes: 65_536,
  }
  const staging = createStaging(options)
  beginPass(staging, { explain: false, strictWindow: false, threads, ...pass })
  const kernel = createFallback(memory, parser)
  const { buffer } = memory
  const views = { u8: new Uint8Array(buffer), u32: new Uint32Array(buffer), f64: new Float64Array(buffer) }
  return { staging, kernel, context: staging.contexts[0] as number, ...views }
}

let machine: Machine
beforeEach(() => {
  machine = createMachine()
})

const cell = (offset: number) => machine.u32[(machine.context + offset) >>> 2]
const setCell = (offset: number, value: number) => {
  machine.u32[(machine.context + offset) >>> 2] = value
}
const counter = (offset: number) => machine.f64[(machine.context + offset) >>> 3]

function add(id: string, room: string, night: number, lo = 1, hi = 2, line = 0, context = machine.context) {
  const { u8, u32, kernel } = machine
  u8.set(packPropertyId(id) as Uint8Array, context + CONTEXT.id)
  const name = encoder.encode(room)
  u8.set(name, context + CONTEXT.room)
  u32[(context + CONTEXT.roomLength) >>> 2] = name.length
  return kernel.add(context, night, lo, hi, line)
}

function scan(text: string) {
  const { u8, staging, kernel, context } = machine
  const start = staging.buffers[0] as number
  const bytes = encoder.encode(text)
  u8.set(bytes, start)
  const stop = kernel.scan(context, start, start + bytes.length)
  return { stop, at: cell(CONTEXT.cursor) - start, lines: counter(CONTEXT.lines) }
}

/** Rows by `property|room`. */
function rows(): Map<string, number> {
  const { staging, u8, u32 } = machine
  const found = new Map<string, number>()
  forEachRecord(staging.memory, HEADER.rowSlots, (row) => {
    const room = u32[(row >>> 2) + ROW.room]
    const text = u8.slice(room + ROOM_TEXT_AT, room + ROOM_TEXT_AT + u32[(room >>> 2) + ROOM.length])
    found.set(`${u32[(row >>> 2) + ROW.property]}|${new TextDecoder().decode(text)}`, row)
  })
  return found
}

function wordOf(row: number, night: number): [number, number] | undefined {
  const at = wordAt(machine.u32, row, night) >>> 2
  return at === 0 ? undefined : [machine.u32[at], machine.u32[at + 1]]
}

test('the memory grows to its limit, and a second thread needs no more', () => {
  expect(machine.u8.length).toBe(MEMORY_BYTES)
  createFallback(machine.staging.memory, parser)
  expect(machine.staging.memory.buffer.byteLength).toBe(MEMORY_BYTES)
})

test('a memory that cannot grow to its limit is an error', () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true })
  new Uint32Array(memory.buffer)[HEADER.limit] = 2 * PAGE_BYTES

  expect(() => createFallback(memory, parser)).toThrow(RangeError)
})

test('a memory that another thread grows at the same time is used', () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true })
  new Uint32Array(memory.buffer)[HEADER.limit] = 2 * PAGE_BYTES
  const raced = {
    get buffer() {
      return memory.buffer
    },
    grow: (pages: number) => {
      memory.grow(pages)
      return memory.grow(pages)
    },
  }

  expect(() => createFallback(raced as unknown as WebAssembly.Memory, parser)).not.toThrow()
  expect(memory.buffer.byteLength).toBe(2 * PAGE_BYTES)
})

describe('adding packages', () => {
  test('packages are read back at their property, room type and night', () => {
    const random = createRandom(SEED)
    const model = new Map<string, [number, number]>()
    const rooms = [
      'r',
      'room1',
      'a room type of more than sixteen bytes',
      'a room type of more than sixteen bytez',
      'x'.repeat(255),
    ]
    for (let n = 0; n < 900; n++) {
      const property = random.below(IDS.length)
      const room = rooms[random.below(rooms.length)] as string
      const night = random.below(DAYS)
      const [lo, hi] = [random.next(), random.next()]
      if ((lo | hi) === 0) continue
      const key = `${property}|${room}|${night}`
      const stop = add(IDS[property] as string, room, night, lo, hi)

      expect(stop, `VACANCY_SEED=${SEED}, package ${n}`).toBe(model.has(key) ? STOP.duplicate : STOP.done)
      if (!model.has(key)) model.set(key, [lo, hi])
    }

    const byKey = rows()
    const found = new Map<string, [number, number]>()
    for (const [key, row] of byKey) {
      for (let night = 0; night < DAYS; night++) {
        const word = wordOf(row, night)
        if (word && (word[0] | word[1]) !== 0) found.set(`${key}|${night}`, word)
      }
    }
    expect(found, `VACANCY_SEED=${SEED}`).toEqual(model)
    expect(counter(CONTEXT.accepted)).toBe(model.size)
    expect(machine.u32[HEADER.rows]).toBe(byKey.size)
    expect(machine.u32[HEADER.rooms]).toBe(rooms.length)
    for (const property of IDS.keys()) {
      const own = [...byKey.keys()].filter((key) => key.startsWith(`${property}|`)).length
      expect(machine.u32[(machine.u32[HEADER.propertyRooms] >>> 2) + property]).toBe(own)
    }
  })

  test.each([
    [-1, STOP.outside],
    [0, STOP.done],
    [DAYS - 1, STOP.done],
    [DAYS, STOP.outside],
  ])('night %i of a window of 75 nights: %i', (night, stop) => {
    expect(add('p', 'r', night)).toBe(stop)
    expect(counter(CONTEXT.accepted)).toBe(stop === STOP.done ? 1 : 0)
  })

  test('an unknown property is reported before a date outside the window', () => {
    expect(add('unknown', 'r', 0)).toBe(STOP.unknownProperty)
    expect(add('unknown', 'r', -1)).toBe(STOP.unknownProperty)
    expect(rows().size).toBe(0)
  })

  test('ids that differ in one of their four words are different properties', () => {
    const uuid = '550e8400-e29b-41d4-a716-446655440000'
    const others = [
      '550e8401-e29b-41d4-a716-446655440000',
      '550e8400-e29b-41d5-a716-446655440000',
      '550e8400-e29b-41d4-a717-446655440000',
      '550e8400-e29b-41d4-a716-446655440001',
    ]
    for (const other of others) expect(add(other, 'r', 0)).toBe(STOP.unknownProperty)
    machine = createMachine({}, [uuid, ...others])
    for (const id of [uuid, ...others]) expect(add(id, 'r', 0)).toBe(STOP.done)
    expect([...rows().keys()].sort()).toEqual(['0|r', '1|r', '2|r', '3|r', '4|r'])
  })

  test('a row begins with its first night, and earlier nights are behind its last ones', () => {
    add('p', 'r', 30)
    const row = rows().get('0|r') as number
    const chunksOf = () => Array.from({ length: SPAN / 16 }, (_, i) => machine.u32[(row >>> 2) + ROW.chunks + i] !== 0)

    expect(machine.u32[(row >>> 2) + ROW.base]).toBe(30)
    expect(wordAt(machine.u32, row, 46)).toBe(0)
    expect(wordAt(machine.u32, row, 45)).toBe(wordAt(machine.u32, row, 30) + 15 * 8)
    expect(chunksOf()).toEqual([true, false, false, false, false])
    add('p', 'r', 46)
    expect(chunksOf()).toEqual([true, true, false, false, false])
    // Night 29 is place 79, the last one of the last chunk.
    add('p', 'r', 29)
    expect(chunksOf()).toEqual([true, true, false, false, true])
    expect(wordAt(machine.u32, row, 29)).toBe(machine.u32[(row >>> 2) + ROW.chunks + 4] + 15 * 8)
    expect([29, 30, 46].map((night) => wordOf(row, night))).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ])
  })

  test('an explaining pass keeps line numbers, and a repeat names the first line', () => {
    machine = createMachine({ explain: true })
    const first = 5 * 2 ** 32 + 7

    expect(add('p', 'r', 3, 1, 2, first)).toBe(STOP.done)
    expect(add('p', 'r', 3, 1, 2, first + 9)).toBe(STOP.duplicate)
    expect(counter(CONTEXT.firstLine)).toBe(first)
    expect(wordOf(rows().get('0|r') as number, 3)).toEqual([7, 5])
    expect(counter(CONTEXT.accepted)).toBe(1)
  })

  test('a word of which only one half is set is a package', () => {
    expect(add('p', 'r', 0, 0, 5)).toBe(STOP.done)
    expect(add('p', 'r', 0, 1, 1)).toBe(STOP.duplicate)
    expect(add('p', 'r', 1, 5, 0)).toBe(STOP.done)
    expect(add('p', 'r', 1, 1, 1)).toBe(STOP.duplicate)
  })

  test('a property has at most 256 room types, and those it has stay usable', () => {
    for (let i = 0; i < LIMITS.roomTypesPerPropertyMax; i++) expect(add('p', `r${i}`, 0)).toBe(STOP.done)

    expect(add('p', 'one more', 0)).toBe(STOP.tooManyRooms)
    expect(add('p', 'r255', 1)).toBe(STOP.done)
    expect(add('q', 'one more', 0)).toBe(STOP.done)
  })

  test.each([
    ['rows', HEADER.rows, HEADER.rowShift],
    ['room types', HEADER.rooms, HEADER.roomShift],
  ])('a new row waits for larger tables when half of the slots of %s are taken', (_, count, shift) => {
    const half = 2 ** (31 - machine.u32[shift])
    expect(add('p', 'r', 0)).toBe(STOP.done)
    machine.u32[count] = half - 1
    expect(add('p', 'r2', 0)).toBe(STOP.done)
    machine.u32[count] = half
    expect(add('p', 'r3', 0)).toBe(STOP.crowded)
    expect(add('p', 'r2', 1)).toBe(STOP.done)
    expect(rows().size).toBe(2)
  })
})

describe('memory', () => {
  test('a thread takes one block after the other until the limit', () => {
    const { u32 } = machine
    const top = u32[HEADER.top]
    expect(add('p', 'r', 0)).toBe(STOP.done)
    expect(u32[HEADER.top]).toBe(top + BLOCK_BYTES)
    expect(cell(CONTEXT.blockEnd)).toBe(top + BLOCK_BYTES)
    // A room type of one byte takes 64, a row of five chunks 64, a chunk 128.
    expect(cell(CONTEXT.blockNext)).toBe(top + 64 + 64 + CHUNK_BYTES)

    setCell(CONTEXT.blockNext, cell(CONTEXT.blockEnd) - CHUNK_BYTES)
    expect(add('p', 'r', 16)).toBe(STOP.done)
    expect(u32[HEADER.top]).toBe(top + BLOCK_BYTES)
    expect(add('p', 'r', 32)).toBe(STOP.done)
    expect(u32[HEADER.top]).toBe(top + 2 * BLOCK_BYTES)
  })

  test.each([
    [0, STOP.memoryFull],
    [BLOCK_BYTES - 1, STOP.memoryFull],
    [BLOCK_BYTES, STOP.done],
  ])('with %i bytes below the limit the result is %i', (free, stop) => {
    machine.u32[HEADER.limit] = machine.u32[HEADER.top] + free

    expect(add('p', 'r', 0)).toBe(stop)
    expect(machine.u32[HEADER.top]).toBeLessThanOrEqual(machine.u32[HEADER.limit])
  })

  test.each([
    ['a row', 64],
    ['a chunk', 128],
  ])('memory that ends before %s is reported', (_, used) => {
    machine.u32[HEADER.limit] = machine.u32[HEADER.top]
    setCell(CONTEXT.blockNext, 1_000_000)
    setCell(CONTEXT.blockEnd, 1_000_000 + used)

    expect(add('p', 'r', 0)).toBe(STOP.memoryFull)
    expect(counter(CONTEXT.accepted)).toBe(0)
  })

  test('memory that another thread made useless is used for the next row and chunk', () => {
    const [row, chunk] = [2_000_000 & ~63, 2_100_000 & ~63]
    setCell(CONTEXT.spareRow, row)
    setCell(CONTEXT.spareChunk, chunk)

    expect(add('p', 'r', 3)).toBe(STOP.done)
    expect(rows().get('0|r')).toBe(row)
    expect(wordAt(machine.u32, row, 3)).toBe(chunk)
    expect([cell(CONTEXT.spareRow), cell(CONTEXT.spareChunk)]).toEqual([0, 0])
    add('p', 'r2', 3)
    expect(rows().get('0|r2')).not.toBe(row)
  })

  test.each([
    [32, 64],
    [33, 128],
    [96, 128],
    [97, 192],
  ])('the text of a room type of %i bytes is stored whole in %i bytes', (length, bytes) => {
    const name = 'n'.repeat(length)
    const top = machine.u32[HEADER.top]
    add('p', name, 0)

    expect(cell(CONTEXT.blockNext) - top).toBe(bytes + 64 + CHUNK_BYTES)
    expect([...rows().keys()]).toEqual([`0|${name}`])
  })
})

describe('scanning lines', () => {
  test('plain and empty lines are read to the end', () => {
    const text = 'p,r,2026-01-01,4,100,a|c\n\nq,r,2026-01-02,0,4294967294,\r\n'

    expect(scan(text)).toEqual({ stop: STOP.done, at: text.length, lines: 3 })
    expect(wordOf(rows().get('0|r') as number, 0)).toEqual([4 | (0b101 << 8), ~100 >>> 0])
    expect(wordOf(rows().get('1|r') as number, 1)).toEqual([0, 1])
    expect([counter(CONTEXT.accepted), counter(CONTEXT.skipped)]).toEqual([2, 0])
  })

  test.each([
    ['an invalid cell', 'p,r,2026-01-02,256,100,a\n'],
    ['an unknown property', 'unknown,r,2026-01-02,1,100,a\n'],
    ['a quote that stays open', '"p,r,2026-01-02,1,100,a\n'],
    ['a line end inside quotes', 'p,"r\nr",2026-01-02,1,100,a\n'],
    ['a line without its end', 'p,r,2026-01-02,1,100,a'],
    ['too few cells', 'p,r\n'],
  ])('%s is left to the slow path, at its line', (_, line) => {
    const good = 'p,r,2026-01-01,4,100,a\n'

    expect(scan(good + line)).toEqual({ stop: STOP.odd, at: good.length, lines: 1 })
    expect(counter(CONTEXT.accepted)).toBe(1)
  })

  test('a repeat stops at its line', () => {
    const good = 'p,r,2026-01-01,4,100,a\n'

    expect(scan(good + good)).toEqual({ stop: STOP.duplicate, at: good.length, lines: 1 })
  })

  test('dates outside the window are counted, or left to the slow path when they are errors', () => {
    const text = 'p,r,2025-12-31,4,100,a\np,r,2026-03-17,4,100,a\n'

    expect(scan(text)).toEqual({ stop: STOP.done, at: text.length, lines: 2 })
    expect([counter(CONTEXT.accepted), counter(CONTEXT.skipped)]).toEqual([0, 2])
    machine = createMachine({ strictWindow: true })
    expect(scan(text)).toEqual({ stop: STOP.odd, at: 0, lines: 0 })
    expect(counter(CONTEXT.skipped)).toBe(0)
  })

  test('the line number is what an explaining pass stores', () => {
    machine = createMachine({ explain: true })
    machine.f64[(machine.context + CONTEXT.lines) >>> 3] = 10
    scan('p,r,2026-01-01,4,100,a\np,r,2026-01-02,4,100,a\n')

    expect([0, 1].map((night) => wordOf(rows().get('0|r') as number, night))).toEqual([
      [10, 0],
      [11, 0],
    ])
  })

  test('a parsed package is put where add reads it, with the halves of its word', () => {
    const line = encoder.encode('q,room 7,2026-01-01,255,7,b\n')
    readRecord(parser.cells, line, 0, line.length, true)
    expect(parsePackage(parser)).toBeUndefined()
    const { u8, u32, context } = machine

    putPackage(u8, u32, context, parser)

    expect(u8.slice(context + CONTEXT.id, context + CONTEXT.id + 16)).toEqual(packPropertyId('q'))
    expect(cell(CONTEXT.roomLength)).toBe(6)
    expect(u8.slice(context + CONTEXT.room, context + CONTEXT.room + 6)).toEqual(encoder.encode('room 7'))
    expect([lowOf(parser), highOf(parser)]).toEqual([255 | (0b10 << 8), 0xfffffff8])
  })
})

describe('reading back', () => {
  const LIST = 3_000_000
  const RESULT = 3_100_000 & ~63
  const TARGET = 3_200_000 & ~63

  function fill(): { list: number[]; packages: [string, number][] } {
    const random = createRandom(SEED)
    const packages: [string, number][] = []
    for (const [property, id] of IDS.entries()) {
      const start = random.below(DAYS)
      for (let n = 0; n < 40; n++) {
        const night = n === 0 ? start : random.below(DAYS)
        if (add(id, 'r', night, random.below(2) === 0 ? 0 : n + 1, random.below(2) === 0 ? n + 1 : 0) === STOP.done) {
          packages.push([`${property}|r`, night])
        }
      }
    }
    const byKey = rows()
    const list = IDS.map((_, property) => byKey.get(`${property}|r`) as number)
    machine.u32.set(list, LIST >>> 2)
    return { list, packages }
  }

  test('a census counts packages, nights and the digest of its rows', () => {
    const { list } = fill()
    const room = machine.u32[((list[0] as number) >>> 2) + ROW.room] >>> 2
    machine.u32[room + ROOM.nameHash0] = nameHash(0, encoder.encode('r'), 0, 1)
    machine.u32[room + ROOM.nameHash1] = nameHash(1, encoder.encode('r'), 0, 1)
    machine.u8.fill(0xff, RESULT, RESULT + 96)

    machine.kernel.census(LIST + 4, 3, RESULT)

    const counted = list.slice(1, 4)
    const isPackage = (row: number, night: number) => (wordOf(row, night) ?? [0, 0]).some((half) => half !== 0)
    const nights = Array.from({ length: DAYS }, (_, night) => night)
    const result = machine.u32.slice(RESULT >>> 2, (RESULT >>> 2) + 20)
    const where = `VACANCY_SEED=${SEED}`
    expect(result[0], where).toBe(counted.flatMap((row) => nights.filter((night) => isPackage(row, night))).length)
    for (const lane of [0, 1] as const) {
      const hash = nameHash(lane, encoder.encode('r'), 0, 1)
      const sum = counted.reduce((all, row) => all + roomHash(lane, rowKey(lane, machine.u8, row, hash)), 0)
      expect(result[1 + lane], where).toBe(sum % 2 ** 32)
    }
    const bits = Array.from({ length: 384 }, (_, n) => (((result[4 + (n >>> 5)] as number) >>> (n & 31)) & 1) === 1)
    expect(bits, where).toEqual(bits.map((_, n) => n < DAYS && counted.some((row) => isPackage(row, n))))
    // Nothing beyond the result is touched.
    expect(machine.u8[RESULT + 80]).toBe(0xff)
  })

  test('wanted nights are gathered into planes, row by row, with zeros where no package is', () => {
    const { list } = fill()
    const stride = 128
    for (const [first, nights] of [
      [0, 0xffff],
      [5, 0b1010_0000_0000_0110],
      [70, 0b11111],
      [76, 0b1111_0000],
    ] as const) {
      machine.u8.fill(0xff, TARGET, TARGET + 16 * stride)

      machine.kernel.gather(machine.context, LIST + 4, 3, first, nights, TARGET, stride)

      let plane = 0
      for (let bit = 0; bit < 16; bit++) {
        if (((nights >>> bit) & 1) === 0) continue
        const words = list.slice(1, 4).flatMap((row) => wordOf(row, (first + bit) % SPAN) ?? [0, 0])
        const at = (TARGET + plane * stride) >>> 2
        expect([...machine.u32.slice(at, at + 6)], `VACANCY_SEED=${SEED}, ${first}, ${bit}`).toEqual(words)
        expect(machine.u32[at + 6]).toBe(0xffffffff)
        plane++
      }
      expect(machine.u32[(TARGET + plane * stride) >>> 2]).toBe(plane === 16 ? 0 : 0xffffffff)
    }
  })
})

test.each(['r', 'exactly sixteen!', 'a room type of more than sixteen bytes'])(
  'slots of a room type and its row carry tags of their hashes: %s',
  (room) => {
    add('p', room, 0)
    const { u32 } = machine
    const slotOf = (table: number, record: number) => {
      const at = u32[table] >>> 2
      for (let slot = 0; ; slot++) if (u32[at + slot * 2] === record) return { slot, tag: u32[at + slot * 2 + 1] }
    }
    const row = rows().get(`0|${room}`) as number
    const record = u32[(row >>> 2) + ROW.room] as number
    const words = new Uint32Array(12)
    new Uint8Array(words.buffer).set(encoder.encode(room))
    let hash = room.length
    for (let i = 0; i < room.length / 4; i += 4) {
      hash = finishHash(hash + hashId(...(words.slice(i, i + 4) as unknown as [number, number, number, number])))
    }

    expect(u32[(record >>> 2) + ROOM.hash]).toBe(hash)
    expect(slotOf(HEADER.roomSlots, record)).toEqual({ slot: hash >>> u32[HEADER.roomShift], tag: (hash | 1) >>> 0 })
    const rowHash = u32[(row >>> 2) + ROW.hash]
    expect(slotOf(HEADER.rowSlots, row)).toEqual({ slot: rowHash >>> u32[HEADER.rowShift], tag: (rowHash | 1) >>> 0 })
  },
)

test('remembering features has no effect', () => {
  const before = machine.u8.slice(0, machine.staging.base)

  machine.kernel.remember(machine.context, machine.staging.buffers[0] as number, 3, 5)

  expect(Buffer.compare(machine.u8.slice(0, machine.staging.base), before)).toBe(0)
})

describe('two threads', () => {
  afterEach(() => vi.restoreAllMocks())

  /** Both threads have a block with space, so that an `add` writes its room type, its row and its chunk only. */
  function createPair(): { other: number } {
    machine = createMachine({}, IDS, 2)
    const other = machine.staging.contexts[1] as number
    expect(add('last', 'first', 0)).toBe(STOP.done)
    expect(add('last', 'second', 0, 1, 2, 0, other)).toBe(STOP.done)
    return { other }
  }

  /** Calls `act` just before the given write to memory that both threads share. */
  function before(write: number, act: () => void): void {
    const { compareExchange } = Atomics
    let writes = 0
    vi.spyOn(Atomics, 'compareExchange').mockImplementation(((...values: Parameters<typeof compareExchange>) => {
      if (writes++ === write) act()
      return compareExchange(...values)
    }) as typeof compareExchange)
  }

  test('a room type that another thread has just created is used', () => {
    const { other } = createPair()
    before(0, () => expect(add('q', 'a room type of both', 0, 1, 2, 0, other)).toBe(STOP.done))

    expect(add('p', 'a room type of both', 0)).toBe(STOP.done)

    const roomOf = (key: string) => machine.u32[((rows().get(key) as number) >>> 2) + ROW.room]
    expect(roomOf('0|a room type of both')).toBe(roomOf('1|a room type of both'))
    expect([machine.u32[HEADER.rooms], machine.u32[HEADER.rows]]).toEqual([3, 4])
  })

  test('a row that another thread has just created is used, and the own one becomes the next row', () => {
    const { other } = createPair()
    before(1, () => expect(add('p', 'r', 1, 7, 8, 0, other)).toBe(STOP.done))

    expect(add('p', 'r', 2, 5, 6)).toBe(STOP.done)

    const row = rows().get('0|r') as number
    expect([1, 2].map((night) => wordOf(row, night))).toEqual([
      [7, 8],
      [5, 6],
    ])
    expect([machine.u32[HEADER.rooms], machine.u32[HEADER.rows]]).toEqual([3, 3])
    const spare = cell(CONTEXT.spareRow)
    expect(spare).not.toBe(0)
    expect(spare).not.toBe(row)
    expect(add('q', 'r', 0)).toBe(STOP.done)
    expect(rows().get('1|r')).toBe(spare)
  })

  test('a chunk that another thread has just created is used, and the own one becomes the next chunk', () => {
    const { other } = createPair()
    before(2, () => expect(add('p', 'r', 1, 7, 8, 0, other)).toBe(STOP.done))

    expect(add('p', 'r', 0, 5, 6)).toBe(STOP.done)

    const row = rows().get('0|r') as number
    expect([0, 1].map((night) => wordOf(row, night))).toEqual([
      [5, 6],
      [7, 8],
    ])
    const spare = cell(CONTEXT.spareChunk)
    expect(spare).not.toBe(0)
    expect(add('p', 'r', 16)).toBe(STOP.done)
    expect(wordAt(machine.u32, row, 16)).toBe(spare)
  })

  test('the room type that another thread stores at the limit counts', () => {
    const { other } = createPair()
    for (let i = 0; i < LIMITS.roomTypesPerPropertyMax - 1; i++) expect(add('p', `r${i}`, 0)).toBe(STOP.done)
    before(1, () => expect(add('p', 'last', 0, 1, 2, 0, other)).toBe(STOP.done))

    expect(add('p', 'one more', 0)).toBe(STOP.tooManyRooms)
    expect(counter(CONTEXT.accepted)).toBe(LIMITS.roomTypesPerPropertyMax)
  })

  test('a block that another thread has just taken is left to it', () => {
    machine = createMachine({}, IDS, 2)
    const other = machine.staging.contexts[1] as number
    const top = machine.u32[HEADER.top]
    before(0, () => expect(add('p', 'r', 0, 1, 2, 0, other)).toBe(STOP.done))

    expect(add('q', 'r', 0)).toBe(STOP.done)

    expect(machine.u32[(other + CONTEXT.blockEnd) >>> 2]).toBe(top + BLOCK_BYTES)
    expect(cell(CONTEXT.blockEnd)).toBe(top + 2 * BLOCK_BYTES)
    expect(machine.u32[HEADER.top]).toBe(top + 2 * BLOCK_BYTES)
  })
})
