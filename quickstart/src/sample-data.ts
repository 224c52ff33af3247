/**
 * The sample of a quick start: a region of the Alps from the generator of the benchmarks, built into a snapshot, and
 * topped up when days have passed. The packages of a day do not depend on the first day of the generator.
 */

import { copyFileSync, createReadStream, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { VacancyCallError, type VacancyClient } from '@vacancy/client'
import { formatDay, parseDay, VacancyError } from '@vacancy/shared'
import type { RequestFields } from '@vacancy/shared/wire'
import { BENCH, type ProcessGroup, runToEnd, VACANCY } from './launch.ts'
import { CONFIG_TEXT, missingDays, type SampleLayout, SEGMENTS, SHARD_ID, type State } from './layout.ts'

/** Concurrent writes while days are topped up. */
const WRITES_IN_FLIGHT = 512

/** @returns the settings of the sample; undefined without complete data */
export function readState(layout: SampleLayout): State | undefined {
  if (!existsSync(layout.state)) return undefined
  const { packages, days, seed, last_day } = JSON.parse(readFileSync(layout.state, 'utf8')) as {
    [name: string]: unknown
  }
  const lastDay = parseDay(String(last_day))
  if (lastDay === undefined || ![packages, days, seed].every(Number.isInteger)) {
    throw new VacancyError('data_conflict', {
      reason: `${layout.state} was not written by a quick start: remove ${layout.dir}`,
    })
  }
  return { packages: Number(packages), days: Number(days), seed: Number(seed), lastDay }
}

/** Written atomically, since a partial file would make the folder unusable. */
function writeState(layout: SampleLayout, { packages, days, seed, lastDay }: State): void {
  const text = `${JSON.stringify({ packages, days, seed, last_day: formatDay(lastDay) }, null, 2)}\n`
  writeFileSync(`${layout.state}.tmp`, text)
  renameSync(`${layout.state}.tmp`, layout.state)
}

/**
 * Creates the sample and the snapshot in an empty folder. Files of an interrupted run are replaced.
 *
 * @throws VacancyError data_conflict when a node has already run in it
 */
export async function makeData(
  group: ProcessGroup,
  layout: SampleLayout,
  spec: Omit<State, 'lastDay'>,
  today: number,
): Promise<State> {
  const [first, ...others] = layout.seeded
  const used = layout.seeded.find((folder) => existsSync(`${folder}/IDENTITY`))
  if (used !== undefined) {
    const reason = `${used} holds data of a node, but ${layout.state} is missing: remove ${layout.dir}, or choose another --dir`
    throw new VacancyError('data_conflict', { reason })
  }
  for (const folder of layout.seeded) mkdirSync(folder, { recursive: true })
  await writeCsv(group, layout, spec, today)
  copyFileSync(`${layout.csv}/codecs.yml`, layout.codecs)
  if (!existsSync(layout.config)) writeFileSync(layout.config, CONFIG_TEXT)
  const window = ['--from', formatDay(today), '--to', formatDay(today + spec.days - 1)]
  const folders = ['--input-path', layout.csv, '--output-path', first, ...window]
  await runToEnd(
    group,
    [VACANCY, 'build-snapshot', '--shard-id', SHARD_ID, ...folders, '--overwrite'],
    'build-snapshot',
  )
  for (const folder of others) copyFileSync(`${first}/seed.snapshot`, `${folder}/seed.snapshot`)
  const state = { ...spec, lastDay: today + spec.days - 1 }
  writeState(layout, state)
  return state
}

async function writeCsv(
  group: ProcessGroup,
  layout: SampleLayout,
  spec: Omit<State, 'lastDay'>,
  today: number,
): Promise<void> {
  const { packages, days, seed } = spec
  const numbers = Object.entries({ packages, days, seed, segments: SEGMENTS }).flatMap(([name, value]) => [
    `--${name}`,
    String(value),
  ])
  const args = ['sample', '--shape', 'region', ...numbers, '--from', formatDay(today), '--out', layout.csv]
  await runToEnd(group, [BENCH, ...args], 'the sample generator')
}

/**
 * Writes the packages of days that have come on sale since the sample was created. The state file is written when all
 * are acknowledged; after an interruption they are written again with the same values.
 *
 * @param onProgress packages written so far
 * @returns the new state, and the number of written packages
 */
export async function topUp(
  { group, layout, client }: { group: ProcessGroup; layout: SampleLayout; client: VacancyClient },
  state: State,
  today: number,
  onProgress: (packages: number) => void,
): Promise<{ state: State; written: number }> {
  const { first, last } = missingDays(state, today)
  if (first > last) return { state, written: 0 }
  await writeCsv(group, layout, state, today)
  let written = 0
  for await (const batch of batchesOf(packagesBetween(`${layout.csv}/packages.csv`, first, last))) {
    await Promise.all(batch.map((fields) => client.setPackage(fields).catch(unlessRemoved)))
    written += batch.length
    onProgress(written)
  }
  const next = { ...state, lastDay: last }
  writeState(layout, next)
  return { state: next, written }
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

/** The packages of a file from one day to another, inclusive. */
async function* packagesBetween(
  file: string,
  first: number,
  last: number,
): AsyncGenerator<RequestFields<'SETROOMPKG'>> {
  // Dates in this format sort chronologically.
  const [from, to] = [formatDay(first), formatDay(last)]
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
    const [propertyId = '', roomType = '', date = '', availability, finalPrice, features = ''] = line.split(',')
    if (date < from || date > to || availability === 'Availability') continue
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
