import { Worker } from 'node:worker_threads'
import { formatDay, parseDay } from '@vacancy/shared'
import { seeded } from '@vacancy/testkit/random'
import { afterEach, expect, test } from 'vitest'
import { ask, nodeOver, raiseFeatureLevel } from '../testing/node-in-memory.ts'
import { READER, type StaysReaderOptions } from '../testing/stays-reader.ts'
import { createStore } from './store.ts'

const TODAY = parseDay('2026-11-20') as number
const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))
/** More than a reader compares at once, so that it spends time between the nights of a stay. */
const PROPERTIES = 200
const NIGHTS = 30
const ROOMS = 100
const READER_SLOT = 2
const PLACE = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
const BURST = 50
/** Replies that differ from the one before: so often the reader met a change. */
const CHANGES_MIN = 150
const STAYS_MAX = 100_000

const workers: Worker[] = []
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.terminate()))
})

/** Books and releases stays beside the reader. @returns what the reader found, and how often replies changed */
async function runBesideReader() {
  const size = { memoryBytes: 128 << 20, readers: READER_SLOT + 1, scratchBytes: 4 << 20, sessionBytesMax: 1 << 20 }
  const node = nodeOver(createStore(size), TODAY)
  raiseFeatureLevel(node)
  const random = seeded(SEED)
  const dates = Array.from({ length: NIGHTS }, (_, n) => formatDay(TODAY + 1 + n))
  for (let n = 0; n < PROPERTIES; n++) {
    ask(node, 'SETPROP', { ...PLACE, propertyId: `p${n}`, amenities: [] })
    for (const date of dates) {
      ask(node, 'SETROOMPKG', { propertyId: `p${n}`, roomType: 'r', date, availability: ROOMS, finalPrice: 10 })
    }
  }
  const cells = new SharedArrayBuffer(READER.cells * 4)
  const options: StaysReaderOptions = {
    memory: node.store.memory.wasm,
    reader: READER_SLOT,
    today: TODAY,
    segment: PLACE.segment,
    roomType: 'r',
    dates: [dates[0] as string, dates[NIGHTS - 1] as string],
    cells,
  }
  const worker = new Worker(new URL('../testing/stays-reader.ts', import.meta.url), { workerData: options })
  workers.push(worker)
  let isOver = false
  const found = new Promise<string>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  }).finally(() => {
    isOver = true
  })
  // Awaited below; until then a failure of the reader only ends the loop.
  found.catch(() => {})
  const seen = new Int32Array(cells)
  let stays = 0
  while (!isOver && Atomics.load(seen, READER.changes) < CHANGES_MIN && stays < STAYS_MAX) {
    for (let n = 0; n < BURST; n++) {
      const stayId = `stay-${stays++}`
      const propertyId = `p${Math.floor(random() * PROPERTIES)}`
      const lines = [
        { propertyId, roomType: 'r', arrival: dates[0], nights: NIGHTS, rooms: 1 + Math.floor(random() * 3) },
      ]
      ask(node, 'BOOKSTAY', { stayId, lines })
      ask(node, 'RELEASESTAY', { stayId })
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  Atomics.store(seen, READER.stop, 1)
  return { found: await found, changes: Atomics.load(seen, READER.changes), stays }
}

test(`a thread that searches beside bookings never sees two nights of a stay differ (VACANCY_SEED=${SEED})`, async () => {
  const { found, changes } = await runBesideReader()

  expect(found).toBe('')
  expect(changes).toBeGreaterThanOrEqual(CHANGES_MIN)
}, 240_000)
