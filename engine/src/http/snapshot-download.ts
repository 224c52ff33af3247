/**
 * Downloads a snapshot file over HTTP, so that operators need no shell on the machine of a node
 * (docs/design/control-plane.md#imports). The file is identified by its content digest, resumed after interruptions,
 * and verified before use.
 *
 *   pulling ──► checking ──► asked     a member of a running shard: the leader loads it as any other file
 *   (bulk-load-coordinator.ts)
 *                      └──► placed     an empty node that waits: the file becomes its seed.snapshot (formation.ts)
 *
 * Any step may end in `failed`. Downloaded bytes are kept for the next try of the same digest and deleted for another
 * one.
 *
 *   data_dir/pulled/<content digest>.part       partial
 *   data_dir/pulled/<content digest>.snapshot   complete; deleted once the shard has it
 */

import { createWriteStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { type CodecList, VacancyError } from '@vacancy/shared'
import type { Log } from '@vacancy/shared/node'
import type { PULL_URLS } from '../config.ts'
import { createEnv, isDiskFull } from '../env.ts'
import { snapshotId } from '../snapshot/format.ts'
import { placeChunks, readSeedFile, scrubChunk } from '../snapshot/load.ts'
import { foreignness, SEED_FILE } from '../snapshot/snapshot.ts'
import type { BootstrapStatus } from '../status.ts'
import type { ClusterAnswer, ClusterRequest, PullRequest, PullStatus } from './handle.ts'

const PULL_LIMITS = {
  fileBytesMax: 64 * 2 ** 30,
  urlCharactersMax: 2_048,
  /** Retries after this long without data. */
  silenceMs: 30_000,
  /** Fails after this long without progress. */
  giveUpMs: 600_000,
  retryMs: [500, 1_000, 2_000, 5_000, 10_000],
  /** Space kept free beside the file and the copy of its chunks. */
  reserveBytes: 256 * 2 ** 20,
  /** How long requests to a leader that is not ready are retried. */
  leaderMs: 30_000,
} as const

export type PullParts = {
  readonly dataDir: string
  readonly shardId: string
  readonly codecs: CodecList
  readonly urls: (typeof PULL_URLS)[number]
  readonly log: Log
  readonly wallMs: () => number
  /** What this node waits for before it is a member; undefined for a member, and right after the start. */
  readonly waiting: () => BootstrapStatus | undefined
  readonly isMember: () => boolean
  readonly request: (request: ClusterRequest) => Promise<ClusterAnswer>
}

export type Puller = {
  /** Starts a download; also 202 if this digest is being pulled already. */
  readonly start: (request: PullRequest) => ClusterAnswer
  /** The last download since the start of the process. */
  readonly status: () => PullStatus | undefined
  readonly stop: () => Promise<void>
}

export function createPuller(parts: PullParts): Puller {
  let now: PullStatus | undefined
  let running: { readonly end: AbortController; readonly done: Promise<void> } | undefined
  return {
    start(request) {
      const fault = faultOf(parts, request)
      if (fault !== '') return { status: 400, text: fault }
      if (running) {
        if (now?.digest === request.digest) return { status: 202, text: 'it is being fetched' }
        return { status: 409, text: `snapshot ${now?.digest.slice(0, 12)} is being fetched: wait until it is over` }
      }
      const bootstrap = parts.waiting()
      if (bootstrap?.waitsFor === 'join') return { status: 409, text: JOINS }
      if (!bootstrap && !parts.isMember()) return { status: 503, text: 'the node is starting: retry in a second' }
      const { digest } = request
      now = { digest, state: 'pulling', bytesDone: 0, bytesTotal: 0, error: '', startedMs: parts.wallMs() }
      const report = (change: Partial<PullStatus>) => {
        if (now) now = { ...now, ...change }
      }
      const end = new AbortController()
      const done = pull(parts, request, report, end.signal)
        .catch((error: unknown) => {
          const reason = isDiskFull(error) ? `${parts.dataDir}: the disk is full` : messageOf(error)
          report({ state: 'failed', error: reason })
          parts.log.warn({ digest, reason }, 'snapshot download failed')
        })
        .finally(() => {
          running = undefined
        })
      running = { end, done }
      return { status: 202, text: 'begun' }
    },
    status: () => now,
    async stop() {
      running?.end.abort()
      await running?.done
    },
  }
}

const JOINS = 'the node joins a shard that runs: ask its leader for a load'

function faultOf({ urls }: PullParts, { url }: PullRequest): string {
  if (urls === 'none') return 'this node fetches no snapshots (load_urls: none)'
  if (url.length > PULL_LIMITS.urlCharactersMax) return `url is longer than ${PULL_LIMITS.urlCharactersMax} characters`
  if (!URL.canParse(url)) return 'url is not a URL'
  const { protocol, username, password } = new URL(url)
  if (protocol !== 'https:' && (protocol !== 'http:' || urls === 'https')) {
    return urls === 'https' ? 'url must be https (load_urls: https)' : 'url must be http or https'
  }
  return username + password === '' ? '' : 'url must not carry a password: give a token'
}

/** An error that a retry would not fix. */
class FinalError extends Error {}

type Report = (change: Partial<PullStatus>) => void

async function pull(parts: PullParts, request: PullRequest, report: Report, signal: AbortSignal): Promise<void> {
  const { digest } = request
  const folder = join(parts.dataDir, 'pulled')
  await mkdir(folder, { recursive: true })
  for (const name of await readdir(folder)) if (!name.startsWith(digest)) await rm(join(folder, name))
  const whole = join(folder, `${digest}.snapshot`)
  if ((await bytesOf(whole)) === undefined) await fetchAll(parts, request, `${whole}.part`, whole, report, signal)
  report({ state: 'checking' })
  // The leader's side verifies a member's chunks while extracting them. A seed must be verified before it is placed.
  const isWaiting = parts.waiting() !== undefined
  try {
    await check(parts, whole, digest, isWaiting, signal)
  } catch (error) {
    // A damaged file stays damaged.
    await rm(whole, { force: true })
    throw error
  }
  if (isWaiting) await placeSeed(parts, whole, digest)
  else await requestLoad(parts, whole, signal)
  await rm(whole, { force: true })
  report({ state: isWaiting ? 'placed' : 'asked' })
  parts.log.info({ digest, as: isWaiting ? 'seed' : 'load' }, 'snapshot downloaded')
}

async function bytesOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function fetchAll(
  parts: PullParts,
  request: PullRequest,
  part: string,
  whole: string,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  let grownAt = performance.now()
  let before = (await bytesOf(part)) ?? 0
  for (let attempt = 0; ; attempt++) {
    try {
      await fetchOnce(parts, request, part, report, signal)
      break
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof FinalError || isDiskFull(error)) throw error
      const bytes = (await bytesOf(part)) ?? 0
      if (bytes > before) {
        attempt = 0
        grownAt = performance.now()
      }
      before = bytes
      if (performance.now() - grownAt > PULL_LIMITS.giveUpMs) throw error
      const delay = PULL_LIMITS.retryMs[Math.min(attempt, PULL_LIMITS.retryMs.length - 1)]
      parts.log.info({ reason: messageOf(error), bytes, delay }, 'retrying the snapshot download')
      await sleep(delay, undefined, { signal })
    }
  }
  const file = await open(part, 'r')
  await file.sync().finally(() => file.close())
  await rename(part, whole)
}

/** One request for the missing part. Resolves when the file is complete. */
async function fetchOnce(
  { dataDir }: PullParts,
  { url, token }: PullRequest,
  part: string,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const have = (await bytesOf(part)) ?? 0
  const silence = new AbortController()
  const received = () => {
    clearTimeout(timer)
    timer = setTimeout(() => silence.abort(new Error('no data for 30 s')), PULL_LIMITS.silenceMs)
  }
  let timer: NodeJS.Timeout | undefined
  received()
  try {
    const response = await fetch(url, {
      headers: {
        'accept-encoding': 'identity',
        ...(have > 0 && { range: `bytes=${have}-` }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      // A redirect would carry the token elsewhere.
      redirect: 'manual',
      signal: AbortSignal.any([signal, silence.signal]),
    })
    const range = response.status === 206 ? rangeOf(response) : undefined
    const offset = range ? have : 0
    const total = range ? range.total : Number(response.headers.get('content-length') ?? Number.NaN)
    if (response.status === 416 && have > 0) {
      await response.body?.cancel()
      await rm(part)
      throw new Error('the file is shorter than what was fetched of it: starting over')
    }
    if (!response.ok || !response.body) throw await refusalOf(response)
    if (range && range.start !== have) throw new Error(`requested byte ${have}, got ${range.start}`)
    if (!Number.isSafeInteger(total) || total < 1 || total > PULL_LIMITS.fileBytesMax) {
      throw new FinalError(`a file of ${total} bytes cannot be downloaded`)
    }
    report({ bytesDone: offset, bytesTotal: total })
    await checkRoom(dataDir, total - offset + total)
    let done = offset
    const counted = async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        received()
        done += chunk.length
        if (done > total) throw new FinalError(`the server sent more than ${total} bytes`)
        report({ bytesDone: done })
        yield chunk
      }
    }
    const target = createWriteStream(part, offset > 0 ? { flags: 'r+', start: offset } : { flags: 'w' })
    await pipeline(Readable.fromWeb(response.body as never), counted, target)
    if (done < total) throw new Error(`the answer ended at byte ${done} of ${total}`)
  } finally {
    clearTimeout(timer)
  }
}

function rangeOf(response: Response): { start: number; total: number } {
  const match = /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15})$/.exec(response.headers.get('content-range') ?? '')
  return { start: Number(match?.[1] ?? Number.NaN), total: Number(match?.[2] ?? Number.NaN) }
}

/** Requests to a busy server are retried, refusals are final. */
async function refusalOf(response: Response): Promise<Error> {
  const { status } = response
  await response.body?.cancel()
  const reason = `the server returned ${status}`
  return status >= 500 || status === 408 || status === 429 ? new Error(reason) : new FinalError(reason)
}

async function checkRoom(dataDir: string, wanted: number): Promise<void> {
  const { bavail, bsize } = await statfs(dataDir)
  const free = bavail * bsize
  const needed = wanted + PULL_LIMITS.reserveBytes
  if (free < needed) throw new FinalError(`${dataDir} has ${free} bytes free; ${needed} are needed`)
}

/** @throws VacancyError corrupt_data, wrong_shard, codecs_changed */
async function check(
  { shardId, codecs }: PullParts,
  path: string,
  digest: string,
  withChunks: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { disk } = createEnv({ debug() {}, info() {}, warn() {}, error() {} })
  const head = readSeedFile(disk, path)
  const found = snapshotId(head.manifest)
  if (found !== digest) throw new FinalError(`the file is snapshot ${found}, not ${digest}`)
  const foreign = foreignness(head, { shardId, codecsOrderedHash: codecs.orderedHash, codecsText: codecs.text })
  if (foreign) throw foreign
  if (!withChunks) return
  for (const chunk of placeChunks(head)) {
    scrubChunk(disk, head, chunk)
    // A chunk takes milliseconds; health requests wait no longer than that.
    await turn()
    signal.throwIfAborted()
  }
}

async function placeSeed({ dataDir, waiting }: PullParts, path: string, digest: string): Promise<void> {
  const bootstrap = waiting()
  const why = 'the node no longer waits for a snapshot: ask the shard for a load'
  if (!bootstrap) throw new FinalError(why)
  if (bootstrap.waitsFor === 'join') throw new FinalError(JOINS)
  const seed = join(dataDir, SEED_FILE)
  if ((await bytesOf(seed)) !== undefined) {
    const { disk } = createEnv({ debug() {}, info() {}, warn() {}, error() {} })
    const held = snapshotId(readSeedFile(disk, seed).manifest)
    if (held === digest) return
    throw new FinalError(`the node holds snapshot ${held} already`)
  }
  await rename(path, seed)
  const folder = await open(dataDir, 'r')
  await folder.sync().finally(() => folder.close())
}

async function requestLoad({ request }: PullParts, file: string, signal: AbortSignal): Promise<void> {
  const until = performance.now() + PULL_LIMITS.leaderMs
  // The replica that would reply may end before the node does.
  const stopped = Promise.withResolvers<never>()
  stopped.promise.catch(() => undefined)
  signal.addEventListener('abort', () => stopped.reject(signal.reason), { once: true })
  for (;;) {
    const { status, text } = await Promise.race([request({ kind: 'load', file }), stopped.promise])
    if (status === 202) return
    if (status !== 503 || performance.now() > until) throw new FinalError(text)
    await sleep(1_000, undefined, { signal })
  }
}

function messageOf(error: unknown): string {
  if (error instanceof VacancyError || error instanceof FinalError) return error.message
  const { message, cause } = error as Error
  return cause instanceof Error && cause.message !== '' ? `${message}: ${cause.message}` : message
}
