/** Bitmaps of a table that grows, shrinks and changes: each bit against the attributes of the row's property. */
import { createRandom, type Random } from '@vacancy/testkit/random'
import { beforeEach, expect, test } from 'vitest'
import { TODAY } from '../testing/model.ts'
import { ask, createNodeInMemory, orderRows, raiseFeatureLevel, restartEmpty } from '../testing/node-in-memory.ts'
import { bitmapAddress, findAttribute, isOverflowed, noteBounds, rebuildBitmaps } from './bitmaps.ts'
import { ATTRIBUTE, ATTRIBUTE_SLOT, type Attribute, BITMAP_ROWS_MIN, PROPERTY, SEGMENT, TABLE } from './layout.ts'
import { segmentOf } from './segment.ts'
import { field, propertyOfRow, rowCountOf } from './table-fields.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const node = createNodeInMemory(TODAY, 64 << 20)
const { store } = node
const { memory } = store
beforeEach(() => restartEmpty(node, TODAY))

const PLACE = { segment: 's', latitude: 1, longitude: 1 }
const table = () => field(memory, segmentOf(memory, 0) + SEGMENT.propertyTable)

function setProperty(n: number, random: Random): void {
  const few = (most: number) => random.below(1 + random.below(most))
  const amenities = [...new Set(Array.from({ length: few(4) }, () => `m${few(40)}`))]
  const fields = {
    area: `a${few(30)}`,
    propertyType: `t${few(6)}`,
    category: `c${few(4)}`,
    stars: 1 + few(5),
    amenities,
  }
  expect(ask(node, 'SETPROP', { ...PLACE, propertyId: `p${n}`, ...fields }).error).toBe('')
}

/** The attribute values of a property, as 'attribute value'. */
function valuesOf(property: number): Set<string> {
  const single = [
    [ATTRIBUTE.type, PROPERTY.type],
    [ATTRIBUTE.category, PROPERTY.category],
    [ATTRIBUTE.stars, PROPERTY.stars],
    [ATTRIBUTE.area, PROPERTY.area],
  ].map(([attribute, column]) => `${attribute} ${field(memory, property + (column as number))}`)
  const list = field(memory, property + PROPERTY.amenities)
  const count = list === 0 ? 0 : field(memory, list)
  const amenities = Array.from({ length: count }, (_, i) => `${ATTRIBUTE.amenity} ${field(memory, list + 4 + i * 4)}`)
  return new Set([`${ATTRIBUTE.alive} 0`, ...single, ...amenities])
}

/** What is wrong with the bitmaps of the table; '' for nothing. */
function faultOf(): string {
  const at = table()
  const rows = rowCountOf(memory, at)
  if (field(memory, at + TABLE.bitmaps) === 0) return field(memory, at + TABLE.capacity) < BITMAP_ROWS_MIN ? '' : 'none'
  const expected = new Map<string, number[]>()
  for (let row = 0; row < rows; row++) {
    const property = propertyOfRow(memory, at, row)
    if (property === 0) continue
    for (const key of valuesOf(property)) {
      const known = expected.get(key)
      if (known) known.push(row)
      else expected.set(key, [row])
    }
  }
  for (const [key, wanted] of expected) {
    const [attribute, value] = key.split(' ').map(Number) as [Attribute, number]
    const slot = findAttribute(memory, at, attribute, value)
    if (slot === 0) {
      if (isOverflowed(memory, at, attribute)) continue
      return `no bitmap of ${key}`
    }
    const bits = bitmapAddress(memory, at, field(memory, slot + ATTRIBUTE_SLOT.bitmap))
    const found: number[] = []
    for (let row = 0; row < field(memory, at + TABLE.capacity); row++) {
      if (((field(memory, bits + (row >>> 5) * 4) >>> (row & 31)) & 1) === 1) found.push(row)
    }
    if (found.join() !== wanted.join()) return `${key}: rows ${found.join()} instead of ${wanted.join()}`
    const [first, end] = [field(memory, slot + ATTRIBUTE_SLOT.firstRow), field(memory, slot + ATTRIBUTE_SLOT.endRow)]
    if (first > (wanted[0] as number) || end <= (wanted.at(-1) as number)) return `${key}: range ${first} to ${end}`
  }
  return ''
}

const capacity = () => field(memory, table() + TABLE.capacity)

test.each([0, 1])('bits are those of the rows while a table grows and shrinks: level %i', (level) => {
  const random = createRandom(SEED)
  raiseFeatureLevel(node, level)
  const capacities = new Set<number>()
  const known: number[] = []
  const message = () => `VACANCY_SEED=${SEED}, ${known.length} properties`
  for (let n = 0; n < 280; n++) {
    setProperty(n, random)
    known.push(n)
    if (n % 5 === 0) setProperty(known[random.below(known.length)] as number, random)
    capacities.add(capacity())
    if (n % 60 === 0) expect(faultOf(), message()).toBe('')
  }
  expect([...capacities].filter((rows) => rows > 128).length).toBeGreaterThan(1)
  orderRows(node, 's')
  expect(faultOf(), message()).toBe('')
  const largest = capacity()
  while (known.length > 20) {
    const [n] = known.splice(random.below(known.length), 1)
    ask(node, 'DELPROP', { propertyId: `p${n}` })
    if (known.length % 50 === 0) {
      setProperty(known[random.below(known.length)] as number, random)
      expect(faultOf(), message()).toBe('')
    }
  }
  // Below level 1 a table keeps its capacity.
  expect(capacity() < largest).toBe(level > 0)
  for (let n = 500; n < 620; n++) setProperty(n, random)
  expect(faultOf(), message()).toBe('')
})

test('ranges that are noted again are the narrowest multiples of 32 rows', () => {
  raiseFeatureLevel(node)
  const random = createRandom(SEED)
  for (let n = 0; n < 300; n++) setProperty(n, random)
  for (const n of [70, 131]) ask(node, 'SETPROP', { ...PLACE, ...OTHER, propertyId: `p${n}`, area: 'two' })
  ask(node, 'SETPROP', { ...PLACE, ...OTHER, propertyId: 'p299', area: 'last' })
  ask(node, 'SETPROP', { ...PLACE, ...OTHER, propertyId: 'p0', area: 'moved' })
  ask(node, 'SETPROP', { ...PLACE, ...OTHER, propertyId: 'p0', area: 'first' })
  noteBounds(store, table())
  const rangeOf = (n: number) => {
    const property = propertyOfRow(memory, table(), n)
    const slot = findAttribute(memory, table(), ATTRIBUTE.area, field(memory, property + PROPERTY.area))
    return [field(memory, slot + ATTRIBUTE_SLOT.firstRow), field(memory, slot + ATTRIBUTE_SLOT.endRow)]
  }
  expect([rangeOf(70), rangeOf(131), rangeOf(299), rangeOf(0)]).toEqual([
    [64, 160],
    [64, 160],
    [288, 320],
    [0, 32],
  ])
  expect(faultOf()).toBe('')
})
const OTHER = { propertyType: 't0', category: 'c0', stars: 1, amenities: [] }

test('bitmaps that are rebuilt are the same as before, and those of the old ones are free again', () => {
  raiseFeatureLevel(node)
  const random = createRandom(SEED)
  for (let n = 0; n < 300; n++) setProperty(n, random)
  const count = field(memory, table() + TABLE.bitmapCount)
  const used: number[] = []
  for (let n = 0; n < 4; n++) {
    rebuildBitmaps(store, table(), capacity())
    expect(faultOf(), `VACANCY_SEED=${SEED}`).toBe('')
    setProperty(300, random)
    used.push(store.writer.planes.usedBytes)
  }
  expect(field(memory, table() + TABLE.bitmapCount)).toBeLessThanOrEqual(count + 8)
  expect(used[3]).toBe(used[2])
})
