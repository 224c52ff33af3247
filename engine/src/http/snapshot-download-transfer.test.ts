/** The transfer of a snapshot over HTTP: resumption, retries, limits and hand-over, without a network and without waiting. */

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type * as Files from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type * as Timers from 'node:timers/promises'
import { createCodecList } from '@vacancy/shared'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type * as Format from '../snapshot/format.ts'
import type * as Load from '../snapshot/load.ts'
import type { BootstrapStatus } from '../status.ts'
import type { ClusterRequest } from './handle.ts'
import { createPuller, type PullParts } from './snapshot-download.ts'

const CODECS = createCodecList(['breakfast'])
/** The state after the leader was requested to load the file. */
const REQUESTED = 'asked'
const DIGEST = 'a'.repeat(64)
const OTHER = 'b'.repeat(64)
const MIB_256 = 256 * 2 ** 20
const WAITING: BootstrapStatus = { waitsFor: 'voters', why: '', needed: 2, voters: [] }

const state = vi.hoisted(() => ({
  nowMs: 0,
  delays: [] as number[],
  blocks: 0,
  blockBytes: 1,
  scrubbed: [] as unknown[],
  scrub: (() => undefined) as () => void,
}))

vi.mock('node:timers/promises', async (original) => ({
  ...(await original<typeof Timers>()),
  async setTimeout(ms: number, _: unknown, { signal }: { signal: AbortSignal }) {
    state.delays.push(ms)
    state.nowMs += ms
    signal.throwIfAborted()
  },
}))
vi.mock('node:fs/promises', async (original) => ({
  ...(await original<typeof Files>()),
  statfs: async () => ({ bavail: state.blocks, bsize: state.blockBytes }),
}))
// The content of a file is its digest, and three chunks.
vi.mock('../snapshot/format.ts', async (original) => ({
  ...(await original<typeof Format>()),
  snapshotId: ({ id }: { id: string }) => id,
}))
vi.mock('../snapshot/load.ts', async (original) => ({
  ...(await original<typeof Load>()),
  readSeedFile: (_: unknown, path: string) => ({
    path,
    manifest: { id: readFileSync(path, 'utf8'), shardId: 's1', codecsOrderedHash: CODECS.orderedHash, codecs: [] },
  }),
  placeChunks: () => ['first', 'second', 'third'],
  scrubChunk(_: unknown, __: unknown, chunk: unknown) {
    state.scrubbed.push(chunk)
    state.scrub()
  },
}))

type Reply = Response | Error
type Sent = { readonly url: string; readonly options: RequestInit; readonly headers: Record<string, string> }

beforeEach(() => {
  Object.assign(state, { nowMs: 0, delays: [], blocks: 2 ** 40, blockBytes: 1, scrubbed: [], scrub: () => undefined })
  vi.spyOn(performance, 'now').mockImplementation(() => state.nowMs)
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

const body = (status: number, text: string, headers: Record<string, string> = {}) =>
  new Response(text, { status, headers })
const file = (text = DIGEST) => body(200, text, { 'content-length': String(text.length) })
const rest = (from: number, range = `bytes ${from}-63/64`) =>
  body(206, DIGEST.slice(from), { 'content-range': range, 'content-length': String(64 - from) })

/** A download whose replies are given in order; the last one is repeated. */
function download(replies: readonly (() => Reply | Promise<Reply>)[], differs: Partial<PullParts> = {}) {
  const dataDir = differs.dataDir ?? mkdtempSync(join(tmpdir(), 'vacancy-transfer-'))
  const sent: Sent[] = []
  const loads: ClusterRequest[] = []
  const retries: { reason: string; bytes: number; delay: number }[] = []
  const end = Promise.withResolvers<void>()
  vi.stubGlobal('fetch', async (url: string, options: RequestInit) => {
    sent.push({ url, options, headers: options.headers as Record<string, string> })
    options.signal?.throwIfAborted()
    const aborted = Promise.withResolvers<never>()
    aborted.promise.catch(() => undefined)
    options.signal?.addEventListener('abort', () => aborted.reject(options.signal?.reason))
    const reply = await Promise.race([replies[Math.min(sent.length, replies.length) - 1]?.(), aborted.promise])
    if (reply instanceof Error) throw reply
    return reply
  })
  const log = {
    debug() {},
    error() {},
    warn: () => end.resolve(),
    info(fields: (typeof retries)[number], text: string) {
      if (text === 'snapshot downloaded') end.resolve()
      else retries.push(fields)
    },
  } as unknown as PullParts['log']
  const puller = createPuller({
    ...{ dataDir, shardId: 's1', codecs: CODECS, urls: 'any', log, wallMs: () => 77 },
    ...{ waiting: () => undefined, isMember: () => true },
    request: async (request) => {
      loads.push(request)
      return { status: 202, text: '' }
    },
    ...differs,
  })
  const folder = join(dataDir, 'pulled')
  mkdirSync(folder, { recursive: true })
  return {
    puller,
    sent,
    loads,
    retries,
    folder,
    dataDir,
    part: join(folder, `${DIGEST}.snapshot.part`),
    whole: join(folder, `${DIGEST}.snapshot`),
    async run(url = 'http://host/x', token?: string) {
      expect(puller.start({ url, digest: DIGEST, ...(token !== undefined && { token }) }).status).toBe(202)
      await end.promise
      return puller.status()
    },
  }
}

test('a download that was interrupted requests only the missing bytes', async () => {
  const { run, sent, part, folder } = download([() => rest(20)])
  writeFileSync(part, DIGEST.slice(0, 20))
  state.blocks = 44 + 64 + MIB_256

  expect(await run()).toMatchObject({ state: REQUESTED, bytesDone: 64, bytesTotal: 64 })
  expect(sent.map(({ headers }) => headers)).toEqual([{ 'accept-encoding': 'identity', range: 'bytes=20-' }])
  expect(readdirSync(folder)).toEqual([])
})

test('a server that ignores the range sends the file from its start', async () => {
  const { run, part } = download([() => file()])
  writeFileSync(part, 'x'.repeat(100))

  expect(await run()).toMatchObject({ state: REQUESTED, bytesDone: 64, bytesTotal: 64 })
})

test.each<[string, () => Reply, string, number]>([
  ['a range from another byte', () => rest(20, 'bytes 19-63/64'), 'requested byte 20, got 19', 20],
  ['a range of a file that became shorter', () => body(416, ''), 'shorter than what was fetched', 0],
  ['an end before the last byte', () => rest(20, 'bytes 20-63/90'), 'the answer ended at byte 64 of 90', 64],
  [
    'a failed connection',
    () => new Error('fetch failed', { cause: new Error('refused') }),
    'fetch failed: refused',
    20,
  ],
  ['a failure without words', () => new Error('fetch failed', { cause: new Error('') }), 'fetch failed', 20],
  ['500', () => body(500, ''), 'the server returned 500', 20],
  ['503', () => body(503, ''), 'the server returned 503', 20],
  ['408', () => body(408, ''), 'the server returned 408', 20],
  ['429', () => body(429, ''), 'the server returned 429', 20],
])('%s is retried after half a second', async (_, first, reason, bytes) => {
  const { run, retries, part, sent } = download([first, () => file()])
  writeFileSync(part, DIGEST.slice(0, 20))

  expect(await run()).toMatchObject({ state: REQUESTED, bytesDone: 64 })
  expect(retries).toEqual([{ reason: expect.stringContaining(reason), bytes, delay: 500 }])
  expect(sent[1]?.headers['range']).toBe(bytes === 0 ? undefined : `bytes=${bytes}-`)
})

test.each<[string, () => Reply, RegExp]>([
  ['302', () => body(302, ''), /^the server returned 302$/],
  ['407', () => body(407, ''), /^the server returned 407$/],
  ['416 without a range', () => body(416, ''), /^the server returned 416$/],
  ['499', () => body(499, ''), /^the server returned 499$/],
  ['an empty file', () => body(200, '', { 'content-length': '0' }), /^a file of 0 bytes cannot be downloaded$/],
  ['no length', () => body(200, DIGEST), /^a file of NaN bytes/],
  ['half a byte', () => body(200, DIGEST, { 'content-length': '1.5' }), /^a file of 1.5 bytes/],
  ['a byte more than 64 GiB', () => body(200, '', { 'content-length': '68719476737' }), /^a file of 68719476737 bytes/],
  ['more than its length', () => body(200, DIGEST, { 'content-length': '63' }), /^the server sent more than 63 bytes$/],
  ['another snapshot', () => file(OTHER), new RegExp(`^the file is snapshot ${OTHER}, not ${DIGEST}$`)],
  ['a full disk', () => Object.assign(new Error('write'), { code: 'ENOSPC' }), /: the disk is full$/],
])('%s ends the download without a retry', async (_, reply, reason) => {
  const { run, retries, loads, whole, sent } = download([reply])

  expect(await run()).toMatchObject({ state: 'failed', error: expect.stringMatching(reason) })
  expect([sent.length, retries, loads, existsSync(whole)]).toEqual([1, [], [], false])
})

test.each([
  [0, 128],
  [20, 108],
])('with %i bytes downloaded, room for %i bytes and 256 MiB is enough, a byte less is not', async (have, needed) => {
  const reply = () => (have === 0 ? file() : rest(have))
  const attempt = async (blocks: number, blockBytes: number) => {
    Object.assign(state, { blocks, blockBytes })
    const { run, part } = download([reply])
    if (have > 0) writeFileSync(part, DIGEST.slice(0, have))
    return (await run())?.state
  }

  expect(await attempt(needed + MIB_256, 1)).toBe(REQUESTED)
  expect(await attempt(needed + MIB_256 - 1, 1)).toBe('failed')
  expect(await attempt((needed + MIB_256) / 4, 4)).toBe(REQUESTED)
})

test.each<[string, PullParts['urls'], string, string]>([
  ['2,048 characters', 'any', `http://host/${'x'.repeat(2_036)}`, ''],
  ['2,049 characters', 'any', `http://host/${'x'.repeat(2_037)}`, 'url is longer than 2048 characters'],
  ['http', 'any', 'http://host/', ''],
  ['https', 'any', 'https://host/', ''],
  ['https', 'https', 'https://host/', ''],
  ['http', 'https', 'http://host/', 'url must be https (load_urls: https)'],
  ['ftp', 'https', 'ftp://host/', 'url must be https (load_urls: https)'],
  ['ftp', 'any', 'ftp://host/', 'url must be http or https'],
  ['a user alone', 'any', 'http://me@host/', 'url must not carry a password: give a token'],
  ['a password alone', 'any', 'http://:secret@host/', 'url must not carry a password: give a token'],
  ['https', 'none', 'https://host/', 'this node fetches no snapshots (load_urls: none)'],
])('%s with load_urls: %s', async (_, urls, url, fault) => {
  const { puller } = download([() => body(404, '')], { urls })

  const reply = puller.start({ url, digest: DIGEST })

  expect(reply).toEqual(fault === '' ? { status: 202, text: 'begun' } : { status: 400, text: fault })
  await puller.stop()
})

test('a damaged chunk deletes the file and places no seed', async () => {
  const { run, whole, dataDir } = download([() => file()], { waiting: () => WAITING })
  state.scrub = () => {
    throw new Error('chunk 1 is damaged')
  }

  expect(await run()).toMatchObject({ state: 'failed', error: 'chunk 1 is damaged' })
  expect([existsSync(whole), existsSync(join(dataDir, 'seed.snapshot'))]).toEqual([false, false])
})
