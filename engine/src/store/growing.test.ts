import { formatDay, parseDay } from '@vacancy/shared'
import { between, createRandom, type Random } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { ask, createNodeInMemory, type NodeInMemory, raiseFeatureLevel } from '../testing/node-in-memory.ts'
import { recountDigest } from './apply.ts'
import { TABLE } from './layout.ts'
import { forEachSlot } from './planes.ts'
import { segmentOf, tableOf } from './segment.ts'
import { countsOf, stateDigest } from './store.ts'
import { field } from './table-fields.ts'

const TODAY = parseDay('2026-11-20') as number
const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))
const NIGHTS = 12

const idOf = (n: number) => `p${String(n).padStart(6, '0')}`

function addProperty(node: NodeInMemory, n: number): void {
  const fields = { segment: 's', area: `a${n % 7}`, propertyType: `t${n % 3}`, category: 'c', stars: 1 + (n % 5) }
  expect(
    ask(node, 'SETPROP', { ...fields, propertyId: idOf(n), latitude: 1, longitude: 1, amenities: ['x'] }).error,
  ).toBe('')
}

function sell(node: NodeInMemory, n: number, night: number, availability: number, finalPrice: number): string {
  const date = formatDay(TODAY + night)
  return ask(node, 'SETROOMPKG', { propertyId: idOf(n), roomType: 'r', date, availability, finalPrice }).error
}

/** Properties with a room on a night: by search, and by their prices, which uses neither bits nor bitmaps. */
function found(node: NodeInMemory, night: number): Map<string, number> {
  const dates = [formatDay(TODAY + night)]
  const fields = { segment: 's', roomType: 'r', dates, limit: 1000 }
  const stays = ask(node, 'SEARCHAVAIL', fields).result.properties ?? []
  return new Map(stays.map(({ propertyId, days }) => [propertyId, days[0]?.finalPrice ?? -1]))
}

function tableAddress({ store: { memory } }: NodeInMemory): number {
  return tableOf(memory, segmentOf(memory, 0), 0)
}

test(`a growing table is copied a few nights per new row, including concurrent changes; it used to be one pause (VACANCY_SEED=${SEED})`, () => {
  const node = createNodeInMemory(TODAY)
  raiseFeatureLevel(node)
  const random: Random = createRandom(SEED)
  const expected = Array.from({ length: NIGHTS }, () => new Map<string, number>())
  let price = 0
  let used = 0
  let properties = 0
  const change = () => {
    const n = between(random, 0, properties - 1)
    const night = between(random, 0, NIGHTS - 1)
    const availability = between(random, 0, 2)
    if (sell(node, n, night, availability, ++price) !== '') return
    if (availability > 0) expected[night]?.set(idOf(n), price)
    else expected[night]?.delete(idOf(n))
  }
  for (; properties < 900; ) {
    addProperty(node, properties++)
    const last = properties - 1
    for (let night = 0; night < NIGHTS; night++) {
      sell(node, last, night, 1, ++price)
      expected[night]?.set(idOf(last), price)
    }
    const table = tableAddress(node)
    const prepared = node.store.writer.growing
    const isPrepared = prepared?.table === table && prepared.copies.size === NIGHTS
    const capacity = field(node.store.memory, table + TABLE.capacity)
    for (let changes = between(random, 0, 4); changes > 0; changes--) change()
    if (between(random, 0, 60) === 0) {
      const gone = between(random, 0, properties - 1)
      if (ask(node, 'DELPROPROOM', { propertyId: idOf(gone), roomType: 'r' }).error === '')
        for (const night of expected) night.delete(idOf(gone))
    }
    if (!isPrepared || node.store.writer.growing !== prepared) continue
    // The next row finds the table full: the copies replace its nights.
    const isFull = field(node.store.memory, table + TABLE.rowCount) === capacity
    if (!isFull) continue
    addProperty(node, properties++)
    const copies = new Set(prepared?.copies.values())
    sell(node, properties - 1, 0, 0, ++price)
    let taken = 0
    forEachSlot(node.store.memory, table, (_slot, plane) => {
      if (copies.has(plane)) taken++
    })
    expect(taken).toBe(copies.size)
    used++
  }

  expect(used).toBeGreaterThan(0)
  for (let night = 0; night < NIGHTS; night++) expect(found(node, night)).toEqual(expected[night])
  expect(stateDigest(node.store.memory)).toEqual(recountDigest(node.store.memory).digest)
  // A segment is removed by the counts and digests of its nights, which changed after these were copied.
  expect(ask(node, 'DELSEGMENT', { segment: 's' }).error).toBe('')
  expect(countsOf(node.store.memory).packages).toBe(0)
  expect(stateDigest(node.store.memory)).toEqual(recountDigest(node.store.memory).digest)
})

test(`the index by id is copied a few slots per new property, and no entry is lost or reappears (VACANCY_SEED=${SEED})`, () => {
  const node = createNodeInMemory(TODAY)
  raiseFeatureLevel(node)
  const random = createRandom(SEED)
  const live = new Set<number>()
  let prepared = 0
  let steps = 0
  for (let n = 0; n < 19_000; n++) {
    const before = node.store.writer.indexCopy
    addProperty(node, n)
    live.add(n)
    if (before !== undefined) steps++
    if (before !== undefined && node.store.writer.indexCopy === undefined) prepared++
    if (between(random, 0, 9) > 0) continue
    const gone = between(random, 0, n)
    expect(ask(node, 'DELPROP', { propertyId: idOf(gone) }).error === '').toBe(live.delete(gone))
  }

  expect(prepared).toBeGreaterThan(0)
  expect(steps).toBeGreaterThan(100)
  for (let n = 0; n < 19_000; n++) {
    const { error } = ask(node, 'DELPROP', { propertyId: idOf(n) })
    expect(error === '', idOf(n)).toBe(live.has(n))
  }
  expect(recountDigest(node.store.memory).properties).toBe(0)
})
