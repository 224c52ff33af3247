import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCodecList, turnableClock } from '@vacancy/shared'
import { segmentsChecksum } from '@vacancy/shared/contract'
import {
  type HttpCaller,
  type HttpRequest,
  type HttpResult,
  openHttpCaller,
  parseRegistryAddresses,
} from '@vacancy/shared/node'
import { makeCertificate } from '@vacancy/shared/testing/certificates'
import { eventually } from '@vacancy/testkit/until'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { CODECS_CHECK_MS, createRegistryLink, DEBOUNCE_MS, type NodeReport } from './link.ts'

const FIRST_CERTIFICATE = makeCertificate({ subject: 'first' })
const SECOND_CERTIFICATE = makeCertificate({ subject: 'second' })

const PROGRAM = join(import.meta.dirname, '../../../bin/vacancy.mjs')
const CODECS = createCodecList(['breakfast', 'refundable'])
const HEARTBEAT_MS = 10_000

const answer = (status: number, value?: unknown, etag = ''): HttpResult => ({
  kind: 'answer',
  status,
  etag,
  body: value === undefined ? '' : JSON.stringify(value),
})
const DOWN: HttpResult = { kind: 'failed', reason: 'refused' }

/** A registry that records requests and answers them by hand or from a table. */
function createWorld(addresses: readonly string[] = ['http://r1']) {
  const clock = turnableClock(1_000_000)
  const timers = new Set<{ dueMs: number; run: () => void }>()
  const lines: { readonly level: string; readonly text: string; readonly fields: object }[] = []
  const requests: {
    readonly base: string
    readonly request: HttpRequest
    readonly body: Record<string, unknown>
  }[] = []
  const cancelled: string[] = []
  const note = (level: string) => (fields: object, text: string) => {
    lines.push({ level, text, fields })
  }
  const world = {
    lines,
    requests,
    cancelled,
    randomByte: 127,
    answers: (() => DOWN) as (request: HttpRequest, base: string) => HttpResult | undefined,
    report: {
      health: 'active_leader',
      role: 'leader',
      term: 3,
      leader: 'n1',
      mayPublish: true,
      segments: () => [
        { name: 'paris', properties: 2 },
        { name: 'berlin', properties: 1 },
      ],
    } as NodeReport,
    /** Advances time, timer by timer. */
    advance(ms: number) {
      const endMs = clock.monotonicMs() + ms
      for (;;) {
        const due = [...timers].filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)[0]
        if (!due) break
        timers.delete(due)
        clock.advance(Math.max(0, due.dueMs - clock.monotonicMs()))
        due.run()
      }
      clock.advance(endMs - clock.monotonicMs())
    },
    of: (path: string, method = 'GET') =>
      requests.filter(({ request }) => request.path === path && request.method === method),
    logged: (words: string) => lines.filter(({ text }) => text.includes(words)),
    timers,
  }
  const after = (delayMs: number, run: () => void) => {
    const timer = { dueMs: clock.monotonicMs() + delayMs, run }
    timers.add(timer)
    return () => timers.delete(timer)
  }
  const link = createRegistryLink(
    {
      clock,
      schedule: { after },
      random: { bytes: (count) => new Uint8Array(count).fill(world.randomByte) },
      log: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
      request(base, request, done) {
        requests.push({ base, request, body: request.body === undefined ? {} : JSON.parse(request.body) })
        return (
          after(1, () => {
            const result = world.answers(request, base)
            if (result) done(result)
          }) && (() => cancelled.push(request.path))
        )
      },
    },
    {
      addresses,
      node: 'n1',
      shard: 's1',
      zone: 'z1',
      instance: 'i1',
      version: '0.1.0',
      startedAt: '2026-11-20T08:00:00.000Z',
      apiUrl: 'http://127.0.0.1:8080',
      heartbeatMs: HEARTBEAT_MS,
      report: () => world.report,
    },
  )
  return { ...world, world, link, clock }
}

type World = ReturnType<typeof createWorld>

/** A minimal registry: keeps what is pushed, and gives each version an etag. */
function scriptedRegistry({ world }: World) {
  const registry = {
    epoch: 'aaaa',
    codecs: ['breakfast', 'refundable'] as unknown[],
    list: undefined as string[] | undefined,
    version: 1,
    pushes: 0,
    refuses: undefined as HttpResult | undefined,
    conflicts: [] as string[],
    isUp: true,
    timeoutSeconds: 60,
    /** Existing registries do not send it with a heartbeat. */
    orderedHash: undefined as string | undefined,
  }
  world.answers = ({ method, path, headers, body }) => {
    if (!registry.isUp) return DOWN
    if (path === '/codecs') return answer(200, { rate_features: registry.codecs })
    if (path === '/register')
      return answer(200, {
        epoch: registry.epoch,
        global_version: 1,
        heartbeat_timeout_secs: registry.timeoutSeconds,
        ordered_hash: registry.orderedHash,
      })
    const etag = `"${registry.epoch}.${registry.version}"`
    if (method === 'POST') {
      if (registry.refuses) return registry.refuses
      registry.pushes += 1
      const { segments } = JSON.parse(body as string) as { segments: string[] }
      const kept = segments.filter((name) => !registry.conflicts.includes(name))
      if (JSON.stringify(kept) !== JSON.stringify(registry.list)) registry.version += 1
      registry.list = kept
      const conflicts = registry.conflicts.map((segment) => ({ segment, owner_shard: 's2', owner_zone: 'z2' }))
      const now = `"${registry.epoch}.${registry.version}"`
      return answer(200, conflicts.length > 0 ? { accepted: kept.length, conflicts } : undefined, now)
    }
    if (registry.list === undefined) return answer(404, { error: 'unknown shard' })
    if (headers?.['If-None-Match'] === etag) return answer(304, undefined, etag)
    return answer(200, { version: registry.version, zone: 'z1', segments: registry.list }, etag)
  }
  return registry
}

const SEGMENTS = '/shards/s1/segments'

test('a start waits for the codec list, logs that, and continues when the registry comes up', () => {
  const world = createWorld()
  const done = vi.fn()

  world.link.takeCodecs(undefined, done)
  world.advance(45_000)
  expect(done).not.toHaveBeenCalled()
  expect(world.logged('waiting for the registry').length).toBe(2)
  expect(world.logged('registry unreachable').length).toBe(1)
  // Pauses from 100 ms, doubling to 5 s: neither a storm nor a long sleep.
  expect(world.of('/codecs').length).toBeGreaterThan(10)
  expect(world.of('/codecs').length).toBeLessThan(20)

  scriptedRegistry(world)
  world.advance(6_000)
  expect(done).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ names: CODECS.names }), 'registry')
  expect(world.logged('reachable again').length).toBe(1)
  const tries = world.of('/codecs').length
  world.advance(60_000)
  expect(world.of('/codecs').length).toBe(tries)
})

test('a node with data starts with its stored codec list', () => {
  const world = createWorld(['http://r1', 'http://r2'])
  const done = vi.fn()

  world.link.takeCodecs(CODECS, done)
  world.advance(10_000)

  expect(done).toHaveBeenCalledExactlyOnceWith(CODECS, 'stored')
  expect(world.requests.map(({ base }) => base)).toEqual([
    'http://r1',
    'http://r2',
    'http://r1',
    'http://r2',
    'http://r1',
    'http://r2',
  ])
  expect(world.logged('starting with the stored one').length).toBe(1)
})

test.each([
  [{ rate_features: [] }, 'must have 1 to 24 entries'],
  [{ rate_features: ['a', 'A'] }, 'repeats a'],
  [{ rate_features: ['a', 7] }, 'must be text'],
  [{ rate_features: 'a' }, 'is not a codec list'],
  ['<html>', 'is not a codec list'],
])('a response of %j is refused as a codec list', (body, reason) => {
  const world = createWorld()
  const done = vi.fn()
  world.world.answers = () => answer(200, body)

  world.link.takeCodecs(undefined, done)
  world.advance(1_000)

  expect(done).not.toHaveBeenCalled()
  expect(world.logged('waiting for the registry')[0]?.fields).toMatchObject({ reason: expect.stringContaining(reason) })
})

test('another codec list while running is reported, logged again each hour, and has no effect', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  world.link.watchCodecs(CODECS)
  world.advance(CODECS_CHECK_MS + 10)
  expect(world.link.status().codecMismatch).toBe('')

  // The same names in another order: the hash of existing registries ignores the order.
  registry.codecs = ['refundable', 'breakfast']
  world.advance(CODECS_CHECK_MS)
  expect(world.link.status().codecMismatch).toBe(
    'the registry has [refundable, breakfast], the node [breakfast, refundable]',
  )
  world.advance(3_500_000)
  expect(world.logged('has another codec list').length).toBe(1)
  world.advance(200_000)
  expect(world.logged('has another codec list').length).toBe(2)

  registry.isUp = false
  world.advance(CODECS_CHECK_MS * 2)
  expect(world.link.status().codecMismatch).not.toBe('')
  registry.isUp = true
  registry.codecs = ['breakfast', 'refundable']
  world.advance(CODECS_CHECK_MS)
  expect(world.link.status().codecMismatch).toBe('')
})

test('a registry restarted with another list between two heartbeats is noticed at the next one', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  registry.orderedHash = CODECS.orderedHash
  world.link.watchCodecs(CODECS)
  world.link.start()
  world.advance(5_000)
  expect(world.of('/codecs', 'GET')).toEqual([])

  registry.codecs = ['refundable', 'breakfast']
  registry.orderedHash = createCodecList(['refundable', 'breakfast']).orderedHash
  world.advance(10_000)
  expect(world.link.status().codecMismatch).toContain('[refundable, breakfast]')
  world.advance(20_000)
  expect(world.of('/codecs', 'GET').length).toBe(1)

  registry.codecs = ['breakfast', 'refundable']
  registry.orderedHash = CODECS.orderedHash
  world.advance(10_000)
  expect(world.link.status().codecMismatch).toBe('')
})

test('a node registers at once and then with every heartbeat', () => {
  const world = createWorld()
  scriptedRegistry(world)

  world.link.start()
  world.advance(35_000)

  expect(world.of('/register', 'POST').length).toBe(4)
  expect(world.of('/register', 'POST')[0]?.body).toEqual({
    kind: 'node',
    id: 'n1',
    zone: 'z1',
    shard: 's1',
    instance: 'i1',
    version: '0.1.0',
    started_at: '2026-11-20T08:00:00.000Z',
    health: 'active_leader',
    term: 3,
    api_url: 'http://127.0.0.1:8080',
    role: 'leader',
    leader_id: 'n1',
    segment_counts: { paris: 2, berlin: 1 },
  })
  expect(world.link.status()).toMatchObject({ isReachable: true, heartbeatAgeMs: expect.any(Number), fault: '' })
})

test('an unreachable registry is retried repeatedly and logged once', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  world.link.start()
  world.advance(1_000)
  registry.isUp = false

  world.advance(120_000)
  expect(world.logged('registry unreachable').length).toBe(1)
  expect(world.link.status()).toMatchObject({ isReachable: false, fault: 'http://r1: refused' })

  registry.isUp = true
  world.advance(6_000)
  expect(world.logged('reachable again').length).toBe(1)
  expect(world.link.status().isReachable).toBe(true)
})

test.each([
  [0, 0.8],
  [255, 1.2],
])('pauses between failed requests double from 100 ms to 5 s, a fifth less or more (%i)', (byte, share) => {
  const world = createWorld(['http://r1', 'http://r2'])
  const sentMs: number[] = []
  world.world.randomByte = byte
  world.world.answers = () => {
    sentMs.push(world.clock.monotonicMs())
    return DOWN
  }
  world.link.start()
  world.advance(60_000)

  for (const [i, pauseMs] of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000].entries()) {
    const wantedMs = share * pauseMs
    expect(Math.abs((sentMs[i + 1] as number) - (sentMs[i] as number) - wantedMs)).toBeLessThan(20 + wantedMs / 100)
  }
})

test('of several registries the one that responds is kept', () => {
  const world = createWorld(['http://r1', 'http://r2', 'http://r3'])
  const registry = scriptedRegistry(world)
  const { answers } = world.world
  world.world.answers = (request, base) =>
    base === 'http://r1' ? answer(503) : base === 'http://r2' ? DOWN : answers(request, base)

  world.link.start()
  world.advance(30_000)

  const bases = world.requests.map(({ base }) => base)
  expect(bases.slice(0, 3)).toEqual(['http://r1', 'http://r2', 'http://r3'])
  expect(new Set(bases.slice(2))).toEqual(new Set(['http://r3']))
  expect(world.logged('registry unreachable').length).toBe(0)
  expect(registry.pushes).toBe(1)
})

test('a refused registration is logged with its reason and retried', () => {
  const world = createWorld()
  world.world.answers = () => answer(401, { error: 'invalid token' })
  world.link.start()
  world.advance(61_000)

  expect(world.logged('refuses to register').length).toBe(1)
  expect(world.logged('refuses to register')[0]?.fields).toMatchObject({
    reason: expect.stringContaining('--registry-token-file'),
  })
  expect(world.of('/register', 'POST').length).toBe(7)

  scriptedRegistry(world)
  world.advance(10_000)
  expect(world.logged('registered again').length).toBe(1)
})

test('a heartbeat interval too long for the registry causes a warning', () => {
  const world = createWorld()
  scriptedRegistry(world).timeoutSeconds = 20
  world.link.start()
  world.advance(60_000)

  expect(world.logged('more than a third of the heartbeat timeout').length).toBe(1)
})

test('the leader publishes its segments and then only checks them', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  world.link.start()
  world.advance(60_000)

  expect(registry.pushes).toBe(1)
  expect(registry.list).toEqual(['berlin', 'paris'])
  expect(world.of(SEGMENTS, 'POST')[0]?.body).toEqual({
    zone: 'z1',
    segments: ['berlin', 'paris'],
    node_id: 'n1',
    term: 3,
    checksum: segmentsChecksum(['berlin', 'paris']),
  })
  expect(
    world
      .of(SEGMENTS)
      .slice(1)
      .every(({ request }) => request.headers?.['If-None-Match'] === '"aaaa.2"'),
  ).toBe(true)
  expect(world.link.status()).toMatchObject({ published: { segments: 2, conflicts: 0 }, refusal: '' })
})

test('a list that the registry has already is not pushed', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  registry.list = ['berlin', 'paris']
  world.link.start()
  world.advance(30_000)

  expect(registry.pushes).toBe(0)
  expect(world.link.status().published).toEqual({ segments: 2, conflicts: 0 })
})

test('changes are published together, a moment after the first of them', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  world.link.start()
  world.advance(1_000)
  for (let i = 0; i < 5; i++) {
    world.world.report = { ...world.world.report, segments: () => [{ name: `new${i}`, properties: 1 }] }
    world.link.segmentsChanged()
    world.advance(10)
  }
  expect(registry.pushes).toBe(1)
  world.advance(DEBOUNCE_MS)

  expect(registry.pushes).toBe(2)
  expect(registry.list).toEqual(['new4'])
})

test('a change during a push is published after it', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  world.link.start()
  // The heartbeat, its response, the check, its response: now the push is running.
  world.advance(2)
  expect(world.of(SEGMENTS, 'POST').length).toBe(1)
  world.world.report = { ...world.world.report, segments: () => [{ name: 'late', properties: 1 }] }
  world.link.segmentsChanged()
  world.advance(1_000)

  expect(registry.list).toEqual(['late'])
})

test.each([
  [{ role: 'follower', mayPublish: false }],
  [{ role: 'leader', mayPublish: false }],
  [{ role: undefined, mayPublish: false }],
])('a node that is %j publishes nothing', (change) => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  world.world.report = { ...world.world.report, ...change } as NodeReport
  world.link.start()
  world.link.segmentsChanged()
  world.advance(60_000)

  expect(registry.pushes).toBe(0)
  expect(world.of(SEGMENTS).length).toBe(0)
})

test('an empty list is published by a leader that has applied its log, and by no other node', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  registry.list = ['paris']
  world.world.report = { ...world.world.report, mayPublish: false, segments: () => [] }
  world.link.start()
  world.advance(20_000)
  expect(registry.list).toEqual(['paris'])

  world.world.report = { ...world.world.report, mayPublish: true }
  world.link.roleChanged()
  world.advance(100)
  expect(registry.list).toEqual([])
})

test('losing the lead ends a push at once', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  world.world.answers = (
    (answers) => (request, base) =>
      request.path === SEGMENTS ? undefined : answers(request, base)
  )(world.world.answers) as World['world']['answers']
  world.link.start()
  world.advance(100)
  world.world.report = { ...world.world.report, role: 'follower', mayPublish: false }
  world.link.roleChanged()
  world.advance(60_000)

  expect(world.cancelled).toContain(SEGMENTS)
  expect(registry.pushes).toBe(0)
  expect(world.of(SEGMENTS).length).toBe(1)
})

test('a node that leads in another term by the time it has read does not push the old list', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  world.link.start()
  world.advance(1)
  world.world.report = { ...world.world.report, term: 4 }
  world.advance(500)
  expect(registry.pushes).toBe(0)

  world.advance(HEARTBEAT_MS)
  expect(world.of(SEGMENTS, 'POST').map(({ body }) => body['term'])).toEqual([4])
})

test('a registry that was restarted empty gets the complete list again', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  world.link.start()
  world.advance(15_000)
  registry.epoch = 'bbbb'
  registry.list = undefined
  registry.version = 1
  world.advance(HEARTBEAT_MS)

  expect(world.logged('was restarted or replaced').length).toBe(1)
  expect(registry.pushes).toBe(2)
  expect(registry.list).toEqual(['berlin', 'paris'])
})

test('a list overwritten by another node is corrected with the next heartbeat', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  world.link.start()
  world.advance(1_000)
  registry.list = ['rome']
  registry.version += 1
  world.advance(HEARTBEAT_MS)

  expect(registry.list).toEqual(['berlin', 'paris'])
})

test('segments that other shards own are logged once, and the rest is published', () => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  registry.conflicts = ['paris']
  world.link.start()
  world.advance(60_000)

  expect(registry.pushes).toBe(1)
  expect(world.link.status()).toMatchObject({ published: { segments: 2, conflicts: 1 }, pushes: { conflict: 1 } })
  expect(world.logged('other shards own segments').map(({ fields }) => fields)).toEqual([
    { conflicts: ['paris of s2'] },
  ])
})

test.each([
  [answer(409, { error: 'stale term', term: 9 }), 'seen term 9'],
  [answer(409, { error: 'zone: the nodes are in z9' }), 'the nodes are in z9 (409)'],
  [
    answer(409, { accepted: 1, conflicts: [{ segment: 'paris', owner_shard: 's2', owner_zone: 'z2' }] }),
    'other shards own paris of s2',
  ],
  [answer(403, { error: 'the token is for shard s2' }), 'the token is for shard s2 (403)'],
  [answer(413), 'it gave no reason (413)'],
])('a refused list (%j) is logged with its reason and tried again with the heartbeats', (refusal, reason) => {
  const world = createWorld()
  const registry = scriptedRegistry(world)
  registry.refuses = refusal
  world.link.start()
  world.advance(25_000)

  expect(world.of(SEGMENTS, 'POST').length).toBe(3)
  expect(world.logged('refused the segments').length).toBe(1)
  expect(world.link.status().refusal).toContain(reason)

  registry.refuses = undefined
  world.advance(HEARTBEAT_MS)
  expect(world.link.status()).toMatchObject({
    refusal: '',
    published: { segments: 2 },
    pushes: { accepted: 1, conflict: 0, refused: 3, failed: 0 },
  })
})

test('an existing registry without epoch and etag is kept up to date by comparison', () => {
  const world = createWorld()
  let list: string[] | undefined
  let pushes = 0
  world.world.answers = ({ method, path, body }) => {
    if (path === '/register') return answer(200)
    if (method === 'POST') {
      pushes += 1
      list = (JSON.parse(body as string) as { segments: string[] }).segments
      return answer(200)
    }
    return list === undefined
      ? answer(404, { error: 'unknown shard' })
      : answer(200, { version: 1, zone: 'z1', segments: list })
  }
  world.link.start()
  world.advance(60_000)

  expect(pushes).toBe(1)
  expect(world.link.status()).toMatchObject({ published: { segments: 2 }, refusal: '' })
})

test('stopping deregisters once and ends everything', () => {
  const world = createWorld()
  scriptedRegistry(world)
  world.link.watchCodecs(CODECS)
  world.link.start()
  world.advance(1_000)
  const done = vi.fn()
  world.link.stop(done)
  world.advance(120_000)

  expect(done).toHaveBeenCalledOnce()
  expect(world.requests.at(-1)?.request).toMatchObject({ method: 'DELETE', path: '/register/node/n1' })
  expect(world.timers.size).toBe(0)
})

test('stopping a node that never reached the registry sends no request', () => {
  const world = createWorld()
  const done = vi.fn()
  world.link.start()
  world.advance(10_000)
  const count = world.requests.length
  world.link.stop(done)
  world.advance(10_000)

  expect(done).toHaveBeenCalledOnce()
  expect(world.requests.length).toBe(count)
})

test.each([
  [
    ['a:8080', 'b'],
    ['http://a:8080', 'http://b'],
  ],
  [['https://r.example:8443/'], ['https://r.example:8443']],
  [['[::1]:8080'], ['http://[::1]:8080']],
])('addresses %j are %j', (written, addresses) => {
  expect(parseRegistryAddresses(written)).toEqual(addresses)
})

test.each(['', 'ftp://a', 'a:b', 'a/b', 'http://', 'a b'])('%j is not an address', (written) => {
  expect(() => parseRegistryAddresses([written])).toThrow('is not host:port')
})

// Over real sockets

let folder: string

beforeEach((context) => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-registry-'))
  // The last cleanup of a test: programs that write here have ended by then.
  context.onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

function send(http: ReturnType<typeof openHttpCaller>, base: string, request: Partial<HttpRequest> = {}) {
  return new Promise<HttpResult>((resolve) => {
    http.request(base, { method: 'GET', path: '/codecs', timeoutMs: 5_000, ...request }, resolve)
  })
}

async function serve(handler: RequestListener): Promise<string> {
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a request carries the token of its file, which is reloaded on change', async () => {
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, 'first\n')
  const seen: IncomingMessage['headers'][] = []
  const base = await serve((request, response) => {
    seen.push(request.headers)
    response.end('{}')
  })
  const http = openHttpCaller({ name: 'registry', tokenFile, log: silent, lookMs: 5 })
  onTestFinished(http.close)

  expect(await send(http, base, { method: 'POST', body: '{}' })).toMatchObject({
    kind: 'answer',
    status: 200,
    etag: '',
    body: '{}',
  })
  expect(seen[0]).toMatchObject({ authorization: 'Bearer first', 'content-type': 'application/json' })

  writeFileSync(tokenFile, 'second-token\n')
  await eventually(async () => {
    await send(http, base)
    expect(seen.at(-1)?.authorization).toBe('Bearer second-token')
  })
})

test.each([
  ['a missing response', () => {}, 50, 'no response within 50 ms'],
  ['a connection that is cut', (_: unknown, response: { destroy(): void }) => response.destroy(), 5_000, ''],
])('%s is reported once as a failure', async (_what, handler, timeoutMs, reason) => {
  const base = await serve(handler as RequestListener)
  const http = openHttpCaller({ name: 'registry', log: silent })
  onTestFinished(http.close)

  const result = await send(http, base, { timeoutMs })
  expect(result.kind === 'failed' && result.reason).toContain(reason)
})

test('a port without a listener is a failure', async () => {
  const http = openHttpCaller({ name: 'registry', log: silent })
  onTestFinished(http.close)

  expect(await send(http, 'http://127.0.0.1:1')).toMatchObject({ kind: 'failed' })
})

test('a cancelled request never calls back', async () => {
  let arrived: () => void = () => {}
  const arrival = new Promise<void>((resolve) => {
    arrived = resolve
  })
  let cut: () => void = () => {}
  const closed = new Promise<void>((resolve) => {
    cut = resolve
  })
  const base = await serve((_request, response) => {
    response.on('close', cut)
    arrived()
  })
  const http = openHttpCaller({ name: 'registry', log: silent })
  onTestFinished(http.close)
  const done = vi.fn()

  const cancel = http.request(base, { method: 'GET', path: '/', timeoutMs: 5_000 }, done)
  await arrival
  cancel()
  await closed
  expect(done).not.toHaveBeenCalled()
})

test('a registry with TLS is trusted by its authority only', async () => {
  const [caFile, otherFile] = [join(folder, 'ca.pem'), join(folder, 'other.pem')]
  writeFileSync(caFile, FIRST_CERTIFICATE.cert)
  writeFileSync(otherFile, SECOND_CERTIFICATE.cert)
  const server = createSecureServer(FIRST_CERTIFICATE, (_request, response) => {
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const base = `https://localhost:${(server.address() as AddressInfo).port}`
  const [trusting, other, none] = [caFile, otherFile, undefined].map((file) =>
    openHttpCaller({ name: 'registry', caFile: file, log: silent }),
  ) as [HttpCaller, HttpCaller, HttpCaller]
  for (const each of [trusting, other, none]) onTestFinished(each.close)

  expect(await send(trusting, base)).toMatchObject({ kind: 'answer', status: 200 })
  expect(await send(other, base)).toMatchObject({ kind: 'failed' })
  expect(await send(none, base)).toMatchObject({ kind: 'failed' })
})

test.each([
  [{ tokenFile: '/nowhere' }, 'cannot be read'],
  [{ caFile: '/nowhere' }, 'cannot be read'],
  [{ caFile: import.meta.filename }, 'holds no certificate'],
])('unusable files (%j) are reported at the start', (files, reason) => {
  expect(() => openHttpCaller({ name: 'registry', ...files, log: silent })).toThrow(reason)
})

type Program = { readonly base: string; readonly kill: () => Promise<void> }

async function startRegistryProgram(port = 0, codecs = ['breakfast', 'refundable']): Promise<Program> {
  writeFileSync(join(folder, 'codecs.yml'), `rate_features: ${JSON.stringify(codecs)}\n`)
  const args = ['registry', '--addr', '127.0.0.1', '--port', String(port), '--state-file', join(folder, 'state.json')]
  const child = spawn(process.execPath, [
    PROGRAM,
    ...args,
    '--codecs-path',
    join(folder, 'codecs.yml'),
    '--buffer-ms',
    '10',
  ])
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await closed
  })
  let output = ''
  const base = await new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk
        const found = /^serving: http (\S+)$/m.exec(output)
        if (found) resolve(`http://${found[1]}`)
      })
    child.once('close', () => reject(new Error(output)))
  })
  const kill = async () => {
    child.kill('SIGKILL')
    await closed
  }
  return { base, kill }
}

test('a node works with a real registry: not started yet, running, restarted empty, and with another list', async () => {
  const first = await startRegistryProgram()
  const port = Number(new URL(first.base).port)
  await first.kill()
  rmSync(join(folder, 'state.json'))
  const lines: string[] = []
  const note = (_fields: object, text: string) => {
    lines.push(text)
  }
  const http = openHttpCaller({ name: 'registry', log: silent })
  onTestFinished(http.close)
  let names = ['berlin', 'paris']
  const link = createRegistryLink(
    {
      clock: { wallMs: Date.now, monotonicMs: () => performance.now() },
      schedule: {
        after(delayMs, run) {
          // Every pause is shortened. The tests above cover the real ones.
          const timer = setTimeout(run, Math.min(delayMs, 100))
          return () => clearTimeout(timer)
        },
      },
      random: { bytes: (count) => crypto.getRandomValues(new Uint8Array(count)) },
      log: { debug: note, info: note, warn: note, error: note },
      request: http.request,
    },
    {
      addresses: [`http://127.0.0.1:${port}`],
      node: 'n1',
      shard: 's1',
      zone: 'z1',
      instance: 'i1',
      version: '0.1.0',
      startedAt: new Date().toISOString(),
      heartbeatMs: 1_000,
      report: () => ({
        health: 'active_leader',
        role: 'leader',
        term: 1,
        leader: 'n1',
        mayPublish: true,
        segments: () => names.map((name) => ({ name, properties: 1 })),
      }),
    },
  )
  onTestFinished(() => new Promise<void>((resolve) => link.stop(resolve)))
  const get = async (path: string) => {
    const result = await send(http, `http://127.0.0.1:${port}`, { path })
    return result.kind === 'answer' && result.status === 200 ? JSON.parse(result.body) : undefined
  }
  const taken = new Promise<readonly string[]>((resolve) =>
    link.takeCodecs(undefined, (codecs) => resolve(codecs.names)),
  )
  await eventually(() => expect(lines.some((line) => line.startsWith('waiting for the registry'))).toBe(true))

  const second = await startRegistryProgram(port)
  expect(await taken).toEqual(['breakfast', 'refundable'])
  link.watchCodecs(CODECS)
  link.start()
  await eventually(async () => expect(await get('/shards/s1/nodes')).toMatchObject({ nodes: ['n1'] }), {
    timeout: 10_000,
  })
  await eventually(async () => expect(await get(SEGMENTS)).toMatchObject({ segments: ['berlin', 'paris'] }), {
    timeout: 10_000,
  })
  names = ['berlin', 'rome']
  link.segmentsChanged()
  await eventually(async () => expect(await get('/zones/z1/segments')).toMatchObject({ segments: names }), {
    timeout: 10_000,
  })

  await second.kill()
  await eventually(() => expect(link.status().isReachable).toBe(false), { timeout: 10_000 })
  rmSync(join(folder, 'state.json'))
  rmSync(join(folder, 'state.json.bak'))
  const third = await startRegistryProgram(port, ['refundable', 'breakfast'])
  await eventually(async () => expect(await get(SEGMENTS)).toMatchObject({ segments: names }), { timeout: 10_000 })
  expect(lines.some((line) => line.startsWith('the registry was restarted'))).toBe(true)
  await eventually(() => expect(link.status().codecMismatch).not.toBe(''), { timeout: 10_000 })

  await new Promise<void>((resolve) => link.stop(resolve))
  expect(await get('/shards/s1/nodes')).toBeUndefined()
  await third.kill()
})
