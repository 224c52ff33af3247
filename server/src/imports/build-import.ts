/**
 * Builds one import: reads its two uploads, builds a snapshot in a separate process, reads that back and counts it.
 * Results are stored in the item; the caller ends the import.
 */
import { existsSync } from 'node:fs'
import { mkdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createCodecList, groupDigits, IMPORT_COLUMNS } from '@vacancy/shared'
import { ProblemError } from '@vacancy/shared/api/route'
import {
  BUILD_PHASES,
  type BuildDone,
  type BuildEvent,
  type BuildPhase,
  FILE_KINDS,
  type FileKind,
  IMPORT_LIMITS,
  type ImportView,
} from '@vacancy/shared/contract'
import { buildArguments, inspectSnapshot, memoryOf, runBuild } from './builder.ts'
import { type Codecs, codecFile } from './codecs.ts'
import { addLogLine, buildFolder, type Imports, ordered, reportChange, saveImport } from './import-state.ts'
import type { FileNote, Item } from './item.ts'
import { FileFault, type Reading, readUpload } from './reading.ts'
import { keptOf, type RejectedLines } from './rejected.ts'
import { type Pace, remainingSeconds, type Work } from './remaining.ts'
import { addSnapshot } from './snapshot-store.ts'
import { storeDigest, uploadPath } from './uploads.ts'

/** How long an import tries to get the codec list. */
const CODECS_MS = 60_000
const CODECS_AGAIN_MS = 1_000

/** Before, the pace so far says little. */
const ETA_FROM_PERCENT = 5
/** Phases that report nothing take their time as well. */
const TICK_MS = 1_000
/** Of a gzip file, until it is unpacked. */
const UNPACKED_FACTOR = 8

export type BuildEnd = { readonly state: 'built' | 'failed'; readonly message: string; readonly hint: string }

/** @throws FileFault for an unreadable file; system errors; the reason of the signal */
export async function buildImport(imports: Imports, item: Item, signal: AbortSignal): Promise<BuildEnd> {
  const folder = buildFolder(imports, item.row.id)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  const attempts = item.row.attempts + 1
  addLogLine(imports, item, attempts === 1 ? 'started' : `restarted, attempt ${attempts}`)
  item.rates = []
  item.progress = null
  item.work = workOf(item)
  const begun = { state: 'checking', attempts, started_at: imports.clock.wallMs() }
  await saveImport(imports, item, begun, {
    message: 'Reading both files.',
    hint: '',
    errors: null,
    counters: null,
  })
  const list = await codecsFor(imports, item, signal)
  addLogLine(imports, item, `codec list of ${list.source}: ${list.names.join(', ')}`)
  await writeFile(join(folder, 'codecs.yml'), codecFile(list.names))
  const readings = await readBoth(imports, item, folder, signal)

  await saveImport(imports, item, { state: 'building' }, { message: 'Building the snapshot.' })
  const done = await buildWith(imports, item, folder, signal)
  if ('state' in done) return done

  await saveImport(imports, item, { state: 'verifying' }, { message: 'Verifying the snapshot.' })
  addLogLine(imports, item, 'reading the snapshot back')
  const verify = () => showProgress(imports, item, { phase: 'verify', done: 0, total: 1 })
  verify()
  const showing = setInterval(verify, TICK_MS)
  const document = await inspectSnapshot(done.path, signal).finally(() => clearInterval(showing))
  const counters = countersOf(readings, done, document)
  for (const line of counters.differs) addLogLine(imports, item, line)
  addLogLine(imports, item, counters.agree ? 'all counters agree' : 'counters differ')
  await addSnapshot(imports.snapshots, {
    path: done.path,
    document,
    counters,
    import: item.row,
    sources: FILE_KINDS.map((kind) => {
      const { name, bytes, sha256, rows } = item.detail.files[kind]
      return { name, bytes, sha256: sha256 ?? '', rows: rows ?? 0 }
    }),
  })
  const { seconds, recordsPerSecond, threads, kernel, notes } = done
  const command = `vacancy ${buildArguments({ ...optionsOf(item), inputPath: 'DIR', outputPath: 'DIR' }).join(' ')}`
  item.detail = {
    ...item.detail,
    counters,
    snapshot: document.id,
    result: { seconds, recordsPerSecond, threads, kernel, notes: [...notes], command },
  }
  showProgress(imports, item, { phase: 'verify', done: 1, total: 1 })
  item.detail = { ...item.detail, pace: { work: item.work, phases: phasesOf(item) } }
  const tookMs = imports.clock.wallMs() - (item.row.started_at ?? imports.clock.wallMs())
  const built = `Built in ${(tookMs / 1_000).toFixed(1)} s: ${groupDigits(done.packages)} packages of ${groupDigits(done.properties)} properties.`
  const differ = 'Counters differ, so it cannot be installed.'
  const hint = counters.agree ? '' : 'Import again; if they differ again, keep both files for a report.'
  return { state: 'built', message: counters.agree ? built : `${built} ${differ}`, hint }
}

/** A control plane that just started knows no node yet, and a node may be starting as well. */
async function codecsFor(imports: Imports, item: Item, signal: AbortSignal): Promise<Codecs> {
  if (item.row.codecs !== null) {
    const { names, orderedHash } = createCodecList(JSON.parse(item.row.codecs) as string[])
    return { names: [...names], hash: orderedHash, source: 'the given codec file' }
  }
  const until = imports.clock.monotonicMs() + CODECS_MS
  for (;;) {
    try {
      return await imports.codecs(item.row.shard)
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      if (imports.clock.monotonicMs() > until) throw new FileFault(error.message, error.hint)
      await sleep(CODECS_AGAIN_MS, undefined, { signal })
    }
  }
}

async function readBoth(
  imports: Imports,
  item: Item,
  folder: string,
  signal: AbortSignal,
): Promise<Record<FileKind, Reading>> {
  const { files } = item.detail
  const total = files.properties.bytes + files.packages.bytes
  const readings: Partial<Record<FileKind, Reading>> = {}
  const without = await linesToLeaveOut(imports, item)
  let before = 0
  for (const kind of FILE_KINDS) {
    const upload = item.row[`${kind}_upload`]
    const { name, bytes } = files[kind]
    readings[kind] = await readUpload({
      source: uploadPath(imports.uploads, upload),
      target: join(folder, `${kind}.csv`),
      name,
      signal,
      without: without?.[kind],
      onProgress: (done) => showProgress(imports, item, { phase: 'settings', done: before + done, total }),
    })
    before += bytes
    item.work = { ...item.work, [kind]: (await stat(join(folder, `${kind}.csv`))).size }
  }
  const read = readings as Record<FileKind, Reading>
  if (read.properties.kind === 'packages' && read.packages.kind === 'properties') {
    throw new FileFault(
      `${files.properties.name} has the columns of packages, and ${files.packages.name} those of properties.`,
      'Swap the two files.',
    )
  }
  for (const kind of FILE_KINDS) {
    if (read[kind].kind === kind || read[kind].rows === 0) continue
    const { columns: found, separator } = read[kind]
    if (separator) throw new FileFault(`${files[kind].name} ${separator}.`, 'Upload the saved file again.')
    const wanted = IMPORT_COLUMNS[kind].length
    throw new FileFault(
      `The first row of ${files[kind].name} has ${found} ${found === 1 ? 'column' : 'columns'}; ${kind}.csv has ${wanted}.`,
      'Check the file: one record per line, with cells separated by commas.',
    )
  }
  const noted = (kind: FileKind): FileNote => {
    const { sha256, rows, isUnpacked } = read[kind]
    addLogLine(
      imports,
      item,
      `${files[kind].name}: ${groupDigits(rows)} rows, sha256 ${sha256}${isUnpacked ? ', unpacked' : ''}`,
    )
    return { ...files[kind], sha256, rows, unpacked: isUnpacked }
  }
  // Each adds a line to the detail.
  const notes = { properties: noted('properties'), packages: noted('packages') }
  item.detail = { ...item.detail, files: notes }
  for (const kind of FILE_KINDS) await storeDigest(imports.uploads, item.row[`${kind}_upload`], read[kind].sha256)
  return read
}

async function linesToLeaveOut(imports: Imports, { row }: Item): Promise<RejectedLines | undefined> {
  if (row.without_rows_of === null) return undefined
  const file = join(buildFolder(imports, row.without_rows_of), 'errors.jsonl')
  if (existsSync(file)) return (await keptOf(file)).lines
  throw new FileFault('The list of rejected rows is no longer stored.', 'Fix the files and import them again.')
}

/** @returns the result, or the failure that the content of the files caused */
async function buildWith(
  imports: Imports,
  item: Item,
  folder: string,
  signal: AbortSignal,
): Promise<BuildDone | BuildEnd> {
  let done: BuildDone | undefined
  let failed: Extract<BuildEvent, { event: 'failed' }> | undefined
  let pid = 0
  let memory: number | null = null
  let phase = ''
  let latest: Extract<BuildEvent, { event: 'progress' }> | undefined
  const errorsFile = join(folder, 'errors.jsonl')
  const sampling = setInterval(() => {
    if (pid !== 0) void memoryOf(pid).then((bytes) => (memory = bytes))
    if (item.progress && item.progress.phase === 'packages') {
      item.rates = [...item.rates, item.progress.recordsPerSecond].slice(-IMPORT_LIMITS.ratesMax)
    }
    if (latest) showProgress(imports, item, latest, memory)
  }, TICK_MS)
  const { code, stderr } = await runBuild({
    ...optionsOf(item),
    inputPath: folder,
    outputPath: join(folder, 'out'),
    errorsFile,
    signal,
    onStart: (started) => {
      pid = started
    },
    onEvent: (event) => {
      if (event.event === 'done') done = event
      else if (event.event === 'failed') failed = event
      else {
        if (event.phase !== phase)
          addLogLine(imports, item, event.phase === 'errors' ? 'looking for all errors' : event.phase)
        phase = event.phase
        latest = event
        showProgress(imports, item, event, memory)
      }
    },
  }).finally(() => clearInterval(sampling))
  signal.throwIfAborted()
  if (done) return done
  if (failed) return await recordErrors(imports, item, failed, errorsFile)
  for (const line of stderr.trim().split('\n').slice(-20)) addLogLine(imports, item, line)
  if (stderr.includes('ENOSPC')) throw Object.assign(new Error('no space left'), { code: 'ENOSPC' })
  const [last = `build-snapshot ended with ${code}`] = stderr.trim().split('\n').slice(-1)
  throw new FileFault(last.replace(/^vacancy build-snapshot: /, ''), 'See the log of this import.')
}

/** Row errors of the files, stored for downloads and for a repetition without the rejected rows. */
async function recordErrors(
  imports: Imports,
  item: Item,
  failed: Extract<BuildEvent, { event: 'failed' }>,
  errorsFile: string,
): Promise<BuildEnd> {
  const { count, countByKind } = failed
  const kept = Math.min(count, IMPORT_LIMITS.errorsKept)
  const { of, rows, lines } = await keptOf(errorsFile)
  const reason = whyNotAgain({ count, kept, countByKind, rows })
  const errors = { count, countByKind: { ...countByKind }, kept, keptOf: of }
  item.detail = {
    ...item.detail,
    errors: { ...errors, rows: reason === '' ? (rows ?? null) : null, again: reason },
  }
  if (reason === '')
    addLogLine(
      imports,
      item,
      `rejected: ${lines.properties.size} lines of properties, ${lines.packages.size} of packages`,
    )
  const hint =
    countByKind['feature'] !== undefined
      ? 'Rate features are missing in the codec list. Fix the file, or change the list first.'
      : countByKind['price_fraction'] !== undefined
        ? 'Prices have a decimal point. Import the files again and say how many decimals the prices have.'
        : 'Download the rejected rows, fix the file and upload it again. The other file can stay.'
  const message = `${groupDigits(count)} ${count === 1 ? 'error' : 'errors'} in the files; nothing was built.`
  return { state: 'failed', message, hint }
}

function showProgress(
  imports: Imports,
  item: Item,
  event: { phase: BuildPhase | 'errors'; done: number; total: number } & Partial<{
    packages: number
    recordsPerSecond: number
  }>,
  memoryBytes: number | null = null,
): void {
  const { phase, done, total, packages = 0, recordsPerSecond = 0 } = event
  const before = item.progress?.percent ?? 0
  const share = total === 0 ? 1 : Math.min(1, done / total)
  const seconds = Math.round((imports.clock.wallMs() - (item.row.started_at ?? imports.clock.wallMs())) / 100) / 10
  const phases = phasesAt(item.progress?.phases ?? [], phase, seconds)
  const remaining =
    phase === 'errors'
      ? undefined
      : remainingSeconds({ phase, share, phases, work: item.work, last: paceOf(imports, item) })
  const reached = remaining === undefined ? before : (100 * seconds) / Math.max(seconds + remaining, 0.1)
  // 100 only when everything is verified, and never decreasing.
  const percent = phase === 'verify' && done >= total ? 100 : Math.max(before, Math.min(99.9, reached))
  item.progress = {
    phase,
    number: phase === 'errors' ? (item.progress?.number ?? 0) : BUILD_PHASES.indexOf(phase) + 1,
    of: BUILD_PHASES.length,
    done,
    total,
    percent: Math.round(percent * 10) / 10,
    records: Math.max(packages, item.progress?.records ?? 0),
    recordsPerSecond: recordsPerSecond || (item.progress?.recordsPerSecond ?? 0),
    etaSeconds: remaining === undefined || percent < ETA_FROM_PERCENT ? null : Math.round(remaining),
    seconds,
    memoryBytes,
    phases,
  }
  reportChange(imports, item)
}

const phasesOf = ({ progress }: Item) => progress?.phases ?? []

/** Of the newest import that was built here. */
function paceOf(imports: Imports, { row }: Item): Pace | undefined {
  return (
    ordered(imports).find((other) => other.row.id !== row.id && other.detail.pace !== null)?.detail.pace ?? undefined
  )
}

/** As far as it is known before the files are read. */
function workOf({ detail: { files } }: Item): Work {
  const bytesOf = ({ name, bytes }: FileNote) => bytes * (/\.gz$/i.test(name) ? UNPACKED_FACTOR : 1)
  return { properties: bytesOf(files.properties), packages: bytesOf(files.packages) }
}

type Phases = NonNullable<Item['progress']>['phases']

/** The phases so far: the last one has what the ones before it did not take. */
function phasesAt(before: Phases, phase: Phases[number]['phase'], seconds: number): Phases {
  const ended = before.filter((one) => one.phase !== phase)
  const rest = seconds - ended.reduce((sum, one) => sum + one.seconds, 0)
  return [...ended, { phase, seconds: Math.max(0, Math.round(rest * 10) / 10) }]
}

function optionsOf({ row, detail }: Item) {
  const { shard, window_from: from, window_to: to } = row
  return { shard, from, to, priceDecimals: detail.priceDecimals }
}

/** Why the rejected rows cannot be omitted; '' when they can. */
function whyNotAgain(found: {
  readonly count: number
  readonly kept: number
  readonly countByKind: { readonly [kind: string]: number }
  readonly rows: number | undefined
}): string {
  const { count, kept, countByKind, rows } = found
  if (countByKind['feature'] !== undefined)
    return 'Rate features are missing in the codec list. Rows with this error cannot be left out.'
  if (count > kept)
    return `Only ${groupDigits(kept)} of ${groupDigits(count)} errors are stored, so not all rejected rows are known.`
  return rows === undefined ? 'A file has an error that is not in a single row.' : ''
}

/** Three independent counts: the lines of the files, the rows of the builder, and the rows of the written snapshot. */
export function countersOf(
  read: Readonly<Record<FileKind, { readonly rows: number; readonly rejected?: number }>>,
  done: Pick<BuildDone, 'properties' | 'packages' | 'outOfWindow'>,
  document: { readonly properties: number; readonly packages: number },
): NonNullable<ImportView['counters']> {
  const reader = { properties: read.properties.rows, packages: read.packages.rows }
  const builder = { properties: done.properties, packages: done.packages, outOfWindow: done.outOfWindow }
  const readBack = { properties: document.properties, packages: document.packages }
  const rejected = { properties: read.properties.rejected ?? 0, packages: read.packages.rejected ?? 0 }
  const isAny = rejected.properties + rejected.packages > 0
  const but = (rows: number) => (isAny ? `, ${rows} of them rejected before` : '')
  const differs = [
    ...(reader.properties === builder.properties + rejected.properties
      ? []
      : [
          `properties.csv has ${groupDigits(reader.properties)} rows${but(rejected.properties)}, the builder accepted ${groupDigits(builder.properties)}`,
        ]),
    ...(reader.packages === builder.packages + builder.outOfWindow + rejected.packages
      ? []
      : [
          `packages.csv has ${groupDigits(reader.packages)} rows${but(rejected.packages)}, the builder accepted ${groupDigits(builder.packages)} and omitted ${groupDigits(builder.outOfWindow)}`,
        ]),
    ...(builder.properties === readBack.properties
      ? []
      : [
          `the builder accepted ${groupDigits(builder.properties)} properties, the snapshot has ${groupDigits(readBack.properties)}`,
        ]),
    ...(builder.packages === readBack.packages
      ? []
      : [
          `the builder accepted ${groupDigits(builder.packages)} packages, the snapshot has ${groupDigits(readBack.packages)}`,
        ]),
  ]
  return { reader, builder, readBack, ...(isAny && { rejected }), agree: differs.length === 0, differs }
}
