import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { systemClock } from '@vacancy/shared'
import { systemSchedule } from '@vacancy/shared/schedule'
import { eventually } from '@vacancy/testkit/until'
import { expect, onTestFinished, test } from 'vitest'
import { openRegistryClient } from '../registry-client.ts'
import { startExistingRegistry } from '../testing/existing/registry.ts'
import { keepingLog, stub } from '../testing/http.ts'
import { memoryStorage, onFile, runningRegistry, type TestRegistry } from '../testing/registries.ts'
import { openTables, type Tables, type TablesOptions } from './refresh.ts'

function open(addr: string, more: Partial<TablesOptions> = {}) {
  const log = keepingLog()
  const registry = openRegistryClient({ addr, clock: systemClock, log })
  const tables = openTables({
    mode: 'edge',
    registry,
    refreshMs: 10_000,
    clock: systemClock,
    schedule: systemSchedule,
    random: () => 0.5,
    log,
    ...more,
  })
  const stop = async () => {
    await tables.stop()
    registry.close()
  }
  onTestFinished(stop)
  return { tables, log, registry, stop }
}

function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), 'vacancy-tables-'))
  onTestFinished(() => rmSync(made, { recursive: true }))
  return made
}

const settled = (tables: Tables, segment: string, wanted: object, timeout = 30_000) =>
  eventually(() => expect(tables.lookup(segment)).toMatchObject(wanted), { timeout })

async function fill(registry: Pick<TestRegistry, 'register' | 'push'>) {
  await registry.register('router', 'r1', 'z1')
  await registry.register('bridge', 'b1', 'z1', 's1')
  await registry.push('s1', 'z1', ['paris', 'berlin'])
}

test('an edge follows changes by long poll, within a fraction of the refresh interval', async () => {
  const registry = await runningRegistry()
  await fill(registry)
  const { tables } = open(registry.addr)
  await settled(tables, 'paris', { kind: 'hops', via: 'z1', hops: ['r1'] })
  let changes = 0
  tables.onChange(() => {
    changes += 1
  })

  await registry.push('s1', 'z1', ['paris', 'rome'])
  await settled(tables, 'rome', { kind: 'hops' })
  await registry.register('router', 'r2', 'z1')
  await settled(tables, 'rome', { hops: ['r1', 'r2'] })

  expect(tables.lookup('berlin')).toEqual({ kind: 'unknown' })
  expect(tables.hops()).toEqual(['r1', 'r2'])
  expect(changes).toBe(2)
  expect(tables.codecs()?.names).toEqual(['breakfast', 'wifi'])
  expect(tables.health()).toMatchObject({
    isLoaded: true,
    isSynced: true,
    registryUp: true,
    fault: '',
    routes: 2,
    hops: 2,
    isHeldBack: false,
    reasons: [],
  })
})

test('a zone router follows bridges and segments of its zone', async () => {
  const registry = await runningRegistry()
  await fill(registry)
  await registry.register('bridge', 'b2', 'z2', 's2')
  await registry.push('s2', 'z2', ['oslo'])
  const { tables } = open(registry.addr, { mode: 'zone', zone: 'z1' })
  await settled(tables, 'paris', { kind: 'hops', via: 's1', hops: ['b1'] })
  expect(tables.lookup('oslo')).toEqual({ kind: 'unknown' })

  await registry.deregister('bridge', 'b1')
  await settled(tables, 'paris', { kind: 'no_hops' })
  await registry.register('bridge', 'b3', 'z1', 's1')

  await settled(tables, 'paris', { kind: 'hops', hops: ['b3'] })
})

test('an idle long poll is repeated without reading any list again', async () => {
  const registry = await runningRegistry()
  await fill(registry)
  const seen: string[] = []
  const relay = await stub(async (request, response) => {
    seen.push(request.url ?? '')
    // The registry ends before a long poll that is under way.
    const answer = await fetch(`http://${registry.addr}${request.url}`).catch(() => undefined)
    if (!answer) return void response.destroy()
    response.writeHead(answer.status, { 'Content-Type': 'application/json' })
    response.end(await answer.text())
  })
  onTestFinished(relay.stop)
  const { tables } = open(relay.addr, { refreshMs: 1_000 })
  await settled(tables, 'paris', { kind: 'hops' })
  const settledMs = performance.now()

  await eventually(() => expect(seen.filter((url) => url.includes('wait_secs=1')).length).toBeGreaterThan(1), {
    timeout: 10_000,
  })

  expect(seen.filter((url) => url.startsWith('/zones/'))).toHaveLength(2)
  expect(tables.health().ageMs).toBeLessThan(performance.now() - settledMs)
})

test('an existing registry is polled each interval, and a refresh on request is at most each 500 ms', async () => {
  const registry = await startExistingRegistry()
  onTestFinished(registry.close)
  registry.register('router', 'r1', 'z1')
  registry.push('s1', 'z1', ['paris'])
  const { tables } = open(registry.addr, { refreshMs: 300_000 })
  await settled(tables, 'paris', { kind: 'hops' })
  registry.push('s1', 'z1', ['paris', 'rome'])

  await eventually(
    async () => {
      await tables.refreshNow()
      expect(tables.lookup('rome')).toMatchObject({ kind: 'hops' })
    },
    { interval: 1, timeout: 5_000 },
  )

  const polls = registry.requests.filter((url) => url === 'GET /versions')
  expect(polls).toHaveLength(2)
  expect(registry.requests.filter((url) => url.includes('wait_secs'))).toEqual([])
  expect(tables.segments()).toEqual([
    { name: 'paris', count: 0 },
    { name: 'rome', count: 0 },
  ])
})

test('requests for a refresh at the same time are one round, also during a long poll', async () => {
  const registry = await runningRegistry()
  await fill(registry)
  const { tables } = open(registry.addr)
  await settled(tables, 'paris', { kind: 'hops' })
  // Of two requests within 500 ms the second one is not sent.
  await new Promise((resolve) => setTimeout(resolve, 600))
  const requestedMs = performance.now()

  await Promise.all([tables.refreshNow(), tables.refreshNow(), tables.refreshNow()])

  expect(tables.health().ageMs).toBeLessThanOrEqual(performance.now() - requestedMs)
})

test('early segments, a long bridge outage and a reset of an existing registry heal', async () => {
  const registry = await startExistingRegistry()
  onTestFinished(registry.close)
  registry.push('s1', 'z1', ['paris'])
  registry.push('s2', 'z1', ['rome'])
  registry.register('bridge', 'b2', 'z1', 's2')
  const edge = open(registry.addr, { refreshMs: 50 }).tables
  const zone = open(registry.addr, { refreshMs: 50, mode: 'zone', zone: 'z1' }).tables
  await settled(edge, 'paris', { kind: 'no_hops' })
  await settled(zone, 'paris', { kind: 'no_hops' })

  registry.register('router', 'r1', 'z1')
  registry.register('bridge', 'b1', 'z1', 's1')
  await settled(edge, 'paris', { kind: 'hops', hops: ['r1'] })
  await settled(zone, 'paris', { kind: 'hops', hops: ['b1'] })
  registry.expire('bridge', 'b1')
  await settled(zone, 'paris', { kind: 'no_hops', via: 's1' })
  expect(zone.lookup('rome')).toMatchObject({ kind: 'hops' })
  registry.register('bridge', 'b1', 'z1', 's1')
  await settled(zone, 'paris', { kind: 'hops', hops: ['b1'] })

  registry.reset()
  registry.register('router', 'r9', 'z1')
  registry.register('bridge', 'b9', 'z1', 's1')
  registry.push('s1', 'z1', ['paris'])
  await settled(edge, 'paris', { kind: 'hops', hops: ['r9'] })
  await settled(zone, 'paris', { kind: 'hops', hops: ['b9'] })
  await settled(edge, 'rome', { kind: 'unknown' })
})

test('a wiped registry takes effect only after two rounds', async () => {
  const wiped = await startExistingRegistry()
  onTestFinished(wiped.close)
  wiped.register('router', 'r1', 'z1')
  wiped.push('s1', 'z1', ['paris', 'rome', 'oslo'])
  const { tables, log } = open(wiped.addr, { refreshMs: 50 })
  await settled(tables, 'paris', { kind: 'hops' })

  wiped.reset()
  await eventually(() => expect(tables.health().isHeldBack).toBe(true))
  expect(tables.lookup('paris')).toMatchObject({ kind: 'hops' })

  await settled(tables, 'paris', { kind: 'unknown' })
  expect(log.lines.some(({ text }) => text.includes('fewer than half'))).toBe(true)
})

test('a warming registry removes nothing', async () => {
  const first = await runningRegistry()
  await fill(first)
  const cacheDir = folder()
  const before = open(first.addr, { cacheDir })
  await settled(before.tables, 'paris', { kind: 'hops' })
  await before.stop()
  // Its own clock: it has just started.
  const second = await runningRegistry({ clock: systemClock })
  await second.register('router', 'r9', 'z1')

  const { tables } = open(second.addr, { cacheDir })

  await settled(tables, 'paris', { kind: 'hops', hops: ['r1', 'r9'] })
  expect(tables.health().isHeldBack).toBe(false)
})

test('a router starts from its cache without a registry, and reports its age', async () => {
  const registry = await runningRegistry()
  const filledMs = performance.now()
  await fill(registry)
  const cacheDir = folder()
  const before = open(registry.addr, { cacheDir })
  await settled(before.tables, 'paris', { kind: 'hops' })
  await eventually(() => expect(before.tables.codecs()).toBeDefined())
  await before.stop()
  await registry.stop()

  const { tables } = open(registry.addr, { cacheDir })

  expect(tables.lookup('paris')).toEqual({ kind: 'hops', via: 'z1', hops: ['r1'] })
  expect(tables.lookup('oslo')).toEqual({ kind: 'unknown' })
  expect(tables.codecs()?.text).toBe('breakfast,wifi')
  await eventually(() => expect(tables.health().registryUp).toBe(false))
  expect(tables.health()).toMatchObject({ isLoaded: true, isSynced: false, reasons: [] })
  expect(tables.health().ageMs).toBeLessThan(performance.now() - filledMs)
  expect(tables.health().fault).toContain('/versions')
  expect(readdirSync(cacheDir)).toEqual(['tables-edge.json'])
})

test('a damaged cache, or one of another router, is ignored', async () => {
  const cacheDir = folder()
  writeFileSync(path.join(cacheDir, 'tables-edge.json'), '{"format":1,')
  const zone = { format: 1, mode: 'zone', zone: 'z2', saved_at_ms: 1, lists: [] }
  writeFileSync(path.join(cacheDir, 'tables-zone-z1.json'), JSON.stringify(zone))

  const edge = open('127.0.0.1:1', { cacheDir })
  const other = open('127.0.0.1:1', { cacheDir, mode: 'zone', zone: 'z1' })

  for (const { tables, log } of [edge, other]) {
    expect(tables.lookup('paris')).toEqual({ kind: 'unloaded' })
    expect(tables.health()).toMatchObject({ isLoaded: false, ageMs: undefined })
    expect(tables.health().reasons.map(({ name }) => name)).toEqual(['tables', 'codecs'])
    expect(log.lines.some(({ text }) => text.includes('ignored'))).toBe(true)
  }
})

test('without any table every segment is unloaded, until the registry comes up', async () => {
  const registry = await runningRegistry()
  const { port } = registry
  await registry.stop()
  const { tables } = open(registry.addr)
  await eventually(() => expect(tables.health().registryUp).toBe(false))
  expect(tables.lookup('paris')).toEqual({ kind: 'unloaded' })
  expect(tables.codecs()).toBe(undefined)
  expect(tables.health().reasons[0]?.message).toContain('No routing table yet: /versions')

  await fill(await runningRegistry({ port }))

  await settled(tables, 'paris', { kind: 'hops' }, 15_000)
  await eventually(() => expect(tables.codecs()).toBeDefined(), { timeout: 15_000 })
})

test('a list that cannot be read leaves its segments unloaded, not unknown, and the others routed', async () => {
  const registry = await startExistingRegistry()
  onTestFinished(registry.close)
  registry.register('router', 'r1', 'z1')
  registry.push('s1', 'z1', ['paris'])
  registry.register('router', 'r2', 'z2')
  registry.push('s2', 'z2', ['rome'])
  let isBroken = true
  const relay = await stub(async (request, response) => {
    // The registry ends before a long poll that is under way.
    const answer = await fetch(`http://${registry.addr}${request.url}`).catch(() => undefined)
    if (!answer) return void response.destroy()
    const text = await answer.text()
    response.writeHead(answer.status)
    response.end(isBroken && request.url === '/zones/z2/segments' ? '{"version":1,"segments":[7]}' : text)
  })
  onTestFinished(relay.stop)
  const { tables } = open(relay.addr, { refreshMs: 50 })
  await settled(tables, 'paris', { kind: 'hops' })
  expect(tables.lookup('rome')).toEqual({ kind: 'unloaded' })
  expect(tables.health().fault).toContain('/zones/z2/segments')

  isBroken = false

  await settled(tables, 'rome', { kind: 'hops' }, 15_000)
  expect(tables.lookup('oslo')).toEqual({ kind: 'unknown' })
})

test('properties by segment come from the leader of the shard that owns it', async () => {
  const registry = await runningRegistry()
  await fill(registry)
  const counts = (n: number) => ({ segment_counts: { paris: n, berlin: n, rome: n } })
  await registry.register('node', 'n1', 'z1', 's1', { role: 'leader', term: 4, ...counts(7) })
  await registry.register('node', 'n2', 'z1', 's1', { role: 'leader', term: 3, ...counts(1) })
  await registry.register('node', 'n3', 'z1', 's3', { role: 'leader', term: 9, ...counts(2) })

  const { tables } = open(registry.addr)

  await eventually(() =>
    expect(tables.segments()).toEqual([
      { name: 'berlin', count: 7 },
      { name: 'paris', count: 7 },
    ]),
  )
})

test('a registry that was restarted with its state is not read again', async () => {
  const storage = memoryStorage()
  const first = await runningRegistry({ place: onFile(storage) })
  await fill(first)
  const { port } = first
  const { tables, log } = open(first.addr)
  await settled(tables, 'paris', { kind: 'hops' })
  await first.stop()
  await eventually(() => expect(tables.health().registryUp).toBe(false), { timeout: 10_000 })

  await runningRegistry({ place: onFile(storage), port })

  await eventually(() => expect(tables.health().registryUp).toBe(true), { timeout: 15_000 })
  expect(tables.lookup('paris')).toMatchObject({ kind: 'hops' })
  expect(log.lines.some(({ text }) => text.includes('another state'))).toBe(false)
})

test('with two registries the tables come from the one that responds', async () => {
  const silent = await stub((_, response) => response.destroy())
  onTestFinished(silent.stop)
  const registry = await runningRegistry()
  await fill(registry)

  const { tables, registry: client } = open(`${silent.addr},${registry.addr}`)

  await settled(tables, 'paris', { kind: 'hops' })
  expect(client.health()).toMatchObject({ address: `http://${registry.addr}`, isUp: true })
})

test('the cache is a whole file, without a temporary one beside it', async () => {
  const registry = await runningRegistry()
  await fill(registry)
  const cacheDir = path.join(folder(), 'deep', 'cache')
  const { tables, stop } = open(registry.addr, { cacheDir, mode: 'zone', zone: 'z1' })
  await settled(tables, 'paris', { kind: 'hops' })
  await stop()

  expect(readdirSync(cacheDir)).toEqual(['tables-zone-z1.json'])
  expect(JSON.parse(readFileSync(path.join(cacheDir, 'tables-zone-z1.json'), 'utf8'))).toMatchObject({
    mode: 'zone',
    zone: 'z1',
  })
})
