/**
 * build-snapshot: two CSV files → seed.snapshot (docs/design/storage.md#import).
 *
 *   properties.csv   one thread → columns in row order, index of ids
 *   packages.csv     all threads → words, row by row, in shared memory (packages.ts)
 *   tables           one thread: rows → tables; all threads: which nights, how many packages (source.ts)
 *   seed.snapshot    all threads encode, this one writes (snapshot/write.ts)
 *
 * Nothing is written before both files are known to be right. The same files, codec list and window give the same bytes
 * and the same snapshot id, whatever the number of threads.
 */

import { closeSync, existsSync, mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { assert, type CodecList, formatDay, IMPORT_COLUMNS, type ImportFileKind, VacancyError } from '@vacancy/shared'
import { changeOf } from '@vacancy/shared/node'
import { diskFailed, type Env } from '../env.ts'
import { compileKernel, requireKernels } from '../kernels.ts'
import { BYTES_PER_WORD } from '../snapshot/codec.ts'
import { type Digest, snapshotId } from '../snapshot/format.ts'
import type { SnapshotSource } from '../snapshot/schema.ts'
import { planWords, WORDS_SCRATCH_BYTES } from '../snapshot/words.ts'
import { type WordsEncoder, writeSeedFile } from '../snapshot/write.ts'
import { CONTEXT, HEADER, MEMORY_BYTES_MAX, WINDOW_DAYS_MAX } from './layout.ts'
import type { ImportProgress, Phase } from './progress.ts'
import { type PropertyTable, readProperties } from './properties.ts'
import { type Finding, fileFinding, findingOf } from './row-errors.ts'
import { arrange, type Counted, countTables, tableShapes } from './source.ts'
import { type CsvFile, createBlocks, openCsv, rangeBytesFor } from './split.ts'
import { beginPass, createMemory, createStaging, FAILED, memoryFull, type Staging, takeMemory } from './staging.ts'
import { closePool, createPool, runAll, runTask, type WorkerPool } from './worker-pool.ts'

export const SEED_FILE = 'seed.snapshot'
export const PROPERTIES_FILE = 'properties.csv'
export const PACKAGES_FILE = 'packages.csv'
const FILES = { properties: PROPERTIES_FILE, packages: PACKAGES_FILE } as const
const RESTRICTIONS_FILE = 'restrictions.csv'
/** Bytes that each thread reads at a time: still in the second-level cache when the kernel processes them. */
const BLOCK_BYTES = 512 * 1024
/** A word and its share of row and chunks, for a row with a month or two. */
const PACKAGE_BYTES = 11
/** Limits the memory touched in advance, because the first lines may be misleading. */
const EARLY_BYTES_MAX = 2 ** 30
/** More room types than a property usually has, which causes a note. */
const MANY_ROOM_TYPES = 10
const POLL_MS = 100
const PARTS_A_THREAD = 2

export type ImportOptions = {
  readonly shardId: string
  /** Folder of properties.csv and packages.csv. */
  readonly inputPath: string
  readonly outputPath: string
  readonly codecs: CodecList
  /** First and last night to keep, day numbers. */
  readonly firstDay: number
  readonly lastDay: number
  readonly outOfWindow: 'skip' | 'error'
  /** Of the price column: 2 reads 12.50, 12.5 and 12 as 1250 and 1200. Default 0. */
  readonly priceDecimals?: number
  /** Errors kept; all are counted. */
  readonly errorsMax: number
  /** Bytes of faulty lines kept with the errors; 0 for none. */
  readonly rowBytesMax?: number
  readonly overwrite: boolean
  readonly threads: number
  readonly onProgress?: (progress: ImportProgress) => void
  /** For tests: range and block sizes, and memory size. */
  readonly rangeBytes?: number
  readonly blockBytes?: number
  readonly memoryBytesMax?: number
}

export type ImportSummary = {
  readonly snapshotId: string
  readonly path: string
  readonly bytes: number
  readonly packages: number
  readonly properties: number
  readonly rows: number
  readonly segments: number
  readonly roomTypes: number
  /** Packages skipped because their date is outside the window. */
  readonly outOfWindow: number
  /** First and last night with a package; absent without packages. */
  readonly nights?: { readonly from: string; readonly to: string }
  readonly window: { readonly from: string; readonly to: string }
  readonly seconds: number
  readonly recordsPerSecond: number
  readonly phases: { readonly [phase in Phase]?: number }
  readonly threads: number
  readonly kernel: 'wasm'
  readonly notes: readonly string[]
}

export type ImportErrors = {
  readonly count: number
  readonly countByKind: { readonly [kind: string]: number }
  /** The first errors, in file order. */
  readonly first: readonly Finding[]
  /** The errors of one kind in one column of a file: how many, and the first of them. */
  readonly groups: readonly ErrorGroup[]
}

export type ErrorGroup = { readonly count: number; readonly first: Finding }

export type ImportOutcome =
  | { readonly ok: true; readonly summary: ImportSummary }
  | { readonly ok: false; readonly errors: ImportErrors }

/**
 * Builds a snapshot.
 *
 * @returns the summary, or the errors in the files
 * @throws VacancyError usage_error before anything is read; failure when memory is insufficient or a file cannot be
 * read; disk_failed and errno errors when the snapshot cannot be written
 */
export async function buildSnapshot(env: Env, options: ImportOptions): Promise<ImportOutcome> {
  checkOptions(options)
  // Needed only when the files have been read.
  requireKernels('snapshot')
  const build: Build = {
    env,
    options,
    module: compileKernel('import'),
    pool: createPool(options.threads),
    files: [],
    errors: { count: 0, countByKind: {}, first: [], groups: [] },
    startMs: env.clock.monotonicMs(),
    phases: {},
    phase: undefined,
    reportedMs: Number.NEGATIVE_INFINITY,
    rowBytesLeft: options.rowBytesMax ?? 0,
  }
  try {
    return await run(build)
  } finally {
    for (const { file } of build.files) closeSync(file)
    await closePool(build.pool)
  }
}

type Build = {
  readonly env: Env
  readonly options: ImportOptions
  readonly module: WebAssembly.Module
  readonly pool: WorkerPool
  readonly files: CsvFile[]
  readonly errors: {
    count: number
    countByKind: { [kind: string]: number }
    first: Finding[]
    groups: { count: number; first: Finding }[]
  }
  readonly startMs: number
  /** Seconds of each phase that has ended. */
  readonly phases: { [phase in Phase]?: number }
  phase: { readonly name: Phase; readonly startMs: number } | undefined
  /** Time of the last progress report. */
  reportedMs: number
  rowBytesLeft: number
}

function checkOptions({ inputPath, outputPath, firstDay, lastDay, overwrite, threads }: ImportOptions): void {
  const wrong = (reason: string) => new VacancyError('usage_error', { reason })
  assert(threads >= 1, 'an import has a thread')
  for (const name of [PROPERTIES_FILE, PACKAGES_FILE]) {
    if (!existsSync(join(inputPath, name))) throw wrong(`${join(inputPath, name)} does not exist`)
  }
  checkWindow({ firstDay, lastDay })
  const path = join(outputPath, SEED_FILE)
  if (!overwrite && existsSync(path)) throw wrong(`${path} already exists. Replace it with --overwrite`)
}

/** @throws VacancyError usage_error for nights that no import has */
export function checkWindow({ firstDay, lastDay }: Pick<ImportOptions, 'firstDay' | 'lastDay'>): void {
  const [from, to, days] = [formatDay(firstDay), formatDay(lastDay), lastDay - firstDay + 1]
  if (days < 1) throw new VacancyError('usage_error', { reason: `--to ${to} is before --from ${from}` })
  if (days <= WINDOW_DAYS_MAX) return
  const reason = `--from ${from} --to ${to} are ${days} nights; at most ${WINDOW_DAYS_MAX} are kept`
  throw new VacancyError('usage_error', { reason })
}

async function run(build: Build): Promise<ImportOutcome> {
  const { options, pool, module } = build
  const packages = open(build, 'packages')
  const memory = createMemory(options.memoryBytesMax ?? MEMORY_BYTES_MAX, memoryBytesFor(packages))
  const warm = runAll(pool, (thread) => ({ kind: 'warm-up', module, memory, thread, threads: pool.workers.length }))
  const properties = readPropertyFile(build)
  await warm
  const staging = stagingFor(build, memory, properties)
  const counted = await readPackages(build, staging, properties, packages)
  noteChanges(build)
  if (!counted || build.errors.count > 0) return { ok: false, errors: build.errors }

  const path = join(options.outputPath, SEED_FILE)
  const { written, source } = await writeSnapshot(build, staging, properties, counted, path)
  const seconds = (build.env.clock.monotonicMs() - build.startMs) / 1000
  const { window } = written.manifest
  return {
    ok: true,
    summary: {
      snapshotId: snapshotId(written.manifest),
      path,
      bytes: written.bytes,
      packages: counted.packages,
      properties: properties.columns.count,
      rows: counted.tables.rows.length,
      segments: source.names.segments.length,
      roomTypes: source.names.roomTypes.length,
      outOfWindow: sumOf(staging, CONTEXT.skipped),
      ...(window && { nights: { from: formatDay(window.from), to: formatDay(window.to) } }),
      window: { from: formatDay(options.firstDay), to: formatDay(options.lastDay) },
      seconds: round(seconds),
      recordsPerSecond: Math.round(counted.packages / Math.max(seconds, 0.001)),
      phases: build.phases,
      threads: options.threads,
      kernel: 'wasm',
      notes: [...headerNotes(build), ...notesOf(build, source, counted)],
    },
  }
}

/** Opens a file of the input folder. If it is unreadable as a whole, that is an error of the import. */
function open(build: Build, kind: ImportFileKind): CsvFile {
  const name = FILES[kind]
  const file = openCsv(join(build.options.inputPath, name), kind)
  build.files.push(file)
  if (file.fault) addFinding(build, fileFinding(name, file.fault.kind, file.fault.message))
  return file
}

/** Half of a file that is still being written would be half of the inventory. */
function noteChanges(build: Build): void {
  for (const { path, opened } of build.files) {
    const change = changeOf(path, opened)
    if (change !== '') addFinding(build, fileFinding(basename(path), 'changed', change))
  }
}

function addFinding(build: Build, finding: Finding): void {
  const { errors, options } = build
  countFindings(build, finding, 1)
  if (errors.first.length < options.errorsMax) errors.first.push(finding)
}

/** @param first of findings of one kind, in one column of a file */
function countFindings({ errors }: Build, { row: _row, ...first }: Finding, count: number): void {
  errors.count += count
  errors.countByKind[first.kind] = (errors.countByKind[first.kind] ?? 0) + count
  const group = errors.groups.find(
    (each) => each.first.kind === first.kind && each.first.column === first.column && each.first.file === first.file,
  )
  if (group) group.count += count
  else errors.groups.push({ count, first })
}

/** @returns a copy of the line, if errors are kept and space is left */
function keptRow(build: Build, row: Uint8Array): Uint8Array | undefined {
  const { errors, options } = build
  const isKept = options.rowBytesMax !== undefined && errors.first.length < options.errorsMax
  if (!isKept || row.length > build.rowBytesLeft) return undefined
  build.rowBytesLeft -= row.length
  return row.slice()
}

function readPropertyFile(build: Build): PropertyTable {
  const file = open(build, 'properties')
  beginPhase(build, 'properties')
  const buffer = new Uint8Array(build.options.blockBytes ?? BLOCK_BYTES)
  const table = readProperties(file, createBlocks(file.file, file.path, file.bytes, buffer), {
    onFault: (line, fault, row) =>
      addFinding(build, findingOf(PROPERTIES_FILE, line, file.columns, fault, keptRow(build, row))),
    onBlock: (done) => reportProgress(build, { done, total: file.bytes, packages: 0 }),
  })
  if (table.columns.count === 0 && build.errors.count === 0) {
    addFinding(build, fileFinding(PROPERTIES_FILE, 'no_properties', 'has no properties'))
  }
  endPhase(build)
  return table
}

function stagingFor({ options, pool }: Build, memory: WebAssembly.Memory, properties: PropertyTable): Staging {
  return createStaging({
    memory,
    index: properties.index,
    codecs: options.codecs,
    firstDay: options.firstDay,
    days: options.lastDay - options.firstDay + 1,
    priceDecimals: options.priceDecimals ?? 0,
    threads: pool.workers.length,
    blockBytes: options.blockBytes ?? BLOCK_BYTES,
  })
}

/** Estimates the memory for the packages from the first lines, to touch it early. */
function memoryBytesFor({ bytes, lineBytes }: CsvFile): number {
  return Math.min(Math.ceil(bytes / lineBytes) * PACKAGE_BYTES, EARLY_BYTES_MAX)
}

/** @returns undefined when there are errors, in build.errors */
async function readPackages(
  build: Build,
  staging: Staging,
  properties: PropertyTable,
  file: CsvFile,
): Promise<Counted | undefined> {
  const { pool, options, module } = build
  // Without any valid property, every package would be reported for an unknown property.
  if (build.files.some(({ fault }) => fault)) return undefined
  const data = { start: file.dataStart, end: file.bytes, firstLine: file.firstLine }
  await runAll(pool, (thread) => ({
    kind: 'begin',
    memory: staging.memory,
    module,
    codecs: options.codecs.names,
    context: staging.contexts[thread],
    buffer: staging.buffers[thread],
    bufferBytes: staging.bufferBytes,
    file: file.file,
    path: file.path,
    data,
    order: file.order,
    priceDecimals: options.priceDecimals ?? 0,
  }))
  // After an error in the properties nothing is written: only errors remain to be reported.
  if (build.errors.count === 0) {
    const counted = await readShared(build, staging, properties, file)
    if (counted) return counted
  }
  await explain(build, staging, file)
  return undefined
}

/** The fast pass of all threads. @returns undefined when there is an error that only the explaining pass can report */
async function readShared(
  build: Build,
  staging: Staging,
  properties: PropertyTable,
  file: CsvFile,
): Promise<Counted | undefined> {
  const { pool, options } = build
  const { memory } = staging
  beginPass(staging, { explain: false, strictWindow: options.outOfWindow === 'error', threads: pool.workers.length })
  const dataBytes = file.bytes - file.dataStart
  const rangeBytes = options.rangeBytes ?? rangeBytesFor(dataBytes, pool.workers.length)
  const reading = runAll(pool, () => ({ kind: 'read', rangeBytes }))
  await watched(build, staging, 'packages', dataBytes, reading)
  if (hasFailed(staging)) return undefined

  beginPhase(build, 'tables')
  // On a worker, which would otherwise wait for this thread.
  const digest = runTask(pool, 0, { kind: 'digest', columns: properties.columns, names: properties.names })
  const arrangement = arrange(memory, properties)
  await runAll(pool, () => ({ kind: 'census', tasks: arrangement.census, rowList: arrangement.tables.rowList }))
  const counted = countTables(memory, arrangement)
  endPhase(build)
  // Two threads that write the same night at the same moment may both find it empty (layout.ts): one word is then
  // missing.
  if (counted.packages !== sumOf(staging, CONTEXT.accepted)) return undefined
  return { ...counted, digest: addDigests(counted.digest, await digest) }
}

function addDigests(a: Digest, b: Digest): Digest {
  return { lo: (a.lo + b.lo) >>> 0, hi: (a.hi + b.hi) >>> 0 }
}

/** Whether the pass found an error. @throws VacancyError `failure` when memory is exhausted */
function hasFailed({ memory }: Staging): boolean {
  const header = new Uint32Array(memory.buffer, 0, HEADER.failed + 1)
  if (header[HEADER.failed] === FAILED.memoryFull) throw memoryFull(header[HEADER.limit])
  return header[HEADER.failed] === FAILED.needsExplaining
}

/** Reads the file again on one thread, to report every error in order. */
async function explain(build: Build, staging: Staging, file: CsvFile): Promise<void> {
  const { pool, options, errors } = build
  beginPass(staging, { explain: true, strictWindow: options.outOfWindow === 'error', threads: 1 })
  const before = errors.count
  const faultsMax = options.errorsMax - errors.first.length
  const task = runTask(pool, 0, { kind: 'explain', faultsMax, rowBytesMax: build.rowBytesLeft })
  const { first, groups } = await watched(build, staging, 'errors', file.bytes - file.dataStart, task)
  hasFailed(staging)
  for (const { line, fault, row } of first) {
    errors.first.push(findingOf(PACKAGES_FILE, line, file.columns, fault, row))
  }
  for (const { count, line, fault } of groups) {
    countFindings(build, findingOf(PACKAGES_FILE, line, file.columns, fault), count)
  }
  if (errors.count > 0 || before > 0) return
  // A thread found an error that is not in the file as read by this pass.
  throw new VacancyError('failure', { reason: `${file.path} changed while it was read.` })
}

async function writeSnapshot(
  build: Build,
  staging: Staging,
  properties: PropertyTable,
  counted: Counted,
  path: string,
) {
  const { pool, options, env } = build
  const { memory } = staging
  beginPhase(build, 'write')
  const source = sourceOf(build, properties, counted, memory)
  const parts = planWords(source.tables).flat()
  const wordsMax = parts.reduce((most, part) => Math.max(most, part.words), 0)
  const areas = pool.workers.map(() => ({
    scratch: takeMemory(memory, WORDS_SCRATCH_BYTES),
    target: takeMemory(memory, wordsMax * BYTES_PER_WORD),
  }))
  await runAll(pool, (thread) => ({
    kind: 'prepare-words',
    tables: counted.tables,
    ids: properties.columns.ids,
    roomTypes: source.names.roomTypes,
    codecsOrderedHash: options.codecs.orderedHash,
    ...(areas[thread] as (typeof areas)[number]),
  }))
  const written = await toDisk(path, () => {
    mkdirSync(options.outputPath, { recursive: true })
    return writeSeedFile(env, path, source, {
      encoder: poolEncoder(pool),
      onProgress: ({ parts: done, of: total }) => reportProgress(build, { done, total, packages: counted.packages }),
    })
  })
  assert(written, 'an import writes or fails')
  assert(written.manifest.packages === counted.packages, 'every package that was counted is written')
  endPhase(build)
  return { written, source }
}

/** A full disk ends an import like any other failed write. */
export async function toDisk<T>(path: string, write: () => T | Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    throw error instanceof Error && 'syscall' in error ? diskFailed('write', path, error) : error
  }
}

/** Assigns each part to the thread with the fewest parts. */
function poolEncoder(pool: WorkerPool): WordsEncoder {
  const load = pool.workers.map(() => 0)
  return {
    ahead: pool.workers.length * PARTS_A_THREAD,
    async encode(part) {
      const thread = load.indexOf(Math.min(...load))
      load[thread] = load[thread] + 1
      const encoded = await runTask(pool, thread, { kind: 'encode', part })
      load[thread] = load[thread] - 1
      return encoded
    },
  }
}

function sourceOf(
  { options }: Build,
  properties: PropertyTable,
  counted: Counted,
  memory: WebAssembly.Memory,
): SnapshotSource {
  return {
    shardId: options.shardId,
    codecs: options.codecs,
    // A seed starts a log, before any vote (docs/design/storage.md#snapshot-format).
    index: 1,
    term: 1,
    configuration: { voters: [], learners: [] },
    // None has run, so the first one needs no reason for its gap (docs/design/consensus.md#log-commands).
    lastMaintenanceDay: 0,
    digestWithoutPackages: counted.digest,
    names: { ...properties.names, roomTypes: counted.roomTypes },
    properties: { ...properties.columns, ...counted.rooms },
    tables: tableShapes(counted.tables),
    sessionCount: 0,
    sessions: new Uint8Array(0),
    settings: new Uint8Array(0),
    replicated: new Uint8Array(0),
    stays: new Uint8Array(0),
    memory,
    words: () => {
      throw new VacancyError('internal', { reason: 'words of an import are gathered by its threads' })
    },
  }
}

function headerNotes({ files }: Build): string[] {
  return files.flatMap(({ path, warning, order }) => [
    ...(warning === undefined ? [] : [`${basename(path)}: ${warning}`]),
    ...(order ? [`${basename(path)}: columns are read by the names in its header`] : []),
    ...(order && basename(path) === PACKAGES_FILE
      ? [`${PACKAGES_FILE} in the order ${IMPORT_COLUMNS.packages.join(',')} would be read faster`]
      : []),
  ])
}

function notesOf({ options }: Build, source: SnapshotSource, { packages, tables }: Counted): string[] {
  const notes: string[] = []
  if (existsSync(join(options.inputPath, RESTRICTIONS_FILE))) {
    notes.push(`${RESTRICTIONS_FILE} is ignored: restrictions are not supported yet`)
  }
  for (const [what, names] of [
    ['segments', source.names.segments],
    ['room types', source.names.roomTypes],
  ] as const) {
    const alike = lookAlikes(names)
    const shown = alike
      .slice(0, ALIKE_SHOWN_MAX)
      .map((group) => group.map((name) => JSON.stringify(name)).join(' and '))
    if (alike.length > 0)
      notes.push(`${what} that look alike are different: ${shown.join('; ')}${alike.length > shown.length ? ' …' : ''}`)
  }
  if (packages === 0) notes.push(`${PACKAGES_FILE} has no packages for these nights`)
  const { roomStart, count } = source.properties
  let many = 0
  for (let i = 0; i < count; i++) {
    if (roomStart[i + 1] - roomStart[i] > MANY_ROOM_TYPES) many++
  }
  if (many > 0)
    notes.push(`${many === 1 ? '1 property has' : `${many} properties have`} more than ${MANY_ROOM_TYPES} room types`)
  assert(tables.rows.length === source.properties.rooms.length, 'every room type of a property is a row')
  return notes
}

const ALIKE_SHOWN_MAX = 5

/** Names that differ only in case, blanks or the encoding of their letters. */
function lookAlikes(names: readonly string[]): string[][] {
  const groups = new Map<string, string[]>()
  for (const name of names) {
    const plain = name.normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim()
    const group = groups.get(plain)
    if (group) group.push(name)
    else groups.set(plain, [name])
  }
  return [...groups.values()].filter((group) => group.length > 1)
}

function sumOf({ memory, contexts }: Staging, offset: number): number {
  const f64 = new Float64Array(memory.buffer)
  return contexts.reduce((sum, context) => sum + f64[(context + offset) >>> 3], 0)
}

function beginPhase(build: Build, name: Phase): void {
  build.phase = { name, startMs: build.env.clock.monotonicMs() }
}

function endPhase(build: Build): void {
  const { phase } = build
  assert(phase, 'a phase has begun')
  build.phases[phase.name] = round((build.env.clock.monotonicMs() - phase.startMs) / 1000)
}

/** Reports progress from the counters of the working threads. */
async function watched<T>(build: Build, staging: Staging, phase: Phase, total: number, work: Promise<T>): Promise<T> {
  beginPhase(build, phase)
  // Slightly longer than the report interval, so that none is skipped.
  const timer = setInterval(() => {
    const packages = sumOf(staging, CONTEXT.accepted) + sumOf(staging, CONTEXT.skipped)
    reportProgress(build, { done: Math.min(sumOf(staging, CONTEXT.bytesDone), total), total, packages })
  }, POLL_MS + 1)
  try {
    return await work
  } finally {
    clearInterval(timer)
    endPhase(build)
  }
}

function reportProgress(
  build: Build,
  { done, total, packages }: { done: number; total: number; packages: number },
): void {
  const { phase, options, env } = build
  if (!phase || !options.onProgress) return
  const nowMs = env.clock.monotonicMs()
  if (nowMs - build.reportedMs < POLL_MS && done < total) return
  build.reportedMs = nowMs
  const phaseSeconds = (nowMs - phase.startMs) / 1000
  options.onProgress({
    phase: phase.name,
    done,
    total,
    packages,
    seconds: round((nowMs - build.startMs) / 1000),
    recordsPerSecond: Math.round(packages / Math.max(build.phases.packages ?? phaseSeconds, 0.001)),
    ...(done > 0 && { etaSeconds: round((phaseSeconds * (total - done)) / done) }),
  })
}

function round(seconds: number): number {
  return Math.round(seconds * 1000) / 1000
}
