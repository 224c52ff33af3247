import { VacancyError } from '@vacancy/shared'
import { beforeEach, describe, expect, test } from 'vitest'
import { createNodeInMemory } from '../testing/node-in-memory.ts'
import { allocate } from './arena.ts'
import { CONTROL, PAGE_BYTES, READER_SLOT_BYTES, READER_SLOT_START, READERS_MAX, TABLE } from './layout.ts'
import type { Store } from './memory.ts'
import {
  areReadersOut,
  beginRequest,
  closeStore,
  endRequest,
  enter,
  hasReadersBefore,
  isClosed,
  isUnchanged,
  leave,
  mark,
  openStore,
  reclaim,
  retire,
  unmark,
  versionOf,
} from './version.ts'

const BYTES = 64
const LAST_READER = READERS_MAX - 1

let store: Store
beforeEach(() => {
  store = createNodeInMemory(20_000, 64 << 20).store
  // What its creation left.
  reclaim(store)
})

const epoch = () => store.memory.i32[CONTROL.reclaimEpoch] as number
const usedBytes = () => store.writer.records.usedBytes
/** @returns the bytes in use with the new block */
function allocateAndRetire(): number {
  const address = allocate(store.writer.records, BYTES)
  const used = usedBytes()
  retire(store, false, address, BYTES)
  return used
}

describe('a closed store', () => {
  test('lets no reader enter, and reports when those inside have left', () => {
    enter(store.memory, LAST_READER)
    expect(beginRequest(store.memory, 0)).toBe(true)
    const generation = store.memory.i32[CONTROL.generation] as number
    closeStore(store)

    expect(isClosed(store.memory)).toBe(true)
    expect(store.memory.i32[CONTROL.generation]).toBe(generation + 1)
    expect(() => enter(store.memory, 1)).toThrow(VacancyError)
    expect(beginRequest(store.memory, 1)).toBe(false)
    expect(areReadersOut(store)).toBe(false)
    endRequest(store.memory, 0)
    expect(areReadersOut(store)).toBe(false)
    leave(store.memory, LAST_READER)
    // Neither the reader nor the request that was refused counts as inside.
    expect(areReadersOut(store)).toBe(true)

    openStore(store)
    expect(isClosed(store.memory)).toBe(false)
    expect(beginRequest(store.memory, 1)).toBe(true)
    expect(areReadersOut(store)).toBe(false)
  })

  test('reader slots are limited', () => {
    for (const reader of [-1, READERS_MAX])
      expect(() => enter(store.memory, reader)).toThrow('reader slots are limited')
  })
})

test.each([0, 1, LAST_READER])('reader %i changes the words of its own slot only', (reader) => {
  const { memory } = store
  const before = memory.u8.slice(0, 4 * PAGE_BYTES)
  const view = new DataView(before.buffer)
  const slot = READER_SLOT_START + reader * READER_SLOT_BYTES
  enter(memory, reader)
  beginRequest(memory, reader)
  view.setUint32(slot, epoch(), true)
  view.setUint32(slot + 4, 1, true)
  expect(Buffer.compare(memory.u8.slice(0, 4 * PAGE_BYTES), before)).toBe(0)
  leave(memory, reader)
  endRequest(memory, reader)
  view.setBigUint64(slot, 0n)
  expect(Buffer.compare(memory.u8.slice(0, 4 * PAGE_BYTES), before)).toBe(0)
})

describe('the version of a table', () => {
  const tables = () => [0, 1].map(() => allocate(store.writer.records, 256)) as [number, number]

  test('is odd during a change and even afterwards, and no two tables ever have the same', () => {
    const [one, other] = tables()
    const versions = [one, other, one].map((table) => {
      mark(store, table)
      expect(versionOf(store.memory, table)).toBe(-1)
      unmark(store, table)
      return versionOf(store.memory, table)
    })

    expect(versions.every((version) => version > 0 && version % 2 === 0)).toBe(true)
    expect(new Set(versions).size).toBe(3)
    expect(isUnchanged(store.memory, one, versions[2] as number)).toBe(true)
    expect(isUnchanged(store.memory, one, versions[0] as number)).toBe(false)
  })

  test('changes once when marks nest, and stays odd until the last of them is taken off', () => {
    const [table] = tables()
    mark(store, table)
    mark(store, table)
    const before = store.writer.versions
    unmark(store, table)
    expect(versionOf(store.memory, table)).toBe(-1)
    expect(store.writer.versions).toBe(before)

    unmark(store, table)

    expect(versionOf(store.memory, table)).toBe(before + 2)
    expect(() => unmark(store, table)).toThrow('unmark follows mark')
  })

  test('a reader that compares during a change reads again, even when the version was the highest', () => {
    const [table] = tables()
    store.writer.versions = -4
    mark(store, table)
    unmark(store, table)
    const version = versionOf(store.memory, table)
    expect(version).toBe(2 ** 32 - 2)
    expect(isUnchanged(store.memory, table, version)).toBe(true)

    mark(store, table)
    expect(isUnchanged(store.memory, table, version)).toBe(false)
    unmark(store, table)
    expect(store.memory.i32[(table + TABLE.version) >>> 2]).toBe(0)
    expect(isUnchanged(store.memory, table, version)).toBe(false)
  })
})

describe('a retired block', () => {
  test('is freed when no reader is inside', () => {
    const used = allocateAndRetire()
    expect(usedBytes()).toBe(used)
    const before = epoch()
    reclaim(store)

    expect(usedBytes()).toBe(used - BYTES)
    expect(epoch()).toBe(before + 1)
    // Without retired blocks no epoch begins.
    reclaim(store)
    expect(epoch()).toBe(before + 1)
  })

  test('address 0 is no block', () => {
    retire(store, false, 0, BYTES)
    retire(store, true, 0, BYTES)
    expect(store.writer.limbo.addresses).toEqual([])
  })

  test('waits for the oldest reader, and blocks that were retired before it entered do not', () => {
    enter(store.memory, 3)
    expect(hasReadersBefore(store)).toBe(false)
    const used = allocateAndRetire()
    reclaim(store)
    expect(usedBytes()).toBe(used)
    expect(hasReadersBefore(store)).toBe(true)

    // A later reader does not need it, and the older one still may.
    enter(store.memory, LAST_READER)
    allocateAndRetire()
    reclaim(store)
    expect(usedBytes()).toBe(used + BYTES)
    leave(store.memory, 3)
    reclaim(store)
    expect(usedBytes()).toBe(used)
    leave(store.memory, LAST_READER)
    reclaim(store)

    expect(usedBytes()).toBe(used - BYTES)
    expect(hasReadersBefore(store)).toBe(false)
    expect(store.writer.limbo).toEqual({ addresses: [], sizes: [], planes: [], epochs: [], head: 0 })
  })

  test('returns to the region it is from', () => {
    const { planes, records } = store.writer
    const before = [planes.usedBytes, records.usedBytes]
    retire(store, true, allocate(planes, 4_096), 4_096)
    retire(store, false, allocate(records, BYTES), BYTES)
    reclaim(store)
    expect([planes.usedBytes, records.usedBytes]).toEqual(before)
  })

  test('the list of retired blocks is shortened while a reader keeps the newest', () => {
    const reader = 5
    for (const [count, head] of [
      [65_536, 65_536],
      [65_537, 0],
    ] as const) {
      for (let i = 0; i < count; i++) retire(store, false, allocate(store.writer.records, 8), 8)
      Atomics.store(store.memory.i32, CONTROL.reclaimEpoch, epoch() + 1)
      enter(store.memory, reader)
      allocateAndRetire()
      reclaim(store)
      expect(store.writer.limbo.head).toBe(head)
      expect(store.writer.limbo.addresses.length).toBe(head + 1)
      leave(store.memory, reader)
      reclaim(store)
    }
  })

  test('is freed across the last epoch (it used to stay, and all later ones with it)', () => {
    Atomics.store(store.memory.i32, CONTROL.reclaimEpoch, 0x7fffffff)
    enter(store.memory, 0)
    const used = allocateAndRetire()
    reclaim(store)
    // Epoch 0 would mean that a reader is outside.
    expect(epoch()).toBe(1)
    expect(usedBytes()).toBe(used)
    allocateAndRetire()
    leave(store.memory, 0)
    reclaim(store)
    expect(usedBytes()).toBe(used - BYTES)
  })
})
