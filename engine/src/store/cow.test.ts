import { formatDay, parseDay } from '@vacancy/shared'
import type { CommandName } from '@vacancy/shared/wire'
import { seeded, tries } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import {
  applyOwn,
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  orderRows,
  raiseFeatureLevel,
  SAMPLE_CODECS,
} from '../testing/node-in-memory.ts'
import { KIND, writeU8, writeU32 } from './command.ts'
import { beginCopyOnWrite, endCopyOnWrite, lacksSparePages, readAtEpoch, spareBytes, touch } from './cow.ts'
import { PAGE_BYTES, SEGMENT, STATE_BYTES, STATE_START, TABLE } from './layout.ts'
import { forEachSegment } from './recount.ts'
import { forEachTable } from './segment.ts'
import { createStore, publish, type Store } from './store.ts'
import { field } from './table-fields.ts'
import { GAP_REASON, sweepOne } from './window.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const TODAY = parseDay('2026-11-20') as number
const NIGHTS = 4

/** What a snapshot may read: the state, records and planes. */
function rangesOf({ writer }: Store): (readonly [address: number, end: number])[] {
  const { gap, spare, recordsStart } = writer
  return [
    [STATE_START, STATE_START + STATE_BYTES],
    [recordsStart, gap.low],
    [gap.high, spare.start],
  ]
}

/** The versions of tables are for readers. A snapshot does not use them, so they are changed without a copy. */
function eraseVersions(tables: readonly number[], from: number, bytes: Uint8Array): void {
  for (const table of tables) {
    const at = table + TABLE.version - from
    if (at >= 0 && at < bytes.length) bytes.fill(0, at, at + 4)
  }
}

function tablesOf({ memory }: Store): number[] {
  const tables: number[] = []
  forEachSegment(memory, (segment) => {
    tables.push(field(memory, segment + SEGMENT.propertyTable))
    forEachTable(memory, segment, (table) => tables.push(table))
  })
  return tables
}

/** Runs an operation in an epoch of its own. @returns whether a snapshot still reads every byte as it was before */
function preserves(store: Store, operation: () => void): boolean {
  const { memory } = store
  const before = rangesOf(store).map(([from, end]) => ({ from, bytes: memory.u8.slice(from, end) }))
  const tables = tablesOf(store)
  const epoch = beginCopyOnWrite(store)
  operation()
  const isPreserved = before.every(({ from, bytes }) => {
    const read = new Uint8Array(bytes.length)
    const isWhole = readAtEpoch(memory, epoch, from, bytes.length, read, 0)
    eraseVersions(tables, from, read)
    eraseVersions(tables, from, bytes)
    return isWhole && Buffer.compare(read, bytes) === 0
  })
  endCopyOnWrite(store)
  return isPreserved
}

type Operation = readonly [name: string, run: () => void]

function drawOperation(node: NodeInMemory, random: () => number): Operation {
  const below = (limit: number) => Math.floor(random() * limit)
  const send = (command: CommandName, fields: LooseFields): Operation => [
    command,
    () => void ask(node, command, fields),
  ]
  // Most properties are of one segment, whose tables get bitmaps.
  const segment = below(8) === 0 ? 'small' : 'large'
  const propertyId = `p${below(500)}`
  const roomType = below(8) === 0 ? 'single' : 'double'
  const at = { propertyId, roomType, date: formatDay(node.day + below(NIGHTS)) }
  const kind = below(100)
  if (kind < 35) {
    const amenities = Array.from({ length: below(4) }, () => `amenity${below(6)}`)
    const names = { area: `area${below(5)}`, propertyType: `type${below(3)}`, category: `category${below(3)}` }
    const place = { latitude: random() * 90, longitude: random() * 90, stars: 1 + below(5) }
    return send('SETPROP', { propertyId, segment, ...names, ...place, amenities })
  }
  if (kind < 70) {
    const rateFeatures = SAMPLE_CODECS.slice(below(SAMPLE_CODECS.length))
    return send('SETROOMPKG', { ...at, availability: below(9), finalPrice: below(500), rateFeatures })
  }
  if (kind < 74) return send('SETROOMAVL', { ...at, amount: below(9), ...requestKey(below(40), below(3)) })
  if (kind < 77) return send('INCROOMAVL', { ...at, amount: 1, ...requestKey(below(40), below(3)) })
  if (kind < 80) return send('DECROOMAVL', { ...at, amount: 1 })
  if (kind < 83) return send('DELROOMDAY', at)
  if (kind < 85) return send('DELPROPDAY', { propertyId, date: at.date })
  if (kind < 88) return send('DELPROPROOM', { propertyId, roomType })
  if (kind < 92) return send('DELPROP', { propertyId })
  if (kind < 94) return ['order rows', () => void orderRows(node, segment, below(2) === 0 ? roomType : undefined)]
  if (kind < 95 && below(4) === 0) return send('DELSEGMENT', { segment: 'small' })
  if (kind < 96 && below(4) === 0) {
    return [
      'drop a day',
      () => {
        node.day++
        applyOwn(node, KIND.dropBefore, (writer) => {
          writeU32(writer, node.day)
          writeU8(writer, GAP_REASON.none)
        })
      },
    ]
  }
  return [
    'sweep',
    () => {
      sweepOne(node.store)
      publish(node.store, node.index)
    },
  ]
}

function requestKey(session: number, number: number): LooseFields {
  return { session: session.toString(16).padStart(32, '0'), requestNumber: BigInt(number + 1) }
}

test(`a snapshot reads the state of its first moment, whatever one operation changes (VACANCY_SEED=${SEED})`, () => {
  const random = seeded(SEED)
  const node = createNodeInMemory(TODAY, 40 << 20)
  // First without epochs, so that tables have bitmaps.
  for (let i = 0; i < tries(1500); i++) drawOperation(node, random)[1]()
  for (let i = 0; i < tries(2500); i++) {
    if (i === tries(1000)) raiseFeatureLevel(node)
    const [name, run] = drawOperation(node, random)
    if (!preserves(node.store, run)) expect.fail(`operation ${i}, ${name}, changed a page that was not copied`)
  }
})

const start = () => {
  const store = createStore({ memoryBytes: 24 << 20, readers: 1, scratchBytes: 4096, sessionBytesMax: 0 })
  const { gap } = store.writer
  // Pages of the gap need no copies.
  gap.low += 8 * PAGE_BYTES
  return { store, page: Math.ceil(store.writer.recordsStart / PAGE_BYTES) * PAGE_BYTES }
}

test('the pages of a range are copied once each, and no others', () => {
  const { store, page } = start()
  const { spare } = store.writer
  touch(store, page, 1)
  expect(spare.used).toBe(0)
  beginCopyOnWrite(store)

  const copied = [
    [page + PAGE_BYTES - 1, 1],
    [page, PAGE_BYTES],
    [page + PAGE_BYTES - 1, 2],
    [page + 2 * PAGE_BYTES, 2 * PAGE_BYTES],
    [page + 2 * PAGE_BYTES, 2 * PAGE_BYTES + 1],
  ].map(([address, bytes]) => {
    touch(store, address as number, bytes as number)
    return spare.used
  })

  expect(copied).toEqual([1, 1, 2, 4, 5])
  expect(spare.copied).toBe(5)
})

test('pages of the gap are not copied', () => {
  const { store } = start()
  const { gap, spare } = store.writer
  beginCopyOnWrite(store)
  const first = Math.ceil(gap.low / PAGE_BYTES) * PAGE_BYTES
  const end = Math.floor(gap.high / PAGE_BYTES) * PAGE_BYTES

  touch(store, first, PAGE_BYTES)
  touch(store, end - PAGE_BYTES, PAGE_BYTES)
  expect(spare.used).toBe(0)
  touch(store, first - 1, 1)
  expect(spare.used).toBe(1)
})

test('without a spare page the snapshot is aborted, and the next one may succeed', () => {
  const { store, page } = start()
  const { spare } = store.writer
  const epoch = beginCopyOnWrite(store)
  const reads = () => readAtEpoch(store.memory, epoch, page, 8, new Uint8Array(8), 0)
  spare.used = spare.pages - 1
  touch(store, page, 1)
  expect(reads()).toBe(true)

  touch(store, page + PAGE_BYTES, 1)

  expect(reads()).toBe(false)
  expect(store.writer).toMatchObject({ copyOnWrite: false, spare: { failed: true, used: 0 } })
  expect(preserves(store, () => touch(store, page, 1))).toBe(true)
  expect(spare.failed).toBe(false)
})

test('updates wait for a snapshot that has fewer than 64 spare pages left', () => {
  const { store } = start()
  const { spare } = store.writer
  expect(spare.pages).toBe(spareBytes(24 << 20) / PAGE_BYTES)
  expect(spare.pages).toBeGreaterThan(128)
  spare.used = spare.pages
  expect(lacksSparePages(store)).toBe(false)
  beginCopyOnWrite(store)
  spare.used = spare.pages - 64
  expect(lacksSparePages(store)).toBe(false)
  spare.used++
  expect(lacksSparePages(store)).toBe(true)
})

test.each([
  [1 << 20, 1 << 20],
  [16 << 20, 1 << 20],
  [32 << 20, 2 << 20],
  [2 ** 32, 256 << 20],
  [2 ** 33, 256 << 20],
  [(32 << 20) + 16 * (PAGE_BYTES - 1), 2 << 20],
])('a store of %i bytes has %i of spare pages', (memoryBytes, bytes) => {
  expect(spareBytes(memoryBytes)).toBe(bytes)
})
