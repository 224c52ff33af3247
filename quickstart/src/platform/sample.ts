/**
 * The sample of a quick start: a region of the Alps from the generator of the benchmarks, built into a snapshot of each
 * shard, and topped up when days have passed. The packages of a day do not depend on the first day of the generator.
 */

import { once } from 'node:events'
import {
  copyFileSync,
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { VacancyCallError, type VacancyClient } from '@vacancy/client'
import { formatDay, parseDay, VacancyError } from '@vacancy/shared'
import type { RequestFields } from '@vacancy/shared/wire'
import { type ProcessGroup, runToEnd, VACANCY } from '../launch.ts'
import { type PlatformFiles, SEED, type State } from './files.ts'
import { nodesOf, type Plan, shardsOf } from './plan.ts'
import type { QuerySample, SampleProperty } from './queries.ts'

/** Concurrent writes while days are topped up. */
const WRITES_IN_FLIGHT = 512
const WEEK = 7
/** Most properties have it, so that a search finds some. */
const USUAL_ROOM_TYPE = 'double'
/** Each is a valley of the region; the example searches need the first four. */
const SEGMENTS_MAX = 8
const SEGMENTS_OF_SHARD_MAX = 4

/** Creates the CSV files of the sample and of each shard; replaces those of an interrupted start. */
export async function writeSample(
  group: ProcessGroup,
  files: PlatformFiles,
  plan: Plan,
  { state, today, config }: { readonly state: State; readonly today: number; readonly config: string },
): Promise<void> {
  await writeCsv(group, files, plan, state, today)
  copyFileSync(join(files.csv, 'codecs.yml'), files.codecs)
  if (!existsSync(files.config)) writeFileSync(files.config, config)
}

async function writeCsv(
  group: ProcessGroup,
  files: PlatformFiles,
  plan: Plan,
  { packages = 0, days, seed }: State,
  today: number,
): Promise<void> {
  const shards = shardsOf(plan)
  const segments = shards.length * Math.min(SEGMENTS_OF_SHARD_MAX, Math.floor(SEGMENTS_MAX / shards.length))
  const numbers = Object.entries({ packages, days, seed, segments }).flatMap(([name, value]) => [
    `--${name}`,
    String(value),
  ])
  const args = ['sample', '--shape', 'region', ...numbers, '--from', formatDay(today), '--out', files.csv]
  await runToEnd(group, [VACANCY, ...args], 'the sample generator', { isQuiet: shards.length > 1 })
  if (shards.length > 1) await splitCsv(files, shards)
}

/** Gives each shard a folder with its part: segments in the order of their names, as many for each. */
async function splitCsv({ csv }: PlatformFiles, shards: readonly string[]): Promise<void> {
  const properties = propertiesIn(csv)
  const segments = [...new Set(properties.map(({ segment }) => segment))].toSorted()
  const shardOfSegment = (segment: string) => Math.floor((segments.indexOf(segment) * shards.length) / segments.length)
  const shardOf = new Map(properties.map(({ propertyId, segment }) => [propertyId, shardOfSegment(segment)]))
  for (const shard of shards) {
    mkdirSync(join(csv, shard), { recursive: true })
    copyFileSync(join(csv, 'codecs.yml'), join(csv, shard, 'codecs.yml'))
  }
  for (const name of ['properties.csv', 'packages.csv']) {
    const outputs = shards.map((shard) => createWriteStream(join(csv, shard, name)))
    for await (const line of linesOf(join(csv, name))) {
      const shard = shardOf.get(line.slice(0, line.indexOf(',')))
      // The header belongs to no property, and so to all shards.
      for (const output of shard === undefined ? outputs : outputs.slice(shard, shard + 1)) {
        if (!output.write(`${line}\n`)) await once(output, 'drain')
      }
    }
    await Promise.all(outputs.map((output) => once(output.end(), 'close')))
  }
}

/** The snapshot of each shard, copied to the nodes that start with it. */
export async function buildSnapshots(
  group: ProcessGroup,
  files: PlatformFiles,
  plan: Plan,
  days: readonly [number, number],
): Promise<void> {
  const shards = shardsOf(plan)
  const [from, to] = days.map(formatDay) as [string, string]
  const isOneOfMany = shards.length > 1
  await Promise.all(
    shards.map((shard) => {
      const folder = files.csvOf(shard)
      const args = ['--shard-id', shard, '--input-path', folder, '--output-path', folder, '--from', from, '--to', to]
      const threads = isOneOfMany ? ['--threads', '1'] : []
      const all = [VACANCY, 'build-snapshot', ...args, '--overwrite', ...threads]
      return runToEnd(group, all, `build-snapshot of ${shard}`, { isQuiet: isOneOfMany })
    }),
  )
  for (const shard of shards) {
    for (const { name, isEmpty } of nodesOf(plan, shard)) {
      const folder = files.dataOf(name)
      mkdirSync(folder, { recursive: true })
      if (!isEmpty) copyFileSync(join(files.csvOf(shard), SEED), join(folder, SEED))
    }
  }
}

/** Days that are on sale today and have no package yet: none while the first is after the last. */
export function missingDays(
  { days, lastDay }: Pick<State, 'days' | 'lastDay'>,
  today: number,
): { readonly first: number; readonly last: number } {
  return { first: Math.max(today, lastDay + 1), last: today + days - 1 }
}

/**
 * Writes the packages of missing days to the leader of each shard. After an interruption they are written again with the
 * same values.
 *
 * @param open connects to the leader of a shard
 * @returns the number of written packages
 */
export async function writeDays(
  { group, files, plan, state }: { group: ProcessGroup; files: PlatformFiles; plan: Plan; state: State },
  today: number,
  open: (shard: string) => Promise<VacancyClient>,
): Promise<number> {
  const { first, last } = missingDays(state, today)
  const isOfGenerator = state.packages !== undefined
  if (isOfGenerator) await writeCsv(group, files, plan, state, today)
  let written = 0
  for (const shard of shardsOf(plan)) {
    const client = await open(shard)
    const source = join(files.csvOf(shard), 'packages.csv')
    const packages = isOfGenerator ? packagesBetween(source, first, last) : weeksOf(source, state.days, first, last)
    for await (const batch of batchesOf(packages)) {
      await Promise.all(batch.map((fields) => client.setPackage(fields).catch(unlessRemoved)))
      written += batch.length
    }
    await client.close()
  }
  return written
}

/** The user may have removed a property, which needs no new days. */
function unlessRemoved(error: unknown): void {
  if (!(error instanceof VacancyCallError)) throw error
  if (error.code !== 'NOT_FOUND') {
    throw new VacancyError('failure', { reason: `topping up: ${error.code} ${error.message}` }, { cause: error })
  }
}

async function* batchesOf<T>(entries: AsyncIterable<T>): AsyncGenerator<T[]> {
  let batch: T[] = []
  for await (const entry of entries) {
    batch.push(entry)
    if (batch.length < WRITES_IN_FLIGHT) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

type Package = RequestFields<'SETROOMPKG'>

/** The packages of a file from one day to another, inclusive. */
async function* packagesBetween(file: string, first: number, last: number): AsyncGenerator<Package> {
  // Dates in this format sort chronologically.
  const [from, to] = [formatDay(first), formatDay(last)]
  for await (const each of packagesIn(file)) if (each.date >= from && each.date <= to) yield each
}

/** Of a sample without a generator: its first days again, on the same days of the week. */
async function* weeksOf(file: string, days: number, first: number, last: number): AsyncGenerator<Package> {
  const cycle = Math.min(WEEK, days)
  let start: number | undefined
  for await (const each of packagesIn(file)) {
    const day = parseDay(each.date) as number
    start ??= day
    if (day >= start + cycle) continue
    for (let next = first + ((((day - first) % cycle) + cycle) % cycle); next <= last; next += cycle) {
      yield { ...each, date: formatDay(next) }
    }
  }
}

async function* packagesIn(file: string): AsyncGenerator<Package> {
  for await (const line of linesOf(file)) {
    const [propertyId = '', roomType = '', date = '', availability, finalPrice, features = ''] = line.split(',')
    if (availability === 'Availability') continue
    yield {
      propertyId,
      roomType,
      date,
      availability: Number(availability),
      finalPrice: Number(finalPrice),
      rateFeatures: features === '' ? [] : features.split('|'),
    }
  }
}

/** The properties in the CSV file of a folder. */
function propertiesIn(folder: string): SampleProperty[] {
  const [, ...lines] = readFileSync(join(folder, 'properties.csv'), 'utf8').trimEnd().split('\n')
  return lines.map((line) => {
    const [propertyId = '', segment = '', area = '', propertyType = '', category = '', stars, ...more] = line.split(',')
    const [latitude, longitude, amenities = ''] = more
    const place = { latitude: Number(latitude), longitude: Number(longitude) }
    return {
      propertyId,
      segment,
      area,
      propertyType,
      category,
      stars: Number(stars),
      ...place,
      amenities: amenities.split('|'),
    }
  })
}

/** What the sample queries need. */
export async function querySample(files: PlatformFiles, names: readonly string[]): Promise<QuerySample> {
  const shards = names.map((name) => ({ name, properties: propertiesIn(files.csvOf(name)) }))
  const file = join(files.csvOf(names[0] ?? ''), 'packages.csv')
  let first: Package | undefined
  for await (const each of packagesIn(file)) {
    first ??= each
    if (each.roomType !== USUAL_ROOM_TYPE) continue
    first = each
    break
  }
  if (first === undefined) throw new VacancyError('data_conflict', { reason: `${file} has no packages` })
  return { shards, propertyId: first.propertyId, roomType: first.roomType }
}

function linesOf(file: string): AsyncIterable<string> {
  return createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })
}
