import { connect } from 'node:net'
import { systemClock } from '@vacancy/shared'
import {
  conflictsBody,
  fabricReadyBody,
  pushedBody,
  REGISTRY_LIMITS,
  registerBody,
  registryCodecsBody,
  segmentBody,
  segmentsChecksum,
  shardNodesBody,
  shardSegmentsBody,
  shardsBody,
  staleTermBody,
  topologyBody,
  versionsBody,
  zoneRoutersBody,
  zoneSegmentsBody,
  zoneShardsBody,
  zonesBody,
} from '@vacancy/shared/contract'
import type { Etcd } from '@vacancy/testkit/etcd'
import { tries } from '@vacancy/testkit/random'
import { eventually } from '@vacancy/testkit/until'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CODECS, onEtcd, onFile, type Place, type Started, startOn } from '../testing/registries.ts'

const AUTH = `tokens:
  - { token: adm, role: admin }
  - { token: comp, role: component }
  - { token: bound, role: component, shard: s1, zone: z1 }
  - { token: zoned, role: component, zone: z1 }
  - { token: mon, role: monitoring }
  - { token: cli, role: client }
  - { token: old, role: admin, expires: "2026-11-20T07:59:59Z" }
`
const NODE = { kind: 'node', id: 'n1', zone: 'z1', shard: 's1' }

/** Stores of the registry; in `npm test` a file alone. */
const STORES: readonly (readonly [string, () => Place])[] =
  process.env['VACANCY_TEST_DATABASES'] === 'embedded'
    ? [['a file', () => onFile()]]
    : [
        ['a file', () => onFile()],
        ['etcd', () => onEtcd(etcd as Etcd)],
      ]

let etcd: Etcd | undefined

beforeAll(async () => {
  if (STORES.length === 1) return
  const { startEtcd } = await import('@vacancy/testkit/etcd')
  etcd = await startEtcd()
}, 180_000)

afterAll(() => etcd?.close())

/** One set of tests for all stores. */
describe.each(STORES)('on %s', (_name, newPlace) => {
  const start = (options: Started = {}, place: Place = newPlace()) => startOn(place, options)

  test('responses to existing components are unchanged', async () => {
    const { get, register, push, ask } = await start()

    expect(await get('/health')).toMatchObject({ status: 200, text: 'OK' })
    expect((await get('/codecs')).text).toContain('"hash":2287399612289297935,')
    expect((await register('router', 'r1', 'z1')).status).toBe(200)
    expect((await register('bridge', 'b1', 'z1', 's1')).status).toBe(200)
    expect((await register('node', 'n1', 'z1', 's1')).status).toBe(200)
    expect(await push('s1', 'z1', ['paris', 'berlin', 'paris'])).toMatchObject({ status: 200, text: '' })
    expect(await push('s1', 'z1', ['paris', 'berlin'])).toMatchObject({ status: 200, text: '' })
    const version = expect.any(Number)
    expect((await get('/zones/z1/routers')).json).toEqual({ version, routers: ['r1'] })
    expect((await get('/zones/z1/shards')).json).toEqual({ version, shards: { s1: { bridges: ['b1'] } } })
    expect((await get('/zones/z1/segments')).json).toEqual({ version, segments: ['berlin', 'paris'] })
    expect((await get('/shards/s1/segments')).json).toEqual({ version, zone: 'z1', segments: ['berlin', 'paris'] })
    expect((await get('/shards/s1/nodes')).json).toEqual({ version, nodes: ['n1'] })
    const { versions, global_version: highest } = (await get('/versions')).json
    for (const name of [
      'zones/z1/routers',
      'zones/z1/shards',
      'zones/z1/segments',
      'shards/s1/segments',
      'shards/s1/nodes',
    ])
      expect((await get(`/${name}`)).json.version).toBe(versions[name])
    expect(highest).toBeGreaterThanOrEqual(Math.max(...(Object.values(versions) as number[])))
    expect((await ask('GET', '/shards/%73%31/nodes')).status).toBe(200)
  })

  test('unknown fields of components are named, those of operators are refused, and so are parameters', async () => {
    const { ask, get, lines } = await start()
    const node = { ...NODE, apiUrl: 'http://a:1', zones: 'z1', colour: 'red' }

    const registered = await ask('POST', '/register', node)
    expect([registered.status, registered.headers.get('x-unknown-fields')]).toEqual([200, 'zones, colour'])
    expect((await ask('POST', '/register', node)).status).toBe(200)
    expect(lines.filter((line) => line.startsWith('ignored a field'))).toEqual([
      'ignored a field: "zones" is not known; did you mean zone?',
      'ignored a field: "colour" is not known',
    ])
    expect((await get('/topology')).json.nodes[0].api_url).toBe('http://a:1')
    expect(await ask('PUT', '/segments/paris', { shrad: 's1' })).toMatchObject({
      status: 400,
      json: { error: '"shrad" is not known; did you mean shard?' },
    })
    expect(await get('/versions?wait_sec=5')).toMatchObject({
      status: 400,
      json: { error: 'the parameter "wait_sec" is not known; did you mean wait_secs?' },
    })
  })

  test.each([
    ['GET', '/zones/none/routers', 200, { version: 0, routers: [] }],
    ['GET', '/zones/none/segments', 200, { version: 0, segments: [] }],
    ['GET', '/zones/none/shards', 200, { version: 0, shards: {} }],
    ['GET', '/shards/none/segments', 404, { error: 'unknown shard' }],
    ['GET', '/shards/none/nodes', 404, { error: 'unknown shard' }],
    ['GET', '/segments/none', 404, { error: 'unknown segment' }],
    ['GET', '/nothing', 404, { error: 'not found' }],
    ['GET', '/shards/a/b/c', 404, { error: 'not found' }],
    ['PUT', '/versions', 405, { error: 'method not allowed' }],
    ['POST', '/versions', 405, { error: 'method not allowed' }],
    ['DELETE', '/register/node/none', 404, { error: 'unknown node' }],
    ['DELETE', '/register/thing/none', 404, { error: 'unknown kind' }],
    ['DELETE', '/shards/none', 404, { error: 'unknown shard' }],
    ['DELETE', '/segments/none', 404, { error: 'no reservation' }],
    ['GET', '/zones/%ff/routers', 400, { error: 'the path is not percent-encoded UTF-8' }],
  ])('%s %s returns %i', async (method, path, status, json) => {
    const { ask } = await start()

    expect(await ask(method, path)).toMatchObject({ status, json })
  })

  test.each([
    [{}, 'kind'],
    ['', 'kind'],
    ['[]', 'the body'],
    ['5', 'the body'],
    ['{', 'the body is not valid JSON'],
    ['{"kind":"node","id":"\ud800', 'the body is not valid JSON'],
    [{ kind: 'thing', id: 'a', zone: 'z' }, 'unknown registration kind: thing'],
    [{ kind: 'bridge', id: 'a', zone: 'z' }, 'shard is required for bridge'],
    [{ kind: 'node', id: 'a', zone: 'z', shard: null }, 'shard is required for node'],
    [{ kind: 'node', id: '', zone: 'z', shard: 's' }, 'id: must be 1 to 128 characters'],
    [{ kind: 'node', id: '..', zone: 'z', shard: 's' }, 'id: must be'],
    [{ kind: 'node', id: 'a', zone: 'a b', shard: 's' }, 'zone: must be'],
    [{ kind: 'node', id: 7, zone: 'z', shard: 's' }, 'id: '],
    [{ kind: 'node', id: 'a', zone: 'z', shard: 's', term: 'x' }, 'term: '],
    [{ kind: 'node', id: 'a', zone: 'z', shard: 's', role: 'king' }, 'role: '],
  ])('the invalid registration %j is refused with the reason', async (body, message) => {
    const { ask, metric } = await start()
    const answer = await ask('POST', '/register', body)

    expect(answer.status).toBe(400)
    expect(answer.json.error).toContain(message)
    expect((await ask('GET', '/topology')).json.nodes).toEqual([])
    if (!message.includes('JSON'))
      expect(await metric('registry_rejected_total')).toBe('registry_rejected_total{reason="invalid"} 1')
  })

  test.each([
    [{}, 'zone'],
    [{ zone: 'z', segments: 'a' }, 'segments'],
    [{ zone: 'z', segments: [''] }, 'segments.0: must be 1 to 255 bytes'],
    [{ zone: 'z', segments: ['a', 'b\u0007'] }, 'segments.1: must not hold control characters'],
    [{ zone: 'z', segments: ['é'.repeat(128)] }, 'segments.0: must be 1 to 255 bytes'],
    [{ zone: 'z', segments: ['GETSEGMENTS'] }, 'segments.0: is reserved'],
    [{ zone: 'z', segments: [1] }, 'segments.0'],
    [{ zone: 'z', segments: ['a'], term: -1 }, 'term'],
    [{ zone: 'z', segments: ['a'], checksum: segmentsChecksum(['b']) }, 'checksum: is not that of the 1 segments sent'],
  ])('the invalid list %j is refused with the reason', async (body, message) => {
    const { ask } = await start()
    const answer = await ask('POST', '/shards/s1/segments', body)

    expect(answer).toMatchObject({ status: 400, json: { error: expect.stringContaining(message) } })
    expect((await ask('GET', '/shards')).json).toEqual({ shards: {} })
  })

  test('lists and bodies have limits, and an oversized request gets an error', async () => {
    const { ask, push, metric } = await start()
    const names = Array.from({ length: REGISTRY_LIMITS.segmentsPerPushMax + 1 }, (_, i) => `segment_${i}`)

    expect((await push('s1', 'z1', names.slice(1))).status).toBe(200)
    expect(await push('s1', 'z1', names)).toMatchObject({
      status: 400,
      json: { error: expect.stringContaining('segments') },
    })
    expect((await ask('POST', '/register', ' '.repeat(65_537))).status).toBe(413)
    expect(
      (await ask('POST', '/shards/s1/segments', ' '.repeat(REGISTRY_LIMITS.segmentsBodyBytesMax + 1))).status,
    ).toBe(413)
    expect(await metric('registry_rejected_total{reason="too_large"}')).toBe(
      'registry_rejected_total{reason="too_large"} 2',
    )
    expect((await ask('GET', '/shards/s1/segments')).json.segments.length).toBe(100_000)
  })

  test('an endless body is refused at the limit, whatever length it announced', async () => {
    const { registry } = await start()
    const socket = connect(registry.port, '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.on('error', () => {})
    const closed = new Promise((resolve) => socket.on('close', resolve))
    socket.write('POST /register HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
    for (let i = 0; i < 80; i++) socket.write(`400\r\n${'x'.repeat(1024)}\r\n`)
    await closed

    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
  })

  test.each([
    ['no HTTP at all\r\n\r\n', 400],
    [`GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
  ])('malformed requests get a response (%#)', async (bytes, status) => {
    const { registry } = await start()
    const socket = connect(registry.port, '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    const closed = new Promise((resolve) => socket.on('close', resolve))
    socket.write(bytes)
    await closed

    expect(answer).toContain(`HTTP/1.1 ${status} `)
    expect(answer).toContain('{"error":')
  })

  test('every response matches its schema', async () => {
    const { get, register, push, ask } = await start()
    await register('router', 'r1', 'z1')
    await register('bridge', 'b1', 'z1', 's1')
    const beat = await register('node', 'n1', 'z1', 's1', {
      role: 'leader',
      term: 3,
      segment_counts: { paris: 2 },
      api_url: 'http://a',
    })
    await push('s1', 'z1', ['paris', 'rome'])
    const contested = await push('s2', 'z2', ['paris', 'oslo'])
    await ask('PUT', '/segments/new', { shard: 's1' })

    expect(registerBody.parse(beat.json)).toMatchObject({
      epoch: expect.stringMatching(/^[0-9a-f]{16}$/),
      heartbeat_timeout_secs: 60,
      ordered_hash: CODECS.orderedHash,
    })
    expect(pushedBody.parse(contested.json)).toEqual({
      accepted: 1,
      conflicts: [{ segment: 'paris', owner_shard: 's1', owner_zone: 'z1' }],
    })
    for (const [path, schema] of [
      ['/codecs', registryCodecsBody],
      ['/versions', versionsBody],
      ['/zones/z1/routers', zoneRoutersBody],
      ['/zones/z1/segments', zoneSegmentsBody],
      ['/zones/z1/shards', zoneShardsBody],
      ['/shards/s1/segments', shardSegmentsBody],
      ['/shards/s1/nodes', shardNodesBody],
      ['/zones', zonesBody],
      ['/shards', shardsBody],
      ['/segments/paris', segmentBody],
      ['/segments/new', segmentBody],
      ['/conflicts', conflictsBody],
      ['/topology', topologyBody],
      ['/ready', fabricReadyBody],
    ] as const) {
      const { status, json } = await get(path)
      expect(status).toBe(200)
      expect(schema.safeParse(json).error, path).toBeUndefined()
    }
    expect((await get('/topology')).json).toMatchObject({
      zones: ['z1', 'z2'],
      shards: { s1: { zone: 'z1', term: 0, nodes: ['n1'], bridges: ['b1'], segments: 3 } },
      nodes: [{ id: 'n1', zone: 'z1', shard: 's1', age_secs: 0, role: 'leader', segment_counts: { paris: 2 } }],
      segments: { paris: 's1', rome: 's1', oslo: 's2', new: 's1' },
      conflicts: [
        {
          segment: 'paris',
          owner_shard: 's1',
          claims: [
            { shard: 's1', zone: 'z1' },
            { shard: 's2', zone: 'z2' },
          ],
        },
      ],
    })
    expect((await get('/segments/paris')).json).toEqual({
      segment: 'paris',
      shard: 's1',
      zone: 'z1',
      claims: [
        { shard: 's1', zone: 'z1' },
        { shard: 's2', zone: 'z2' },
      ],
    })
    expect((await get('/segments/new')).json.reserved_until).toBe('2026-11-21T08:00:00.000Z')
  })

  test('names with any characters are parsed', async () => {
    const { push, get } = await start()
    const names = ['München', 'a/b', 'ü%20', '?&=', '__proto__', '日本']
    await push('__proto__', 'z1', names)

    for (const name of names)
      expect((await get(`/segments/${encodeURIComponent(name)}`)).json).toMatchObject({
        segment: name,
        shard: '__proto__',
      })
    expect((await get('/shards/__proto__/segments')).json.segments.length).toBe(names.length)
  })

  test('a list that the caller already has is not sent again', async () => {
    const { get, push, register } = await start()
    const pushed = await push('s1', 'z1', ['paris'])
    const etag = pushed.headers.get('etag') as string

    const first = await get('/shards/s1/segments')
    expect(first.headers.get('etag')).toBe(etag)
    expect(await get('/shards/s1/segments', { 'If-None-Match': etag })).toMatchObject({ status: 304, text: '' })
    expect((await get('/shards/s1/segments', { 'If-None-Match': `"x", W/${etag}` })).status).toBe(304)
    await push('s1', 'z1', ['paris', 'rome'])
    expect((await get('/shards/s1/segments', { 'If-None-Match': etag })).json.segments).toEqual(['paris', 'rome'])

    const versions = (await get('/versions')).headers.get('etag') as string
    expect((await get('/versions', { 'If-None-Match': versions })).status).toBe(304)
    await register('router', 'r1', 'z1')
    expect((await get('/versions', { 'If-None-Match': versions })).status).toBe(200)
  })

  test('a former leader receives the term it missed', async () => {
    const { push, register, get, metric } = await start()
    await register('node', 'n1', 'z1', 's1')
    await push('s1', 'z1', ['new'], { term: 5 })
    const late = await push('s1', 'z1', ['old'], { term: 4 })

    expect(late.status).toBe(409)
    expect(staleTermBody.parse(late.json)).toEqual({ error: 'stale term', term: 5 })
    expect((await get('/shards/s1/segments')).json.segments).toEqual(['new'])
    expect(await metric('registry_rejected_total')).toBe('registry_rejected_total{reason="stale_term"} 1')
  })

  test('a list from a zone other than that of the nodes is refused', async () => {
    const { push, register } = await start()
    await register('node', 'n1', 'z1', 's1')

    expect(await push('s1', 'z2', ['a'])).toMatchObject({
      status: 409,
      json: { error: 'zone: the nodes of s1 are registered in z1, not in z2' },
    })
  })

  test('with reject a contested list is refused as a whole', async () => {
    const { push, get } = await start({ rejectsConflicts: true })
    await push('s1', 'z1', ['a'])

    expect(await push('s2', 'z1', ['a', 'b'])).toMatchObject({
      status: 409,
      json: { accepted: 1, conflicts: [{ segment: 'a', owner_shard: 's1', owner_zone: 'z1' }] },
    })
    expect((await get('/shards/s2/segments')).status).toBe(404)
  })

  test('a silent component is removed, but not before every component had time for a heartbeat', async () => {
    const { get, register, metric, lines } = await start({ heartbeatTimeoutMs: 1_500, clock: systemClock })
    const startedMs = performance.now()
    await register('node', 'n1', 'z1', 's1')
    await register('node', 'n2', 'z1', 's1')
    expect((await get('/versions')).json.warming).toBe(true)
    const nodes = async () => {
      await register('node', 'n2', 'z1', 's1')
      return (await get('/shards/s1/nodes')).json.nodes
    }

    await eventually(async () => expect(await nodes()).toEqual(['n2']), { timeout: 15_000, interval: 100 })
    expect(performance.now() - startedMs).toBeGreaterThan(1_500)
    expect((await get('/versions')).json.warming).toBe(false)
    const timeouts = 'registry_heartbeat_timeout_total{kind="node"}'
    expect(await metric(timeouts)).toBe(`${timeouts} 1`)
    expect(lines).toContain('removed node n1: no heartbeat in time')
  })

  test('a component that deregisters is removed immediately', async () => {
    const { get, register, ask } = await start()
    await register('bridge', 'b1', 'z1', 's1')

    expect((await ask('DELETE', '/register/bridge/b1')).status).toBe(200)
    expect((await get('/zones/z1/shards')).json.shards).toEqual({})
  })

  test('two processes under one id are counted, and logged once a minute', async () => {
    const { register, metric, lines, clock } = await start()
    for (const instance of ['a', 'b', 'a', 'b', 'a']) await register('node', 'n1', 'z1', 's1', { instance })

    expect(await metric('registry_identity_conflicts_total')).toBe('registry_identity_conflicts_total{kind="node"} 3')
    const warnings = () => lines.filter((line) => line.includes('two processes register as node n1')).length
    expect(warnings()).toBe(1)
    clock.advance(60_000)
    await register('node', 'n1', 'z1', 's1', { instance: 'b' })
    expect(warnings()).toBe(2)
  })

  test('a shard without nodes can be forgotten, and a segment routed to a shard in advance', async () => {
    const { ask, push, register, get } = await start()
    await push('s1', 'z1', ['a'])
    await register('node', 'n1', 'z1', 's1')

    expect(await ask('DELETE', '/shards/s1')).toMatchObject({ status: 409, json: { error: 'shard s1 has live nodes' } })
    expect((await ask('PUT', '/segments/new', { shard: 's1' })).status).toBe(200)
    expect((await get('/zones/z1/segments')).json.segments).toEqual(['a', 'new'])
    expect((await ask('PUT', '/segments/a', { shard: 's9' })).status).toBe(409)
    expect((await ask('PUT', '/segments/other', { shard: 's9' })).status).toBe(404)
    expect((await ask('PUT', '/segments/__codecs__', { shard: 's1' })).json.error).toBe('segment: is reserved')
    expect((await ask('PUT', '/segments/x', {})).json.error).toContain('shard')
    expect((await ask('DELETE', '/segments/new')).status).toBe(200)
    await ask('DELETE', '/register/node/n1')
    expect((await ask('DELETE', '/shards/s1')).status).toBe(200)
    expect((await get('/zones/z1/segments')).json.segments).toEqual([])
  })

  test('a waiting versions request returns on the next change, on another epoch, and on timeout', async () => {
    const { get, register, stop } = await start()
    const { global_version: since, epoch } = (await get('/versions')).json
    const path = `/versions?epoch=${epoch}&since=${since}&wait_secs=`
    let answered = false
    const waiting = get(`${path}60`).then((answer) => {
      answered = true
      return answer
    })
    expect((await get(`${path}1`)).json.global_version).toBe(since)
    expect(answered).toBe(false)

    await register('router', 'r1', 'z1')
    const next = (await waiting).json.global_version
    expect(next).toBeGreaterThan(since)
    expect((await get(`${path}60`)).json.global_version).toBe(next)
    expect((await get(`/versions?epoch=other&since=${next}&wait_secs=60`)).status).toBe(200)
    for (const wrong of ['61', '-1', 'x', '1e1']) expect((await get(path + wrong)).status).toBe(400)

    // A shutdown does not leave them waiting.
    const last = get(`/versions?epoch=${epoch}&since=${next}&wait_secs=60`)
    await eventually(async () => expect((await get('/health')).status).toBe(200))
    await stop()
    expect((await last).status).toBe(200)
  })

  test('a waiting request is dropped when its caller disconnects', async () => {
    const { base, get, metric } = await start()
    const { global_version: since } = (await get('/versions')).json
    const gone = new AbortController()
    const waiting = fetch(`${base}/versions?since=${since}&wait_secs=60`, { signal: gone.signal }).catch(() => 'gone')
    await get('/health')
    gone.abort()

    expect(await waiting).toBe('gone')
    await eventually(async () =>
      expect(await metric('registry_requests_total{endpoint="/versions"}')).toBe(
        'registry_requests_total{endpoint="/versions"} 2',
      ),
    )
  })

  test('after a restart epoch and versions are unchanged, and every component has a fresh heartbeat', async () => {
    const one = await start()
    await one.register('node', 'n1', 'z1', 's1')
    await one.push('s1', 'z1', ['a', 'b'], { term: 2 })
    await one.push('s2', 'z1', ['b'])
    await one.ask('PUT', '/segments/new', { shard: 's2' })
    const before = (await one.get('/versions')).json
    await one.stop()

    const two = await start({}, one.place)
    expect((await two.get('/versions')).json).toEqual(before)
    expect((await two.get('/shards/s1/nodes')).json.nodes).toEqual(['n1'])
    expect((await two.get('/segments/b')).json.claims).toEqual([
      { shard: 's1', zone: 'z1' },
      { shard: 's2', zone: 'z1' },
    ])
    expect((await two.get('/segments/new')).json).toMatchObject({
      shard: 's2',
      reserved_until: '2026-11-21T08:00:00.000Z',
    })
    expect((await two.push('s1', 'z1', ['a'], { term: 1 })).status).toBe(409)
  })

  test.each([
    ['POST', '/register', NODE, { none: 401, wrong: 401, old: 401, mon: 403, cli: 403, comp: 200, adm: 200 }],
    ['POST', '/shards/s1/segments', { zone: 'z1', segments: [] }, { none: 401, mon: 403, comp: 200, adm: 200 }],
    ['DELETE', '/register/node/x', undefined, { none: 401, cli: 403, comp: 404, adm: 404 }],
    ['PUT', '/segments/x', { shard: 's1' }, { none: 401, comp: 403, mon: 403, bound: 403, adm: 404 }],
    ['DELETE', '/segments/x', undefined, { none: 401, comp: 403, adm: 404 }],
    ['DELETE', '/shards/x', undefined, { none: 401, comp: 403, adm: 404 }],
    ['GET', '/topology', undefined, { none: 401, wrong: 401, mon: 200, cli: 200, comp: 200, adm: 200 }],
    ['GET', '/versions', undefined, { none: 401, mon: 200 }],
    ['GET', '/metrics', undefined, { none: 401, mon: 200 }],
    ['GET', '/health', undefined, { none: 200, wrong: 200 }],
    ['GET', '/ready', undefined, { none: 200 }],
  ])('%s %s requires a role', async (method, path, body, expected) => {
    const { ask } = await start({ auth: AUTH, publicRead: false })

    for (const [token, status] of Object.entries(expected)) {
      const headers: Record<string, string> = token === 'none' ? {} : { Authorization: `Bearer ${token}` }
      const answer = await ask(method, path, body, headers)
      expect(answer.status, token).toBe(status)
      if (status === 401) expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
  })

  test('a token that has ended is refused with its end, and /ready names it for 14 days without being less ready', async () => {
    const { ask } = await start({ auth: AUTH })
    const ended = 'ended at 2026-11-20T07:59:59.000Z'

    const refused = await ask('POST', '/register', NODE, { Authorization: 'Bearer old' })
    expect([refused.status, refused.json.error]).toEqual([401, `the token ${ended}`])
    const ready = await ask('GET', '/ready')
    expect([ready.status, ready.json.ready]).toEqual([200, true])
    expect(ready.json.reasons).toMatchObject([
      { name: 'certificate_ends', message: `the token of role admin ${ended}` },
    ])
  })

  test('with public reads a GET needs no token, but a change does', async () => {
    const { ask, metric } = await start({ auth: AUTH })

    expect((await ask('GET', '/topology')).status).toBe(200)
    expect((await ask('POST', '/register', NODE)).status).toBe(401)
    expect((await ask('POST', '/register', NODE, { Authorization: 'Basic YTpi' })).status).toBe(401)
    expect(await metric('registry_rejected_total')).toBe('registry_rejected_total{reason="unauthorized"} 2')
  })

  test('a token scoped to a shard and a zone cannot change others', async () => {
    const { ask } = await start({ auth: AUTH })
    const as = (token: string, method: string, path: string, body?: unknown) =>
      ask(method, path, body, { Authorization: `Bearer ${token}` })

    expect((await as('bound', 'POST', '/register', NODE)).status).toBe(200)
    expect((await as('bound', 'POST', '/register', { ...NODE, id: 'n2', shard: 's2' })).json.error).toBe(
      'the token is for shard s1',
    )
    expect((await as('bound', 'POST', '/register', { ...NODE, id: 'n2', zone: 'z2' })).json.error).toBe(
      'the token is for zone z1',
    )
    expect((await as('bound', 'POST', '/register', { kind: 'router', id: 'r1', zone: 'z1' })).status).toBe(403)
    expect((await as('zoned', 'POST', '/register', { kind: 'router', id: 'r1', zone: 'z1' })).status).toBe(200)
    expect((await as('bound', 'POST', '/shards/s2/segments', { zone: 'z1', segments: [] })).status).toBe(403)
    expect((await as('bound', 'POST', '/shards/s1/segments', { zone: 'z1', segments: [] })).status).toBe(200)

    // Nor may it take over or remove a node that is registered elsewhere.
    expect((await as('comp', 'POST', '/register', { ...NODE, id: 'n9', shard: 's9' })).status).toBe(200)
    expect((await as('bound', 'POST', '/register', { ...NODE, id: 'n9' })).status).toBe(403)
    expect((await as('bound', 'DELETE', '/register/node/n9')).status).toBe(403)
    expect((await as('bound', 'DELETE', '/register/node/n1')).status).toBe(200)
  })

  test('an address that guesses tokens is limited, but a valid token from there is not', async () => {
    const { ask } = await start({ auth: AUTH })
    const guess = (token: string) => ask('POST', '/register', NODE, { Authorization: `Bearer ${token}` })
    for (let i = 0; i < 20; i++) expect((await guess(`guess${i}`)).status).toBe(401)

    const answer = await guess('one more')
    expect(answer.status).toBe(429)
    expect(answer.headers.get('retry-after')).toBe('60')
    expect((await guess('adm')).status).toBe(200)
  })

  test('without an auth file web pages cannot change anything', async () => {
    const { ask } = await start()

    expect((await ask('POST', '/register', NODE, { Origin: 'http://evil.example' })).status).toBe(403)
    expect((await ask('GET', '/versions', undefined, { Origin: 'http://evil.example' })).status).toBe(200)
  })

  test('the metrics report the registered components', async () => {
    const { register, push, get, metric } = await start()
    await register('router', 'r1', 'z1')
    await register('node', 'n1', 'z2', 's1')
    await push('s1', 'z2', ['a'])
    await push('s2', 'z3', ['a'])

    for (const line of [
      'registry_registered_routers 1',
      'registry_registered_bridges 0',
      'registry_registered_nodes 1',
      'registry_registered_zones 3',
      'registry_segment_conflicts 1',
      'registry_storage_up 1',
      'registry_segment_updates_total{shard="s1"} 1',
      'registry_requests_total{endpoint="/register"} 2',
      'registry_component_age_seconds{kind="node",id="n1"} 0',
    ])
      expect(await metric(line.slice(0, line.lastIndexOf(' '))), line).toBe(line)
    expect((await get('/metrics')).headers.get('content-type')).toBe('text/plain; version=0.0.4')
  })

  test('a HEAD is a GET without its body, and every response names the server', async () => {
    const { ask } = await start()
    const answer = await ask('HEAD', '/versions')

    expect(answer).toMatchObject({ status: 200, text: '' })
    expect(answer.headers.get('server')).toBe('vacancy/0.1.0')
  })

  test('every posted body gets a response and leaves a state that can be stored and loaded', async () => {
    const { ask, get, stop, place } = await start()
    const seed = Number(process.env['VACANCY_SEED'] ?? Date.now() % 2 ** 31)
    const word = fc.oneof(
      fc.constantFrom('node', 'bridge', 's1', 'z1', '', '__proto__'),
      fc.string({ unit: 'binary', maxLength: 8 }),
    )
    const value = fc.oneof({ weight: 3, arbitrary: word }, fc.jsonValue({ maxDepth: 2 }))
    const fields = [
      'kind',
      'id',
      'zone',
      'shard',
      'segments',
      'term',
      'checksum',
      'instance',
      'segment_counts',
    ] as const
    const one = fc.record(
      Object.fromEntries(fields.map((name) => [name, name === 'segments' ? fc.oneof(value, fc.array(word)) : value])),
      { requiredKeys: ['kind', 'id', 'zone', 'segments'] },
    )

    for (const body of fc.sample(fc.oneof(one, fc.jsonValue()), { seed, numRuns: tries(300) })) {
      for (const path of ['/register', '/shards/s1/segments', '/shards/__proto__/segments']) {
        const { status } = await ask('POST', path, body)
        expect([200, 400, 409], `seed ${seed}: ${path} ${JSON.stringify(body)}`).toContain(status)
      }
    }
    const [topology, versions] = [(await get('/topology')).json, (await get('/versions')).json]
    await stop()
    const again = await start({}, place)
    expect((await again.get('/versions')).json).toEqual(versions)
    expect((await again.get('/topology')).json.segments).toEqual(topology.segments)
  })
})
