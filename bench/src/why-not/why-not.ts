/**
 * `npm run bench -- why-not`: the same searches and writes on Vacancy, SQLite, PostgreSQL and Redis, with the same data on
 * the same machine. Answers are compared before anything is measured.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EXIT, parseDay, VacancyError } from '@vacancy/shared'
import { defineCommand, whole } from '@vacancy/shared/node'
import { type Bench, closeBench, createBench, dataOf, SIZES, tablesOf } from '../bench.ts'
import { nightsOf } from '../dataset.ts'
import { failure } from '../failure.ts'
import { type Histogram, percentile } from '../histogram.ts'
import { availabilityOf } from '../inventory.ts'
import { cpuPressure, describeMachine } from '../machine.ts'
import { writeBenchmark } from '../pages.ts'
import { ROOT } from '../programs.ts'
import {
  answerTo,
  completeSearches,
  pageTo,
  type Search,
  type SearchFields,
  searches,
  type Tables,
} from '../queries.ts'
import { below, createRandom } from '../random.ts'
import { NotMeasured } from '../verdict.ts'
import { type ClientLoad, runClients } from './clients.ts'
import { CONNECT } from './connect.ts'
import { startPostgres } from './postgres.ts'
import { startRedis } from './redis.ts'
import {
  type Figures,
  type MeasuredSystem,
  type Rate,
  type SizeResult,
  type SystemResult,
  TITLES,
  type WhyNot,
  whyNotCells,
  whyNotLines,
} from './results.ts'
import { startSqlite } from './sqlite.ts'
import { type Booking, type Connection, type RunningSystem, type Source, SYSTEMS, type SystemName } from './system.ts'
import { startVacancy } from './vacancy.ts'

/** All systems must give the same answers, before and after rooms change. A comparison of different answers means nothing. */
type Connected = { readonly name: SystemName; readonly connection: Connection }

/** Nights that are sold out and given back for the check. */
const SOLD_OUT = 20

/** @returns the number of answers compared. Throws on the first difference. */
export async function checkSystems(
  systems: readonly Connected[],
  tables: Tables,
  searches: readonly Search[],
): Promise<number> {
  let compared = 0
  const expectIds = async (fields: SearchFields, wanted: readonly string[], when: string) => {
    for (const { name, connection } of systems) {
      const found = [...(await connection.search(fields)())].sort()
      compared++
      if (found.join() === wanted.join()) continue
      const query = JSON.stringify(fields)
      throw failure(`${name} finds ${found.length} properties instead of ${wanted.length} ${when}: ${query}`)
    }
  }
  for (const { fields } of searches) await expectIds(fields, answerTo(tables, fields).sort(), 'in the loaded data')
  for (const { fields } of searches.filter(hasPage)) {
    const wanted = JSON.stringify(pageTo(tables, fields))
    for (const { name, connection } of systems) {
      compared++
      const found = JSON.stringify(await connection.page(fields)())
      if (found !== wanted) throw failure(`${name} has another page: ${found} instead of ${wanted}`)
    }
  }
  for (const { fields, booking, id, rooms } of lastRooms(tables, searches)) {
    const wanted = answerTo(tables, fields).sort()
    const without = wanted.filter((each) => each !== id)
    for (let left = rooms; left > 0; left--) await writeAll(systems, booking, -1)
    await expectIds(fields, without, 'after a night was sold out')
    await writeAll(systems, booking, 1)
    await expectIds(fields, wanted, 'after a room was given back')
    for (let left = rooms; left > 1; left--) await writeAll(systems, booking, 1)
  }
  return compared
}

/** Pages are compared and measured without filters on the property but its type. */
const hasPage = ({ fields: { category, stars, area, amenities } }: Search) =>
  [category, stars, area, amenities].every((filter) => filter === undefined)

async function writeAll(systems: readonly Connected[], booking: Booking, rooms: 1 | -1): Promise<void> {
  for (const { connection } of systems) await connection.write(booking, rooms)()
}

/** A hit of each search, with the first night of the stay and the rooms left then. */
function lastRooms(tables: Tables, searches: readonly Search[]) {
  const { dataset } = tables
  return searches.slice(0, SOLD_OUT).flatMap(({ fields }) => {
    const [id] = answerTo(tables, fields)
    const day = parseDay(fields.dates[0] ?? '')
    const property = dataset.properties.ids.indexOf(id ?? '')
    const roomType = dataset.names.roomTypes.indexOf(fields.roomType)
    const row = dataset.rows.property.findIndex(
      (each, at) => each === property && dataset.rows.roomType[at] === roomType,
    )
    if (id === undefined || day === undefined || row === -1) return []
    const rooms = availabilityOf(dataset.packageOf(dataset, row, day))
    return [{ fields, id, booking: { property, roomType, day }, rooms }]
  })
}

const PACKAGES = [1_000_000, 6_000_000]
const ROUNDS = 5
const SECONDS = 2
const [PACKAGES_MIN, PACKAGES_MAX] = [1_000, 60_000_000]
/** Connections of the measurements with many clients. */
const CLIENTS = 8
const DIFFERENT_SEARCHES = 400
/** Of each kind. */
const CHECKED_SEARCHES = 50
const BOOKINGS = 4_000
const WARMUP_MS = 1_500

export type Plan = {
  /** Sizes of the data set. */
  readonly packages: readonly number[]
  readonly rounds: number
  readonly seconds: number
  readonly clients: number
  readonly systems: readonly SystemName[]
}

export const whyNotCommand = defineCommand({
  name: 'bench why-not',
  component: 'why-not',
  summary: 'The same searches and durable writes on Vacancy, SQLite, PostgreSQL and Redis.',
  flags: {
    packages: { type: 'list', value: PACKAGES.join(','), summary: 'Sizes of the data set.' },
    rounds: { ...whole(ROUNDS, 1, 99), summary: 'Measurements of each figure; the median is shown.' },
    seconds: { ...whole(SECONDS, 1, 600, 'seconds'), summary: 'Length of each measurement.' },
    write: { type: 'boolean', summary: 'Records the figures and renews the pages that quote them.' },
    json: { type: 'text', value: 'FILE', summary: 'Writes the figures as JSON.' },
    dir: { type: 'text', default: join(ROOT, '.vacancy/why-not'), value: 'DIR', summary: 'Folder for the data.' },
  },
  run: async ({ flags }) => {
    const say = (text: string) => process.stderr.write(`${text}\n`)
    const packages = sizesOf(flags.packages)
    const result = await compareSystems(flags.dir, say, { ...flags, packages, clients: CLIENTS, systems: SYSTEMS })
    process.stdout.write(formatWhyNot(result))
    if (flags.json) writeFileSync(flags.json, `${JSON.stringify(result, null, 2)}\n`)
    if (flags.write) writeBenchmark({ whyNot: result })
    return EXIT.ok
  },
})

function sizesOf(given: readonly string[] | undefined): readonly number[] {
  const sizes = given?.map(Number) ?? PACKAGES
  const wrong = given?.find((_, i) => !Number.isInteger(sizes[i]) || !isSize(sizes[i] as number))
  if (wrong === undefined) return sizes
  const reason = `--packages: ${wrong} is not a whole number from ${PACKAGES_MIN} to ${PACKAGES_MAX}`
  throw new VacancyError('usage_error', { reason })
}

const isSize = (packages: number) => packages >= PACKAGES_MIN && packages <= PACKAGES_MAX

type Workload = {
  readonly broad: readonly Search[]
  readonly selective: readonly Search[]
  readonly bookings: Booking[]
}

/** @param dir is removed afterwards */
export async function compareSystems(dir: string, say: (text: string) => void, plan: Plan): Promise<WhyNot> {
  const machine = describeMachine()
  const startedAt = new Date().toISOString()
  const begun = performance.now()
  const pressure = cpuPressure()
  const sizes: SizeResult[] = []
  const notes: string[] = []
  for (const packages of plan.packages) {
    const bench = createBench({ size: { ...SIZES.quick, packages }, dir, say })
    try {
      sizes.push(await compareSize(bench, plan))
      notes.push(...bench.notes)
    } finally {
      await closeBench(bench, { keep: false })
    }
  }
  return {
    command: commandOf(plan),
    startedAt,
    seconds: (performance.now() - begun) / 1000,
    machine,
    clients: plan.clients,
    sizes,
    notes: [...notes, ...pressure()],
  }
}

/** What was typed, without what is the default. */
function commandOf({ packages, rounds, seconds }: Plan): string {
  const given = [
    packages.join() === PACKAGES.join() ? '' : ` --packages ${packages.join()}`,
    rounds === ROUNDS ? '' : ` --rounds ${rounds}`,
    seconds === SECONDS ? '' : ` --seconds ${seconds}`,
  ]
  return `npm run bench -- why-not${given.join('')}`
}

async function compareSize(bench: Bench, plan: Plan): Promise<SizeResult> {
  const tables = await tablesOf(bench)
  const workload = workloadOf(tables)
  const { running, missing } = await startAll(bench, plan)
  try {
    const compared = await checkAll(bench, running, tables, workload)
    const { packages } = tables.dataset
    const runs = new Map<SystemName, Figures[]>()
    for (let round = 1; round <= plan.rounds; round++) {
      for (const system of running) {
        bench.say(`${packages} packages, round ${round} of ${plan.rounds}: ${TITLES[system.name]}`)
        const figures = await measure(system, tables, { ...workload, ...plan })
        runs.set(system.name, [...(runs.get(system.name) ?? []), figures])
      }
    }
    const systems: MeasuredSystem[] = []
    for (const { name, version, loadSeconds, bytes } of running) {
      const bytesPerPackage = (await bytes()) / packages
      systems.push({ name, version, loadSeconds, bytesPerPackage, runs: runs.get(name) ?? [] })
    }
    const hits = { broad: meanHits(workload.broad), selective: meanHits(workload.selective) }
    return { packages, compared, hits, systems: [...systems, ...missing] }
  } finally {
    for (const system of running) await system.stop()
  }
}

function workloadOf(tables: Tables): Workload {
  const { dataset } = tables
  const random = createRandom(5)
  const bookings = new Map<string, Booking>()
  while (bookings.size < Math.min(BOOKINGS, dataset.packages / 10)) {
    const row = below(random, dataset.rows.property.length)
    const property = dataset.rows.property[row] ?? 0
    const day = dataset.spec.from + below(random, nightsOf(dataset, row))
    const rooms = (dataset.packageOf(dataset, row, day) >>> 8) & 0xff
    const booking = { property, roomType: dataset.rows.roomType[row] ?? 0, day }
    if (rooms > 0) bookings.set(JSON.stringify(booking), booking)
  }
  return {
    broad: completeSearches(tables, { count: DIFFERENT_SEARCHES, seed: 2 }),
    selective: searches(tables, { kind: 'selective', count: DIFFERENT_SEARCHES, seed: 2 }),
    bookings: [...bookings.values()],
  }
}

const meanHits = (some: readonly Search[]) => Math.round(some.reduce((sum, { hits }) => sum + hits, 0) / some.length)

async function startAll(bench: Bench, plan: Plan): Promise<{ running: RunningSystem[]; missing: SystemResult[] }> {
  const { dataset } = await dataOf(bench, 'random')
  const start: Record<SystemName, (source: Source) => Promise<RunningSystem>> = {
    vacancy: () => startVacancy(bench),
    sqlite: startSqlite,
    postgres: startPostgres,
    redis: startRedis,
  }
  const running: RunningSystem[] = []
  const missing: SystemResult[] = []
  try {
    for (const name of plan.systems) {
      const dir = join(bench.dir, name)
      mkdirSync(dir, { recursive: true })
      bench.say(`loading ${TITLES[name]}`)
      try {
        running.push(await start[name]({ dataset, spec: dataset.spec, dir }))
      } catch (error) {
        if (!(error instanceof NotMeasured)) throw error
        missing.push({ name, notMeasured: error.message })
      }
    }
  } catch (error) {
    for (const system of running) await system.stop()
    throw error
  }
  return { running, missing }
}

async function checkAll(
  bench: Bench,
  running: readonly RunningSystem[],
  tables: Tables,
  { broad, selective }: Workload,
): Promise<number> {
  bench.say('comparing answers')
  const systems: Connected[] = []
  try {
    for (const { name, target } of running) {
      systems.push({ name, connection: await CONNECT[name](target, tables.dataset) })
    }
    const some = [...broad.slice(0, CHECKED_SEARCHES), ...selective.slice(0, CHECKED_SEARCHES)]
    return await checkSystems(systems, tables, some)
  } finally {
    for (const { connection } of systems) await connection.close()
  }
}

async function measure(
  system: RunningSystem,
  { dataset }: Tables,
  { broad, selective, bookings, clients, seconds }: Workload & Plan,
): Promise<Figures> {
  const runMs = seconds * 1000
  const run = async (
    load: Pick<ClientLoad, 'searchers' | 'writers'> & Partial<Pick<ClientLoad, 'asPages'>>,
    some: readonly Search[] = broad,
  ) => {
    const before = system.cpuSeconds?.() ?? 0
    const { searches, writes, requests, cpuSeconds } = await runClients({
      asPages: false,
      ...load,
      system: system.name,
      target: system.target,
      spec: dataset.spec,
      searches: some.map(({ fields }) => fields),
      bookings,
      warmupMs: Math.min(WARMUP_MS, runMs),
      runMs,
    })
    if (searches.count + writes.count === 0) throw failure(`${system.name} answered nothing`)
    const micros = (seconds: number) => (seconds * 1e6) / requests
    const clientMicros = micros(cpuSeconds)
    const costs = system.cpuSeconds
      ? { cpuMicros: micros(system.cpuSeconds() - before), clientMicros }
      : { clientMicros }
    return { searches: { ...rateOf(searches, runMs), ...costs }, writes: { ...rateOf(writes, runMs), ...costs } }
  }
  const searched = async (some: readonly Search[], asPages = false) => ({
    one: (await run({ searchers: 1, writers: 0, asPages }, some)).searches,
    many: (await run({ searchers: clients, writers: 0, asPages }, some)).searches,
  })
  return {
    broad: await searched(broad),
    selective: await searched(selective),
    pages: await searched(broad, true),
    writes: {
      one: (await run({ searchers: 0, writers: 1 })).writes,
      many: (await run({ searchers: 0, writers: clients })).writes,
    },
    mixed: await run({ searchers: clients, writers: 1 }),
  }
}

function rateOf(latency: Histogram, runMs: number): Omit<Rate, 'cpuMicros' | 'clientMicros'> {
  return {
    perSecond: (latency.count * 1000) / runMs,
    p50Ms: percentile(latency, 0.5),
    p99Ms: percentile(latency, 0.99),
  }
}

export function formatWhyNot(result: WhyNot): string {
  const tables = result.sizes.map((size) => {
    const { heads, rows } = whyNotCells(size, result.clients)
    const lines = [heads, ...rows]
    const widths = heads.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)))
    const table = lines.map((cells) =>
      cells
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    return [`${size.packages.toLocaleString('en')} packages`, '', ...table].join('\n')
  })
  return `${[...tables, whyNotLines(result).join('\n')].join('\n\n')}\n`
}
