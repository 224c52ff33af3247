/** The link to the registry with a registry that the test controls: pauses, states and refusals that operators see (registry.ts). */

import { createCodecList, turnableClock } from '@vacancy/shared'
import type { HttpRequest, HttpResult } from '@vacancy/shared/node'
import { expect, test } from 'vitest'
import { createRegistryLink, DEBOUNCE_MS, type NodeReport } from './registry.ts'

const ETAG = '"1"'
const DOWN: HttpResult = { kind: 'failed', reason: 'refused' }
const answer = (status: number, value: unknown = {}, etag = ''): HttpResult => ({
  ...{ kind: 'answer', status, etag, body: JSON.stringify(value) },
})

function createWorld(addresses: readonly string[] = ['http://r1'], byte = 127) {
  const clock = turnableClock(1_000_000)
  const timers = new Set<{ dueMs: number; run: () => void }>()
  const lines: string[] = []
  const requests: { base: string; request: HttpRequest; atMs: number }[] = []
  const note = (level: string) => (fields: object, text: string) =>
    void lines.push(`${level}: ${text} ${JSON.stringify(fields)}`)
  const after = (delayMs: number, run: () => void) => {
    const timer = { dueMs: clock.monotonicMs() + delayMs, run }
    timers.add(timer)
    return () => void timers.delete(timer)
  }
  const world = {
    answers: (() => DOWN) as (request: HttpRequest, base: string) => HttpResult,
    report: {
      ...{ health: 'active', role: 'leader', term: 3, leader: 'n1', mayPublish: true },
      segments: () => [{ name: 'paris', properties: 2 }],
    } as NodeReport,
  }
  const link = createRegistryLink(
    {
      clock,
      schedule: { after },
      random: { bytes: (count) => new Uint8Array(count).fill(byte) },
      log: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
      request(base, request, done) {
        requests.push({ base, request, atMs: clock.monotonicMs() })
        return after(0, () => done(world.answers(request, base)))
      },
    },
    {
      ...{ addresses, node: 'n 1', shard: 's/1', zone: 'z1', instance: 'i1', version: '0.1.0', apiUrl: 'http://x:1' },
      ...{ startedAt: '2026-11-20T08:00:00.000Z', heartbeatMs: 10_000, report: () => world.report },
    },
  )
  const advance = (ms: number) => {
    const endMs = clock.monotonicMs() + ms
    for (;;) {
      const due = [...timers].filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)[0]
      if (!due) break
      timers.delete(due)
      clock.advance(Math.max(0, due.dueMs - clock.monotonicMs()))
      due.run()
    }
    clock.advance(endMs - clock.monotonicMs())
  }
  const sent = () => requests.map(({ request }) => `${request.method} ${request.path}`)
  const bodyOf = (n: number) => JSON.parse(requests[n]?.request.body ?? 'null') as { readonly [name: string]: unknown }
  return { world, link, lines, requests, advance, sent, bodyOf, clock, timers }
}

const REGISTERED = { epoch: 'aa', heartbeat_timeout_secs: 60 }
const SEGMENTS = '/shards/s%2F1/segments'

/** Accepts heartbeats; the test sets the reply to segments. */
const registry =
  (get: HttpResult, post: HttpResult = answer(200, { conflicts: [] }, ETAG)) =>
  ({ path, method }: HttpRequest): HttpResult =>
    path === '/register' ? answer(200, REGISTERED) : method === 'GET' ? get : post

test('a heartbeat describes the node, and leaves out what is unknown', () => {
  const { world, link, bodyOf, advance } = createWorld()
  world.answers = registry(answer(404))
  link.start()
  const known = {
    kind: 'node',
    id: 'n 1',
    zone: 'z1',
    shard: 's/1',
    instance: 'i1',
    version: '0.1.0',
    health: 'active',
  }
  const more = { term: 3, api_url: 'http://x:1', started_at: '2026-11-20T08:00:00.000Z' }
  expect(bodyOf(0)).toEqual({ ...known, ...more, role: 'leader', leader_id: 'n1', segment_counts: { paris: 2 } })
  world.report = { ...world.report, role: undefined, leader: undefined, mayPublish: false }
  advance(10_000)
  expect(bodyOf(1)).toEqual({ ...known, ...more })
})

test('a leader reads its list and publishes it; the next checks name the version that they know', () => {
  const { world, link, requests, advance, sent, bodyOf, lines } = createWorld()
  world.answers = registry(answer(404))
  link.start()
  advance(1)
  expect(sent()).toEqual(['POST /register', `GET ${SEGMENTS}`, `POST ${SEGMENTS}`])
  expect(bodyOf(2)).toMatchObject({ zone: 'z1', segments: ['paris'], node_id: 'n 1', term: 3 })
  expect(link.status()).toMatchObject({
    ...{ isReachable: true, fault: '', refusal: '', published: { segments: 1, conflicts: 0 } },
    pushes: { accepted: 1, conflict: 0, refused: 0, failed: 0 },
  })
  world.answers = registry(answer(304))
  advance(10_000)
  expect(requests.at(-1)?.request.headers).toEqual({ 'If-None-Match': ETAG })
  world.report = { ...world.report, segments: () => [{ name: 'berlin', properties: 1 }] }
  link.segmentsChanged()
  advance(DEBOUNCE_MS - 1)
  const before = requests.length
  advance(1)
  expect([requests.length - before, requests.at(-1)?.request.headers]).toEqual([1, undefined])
  expect(lines.filter((line) => line.includes('segments published'))).toHaveLength(1)
})

test.each<[string, HttpResult, boolean]>([
  ['the same list', answer(200, { version: 1, zone: 'z1', segments: ['paris'] }, ETAG), false],
  ['the list of another zone', answer(200, { version: 1, zone: 'z2', segments: ['paris'] }, ETAG), true],
  ['another name', answer(200, { version: 1, zone: 'z1', segments: ['rome'] }, ETAG), true],
  ['more names', answer(200, { version: 1, zone: 'z1', segments: ['paris', 'rome'] }, ETAG), true],
  ['no names', answer(200, { version: 1, zone: 'z1', segments: [] }, ETAG), true],
])('a registry that has %s', (_, get, isPushed) => {
  const { world, link, sent, advance } = createWorld()
  world.answers = registry(get)
  link.start()
  advance(1)
  expect(sent().includes(`POST ${SEGMENTS}`)).toBe(isPushed)
  expect(link.status().published).toEqual({ segments: 1, conflicts: 0 })
})

test.each<[string, HttpResult, string]>([
  ['a stated reason', answer(400, { error: 'too long' }), 'too long (400)'],
  ['no reason', answer(400), 'it gave no reason (400)'],
  ['no token', answer(401, { error: 'no' }), 'no: set --registry-token-file to a file with a token of role component'],
])('a push that is refused with %s is logged once and reported until it is accepted', (_, refusal, reason) => {
  const { world, link, lines, advance } = createWorld()
  world.answers = registry(answer(404), refusal)
  link.start()
  advance(20_001)
  const status = link.status()
  expect([status.refusal, status.pushes?.['refused'], status.published]).toEqual([reason, 3, undefined])
  expect(lines.filter((line) => line.startsWith('error: the registry refused the segments'))).toHaveLength(1)
  world.answers = registry(answer(404))
  advance(10_000)
  expect([link.status().refusal, lines.filter((line) => line.includes('accepted again'))]).toEqual([
    '',
    ['info: segments accepted again {}'],
  ])
})

test('a refused heartbeat is logged once, and again when the node is registered', () => {
  const { world, link, lines, advance } = createWorld()
  world.answers = () => answer(403, { error: 'not yours' })
  link.start()
  advance(20_001)
  const refused = 'the registry refuses to register this node, routers cannot find it'
  expect(lines).toEqual([`error: ${refused} {"reason":"not yours (403)"}`])
  expect(link.status().heartbeatAgeMs).toBeUndefined()
  world.answers = registry(answer(304))
  advance(10_000)
  expect(lines.slice(1)).toEqual(['info: registered again {}', 'info: registered {"registry":"http://r1"}'])
  advance(3_000)
  expect(link.status().heartbeatAgeMs).toBe(3_001)
})

test.each([
  [0, 80, 4_000],
  [255, 120, 6_000],
])('pauses after failures double from 100 ms to 5 s, with a random fifth more or less (%i)', (byte, first, last) => {
  const { link, requests, advance } = createWorld(['http://r1'], byte)
  link.start()
  advance(60_000)
  const gaps = requests.slice(1).map(({ atMs }, n) => atMs - (requests[n]?.atMs ?? 0))
  expect([gaps.slice(0, 3), gaps.at(-1)]).toEqual([[first, first * 2, first * 4], last])
})

test('each failure moves on to the next registry, and all of them failing is logged once', () => {
  const { world, link, lines, advance, requests } = createWorld(['http://r1', 'http://r2'])
  link.start()
  advance(0)
  expect(link.status()).toMatchObject({ address: 'http://r2', isReachable: true, fault: 'http://r1: refused' })
  advance(60_000)
  expect(link.status().isReachable).toBe(false)
  expect(requests.slice(0, 3).map(({ base }) => base)).toEqual(['http://r1', 'http://r2', 'http://r1'])
  expect(lines.map((line) => line.split(' {')[0])).toEqual([
    'info: trying the next registry',
    'warn: registry unreachable, continuing without it',
  ])
  world.answers = registry(answer(304))
  advance(20_000)
  expect(link.status()).toMatchObject({ isReachable: true, fault: '' })
  expect(lines[2]).toMatch(/^info: registry reachable again .*"seconds":\d\d/)
})

test('an answer of 500 and more is a failure, one below is not', () => {
  const faults = [499, 500, 503].map((status) => {
    const { world, link, advance } = createWorld()
    world.answers = () => answer(status)
    link.start()
    advance(1)
    return link.status().fault
  })
  expect(faults).toEqual(['', 'http://r1: it returned 500', 'http://r1: it returned 503'])
})

test('a node that does not lead publishes nothing, and forgets what it published', () => {
  const { world, link, advance, sent } = createWorld()
  world.answers = registry(answer(404))
  link.roleChanged()
  expect(sent()).toEqual([])
  link.start()
  advance(1)
  world.report = { ...world.report, role: 'follower', mayPublish: false }
  link.roleChanged()
  expect(link.status().published).toBeUndefined()
  const before = sent().length
  link.segmentsChanged()
  advance(10_000)
  expect(sent().slice(before)).toEqual(['POST /register'])
})

test('a registered node that stops deregisters once; its timers end', () => {
  const { world, link, advance, sent, timers } = createWorld()
  world.answers = registry(answer(304))
  link.watchCodecs(createCodecList(['wifi']))
  link.start()
  advance(1)
  let ended = 0
  for (let n = 0; n < 2; n++) link.stop(() => void ended++)
  advance(100_000)
  expect([ended, sent().filter((each) => each.startsWith('DELETE')), timers.size]).toEqual([
    2,
    ['DELETE /register/node/n%201'],
    0,
  ])
})
