/** What a loaded snapshot sets besides properties and packages, and what a bulk load keeps instead. */

import { formatDay } from '@vacancy/shared'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { recountDigest } from '../store/apply.ts'
import { DAY_SLOTS, REPLICATED_CELLS, SEGMENT, STATE } from '../store/layout.ts'
import { segmentOf } from '../store/segment.ts'
import { countsOf, type Memory, setState, state, stateDigest } from '../store/store.ts'
import { field } from '../store/table-fields.ts'
import { copyOf, loadDataOf } from '../testing/copied-node.ts'
import { TODAY } from '../testing/model.ts'
import {
  ask,
  createNodeInMemory,
  type NodeInMemory,
  raiseFeatureLevel,
  restartEmpty,
} from '../testing/node-in-memory.ts'
import { forgetGenesis, keptStateOf, putBackState } from './restore.ts'

let source: NodeInMemory
let target: NodeInMemory

beforeAll(() => {
  source = createNodeInMemory(TODAY)
  target = createNodeInMemory(TODAY)
})

beforeEach(() => {
  for (const node of [source, target]) {
    restartEmpty(node, TODAY)
    raiseFeatureLevel(node)
  }
})

function property(node: NodeInMemory, propertyId: string, segment: string, amenities: string[] = []): void {
  const place = { area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
  expect(ask(node, 'SETPROP', { ...place, segment, propertyId, amenities }).error).toBe('')
}

function night(node: NodeInMemory, propertyId: string, day: number, roomType = 'double'): void {
  const fields = { propertyId, roomType, date: formatDay(day), availability: 4, finalPrice: 10 }
  expect(ask(node, 'SETROOMPKG', fields).error).toBe('')
}

/** Packages and properties of the segments, by the number of their names. */
function segmentsOf(memory: Memory): [packages: number, properties: number][] {
  const names = Array.from({ length: state(memory, STATE.segmentCapacity) }, (_, name) => segmentOf(memory, name))
  return names
    .filter((segment) => segment !== 0)
    .map((segment) => [field(memory, segment + SEGMENT.packages), field(memory, segment + SEGMENT.properties)])
}

const SETTINGS = [
  ...[STATE.sessionBytesMax, STATE.featureLevel, STATE.timeLow, STATE.timeHigh],
  ...[0, 1, 2, 3].map((cell) => STATE.genesis + cell),
]
const REPLICATED = Array.from({ length: REPLICATED_CELLS }, (_, cell) => STATE.replicated + cell)
const valuesOf = ({ store }: NodeInMemory, cells: readonly number[]) => cells.map((cell) => state(store.memory, cell))

/** Different values in all cells, except the feature level. */
function fillState({ store }: NodeInMemory, from: number): void {
  for (const [at, cell] of [...SETTINGS, ...REPLICATED].entries()) {
    if (cell !== STATE.featureLevel) setState(store, cell, from + at * 3)
  }
}

describe('a loaded snapshot', () => {
  test('settings, replicated words and days are those of the snapshot', () => {
    property(source, 'p', 's')
    fillState(source, 4_000_000_001)
    setState(source.store, STATE.lastMaintenanceDay, TODAY - 3)
    setState(source.store, STATE.droppedBefore, TODAY - 1)

    const copy = copyOf(source)

    expect(valuesOf(copy, SETTINGS)).toEqual(valuesOf(source, SETTINGS))
    expect(valuesOf(copy, REPLICATED)).toEqual(valuesOf(source, REPLICATED))
    expect(valuesOf(copy, [STATE.lastMaintenanceDay, STATE.droppedBefore])).toEqual([TODAY - 3, TODAY - 1])
    expect(stateDigest(copy.store.memory)).toEqual(stateDigest(source.store.memory))
  })

  test('below feature level 1 there are no replicated words, and the first day is that of maintenance', () => {
    restartEmpty(source, TODAY)
    property(source, 'p', 's')
    fillState(source, 1)
    setState(source.store, STATE.featureLevel, 0)
    setState(source.store, STATE.lastMaintenanceDay, TODAY - 3)
    setState(source.store, STATE.droppedBefore, TODAY - 1)

    const copy = copyOf(source)

    expect(valuesOf(copy, SETTINGS)).toEqual(valuesOf(source, SETTINGS))
    expect(valuesOf(copy, REPLICATED)).toEqual(REPLICATED.map(() => 0))
    expect(valuesOf(copy, [STATE.lastMaintenanceDay, STATE.droppedBefore])).toEqual([TODAY - 3, TODAY - 3])
  })

  test('each segment counts its packages and properties, and all of them are in the digest', () => {
    for (const [id, segment, nights] of [
      ['p', 's', 3],
      ['q', 't', 1],
      ['r', 's', 2],
      ['none', 'u', 0],
    ] as const) {
      property(source, id, segment, ['spa', 'pool', 'bar'])
      for (let n = 0; n < nights; n++) night(source, id, TODAY + n, n === 2 ? 'suite' : 'double')
    }

    const { memory } = copyOf(source).store

    // By the order of their names.
    expect(segmentsOf(memory)).toEqual([
      [5, 2],
      [1, 1],
      [0, 1],
    ])
    expect(countsOf(memory)).toEqual(countsOf(source.store.memory))
    expect(recountDigest(memory).digest).toEqual(stateDigest(source.store.memory))
    expect(stateDigest(memory)).toEqual(stateDigest(source.store.memory))
  })

  test('a new shard forgets the random bits of the old one, and nothing else', () => {
    fillState(source, 7)
    const around = [STATE.genesis - 1, STATE.genesis + 4]
    const before = valuesOf(source, around)

    forgetGenesis(source.store)

    expect(valuesOf(source, SETTINGS.slice(4))).toEqual([0, 0, 0, 0])
    expect(valuesOf(source, around)).toEqual(before)
  })
})

describe('a bulk load', () => {
  test('settings and replicated words stay, the data are those of the snapshot', () => {
    property(source, 'p', 's')
    night(source, 'p', TODAY + 1)
    property(target, 'q', 't')
    // The time stays that of the commands: nights far behind it would be dropped.
    const cells = [...SETTINGS, ...REPLICATED].filter((cell) => cell !== STATE.timeLow && cell !== STATE.timeHigh)
    const times = [STATE.timeLow, STATE.timeHigh].map((cell) => [cell, state(target.store.memory, cell)] as const)
    fillState(source, 1000)
    fillState(target, 4_000_000_001)
    for (const [cell, value] of times) setState(target.store, cell, value)
    const kept = valuesOf(target, cells)

    loadDataOf(source, target)

    expect(valuesOf(target, cells)).toEqual(kept)
    expect(times.map(([cell]) => state(target.store.memory, cell))).toEqual(times.map(([, value]) => value))
    expect(countsOf(target.store.memory)).toMatchObject({ properties: 1, packages: 1 })
    expect(segmentsOf(target.store.memory)).toEqual([[1, 1]])
  })

  test.each([
    ['later here', TODAY + 2, TODAY, TODAY + 2, 2],
    ['equal', TODAY + 1, TODAY + 1, TODAY + 1, 4],
    ['later in the snapshot', TODAY, TODAY + 3, TODAY + 3, 4],
  ])('days of maintenance, %s: what is dropped does not return', (_, here, there, droppedBefore, packages) => {
    property(source, 'p', 's')
    for (let n = 0; n < 4; n++) night(source, 'p', TODAY + n)
    setState(source.store, STATE.lastMaintenanceDay, there)
    setState(source.store, STATE.droppedBefore, there)
    setState(target.store, STATE.lastMaintenanceDay, here)
    setState(target.store, STATE.droppedBefore, here)

    loadDataOf(source, target)

    expect(valuesOf(target, [STATE.lastMaintenanceDay, STATE.droppedBefore])).toEqual([here, droppedBefore])
    expect(countsOf(target.store.memory).packages).toBe(packages)
    expect(recountDigest(target.store.memory).digest).toEqual(stateDigest(target.store.memory))
  })

  test.each([
    [1, 1],
    [0, 3],
  ])('at feature level %i, %i nights are left of those that the clock here cannot reach', (level, packages) => {
    source.day = TODAY + 40
    property(source, 'p', 's')
    for (const day of [DAY_SLOTS - 1, DAY_SLOTS, DAY_SLOTS + 5]) night(source, 'p', TODAY + day)
    source.day = TODAY
    property(target, 'q', 't')
    setState(target.store, STATE.featureLevel, level)

    loadDataOf(source, target)

    // They would collide with present ones.
    expect(countsOf(target.store.memory).packages).toBe(packages)
    expect(recountDigest(target.store.memory).digest).toEqual(stateDigest(target.store.memory))
  })

  test.each([0, 1, 3, REPLICATED_CELLS])('%i replicated words of an older version leave the others empty', (words) => {
    fillState(target, 4_000_000_001)
    setState(target.store, STATE.timeLow, 0)
    setState(target.store, STATE.timeHigh, 0)
    setState(target.store, STATE.lastMaintenanceDay, TODAY - 1)
    setState(target.store, STATE.droppedBefore, TODAY - 1)
    const before = valuesOf(target, REPLICATED)
    const settings = valuesOf(target, SETTINGS)
    const kept = keptStateOf(target.store)
    expect(kept.replicated.length).toBe((REPLICATED_CELLS + 1) * 4)

    putBackState(target.store, { ...kept, replicated: kept.replicated.slice(0, words * 4) })

    expect(valuesOf(target, REPLICATED)).toEqual(before.map((value, cell) => (cell < words ? value : 0)))
    expect(valuesOf(target, [STATE.lastMaintenanceDay, STATE.droppedBefore])).toEqual([TODAY - 1, TODAY - 1])
    expect(valuesOf(target, SETTINGS)).toEqual(settings)
  })

  test('settings of another length are not read', () => {
    fillState(target, 1000)
    const before = valuesOf(target, SETTINGS)
    const kept = keptStateOf(target.store)

    for (const length of [0, 31]) putBackState(target.store, { ...kept, settings: new Uint8Array(length) })

    expect(valuesOf(target, SETTINGS)).toEqual(before)
  })
})
