import { formatDay, parseDay } from '@vacancy/shared'
import { between, createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { ask, createNodeInMemory, type NodeInMemory, raiseFeatureLevel } from '../testing/node-in-memory.ts'
import { recountDigest } from './apply.ts'
import { worstCapacity } from './charge.ts'
import { gapsMax } from './gaps.ts'
import { TABLE } from './layout.ts'
import { recountCharge } from './recount.ts'
import { segmentOf, tableOf } from './segment.ts'
import { stateDigest } from './store.ts'
import { field, propertyOfRow } from './table-fields.ts'
import { reclaim } from './version.ts'

const TODAY = parseDay('2026-11-20') as number
const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))
const NIGHTS = 5
const PROPERTIES = 900

const idOf = (n: number) => `p${String(n).padStart(6, '0')}`

function addProperty(node: NodeInMemory, n: number): void {
  const fields = { segment: 's', area: `a${n % 7}`, propertyType: `t${n % 3}`, category: 'c', stars: 1 + (n % 5) }
  const position = { latitude: 1, longitude: 1, amenities: [`x${n % 4}`] }
  expect(ask(node, 'SETPROP', { ...fields, ...position, propertyId: idOf(n) }).error).toBe('')
}

function sell(node: NodeInMemory, n: number, night: number, finalPrice: number): void {
  const date = formatDay(TODAY + night)
  const fields = { propertyId: idOf(n), roomType: 'r', date, availability: 1 + (n % 3), finalPrice }
  expect(ask(node, 'SETROOMPKG', fields).error).toBe('')
}

/** Prices by property on a night, of those that pass a filter that is answered by bitmaps. */
function found(node: NodeInMemory, night: number, filter: object): Map<string, number> {
  const fields = { segment: 's', roomType: 'r', dates: [formatDay(TODAY + night)], limit: 2_000, ...filter }
  const stays = ask(node, 'SEARCHAVAIL', fields).result.properties ?? []
  return new Map(stays.map(({ propertyId, days }) => [propertyId, days[0]?.finalPrice ?? -1]))
}

const tableAddress = ({ store: { memory } }: NodeInMemory) => tableOf(memory, segmentOf(memory, 0), 0)

/** Properties by row. */
function rowsOf(node: NodeInMemory): number[] {
  const { memory } = node.store
  const table = tableAddress(node)
  return Array.from({ length: field(memory, table + TABLE.rowCount) }, (_, row) => propertyOfRow(memory, table, row))
}

test(`deletions move at most two rows each into gaps, and give memory back (VACANCY_SEED=${SEED})`, () => {
  const node = createNodeInMemory(TODAY)
  raiseFeatureLevel(node)
  const random = createRandom(SEED)
  const { memory, writer } = node.store
  const expected = new Map<number, number[]>()
  let price = 0
  let next = 0
  const add = () => {
    addProperty(node, next)
    for (let night = 0; night < NIGHTS; night++) sell(node, next, night, ++price)
    expected.set(
      next++,
      Array.from({ length: NIGHTS }, (_, night) => price - NIGHTS + 1 + night),
    )
  }
  const compare = () => {
    for (const night of [0, NIGHTS - 1]) {
      for (const [filter, passes] of [
        [{}, () => true],
        [{ propertyType: 't1', amenities: ['x2'] }, (n: number) => n % 3 === 1 && n % 4 === 2],
      ] as const) {
        const model = [...expected].filter(([n]) => passes(n)).map(([n, prices]) => [idOf(n), prices[night]] as const)
        expect(found(node, night, filter)).toEqual(new Map(model as [string, number][]))
      }
    }
    expect(stateDigest(memory)).toEqual(recountDigest(memory).digest)
    expect(writer.charge.bytes).toBe(recountCharge(memory))
  }
  while (next < PROPERTIES) add()
  const usedAtMost = writer.planes.usedBytes
  let moved = 0

  while (expected.size > 40) {
    const ids = [...expected.keys()]
    const gone = ids[between(random, 0, ids.length - 1)] as number
    const before = rowsOf(node)
    expect(ask(node, 'DELPROPROOM', { propertyId: idOf(gone), roomType: 'r' }).error).toBe('')
    expected.delete(gone)
    const after = rowsOf(node)
    const changes = after.filter((property, row) => property !== 0 && property !== before[row]).length
    expect(changes).toBeLessThanOrEqual(2)
    moved += changes
    expect(after.length - expected.size).toBeLessThanOrEqual(gapsMax(memory, tableAddress(node)))
    expect(field(memory, tableAddress(node) + TABLE.capacity)).toBeLessThanOrEqual(worstCapacity(after.length))
    if (expected.size % 100 === 0) compare()
    const other = ids[between(random, 0, ids.length - 1)] as number
    if (expected.has(other)) {
      const night = between(random, 0, NIGHTS - 1)
      sell(node, other, night, ++price)
      ;(expected.get(other) as number[])[night] = price
    }
    if (between(random, 0, 20) === 0) add()
  }

  compare()
  expect(moved).toBeGreaterThan(300)
  reclaim(node.store)
  reclaim(node.store)
  expect(writer.planes.usedBytes).toBeLessThan(usedAtMost / 2)
})
