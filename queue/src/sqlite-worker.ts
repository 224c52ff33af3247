/**
 * Thread entry: the only connection to the SQLite file of a queue. A group waits for the disk; on a thread of its
 * own this does not block the event loop. One request at a time, in order of arrival.
 */

import { closeSync, existsSync, fdatasyncSync, openSync, statfsSync, unlinkSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { GONE, goneName, UPDATED } from './journal-tables.ts'
import {
  closePackFiles,
  dropPack,
  findSparseFiles,
  keepPack,
  openPackFiles,
  type PackPlace,
  packFileSizes,
  readPacked,
  writePacks,
} from './pack-files.ts'
import {
  asDiskFull,
  isDiskFull,
  openDatabase,
  type PackTable,
  pragma,
  queueId,
  READ_COLUMNS,
  SWEEP_ROWS,
} from './sqlite-database.ts'
import {
  type JournalReply,
  type JournalRequest,
  type JournalRows,
  PUT_NUMBERS,
  READ_NUMBERS,
  type RowsRequest,
  type ThreadOptions,
  type WriteRequest,
} from './sqlite-messages.ts'
import {
  addPack,
  applyChanges,
  firstAfter,
  forgetPack,
  isMarked,
  type Pack,
  type PackChanges,
  type PackedJob,
  type Packs,
  readPack,
  type StoredPack,
  takeFromPack,
} from './sqlite-packs.ts'

/** Kept free for deletions on a full disk. */
const RESERVE_BYTES = 16 << 20
/** The reserve is made again when so much more than it is free. */
const RESERVE_AGAIN_BYTES = 4 * RESERVE_BYTES
/** Packs of a deleted topic that one transaction reads. */
const SWEEP_PACKS = 32
/** Packs that one transaction unpacks, or moves from a file into their rows. */
const UNPACKED = 32
/** Packs of a group that are written to a file of their own: below it a second sync costs more than SQLite does. */
const FILED_BYTES_MIN = 256 << 10
/** A file is compacted at the start when it is at least this large and more than half of it is free. */
const VACUUM_BYTES = 1 << 30

const READ_LENGTH = READ_NUMBERS - 1
const READ_STATE = READ_COLUMNS.indexOf('state')
/** Behind the numbers. */
const READ_ID = READ_NUMBERS

const options = workerData as ThreadOptions
const reserveFile = `${options.file}.reserve`
let hasReserve = false

const { database, statements } = await openDatabase(options)
/** Deleted topics whose rows are still to be removed. */
const goneTopics = database
  .prepare('SELECT topic_no FROM topics WHERE config = ?')
  .all(GONE)
  .map((row) => row['topic_no'] as number)
/** Number of the last pack that was searched for jobs of the first of them. */
let sweptTo = 0
const packs = findPacks()
const packFiles = openPackFiles(`${options.file}-packs-${queueId(database)}`, places())
/** Packs of which at most half is left, oldest first. */
const sparse = new Set(packs.list.filter(({ sparseSince }) => sparseSince > 0))
let unpacking: NodeJS.Timeout | undefined
let sweeping: NodeJS.Immediate | undefined
/** The log stays the same file until the database is closed. */
const log = openSync(`${options.file}-wal`, 'r+')
compact()
keepReserve()
sweepSoon()
unpackLater()

parentPort?.on('message', ({ id, request }: { id: number; request: JournalRequest }) => {
  try {
    const value = run(request)
    const transfer = request.kind === 'rows' ? transferables(value as JournalRows) : []
    parentPort?.postMessage({ id, value } satisfies JournalReply, transfer)
  } catch (error) {
    // Reported to the caller; the thread continues with the next request.
    const { message } = error as Error
    parentPort?.postMessage({ id, error: { message, isFull: isDiskFull(error) } } satisfies JournalReply)
  }
  if (request.kind === 'close') parentPort?.close()
})

/** Without their jobs, which are read when the queue is loaded. */
function findPacks(): Packs {
  const found: Packs = { list: [], gone: 0 }
  const marks = new Map<number, Uint8Array>()
  for (const row of database.prepare('SELECT seq, marks FROM pack_marks').all())
    marks.set(row['seq'] as number, row['marks'] as Uint8Array)
  const rows = database
    .prepare(
      `SELECT seq, topic_no, count, null AS file, 0 AS at, 0 AS bytes, 0 AS checksum FROM packs
      UNION ALL SELECT seq, topic_no, count, file, at, bytes, checksum FROM filed_packs ORDER BY seq`,
    )
    .all() as (PackTable & Omit<PackPlace, 'file'> & { file: number | null })[]
  for (const { seq, topic_no, count, file, at, bytes, checksum } of rows) {
    const place = file === null ? undefined : { file, at, bytes, checksum }
    addPack(found, { seq, topicNumber: topic_no, count }, performance.now(), place, marks.get(seq))
  }
  return found
}

function* places(): Generator<PackPlace> {
  for (const { place } of packs.list) if (place !== undefined) yield place
}

function run(request: JournalRequest): unknown {
  switch (request.kind) {
    case 'write':
      return write(request)
    case 'topics':
      return readTopics()
    case 'rows':
      return readRows(request)
    case 'backup':
      return backup(request.path)
    case 'vacuum':
      return database.exec('VACUUM')
    case 'sizes':
      return sizes()
    case 'close':
      return close()
  }
}

function inTransaction(work: () => void): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    work()
    database.exec('COMMIT')
  } catch (error) {
    // SQLite rolls some failures back by itself.
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

function write(request: WriteRequest): void {
  const changes: PackChanges = new Map()
  let filed: readonly PackPlace[] = []
  try {
    filed = filePacks(request)
    inTransaction(() => writeRows(request, filed, changes))
  } catch (error) {
    // What frees space is tried again, with this room.
    if (isDiskFull(error)) releaseReserve()
    throw error
  }
  syncGroup()
  for (const place of filed) keepPack(packFiles, place)
  for (const [n, pack] of request.packs.entries()) addPack(packs, pack, performance.now(), filed[n])
  takeOver(changes)
  if (!hasReserve) keepReserve()
  sweepSoon()
  unpackLater()
}

/** Writes and syncs the packs of a large group, before a row refers to them. @returns where, or none */
function filePacks({ packs: written, area = options.area }: WriteRequest): readonly PackPlace[] {
  const [first, last] = [written[0], written.at(-1)]
  if (first === undefined || last === undefined || last.to - first.from < FILED_BYTES_MIN) return []
  try {
    return writePacks(packFiles, area, written, options.isSynced)
  } catch (error) {
    throw asDiskFull(error)
  }
}

/** A transaction that changed packs is durable. */
function takeOver(changes: PackChanges): void {
  for (const pack of applyChanges(packs, changes, performance.now())) sparse.add(pack)
  for (const [{ left, place }] of changes) if (left === 0 && place !== undefined) dropPack(packFiles, place)
}

/**
 * The sync of a group. SQLite's own (synchronous = FULL) calls fsync here, which also writes the times of the file: one
 * more write of the file system's journal for each group.
 */
function syncGroup(): void {
  if (options.isSynced) fdatasyncSync(log)
}

function writeRows(
  { topics, updates, finished, forgotten, ...rows }: WriteRequest,
  filed: readonly PackPlace[],
  changes: PackChanges,
): void {
  for (const each of topics) {
    if ('gone' in each) {
      statements.topicGone.run(goneName(each.gone), GONE, each.gone)
      goneTopics.push(each.gone)
    } else {
      const { number, name, config, createdAt } = each.topic
      statements.topic.run(number, name, JSON.stringify(config), createdAt)
      statements.nextTopic.run(number + 1, number + 1)
    }
  }
  moveToRows(updates, changes)
  for (const row of updates) statements.update.run(row.newSeq, ...UPDATED.map((column) => row[column]), row.seq)
  const area = rows.area ?? options.area
  const numbers = new Float64Array(area, 0, rows.puts * PUT_NUMBERS)
  const done = new Float64Array(area, numbers.byteLength, rows.done)
  deleteJobs(done, changes)
  storeMarks(changes)
  for (const { topicNumber, id, at } of finished) statements.finished.run(topicNumber, id, at)
  for (const { topicNumber, ids: forgottenIds } of forgotten)
    for (const id of forgottenIds) statements.forget.run(topicNumber, id)
  insertJobs(numbers, rows.ids.split('\n'), new Uint8Array(area, done.byteOffset + done.byteLength))
  for (const [n, { seq, topicNumber, count, createdAt, from, to }] of rows.packs.entries()) {
    const place = filed[n]
    if (place === undefined)
      statements.pack.run(seq, topicNumber, count, createdAt, new Uint8Array(area, from, to - from))
    else statements.filed.run(seq, topicNumber, count, createdAt, place.file, place.at, place.bytes, place.checksum)
  }
}

/** @param done ascending: rows that follow each other without a gap are deleted by one statement */
function deleteJobs(done: Float64Array, changes: PackChanges): void {
  let first = 0
  let last = 0
  let pack: Pack | undefined
  for (const seq of done) {
    const found = takeFromPack(packs, changes, seq, pack)
    if (found !== undefined) pack = found
    else if (first !== 0 && seq === last + 1) last = seq
    else {
      if (first !== 0) statements.done.run(first, last)
      first = seq
      last = seq
    }
  }
  if (first !== 0) statements.done.run(first, last)
}

/** A pack without jobs is deleted. */
function storeMarks(changes: PackChanges): void {
  for (const [pack, { marks, left }] of changes) {
    if (left > 0) statements.marks.run(pack.seq, marks)
    else deletePack(pack)
  }
}

function deletePack({ seq, place, marks }: Pack): void {
  if (place === undefined) statements.packGone.run(seq)
  else statements.filedGone.run(seq)
  if (marks !== undefined) statements.marksGone.run(seq)
}

/** Jobs that came back or failed have more to keep than a pack has room for. */
function moveToRows(updates: WriteRequest['updates'], changes: PackChanges): void {
  const wanted = new Map<Pack, Set<number>>()
  for (const { seq } of updates) {
    const pack = takeFromPack(packs, changes, seq)
    if (pack === undefined) continue
    const indexes = wanted.get(pack)
    if (indexes === undefined) wanted.set(pack, new Set([seq - pack.seq]))
    else indexes.add(seq - pack.seq)
  }
  for (const [pack, indexes] of wanted) {
    const content = contentOf(pack)
    readPack(content, (job) => {
      if (indexes.has(job.index)) insertPacked(content, job)
    })
  }
}

/** @param into where it is read, if it is in a file */
function contentOf({ seq, count, place }: Pack, into?: Uint8Array): StoredPack {
  const row = place === undefined ? statements.readPack.get(seq) : statements.filedCreated.get(seq)
  if (row === undefined) throw new Error(`the pack of number ${seq} is missing`)
  const data = place === undefined ? (row['data'] as Uint8Array) : readPacked(packFiles, place, into)
  return { seq, count, createdAt: row['created_at'] as number, data }
}

function insertPacked(pack: StoredPack, job: PackedJob): void {
  const { index, topicNumber, id, flags, priority, maxAttempts, ackDeadlineMs, createdAt, from, bytes } = job
  const data = bytes < 0 ? null : pack.data.subarray(from, from + bytes)
  statements.put.run(pack.seq + index, topicNumber, id, flags, priority, maxAttempts, ackDeadlineMs, createdAt, 0, data)
}

function unpackLater(delayMs = options.sparseMs): void {
  if ((sparse.size > 0 || packFiles.byNumber.size > 1) && unpacking === undefined)
    unpacking = setTimeout(unpackSparse, delayMs).unref()
}

/**
 * What is left of a pack that few jobs keep becomes rows, and packs that few others share a file with move into their
 * rows, so that files have at most about twice what is in them.
 */
function unpackSparse(): void {
  unpacking = undefined
  const due: Pack[] = []
  for (const pack of sparse) {
    if (pack.left > 0 && performance.now() - pack.sparseSince < options.sparseMs) break
    if (pack.left === 0) sparse.delete(pack)
    else if (due.push(pack) === UNPACKED) break
  }
  const moved = due.length < UNPACKED ? packsToMove(UNPACKED - due.length, new Set(due)) : []
  try {
    if (due.length + moved.length > 0)
      inTransaction(() => {
        due.forEach(unpack)
        moved.forEach(moveIntoRow)
      })
  } catch (error) {
    // Tried again later. Any other error ends the thread, and so the journal.
    if (!isDiskFull(error)) throw error
    return unpackLater()
  }
  // Before their bytes in a file may be overwritten.
  if (due.length + moved.length > 0) syncGroup()
  for (const pack of due) {
    sparse.delete(pack)
    forgetPack(packs, pack)
  }
  for (const pack of [...due, ...moved]) {
    if (pack.place !== undefined) dropPack(packFiles, pack.place)
    pack.place = undefined
  }
  unpackLater(due.length + moved.length === UNPACKED ? 0 : options.sparseMs)
}

/** Packs in files that hold little else. */
function packsToMove(max: number, others: ReadonlySet<Pack>): Pack[] {
  const files = findSparseFiles(packFiles, performance.now(), options.sparseMs)
  if (files.size === 0) return []
  return packs.list
    .values()
    .filter((pack) => pack.left > 0 && pack.place !== undefined && files.has(pack.place.file) && !others.has(pack))
    .take(max)
    .toArray()
}

function moveIntoRow(pack: Pack): void {
  const { createdAt, data } = contentOf(pack)
  statements.pack.run(pack.seq, pack.topicNumber, pack.count, createdAt, data)
  statements.filedGone.run(pack.seq)
}

function unpack(pack: Pack): void {
  const content = contentOf(pack)
  readPack(content, (job) => {
    if (!isMarked(pack.marks, job.index)) insertPacked(content, job)
  })
  deletePack(pack)
}

function insertJobs(numbers: Float64Array, ids: readonly string[], payload: Uint8Array): void {
  const { put } = statements
  let at = 0
  for (let offset = 0; offset < numbers.length; offset += PUT_NUMBERS) {
    const number = (index: number) => numbers[offset + index] as number
    const length = number(8)
    const data = length < 0 ? null : payload.subarray(at, at + length)
    at += Math.max(0, length)
    put.run(
      number(0),
      number(1),
      ids[offset / PUT_NUMBERS] as string,
      number(2),
      number(3),
      number(4),
      number(5),
      number(6),
      number(7),
      data,
    )
  }
}

function readTopics() {
  const topics = database.prepare('SELECT * FROM topics WHERE config <> ? ORDER BY topic_no').all(GONE)
  const finished = database.prepare('SELECT * FROM finished ORDER BY finished_at').all()
  const nextTopic = database.prepare('SELECT next_topic FROM meta').get()
  return { topics, finished, nextTopic: nextTopic?.['next_topic'] }
}

/** About `limit` rows and jobs of packs, and never a part of a pack. */
function readRows({ after, limit, half }: RowsRequest): JournalRows {
  const read = (from: number, to: number, max: number) =>
    statements.rows.all(from, to, max) as unknown as readonly ReadRow[]
  const found = packsAfter(after, limit)
  let rows = read(after, found.next ?? Number.MAX_SAFE_INTEGER, limit)
  let { next } = found
  if (rows.length === limit) {
    const last = rows.at(-1)?.[0] as number
    while ((found.packs.at(-1)?.seq ?? 0) > last) found.packs.pop()
    const pack = found.packs.at(-1)
    next = Math.max(last, pack === undefined ? 0 : pack.seq + pack.count - 1)
    rows = [...rows, ...read(last, next, limit)]
  }
  return { ...encodeRows(rows), packs: readPacks(found.packs, half), next }
}

/** Without memory of their own while they fit in their half of the area, since allocating it takes longer than reading. */
function readPacks(found: readonly Pack[], half: 0 | 1): JournalRows['packs'] {
  const room = options.area.byteLength / 2
  let used = 0
  return found.map((pack) => {
    const bytes = pack.place?.bytes ?? 0
    const fits = bytes > 0 && used + bytes <= room
    const content = contentOf(pack, fits ? new Uint8Array(options.area, half * room + used, bytes) : undefined)
    if (fits) used += bytes
    return { ...content, marks: pack.marks }
  })
}

/** @returns as `next` the last number of these, unless there are no more */
function packsAfter(after: number, jobsMax: number): { packs: Pack[]; next: number | undefined } {
  const found: Pack[] = []
  let jobs = 0
  for (let n = firstAfter(packs, after); n < packs.list.length; n++) {
    const pack = packs.list[n] as Pack
    if (pack.left === 0) continue
    found.push(pack)
    jobs += pack.left
    if (jobs >= jobsMax) return { packs: found, next: pack.seq + pack.count - 1 }
  }
  return { packs: found, next: undefined }
}

function encodeRows(rows: readonly ReadRow[]): Omit<JournalRows, 'packs' | 'next'> {
  const numbers = new Float64Array(rows.length * READ_NUMBERS)
  const ids: string[] = []
  const pasts: [number, string, string, string][] = []
  let bytes = 0
  for (const row of rows) bytes += Math.max(0, row[READ_LENGTH] as number)
  const payload = new Uint8Array(bytes)
  let at = 0
  for (let n = 0; n < rows.length; n++) {
    const row = rows[n] as ReadRow
    for (let column = 0; column < READ_NUMBERS; column++) numbers[n * READ_NUMBERS + column] = row[column] as number
    ids.push(row[READ_ID] as string)
    const data = row[READ_ID + 4] as Uint8Array | null
    if (data !== null) payload.set(data, at)
    at += data?.byteLength ?? 0
    const [reason, lastError, history] = [row[READ_ID + 1], row[READ_ID + 2], row[READ_ID + 3]] as string[]
    if (history !== '' || row[READ_STATE] === 1)
      pasts.push([n, reason as string, lastError as string, history as string])
  }
  return { numbers, ids, pasts, payload }
}

type ReadRow = readonly (number | string | Uint8Array | null)[]

function transferables({ numbers, payload, packs: read }: JournalRows): ArrayBuffer[] {
  return [numbers, payload, ...read.map(({ data }) => data)]
    .map(({ buffer }) => buffer)
    .filter((buffer) => buffer instanceof ArrayBuffer)
}

function sizes() {
  const page = pragma(database, 'page_size')
  const inFiles = packFileSizes(packFiles)
  return {
    bytes: pragma(database, 'page_count') * page + inFiles.bytes,
    freeBytes: pragma(database, 'freelist_count') * page + inFiles.freeBytes,
  }
}

/** A single file, with all packs in their rows. */
function backup(path: string): void {
  // Only the owner may read payloads.
  closeSync(openSync(path, 'wx', 0o600))
  try {
    database.prepare('VACUUM INTO ?').run(path)
    movePacksInto(path)
  } catch (error) {
    unlinkSync(path)
    throw error
  }
}

function movePacksInto(path: string): void {
  const copy = new DatabaseSync(path)
  try {
    // Its later pack files are not those of this queue.
    copy.exec('PRAGMA synchronous = FULL; PRAGMA user_version = 0; BEGIN; DELETE FROM filed_packs')
    const insert = copy.prepare('INSERT INTO packs (seq, topic_no, count, created_at, data) VALUES (?, ?, ?, ?, ?)')
    for (const pack of packs.list) {
      if (pack.left === 0 || pack.place === undefined) continue
      const { createdAt, data } = contentOf(pack)
      insert.run(pack.seq, pack.topicNumber, pack.count, createdAt, data)
    }
    copy.exec('COMMIT')
  } finally {
    copy.close()
  }
}

/** Free pages are used again; a file that is mostly free is made smaller at the start. */
function compact(): void {
  const [pages, free] = [pragma(database, 'page_count'), pragma(database, 'freelist_count')]
  if (pages * pragma(database, 'page_size') >= VACUUM_BYTES && free > pages / 2) database.exec('VACUUM')
}

/** Removes rows of deleted topics in slices, when nothing else is to be done. */
function sweepSoon(): void {
  clearImmediate(sweeping)
  if (goneTopics.length > 0) sweeping = setImmediate(sweep)
}

function sweep(): void {
  const [topic] = goneTopics
  if (topic === undefined) return
  let isDone = false
  const changes: PackChanges = new Map()
  try {
    inTransaction(() => {
      const { changes: removed } = statements.sweep.run(topic, SWEEP_ROWS)
      sweepPacks(topic, changes)
      isDone = removed === 0 && sweptTo === Number.POSITIVE_INFINITY
      if (isDone) {
        statements.forgetTopic.run(topic)
        statements.topicSwept.run(topic)
      }
    })
  } catch (error) {
    // Left for the next start; the rows belong to no topic.
    goneTopics.length = 0
    sweptTo = 0
    parentPort?.postMessage({
      id: 0,
      error: { message: (error as Error).message, isFull: false },
    } satisfies JournalReply)
    return
  }
  // Before their bytes in a file may be overwritten. A failure ends the thread, and so the journal.
  if (changes.size > 0) syncGroup()
  takeOver(changes)
  unpackLater()
  if (isDone) {
    goneTopics.shift()
    sweptTo = 0
  }
  sweepSoon()
}

/** Takes the jobs of a deleted topic out of the next packs. */
function sweepPacks(topic: number, changes: PackChanges): void {
  let n = firstAfter(packs, sweptTo)
  for (let read = 0; n < packs.list.length && read < SWEEP_PACKS; n++) {
    const pack = packs.list[n] as Pack
    sweptTo = pack.seq
    if (pack.left === 0 || (pack.topicNumber !== topic && pack.topicNumber !== 0)) continue
    read++
    readPack(contentOf(pack), ({ index, topicNumber }) => {
      if (topicNumber === topic) takeFromPack(packs, changes, pack.seq + index, pack)
    })
  }
  if (n >= packs.list.length) sweptTo = Number.POSITIVE_INFINITY
  storeMarks(changes)
}

/** Space that only deletions may use once the disk is full. */
function keepReserve(): void {
  const { bavail, bsize } = statfsSync(dirname(options.file))
  if (existsSync(reserveFile)) hasReserve = true
  if (hasReserve || bavail * bsize < RESERVE_AGAIN_BYTES) return
  const file = openSync(reserveFile, 'w', 0o600)
  try {
    const block = new Uint8Array(1 << 20)
    for (let written = 0; written < RESERVE_BYTES; written += block.length) writeSync(file, block)
    hasReserve = true
  } finally {
    closeSync(file)
  }
}

function releaseReserve(): void {
  if (existsSync(reserveFile)) unlinkSync(reserveFile)
  hasReserve = false
}

function close(): void {
  clearTimeout(unpacking)
  clearImmediate(sweeping)
  closeSync(log)
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
  closePackFiles(packFiles)
}
