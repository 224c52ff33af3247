/** Rows of a table after each deletion, compared with a list: which gaps stay, and which rows fill the others. */

import { formatDay, parseDay } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { beforeAll, expect, test } from 'vitest'
import {
  ask,
  createNodeInMemory,
  type NodeInMemory,
  raiseFeatureLevel,
  restartEmpty,
} from '../testing/node-in-memory.ts'
import { worstCapacity } from './charge.ts'
import { gapsMax } from './gaps.ts'
import { BITMAP_ROWS_MIN, SEGMENT, TABLE } from './layout.ts'
import { segmentOf, tableOf } from './segment.ts'
import { field, propertyOfRow } from './table-fields.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const TODAY = parseDay('2026-11-20') as number
const COUNT = 160
const idOf = (n: number) => `p${String(n).padStart(4, '0')}`

let node: NodeInMemory
beforeAll(() => {
  node = createNodeInMemory(TODAY, 64 << 20)
})

/** Properties with a room each for one night, its price their number. Every third has type t0. */
function fill(): void {
  restartEmpty(node, TODAY)
  raiseFeatureLevel(node)
  for (let n = 0; n < COUNT; n++) {
    const own = { segment: 's', propertyId: idOf(n), propertyType: `t${n % 3}`, area: 'a', category: 'c', stars: 1 }
    ask(node, 'SETPROP', { ...own, latitude: 1, longitude: 1, amenities: [] })
    const night = { propertyId: idOf(n), roomType: 'r', date: formatDay(TODAY), availability: 1 }
    ask(node, 'SETROOMPKG', { ...night, finalPrice: n })
  }
}

const roomTable = () => tableOf(node.store.memory, segmentOf(node.store.memory, 0), 0)
const propertyTable = () => field(node.store.memory, segmentOf(node.store.memory, 0) + SEGMENT.propertyTable)

function rowsOf(table: number): number[] {
  const { memory } = node.store
  return Array.from({ length: field(memory, table + TABLE.rowCount) }, (_, row) => propertyOfRow(memory, table, row))
}

/** The documented rule: gaps at the end go, and at most two rows from the end fill the first gaps beyond the kept ones. */
function deleted(rows: readonly number[], row: number, kept: (live: number) => number): number[] {
  const list = rows.with(row, 0)
  const live = list.filter((property) => property !== 0).length
  const trim = () => {
    while (list.at(-1) === 0) list.pop()
  }
  trim()
  for (let n = 0; n < 2 && list.length - live > kept(live); n++) {
    list[list.indexOf(0)] = list.pop() as number
    trim()
  }
  return list
}

/** Numbers of the properties that a search finds, each with the price of its row. */
function found(fields: { readonly propertyType?: string } = {}): number[] {
  const query = { segment: 's', roomType: 'r', dates: [formatDay(TODAY)], limit: 1000n, ...fields }
  const stays = ask(node, 'SEARCHAVAIL', query).result.properties ?? []
  return stays
    .map(({ propertyId, days }) => {
      expect(propertyId).toBe(idOf(days[0]?.finalPrice as number))
      return days[0]?.finalPrice as number
    })
    .sort((a, b) => a - b)
}

function expectFound(left: ReadonlySet<number>, where: string): void {
  const expected = [...left].sort((a, b) => a - b)
  expect(found(), where).toEqual(expected)
  expect(found({ propertyType: 't0' }), where).toEqual(expected.filter((n) => n % 3 === 0))
}

test.each([
  ['drawn', (left: readonly number[], below: (n: number) => number) => left[below(left.length)] as number],
  ['the first', (left: readonly number[]) => left[0] as number],
  ['the last', (left: readonly number[]) => left.at(-1) as number],
] as const)('rooms are deleted one by one, %s of those left', (_, pick) => {
  fill()
  const { memory } = node.store
  const random = createRandom(SEED)
  const table = roomTable()
  const numberOf = new Map(rowsOf(table).map((property, n) => [property, n]))
  const left = new Set(numberOf.values())
  let capacity = field(memory, table + TABLE.capacity)
  while (left.size > 1) {
    const n = pick([...left], (limit) => random.below(limit))
    const rows = rowsOf(table)
    const row = rows.findIndex((property) => property !== 0 && numberOf.get(property) === n)
    left.delete(n)
    const where = `VACANCY_SEED=${SEED}, ${left.size} left`
    const expected = deleted(rows, row, (live) => 16 + Math.floor(live / 4))

    ask(node, 'DELPROPROOM', { propertyId: idOf(n), roomType: 'r' })

    expect(rowsOf(table), where).toEqual(expected)
    capacity = Math.min(capacity, worstCapacity(expected.length))
    expect(field(memory, table + TABLE.capacity), where).toBe(capacity)
    expect(field(memory, table + TABLE.bitmaps) !== 0, where).toBe(capacity >= BITMAP_ROWS_MIN)
    if (left.size % 40 === 1 || left.size === 127) expectFound(left, where)
  }
})

test('properties leave no gap in their own table', () => {
  fill()
  const { memory } = node.store
  const random = createRandom(SEED)
  const table = propertyTable()
  const numberOf = new Map(rowsOf(table).map((property, n) => [property, n]))
  const left = new Set(numberOf.values())
  expect(gapsMax(memory, table)).toBe(0)
  expect(gapsMax(memory, roomTable())).toBe(16 + COUNT / 4)
  while (left.size > 3) {
    const rows = rowsOf(table)
    const row = random.below(rows.length)
    const n = numberOf.get(rows[row] as number) as number
    left.delete(n)
    const unordered = field(memory, table + TABLE.unordered)

    ask(node, 'DELPROP', { propertyId: idOf(n) })

    const where = `VACANCY_SEED=${SEED}, ${left.size} left`
    expect(rowsOf(table), where).toEqual(deleted(rows, row, () => 0))
    // A row that moved is out of order.
    const moved = row === rows.length - 1 ? 0 : 1
    expect(field(memory, table + TABLE.unordered) - unordered, where).toBeLessThanOrEqual(moved)
    if (left.size % 40 === 0) expectFound(left, where)
  }
})
