/** The command `build-snapshot`: its flags, and what it prints (docs/design/storage.md#import). */

import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  addOneYear,
  type Clock,
  type CodecList,
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
import { lockFile } from '@vacancy/shared/file-lock'
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
  toDisk,
} from './import.ts'
import { type ImportProgress, inMillions, progressLine, type SourceProgress } from './progress.ts'
import { type Finding, findingLine, printedFinding } from './row-errors.ts'
import { buildShards, PARTS_FOLDER, SHARDS_FILE } from './shards.ts'

const THREADS_MAX = 64
/** Limits of the `--errors` file: number of errors, and bytes of rows, which memory must hold. */
const ERRORS_KEPT_MAX = 10_000
const ROW_BYTES_MAX = 64 * 1024 * 1024

/** What both commands that build a snapshot have, beside their input. */
export const SHARD_FLAG = {
  'shard-id': { ...named('ID'), required: true, summary: 'Shard that the snapshot is for.' },
} as const
export const BUILD_FLAGS = {
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

const FLAGS = {
  ...SHARD_FLAG,
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
  ...BUILD_FLAGS,
} as const

export const buildSnapshotCommand: Command = defineCommand({
  name: 'vacancy build-snapshot',
  component: 'build-snapshot',
  summary: 'Builds seed.snapshot, from which a node starts, from properties.csv and packages.csv.',
  flags: FLAGS,
  run: ({ flags }) => runBuild(flags, createEnv(silent)),
})

/** The import reports only through its summary and its errors. */
export const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

export type BuildFlags = FlagValues<typeof SHARD_FLAG & typeof BUILD_FLAGS>

/** Where the files of a build come from. */
export type BuildInput = {
  /** Folder of properties.csv and packages.csv. */
  readonly inputPath: string
  readonly outputPath: string
  readonly codecs: CodecList
  /** Names the file, row and column that a person knows. */
  readonly rename?: (finding: Finding) => Finding
  /** Of what was done before, for the summary. */
  readonly notes?: readonly string[]
}

async function runBuild(flags: FlagValues<typeof FLAGS>, env: Env): Promise<number> {
  const { inputPath, outputPath = inputPath } = flags
  checkShardId(flags.shardId)
  if (!isFolder(inputPath)) throw usage(`--input-path: ${inputPath} is not a folder`)
  const codecs = readCodecs(flags.codecs ?? join(inputPath, 'codecs.yml'))
  const release = await holdOutput(outputPath)
  const show = createDisplay(flags.progress, env.clock)
  try {
    return await buildFrom({ inputPath, outputPath, codecs }, flags, env, show)
  } finally {
    show.clear()
    release()
  }
}

/** @returns the exit code */
export async function buildFrom(input: BuildInput, flags: BuildFlags, env: Env, show: Display): Promise<number> {
  const options: ImportOptions = {
    shardId: flags.shardId,
    inputPath: input.inputPath,
    outputPath: input.outputPath,
    codecs: input.codecs,
    ...windowOf(flags, env.clock),
    outOfWindow: flags.outOfWindow,
    priceDecimals: flags.priceDecimals,
    errorsMax: flags.errors === undefined ? flags.maxErrors : Math.max(flags.maxErrors, ERRORS_KEPT_MAX),
    ...(flags.errors !== undefined && { rowBytesMax: ROW_BYTES_MAX }),
    overwrite: flags.overwrite,
    threads: threadsOf(flags),
    ...(show.progress && { onProgress: show.progress }),
  }
  if (flags.maxShardPackages > 0) return await runShards(flags, env, options, input, show)
  return endWith(shownBy(input, await buildSnapshot(env, options)), flags, show)
}

/** Writes the files of errors and report, and shows the outcome. @returns the exit code */
export function endWith(
  outcome: ImportOutcome,
  flags: Pick<BuildFlags, 'errors' | 'maxErrors' | 'report'>,
  show: Display,
): number {
  if (flags.errors !== undefined) writeErrors(flags.errors, outcome)
  const shown = withFewerErrors(outcome, flags.maxErrors)
  if (flags.report !== undefined) writeReport(flags.report, shown)
  show.end(shown)
  return outcome.ok ? EXIT.ok : EXIT.conflict
}

/** Prints each shard when it is built. An error in one ends all. */
async function runShards(
  flags: BuildFlags,
  env: Env,
  options: ImportOptions,
  input: BuildInput,
  show: Display,
): Promise<number> {
  const built = await buildShards(env, {
    ...options,
    packagesMax: flags.maxShardPackages,
    onShard: (summary) => show.end({ ok: true, summary }),
  })
  if (!built.ok) {
    process.stderr.write(`part ${built.shardId} of the input (lines are counted in it):\n`)
    return endWith(shownBy(input, built.outcome), flags, show)
  }
  if (flags.report !== undefined)
    writeFileSync(flags.report, `${JSON.stringify({ ok: true, shards: built.shards }, undefined, 2)}\n`)
  if (flags.progress !== 'json') {
    const notes = (input.notes ?? []).map((note) => `note: ${note}\n`).join('')
    process.stdout.write(`${notes}${built.shards.length} shards  ${join(options.outputPath, SHARDS_FILE)}\n`)
  }
  return EXIT.ok
}

/** The outcome in the words of the input. */
function shownBy({ rename = (finding) => finding, notes = [] }: BuildInput, outcome: ImportOutcome): ImportOutcome {
  if (outcome.ok) return { ok: true, summary: { ...outcome.summary, notes: [...notes, ...outcome.summary.notes] } }
  const { errors } = outcome
  const groups = errors.groups.map(({ count, first }) => ({ count, first: rename(first) }))
  return { ok: false, errors: { ...errors, first: errors.first.map(rename), groups } }
}

export function threadsOf({ threads }: Pick<BuildFlags, 'threads'>): number {
  return threads === 0 ? Math.min(usableCores(), THREADS_MAX) : threads
}

export function usage(reason: string): VacancyError {
  return new VacancyError('usage_error', { reason })
}

export function checkShardId(shardId: string): void {
  if (parseId(shardId) === undefined) throw usage(`--shard-id: ${JSON.stringify(shardId)} is not ${ID_RULE}`)
}

export function readCodecs(file: string): CodecList {
  const codecs = loadCodecFile(file, 'codecs')
  const writer = writerOf(file)
  if (writer !== '') throw usage(`${file} is still open for writing by ${writer}`)
  return codecs
}

/** In an output folder, while a build runs. */
const LOCK_FILE = 'build.lock'
const HOLDER_FILE = 'build.process'

/**
 * Keeps other builds out of an output folder, which is created where it is missing, and removes what is unfinished when
 * a signal ends the process.
 *
 * @param work a folder of the caller, which is emptied and removed
 * @returns ends this; an empty folder that was created is removed
 * @throws directory_in_use while another build has the folder
 */
export async function holdOutput(outputPath: string, work?: string): Promise<() => void> {
  const isNew = !existsSync(outputPath)
  const [lockPath, holder] = [join(outputPath, LOCK_FILE), join(outputPath, HOLDER_FILE)]
  const lock = await toDisk(outputPath, () => {
    mkdirSync(outputPath, { recursive: true })
    return lockFile(lockPath)
  })
  if (!lock) {
    const pid = existsSync(holder) ? readFileSync(holder, 'utf8') : 'unknown'
    throw new VacancyError('directory_in_use', { directory: outputPath, pid })
  }
  await toDisk(holder, () => writeFileSync(holder, `${process.pid}`))
  // The lock goes last: others must not begin before the rest is gone.
  const own = [...(work ? [work] : []), holder, `${lockPath}-journal`, lockPath]
  if (work) remove([work])
  const endSignals = removeOnSignal([`${join(outputPath, SEED_FILE)}.tmp`, join(outputPath, PARTS_FOLDER), ...own])
  if (work) mkdirSync(work)
  return () => {
    endSignals()
    remove(own)
    lock.release()
    if (isNew && readdirSync(outputPath).length === 0) rmdirSync(outputPath)
  }
}

function remove(paths: readonly string[]): void {
  for (const path of paths) rmSync(path, { recursive: true, force: true })
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

export function windowOf(
  { from, to, dayBeginsMinutes }: BuildFlags,
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
    remove(temporary)
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

export type Display = {
  readonly progress?: (progress: ImportProgress | SourceProgress) => void
  readonly end: (outcome: ImportOutcome) => void
  /** Clears the progress bar from the terminal. */
  readonly clear: () => void
}

export function createDisplay(kind: 'auto' | 'json' | 'none', clock: Clock): Display {
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
  const progress = (now: ImportProgress | SourceProgress) => {
    const nowMs = clock.monotonicMs()
    if (nowMs - shownMs < BAR_MS) return
    shownMs = nowMs
    isShown = true
    process.stderr.write(`\r\u001b[K${progressLine(now, process.stderr.columns - 1)}`)
  }
  return { progress, end, clear }
}

const BAR_MS = 100

function printJson(event: BuildEvent | ({ event: 'progress' } & SourceProgress)): void {
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

export function errorLines({ count, first, groups }: ImportErrors): string[] {
  const more = count - first.length
  return [
    ...first.map(printedFinding),
    ...(more > 0 ? [`… and ${groupDigits(more)} more; --max-errors shows more of them. All, by their first:`] : []),
    ...(more > 0 ? groups.map((group) => `  ${groupDigits(group.count)} like ${printedFinding(group.first)}`) : []),
    `${groupDigits(count)} ${count === 1 ? 'error' : 'errors'}; nothing was written`,
  ]
}
