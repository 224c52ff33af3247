/** A replica that loaded a snapshot and one that applied the log have the same state, whatever their history. */

import { addOneYear, formatDay } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { memoryBudgetOf, sessionBytesLimit } from '../store/charge.ts'
import { KIND, OUTCOME, writeF64 } from '../store/command.ts'
import { STATE } from '../store/layout.ts'
import { lastSetTime } from '../store/set-time.ts'
import { countsOf, createStore, setState, state, stateDigest } from '../store/store.ts'
import { copyOf } from '../testing/copied-node.ts'
import { TODAY } from '../testing/model.ts'
import {
  applyOwn,
  ask,
  createNodeInMemory,
  type NodeInMemory,
  nodeOver,
  raiseFeatureLevel,
  setMemoryBudget,
} from '../testing/node-in-memory.ts'
import { keptStateOf, putBackState } from './restore.ts'

const DAY_MS = 86_400_000
const place = { area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }

function nodeAtLevel1(): NodeInMemory {
  const node = createNodeInMemory(TODAY)
  raiseFeatureLevel(node)
  return node
}

function setProperty(node: NodeInMemory, propertyId: string, segment = 's', more = {}) {
  return ask(node, 'SETPROP', { ...place, propertyId, segment, amenities: [], ...more })
}

function setNight(node: NodeInMemory, propertyId: string, day: number) {
  return ask(node, 'SETROOMPKG', { propertyId, roomType: 'r', date: formatDay(day), availability: 5 })
}

const keyOf = (session: number, requestNumber = 1) => ({
  session: session.toString(16).padStart(32, '0'),
  requestNumber,
})

function setKeyed(node: NodeInMemory, session: number) {
  const night = { propertyId: 'p', roomType: 'r', date: formatDay(TODAY), amount: 1 }
  return ask(node, 'SETROOMAVL', { ...night, ...keyOf(session) })
}

function setTime(node: NodeInMemory, day: number): void {
  applyOwn(node, KIND.setTime, (writer) => writeF64(writer, day * DAY_MS + 3_600_000))
  node.day = day
}

function expectSame(a: NodeInMemory, b: NodeInMemory): void {
  expect(countsOf(b.store.memory)).toEqual(countsOf(a.store.memory))
  expect(stateDigest(b.store.memory)).toEqual(stateDigest(a.store.memory))
  expect(b.store.writer.charge.bytes).toBe(a.store.writer.charge.bytes)
}

test('refused keyed growth used to open sessions without bound, which a snapshot then lost', () => {
  const node = nodeAtLevel1()
  setProperty(node, 'p')
  setMemoryBudget(node, 1 << 20)
  const limit = sessionBytesLimit(node.store.memory)

  for (let i = 0; i < 5_000; i++) {
    expect(setProperty(node, `x${i}`, 's', keyOf(i)).code === OUTCOME.refused || i < 2_000).toBe(true)
    expect(state(node.store.memory, STATE.sessionBytes)).toBeLessThanOrEqual(limit + 64)
  }
  expectSame(node, copyOf(node))
})

test('a smaller budget evicts sessions at its entry: a loaded replica used to have fewer', () => {
  const node = nodeAtLevel1()
  setProperty(node, 'p')
  setNight(node, 'p', TODAY)
  for (let i = 0; i < 3_000; i++) setKeyed(node, i)
  setMemoryBudget(node, 2 << 20)

  const copy = copyOf(node)
  expectSame(node, copy)
  for (const each of [node, copy]) {
    setKeyed(each, 5)
    setKeyed(each, 9_000)
  }
  expectSame(node, copy)
})

test('dead rows of older rules used to count on the replica that had them: one refused writes that the other accepted', () => {
  const node = createNodeInMemory(TODAY)
  const add = (each: NodeInMemory, i: number) => {
    setProperty(each, `p${i}`)
    setNight(each, `p${i}`, TODAY + 1)
  }
  for (let i = 0; i < 128; i++) add(node, i)
  for (let i = 0; i < 97; i++) ask(node, 'DELPROP', { propertyId: `p${i}` })
  add(node, 200)
  const copy = copyOf(node)
  for (const each of [node, copy]) {
    for (let i = 100; i < 109; i++) ask(each, 'DELPROP', { propertyId: `p${i}` })
    add(each, 300)
    raiseFeatureLevel(each)
  }

  expectSame(node, copy)
})

test('the first day after a bulk load used to differ at the step to feature level 1', () => {
  const node = createNodeInMemory(TODAY)
  setProperty(node, 'p')
  setNight(node, 'p', TODAY + 3)
  setState(node.store, STATE.lastMaintenanceDay, TODAY - 1)
  // As after a load whose snapshot had its maintenance later than the shard.
  setState(node.store, STATE.droppedBefore, TODAY + 2)
  const copy = copyOf(node)
  for (const each of [node, copy]) raiseFeatureLevel(each)

  expect([node, copy].map((each) => setNight(each, 'p', TODAY + 1).error)).toEqual(['', ''])
  expectSame(node, copy)
})

test('set-time used to depend on days without nights, which snapshots omit', () => {
  const node = nodeAtLevel1()
  setProperty(node, 'p', 's1')
  setProperty(node, 'q', 's2')
  setNight(node, 'q', TODAY)
  node.day += 60
  setNight(node, 'p', addOneYear(node.day))
  ask(node, 'DELSEGMENT', { segment: 's1' })
  const copy = copyOf(node)
  for (const each of [node, copy]) setTime(each, TODAY)

  expect(lastSetTime(copy.store.memory)).toEqual(lastSetTime(node.store.memory))
  expectSame(node, copy)
  // The day that the slot kept is no obstacle.
  for (const each of [node, copy]) expect(setNight(each, 'q', addOneYear(TODAY + 60) - 384).error).toBe('')
  expectSame(node, copy)
})

test('a displaced night used to reappear after set-time on replicas that had it in memory', () => {
  const node = nodeAtLevel1()
  setProperty(node, 'p')
  setProperty(node, 'q', 's2')
  setNight(node, 'p', TODAY + 2)
  node.day += 60
  setNight(node, 'q', TODAY + 2 + 384)
  const copy = copyOf(node)
  for (const each of [node, copy]) setTime(each, TODAY)

  const night = { propertyId: 'p', roomType: 'r', date: formatDay(TODAY + 2), amount: 3 }
  expect([node, copy].map((each) => ask(each, 'SETROOMAVL', night).error)).toEqual(['NOT_FOUND', 'NOT_FOUND'])
  expectSame(node, copy)
})

test('a bulk load with nights beyond the ring of days used to end every replica at a later write', () => {
  const source = createNodeInMemory(TODAY + 40)
  raiseFeatureLevel(source)
  setProperty(source, 'p')
  setNight(source, 'p', addOneYear(source.day))
  const shard = nodeAtLevel1()
  setProperty(shard, 'a')
  setNight(shard, 'a', TODAY)
  const loaded = copyOf(source)
  putBackState(loaded.store, keptStateOf(shard.store))
  loaded.day = TODAY

  expect(setNight(loaded, 'p', addOneYear(source.day) - 384).error).toBe('')
  expectSame(loaded, copyOf(loaded))
})

test('segments deleted and recreated without a pause used to be freed twice when memory ran short', () => {
  const store = createStore({ memoryBytes: 24 << 20, readers: 2, scratchBytes: 2 << 20, sessionBytesMax: 64 << 20 })
  const node = nodeOver(store, TODAY)
  raiseFeatureLevel(node)
  setMemoryBudget(node, memoryBudgetOf(store))
  const amenities = Array.from({ length: 20 }, (_, i) => `amenity${i}`)

  for (let cycle = 0; cycle < 10; cycle++) {
    for (let i = 0; i < 9_000; i++) expect(setProperty(node, `b${i}`, 'big', { amenities }).error).toBe('')
    expect(ask(node, 'DELSEGMENT', { segment: 'big' }).code).toBe(OUTCOME.done)
  }
  expect(countsOf(store.memory).properties).toBe(0)
})

test('nights can use the memory of removed properties and sessions: memory used to be short with half of it free', () => {
  const store = createStore({ memoryBytes: 24 << 20, readers: 2, scratchBytes: 2 << 20, sessionBytesMax: 64 << 20 })
  const node = nodeOver(store, TODAY)
  raiseFeatureLevel(node)
  setMemoryBudget(node, memoryBudgetOf(store))
  const amenities = Array.from({ length: 20 }, (_, i) => `amenity${i}`)
  for (let i = 0; i < 400; i++) setProperty(node, `k${i}`, `k${i}`)
  for (let i = 0; setProperty(node, `b${i}`, 'big', { amenities }).code === OUTCOME.done; i++);
  const night = { propertyId: 'k0', roomType: 'r', date: formatDay(TODAY) }
  for (let i = 0; i < 14_000; i++) ask(node, 'DELROOMDAY', { ...night, ...keyOf(i) })
  ask(node, 'DELSEGMENT', { segment: 'big' })

  let refused = false
  for (let i = 0; i < 400 && !refused; i++) {
    for (let day = 0; day < 360 && !refused; day++) refused = setNight(node, `k${i}`, TODAY + day).code !== OUTCOME.done
  }
  expect(refused).toBe(true)
  expect(setKeyed(node, 13_999).error).not.toBe('')
})
