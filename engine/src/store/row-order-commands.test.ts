/** The commands that sort a table: which tables, which pairs of rows, and what applying them changes. */

import { formatDay, packPropertyIdInto, parseDay } from '@vacancy/shared'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  applyCommandOf,
  ask,
  createNodeInMemory,
  type NodeInMemory,
  raiseFeatureLevel,
  restartEmpty,
} from '../testing/node-in-memory.ts'
import { KIND } from './command.ts'
import { findName, NAMES, type NameKind } from './dictionary.ts'
import { CONTROL, SEGMENT, TABLE } from './layout.ts'
import { type OrderCommand, orderTable, orderTables, sortedRows, type TableName, unorderedTables } from './row-order.ts'
import { segmentOf, tableOf } from './segment.ts'
import { field, setField } from './table-fields.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const TODAY = parseDay('2026-11-20') as number
const encoder = new TextEncoder()
const idOf = (n: number) => `p${String(n).padStart(4, '0')}`

// Neither the order of their first use nor that of a language: bytes decide.
const POINT = { latitude: 1, longitude: 1 }
const TYPES = ['villa', 'b&b', 'Villa', 'étage', 'villas']
const CATEGORIES = ['c9', 'c10', 'c']
const AREAS = ['z', 'old town', 'Z', 'y', 'old', '~', 'a']

type Property = { readonly type: string; readonly category: string; readonly stars: number; readonly area: string }
type Table = { readonly node: NodeInMemory; readonly properties: Map<string, Property> }

function setProperty({ node, properties }: Table, n: number, random: Random, segment = 's'): void {
  const pick = (list: readonly string[]) => list[random.below(list.length)] as string
  const property = { type: pick(TYPES), category: pick(CATEGORIES), stars: 1 + random.below(5), area: pick(AREAS) }
  const { type, ...rest } = property
  ask(node, 'SETPROP', { segment, propertyId: idOf(n), propertyType: type, ...rest, amenities: [], ...POINT })
  properties.set(idOf(n), property)
}

const setRooms = ({ node }: Table, n: number, night = 0) =>
  ask(node, 'SETROOMPKG', {
    ...{
      propertyId: idOf(n),
      roomType: 'r',
      date: formatDay(TODAY + night),
      availability: 1 + (n % 200),
      finalPrice: n,
    },
  })

let shared: NodeInMemory
beforeAll(() => {
  shared = createNodeInMemory(TODAY, 64 << 20)
})

/** Drawn properties, each with rooms in the first night; the first one has those of all nights. */
function build(count: number, nights: number, level = 1): Table {
  restartEmpty(shared, TODAY)
  if (level > 0) raiseFeatureLevel(shared, level)
  const table: Table = { node: shared, properties: new Map() }
  const random = createRandom(SEED)
  for (let n = 0; n < count; n++) {
    setProperty(table, n, random)
    setRooms(table, n)
  }
  for (let night = 1; night < nights; night++) setRooms(table, 0, night)
  return table
}

const nameOf = ({ node }: Table, kind: NameKind, text: string) => {
  const bytes = encoder.encode(text)
  return findName(node.store.memory, kind, bytes, 0, bytes.length)
}
const rooms = (table: Table): TableName => ({
  ...{ segment: nameOf(table, NAMES.segment, 's'), roomType: nameOf(table, NAMES.roomType, 'r') },
})
const all = (table: Table): TableName => ({ ...rooms(table), roomType: undefined })

function addressOf({ node }: Table, { segment, roomType }: TableName): number {
  const { memory } = node.store
  const address = segmentOf(memory, segment)
  return roomType === undefined ? field(memory, address + SEGMENT.propertyTable) : tableOf(memory, address, roomType)
}

const cellOf = (table: Table, name: TableName, cell: 'unordered' | 'liveRows' | 'rowCount') =>
  field(table.node.store.memory, addressOf(table, name) + TABLE[cell])
const setCell = (table: Table, name: TableName, cell: 'unordered', value: number) =>
  setField(table.node.store, addressOf(table, name) + TABLE[cell], value)

function packed(id: string): string {
  const bytes = Buffer.alloc(16)
  const text = encoder.encode(id)
  expect(packPropertyIdInto(text, 0, text.length, bytes, 0)).toBe(true)
  return bytes.toString('hex')
}

/** Ids of the live rows, packed, in row order. */
function idsOf(table: Table, name: TableName, order?: Uint32Array): string[] {
  const { u8, u32 } = table.node.store.memory
  const address = addressOf(table, name)
  const first = field(table.node.store.memory, address + TABLE.rowProperties) >>> 2
  const ids = field(table.node.store.memory, address + TABLE.rowIds)
  const rows = order ?? Array.from({ length: cellOf(table, name, 'rowCount') }, (_, row) => row)
  return [...rows]
    .filter((row) => u32[first + row] !== 0)
    .map((row) => Buffer.from(u8.subarray(ids + row * 16, ids + row * 16 + 16)).toString('hex'))
}

/** The same in the order of the documentation. */
function sortedIds({ properties }: Table, ids: readonly string[]): string[] {
  const byId = new Map([...properties].map(([id, property]) => [packed(id), property]))
  const bytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
  return ids.toSorted((a, b) => {
    const [x, y] = [byId.get(a) as Property, byId.get(b) as Property]
    return (
      bytes(x.type, y.type) ||
      bytes(x.category, y.category) ||
      x.stars - y.stars ||
      bytes(x.area, y.area) ||
      Buffer.compare(Buffer.from(a, 'hex'), Buffer.from(b, 'hex'))
    )
  })
}

/** Fewest swaps that bring `from` into the order of `to`: rows less cycles. */
function fewestSwaps(from: readonly string[], to: readonly string[]): number {
  const placeOf = new Map(to.map((id, place) => [id, place]))
  const seen = new Set<number>()
  let cycles = 0
  for (let start = 0; start < from.length; start++) {
    if (!seen.has(start)) cycles++
    for (let at = start; !seen.has(at); at = placeOf.get(from[at] as string) as number) seen.add(at)
  }
  return from.length - cycles
}

function decode({ body }: OrderCommand) {
  const bytes = Buffer.from(body)
  let at = 0
  const name = () => {
    const length = bytes.readUInt8(at)
    at += 1 + length
    return bytes.subarray(at - length, at).toString()
  }
  const segment = name()
  const isPropertyTable = bytes.readUInt8(at++)
  const roomType = name()
  if (at === bytes.length) return { segment, isPropertyTable, roomType, covered: -1, pairs: [] }
  const covered = bytes.readUInt32LE(at)
  const count = bytes.readUInt32LE(at + 4)
  at += 8
  const pairs = Array.from({ length: count }, (_, n) =>
    [0, 16].map((half) => bytes.subarray(at + n * 32 + half, at + n * 32 + half + 16).toString('hex')),
  )
  expect(bytes.length).toBe(at + count * 32)
  return { segment, isPropertyTable, roomType, covered, pairs }
}

/** Applies commands as they are proposed. @returns them, and the pauses before the first */
function sort(table: Table, name: TableName, between: (n: number) => void = () => undefined) {
  const commands: OrderCommand[] = []
  let pauses = 0
  for (const command of orderTable(table.node.store.memory, name)) {
    if (command === undefined) {
      pauses++
      continue
    }
    commands.push(command)
    applyCommandOf(table.node, command.kind, command.body)
    between(commands.length)
  }
  return { commands, pauses }
}

function encodeSwap(pairs: readonly (readonly [string, string])[], covered: number, segment = 's', roomType?: string) {
  const name = (text: string) => Buffer.concat([Buffer.of(Buffer.byteLength(text)), Buffer.from(text)])
  const numbers = Buffer.alloc(8)
  numbers.writeUInt32LE(covered)
  numbers.writeUInt32LE(pairs.length, 4)
  const ids = pairs.flat().map((id) => Buffer.from(packed(id), 'hex'))
  const head = [name(segment), Buffer.of(roomType === undefined ? 1 : 0), name(roomType ?? '')]
  return Buffer.concat([...head, numbers, ...ids])
}

const swap = (table: Table, pairs: readonly (readonly [string, string])[], covered = 0, ...where: string[]) =>
  applyCommandOf(table.node, KIND.swapRows, encodeSwap(pairs, covered, ...where))

/** What searches find: price and rooms of each property in the first night, in row order. */
const found = ({ node }: Table, fields: { readonly [name: string]: unknown } = {}) =>
  (
    ask(node, 'SEARCHAVAIL', { segment: 's', roomType: 'r', dates: [formatDay(TODAY)], limit: 1000n, ...fields }).result
      .properties ?? []
  ).map(({ propertyId, days }) => `${propertyId} ${days[0]?.availability} ${days[0]?.finalPrice}`)
const line = (n: number) => `${idOf(n)} ${1 + (n % 200)} ${n}`

describe('tables to sort', () => {
  let table: Table
  beforeAll(() => {
    table = build(20, 1)
    for (let n = 5; n < 20; n++) ask(table.node, 'DELPROPROOM', { propertyId: idOf(n), roomType: 'r' })
  })

  test.each([
    // 20 live rows, and 5.
    [0, 0, []],
    [2, 0, []],
    [3, 0, ['s']],
    [0, 1, []],
    [0, 2, ['r']],
    [20, 5, ['s', 'r']],
  ])('have more than a tenth of their rows unsorted, and more than one: %i of 20, %i of 5', (some, few, expected) => {
    expect([cellOf(table, all(table), 'liveRows'), cellOf(table, rooms(table), 'liveRows')]).toEqual([20, 5])
    setCell(table, all(table), 'unordered', some)
    setCell(table, rooms(table), 'unordered', few)
    const names = { s: all(table), r: rooms(table) }
    expect(unorderedTables(table.node.store.memory)).toEqual(expected.map((name) => names[name as 's' | 'r']))
  })

  test('are sorted one after the other, each with a last command that covers its new rows', () => {
    setCell(table, all(table), 'unordered', 20)
    setCell(table, rooms(table), 'unordered', 5)
    const commands = [...orderTables(table.node.store.memory)].filter((command) => command !== undefined)
    expect(commands.map(({ kind }) => kind)).toEqual([KIND.swapRows, KIND.swapRows])
    expect(commands.map(decode)).toMatchObject([
      { segment: 's', isPropertyTable: 1, roomType: '', covered: 20 },
      { segment: 's', isPropertyTable: 0, roomType: 'r', covered: 5 },
    ])
  })

  test('are named in one command each below feature level 1', () => {
    const own = build(9, 1, 0)
    const { node } = own
    const commands = [...orderTables(node.store.memory)]
    expect(commands.map((command) => command?.kind)).toEqual([KIND.orderRows, KIND.orderRows])
    expect(commands.map((command) => decode(command as OrderCommand))).toMatchObject([
      { segment: 's', isPropertyTable: 1, roomType: '', covered: -1 },
      { segment: 's', isPropertyTable: 0, roomType: 'r', covered: -1 },
    ])
    for (const command of commands) applyCommandOf(node, KIND.orderRows, (command as OrderCommand).body)
    expect(idsOf(own, all(own))).toEqual(sortedIds(own, idsOf(own, all(own))))
  })
})

describe('sorting', () => {
  test.each([
    ['the property table', 'all', 20, 128],
    ['a room type with 16 nights', 'rooms', 16, 128],
    ['a room type with 17 nights', 'rooms', 17, 120],
    ['a room type with 40 nights', 'rooms', 40, 51],
  ])('%s takes the fewest swaps, in commands of so many at most', (_, kind, nights, pairsMax) => {
    const table = build(300, nights)
    const name = kind === 'all' ? all(table) : rooms(table)
    const before = idsOf(table, name)
    const expected = sortedIds(table, before)

    const { commands, pauses } = sort(table, name)

    const where = `VACANCY_SEED=${SEED}`
    expect(idsOf(table, name), where).toEqual(expected)
    const sizes = commands.map((command) => decode(command).pairs.length)
    expect(
      sizes.reduce((sum, size) => sum + size, 0),
      where,
    ).toBe(fewestSwaps(before, expected))
    expect(sizes.slice(0, -1).every((size) => size === pairsMax)).toBe(true)
    expect(sizes.at(-1)).toBeLessThanOrEqual(pairsMax)
    expect(sizes.length).toBeGreaterThan(2)
    // Nine passes over 300 rows.
    expect(pauses).toBe(1)
    expect(commands.map((command) => decode(command).covered)).toEqual([...sizes.slice(1).map(() => 0), 300])
    expect(cellOf(table, name, 'unordered')).toBe(0)
    expect(sort(table, name).commands.map(decode)).toMatchObject([{ covered: 0, pairs: [] }])
    // The rest of a row has moved with its id.
    expect(found(table).toSorted()).toEqual(Array.from({ length: 300 }, (_, n) => line(n)))
    for (const propertyType of TYPES) {
      const own = [...table.properties].filter(([, { type }]) => type === propertyType).map(([id]) => id)
      expect(
        found(table, { propertyType })
          .map((text) => text.slice(0, 5))
          .toSorted(),
      ).toEqual(own.toSorted())
    }
  })

  test('leaves the positions of deleted rows', () => {
    const table = build(60, 1)
    const gone = [0, 7, 8, 59]
    for (const n of gone) {
      ask(table.node, 'DELPROP', { propertyId: idOf(n) })
      table.properties.delete(idOf(n))
    }
    const before = idsOf(table, rooms(table))
    expect(before).toHaveLength(56)
    const { memory } = table.node.store
    expect(idsOf(table, rooms(table), sortedRows(memory, addressOf(table, rooms(table))))).toEqual(
      sortedIds(table, before),
    )
    sort(table, rooms(table))
    expect(idsOf(table, rooms(table))).toEqual(sortedIds(table, before))
    expect(found(table)).toHaveLength(56)
  })

  test('counts rows that are added meanwhile as new ones', () => {
    const table = build(300, 1)
    const { commands } = sort(table, rooms(table), (n) => {
      if (n > 2) return
      setProperty(table, 900 + n, createRandom(n))
      setRooms(table, 900 + n)
    })
    expect(commands.length).toBeGreaterThan(2)
    expect(cellOf(table, rooms(table), 'unordered')).toBe(2)
  })

  test('ends without a command when other data has replaced the store, or the table is gone', () => {
    const table = build(300, 1)
    const { memory } = table.node.store
    const replaced = sort(table, rooms(table), () => {
      Atomics.add(memory.i32, CONTROL.generation, 1)
    })
    expect(replaced.commands).toHaveLength(1)
    expect(decode(replaced.commands[0] as OrderCommand).covered).toBe(0)
    expect([...orderTable(memory, { segment: 77, roomType: undefined })]).toEqual([])
    expect([...orderTable(memory, { ...rooms(table), roomType: 77 })]).toEqual([])
  })
})

describe('a swap', () => {
  const first = (table: Table) => idsOf(table, rooms(table)).map((id) => (id === packed(idOf(0)) ? 0 : 1))

  test.each([4, 300])('exchanges the rows of two properties and all that belongs to them: a table of %i', (count) => {
    const table = build(count, 2)
    expect(swap(table, [[idOf(0), idOf(3)]], 0, 's', 'r')).toBe(0)

    const order = [3, 1, 2, 0]
    expect(idsOf(table, rooms(table)).slice(0, 4)).toEqual(order.map((n) => packed(idOf(n))))
    expect(found(table).slice(0, 4)).toEqual(order.map(line))
    // The property table has an order of its own.
    expect(idsOf(table, all(table)).slice(0, 4)).toEqual([0, 1, 2, 3].map((n) => packed(idOf(n))))
    const second = ask(table.node, 'SEARCHAVAIL', { segment: 's', roomType: 'r', dates: [formatDay(TODAY + 1)] })
    expect(second.result.properties?.map(({ propertyId }) => propertyId)).toEqual([idOf(0)])
    // Later writes reach the row that the property has now.
    for (const [n, amount] of [
      [0, 77],
      [3, 99],
    ] as const) {
      ask(table.node, 'SETROOMAVL', { propertyId: idOf(n), roomType: 'r', date: formatDay(TODAY), amount })
    }
    expect([found(table)[0], found(table)[3]]).toEqual([`${idOf(3)} 99 3`, `${idOf(0)} 77 0`])
    expect(cellOf(table, rooms(table), 'unordered')).toBe(count)
    expect(found(table, { area: table.properties.get(idOf(0))?.area, propertyId: idOf(0) })).toHaveLength(1)
  })

  // Without the room type, both still have a row in the property table.
  test.each<[string, (table: Table) => void, string, string, number?]>([
    ['that is unknown', () => undefined, idOf(0), 'unknown'],
    ['that was deleted', ({ node }) => void ask(node, 'DELPROP', { propertyId: idOf(3) }), idOf(3), idOf(0)],
    [
      'without the room type',
      ({ node }) => void ask(node, 'DELPROPROOM', { propertyId: idOf(3), roomType: 'r' }),
      ...([idOf(0), idOf(3), 3] as const),
    ],
    ['of another segment', (table) => setProperty(table, 3, createRandom(1), 'elsewhere'), idOf(0), idOf(3)],
    ['and itself', () => undefined, idOf(0), idOf(0)],
  ])('of a property %s is skipped, and the next one is not', (_, change, a, b, ofProperties = 0) => {
    const table = build(4, 1)
    change(table)
    const before = first(table)
    const count = before.length
    const next = [idOf(1), idOf(2)] as const
    swap(table, [[a, b], next], 0, 's', 'r')
    expect(first(table)).toEqual(before)
    expect(idsOf(table, rooms(table)).filter((id) => next.map(packed).includes(id))).toEqual(
      [idOf(2), idOf(1)].map(packed),
    )
    swap(table, [[a, b], next])
    expect(idsOf(table, all(table)).filter((id) => next.map(packed).includes(id))).toEqual(
      [idOf(2), idOf(1)].map(packed),
    )
    expect(idsOf(table, all(table))[0]).toBe(packed(idOf(ofProperties)))
    expect(idsOf(table, rooms(table))).toHaveLength(count)
  })

  test.each([
    [0, 4],
    [1, 3],
    [4, 0],
    [5, 0],
  ])('that covers %i of 4 new rows leaves %i', (covered, left) => {
    const table = build(4, 1)
    swap(table, [], covered, 's', 'r')
    expect(cellOf(table, rooms(table), 'unordered')).toBe(left)
    expect(cellOf(table, all(table), 'unordered')).toBe(4)
  })

  test('of an unknown table changes nothing', () => {
    const table = build(4, 1)
    const before = idsOf(table, rooms(table))
    for (const where of [['t'], ['t', 'r'], ['s', 'q']]) expect(swap(table, [[idOf(0), idOf(1)]], 1, ...where)).toBe(0)
    expect(idsOf(table, rooms(table))).toEqual(before)
    expect([cellOf(table, rooms(table), 'unordered'), cellOf(table, all(table), 'unordered')]).toEqual([4, 4])
  })
})
