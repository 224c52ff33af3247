/** Progress of an import, as a bar on a terminal and as JSON lines for programs. */

import { groupDigits } from '@vacancy/shared'

/** In order. `errors` only after an error: the file is read again to report all of them. */
const PHASES = {
  properties: 'reading properties',
  packages: 'reading packages',
  errors: 'looking for errors',
  tables: 'arranging tables',
  write: 'writing the snapshot',
} as const
export type Phase = keyof typeof PHASES

export type ImportProgress = {
  readonly phase: Phase
  /** Bytes read, or parts written, in this phase. */
  readonly done: number
  readonly total: number
  /** Lines of packages.csv read so far. */
  readonly packages: number
  /** Since the import began. */
  readonly seconds: number
  readonly recordsPerSecond: number
  /** Until the end of this phase; absent before any progress. */
  readonly etaSeconds?: number
}

/** Of an import from a source, before the import itself: rows become files. */
export type SourceProgress = {
  readonly phase: 'source'
  readonly file: string
  /** Bytes of the file so far. */
  readonly done: number
  readonly seconds: number
}

const BAR_CELLS = 24

/** One line, no longer than `columns`. */
export function progressLine(progress: ImportProgress | SourceProgress, columns: number): string {
  if (progress.phase === 'source') {
    const { file, done, seconds } = progress
    return `reading the source    ${file}  ${Math.round(done / 1e6)} MB  ${Math.round(seconds)} s`.slice(0, columns)
  }
  const { phase, done, total, packages, recordsPerSecond, etaSeconds } = progress
  const share = total === 0 ? 1 : done / total
  const full = Math.round(share * BAR_CELLS)
  const bar = '█'.repeat(full) + '░'.repeat(BAR_CELLS - full)
  const percent = `${Math.floor(share * 100)} %`.padStart(5)
  const rate = recordsPerSecond > 0 ? `  ${inMillions(recordsPerSecond)} records/s` : ''
  const eta = etaSeconds === undefined ? '' : `  ETA ${etaText(etaSeconds)}`
  return `${PHASES[phase].padEnd(20)} ${bar} ${percent}  ${groupDigits(packages)}${rate}${eta}`.slice(0, columns)
}

export function inMillions(count: number): string {
  return count >= 100_000 ? `${(count / 1e6).toFixed(1)} M` : groupDigits(count)
}

function etaText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
}
