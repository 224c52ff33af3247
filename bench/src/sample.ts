/** `vacancy sample`, also `npm run bench -- sample`: writes a seeded data set as the CSV files that build-snapshot reads. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dayOf, EXIT, formatDay, parseDay, VacancyError } from '@vacancy/shared'
import { type Command, defineCommand, type FlagValues, runCommand, whole } from '@vacancy/shared/node'
import { ORDERS, type Order, type Progress, writeDataset } from './csv.ts'
import {
  createDataset,
  DAYS_MAX,
  type Dataset,
  type DatasetSpec,
  NIGHTS,
  PACKAGES_MAX,
  SEGMENTS_MAX,
  SHAPES,
  segmentsMax,
} from './dataset.ts'

/** Raised whenever equal arguments give other bytes than before, so that older files are written again. */
const GENERATOR = 1

/** The specification and the result; written as sample.json next to the files when they are complete. */
export type Sample = {
  generator: number
  spec: DatasetSpec
  order: Order
  properties: number
  rows: number
  packages: number
  segments: number
  propertiesBytes: number
  packagesBytes: number
}

/** Whether `dir` holds exactly this data set, whole. */
export function holdsSample(dir: string, wanted: { spec: DatasetSpec; order: Order }): boolean {
  const { generator, spec, order } = readSample(join(dir, 'sample.json')) ?? {}
  const requested = { generator: GENERATOR, spec: wanted.spec, order: wanted.order }
  return JSON.stringify({ generator, spec, order }) === JSON.stringify(requested)
}

export function writeSample(
  dataset: Dataset,
  { dir, order, progress }: { dir: string; order: Order; progress?: Progress },
): Sample {
  const file = join(dir, 'sample.json')
  mkdirSync(dir, { recursive: true })
  // Removed first: it must not describe the old files next to half of the new ones.
  rmSync(file, { force: true })
  const sample: Sample = {
    generator: GENERATOR,
    spec: dataset.spec,
    order,
    properties: dataset.properties.ids.length,
    rows: dataset.rows.property.length,
    packages: dataset.packages,
    segments: dataset.names.segments.length,
    ...writeDataset(dataset, { dir, order, ...(progress && { progress }) }),
  }
  writeFileSync(file, `${JSON.stringify(sample, null, 2)}\n`)
  return sample
}

function readSample(file: string): Sample | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Sample
  } catch {
    // Absent, cut or not ours: the files are written again, which is always right.
    return undefined
  }
}

const PROGRESS = ['auto', 'json', 'none'] as const
type ProgressForm = (typeof PROGRESS)[number]

const FLAGS = {
  packages: { type: 'integer', min: 1, max: PACKAGES_MAX, required: true, summary: 'Daily packages to write.' },
  out: { type: 'text', required: true, value: 'DIR', summary: 'Folder; made if absent, files in it are replaced.' },
  shape: {
    type: 'choice',
    choices: SHAPES,
    default: 'uniform',
    summary: 'Every value equally likely, or a region of the Alps.',
  },
  days: { ...whole(60, 1, DAYS_MAX), summary: 'Nights on sale.' },
  from: { type: 'text', value: 'YYYY-MM-DD', summary: 'First night; today (UTC) unless given.' },
  seed: { ...whole(1, 0, 4_294_967_295), summary: 'Seed of the random sample data.' },
  segments: { ...whole(0, 0, SEGMENTS_MAX), summary: 'Number of segments; 0 = by the number of properties.' },
  nights: {
    type: 'choice',
    choices: NIGHTS,
    default: 'random',
    summary: 'Whether availability and price change from night to night.',
  },
  order: {
    type: 'choice',
    choices: ORDERS,
    default: 'grouped',
    summary: 'By property, room type and date, or in no order: the worst case of an import.',
  },
  progress: {
    type: 'choice',
    choices: PROGRESS,
    default: 'auto',
    summary: 'A line on the terminal, JSON lines on stdout, or none.',
  },
} as const

export const sampleCommand = defineCommand({
  name: 'vacancy sample',
  component: 'SAMPLE',
  summary: 'Writes properties.csv, packages.csv and codecs.yml. The same flags give the same files.',
  flags: FLAGS,
  run: async ({ flags }) => {
    const spec = specFrom(flags, dayOf(Date.now()))
    const [order, progress] = [flags.order as Order, flags.progress as ProgressForm]
    const begun = performance.now()
    const printed = progressPrinter(progress, spec.packages)
    const sample = writeSample(createDataset(spec), { dir: flags.out, order, progress: printed })
    printSummary(sample, { dir: flags.out, seconds: (performance.now() - begun) / 1000, progress })
    return EXIT.ok
  },
})

/** The table of the command, for what is made from it. */
export const commands = async (): Promise<readonly Command[]> => [sampleCommand]

/** Runs `vacancy sample`; sets the exit code. */
export async function main([, ...args]: readonly string[]): Promise<void> {
  await runCommand(sampleCommand, args)
}

/** Throws a VacancyError `usage_error` for what a flag alone does not show to be wrong. */
export function specFrom(flags: FlagValues<typeof FLAGS>, today: number): DatasetSpec {
  const from = flags.from === undefined ? today : parseDay(flags.from)
  if (from === undefined) {
    throw new VacancyError('usage_error', { reason: `--from: ${flags.from} is not a date such as 2026-03-01` })
  }
  const shape = flags.shape as DatasetSpec['shape']
  if (flags.segments > segmentsMax(shape)) {
    throw new VacancyError('usage_error', {
      reason: `--segments: the ${shape} has ${segmentsMax(shape)} segments at most`,
    })
  }
  const { packages, days, seed, segments } = flags
  return { shape, packages, days, from, seed, segments, nights: flags.nights as DatasetSpec['nights'] }
}

const MS_BETWEEN_LINES = 250

function progressPrinter(form: ProgressForm, total: number): Progress {
  if (form === 'none' || (form === 'auto' && !process.stderr.isTTY)) return () => {}
  let printedAt = -Infinity
  return (packages) => {
    const now = performance.now()
    if (now - printedAt < MS_BETWEEN_LINES && packages < total) return
    printedAt = now
    if (form === 'json') process.stdout.write(`${JSON.stringify({ phase: 'write', packages, total })}\n`)
    else process.stderr.write(`\r${Math.floor((packages / total) * 100)} %  ${packages} of ${total} packages`)
  }
}

function printSummary(
  sample: Sample,
  { dir, seconds, progress }: { dir: string; seconds: number; progress: ProgressForm },
): void {
  const { properties, packages, segments, spec } = sample
  const bytes = sample.propertiesBytes + sample.packagesBytes
  const megabytesPerSecond = Math.round(bytes / 1e6 / seconds)
  if (progress === 'json') {
    const summary = { phase: 'done', properties, packages, segments, bytes, seconds, megabytesPerSecond }
    process.stdout.write(`${JSON.stringify(summary)}\n`)
    return
  }
  if (progress === 'auto' && process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  const window = `${formatDay(spec.from)} to ${formatDay(spec.from + spec.days - 1)}`
  process.stdout.write(
    `${dir}: ${packages} packages of ${properties} properties in ${segments} segments, ${window}\n` +
      `${(bytes / 1e6).toFixed(1)} MB in ${seconds.toFixed(1)} s, ${megabytesPerSecond} MB/s\n`,
  )
}
