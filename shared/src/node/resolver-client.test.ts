import { expect, test } from 'vitest'
import { turnableClock } from '../clock.ts'
import type { HttpResult } from './http-caller.ts'
import {
  closeResolverCache,
  createResolverCache,
  knownAddress,
  parseResolverUrl,
  type ResolverCache,
  resolveAddress,
} from './resolver-client.ts'

const KEY = { path: '/nodes/n1', fields: { node: 'n1' } }
const REQUEST_MS = 2_000

type Answer = Partial<Extract<HttpResult, { kind: 'answer' }>>

function answer({ status = 200, body = 'host:1', ...rest }: Answer): HttpResult {
  return { kind: 'answer', status, etag: '', body, ...rest }
}

const LOST: HttpResult = { kind: 'failed', reason: 'connection refused' }

/**
 * A cache whose clock moves by hand. Each call takes the next of `results`, or waits when there is none. Pauses end at
 * once and are noted, the time limit of a call passes when a test calls `timeOut`.
 */
function open(entriesMax = 10) {
  const clock = turnableClock(0)
  const results: HttpResult[] = []
  const calls: string[] = []
  const pauses: number[] = []
  const lines: object[] = []
  const changes: object[] = []
  const limits = new Set<() => void>()
  const cache: ResolverCache = createResolverCache({
    clock,
    schedule: {
      after(delayMs, run) {
        if (delayMs === REQUEST_MS) limits.add(run)
        else {
          pauses.push(delayMs)
          queueMicrotask(run)
        }
        return () => limits.delete(run)
      },
    },
    log: { warn: (fields, message) => void lines.push({ ...fields, message }) },
    call(path, signal) {
      calls.push(path)
      const next = results.shift()
      if (next) return Promise.resolve(next)
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve({ kind: 'failed', reason: 'aborted' }))
      })
    },
    entriesMax,
    onChange: (key, address) => changes.push({ ...key.fields, ...address }),
  })
  const timeOut = () => {
    for (const run of [...limits]) run()
  }
  return { cache, clock, results, calls, pauses, lines, changes, limits, timeOut }
}

/** All lookups in the background have ended. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('an address is used for half a minute, then while a new one is fetched in the background', async () => {
  const { cache, clock, results, calls, changes } = open()
  results.push(answer({ body: 'old:1' }), answer({ body: 'new:2' }))

  expect(await resolveAddress(cache, KEY)).toMatchObject({ kind: 'found', address: { host: 'old', port: 1 } })
  clock.advance(29_999)
  expect(await resolveAddress(cache, KEY)).toEqual({ kind: 'found', address: { host: 'old', port: 1 } })
  await settled()
  expect(calls).toHaveLength(1)

  clock.advance(1)
  expect(await resolveAddress(cache, KEY)).toEqual({ kind: 'found', address: { host: 'old', port: 1 } })
  await settled()
  expect(calls).toEqual(['/nodes/n1', '/nodes/n1'])
  expect(changes).toEqual([{ node: 'n1', host: 'new', port: 2 }])
  expect(knownAddress(cache, '/nodes/n1')).toEqual({ host: 'new', port: 2 })
  expect(knownAddress(cache, '/nodes/n2')).toBeUndefined()
  expect(await resolveAddress(cache, KEY)).toEqual({ kind: 'found', address: { host: 'new', port: 2 } })
  expect(cache.counters).toEqual({ requests: 2, failed: 0, unknown: 0, stale: 0 })
})

test.each([
  ['max-age=5', 5_000],
  ['private, max-age=60', 60_000],
  ['MAX-AGE=60,private', 60_000],
  ['max-age=0', 1_000],
  ['max-age=3600', 3_600_000],
  ['max-age=3601', 3_600_000],
  ['max-age=999999999', 3_600_000],
  ['no-store', 30_000],
  ['', 30_000],
  ['x-max-age=60', 30_000],
  ['max-age=60s', 30_000],
])('a response with Cache-Control %j is fresh for %i ms', async (cacheControl, freshMs) => {
  const { cache, clock, results, calls } = open()
  results.push(answer({ cacheControl }), answer({}))
  await resolveAddress(cache, KEY)

  clock.advance(freshMs - 1)
  await resolveAddress(cache, KEY)
  await settled()
  expect(calls).toHaveLength(1)
  clock.advance(1)
  await resolveAddress(cache, KEY)
  await settled()
  expect(calls).toHaveLength(2)
})

test.each([
  ['the same address', '{"host":"a","port":1,"api_port":2,"quic_port":3}', 0],
  ['another host', '{"host":"b","port":1,"api_port":2,"quic_port":3}', 1],
  ['another port', '{"host":"a","port":9,"api_port":2,"quic_port":3}', 1],
  ['another API port', '{"host":"a","port":1,"api_port":9,"quic_port":3}', 1],
  ['another QUIC port', '{"host":"a","port":1,"api_port":2,"quic_port":9}', 1],
])('a renewal with %s calls back %i times', async (_, body, times) => {
  const { cache, clock, results, changes } = open()
  results.push(answer({ body: '{"host":"a","port":1,"api_port":2,"quic_port":3}' }), answer({ body }))
  await resolveAddress(cache, KEY)
  expect(changes).toEqual([])

  clock.advance(1_000)
  await resolveAddress(cache, KEY, true)

  expect(changes).toHaveLength(times)
})

test('an address that was unreachable is looked up again, at most once a second', async () => {
  const { cache, clock, results, calls } = open()
  results.push(answer({ body: 'old' }), answer({ body: 'new' }))
  await resolveAddress(cache, KEY)

  clock.advance(999)
  expect(await resolveAddress(cache, KEY, true)).toEqual({ kind: 'found', address: { host: 'old' } })
  expect(calls).toHaveLength(1)
  clock.advance(1)
  expect(await resolveAddress(cache, KEY, true)).toMatchObject({ kind: 'found', address: { host: 'new' } })
  expect(calls).toHaveLength(2)
})

test('an unknown id is looked up again after two seconds, and its old address is forgotten', async () => {
  const { cache, clock, results, calls, pauses } = open()
  results.push(answer({}), answer({ status: 404 }), answer({ status: 404 }))
  await resolveAddress(cache, KEY)
  clock.advance(1_000)

  expect(await resolveAddress(cache, KEY, true)).toEqual({ kind: 'unknown', reason: 'the resolver does not know it' })
  expect(knownAddress(cache, KEY.path)).toBeUndefined()
  clock.advance(1_999)
  expect(await resolveAddress(cache, KEY)).toEqual({ kind: 'unknown', reason: 'looked up a moment ago' })
  expect(calls).toHaveLength(2)
  clock.advance(1)
  expect(await resolveAddress(cache, KEY)).toEqual({ kind: 'unknown', reason: 'the resolver does not know it' })
  expect(calls).toHaveLength(3)
  expect(pauses).toEqual([])
  expect(cache.counters).toEqual({ requests: 3, failed: 0, unknown: 2, stale: 0 })
})

test.each<[string, HttpResult, string]>([
  ['a connection that fails', LOST, 'connection refused'],
  ['a status of 500', answer({ status: 500 }), 'status 500'],
  ['a status of 201', answer({ status: 201 }), 'status 201'],
  ['4,097 bytes', answer({ body: '{"host":"a"}'.padEnd(4_097) }), 'more than 4096 bytes'],
  ['no host', answer({ body: '{"name":"a"}' }), 'the response names no host'],
  ['text as JSON', answer({ body: 'host', contentType: 'application/json' }), 'the response names no host'],
])('a lookup with %s is tried three times', async (_, result, reason) => {
  const { cache, clock, results, pauses } = open()
  results.push(result, result, result, result, result, answer({ body: 'third' }))

  expect(await resolveAddress(cache, KEY)).toEqual({ kind: 'failed', reason })
  expect(pauses).toEqual([100, 200])
  expect(cache.counters).toEqual({ requests: 3, failed: 1, unknown: 0, stale: 0 })
  clock.advance(999)
  expect(await resolveAddress(cache, KEY)).toEqual({ kind: 'failed', reason: 'looked up a moment ago' })
  clock.advance(1)
  expect(await resolveAddress(cache, KEY)).toMatchObject({ kind: 'found', address: { host: 'third' } })
  expect(cache.counters).toEqual({ requests: 6, failed: 1, unknown: 0, stale: 0 })
})

test('a response of 4,096 bytes is read', async () => {
  const { cache, results } = open()
  results.push(answer({ body: '{"host":"a"}'.padEnd(4_096) }))

  expect(await resolveAddress(cache, KEY)).toMatchObject({ kind: 'found', address: { host: 'a' } })
})

test('while the resolver fails, an address counts for ten minutes', async () => {
  const { cache, clock, results, calls } = open()
  results.push(answer({ body: 'old' }), LOST, LOST, LOST, LOST, LOST, LOST)
  await resolveAddress(cache, KEY)

  clock.advance(599_999)
  expect(await resolveAddress(cache, KEY, true)).toEqual({ kind: 'found', address: { host: 'old' } })
  expect(cache.counters).toEqual({ requests: 4, failed: 1, unknown: 0, stale: 1 })
  // The lookup may be repeated from 600,999 ms on only: until then, the address is neither used nor renewed.
  clock.advance(1)
  expect(await resolveAddress(cache, KEY)).toEqual({ kind: 'failed', reason: 'looked up a moment ago' })
  expect(calls).toHaveLength(4)
  clock.advance(999)
  expect(await resolveAddress(cache, KEY)).toEqual({ kind: 'failed', reason: 'connection refused' })
  expect(knownAddress(cache, KEY.path)).toBeUndefined()
  expect(cache.counters).toEqual({ requests: 7, failed: 2, unknown: 0, stale: 1 })
})

test('an address that is fresh for an hour counts for that hour', async () => {
  const { cache, clock, results } = open()
  results.push(answer({ body: 'old', cacheControl: 'max-age=3600' }), LOST, LOST, LOST, LOST, LOST, LOST)
  await resolveAddress(cache, KEY)

  clock.advance(3_599_999)
  expect(await resolveAddress(cache, KEY, true)).toEqual({ kind: 'found', address: { host: 'old' } })
  clock.advance(1_000)
  expect(await resolveAddress(cache, KEY, true)).toEqual({ kind: 'failed', reason: 'connection refused' })
})

test('a failure is logged once a minute for each id', async () => {
  const { cache, clock, results, lines } = open()
  const other = { path: '/nodes/n2', fields: { node: 'n2' } }
  const line = { reason: 'the resolver does not know it', message: 'resolver returned no address' }
  const lookUp = async (key: typeof KEY) => {
    results.push(answer({ status: 404 }))
    await resolveAddress(cache, key)
  }

  await lookUp(KEY)
  await lookUp(other)
  clock.advance(59_999)
  await lookUp(KEY)
  expect(lines).toEqual([
    { node: 'n1', ...line },
    { node: 'n2', ...line },
  ])
  clock.advance(2_000)
  await lookUp(KEY)
  expect(lines).toHaveLength(3)
})

test('a failure at the end of the minute is logged', async () => {
  const { cache, clock, results, lines } = open()
  results.push(answer({ status: 404 }), answer({ status: 404 }))
  await resolveAddress(cache, KEY)
  clock.advance(60_000)
  await resolveAddress(cache, KEY)

  expect(lines).toHaveLength(2)
})

test('lookups of one id at the same time are one request, and the next one is another', async () => {
  const { cache, clock, results, calls } = open()
  const both = [resolveAddress(cache, KEY), resolveAddress(cache, KEY)]
  const other = resolveAddress(cache, { path: '/nodes/n2', fields: {} })
  expect(calls).toEqual(['/nodes/n1', '/nodes/n2'])

  closeResolverCache(cache)
  const [first, second] = await Promise.all(both)
  await other
  expect(second).toBe(first)

  const again = open()
  again.results.push(answer({ status: 404 }), answer({ body: 'now' }))
  await resolveAddress(again.cache, KEY)
  again.clock.advance(2_000)
  expect(await resolveAddress(again.cache, KEY)).toMatchObject({ kind: 'found' })
  expect([results, clock.monotonicMs()]).toEqual([[], 0])
})

test('a request ends after two seconds, and its limit ends with its response', async () => {
  const { cache, limits, results, timeOut } = open()
  const lookup = resolveAddress(cache, KEY)
  expect(limits.size).toBe(1)
  results.push(answer({}))
  timeOut()
  expect(await lookup).toMatchObject({ kind: 'found' })
  expect(limits.size).toBe(0)

  const late = open()
  const failing = resolveAddress(late.cache, KEY)
  for (let tries = 0; tries < 3; tries++) {
    late.timeOut()
    await settled()
  }
  expect(await failing).toEqual({ kind: 'failed', reason: 'no response in time' })
  expect(late.calls).toHaveLength(3)
})

test('a cache that closes ends its requests, tries no more and logs nothing', async () => {
  const { cache, calls, lines } = open()
  const lookup = resolveAddress(cache, KEY)

  closeResolverCache(cache)

  expect(await lookup).toEqual({ kind: 'failed', reason: 'aborted' })
  expect(await resolveAddress(cache, { path: '/nodes/n2', fields: {} })).toEqual({ kind: 'failed', reason: 'stopping' })
  expect(calls).toHaveLength(1)
  expect(lines).toEqual([])
})

test('a cache that closes during a pause ends it', async () => {
  const pauses: number[] = []
  const cancelled: number[] = []
  const cache = createResolverCache({
    clock: turnableClock(0),
    // Time stands still: pauses never end by themselves.
    schedule: {
      after(delayMs) {
        if (delayMs !== REQUEST_MS) pauses.push(delayMs)
        return () => void cancelled.push(delayMs)
      },
    },
    log: { warn: () => {} },
    call: () => Promise.resolve(LOST),
    entriesMax: 1,
  })
  const lookup = resolveAddress(cache, KEY)
  await settled()
  expect(pauses).toEqual([100])

  closeResolverCache(cache)

  expect(await lookup).toEqual({ kind: 'failed', reason: 'stopping' })
  expect(pauses).toEqual([100])
  expect(cancelled).toEqual([REQUEST_MS, 100])
})

test('beyond its limit a cache forgets the id that was looked up first', async () => {
  const { cache, results, calls } = open(2)
  const keyOf = (name: string) => ({ path: name, fields: {} })
  results.push(...Array.from({ length: 4 }, () => answer({})))
  for (const name of ['a', 'b', 'a', 'c', 'b', 'a']) await resolveAddress(cache, keyOf(name))

  expect(calls).toEqual(['a', 'b', 'c', 'a'])
  expect([...cache.entries.keys()]).toEqual(['c', 'a'])
})

test.each([
  ['resolver:9000', 'http://resolver:9000'],
  ['http://resolver', 'http://resolver'],
  ['https://resolver:8443/base//', 'https://resolver:8443/base'],
  ['http://[::1]:9000/', 'http://[::1]:9000'],
])('the resolver address %s is %s', (text, base) => {
  expect(parseResolverUrl(text)).toBe(base)
})

test.each(['', 'http://', 'ftp://resolver', 'http://resolver?a=1', 'http://resolver#a', 'http://me@resolver', 'a b'])(
  'the resolver address %j is refused',
  (text) => {
    expect(() => parseResolverUrl(text)).toThrow(`--resolver-addr: ${text} is not http://host:port`)
  },
)
