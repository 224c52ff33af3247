/**
 * Time of one search over cold planes, and the memory bandwidth that a scan reaches (docs/design/testing.md#targets,
 * rows 2 and 3).
 *
 * Data: segments of 25,000 properties, enough of them that the planes far exceed the caches. Each search uses another
 * segment and other nights. Baseline of the scan in the same run: the reference in TypeScript.
 *
 *   node engine/src/search/kernel.bench.ts [--full]
 */

import { parseArgs } from 'node:util'
import { assert, formatDay } from '@vacancy/shared'
import { encodeRequest, type RequestFields } from '@vacancy/shared/wire'
import { seeded } from '@vacancy/testkit/random'
import { createStore, scratchOf } from '../store/store.ts'
import { createDispatcher, openRequest } from '../tcp/dispatch.ts'
import { slabAreaBytes } from '../tcp/slabs.ts'
import { referenceKernels } from '../testing/search-reference.ts'
import { fillSynthetic, SYNTHETIC_CODECS } from '../testing/synthetic.ts'
import { loadKernels } from '../threads/kernels.ts'
import { createProposals } from '../threads/writes.ts'
import { createSearcher, runSearch, type Searcher } from './search.ts'

const { values: flags } = parseArgs({
  options: { full: { type: 'boolean', default: false }, json: { type: 'boolean' } },
})
const PROPERTIES = 25_000
const SEGMENTS = flags.full ? 40 : 16
const NIGHTS = flags.full ? 60 : 40
const ROUNDS = 4000
const TODAY = Math.floor(Date.now() / 86_400_000)
const SLAB = 1 << 20
type Filters = RequestFields

function build(propertiesPerSegment: number, segments: number) {
  const store = createStore({
    memoryBytes: 2 ** 32,
    readers: 2,
    scratchBytes: 16_384 + slabAreaBytes(SLAB, 1),
    sessionBytesMax: 1 << 20,
  })
  const kinds = [loadKernels(store.memory), referenceKernels(store.memory)] as const
  fillSynthetic(store, kinds[0].put, {
    segments,
    propertiesPerSegment,
    roomTypes: 1,
    nights: NIGHTS,
    firstDay: TODAY,
    ordered: true,
    seed: 1,
  })
  return kinds.map((kernels, reader) =>
    createSearcher({
      memory: store.memory,
      reader,
      parameters: scratchOf(store.memory, reader),
      kernels,
      limits: { datesMax: 14, calendarDays: 92, queryLimit: 1000 },
      codecs: SYNTHETIC_CODECS,
      monotonicMs: () => performance.now(),
    }),
  )
}

function queries(count: number, segments: number, make: (random: () => number) => Filters, seed = 7): Uint8Array[] {
  const random = seeded(seed)
  return Array.from({ length: count }, () => {
    const first = Math.floor(random() * (NIGHTS - 3))
    const fields = {
      segment: `segment_${String(Math.floor(random() * segments)).padStart(5, '0')}`,
      roomType: 'room_00000',
      dates: [0, 1, 2].map((i) => formatDay(TODAY + first + i)),
      ...make(random),
    }
    return encodeRequest({ command: 'SEARCHAVAIL', correlationId: 1, fields }).subarray(9)
  })
}

function measure(
  searcher: Searcher,
  payloads: readonly Uint8Array[],
  warming: readonly Uint8Array[],
): { micros: number; examined: number } {
  const dispatcher = createDispatcher({
    searcher,
    codecs: SYNTHETIC_CODECS,
    proposals: createProposals(),
    wallMs: () => Date.now(),
  })
  const at = scratchOf(searcher.memory, searcher.reader) + 16_384
  let examined = 0
  const run = (payload: Uint8Array) => {
    assert(openRequest(dispatcher, payload, 0, payload.length) !== undefined, 'the query is right')
    assert(runSearch(searcher, true, 1, at, at + SLAB, 0) > 0, 'the reply fits')
    examined += searcher.examined
  }
  for (const payload of warming) run(payload)
  examined = 0
  const started = performance.now()
  for (const payload of payloads) run(payload)
  const micros = ((performance.now() - started) * 1000) / payloads.length
  return { micros, examined: examined / payloads.length }
}

const results: { [name: string]: number } = {}
const TYPES = ['apartment', 'guesthouse', 'hostel', 'hotel', 'motel', 'resort', 'villa']
const pick = <T>(list: readonly T[], random: () => number) => list[Math.floor(random() * list.length)] as T
const broad = (random: () => number): Filters => ({ propertyType: pick(TYPES, random), finalPrice: 180, limit: 300 })
const selective = (random: () => number): Filters => ({
  propertyType: pick(TYPES, random),
  category: pick(['budget', 'luxury', 'premium', 'standard'], random),
  stars: 1 + Math.floor(random() * 5),
  finalPrice: 180,
})

const [kernel] = build(PROPERTIES, SEGMENTS)
for (const [name, make] of [
  ['300 hits', broad],
  ['selective', selective],
] as const) {
  // Other nights and rows, so that compiled code is measured over memory that is in no near cache.
  const warming = queries(ROUNDS, SEGMENTS, make, 8)
  results[`ordered, ${name}: kernel`] = measure(kernel as Searcher, queries(ROUNDS, SEGMENTS, make), warming).micros
}

const segments = flags.full ? 10 : 4
const [ofScan, reference] = build(100_000, segments)
const scan = queries(ROUNDS / 10, segments, () => ({ finalPrice: 39 }))
const scanned = measure(ofScan as Searcher, scan, scan.slice(0, 200))
const plain = measure(reference as Searcher, scan.slice(0, 100), scan.slice(0, 200))
// One night suffices to reject every row of 41 and more: the scan reads one plane.
results['price-only scan'] = (scanned.examined * 8) / scanned.micros / 1e3
results['price-only scan: kernel over TypeScript'] = plain.micros / scanned.micros
process.stdout.write(`${JSON.stringify(results)}\n`)
