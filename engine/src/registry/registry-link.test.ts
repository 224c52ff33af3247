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

const OURS = createCodecList(['wifi', 'breakfast'])
const codecsOf = (...names: string[]) => answer(200, { rate_features: names })
const LINE_OF_WAIT = 'warn: waiting for the registry: the node cannot start without its codec list'

test('the codec list is requested with a limit of 2 s, and comes from the registry', () => {
  const { world, link, advance, requests, lines } = createWorld()
  const taken: unknown[] = []
  world.answers = () => codecsOf('wifi', 'breakfast')
  link.takeCodecs(undefined, ({ names }, from) => taken.push(names, from))
  advance(100_000)
  expect(taken).toEqual([['wifi', 'breakfast'], 'registry'])
  expect(requests.map(({ request }) => request)).toEqual([{ method: 'GET', path: '/codecs', timeoutMs: 2_000 }])
  expect(lines).toEqual([])
})

test.each([
  [['http://r1'], 3],
  [['http://r1', 'http://r2'], 6],
])('with the registries %j a start takes the stored list after %i failures', (addresses, count) => {
  const { link, advance, requests, lines } = createWorld(addresses)
  const taken: unknown[] = []
  link.takeCodecs(OURS, (codecs, from) => taken.push(codecs, from, requests.length))
  advance(100_000)
  expect([taken, requests.length]).toEqual([[OURS, 'stored', count], count])
  expect(lines.at(-1)).toBe('warn: no codec list from the registry, starting with the stored one {"reason":"refused"}')
})

test('a start without a stored list logs the first failure, and then each 30 s how long it has waited', () => {
  const { world, link, advance, lines, requests } = createWorld()
  const taken: unknown[] = []
  advance(40_000)
  link.takeCodecs(undefined, (codecs) => taken.push(codecs.names))
  advance(102_000)
  const waits = lines.filter((line) => line.startsWith(LINE_OF_WAIT))
  const seconds = waits.map((line) => Number(/"seconds":(\d+)/.exec(line)?.[1]))
  expect(seconds).toEqual([0, 31, 66, 101])
  const gaps = requests.slice(1).map(({ atMs }, n) => atMs - (requests[n]?.atMs ?? 0))
  expect(gaps.slice(0, 7)).toEqual([100, 200, 400, 799, 1_599, 3_197, 4_996])
  world.answers = () => codecsOf('wifi')
  advance(6_000)
  expect(taken).toEqual([['wifi']])
})

test.each<[HttpResult, string]>([
  [answer(404, { error: 'no such path' }), 'no such path (404)'],
  [answer(201, { rate_features: ['wifi'] }), 'it gave no reason (201)'],
  [answer(503), 'it returned 503'],
  [answer(200, { rate_features: 1 }), 'the response to /codecs is not a codec list'],
  [{ kind: 'answer', status: 200, etag: '', body: '{' }, 'the response to /codecs is not a codec list'],
])('a start does not take the codec list of %j', (reply, reason) => {
  const { world, link, advance, lines } = createWorld()
  const taken: unknown[] = []
  world.answers = () => reply
  link.takeCodecs(undefined, (codecs) => taken.push(codecs))
  advance(10)
  expect(taken).toEqual([])
  expect(lines.filter((line) => line.startsWith(LINE_OF_WAIT))).toEqual([
    `${LINE_OF_WAIT} ${JSON.stringify({ reason, seconds: 0 })}`,
  ])
})

test('a node compares its codec list each minute, and warns of the same difference once an hour', () => {
  const { world, link, advance, sent, lines } = createWorld()
  const warnings = () => lines.filter((line) => line.startsWith('warn: the registry has another codec list'))
  world.answers = () => codecsOf('wifi', 'breakfast')
  link.watchCodecs(OURS)
  advance(59_999)
  expect(sent()).toEqual([])
  advance(1)
  expect(sent()).toEqual(['GET /codecs'])
  expect(link.status().codecMismatch).toBe('')

  world.answers = () => codecsOf('breakfast', 'wifi')
  advance(60_000)
  expect(link.status().codecMismatch).toBe('the registry has [breakfast, wifi], the node [wifi, breakfast]')
  expect(warnings()).toHaveLength(1)
  expect(warnings()[0]).toContain('{"registry":["breakfast","wifi"],"node":["wifi","breakfast"]}')
  advance(3_540_000)
  expect(warnings()).toHaveLength(1)
  advance(60_000)
  expect(warnings()).toHaveLength(2)

  world.answers = () => answer(404)
  advance(60_000)
  expect(link.status().codecMismatch).not.toBe('')
  world.answers = () => codecsOf('wifi', 'breakfast')
  advance(120_000)
  expect(link.status().codecMismatch).toBe('')
  expect(lines.filter((line) => line === 'info: codec list of the registry matches again {}')).toHaveLength(1)

  world.answers = () => codecsOf('sauna')
  advance(60_000)
  expect(warnings()).toHaveLength(3)
})

test('a heartbeat with the hash of another list compares the lists at once, and one with the same hash does not', () => {
  const { world, link, advance, sent } = createWorld()
  let theirs = OURS
  world.answers = ({ path }) =>
    path === '/codecs'
      ? codecsOf(...theirs.names)
      : path === '/register'
        ? answer(200, { ...REGISTERED, global_version: 1, ordered_hash: theirs.orderedHash })
        : answer(304)
  const compared = () => sent().filter((each) => each === 'GET /codecs').length
  link.watchCodecs(OURS)
  link.start()
  advance(10_001)
  expect(compared()).toBe(0)
  theirs = createCodecList(['sauna'])
  advance(10_000)
  expect(compared()).toBe(1)
  expect(link.status().codecMismatch).toBe('the registry has [sauna], the node [wifi, breakfast]')
  advance(10_000)
  expect(compared()).toBe(1)
  theirs = OURS
  advance(10_000)
  expect([compared(), link.status().codecMismatch]).toEqual([2, ''])
})

test('requests have limits: 2 s, 30 s for lists, 1 s at the end', () => {
  const { world, link, advance, requests } = createWorld()
  world.answers = registry(answer(404))
  link.start()
  advance(1)
  link.stop(() => undefined)
  const limits = requests.map(({ request }) => [request.method, request.path.slice(0, 9), request.timeoutMs])
  expect(limits).toEqual([
    ['POST', '/register', 2_000],
    ['GET', SEGMENTS.slice(0, 9), 30_000],
    ['POST', SEGMENTS.slice(0, 9), 30_000],
    ['DELETE', '/register', 1_000],
  ])
})

test('a heartbeat that failed is repeated after its pause, but no later than the next one is due', () => {
  const { world, link, advance, requests } = createWorld(['http://r1'], 255)
  world.answers = ({ path }) => (path === '/register' ? DOWN : answer(304))
  link.start()
  advance(60_000)
  world.answers = registry(answer(304))
  advance(20_000)
  const before = requests.length
  world.answers = () => DOWN
  advance(10_120)
  const beats = requests.slice(before).filter(({ request }) => request.path === '/register')
  expect((beats[1]?.atMs ?? 0) - (beats[0]?.atMs ?? 0)).toBe(120)
})

test.each([
  [1_000, true],
  [1_001, false],
])('a heartbeat has the counts of %i segments: %s', (count, has) => {
  const { world, link, bodyOf } = createWorld()
  world.report = {
    ...world.report,
    segments: () => Array.from({ length: count }, (_, n) => ({ name: `${n}`, properties: n })),
  }
  link.start()
  expect(Object.keys((bodyOf(0)['segment_counts'] ?? {}) as object)).toHaveLength(has ? count : 0)
})

test('counts are left out of a heartbeat of more than 21,845 characters', () => {
  const lengthOf = (name: string) => {
    const { world, link, requests } = createWorld()
    world.report = { ...world.report, segments: () => [{ name, properties: 1 }] }
    link.start()
    return requests[0]?.request.body?.length ?? 0
  }
  const other = lengthOf('x') - 1

  expect(lengthOf('x'.repeat(21_845 - other))).toBe(21_845)
  expect(lengthOf('x'.repeat(21_846 - other))).toBeLessThan(1_000)
})

test('a heartbeat without counts or with a body that is not an answer of a registry still registers', () => {
  const { world, link, advance, bodyOf } = createWorld()
  world.report = { ...world.report, segments: () => [] }
  world.answers = ({ path }) => (path === '/register' ? answer(200, 'hello') : answer(304))
  link.start()
  advance(1)
  expect(Object.keys(bodyOf(0))).not.toContain('segment_counts')
  expect(link.status().heartbeatAgeMs).toBe(1)
})

test.each([
  [30, 0],
  [29, 1],
])('heartbeats every 10 s and a timeout of %i s: %i warnings', (seconds, count) => {
  const { world, link, advance, lines } = createWorld()
  let timeout = seconds
  world.answers = ({ path }) =>
    path === '/register'
      ? answer(200, { epoch: 'aa', global_version: 1, heartbeat_timeout_secs: timeout })
      : answer(304)
  const warnings = () => lines.filter((line) => line.includes('more than a third of the heartbeat timeout'))
  link.start()
  advance(30_001)
  expect(warnings()).toHaveLength(count)
  if (count > 0) expect(warnings()[0]).toContain('{"heartbeatMs":10000,"timeoutSeconds":29}')
  timeout = 20
  advance(10_000)
  expect(warnings()).toHaveLength(count + 1)
})

test('a registry of another epoch gets the list again, with both epochs in the log', () => {
  const { world, link, advance, lines, requests } = createWorld()
  let epoch = 'aa'
  world.answers = ({ path, method }) =>
    path === '/register'
      ? answer(200, { epoch, global_version: 1, heartbeat_timeout_secs: 60 })
      : method === 'GET'
        ? answer(404)
        : answer(200, { accepted: 1, conflicts: [] }, ETAG)
  link.start()
  advance(10_001)
  expect(lines.filter((line) => line.startsWith('warn'))).toEqual([])
  expect(requests.at(-2)?.request.headers).toEqual({ 'If-None-Match': ETAG })
  epoch = 'bb'
  advance(10_000)
  expect(lines.filter((line) => line.startsWith('warn'))).toEqual([
    'warn: the registry was restarted or replaced, publishing everything again {"before":"aa","now":"bb"}',
  ])
  expect(requests.at(-2)?.request.headers).toBeUndefined()
})

test('a list is pushed again and logged again only when it, or what others own of it, is different', () => {
  const { world, link, advance, lines } = createWorld()
  let owned = 0
  world.report = {
    ...world.report,
    segments: () => Array.from({ length: 12 }, (_, n) => ({ name: `s${n}`, properties: 1 })),
  }
  const conflicts = () =>
    Array.from({ length: owned }, (_, n) => ({ segment: `s${n}`, owner_shard: `o${n}`, owner_zone: 'z' }))
  world.answers = ({ path, method }) =>
    path === '/register'
      ? answer(200, REGISTERED)
      : method === 'GET'
        ? answer(404)
        : answer(200, { accepted: 12 - owned, conflicts: conflicts() }, ETAG)
  const published = () => lines.filter((line) => line === 'info: segments published {"segments":12,"term":3}').length
  const warned = () => lines.filter((line) => line.startsWith('warn: other shards own segments'))
  link.start()
  advance(10_001)
  expect([published(), warned().length, link.status().pushes]).toEqual([
    1,
    0,
    { accepted: 2, conflict: 0, refused: 0, failed: 0 },
  ])
  owned = 11
  advance(20_000)
  expect([published(), warned().length, link.status().pushes?.['conflict']]).toEqual([2, 1, 2])
  expect(warned()[0]).toContain('"s9 of o9"]')
  expect(link.status().published).toEqual({ segments: 12, conflicts: 11 })
})

test('a refusal for eleven conflicts names ten of them', () => {
  const { world, link, advance } = createWorld()
  const conflicts = Array.from({ length: 11 }, (_, n) => ({ segment: `s${n}`, owner_shard: `o${n}`, owner_zone: 'z' }))
  world.answers = registry(answer(404), answer(409, { accepted: 0, conflicts }))
  link.start()
  advance(1)
  const names = Array.from({ length: 10 }, (_, n) => `s${n} of o${n}`)
  expect(link.status().refusal).toBe(`other shards own ${names.join(', ')}`)
})

test.each<[HttpResult, string]>([
  [answer(200, { version: 1 }), 'its response is not a list of segments'],
  [answer(403, { error: 'wrong shard' }), 'wrong shard (403)'],
])('a read of the segments that returns %j waits for the next heartbeat', (get, reason) => {
  const { world, link, advance, sent, lines } = createWorld()
  world.answers = registry(get)
  link.start()
  advance(10_001)
  expect(link.status().refusal).toBe(reason)
  expect(sent().filter((each) => each === `GET ${SEGMENTS}`)).toHaveLength(2)
  expect(sent()).not.toContain(`POST ${SEGMENTS}`)
  expect(lines.filter((line) => line.startsWith('error'))).toHaveLength(1)
})

test('a push that fails counts as failed, and the list is read again after growing pauses', () => {
  const { world, link, advance, requests } = createWorld(['http://r1'], 0)
  world.answers = ({ path, method }) =>
    path === '/register' ? answer(200, REGISTERED) : method === 'GET' ? answer(404) : answer(500)
  link.start()
  advance(600)
  const reads = requests.filter(({ request }) => request.method === 'GET').map(({ atMs }) => atMs)
  expect(reads).toEqual([0, 80, 240, 560])
  expect(link.status().pushes?.['failed']).toBe(4)
})

test('changes during a read are compared after it, once, and further changes do not delay a comparison', () => {
  const { world, link, advance, requests } = createWorld()
  world.answers = registry(answer(304))
  link.start()
  advance(1)
  const reads = () => requests.filter(({ request }) => request.method === 'GET').map(({ atMs }) => atMs - 1)
  link.segmentsChanged()
  advance(150)
  link.segmentsChanged()
  advance(49)
  expect(reads()).toEqual([-1])
  world.answers = (request) => {
    if (request.method === 'GET' && reads().length === 2) link.segmentsChanged()
    return registry(answer(304))(request)
  }
  advance(1_000)
  expect(reads()).toEqual([-1, 200, 400])
})

test('a node that takes the lead compares its list at once', () => {
  const { world, link, advance, sent } = createWorld()
  world.answers = registry(answer(304))
  world.report = { ...world.report, role: 'follower', mayPublish: false }
  link.start()
  advance(1)
  expect(sent()).toEqual(['POST /register'])
  world.report = { ...world.report, role: 'leader', mayPublish: true }
  link.roleChanged()
  advance(0)
  expect(sent()).toEqual(['POST /register', `GET ${SEGMENTS}`])
})

test('the status before the first request is that of a reachable registry without heartbeats', () => {
  expect(createWorld(['http://r1', 'http://r2']).link.status()).toEqual({
    ...{ address: 'http://r1', isReachable: true, fault: '', heartbeatAgeMs: undefined, codecMismatch: '' },
    ...{ published: undefined, refusal: '', pushes: { accepted: 0, conflict: 0, refused: 0, failed: 0 } },
  })
})

test('a registry that returns is logged with the seconds it was away, and its codec list is compared at once', () => {
  const { world, link, advance, lines, sent } = createWorld()
  world.answers = ({ path }) => (path === '/codecs' ? codecsOf('wifi', 'breakfast') : answer(200, REGISTERED))
  link.watchCodecs(OURS)
  link.start()
  advance(10)
  world.answers = () => DOWN
  advance(30_000)
  world.answers = ({ path }) => (path === '/codecs' ? codecsOf('wifi', 'breakfast') : answer(200, REGISTERED))
  advance(5_100)
  const line = lines.find((each) => each.includes('registry reachable again')) ?? ''
  // It failed from 10 s on.
  expect(Number(/"seconds":(\d+)/.exec(line)?.[1])).toBeGreaterThanOrEqual(20)
  expect(Number(/"seconds":(\d+)/.exec(line)?.[1])).toBeLessThanOrEqual(25)
  expect(sent().filter((each) => each === 'GET /codecs')).toHaveLength(1)
})

test('a node that never registered stops without a request', () => {
  const { link, advance, sent } = createWorld()
  link.start()
  advance(1_000)
  const before = sent().length
  let ended = 0
  link.stop(() => void ended++)
  advance(100_000)
  expect([ended, sent().length]).toEqual([1, before])
})
