/** `npm run sample`: writes a seeded data set as the CSV files that build-snapshot reads. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { dayOf, EXIT, formatDay, parseDay } from '@vacancy/shared'
import { ORDERS, type Order, type Progress, writeDataset } from './csv.ts'
import {
  createDataset,
  DAYS_MAX,
  type Dataset,
  type DatasetSpec,
  NIGHTS,
  PACKAGES_MAX,
  SHAPES,
  segmentsMax,
} from './dataset.ts'

/** Raised whenever equal arguments give other bytes than before, so that older files are written again. */
const GENERATOR = 1

const HELP = `npm run sample -- --packages N --out DIR [options]

Writes properties.csv, packages.csv and codecs.yml into DIR: equal bytes for equal arguments.

  --packages N            daily packages, 1 to ${PACKAGES_MAX}
  --out DIR               folder to write to; made if absent, files of the same name are replaced
  --shape uniform         every value equally likely, 4 room types a property
          skewed          sizes spread as in real inventories
          region          the Alps: towns, seasons, weekends that are sold out (default: uniform)
  --days D                nights on sale, 1 to ${DAYS_MAX} (default: 60)
  --from YYYY-MM-DD       first night (default: today, UTC)
  --seed S                whole number (default: 1)
  --segments N            segments (default: by the number of properties)
  --nights random         availability and price change from night to night (default)
           constant       they do not
  --order grouped         by property, room type and date (default)
          shuffled        in no order, the worst case of an import
  --progress auto         a line on the terminal; json: one JSON line per report; none
`

/** What was asked for and what came of it; written as sample.json beside the files when they are whole. */
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

/** Writes the data set unless `dir` holds exactly it already. */
export function ensureSample(
  dataset: Dataset,
  { dir, order, progress }: { dir: string; order: Order; progress?: Progress },
): { sample: Sample; isNew: boolean } {
  const file = join(dir, 'sample.json')
  const known = readSample(file)
  const wanted = { generator: GENERATOR, spec: dataset.spec, order }
  const { generator, spec, order: knownOrder } = known ?? {}
  if (known && JSON.stringify({ generator, spec, order: knownOrder }) === JSON.stringify(wanted)) {
    return { sample: known, isNew: false }
  }
  return { sample: writeSample(dataset, { dir, order, ...(progress && { progress }) }), isNew: true }
}

export function writeSample(
  dataset: Dataset,
  { dir, order, progress }: { dir: string; order: Order; progress?: Progress },
): Sample {
  const file = join(dir, 'sample.json')
  mkdirSync(dir, { recursive: true })
  // Taken away first: what is said of the old files must not be read beside half of the new ones.
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

const OPTIONS = {
  packages: { type: 'string' },
  out: { type: 'string' },
  shape: { type: 'string', default: 'uniform' },
  days: { type: 'string', default: '60' },
  from: { type: 'string' },
  seed: { type: 'string', default: '1' },
  segments: { type: 'string', default: '0' },
  nights: { type: 'string', default: 'random' },
  order: { type: 'string', default: 'grouped' },
  progress: { type: 'string', default: 'auto' },
  help: { type: 'boolean', default: false },
} as const

const PROGRESS = ['auto', 'json', 'none'] as const
type ProgressForm = (typeof PROGRESS)[number]

export type SampleArguments = { dir: string; spec: DatasetSpec; order: Order; progress: ProgressForm }

/** Reads the command line. Throws a RangeError or parseArgs' own error that says in one sentence what is wrong. */
export function readArguments(args: string[], today: number): SampleArguments | 'help' {
  const { values } = parseArgs({ args, options: OPTIONS, strict: true })
  if (values.help) return 'help'
  if (!values.out) throw new RangeError('--out is required: the folder to write to')
  if (!values.packages) throw new RangeError('--packages is required: how many daily packages to write')
  const shape = oneOf('--shape', values.shape, SHAPES)
  const from = values.from === undefined ? today : parseDay(values.from)
  if (from === undefined) throw new RangeError(`--from must be a date like 2026-03-01, got ${values.from}`)
  return {
    dir: values.out,
    spec: {
      shape,
      packages: wholeNumber('--packages', values.packages, 1, PACKAGES_MAX),
      days: wholeNumber('--days', values.days, 1, DAYS_MAX),
      from,
      seed: wholeNumber('--seed', values.seed, 0, 2 ** 32 - 1),
      segments: wholeNumber('--segments', values.segments, 0, segmentsMax(shape)),
      nights: oneOf('--nights', values.nights, NIGHTS),
    },
    order: oneOf('--order', values.order, ORDERS),
    progress: oneOf('--progress', values.progress, PROGRESS),
  }
}

function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= least && value <= most) return value
  throw new RangeError(`${flag} must be a whole number from ${least} to ${most}, got ${text}`)
}

function oneOf<T extends string>(flag: string, text: string, known: readonly T[]): T {
  const found = known.find((name) => name === text)
  if (found === undefined) throw new RangeError(`${flag} must be one of ${known.join(', ')}, got ${text}`)
  return found
}

function main(): void {
  let asked: SampleArguments | 'help'
  try {
    asked = readArguments(process.argv.slice(2), dayOf(Date.now()))
  } catch (error) {
    process.stderr.write(`sample: ${(error as Error).message} (--help shows all flags)\n`)
    process.exitCode = EXIT.usage
    return
  }
  if (asked === 'help') {
    process.stdout.write(HELP)
    return
  }
  const { dir, spec, order, progress } = asked
  const begun = performance.now()
  const sample = writeSample(createDataset(spec), { dir, order, progress: progressPrinter(progress, spec.packages) })
  const seconds = (performance.now() - begun) / 1000
  printSummary(sample, { dir, seconds, progress })
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

if (import.meta.main) main()
