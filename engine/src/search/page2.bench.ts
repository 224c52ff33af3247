/**
 * Time of a page in the kernels, beside the unordered search of the same set, in one process
 * (docs/design/search.md#pages).
 *
 *   node engine/src/search/page.bench.ts [--json]
 */

import { parseArgs } from 'node:util'
import { assert, formatDay } from '@vacancy/shared'
import { encodeRequest, type RequestFields } from '@vacancy/shared/wire'
import { seeded } from '@vacancy/testkit/random'
import { createStore, scratchOf } from '../store/store.ts'
import { createDispatcher, openRequest } from '../tcp/dispatch.ts'
import { slabAreaBytes } from '../tcp/slabs.ts'
import { fillSynthetic, SYNTHETIC_CODECS } from '../testing/synthetic.ts'
import { loadKernels } from '../threads/kernels.ts'
import { createProposals } from '../threads/writes.ts'
import { createSearcher, runSearch } from './search.ts'

const { values: flags } = parseArgs({ options: { json: { type: 'boolean', default: false } } })
const [SEGMENTS, PROPERTIES, ROOMS, NIGHTS, ROUNDS] = [6, 25_000, 6, 24, 300]
const TODAY = Math.floor(Date.now() / 86_400_000)
const SLAB = 4 << 20

const store = createStore({
  memoryBytes: 2 ** 31,
  readers: 1,
  scratchBytes: 16_384 + slabAreaBytes(SLAB, 1),
  sessionBytesMax: 1 << 20,
})
const kernels = loadKernels(store.memory)
const shape = { segments: SEGMENTS, propertiesPerSegment: PROPERTIES, roomTypes: ROOMS, nights: NIGHTS }
fillSynthetic(store, kernels.put, { ...shape, firstDay: TODAY, ordered: true, seed: 1 })

/** Time within the kernels, in milliseconds. */
let inKernel = 0
const timed =
  <T extends unknown[], R>(kernel: (...given: T) => R) =>
  (...given: T) => {
    const started = performance.now()
    const result = kernel(...given)
    inKernel += performance.now() - started
    return result
  }
const { pick, sort, emit, tally, overlap, days } = kernels
const searcher = createSearcher({
  memory: store.memory,
  reader: 0,
  parameters: scratchOf(store.memory, 0),
  kernels: {
    search: timed(kernels.search),
    pick: timed(pick),
    sort: timed(sort),
    emit: timed(emit),
    tally: timed(tally),
    overlap,
    days,
  },
  limits: { datesMax: 14, calendarDays: 92, queryLimit: 25_000 },
  codecs: SYNTHETIC_CODECS,
  monotonicMs: () => performance.now(),
})
const dispatcher = createDispatcher({
  searcher,
  codecs: SYNTHETIC_CODECS,
  proposals: createProposals(),
  wallMs: () => Date.now(),
})

type Measured = { readonly kernel: number; readonly whole: number; readonly hits: number; readonly bytes: number }
/** µs of a search: a tenth of them took less, as other programs disturb most of them. Each search is of other nights and another segment than the one before. */
function measure(fields: RequestFields, rounds = ROUNDS): Measured {
  const random = seeded(7)
  const at = scratchOf(store.memory, 0) + 16_384
  const times: { kernel: number; whole: number }[] = []
  let [hits, bytes] = [0, 0]
  for (let n = 0; n < rounds + rounds / 4; n++) {
    const first = Math.floor(random() * (NIGHTS - 3))
    const segment = `segment_${String(n % SEGMENTS).padStart(5, '0')}`
    const dates = [0, 1, 2].map((i) => formatDay(TODAY + first + i))
    const asked: RequestFields = { segment, dates, ...fields }
    const payload = encodeRequest({ command: 'SEARCHAVAIL', correlationId: 1, fields: asked }).subarray(9)
    openRequest(dispatcher, payload, 0, payload.length)
    inKernel = 0
    const started = performance.now()
    const end = runSearch(searcher, true, 1, at, at + SLAB, 0)
    const whole = (performance.now() - started) * 1000
    assert(end > 0 && searcher.values.fault === '', `the search is answered: ${searcher.values.fault}`)
    if (n < rounds / 4) continue
    times.push({ kernel: inKernel * 1000, whole })
    hits += searcher.hits / rounds
    bytes += (end - at) / rounds
  }
  const low = (of: 'kernel' | 'whole') =>
    times.map((each) => each[of]).sort((a, b) => a - b)[Math.floor(rounds / 10)] as number
  return { kernel: low('kernel'), whole: low('whole'), hits, bytes }
}

/** About a quarter of all rows match. */
const FITTING = { availability: 4, finalPrice: 190 }
const ROOM = { roomType: 'room_00000', ...FITTING }
const ANY = { anyRoomType: 1, ...FITTING }
const PAGE = { order: 1, count: 1, limit: 25, want: 1 }
const ALL = { limit: 25_000 }
const KIND = { propertyType: 'hotel' }
const BOX = { south: 40.2, west: 10.2, north: 40.8, east: 10.8 }
/** Type, category, stars, area, amenities, rate features, and six ranges of the total. */
const FACETS = { facets: 127, totalBounds: [300, 350, 400, 450, 500] }
const NEAR = { latitude: 40.5, longitude: 10.5, radiusMetres: 100_000 }
const ROWS: readonly (readonly [string, RequestFields])[] = [
  ['unordered, 25 hits', { ...ROOM, limit: 25 }],
  ['unordered, all hits', { ...ROOM, ...ALL }],
  ['page of 25 by total', { ...ROOM, ...PAGE }],
  ['page of 25 by total, box', { ...ROOM, ...PAGE, ...BOX }],
  ['page of 25 by total, all facets', { ...ROOM, ...PAGE, ...FACETS }],
  ['page of 25 by total, box, 16 x 16 cells', { ...ROOM, ...PAGE, ...BOX, cells: [16, 16] }],
  ['page of 25 by distance', { ...ROOM, ...PAGE, ...NEAR, order: 3 }],
  ['page of 25 by stars', { ...ROOM, ...PAGE, order: 4 }],
  ['page of 1000 by total', { ...ROOM, ...PAGE, limit: 1_000 }],
  ['kind: unordered, all hits', { ...ROOM, ...KIND, ...ALL }],
  ['kind: page of 25 by total', { ...ROOM, ...KIND, ...PAGE }],
  ['kind: page of 25 by total, box', { ...ROOM, ...KIND, ...PAGE, ...BOX }],
  ['kind: page of 25 by total, all facets', { ...ROOM, ...KIND, ...PAGE, ...FACETS }],
  ['kind: the same, kind without its filter', { ...ROOM, ...KIND, ...PAGE, ...FACETS, disjunctiveFacets: 1 }],
  ['any of 6 rooms: page of 25, all facets', { ...ANY, ...PAGE, ...FACETS, facets: 255, want: 9 }],
  ['any of 6 rooms: page of 25', { ...ANY, ...PAGE, want: 9 }],
  ['any of 6 rooms, kind: page of 25', { ...ANY, ...KIND, ...PAGE, want: 9 }],
  ['300 hits in full', { ...ROOM, limit: 300 }],
  ['300 hits, compact', { ...ROOM, limit: 300, compact: 1, want: 1 }],
]
const results: { [name: string]: Measured } = {}
for (const [name, fields] of ROWS) {
  if (!name.includes(process.env.ONLY ?? '')) continue
  const measured = measure(fields, Number(process.env.N ?? ROUNDS))
  results[name] = measured
  const cells = [measured.kernel, measured.whole].map((value) => value.toFixed(1).padStart(8))
  const line = `${name.padEnd(40)} ${cells.join(' ')} µs in kernels, in all; ${measured.hits.toFixed(0)} hits, ${measured.bytes.toFixed(0)} B`
  if (!flags.json) process.stdout.write(`${line}\n`)
}
if (flags.json) process.stdout.write(`${JSON.stringify(results)}\n`)
