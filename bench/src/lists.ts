/**
 * `npm run bench -- lists`: what a list page costs (order, totals, box, counts, any room type) beside an unordered
 * search of the same set, what price calendars cost, and searches beside calendars.
 */
import { join } from 'node:path'
import { EXIT, formatDay } from '@vacancy/shared'
import { defineCommand, whole } from '@vacancy/shared/node'
import { encodeRequest } from '@vacancy/shared/wire'
import { type Bench, dataOf, SIZES, seedOf, tablesOf } from './bench.ts'
import { type RowReport, rowOf } from './format.ts'
import { inTurns } from './in-turns.ts'
import type { Stream } from './load.ts'
import { median, ratios } from './pauses.ts'
import { lastJson, runProgram } from './programs.ts'
import { searches } from './queries.ts'
import { dirFlag, RECORD_FLAGS, recordSection, type SectionHead } from './record-section.ts'
import { startNode, stopNode } from './running-node.ts'
import { searchP99 } from './search-p99.ts'
import { judged, type Measure } from './verdict.ts'

const PAGES = 'engine/src/search/page.bench.ts'
const CALENDARS = 'engine/src/search/calendar.bench.ts'
const PACKAGES = 500_000
const CALENDARS_PER_SECOND = 50
const CALENDAR_DAYS = 31
const DIFFERENT_CALENDARS = 500

export const listsCommand = defineCommand({
  name: 'bench lists',
  component: 'lists',
  summary: 'Measures ordered pages, counts, maps and price calendars, and searches beside calendars.',
  flags: {
    rounds: { ...whole(5, 1, 100), summary: 'Runs of each, in turn; figures are medians.' },
    seconds: { ...whole(8, 1, 60, 'seconds'), summary: 'Length of a run beside calendars.' },
    ...RECORD_FLAGS,
    dir: dirFlag('lists'),
  },
  run: async ({ flags }) => {
    await recordSection(flags, { ...SIZES.quick, packages: PACKAGES }, headOf(flags), async (bench) => {
      const kernels = await measureKernels(bench, flags.rounds)
      const beside = await measureBeside(bench, flags)
      return { rows: rowsOf(kernels, beside), kernels, beside }
    })
    return EXIT.ok
  },
})

type Plan = { readonly rounds: number; readonly seconds: number }
/** µs in the kernels and in all, and bytes of the reply, by round. */
type Times = { readonly [name: string]: { readonly kernel: number; readonly whole: number; readonly bytes?: number } }
type Beside = { readonly alone: number[]; readonly calendars: number[] }

const headOf = ({ rounds, seconds }: Plan): SectionHead => ({
  name: 'lists',
  title: 'List pages and calendars',
  command: `npm run bench -- lists --rounds ${rounds} --seconds ${seconds}`,
  scope: `${rounds} runs in turn; segments of 25,000 properties with 6 room types, 3 nights, of which a quarter of the rows match`,
  how: HOW,
})

const HOW = [
  `Rows 1 to 4 call the engine in a process of its own, until its code is compiled and then as often (\`${PAGES}\`, \`${CALENDARS}\`): each search is of other nights and another segment or property than the one before, and of all times a tenth was lower. "In all" is from the request's bytes to those of the reply.`,
  'The kind filter leaves one property of seven.',
  `Row 5 is a node with one serving thread and 2,000 searches of 300 hits a second; ${CALENDARS_PER_SECOND} price calendars a second are of ${CALENDAR_DAYS} arrival days of all properties of a kind. The load generator is on the same cores.`,
]

async function measureKernels(bench: Bench, rounds: number): Promise<{ pages: Times[]; calendars: Times[] }> {
  const run = (path: string) => async () => lastJson(await runProgram([path, '--json'])) as Times
  const programs = { pages: run(PAGES), calendars: run(CALENDARS) }
  return inTurns(rounds, programs, (round) => bench.say(`kernels: round ${round} of ${rounds}`))
}

async function measureBeside(bench: Bench, { rounds, seconds }: Plan): Promise<Beside> {
  const { file: seed, codecs } = await seedOf(bench, 'random')
  bench.say('starting a node alone')
  const node = await startNode({ dir: join(bench.dir, 'alone'), seed, codecs, config: { serving_threads: 1 } })
  try {
    const calendars = await calendarStream(bench)
    const loads = {
      alone: () => searchP99(bench, node, seconds),
      calendars: () => searchP99(bench, node, seconds, () => calendars),
    }
    return await inTurns(rounds, loads, (round) => bench.say(`beside calendars: round ${round} of ${rounds}`))
  } finally {
    const fault = await stopNode(node)
    if (fault) bench.notes.push(fault)
  }
}

async function calendarStream(bench: Bench): Promise<Stream> {
  const { dataset } = await dataOf(bench, 'random')
  const { from, days } = dataset.spec
  const asked = searches(await tablesOf(bench), { kind: 'broad', count: DIFFERENT_CALENDARS, seed: 5 })
  const frames = asked.map(({ fields: { segment, roomType, propertyType } }, n) => {
    const first = from + (n % (days - CALENDAR_DAYS))
    const arrivals = { from: formatDay(first), to: formatDay(first + CALENDAR_DAYS - 1) }
    const fields = { segment, roomType, propertyType, ...arrivals, nights: 3 }
    return encodeRequest({ command: 'PRICECAL', correlationId: 0, fields })
  })
  const pacing = { kind: 'regular', requestsPerSecond: CALENDARS_PER_SECOND } as const
  return { name: 'calendars', pacing, connections: 4, frames }
}

function rowsOf({ pages, calendars }: { pages: Times[]; calendars: Times[] }, beside: Beside): RowReport[] {
  const page = (name: string, of: 'kernel' | 'whole' | 'bytes' = 'kernel') => valuesOf(pages, name, of)
  const calendar = (name: string, of: 'kernel' | 'whole' = 'kernel') => valuesOf(calendars, name, of)
  const added = (to: string, from: string) => {
    const base = page(from, 'whole')
    return page(to, 'whole').map((value, n) => value - (base[n] ?? Number.NaN))
  }
  return [
    rowOf(1, 'page of the 25 cheapest with totals and count', [
      micros('kernel', page('page of 25 by total'), 130),
      micros('kernel, kind filter', page('kind: page of 25 by total'), 40),
      judged({
        ...{ name: 'over all hits of the unordered search', unit: '×', target: { atMost: 3 } },
        ...ratios(page('page of 25 by total'), page('unordered, all hits')),
      }),
      micros('in all', page('page of 25 by total', 'whole')),
      micros('in all, kind filter', page('kind: page of 25 by total', 'whole')),
    ]),
    rowOf(2, 'on top of that page', [
      micros('box', added('page of 25 by total, box', 'page of 25 by total'), 40),
      micros('all counts', added('page of 25 by total, all facets', 'page of 25 by total'), 60),
      micros(
        'all counts, kind filter',
        added('kind: page of 25 by total, all facets', 'kind: page of 25 by total'),
        60,
      ),
    ]),
    rowOf(3, 'other searches', [
      micros('any of 6 room types, kind filter', page('any of 6 rooms, kind: page of 25', 'whole'), 250),
      micros('any of 6 room types', page('any of 6 rooms: page of 25', 'whole')),
      judged({
        name: '300 hits, compact with totals',
        value: median(page('300 hits, compact', 'bytes')),
        unit: 'B',
        target: { atMost: 8_192 },
      }),
    ]),
    rowOf(4, 'price calendar', [
      micros('one property, 366 days, in all', calendar('one property, 366 days', 'whole'), 30),
      micros('one property, 366 days, 6 room types, in all', calendar('one property, 366 days, 6 rooms', 'whole'), 30),
      micros('kind filter, 31 days', calendar('kind: 31 days'), 600),
      micros('31 days', calendar('31 days')),
      micros('kind filter, flexible dates of 31 days', calendar('kind: flexible, 31 days')),
    ]),
    rowOf(5, `searches beside ${CALENDARS_PER_SECOND} calendars a second`, [
      judged({
        ...{ name: 'p99 over that without calendars', unit: '×', target: { atMost: 1.3 } },
        ...ratios(beside.calendars, beside.alone),
      }),
      {
        ...{ name: 'p99', value: median(beside.calendars), unit: 'ms' },
        baseline: { name: 'without calendars', value: median(beside.alone) },
      },
    ]),
  ]
}

function valuesOf(rounds: readonly Times[], name: string, of: 'kernel' | 'whole' | 'bytes'): number[] {
  return rounds.map((times) => times[name]?.[of] ?? Number.NaN)
}

function micros(name: string, values: readonly number[], atMost?: number): Measure {
  const measure = { name, value: median(values), unit: 'µs' } as const
  return atMost === undefined ? measure : judged({ ...measure, target: { atMost } })
}
