/** What a captured store holds, field by field, and that later writes do not reach it. */

import { assert, createCodecList, formatDay, packPropertyId, unpackPropertyId } from '@vacancy/shared'
import { beforeEach, expect, test } from 'vitest'
import { beginCopyOnWrite, endCopyOnWrite } from '../store/cow.ts'
import { STATE } from '../store/layout.ts'
import { scratchOf, setState, state } from '../store/store.ts'
import {
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  SAMPLE_CODECS,
} from '../testing/node-in-memory.ts'
import { type CapturePoint, captureStore, encodeReplicated, encodeSettings, SETTINGS_BYTES } from './capture.ts'
import { DEAD_ROW, type SnapshotSource, type TableShape } from './schema.ts'

const TODAY = 20_777
const codecs = createCodecList(SAMPLE_CODECS)

let node: NodeInMemory
beforeEach(() => {
  node = createNodeInMemory(TODAY, 48 << 20)
})

function write(...[command, fields]: [Parameters<typeof ask>[1], LooseFields]): void {
  expect(ask(node, command, fields).error).toBe('')
}

function property(propertyId: string, fields: LooseFields = {}): void {
  const place = { segment: 's', area: 'a', propertyType: 'hotel', category: 'budget', stars: 3 }
  write('SETPROP', { ...place, latitude: 47.25, longitude: -8.5, amenities: [], ...fields, propertyId })
}

function room(propertyId: string, roomType: string, night: number, finalPrice = 100): void {
  const date = formatDay(TODAY + night)
  write('SETROOMPKG', { propertyId, roomType, date, availability: 4, finalPrice, rateFeatures: ['wifi'] })
}

function pointOf(changes: Partial<CapturePoint> = {}): CapturePoint {
  const { store, index } = node
  const epoch = beginCopyOnWrite(store)
  const { recordsStart, gap } = store.writer
  const records = { recordsStart, recordsEnd: gap.low }
  return { epoch, index, term: 3, shardId: 's1', voters: ['n1'], ...records, ...changes }
}

const scratch = () => scratchOf(node.store.memory, 1) + 65_536

function capture(changes: Partial<CapturePoint> = {}, previous?: { index: number; epoch: number }): SnapshotSource {
  const captured = captureStore(node.store.memory, pointOf(changes), codecs, scratch(), previous)
  assert(captured !== undefined, 'the epoch was kept')
  return captured.source
}

/** `segment|room type`, ids of its rows, its days from today. */
function shapesOf({ tables, names, properties }: SnapshotSource) {
  const idOf = (row: number) => (row === DEAD_ROW ? '-' : unpackPropertyId(properties.ids, row * 16))
  return tables.map(({ segment, roomType, rows, days }) => [
    `${names.segments[segment]}|${names.roomTypes[roomType]}`,
    [...rows].map(idOf),
    [...days].map((day) => day - TODAY),
  ])
}

test('an empty store has no names, properties and tables', () => {
  const { names, properties, tables, stays, settings } = capture()

  expect(Object.values(names)).toEqual([[], [], [], [], [], []])
  expect([properties.count, tables, stays.length, settings.length]).toEqual([0, [], 0, SETTINGS_BYTES])
  expect([...properties.amenityStart, ...properties.roomStart]).toEqual([0, 0])
})

test('properties carry their values, with names by their place in sorted lists', () => {
  property('q', { segment: 't', area: 'ä', propertyType: 'villa', category: 'luxury', stars: 5 })
  property('p', { area: 'b', amenities: ['spa', 'pool', 'wifi'], latitude: -1.5, longitude: 179 })
  for (const roomType of ['triple', 'double']) room('p', roomType, 0)
  room('q', 'suite', 2)

  const { names, properties, ...source } = capture()

  expect(names).toMatchObject({ segments: ['s', 't'], areas: ['b', 'ä'], types: ['hotel', 'villa'] })
  expect(names).toMatchObject({ categories: ['budget', 'luxury'], roomTypes: ['double', 'suite', 'triple'] })
  expect(names.amenities).toEqual(['pool', 'spa', 'wifi'])
  expect(properties.ids).toEqual(Uint8Array.from(['p', 'q'].flatMap((id) => [...(packPropertyId(id) as Uint8Array)])))
  const lists = Object.entries(properties).map(([name, column]) => [
    name,
    typeof column === 'number' ? column : [...column],
  ])
  expect(Object.fromEntries(lists)).toMatchObject({
    ...{ count: 2, segment: [0, 1], area: [0, 1], type: [0, 1], category: [0, 1], stars: [3, 5] },
    ...{ latitude: [-1.5, 47.25], longitude: [179, -8.5], amenityStart: [0, 3, 3], amenities: [0, 1, 2] },
    // In order of creation.
    ...{ roomStart: [0, 2, 3], rooms: [2, 0, 1] },
  })
  expect(source).toMatchObject({ shardId: 's1', index: node.index, term: 3, sessionCount: 0 })
  expect(source.lastMaintenanceDay).toBe(state(node.store.memory, STATE.lastMaintenanceDay))
  expect(source.configuration).toEqual({ voters: ['n1'], learners: [] })
  expect('membership' in source).toBe(false)
})

test('tables are sorted by segment and room type, with their rows and the days that have a package', () => {
  for (const [id, segment] of [
    ['z', 't'],
    ['b', 's'],
    ['a', 's'],
  ] as const) {
    property(id, { segment })
  }
  room('z', 'single', 1)
  for (const night of [350, 30, 0, 7]) room('a', 'triple', night)
  room('b', 'double', 5)
  room('b', 'triple', 7)

  expect(shapesOf(capture())).toEqual([
    ['s|double', ['b'], [5]],
    ['s|triple', expect.toSatisfy((ids: string[]) => ids.toSorted().join() === 'a,b'), [0, 7, 30, 350]],
    ['t|single', ['z'], [1]],
  ])
})

test('a removed property leaves a dead row', () => {
  for (const id of ['a', 'b']) {
    property(id)
    room(id, 'double', 0)
  }
  write('DELPROP', { propertyId: 'a' })

  const source = capture()

  expect(source.properties.count).toBe(1)
  const [table] = source.tables as [TableShape]
  expect([...table.rows].filter((row) => row !== DEAD_ROW)).toEqual([0])
})

test('words are those at the epoch, whatever is written later', () => {
  for (const id of ['a', 'b', 'c']) {
    property(id)
    for (const night of [0, 1]) room(id, 'double', night, 100 + night)
  }
  const point = pointOf()
  property('d')
  for (const id of ['a', 'd']) room(id, 'double', 0, 999)
  room('a', 'new', 0)
  const captured = captureStore(node.store.memory, point, codecs, scratch())
  assert(captured !== undefined, 'the epoch was kept')
  const { source, epoch } = captured
  room('b', 'double', 1, 999)

  expect(epoch).toBe(point.epoch)
  expect(source.properties.count).toBe(3)
  expect(source.names.roomTypes).toEqual(['double'])
  const addresses = new Uint32Array(2)
  expect(source.words(0, 1, 2, addresses)).toBe(true)
  const { u32 } = node.store.memory
  const words = [...addresses].map((at) => [...u32.slice(at / 4, at / 4 + 4)])
  const features = (1 << SAMPLE_CODECS.indexOf('wifi')) << 8
  expect(words).toEqual([100, 101].map((price) => [4 | features, ~price >>> 0, 4 | features, ~price >>> 0]))
  endCopyOnWrite(node.store)
})

test('an aborted epoch gives no snapshot, and ends one that is being read', () => {
  property('a')
  room('a', 'double', 0)
  const point = pointOf()
  const source = captureStore(node.store.memory, point, codecs, scratch())?.source
  endCopyOnWrite(node.store)

  room('a', 'double', 0, 7)
  expect(source?.words(0, 0, 1, new Uint32Array(1))).toBe(false)
  expect(captureStore(node.store.memory, point, codecs, scratch())).toBeUndefined()
})

test('members that only learn are named in the configuration', () => {
  const members = ['n1', 'n2', 'n3'].map((name, i) => ({ id: i + 1, node: name, incarnation: '11'.repeat(16) }))
  const membership = { members, voters: [1, 2], outgoing: [], learners: [3], staged: [], autoLeave: false }

  const source = capture({ voters: ['n1', 'n2'], membership })

  expect(source.configuration).toEqual({ voters: ['n1', 'n2'], learners: ['n3'] })
  expect(source.membership).toBe(membership)
})

test('a table is unchanged since the previous snapshot until a package of it is written', () => {
  property('a')
  room('a', 'double', 0)
  room('a', 'triple', 0)
  const first = pointOf()
  captureStore(node.store.memory, first, codecs, scratch())
  endCopyOnWrite(node.store)
  room('a', 'triple', 1)

  const source = capture({}, { index: first.index, epoch: first.epoch })

  expect([0, 1].map((table) => source.unchangedSince?.(table, first.index))).toEqual([true, false])
  expect(source.unchangedSince?.(0, first.index - 1)).toBe(false)
  endCopyOnWrite(node.store)
  expect(capture().unchangedSince).toBeUndefined()
})

test('settings are eight words in a fixed order', () => {
  const { store } = node
  const cells = [
    STATE.sessionBytesMax,
    STATE.featureLevel,
    ...[0, 1, 2, 3].map((i) => STATE.genesis + i),
    STATE.timeLow,
    STATE.timeHigh,
  ]
  for (const [i, cell] of cells.entries()) setState(store, cell, 0xf0000001 + i * 0x10203)

  const view = new DataView(encodeSettings(store.memory).buffer)

  expect(view.byteLength).toBe(32)
  expect(cells.map((_, i) => view.getUint32(i * 4, true))).toEqual(cells.map((_, i) => 0xf0000001 + i * 0x10203))
})

test('replicated words exist from feature level 1 on, with the first day last', () => {
  const { store } = node
  setState(store, STATE.replicated, 7)
  setState(store, STATE.replicated + 1, 4_000_000_000)
  setState(store, STATE.droppedBefore, 20_001)
  setState(store, STATE.featureLevel, 0)
  expect(encodeReplicated(store.memory).length).toBe(0)
  setState(store, STATE.featureLevel, 1)

  const bytes = encodeReplicated(store.memory)

  const view = new DataView(bytes.buffer)
  expect([0, 4, bytes.length - 4].map((at) => view.getUint32(at, true))).toEqual([7, 4_000_000_000, 20_001])
})

test('below feature level 1 only names in use are kept', () => {
  property('a', { area: 'old', amenities: ['pool', 'spa'] })
  room('a', 'double', 0)
  property('gone', { segment: 'empty', area: 'unused', propertyType: 'tent', category: 'none', amenities: ['sauna'] })
  room('gone', 'bunk', 0)
  write('DELPROP', { propertyId: 'gone' })
  setState(node.store, STATE.featureLevel, 0)

  const { names } = capture()

  expect(names).toMatchObject({ areas: ['old'], types: ['hotel'], categories: ['budget'], amenities: ['pool', 'spa'] })
  expect(names.segments).toContain('s')
  expect(names.roomTypes).toContain('double')
})
