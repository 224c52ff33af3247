/** Several registries on one etcd server, and what becomes of them when etcd is away, full, restored or changed by hand. */

import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createCodecList, systemClock } from '@vacancy/shared'
import { type Etcd, startEtcd } from '@vacancy/testkit/etcd'
import { openRelay } from '@vacancy/testkit/relay'
import { until } from '@vacancy/testkit/until'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { change } from '../testing/changes.ts'
import { CODECS, onEtcd, type Place, type Started, startOn } from '../testing/registries.ts'

let etcd: Etcd

beforeAll(async () => {
  etcd = await startEtcd()
}, 180_000)

afterAll(() => etcd.close())

/** How long etcd is away; 60 s and more in a long run. */
const AWAY_MS = Number(process.env['VACANCY_ETCD_AWAY_MS'] ?? 5_000)

type Registry = Awaited<ReturnType<typeof startOn>>

const start = (place: Place, options: Started = {}) => startOn(place, { clock: systemClock, ...options })
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function startBoth(options: Started = {}, server = etcd): Promise<readonly [Registry, Registry]> {
  const place = onEtcd(server)
  return [await start(place, options), await start(place, options)]
}

const LISTS = ['/versions', '/zones', '/shards', '/conflicts', '/zones/z1/segments', '/zones/z2/segments'] as const

/** Every list of a registry, with the versions. */
async function viewOf({ get }: Registry) {
  const answers = await Promise.all(LISTS.map((where) => get(where)))
  const { nodes, bridges, routers, segments, shards, epoch } = (await get('/topology')).json
  const components = [...nodes, ...bridges, ...routers].map(({ id, zone, shard }) => ({ id, zone, shard }))
  const versions = { ...answers[0]?.json, warming: undefined }
  return [versions, ...answers.slice(1).map(({ json }) => json), components, segments, shards, epoch]
}

async function untilEqual(registries: readonly Registry[]): Promise<void> {
  let views: unknown[] = []
  try {
    await until('all registries answer the same', async () => {
      views = await Promise.all(registries.map(viewOf))
      expect(views.slice(1)).toEqual(views.slice(1).map(() => views[0]))
      return true
    })
  } catch {
    expect(views.slice(1)).toEqual(views.slice(1).map(() => views[0]))
  }
}

test('a change at one registry is a change at the other, with the same versions and tags', async () => {
  const [one, two] = await startBoth()
  const { global_version: since, epoch } = (await two.get('/versions')).json
  const waiting = two.get(`/versions?epoch=${epoch}&since=${since}&wait_secs=60`)
  await one.register('node', 'n1', 'z1', 's1', { role: 'leader', api_url: 'http://n1' })
  const changedMs = performance.now()

  expect((await waiting).json.versions).toHaveProperty('shards/s1/nodes')
  expect(performance.now() - changedMs).toBeLessThan(1_000)
  await one.register('bridge', 'b1', 'z1', 's1')
  await one.register('router', 'r1', 'z1')
  await one.push('s1', 'z1', ['paris', 'rome'], { term: 3 })
  await two.push('s2', 'z2', ['paris', 'oslo'])
  await two.ask('PUT', '/segments/new', { shard: 's1' })
  await untilEqual([one, two])
  for (const where of ['/shards/s1/segments', '/shards/s1/nodes', '/zones/z1/shards', '/zones/z1/routers'])
    expect((await one.get(where)).headers.get('etag')).toBe((await two.get(where)).headers.get('etag'))
  expect((await two.push('s1', 'z1', ['paris'], { term: 2 })).json).toEqual({ error: 'stale term', term: 3 })
  // Details of heartbeats arrive with the heartbeats.
  await until('the details are at both', async () => (await two.get('/topology')).json.nodes[0].api_url === 'http://n1')
  expect((await two.ask('DELETE', '/register/bridge/b1')).status).toBe(200)
  await until('it is gone', async () => Object.keys((await one.get('/zones/z1/shards')).json.shards).length === 0)
})

test('two leaders that claim a segment at the same time at two registries: one owner', async () => {
  const [one, two] = await startBoth()
  for (let round = 0; round < 30; round++) {
    const name = `segment-${round}`
    const [a, b] = await Promise.all([
      one.push('s1', 'z1', [...Array.from({ length: round }, (_, i) => `segment-${i}`), name]),
      two.push('s2', 'z2', [...Array.from({ length: round }, (_, i) => `segment-${i}`), name]),
    ])
    const isConflict = ({ json }: { json?: { conflicts: { segment: string }[] } }) =>
      json?.conflicts.some(({ segment }) => segment === name) === true
    // Exactly one of them learns that the other owns it.
    expect([a, b].map(({ status }) => status)).toEqual([200, 200])
    expect([isConflict(a), isConflict(b)].filter(Boolean).length).toBe(1)
    const owner = isConflict(a) ? 's2' : 's1'
    await until('both name it', async () => {
      const named = await Promise.all([one, two].map(async ({ get }) => (await get(`/segments/${name}`)).json))
      return named.every(({ shard, claims }) => shard === owner && claims.length === 2)
    })
  }
  await untilEqual([one, two])
})

test('a change of another registry used to be lost when the watch had it before the response to an own change', async () => {
  let delayMs = 0
  const slow = createServer((incoming, answer) => {
    const { method, url, headers } = incoming
    const forwarded = request(etcd.endpoint + url, { method, headers, agent: false }, (given) => {
      const pass = () => given.pipe(answer.writeHead(given.statusCode ?? 502, given.headers))
      setTimeout(pass, url === '/v3/kv/txn' ? delayMs : 0)
    })
    incoming.pipe(forwarded)
    answer.once('close', () => forwarded.destroy())
  })
  await new Promise<void>((listening) => slow.listen(0, '127.0.0.1', listening))
  onTestFinished(() => {
    slow.closeAllConnections()
    slow.close()
  })
  const prefix = etcd.newPrefix()
  const endpoint = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`
  const one = await start(onEtcd(etcd, prefix, { endpoints: [endpoint] }))
  const two = await start(onEtcd(etcd, prefix))
  await one.register('node', 'n0', 'z1', 's1')

  delayMs = 500
  const first = one.push('s1', 'z1', ['paris'])
  await until('the other one has it', async () => (await two.get('/segments/paris')).status === 200)
  await two.push('s2', 'z2', ['paris'])
  expect((await first).status).toBe(200)
  await untilEqual([one, two])
  expect((await one.get('/segments/paris')).json.claims).toHaveLength(2)
  // What a component reports beside its place is not in the rows.
  const details = { role: 'leader', api_url: 'http://n1' }
  expect((await one.register('node', 'n1', 'z1', 's1', details)).status).toBe(200)
  const { nodes } = (await one.get('/topology')).json
  expect(nodes.find(({ id }: { id: string }) => id === 'n1')).toMatchObject(details)
})

test('random changes at three registries at once give one state, which a fourth one reads', async () => {
  const place = onEtcd(etcd)
  const registries = [await start(place), await start(place), await start(place)]
  const seed = Number(process.env['VACANCY_SEED'] ?? Date.now() % 2 ** 31)
  const changes = fc.sample(change, { seed, numRuns: 450 })
  const send = async ({ register, push, ask }: Registry, next: (typeof changes)[0]) => {
    switch (next.do) {
      case 'register':
        return await register(next.kind, next.id, next.zone, next.shard)
      case 'deregister':
        return await ask('DELETE', `/register/${next.kind}/${next.id}`)
      case 'push':
        return await push(next.shard, next.zone, next.segments, next.term === undefined ? {} : { term: next.term })
      case 'forget':
        return await ask('DELETE', `/shards/${next.shard}`)
      case 'reserve':
        return await ask('PUT', `/segments/${next.segment}`, { shard: next.shard })
      case 'release':
        return await ask('DELETE', `/segments/${next.segment}`)
      default:
        return { status: 200 }
    }
  }
  await Promise.all(
    registries.map(async (registry, lane) => {
      for (let i = lane; i < changes.length; i += 3) {
        const next = changes[i] as (typeof changes)[0]
        const { status } = await send(registry, next)
        expect([200, 404, 409], `seed ${seed}: ${JSON.stringify(next)}`).toContain(status)
      }
    }),
  )
  await untilEqual([...registries, await start(place)])
})

test('a registration storm takes few transactions', async () => {
  const [one, two] = await startBoth()
  const ids = Array.from({ length: 600 }, (_, i) => `n${i}`)
  const startMs = performance.now()
  const answers = await Promise.all(ids.map((id, i) => (i % 2 ? one : two).register('node', id, 'z1', `s${i % 40}`)))
  const tookMs = performance.now() - startMs

  expect(answers.every(({ status }) => status === 200)).toBe(true)
  await untilEqual([one, two])
  expect((await one.get('/topology')).json.nodes.length).toBe(600)
  expect(tookMs).toBeLessThan(20_000)
  const writes = async ({ metric }: Registry) => Number((await metric('registry_json_write_total'))?.split(' ')[1])
  expect((await writes(one)) + (await writes(two))).toBeLessThan(300)
})

/** Heartbeats of components, each to the first registry that answers. */
function beating(registries: readonly Registry[], everyMs: number) {
  const statuses: number[] = []
  let stopped = false
  const beat = async (kind: string, id: string, shard?: string) => {
    for (const { register } of registries) {
      try {
        statuses.push((await register(kind, id, 'z1', shard)).status)
        return
      } catch {
        // It was stopped: the next one.
      }
    }
  }
  const loop = (async () => {
    while (!stopped) {
      await beat('router', 'r1')
      await beat('bridge', 'b1', 's1')
      await beat('node', 'n1', 's1')
      await wait(everyMs)
    }
  })()
  const stop = async () => {
    stopped = true
    await loop
  }
  onTestFinished(stop)
  return { statuses, stop }
}

const TIMEOUT_MS = 2_000

async function routes({ get }: Registry) {
  const [routers, shards, segments, nodes] = await Promise.all([
    get('/zones/z1/routers'),
    get('/zones/z1/shards'),
    get('/zones/z1/segments'),
    get('/shards/s1/nodes'),
  ])
  return [routers.json.routers, shards.json.shards, segments.json.segments, nodes.json.nodes]
}
const ALL = [['r1'], { s1: { bridges: ['b1'] } }, ['paris'], ['n1']]

test.each([
  ['is killed and started again', 'kill'],
  ['is frozen, and its leases have ended when it continues', 'freeze'],
] as const)(
  'two registries, one stopped, while etcd %s: no route is lost or expired',
  async (_what, how) => {
    const server = await startEtcd()
    onTestFinished(server.close)
    const [one, two] = await startBoth({ heartbeatTimeoutMs: TIMEOUT_MS }, server)
    const { statuses } = beating([one, two], 200)
    await until('all are registered', async () => (await routes(two))[3].length === 1)
    await one.push('s1', 'z1', ['paris'], { term: 1 })
    await until('the routes are at both', async () => JSON.stringify(await routes(two)) === JSON.stringify(ALL))
    const before = (await two.get('/versions')).json
    await wait(TIMEOUT_MS)
    await one.stop()
    if (how === 'kill') await server.kill()
    else server.freeze()
    const lost: unknown[] = []
    const check = async () => {
      const found = await routes(two)
      if (JSON.stringify(found) !== JSON.stringify(ALL)) lost.push(found)
    }
    await until('it is noticed', async () => (await two.get('/versions')).headers.has('x-registry-stale'))
    for (const endMs = performance.now() + AWAY_MS; performance.now() < endMs; await wait(200)) await check()

    const answer = await two.get('/zones/z1/segments')
    expect(Number(answer.headers.get('x-registry-stale'))).toBeGreaterThanOrEqual(Math.floor(AWAY_MS / 1000) - 1)
    expect(await two.register('node', 'n2', 'z1', 's1')).toMatchObject({
      status: 503,
      json: { error: 'storage unavailable' },
    })
    expect((await two.push('s1', 'z1', ['paris', 'rome'])).status).toBe(503)
    expect((await two.ask('DELETE', '/register/node/n1')).status).toBe(503)
    expect((await two.register('node', 'n1', 'z1', 's1')).status).toBe(200)
    expect((await two.get('/ready')).status).toBe(503)
    expect(await two.metric('registry_storage_up')).toBe('registry_storage_up 0')

    if (how === 'kill') await server.start()
    else server.resume()
    await until('it continues', async () => {
      await check()
      return (await two.get('/ready')).status === 200
    })
    expect((await two.get('/versions')).headers.has('x-registry-stale')).toBe(false)
    // Longer than any lease from before.
    for (const endMs = performance.now() + 3 * TIMEOUT_MS; performance.now() < endMs; await wait(200)) await check()
    expect(lost).toEqual([])
    expect(statuses.every((status) => status === 200)).toBe(true)
    expect((await two.get('/versions')).json).toEqual({ ...before, warming: false })
    // It removes what really is silent.
    await two.register('node', 'silent', 'z1', 's1')
    await until('it is removed', async () => (await two.get('/shards/s1/nodes')).json.nodes.length === 1)
    await check()
    expect(lost).toEqual([])
  },
  120_000 + 2 * AWAY_MS,
)

test('a registry that was cut off while the others went on and etcd was compacted reads everything again', async () => {
  const relay = await openRelay({ host: '127.0.0.1', port: Number(new URL(etcd.endpoint).port) })
  onTestFinished(relay.close)
  const prefix = etcd.newPrefix()
  const one = await start(onEtcd(etcd, prefix))
  const two = await start(onEtcd(etcd, prefix, { endpoints: [`http://127.0.0.1:${relay.at.port}`] }))
  await one.push('s1', 'z1', ['paris'])
  await untilEqual([one, two])
  await relay.listen(false)
  relay.reset()
  await until('it is noticed', async () => (await two.get('/versions')).headers.has('x-registry-stale'))
  for (let i = 0; i < 20; i++) await one.push('s1', 'z1', ['paris', `segment-${i}`])
  const { header } = (await etcd.call('/v3/kv/range', { key: 'AA==' })) as { header: { revision: string } }
  await etcd.call('/v3/kv/compaction', { revision: header.revision, physical: true })
  expect((await two.get('/zones/z1/segments')).json.segments).toEqual(['paris'])

  await relay.listen(true)
  await untilEqual([one, two])
  expect((await two.push('s2', 'z1', ['oslo'])).status).toBe(200)
  await untilEqual([one, two])
})

test('an etcd that is back after an hour: leases are gone and history is compacted, but nothing is lost', async () => {
  let laterMs = 0
  const clock = {
    ...systemClock,
    wallMs: () => systemClock.wallMs() + laterMs,
    monotonicMs: () => systemClock.monotonicMs() + laterMs,
  }
  const [timeoutMs, hourMs] = [60_000, 3_600_000]
  const relay = await openRelay({ host: '127.0.0.1', port: Number(new URL(etcd.endpoint).port) })
  onTestFinished(relay.close)
  const prefix = etcd.newPrefix()
  const place = onEtcd(etcd, prefix, { endpoints: [`http://127.0.0.1:${relay.at.port}`] })
  const [one, two] = [await start(place, { clock }), await start(place, { clock })]
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const beats = async () => {
    const range = { key: base64(`${prefix}hb/`), range_end: base64(`${prefix}hb0`), keys_only: true }
    const { kvs = [] } = (await etcd.call('/v3/kv/range', range)) as { kvs?: { key: string }[] }
    return kvs.map(({ key }) => Buffer.from(key, 'base64').toString().slice(prefix.length)).sort()
  }
  const alive = ['hb/bridge/b1', 'hb/node/n1', 'hb/router/r1']
  const heartbeats = async () => [
    await one.register('node', 'n1', 'z1', 's1'),
    await one.register('bridge', 'b1', 'z1', 's1'),
    await two.register('router', 'r1', 'z1'),
  ]
  await heartbeats()
  await two.register('node', 'silent', 'z1', 's1')
  await one.push('s1', 'z1', ['paris', 'rome'])
  await until('all heartbeats are in etcd', async () => (await beats()).length === 4)
  // It ends during the outage: the first sweep afterwards removes it.
  await one.ask('PUT', '/segments/reserved', { shard: 's1' })
  laterMs += 23.5 * hourMs
  await heartbeats()
  await untilEqual([one, two])
  const [{ versions, epoch }, , , , , , components] = await viewOf(one)

  await relay.listen(false)
  relay.reset()
  for (const registry of [one, two])
    await until('it is noticed', async () => (await registry.get('/versions')).headers.has('x-registry-stale'))
  for (const endMs = laterMs + hourMs; laterMs < endMs; laterMs += timeoutMs) {
    for (const { status } of await heartbeats()) expect(status).toBe(200)
  }
  expect(Number((await two.get('/versions')).headers.get('x-registry-stale'))).toBeGreaterThanOrEqual(hourMs / 1000)
  expect((await one.push('s1', 'z1', ['paris'])).status).toBe(503)
  const { leases } = (await etcd.call('/v3/lease/leases', {})) as { leases: { ID: string }[] }
  for (const { ID } of leases) await etcd.call('/v3/lease/revoke', { ID })
  expect(await beats()).toEqual([])
  const { header } = (await etcd.call('/v3/kv/put', { key: base64('elsewhere'), value: '' })) as {
    header: { revision: string }
  }
  await etcd.call('/v3/kv/compaction', { revision: header.revision, physical: true })

  await relay.listen(true)
  for (const registry of [one, two])
    await until('it continues', async () => (await registry.get('/ready')).status === 200)
  // Those that reported during the hour have leases again, and one registry removes silent components again.
  await until('the heartbeats are written again', async () => (await beats()).join() === alive.join())
  for (const { get } of [one, two])
    await until('one of them sweeps', async () => (await get('/segments/reserved')).status === 404)
  for (const { push } of [one, two]) expect((await push('s1', 'z1', ['paris', 'rome', 'oslo'])).status).toBe(200)
  await untilEqual([one, two])
  const [after, , , , , , left] = await viewOf(two)
  expect(left).toEqual(components)
  expect(after.epoch).toBe(epoch)
  expect(after.versions['shards/s1/nodes']).toBe(versions['shards/s1/nodes'])

  // It had a whole timeout to report after the outage.
  laterMs += timeoutMs + 1_000
  await until('the silent one is removed', async () => (await one.get('/shards/s1/nodes')).json.nodes.join() === 'n1')
  await untilEqual([one, two])
  expect(Object.keys((await two.get('/zones/z1/shards')).json.shards)).toEqual(['s1'])
  expect((await two.get('/zones/z1/routers')).json.routers).toEqual(['r1'])
})

test('a cut line that loses nothing but time is noticed, and a slow one is waited for', async () => {
  const relay = await openRelay({ host: '127.0.0.1', port: Number(new URL(etcd.endpoint).port) })
  onTestFinished(relay.close)
  const prefix = etcd.newPrefix()
  const [one, two] = [
    await start(onEtcd(etcd, prefix)),
    await start(onEtcd(etcd, prefix, { endpoints: [`http://127.0.0.1:${relay.at.port}`] })),
  ]
  relay.set({ holdsForward: false, holdsBackward: false, delayMs: 300, bytesPerSecond: 0 })
  expect((await two.push('s1', 'z1', ['paris'])).status).toBe(200)
  await untilEqual([one, two])
  relay.cut()
  const startMs = performance.now()
  expect((await two.push('s1', 'z1', ['paris', 'rome'])).status).toBe(503)
  expect(performance.now() - startMs).toBeLessThan(6_000)
  await until('it is noticed', async () => (await two.get('/versions')).headers.has('x-registry-stale'))

  relay.mend()
  await until('it continues', async () => (await two.get('/ready')).status === 200)
  await untilEqual([one, two])
  expect((await two.push('s1', 'z1', ['rome'])).status).toBe(200)
  await untilEqual([one, two])
})

test('a full etcd refuses changes and expires nothing; with space again everything continues', async () => {
  const server = await startEtcd(['--quota-backend-bytes', String(16 << 20)])
  onTestFinished(server.close)
  const [one, two] = await startBoth({ heartbeatTimeoutMs: TIMEOUT_MS }, server)
  const { statuses } = beating([two, one], 200)
  await until('all are registered', async () => (await routes(two))[3].length === 1)
  await one.push('s1', 'z1', ['paris'])
  const key = Buffer.from('/filler').toString('base64')
  const value = Buffer.alloc(1 << 20, 1).toString('base64')
  await until(
    'it is full',
    async () => ((await server.call('/v3/kv/put', { key, value })) as { code?: number }).code === 8,
  )

  expect((await one.push('s1', 'z1', ['paris', 'rome'])).status).toBe(503)
  expect((await one.get('/ready')).json.reasons[0].message).toContain('database space exceeded')
  for (const endMs = performance.now() + 3 * TIMEOUT_MS; performance.now() < endMs; await wait(200)) {
    expect(await routes(one)).toEqual(ALL)
    expect(await routes(two)).toEqual(ALL)
  }
  const { header } = (await server.call('/v3/kv/range', { key })) as { header: { revision: string } }
  await server.call('/v3/kv/compaction', { revision: header.revision, physical: true })
  await server.call('/v3/maintenance/defragment', {})
  const { alarms } = (await server.call('/v3/maintenance/alarm', {})) as { alarms: { memberID: string }[] }
  for (const { memberID } of alarms)
    await server.call('/v3/maintenance/alarm', { action: 'DEACTIVATE', alarm: 'NOSPACE', memberID })
  await until('changes are kept', async () => (await one.push('s1', 'z1', ['paris', 'oslo'])).status === 200)
  await one.push('s1', 'z1', ['paris'])
  for (const endMs = performance.now() + 3 * TIMEOUT_MS; performance.now() < endMs; await wait(200))
    expect(await routes(one)).toEqual(ALL)
  await until('it is ready', async () => (await one.get('/ready')).status === 200)
  expect(statuses.every((status) => status === 200)).toBe(true)
})

test('an etcd that was wiped gets a new epoch and higher versions, and components return with their heartbeats', async () => {
  const server = await startEtcd()
  onTestFinished(server.close)
  const [one, two] = await startBoth({ heartbeatTimeoutMs: TIMEOUT_MS }, server)
  beating([one], 200)
  await until('all are registered', async () => (await routes(two))[3].length === 1)
  await one.push('s1', 'z1', ['paris'])
  await untilEqual([one, two])
  const before = (await one.get('/versions')).json
  await server.wipe()

  await until('a new epoch', async () => {
    const now = (await one.get('/versions')).json
    return now.epoch !== before.epoch && now.warming === true
  })
  await until('they are back', async () => (await routes(two))[3].length === 1)
  expect((await two.get('/shards/s1/segments')).status).toBe(404)
  await two.push('s1', 'z1', ['paris'])
  await until('the last component is back', async () => {
    const { versions } = (await one.get('/versions')).json
    return Object.keys(before.versions).every((name) => name in versions)
  })
  await untilEqual([one, two])
  const after = (await one.get('/versions')).json
  for (const [name, version] of Object.entries(before.versions))
    expect(after.versions[name]).toBeGreaterThan(version as number)
})

test('an etcd restored from a backup gets a new epoch, and no version occurs twice', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-etcd-backup-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const server = await startEtcd()
  onTestFinished(server.close)
  const [one, two] = await startBoth({}, server)
  await one.push('s1', 'z1', ['paris'])
  await server.kill()
  cpSync(server.data, folder, { recursive: true })
  await server.start()
  const backup = (await one.get('/versions')).json
  await until('it continues', async () => (await one.get('/ready')).status === 200)
  for (let i = 0; i < 20; i++) await one.push('s1', 'z1', [`segment-${i}`])
  const before = (await one.get('/versions')).json
  expect(before.epoch).toBe(backup.epoch)
  await server.kill()
  rmSync(server.data, { recursive: true })
  cpSync(folder, server.data, { recursive: true })
  await server.start()

  await until(
    'the backup is in force',
    async () => JSON.stringify((await one.get('/zones/z1/segments')).json.segments) === '["paris"]',
  )
  await untilEqual([one, two])
  const after = (await one.get('/versions')).json
  expect(after.epoch).not.toBe(before.epoch)
  expect(after.versions['shards/s1/segments']).toBeGreaterThan(before.versions['shards/s1/segments'])
})

test('keys that were changed by hand are read again, or refused by name', async () => {
  const prefix = etcd.newPrefix()
  const [one, two] = [await start(onEtcd(etcd, prefix)), await start(onEtcd(etcd, prefix))]
  await one.push('s1', 'z1', ['paris'])
  await one.push('s2', 'z1', ['paris', 'rome'])
  const key = (name: string) => Buffer.from(prefix + name).toString('base64')
  await etcd.call('/v3/kv/deleterange', { key: key('claims/s1') })
  await until('the next claimant has it', async () => (await two.get('/segments/paris')).json.shard === 's2')
  await untilEqual([one, two])

  const good = (await two.get('/topology')).json.segments
  await etcd.call('/v3/kv/put', { key: key('claims/s2'), value: Buffer.from('{"zone"').toString('base64') })
  await until('it is reported', async () => (await two.get('/ready')).status === 503)
  expect((await two.get('/ready')).json.reasons[0].message).toContain('claims/s2: is not valid JSON')
  expect((await two.get('/topology')).json.segments).toEqual(good)
  await expect(start(onEtcd(etcd, prefix))).rejects.toMatchObject({
    code: 'data_conflict',
    message: expect.stringContaining('claims/s2: is not valid JSON'),
  })
  await etcd.call('/v3/kv/deleterange', { key: key('claims/s2') })
  await until('it continues', async () => (await two.get('/ready')).status === 200)
  expect((await two.push('s2', 'z1', ['rome'])).status).toBe(200)
  await untilEqual([one, two])
})

test('the codec list is that of the first registry, until another one is accepted', async () => {
  const prefix = etcd.newPrefix()
  const codecs = createCodecList(['a', 'b'])
  const one = await start(onEtcd(etcd, prefix))
  await expect(start(onEtcd(etcd, prefix), { codecs })).rejects.toMatchObject({
    code: 'data_conflict',
    message: expect.stringContaining('--accept-codec-change'),
  })
  const before = (await one.get('/versions')).json.global_version
  const two = await start(onEtcd(etcd, prefix, { acceptsCodecChange: true }), { codecs })

  await until('the other one follows', async () => (await one.get('/codecs')).json.rate_features.length === 2)
  expect((await one.get('/codecs')).text).toBe((await two.get('/codecs')).text)
  expect((await one.get('/codecs')).text).toContain(`"hash":${codecs.hash},`)
  expect((await one.register('router', 'r1', 'z1')).json.ordered_hash).toBe(codecs.orderedHash)
  expect((await one.get('/versions')).json.global_version).toBeGreaterThan(before)
  await expect(start(onEtcd(etcd, prefix), { codecs: CODECS })).rejects.toMatchObject({ code: 'data_conflict' })
})

test('without etcd a registry listens and reports what it waits for; it serves when etcd answers', async () => {
  const server = await startEtcd()
  onTestFinished(server.close)
  await server.kill()
  const { get, register, push } = await start(onEtcd(server))

  expect((await get('/health')).status).toBe(200)
  expect((await get('/ready')).json.reasons[0]).toMatchObject({
    name: 'storage',
    message: expect.stringContaining('etcd'),
  })
  for (const { status, json } of [
    await get('/versions'),
    await get('/zones/z1/segments'),
    await register('router', 'r1', 'z1'),
  ])
    expect([status, json]).toEqual([503, { error: 'storage unavailable' }])
  await server.start()
  await until('it serves', async () => (await get('/ready')).status === 200)
  expect((await push('s1', 'z1', ['paris'])).status).toBe(200)
})

test('two processes under one id are noticed when they register at two registries', async () => {
  const [one, two] = await startBoth({ heartbeatTimeoutMs: 1_000 })
  await until('it is counted', async () => {
    await one.register('node', 'n1', 'z1', 's1', { instance: 'a' })
    await two.register('node', 'n1', 'z1', 's1', { instance: 'b' })
    await wait(100)
    return (await one.metric('registry_identity_conflicts_total{kind="node"}')) !== undefined
  })
  expect(one.lines.some((line) => line.includes('two processes register as node n1'))).toBe(true)
})

test('a silent component is removed by one of two registries, and by the other one when that stops', async () => {
  const [one, two] = await startBoth({ heartbeatTimeoutMs: 1_000 })
  for (const registry of [one, two]) {
    await registry.register('node', 'silent', 'z1', 's1')
    await until('it is there', async () => (await two.get('/shards/s1/nodes')).status === 200)
    const startMs = performance.now()
    await until('it is gone', async () => (await two.get('/shards/s1/nodes')).status === 404)
    expect(performance.now() - startMs).toBeGreaterThan(800)
    await one.stop()
  }
})
