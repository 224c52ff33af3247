/** Memory that is short: what is given up first, how far compaction goes, and when the store fails. */

import { beforeEach, describe, expect, test } from 'vitest'
import { release } from './arena.ts'
import { PAGE_BYTES, STATE_BYTES, STATE_START } from './layout.ts'
import {
  allocatePlane,
  allocateRecord,
  clearStore,
  createStore,
  onMemoryShort,
  type Store,
  scratchOf,
} from './store.ts'
import { enter, leave, retire } from './version.ts'

const MEMORY_BYTES = 8 << 20
const KIB = 1024
const store = createStore({ memoryBytes: MEMORY_BYTES, readers: 2, scratchBytes: 100, sessionBytesMax: 0 })
const { memory, writer } = store

let calls: string[] = []
let act: { readonly [name: string]: () => void } = {}
const note = (name: string, zone?: number) => {
  calls.push(zone === undefined ? name : `${name} ${zone}`)
  act[name]?.()
}
onMemoryShort({
  dropGrowth: () => note('dropGrowth'),
  dropIndexCopy: () => note('dropIndexCopy'),
  freeGarbage: () => note('freeGarbage'),
  movePlanes: (_, zone) => note('movePlanes', zone),
  moveSessions: (_, zone) => note('moveSessions', zone),
})
const FIRST = ['dropGrowth', 'dropIndexCopy', 'freeGarbage']

beforeEach(() => {
  clearStore(store)
  writer.holdsSession = false
  calls = []
  act = {}
})

/** Takes the whole gap: a block of so many bytes first, then the rest. @returns the block */
function fill(bytes: number): number {
  const block = allocatePlane(store, bytes)
  allocatePlane(store, (writer.gap.high - writer.gap.low) & ~15)
  const rest = writer.gap.high - writer.gap.low
  if (rest > 0) allocateRecord(store, rest)
  return block
}

test('the parts of the memory follow each other', () => {
  const pages = MEMORY_BYTES / PAGE_BYTES
  const { pageEpochs, pageSpares } = memory
  expect(pageEpochs * 4).toBe(STATE_START + STATE_BYTES)
  expect(pageSpares - pageEpochs).toBe(pages)
  expect(scratchOf(memory, 0)).toBe(Math.ceil(((pageSpares + pages) * 4) / PAGE_BYTES) * PAGE_BYTES)
  expect(scratchOf(memory, 1)).toBe(scratchOf(memory, 0) + PAGE_BYTES)
  expect(writer.recordsStart).toBe(scratchOf(memory, 1) + PAGE_BYTES)
  expect(writer.gap).toEqual({ low: writer.recordsStart, high: writer.spare.start })
})

describe('when no block is free', () => {
  test.each(FIRST)('the store first gives up what is not part of its state: %s is enough', (name) => {
    const block = fill(512)
    act = { [name]: () => retire(store, true, block, 512) }
    expect(allocatePlane(store, 512)).toBe(block)
    expect(calls).toEqual(FIRST)
  })

  test('planes get a hole of the records before anything moves', () => {
    const hole = allocateRecord(store, 1024)
    allocateRecord(store, 8)
    fill(16)
    release(writer.records, hole, 1024)
    expect(allocatePlane(store, 1008)).toBe(Math.ceil(hole / 16) * 16)
    expect(calls).toEqual(FIRST)
  })

  test('compaction takes four times as much in each step, until the block fits', () => {
    const block = fill(4096)
    let steps = 0
    const free = () => {
      if (++steps === 3) retire(store, true, block, 4096)
    }
    act = { movePlanes: free }
    expect(allocatePlane(store, 4096)).toBe(block)
    const zones = [1, 4, 16].map((factor) => (4096 + 256 * KIB) * factor)
    expect(calls).toEqual([...FIRST, ...zones.flatMap((zone) => [`moveSessions ${zone}`, `movePlanes ${zone}`])])
  })

  test('sessions stay where they are while a command holds one', () => {
    const block = fill(64)
    writer.holdsSession = true
    act = { movePlanes: () => release(writer.planes, block, 64) }
    expect(allocatePlane(store, 64)).toBe(block)
    expect(calls).toEqual([...FIRST, `movePlanes ${64 + 256 * KIB}`])
  })

  test('records get what sessions leave', () => {
    const block = allocateRecord(store, 64)
    fill(16)
    act = { moveSessions: () => release(writer.records, block, 64) }
    expect(allocateRecord(store, 64)).toBe(block)
    expect(calls.slice(3)).toEqual(
      [64, 64].map((bytes, n) => `${['moveSessions', 'movePlanes'][n]} ${bytes + 256 * KIB}`),
    )
  })

  test('the last step covers all planes, then the store fails with its figures', () => {
    fill(16)
    const all = writer.planes.origin - writer.gap.high
    const used = writer.planes.usedBytes + writer.records.usedBytes
    let error: unknown
    try {
      allocatePlane(store, 256 * KIB)
    } catch (caught) {
      error = caught
    }
    expect(error).toMatchObject({ code: 'memory_exhausted' })
    expect(String((error as Error).message)).toContain(String(used))
    const zones: number[] = []
    for (let zone = 512 * KIB; ; zone *= 4) {
      zones.push(zone)
      if (zone >= all) break
    }
    expect(calls).toEqual([...FIRST, ...zones.flatMap((zone) => [`moveSessions ${zone}`, `movePlanes ${zone}`])])
  })
})

test('memory of a reader is free after it has left, for which the store waits', () => {
  const block = fill(256)
  let waits = 0
  const waiting: Store = {
    ...store,
    memory: {
      ...memory,
      get fence() {
        if (++waits === 3) leave(memory, 1)
        return memory.fence
      },
    },
  }
  enter(memory, 1)
  act = { freeGarbage: () => retire(store, true, block, 256) }
  expect(allocatePlane(waiting, 256)).toBe(block)
  expect(waits).toBe(3)
  expect(calls).toEqual(FIRST)
})

test('a cleared store has no trace of its content', () => {
  const expected = { gap: { ...writer.gap }, used: [0, 0] }
  const record = allocateRecord(store, 4000)
  const plane = allocatePlane(store, 4000)
  memory.u8.fill(1, record, record + 4000)
  memory.u8.fill(1, plane, plane + 4000)
  retire(store, true, plane, 4000)
  Object.assign(writer.spare, { used: 3, failed: true })
  Object.assign(writer, { deletedRows: 4, goneProperties: 5, growing: {}, indexCopy: {} })
  writer.sessions.set(1 as never, 1 as never)
  for (const list of [writer.sweep, writer.deleted, writer.unsummed]) list.push(7 as never)

  clearStore(store)

  const { records, planes, limbo } = writer
  expect({ gap: writer.gap, used: [records.usedBytes, planes.usedBytes] }).toEqual(expected)
  expect(limbo).toEqual({ addresses: [], sizes: [], planes: [], epochs: [], head: 0 })
  expect(writer.spare).toMatchObject({ used: 0, failed: false })
  expect(writer).toMatchObject({ deletedRows: 0, goneProperties: 0, sweep: [], deleted: [], unsummed: [] })
  expect([writer.growing, writer.indexCopy, writer.sessions.size]).toEqual([undefined, undefined, 0])
  expect(memory.u8.subarray(record, record + 4000).every((byte) => byte === 0)).toBe(true)
  expect(memory.u8.subarray(plane, plane + 4000).every((byte) => byte === 0)).toBe(true)
})
