/**
 * Time of price calendars and flexible dates, in the kernel and in all (docs/design/search.md#calendars).
 *
 *   node engine/src/search/calendar.bench.ts [--json]
 */

import { parseArgs } from 'node:util'
import { assert, formatDay, unpackPropertyId } from '@vacancy/shared'
import { encodeRequest, type RequestFields } from '@vacancy/shared/wire'
import { seeded } from '@vacancy/testkit/random'
import { SEGMENT, TABLE } from '../store/layout.ts'
import { createStore, scratchOf } from '../store/store.ts'
import { field, rowCountOf } from '../store/table-fields.ts'
import { createDispatcher, openRequest } from '../tcp/dispatch.ts'
import { slabAreaBytes } from '../tcp/slabs.ts'
import { fillSynthetic, SYNTHETIC_CODECS } from '../testing/synthetic.ts'
import { loadKernels } from '../threads/kernels.ts'
import { createProposals } from '../threads/writes.ts'
import { segmentOfSearch } from './plan.ts'
import { createSearcher, runSearch } from './search.ts'

const { values: flags } = parseArgs({ options: { json: { type: 'boolean', default: false } } })
const [PROPERTIES, ROOMS, NIGHTS] = [25_000, 6, 366]
const TODAY = Math.floor(Date.now() / 86_400_000)
const SLAB = 2 << 20

const store = createStore({
  memoryBytes: 2 ** 30,
  readers: 1,
  scratchBytes: 16_384 + slabAreaBytes(SLAB, 1),
  sessionBytesMax: 1 << 20,
})
const { memory } = store
const kernels = loadKernels(memory)
const shape = { segments: 1, propertiesPerSegment: PROPERTIES, roomTypes: ROOMS, nights: NIGHTS }
fillSynthetic(store, kernels.put, { ...shape, firstDay: TODAY, ordered: true, seed: 1 })

/** Time within the kernel, in milliseconds. */
let inKernel = 0
const searcher = createSearcher({
  memory,
  reader: 0,
  parameters: scratchOf(memory, 0),
  kernels: {
    ...kernels,
    search: (parameters) => {
      const started = performance.now()
      kernels.search(parameters)
      inKernel += performance.now() - started
    },
  },
  limits: { datesMax: 14, calendarDays: 366, queryLimit: 200 },
  codecs: SYNTHETIC_CODECS,
  monotonicMs: () => performance.now(),
})
const dispatcher = createDispatcher({
  searcher,
  codecs: SYNTHETIC_CODECS,
  proposals: createProposals(),
  wallMs: () => Date.now(),
})

const random = seeded(7)
const SEGMENT_NAME = { segment: 'segment_00000' }

function run(command: 'PRICECAL' | 'SEARCHFLEX', fields: RequestFields): { kernel: number; whole: number } {
  const at = scratchOf(memory, 0) + 16_384
  const payload = encodeRequest({ command, correlationId: 1, fields: { ...SEGMENT_NAME, ...fields } }).subarray(9)
  openRequest(dispatcher, payload, 0, payload.length)
  inKernel = 0
  const started = performance.now()
  const end = runSearch(searcher, true, 1, at, at + SLAB, 0)
  const whole = (performance.now() - started) * 1000
  assert(end > 0 && searcher.values.fault === '', `the search is answered: ${searcher.values.fault}`)
  return { kernel: inKernel * 1000, whole }
}

/** Id of some property: each search reads another one. */
function someProperty(): string {
  const segment = segmentOfSearch(memory, searcher.search, searcher.values)
  const table = field(memory, segment + SEGMENT.propertyTable)
  const row = Math.floor(random() * rowCountOf(memory, table))
  return unpackPropertyId(memory.u8, field(memory, table + TABLE.rowIds) + row * 16)
}

/** Stays of three nights from `days` arrival days, the first of which differs from search to search. */
function window(days: number): RequestFields {
  const first = TODAY + Math.floor(random() * (NIGHTS - days + 1))
  return { from: formatDay(first), to: formatDay(first + days - 1), nights: 3 }
}

const ROOM = { roomType: 'room_00000' }
const KIND = { propertyType: 'hotel' }
const ANY = { anyRoomType: 1 }
type Row = readonly [name: string, command: 'PRICECAL' | 'SEARCHFLEX', rounds: number, fields: () => RequestFields]
const ROWS: readonly Row[] = [
  ['one property, 366 days', 'PRICECAL', 4_000, () => ({ ...ROOM, ...window(366), propertyId: someProperty() })],
  [
    'one property, 366 days, 6 rooms',
    'PRICECAL',
    4_000,
    () => ({ ...ANY, ...window(366), propertyId: someProperty() }),
  ],
  ['kind: 31 days', 'PRICECAL', 400, () => ({ ...ROOM, ...KIND, ...window(31) })],
  ['kind: 31 days, 6 rooms', 'PRICECAL', 20, () => ({ ...ANY, ...KIND, ...window(31) })],
  ['31 days', 'PRICECAL', 20, () => ({ ...ROOM, ...window(31) })],
  ['92 days', 'PRICECAL', 10, () => ({ ...ROOM, ...window(92) })],
  ['kind: flexible, 31 days', 'SEARCHFLEX', 400, () => ({ ...ROOM, ...KIND, ...window(31), limit: 25, count: 1 })],
  [
    'kind: flexible, 31 days, 3 to 6 nights',
    'SEARCHFLEX',
    40,
    () => ({ ...ROOM, ...KIND, ...window(31), mostNights: 6, limit: 25 }),
  ],
]
run('PRICECAL', { ...ROOM, ...window(1) })
const results: { [name: string]: { kernel: number; whole: number } } = {}
for (const [name, command, rounds, fields] of ROWS) {
  const times = Array.from({ length: rounds }, () => run(command, fields())).slice(Math.floor(rounds / 4))
  // A tenth of them took less, as other programs disturb most of them.
  const low = (of: 'kernel' | 'whole') =>
    times.map((each) => each[of]).sort((a, b) => a - b)[Math.floor(times.length / 10)] as number
  const measured = { kernel: low('kernel'), whole: low('whole') }
  results[name] = measured
  const cells = [measured.kernel, measured.whole].map((value) => value.toFixed(1).padStart(9))
  if (!flags.json) process.stdout.write(`${name.padEnd(40)} ${cells.join(' ')} µs in the kernel, in all\n`)
}
if (flags.json) process.stdout.write(`${JSON.stringify(results)}\n`)
