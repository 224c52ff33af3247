/**
 * How long does a selective search wait behind broad ones of its serving thread, with and without slices? And what do
 * slices cost a selective search that has the thread to itself?
 *
 * A real serving thread: one connection keeps broad searches in flight, another sends one selective search after the
 * other. Broad: a scan of all prices, and a search around a position, which checks each row's property.
 *
 * The floor of the waits is a thread that echoes a byte between turns of the same length in which it does nothing.
 *
 *   node engine/src/tcp/deferred.bench.ts [--rows N] [--json]
 */

import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { assert, dayOf, formatDay } from '@vacancy/shared'
import { encodeRequest, type RequestFields } from '@vacancy/shared/wire'
import { answerTo, closeClient, openClient, readAnswer, succeed, type WireClient } from '@vacancy/testkit/node'
import { createSearcher, runSearch, SLICE_WORK } from '../search/search.ts'
import { createStore, scratchOf } from '../store/store.ts'
import { type NodeInMemory, nodeOver } from '../testing/node-in-memory.ts'
import { plainPutWord } from '../testing/search-reference.ts'
import { startServingThread } from '../testing/serving-thread.ts'
import { fillSynthetic, SYNTHETIC_CODECS } from '../testing/synthetic.ts'
import { openRequest } from './dispatch.ts'

const { values: flags } = parseArgs({
  options: { rows: { type: 'string', default: '500000' }, json: { type: 'boolean', default: false } },
})
const ROWS = Number(flags.rows)
const SAMPLES = 2_000
/** Broad searches in flight at any time. */
const BROAD_ON_WAY = 4
const ROUNDS = 9
const SEARCHES_OF_ROUND = 2_000
const WITHOUT = Number.POSITIVE_INFINITY

const today = dayOf(Date.now())
const stay = { roomType: 'room_00000', dates: [1, 2, 3].map((i) => formatDay(today + i)) }
/** No price is that low, and no property is there: both check every row. */
const BROAD: { readonly [name: string]: RequestFields } = {
  'price scan': { ...stay, segment: 'segment_00000', finalPrice: 39 },
  'around a position': { ...stay, segment: 'segment_00000', latitude: -40, longitude: -10 },
}
const SELECTIVE: RequestFields = {
  ...stay,
  segment: 'segment_00000',
  propertyType: 'villa',
  category: 'luxury',
  stars: 5,
  area: 'area_00007',
  limit: 20,
}

function fill(): NodeInMemory {
  const store = createStore({ memoryBytes: 2 ** 31, readers: 2, scratchBytes: 16 << 20, sessionBytesMax: 1 << 20 })
  fillSynthetic(store, plainPutWord(store.memory), {
    segments: 1,
    propertiesPerSegment: ROWS,
    roomTypes: 1,
    nights: 4,
    firstDay: today,
    ordered: true,
    seed: 1,
  })
  return nodeOver(store, today)
}

const results: { [name: string]: number } = {}
function report(name: string, value: number, unit: string): void {
  results[name] = value
  if (!flags.json) process.stdout.write(`${name.padEnd(60)} ${value.toFixed(3).padStart(10)} ${unit}\n`)
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}

/** Keeps broad searches in flight until stopped. @returns how many were answered, and how long one took */
function crowd(client: WireClient, fields: RequestFields) {
  const state = { isStopped: false, answered: 0, milliseconds: 0 }
  const one = async () => {
    while (!state.isStopped) {
      const correlationId = client.nextId++
      const started = performance.now()
      const answer = answerTo(client, correlationId)
      client.socket.write(encodeRequest({ command: 'SEARCHAVAIL', correlationId, fields }))
      assert(readAnswer(client, 'SEARCHAVAIL', await answer).ok, 'a broad search is answered')
      state.answered++
      state.milliseconds += performance.now() - started
    }
  }
  const all = Array.from({ length: BROAD_ON_WAY }, one)
  return {
    async stop() {
      state.isStopped = true
      await Promise.all(all)
      return state
    },
  }
}

async function measure(
  node: NodeInMemory,
  name: string,
  searchSliceWork: number,
  broad?: RequestFields,
): Promise<void> {
  const thread = await startServingThread({ isStandalone: true, searchSliceWork, node })
  const client = await openClient(thread, { codecs: SYNTHETIC_CODECS.names })
  const crowded = await openClient(thread, { codecs: SYNTHETIC_CODECS.names })
  for (let n = 0; n < SAMPLES; n++) await succeed(client, 'SEARCHAVAIL', SELECTIVE)
  const others = broad && crowd(crowded, broad)
  const waits: number[] = []
  for (let n = 0; n < SAMPLES; n++) {
    const started = performance.now()
    await succeed(client, 'SEARCHAVAIL', SELECTIVE)
    waits.push(performance.now() - started)
  }
  const done = await others?.stop()
  waits.sort((a, b) => a - b)
  report(`${name}: selective p50`, at(waits, 0.5), 'ms')
  report(`${name}: selective p99`, at(waits, 0.99), 'ms')
  if (done) report(`${name}: broad, ${BROAD_ON_WAY} on their way, mean`, done.milliseconds / done.answered, 'ms')
  closeClient(client)
  closeClient(crowded)
  await thread.stop()
}

/** Microseconds of a selective search in a thread of its own, by what it may be cut into. */
function costs(node: NodeInMemory): void {
  const dispatcher = node.dispatchers[0]
  assert(dispatcher !== undefined, 'a node has a dispatcher')
  const variants = [WITHOUT, SLICE_WORK].map((sliceWork) => {
    const searcher = createSearcher({ ...dispatcher.searcher, codecs: node.codecs, monotonicMs: () => 0, sliceWork })
    return { dispatcher: { ...dispatcher, searcher, values: searcher.values }, micros: [] as number[] }
  })
  const payload = encodeRequest({ command: 'SEARCHAVAIL', correlationId: 1, fields: SELECTIVE }).subarray(9)
  const place = scratchOf(node.store.memory, 0) + 16_384
  for (let round = 0; round < ROUNDS * 2; round++) {
    const { dispatcher: own, micros } = variants[round % 2] as (typeof variants)[0]
    const started = performance.now()
    for (let n = 0; n < SEARCHES_OF_ROUND; n++) {
      openRequest(own, payload, 0, payload.length)
      runSearch(own.searcher, true, 1, place, place + (1 << 20), 0)
    }
    micros.push(((performance.now() - started) * 1000) / SEARCHES_OF_ROUND)
  }
  for (const [n, { micros }] of variants.entries()) {
    micros.sort((a, b) => a - b)
    report(`selective alone, ${n === 0 ? 'never cut' : 'may be cut'}, median of ${ROUNDS}`, at(micros, 0.5), 'µs')
  }
}

/** About the time of a slice on the machines where SLICE_WORK was chosen. */
const FLOOR_TURN_MS = 0.25

/** The thread of the floor: as busy as one with broad searches, without their work. */
function busyEcho(): void {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('data', (bytes) => socket.write(bytes))
    socket.on('close', () => process.exit())
  })
  const turn = () => {
    const end = performance.now() + FLOOR_TURN_MS
    while (performance.now() < end);
    setImmediate(turn)
  }
  server.listen(0, '127.0.0.1', () => {
    parentPort?.postMessage((server.address() as AddressInfo).port)
    turn()
  })
}

async function measureFloor(): Promise<void> {
  const thread = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) })
  const [port] = (await once(thread, 'message')) as [number]
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const waits: number[] = []
  for (let n = 0; n < 2 * SAMPLES; n++) {
    const started = performance.now()
    const echoed = once(socket, 'data')
    socket.write('.')
    await echoed
    if (n >= SAMPLES) waits.push(performance.now() - started)
  }
  waits.sort((a, b) => a - b)
  report(`echo beside turns of ${FLOOR_TURN_MS} ms without work: p50`, at(waits, 0.5), 'ms')
  report(`echo beside turns of ${FLOOR_TURN_MS} ms without work: p99`, at(waits, 0.99), 'ms')
  const ended = once(thread, 'exit')
  socket.destroy()
  await ended
}

if (isMainThread) await main()
else busyEcho()

async function main(): Promise<void> {
  const node = fill()
  costs(node)
  await measureFloor()
  await measure(node, 'no broad search', SLICE_WORK)
  for (const [name, fields] of Object.entries(BROAD)) {
    await measure(node, `${name}, in one go`, WITHOUT, fields)
    await measure(node, `${name}, in slices`, SLICE_WORK, fields)
  }
  await measureFloor()
  if (flags.json) process.stdout.write(`${JSON.stringify(results)}\n`)
}
