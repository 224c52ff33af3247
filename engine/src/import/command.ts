/** The command `build-snapshot`: its flags, and what it prints (platform.md §7.10). */

import { rmSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { addOneYear, type Clock, dayOf, EXIT, ID_RULE, parseDay, parseId, VacancyError } from '@vacancy/shared'
import type { BuildEvent } from '@vacancy/shared/contract'
import { type Command, defineCommand, type FlagValues, loadCodecFile } from '@vacancy/shared/node'
import { createEnv, type Env } from '../env.ts'
import { findingLine, printedFinding } from './faults.ts'
import { buildSnapshot, type ImportErrors, type ImportOutcome, type ImportSummary, SEED_FILE } from './import.ts'
import { type ImportProgress, inMillions, progressLine, withCommas } from './progress.ts'

const THREADS_MAX = 64
/** Errors in the file of `--errors`, and bytes of rows beside them: what a person looks through, and memory can hold. */
const ERRORS_KEPT_MAX = 10_000
const ROW_BYTES_MAX = 64 * 1024 * 1024

const FLAGS = {
  'shard-id': { type: 'text', required: true, summary: 'Shard that the snapshot is for.', value: 'ID' },
  'input-path': {
    type: 'text',
    required: true,
    summary: 'Folder with properties.csv, packages.csv and codecs.yml.',
    value: 'DIR',
  },
  'output-path': {
    type: 'text',
    summary: 'Folder for seed.snapshot, made if absent; the input folder unless given.',
    value: 'DIR',
  },
  codecs: { type: 'text', summary: 'Codec file; codecs.yml of the input folder unless given.', value: 'FILE' },
  from: { type: 'text', summary: 'First night to keep; today (UTC) unless given.', value: 'DATE' },
  to: { type: 'text', summary: 'Last night to keep; a year from today unless given.', value: 'DATE' },
  'out-of-window': {
    type: 'choice',
    choices: ['skip', 'error'],
    default: 'skip',
    summary: 'What packages outside these nights are: left out and counted, or errors.',
  },
  threads: { type: 'integer', min: 0, max: THREADS_MAX, default: 0, summary: 'Threads; 0: one a core.' },
  'max-errors': { type: 'integer', min: 1, max: 100_000, default: 20, summary: 'Errors to show; all are counted.' },
  overwrite: { type: 'boolean', summary: 'Replaces a seed.snapshot that is there.' },
  progress: {
    type: 'choice',
    choices: ['auto', 'json', 'none'],
    default: 'auto',
    summary: 'A bar on a terminal, JSON lines on stdout for programs, or nothing.',
  },
  report: { type: 'text', summary: 'Writes the summary, or the errors, to this file as JSON.', value: 'FILE' },
  errors: {
    type: 'text',
    summary: 'Writes the first 10000 errors to this file, each a line of JSON with the row as it stands in its file.',
    value: 'FILE',
  },
} as const

export const buildSnapshotCommand: Command = defineCommand({
  name: 'vacancy build-snapshot',
  component: 'build-snapshot',
  summary: 'Makes seed.snapshot, which a node starts from, out of properties.csv and packages.csv.',
  flags: FLAGS,
  run: ({ flags }) => runBuild(flags, createEnv(silent)),
})

/** The import speaks through its summary and its errors. */
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

async function runBuild(flags: FlagValues<typeof FLAGS>, env: Env): Promise<number> {
  const { shardId, inputPath, outputPath = inputPath, progress, report } = flags
  if (parseId(shardId) === undefined) throw usage(`--shard-id: ${JSON.stringify(shardId)} is not ${ID_RULE}`)
  if (!isFolder(inputPath)) throw usage(`--input-path: ${inputPath} is no folder`)
  const codecs = loadCodecFile(flags.codecs ?? join(inputPath, 'codecs.yml'), 'codecs')
  const endSignals = removeOnSignal(`${join(outputPath, SEED_FILE)}.tmp`)
  const show = createDisplay(progress, env.clock)
  try {
    const outcome = await buildSnapshot(env, {
      shardId,
      inputPath,
      outputPath,
      codecs,
      ...windowOf(flags, env.clock),
      outOfWindow: flags.outOfWindow,
      errorsMax: flags.errors === undefined ? flags.maxErrors : Math.max(flags.maxErrors, ERRORS_KEPT_MAX),
      ...(flags.errors !== undefined && { rowBytesMax: ROW_BYTES_MAX }),
      overwrite: flags.overwrite,
      threads: flags.threads === 0 ? Math.min(availableParallelism(), THREADS_MAX) : flags.threads,
      ...(show.progress && { onProgress: show.progress }),
    })
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

function usage(reason: string): VacancyError {
  return new VacancyError('usage_error', { reason })
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}

function windowOf({ from, to }: FlagValues<typeof FLAGS>, clock: Clock): { firstDay: number; lastDay: number } {
  const today = dayOf(clock.wallMs())
  return { firstDay: dayOfFlag('from', from) ?? today, lastDay: dayOfFlag('to', to) ?? addOneYear(today) }
}

function dayOfFlag(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const day = parseDay(text)
  if (day === undefined) throw usage(`--${name}: ${JSON.stringify(text)} is not a date YYYY-MM-DD`)
  return day
}

/** Interrupted, an import leaves nothing behind. */
function removeOnSignal(temporary: string): () => void {
  const end = () => {
    rmSync(temporary, { force: true })
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

/** Nothing is an empty file: whoever asked for errors finds an answer. */
function writeErrors(path: string, outcome: ImportOutcome): void {
  const first = outcome.ok ? [] : outcome.errors.first.slice(0, ERRORS_KEPT_MAX)
  writeFileSync(path, first.map((finding) => `${findingLine(finding)}\n`).join(''))
}

/** What people and reports get: as many errors as were asked for, without their rows. */
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
  /** Takes the bar off the terminal. */
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
    `${withCommas(packages)} packages of ${withCommas(properties)} properties in ${seconds.toFixed(2)} s: ` +
      `${inMillions(recordsPerSecond)} records/s with ${summary.threads} threads`,
    `segments ${withCommas(segments)}  room types ${withCommas(roomTypes)}  nights ${held}`,
    ...(summary.outOfWindow > 0
      ? [`left out: ${withCommas(summary.outOfWindow)} packages outside ${window.from} to ${window.to}`]
      : []),
    ...summary.notes.map((note) => `note: ${note}`),
    `snapshot ${summary.snapshotId}  ${withCommas(summary.bytes)} bytes  ${summary.path}`,
  ]
}

export function errorLines({ count, first }: ImportErrors): string[] {
  const more = count - first.length
  return [
    ...first.map(printedFinding),
    ...(more > 0 ? [`… and ${withCommas(more)} more; --max-errors shows more of them`] : []),
    `${withCommas(count)} ${count === 1 ? 'error' : 'errors'}; nothing was written`,
  ]
}
