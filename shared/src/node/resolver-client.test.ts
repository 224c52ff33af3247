import { expect, test } from 'vitest'
import { turnableClock } from '../clock.ts'
import type { HttpResult } from './http-caller.ts'
import { createResolverCache, knownAddress, type ResolverCache, resolveAddress } from './resolver-client.ts'

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

test('beyond its limit a cache forgets the id that was looked up first', async () => {
  const { cache, results, calls } = open(2)
  const keyOf = (name: string) => ({ path: name, fields: {} })
  results.push(...Array.from({ length: 4 }, () => answer({})))
  for (const name of ['a', 'b', 'a', 'c', 'b', 'a']) await resolveAddress(cache, keyOf(name))

  expect(calls).toEqual(['a', 'b', 'c', 'a'])
  expect([...cache.entries.keys()]).toEqual(['c', 'a'])
})
