/**
 * Packs of a SQLite queue: neighbouring jobs of a group in a single row, so that they are stored and deleted without a
 * statement for each (docs/design/queue.md#packs). One value holds 32 bytes of numbers for each job, then all ids, then
 * all payloads. Numbers are little-endian.
 */
import { assert } from '@vacancy/shared'
import type { Job } from './job.ts'
import { payloadBytes, writePayload } from './journal-tables.ts'
import type { PackPlace } from './pack-files.ts'

/** Fewer neighbours are rows of their own. */
const PACK_JOBS_MIN = 8
const PACK_JOBS_MAX = 128
const PACK_BYTES_MAX = 262_144

/** Bytes of all ids. */
const HEAD_BYTES = 4
/**
 * Topic, flags, priority, max attempts, ack deadline, created at minus that of the pack, length of the payload or -1,
 * length of the id.
 */
const JOB_BYTES = 32
const INT_MAX = 2 ** 31 - 1
/** UTF-8 of a UTF-16 unit. */
const UNIT_BYTES_MAX = 3

/** Jobs of a group that become one pack. */
export type PackRange = {
  /** Into the jobs of the group. */
  readonly from: number
  readonly count: number
  /** Room that is enough for it. */
  readonly bytesMax: number
}

/**
 * Finds jobs that follow each other in number. A job that is delayed stays longer than its neighbours and is a
 * row of its own.
 */
export function packRanges(jobs: readonly Job[]): PackRange[] {
  const ranges: PackRange[] = []
  let from = 0
  let bytes = 0
  const end = (to: number) => {
    if (to - from >= PACK_JOBS_MIN) ranges.push({ from, count: to - from, bytesMax: HEAD_BYTES + bytes })
    from = to
    bytes = 0
  }
  for (let n = 0; n < jobs.length; n++) {
    const job = jobs[n] as Job
    const size = JOB_BYTES + job.id.length * UNIT_BYTES_MAX + Math.max(0, payloadBytes(job))
    const first = jobs[from] as Job
    const isFull = n - from === PACK_JOBS_MAX || bytes + size > PACK_BYTES_MAX
    if (n > from && (isFull || !isNeighbour(first, jobs[n - 1] as Job, job))) end(n)
    bytes += size
    if (job.runAt === 0) continue
    end(n)
    from = n + 1
    bytes = 0
  }
  end(jobs.length)
  return ranges
}

function isNeighbour(first: Job, before: Job, job: Job): boolean {
  return job.seq === before.seq + 1 && Math.abs(job.createdAt - first.createdAt) <= INT_MAX
}

/** Writes the jobs of a pack. @returns the offset behind it */
export function writePack(jobs: readonly Job[], { from, count }: PackRange, target: Buffer, offset: number): number {
  const base = (jobs[from] as Job).createdAt
  let ids = ''
  let at = offset + HEAD_BYTES
  for (let n = from; n < from + count; n++) {
    const job = jobs[n] as Job
    target.writeInt32LE(job.topic.number, at)
    target.writeInt32LE(job.flags, at + 4)
    target.writeInt32LE(job.priority, at + 8)
    target.writeInt32LE(job.maxAttempts, at + 12)
    target.writeInt32LE(job.ackDeadlineMs, at + 16)
    target.writeInt32LE(job.createdAt - base, at + 20)
    target.writeInt32LE(payloadBytes(job), at + 24)
    target.writeInt32LE(job.id.length, at + 28)
    ids += job.id
    at += JOB_BYTES
  }
  const idsBytes = target.write(ids, at)
  target.writeInt32LE(idsBytes, offset)
  at += idsBytes
  for (let n = from; n < from + count; n++) {
    at += writePayload(jobs[n] as Job, target, at)
  }
  return at
}

/** The topic of all jobs of a pack, or 0 when they have several. */
export function topicOfPack(jobs: readonly Job[], { from, count }: PackRange): number {
  const { topic } = jobs[from] as Job
  for (let n = from + 1; n < from + count; n++) if ((jobs[n] as Job).topic !== topic) return 0
  return topic.number
}

/** A pack as it is stored. */
export type StoredPack = {
  readonly seq: number
  readonly count: number
  /** Of its first job. */
  readonly createdAt: number
  readonly data: Uint8Array
}

/** A job of a pack. */
export type PackedJob = {
  readonly index: number
  readonly topicNumber: number
  readonly id: string
  readonly flags: number
  readonly priority: number
  readonly maxAttempts: number
  readonly ackDeadlineMs: number
  readonly createdAt: number
  /** Where its payload begins in the pack, and its bytes; -1 for the payload null. */
  readonly from: number
  readonly bytes: number
}

/** Calls back for each job, with one object that holds each in turn. @throws when the content does not add up */
export function readPack({ seq, count, createdAt, data }: StoredPack, onJob: (job: PackedJob) => void): void {
  const buffer = Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  const idsFrom = HEAD_BYTES + count * JOB_BYTES
  const isWhole = count > 0 && buffer.length >= idsFrom
  const idsBytes = isWhole ? buffer.readInt32LE(0) : -1
  if (idsBytes < 0 || idsFrom + idsBytes > buffer.length) throw damaged(seq)
  const ids = buffer.toString('utf8', idsFrom, idsFrom + idsBytes)
  const isNarrow = ids.length === idsBytes
  // Each id is a text of its own: a part of the whole text would keep that in memory as long as one job.
  const idAfter = (from: number, length: number) =>
    isNarrow
      ? buffer.toString('latin1', idsFrom + from, idsFrom + from + length)
      : Buffer.from(ids.slice(from, from + length)).toString('utf8')
  let at = HEAD_BYTES
  let idAt = 0
  let payloadAt = idsFrom + idsBytes
  const numbers = { index: 0, topicNumber: 0, flags: 0, priority: 0, maxAttempts: 0, ackDeadlineMs: 0, createdAt }
  const job = { ...numbers, id: '', from: 0, bytes: 0 }
  for (let index = 0; index < count; index++) {
    const length = buffer.readInt32LE(at + 24)
    const idLength = buffer.readInt32LE(at + 28)
    const payloadEnd = payloadAt + Math.max(0, length)
    if (length < -1 || idLength < 1 || idAt + idLength > ids.length || payloadEnd > buffer.length) throw damaged(seq)
    job.index = index
    job.id = idAfter(idAt, idLength)
    job.topicNumber = buffer.readInt32LE(at)
    job.flags = buffer.readInt32LE(at + 4)
    job.priority = buffer.readInt32LE(at + 8)
    job.maxAttempts = buffer.readInt32LE(at + 12)
    job.ackDeadlineMs = buffer.readInt32LE(at + 16)
    job.createdAt = createdAt + buffer.readInt32LE(at + 20)
    job.from = payloadAt
    job.bytes = length
    onJob(job)
    at += JOB_BYTES
    idAt += idLength
    payloadAt = payloadEnd
  }
  if (idAt !== ids.length || payloadAt !== buffer.length) throw damaged(seq)
}

function damaged(seq: number): Error {
  return new Error(`damaged: the jobs from number ${seq} cannot be read`)
}

// --- Which jobs of a pack are left ---

/** A pack in the file, as the thread knows it. */
export type Pack = {
  readonly seq: number
  /** Of all its jobs; 0 when they have several. */
  readonly topicNumber: number
  readonly count: number
  /** Jobs that are in it still. */
  left: number
  /** Bit n: job n is no longer in it. Undefined while all are. */
  marks: Uint8Array | undefined
  /** Since when at most half of it is left, in milliseconds; 0 before. */
  sparseSince: number
  /** Where its jobs are; undefined while they are in its row. */
  place: PackPlace | undefined
}

/** All packs, in order of `seq`. Those without jobs are left out from time to time. */
export type Packs = { list: Pack[]; gone: number }

export function isMarked(marks: Uint8Array | undefined, index: number): boolean {
  return marks !== undefined && ((marks[index >> 3] as number) & (1 << (index & 7))) !== 0
}

/** @param marks of one that was in the file already */
export function addPack(
  packs: Packs,
  { seq, topicNumber, count }: Pick<Pack, 'seq' | 'topicNumber' | 'count'>,
  nowMs: number,
  place: PackPlace | undefined,
  marks?: Uint8Array,
): void {
  let left = count
  for (let n = 0; n < count; n++) if (isMarked(marks, n)) left--
  assert(seq > (packs.list.at(-1)?.seq ?? 0), 'packs are added in order')
  packs.list.push({ seq, topicNumber, count, left, marks, place, sparseSince: left * 2 > count ? 0 : nowMs })
}

/** The index of the first pack that begins behind a number. */
export function firstAfter({ list }: Packs, seq: number): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((list[middle] as Pack).seq <= seq) low = middle + 1
    else high = middle
  }
  return low
}

/** The pack with the number of a job in its range. */
function packOf(packs: Packs, seq: number): Pack | undefined {
  const pack = packs.list[firstAfter(packs, seq) - 1]
  return pack !== undefined && pack.left > 0 && seq < pack.seq + pack.count ? pack : undefined
}

const GONE_MIN = 64

export function forgetPack(packs: Packs, pack: Pack): void {
  pack.left = 0
  pack.marks = undefined
  packs.gone++
  if (packs.gone < GONE_MIN || packs.gone * 2 < packs.list.length) return
  packs.list = packs.list.filter(({ left }) => left > 0)
  packs.gone = 0
}

/** What a transaction changes in packs; it counts once that is committed. */
export type PackChanges = Map<Pack, { readonly marks: Uint8Array; left: number }>

/**
 * Takes a job out of its pack.
 *
 * @param near where the job before was found; neighbours are often together
 * @returns undefined when it is in none
 */
export function takeFromPack(packs: Packs, changes: PackChanges, seq: number, near?: Pack): Pack | undefined {
  const isNear = near !== undefined && seq >= near.seq && seq < near.seq + near.count
  const pack = isNear ? near : packOf(packs, seq)
  if (pack === undefined) return undefined
  const index = seq - pack.seq
  let change = changes.get(pack)
  if (isMarked(change?.marks ?? pack.marks, index)) return undefined
  if (change === undefined) {
    change = { marks: pack.marks?.slice() ?? new Uint8Array((pack.count + 7) >> 3), left: pack.left }
    changes.set(pack, change)
  }
  const { marks } = change
  marks[index >> 3] = (marks[index >> 3] as number) | (1 << (index & 7))
  change.left--
  return pack
}

/** @returns the packs of which at most half is left now */
export function applyChanges(packs: Packs, changes: PackChanges, nowMs: number): Pack[] {
  const sparse: Pack[] = []
  for (const [pack, { marks, left }] of changes) {
    if (left === 0) forgetPack(packs, pack)
    else {
      pack.marks = marks
      pack.left = left
      if (left * 2 > pack.count || pack.sparseSince !== 0) continue
      pack.sparseSince = nowMs
      sparse.push(pack)
    }
  }
  return sparse
}
