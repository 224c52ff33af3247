/** The command `build-snapshot`: its flags, and what it prints (docs/design/storage.md#import). */

import { rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  addOneYear,
  type Clock,
  dayOf,
  EXIT,
  groupDigits,
  ID_RULE,
  LIMITS,
  parseDay,
  parseId,
  VacancyError,
} from '@vacancy/shared'
import type { BuildEvent } from '@vacancy/shared/contract'
import {
  type Command,
  choice,
  defineCommand,
  type FlagValues,
  loadCodecFile,
  named,
  whole,
  writerOf,
} from '@vacancy/shared/node'
import { usableCores } from '../cores.ts'
import { createEnv, type Env } from '../env.ts'
import { DAY_BEGINS } from '../store/day.ts'
import {
  buildSnapshot,
  type ImportErrors,
  type ImportOptions,
  type ImportOutcome,
  type ImportSummary,
  SEED_FILE,
} from './import.ts'
import { type ImportProgress, inMillions, progressLine } from './progress.ts'
import { findingLine, printedFinding } from './row-errors.ts'
import { buildShards, PARTS_FOLDER, SHARDS_FILE } from './shards.ts'

const THREADS_MAX = 64
/** Limits of the `--errors` file: number of errors, and bytes of rows, which memory must hold. */
const ERRORS_KEPT_MAX = 10_000
const ROW_BYTES_MAX = 64 * 1024 * 1024

const FLAGS = {
  'shard-id': { ...named('ID'), required: true, summary: 'Shard that the snapshot is for.' },
  'input-path': {
    ...named('DIR'),
    required: true,
    summary: 'Folder with properties.csv, packages.csv and codecs.yml.',
  },
  'output-path': {
    ...named('DIR'),
    summary: 'Folder for seed.snapshot, created if absent. Default: the input folder.',
  },
  codecs: { ...named('FILE'), summary: 'Codec file. Default: codecs.yml of the input folder.' },
  from: { ...named('DATE'), summary: 'First night to keep. Default: the present day of the shard.' },
  to: { ...named('DATE'), summary: 'Last night to keep. Default: a year from that day.' },
  'day-begins-minutes': {
    ...whole(0, DAY_BEGINS.min, DAY_BEGINS.max),
    summary: 'When the day of the shard begins, in minutes after midnight UTC: its setting day_begins_minutes.',
  },
  'out-of-window': {
    ...choice(['skip', 'error'], 'skip'),
    summary: 'Packages outside these nights are skipped and counted, or errors.',
  },
  'price-decimals': {
    ...whole(0, 0, LIMITS.priceDecimalsMax),
    summary:
      'Decimals of the prices in packages.csv: with 2, 12.50 and 12.5 are 1250 and 12 is 1200. With 0 a price with a point is refused.',
  },
  'max-shard-packages': {
    ...whole(0, 0, 1_000_000_000),
    summary:
      'Splits the input by whole segments into shards of so many packages at most: folders <shard-id>1, <shard-id>2 … and shards.json. 0: one shard.',
  },
  threads: { ...whole(0, 0, THREADS_MAX), summary: 'Threads; 0: one per core.' },
  'max-errors': { ...whole(20, 1, 100_000), summary: 'Errors to show; all are counted.' },
  overwrite: { type: 'boolean', summary: 'Replaces an existing seed.snapshot.' },
  progress: {
    ...choice(['auto', 'json', 'none'], 'auto'),
    summary: 'A bar on a terminal, JSON lines on stdout for programs, or nothing.',
  },
  report: { ...named('FILE'), summary: 'Writes the summary, or the errors, to this file as JSON.' },
  errors: {
    ...named('FILE'),
    summary: 'Writes the first 10000 errors to this file, one line of JSON each, with the original row.',
  },
} as const

export const buildSnapshotCommand: Command = defineCommand({
  name: 'vacancy build-snapshot',
  component: 'build-snapshot',
  summary: 'Builds seed.snapshot, from which a node starts, from properties.csv and packages.csv.',
  flags: FLAGS,
  run: ({ flags }) => runBuild(flags, createEnv(silent)),
})

/** The import reports only through its summary and its errors. */
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

async function runBuild(flags: FlagValues<typeof FLAGS>, env: Env): Promise<number> {
  const { shardId, inputPath, outputPath = inputPath, progress, report } = flags
  if (parseId(shardId) === undefined) throw usage(`--shard-id: ${JSON.stringify(shardId)} is not ${ID_RULE}`)
  if (!isFolder(inputPath)) throw usage(`--input-path: ${inputPath} is not a folder`)
  const codecFile = flags.codecs ?? join(inputPath, 'codecs.yml')
  const codecs = loadCodecFile(codecFile, 'codecs')
  const writer = writerOf(codecFile)
  if (writer !== '') throw usage(`${codecFile} is still open for writing by ${writer}`)
  const endSignals = removeOnSignal([`${join(outputPath, SEED_FILE)}.tmp`, join(outputPath, PARTS_FOLDER)])
  const show = createDisplay(progress, env.clock)
  try {
    const options: ImportOptions = {
      shardId,
      inputPath,
      outputPath,
      codecs,
      ...windowOf(flags, env.clock),
      outOfWindow: flags.outOfWindow,
      priceDecimals: flags.priceDecimals,
      errorsMax: flags.errors === undefined ? flags.maxErrors : Math.max(flags.maxErrors, ERRORS_KEPT_MAX),
      ...(flags.errors !== undefined && { rowBytesMax: ROW_BYTES_MAX }),
      overwrite: flags.overwrite,
      threads: flags.threads === 0 ? Math.min(usableCores(), THREADS_MAX) : flags.threads,
      ...(show.progress && { onProgress: show.progress }),
    }
    if (flags.maxShardPackages > 0) return await runShards(flags, env, options, show)
    const outcome = await buildSnapshot(env, options)
    if (flags.errors !== undefined) writeErrors(flags.errors, outcome)
    const shown = withFewerErrors(outcome, flags.maxErrors)
    if (report !== undefined) writeReport(report, shown)
    show.end(shown)
    return outcome.ok ? EXIT.ok : EXIT.conflict
  } finally {
    show.clear()
    endSignals()
  }
}

/** Prints each shard when it is built. An error in one ends all. */
async function runShards(
  flags: FlagValues<typeof FLAGS>,
  env: Env,
  options: ImportOptions,
  show: Display,
): Promise<number> {
  const built = await buildShards(env, {
    ...options,
    packagesMax: flags.maxShardPackages,
    onShard: (summary) => show.end({ ok: true, summary }),
  })
  if (flags.errors !== undefined && !built.ok) writeErrors(flags.errors, built.outcome)
  if (!built.ok) {
    const shown = withFewerErrors(built.outcome, flags.maxErrors)
    if (flags.report !== undefined) writeReport(flags.report, shown)
    process.stderr.write(`part ${built.shardId} of the input (lines are counted in it):\n`)
    show.end(shown)
    return EXIT.conflict
  }
  if (flags.report !== undefined)
    writeFileSync(flags.report, `${JSON.stringify({ ok: true, shards: built.shards }, undefined, 2)}\n`)
  if (flags.progress !== 'json')
    process.stdout.write(`${built.shards.length} shards  ${join(options.outputPath, SHARDS_FILE)}\n`)
  return EXIT.ok
}

function usage(reason: string): VacancyError {
  return new VacancyError('usage_error', { reason })
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

function windowOf(
  { from, to, dayBeginsMinutes }: FlagValues<typeof FLAGS>,
  clock: Clock,
): { firstDay: number; lastDay: number } {
  const today = dayOf(clock.wallMs() - dayBeginsMinutes * 60_000)
  return { firstDay: dayOfFlag('from', from) ?? today, lastDay: dayOfFlag('to', to) ?? addOneYear(today) }
}

function dayOfFlag(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const day = parseDay(text)
  if (day === undefined) throw usage(`--${name}: ${JSON.stringify(text)} is not a date YYYY-MM-DD`)
  return day
}

/** An interrupted import leaves no files behind. */
function removeOnSignal(temporary: readonly string[]): () => void {
  const end = () => {
    for (const path of temporary) rmSync(path, { recursive: true, force: true })
    process.stderr.write('\ninterrupted; nothing was written\n')
    process.exit(EXIT.failure)
  }
  process.once('SIGINT', end)
  process.once('SIGTERM', end)
  return () => {
    process.off('SIGINT', end)
    process.off('SIGTERM', end)
  }
}

/** Without errors the file is empty, but exists. */
function writeErrors(path: string, outcome: ImportOutcome): void {
  const first = outcome.ok ? [] : outcome.errors.first.slice(0, ERRORS_KEPT_MAX)
  writeFileSync(path, first.map((finding) => `${findingLine(finding)}\n`).join(''))
}

/** The errors for display and reports: as many as requested, without their rows. */
function withFewerErrors(outcome: ImportOutcome, most: number): ImportOutcome {
  if (outcome.ok) return outcome
  const first = outcome.errors.first.slice(0, most).map(({ row: _row, ...finding }) => finding)
  return { ok: false, errors: { ...outcome.errors, first } }
}

function writeReport(path: string, outcome: ImportOutcome): void {
  const content = outcome.ok ? { ok: true, ...outcome.summary } : { ok: false, errors: outcome.errors }
  writeFileSync(path, `${JSON.stringify(content, undefined, 2)}\n`)
}

type Display = {
  readonly progress?: (progress: ImportProgress) => void
  readonly end: (outcome: ImportOutcome) => void
  /** Clears the progress bar from the terminal. */
  readonly clear: () => void
}

function createDisplay(kind: 'auto' | 'json' | 'none', clock: Clock): Display {
  if (kind === 'json') {
    return {
      progress: (progress) => printJson({ event: 'progress', ...progress }),
      end: (outcome) => {
        if (outcome.ok) printJson({ event: 'done', ...outcome.summary })
        else printJson({ event: 'failed', ...outcome.errors })
      },
      clear: () => {},
    }
  }
  const end = (outcome: ImportOutcome) => {
    clear()
    if (outcome.ok) process.stdout.write(`${summaryLines(outcome.summary).join('\n')}\n`)
    else process.stderr.write(`${errorLines(outcome.errors).join('\n')}\n`)
  }
  let isShown = false
  const clear = () => {
    if (isShown) process.stderr.write('\r\u001b[K')
    isShown = false
  }
  if (kind === 'none' || !process.stderr.isTTY) return { end, clear }
  let shownMs = 0
  const progress = (now: ImportProgress) => {
    const nowMs = clock.monotonicMs()
    if (nowMs - shownMs < BAR_MS) return
    shownMs = nowMs
    isShown = true
    process.stderr.write(`\r\u001b[K${progressLine(now, process.stderr.columns - 1)}`)
  }
  return { progress, end, clear }
}

const BAR_MS = 100

function printJson(event: BuildEvent): void {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}

export function summaryLines(summary: ImportSummary): string[] {
  const { packages, properties, segments, roomTypes, nights, window, seconds, recordsPerSecond } = summary
  const held = nights ? `${nights.from} to ${nights.to}` : 'none'
  return [
    `${groupDigits(packages)} packages of ${groupDigits(properties)} properties in ${seconds.toFixed(2)} s: ` +
      `${inMillions(recordsPerSecond)} records/s with ${summary.threads} threads`,
    `segments ${groupDigits(segments)}  room types ${groupDigits(roomTypes)}  nights ${held}`,
    ...(summary.outOfWindow > 0
      ? [`left out: ${groupDigits(summary.outOfWindow)} packages outside ${window.from} to ${window.to}`]
      : []),
    ...summary.notes.map((note) => `note: ${note}`),
    `snapshot ${summary.snapshotId}  ${groupDigits(summary.bytes)} bytes  ${summary.path}`,
  ]
}

export function errorLines({ count, first }: ImportErrors): string[] {
  const more = count - first.length
  return [
    ...first.map(printedFinding),
    ...(more > 0 ? [`… and ${groupDigits(more)} more; --max-errors shows more of them`] : []),
    `${groupDigits(count)} ${count === 1 ? 'error' : 'errors'}; nothing was written`,
  ]
}
