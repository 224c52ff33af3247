import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { turnableClock } from '@vacancy/shared'
import { readResolverAnswer } from '@vacancy/shared/contract'
import { eventually } from '@vacancy/testkit/until'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { parseMap, parseTable, type ResolverOptions, startResolver } from './resolver.ts'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-resolver-'))
  file = path.join(folder, 'resolver.yml')
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

const TABLE = `shards:
  shard1: { node-0-0: 127.0.1.1, node-0-1: 127.0.1.2 }
  shard2: { node-0-0: { hostname: 127.0.1.3, port: 7000, api_port: 8000 } }
bridges: { bridge-0: 127.0.2.1 }
routers: { router-zone-0: "127.0.3.1:9000", v6: "[::1]:9000" }
`

async function start(options: Partial<ResolverOptions> = {}) {
  const lines: string[] = []
  const note = (_fields: object, text: string) => {
    lines.push(text)
  }
  const resolver = await startResolver({
    host: '127.0.0.1',
    port: 0,
    file: undefined,
    map: new Map(),
    echoes: false,
    format: 'text',
    version: '0.1.0',
    config: {},
    clock: turnableClock(0),
    log: { debug: note, info: note, warn: note, error: note },
    drainMs: 2_000,
    lookMs: 5,
    ...options,
  })
  onTestFinished(resolver.stop)
  const ask = async (where: string, method = 'GET') => {
    const answer = await fetch(`http://127.0.0.1:${resolver.port}${where}`, { method })
    return { status: answer.status, text: await answer.text(), headers: answer.headers }
  }
  return { ask, lines, resolver }
}

test('ids of a file are answered with their hosts, as bare text that existing callers read', async () => {
  writeFileSync(file, TABLE)
  const { ask, lines } = await start({ file })

  for (const [where, host] of [
    ['/shards/shard1/nodes/node-0-0', '127.0.1.1'],
    ['/shards/shard1/nodes/node%2D0-1', '127.0.1.2'],
    ['/shards/shard2/nodes/node-0-0', '127.0.1.3:7000'],
    ['/bridges/bridge-0', '127.0.2.1'],
    ['/routers/router-zone-0', '127.0.3.1:9000'],
    ['/routers/v6', '[::1]:9000'],
  ] as const)
    expect(await ask(where), where).toMatchObject({ status: 200, text: host })
  const answer = await ask('/bridges/bridge-0')
  expect(answer.headers.get('content-type')).toContain('text/plain')
  expect(answer.headers.get('cache-control')).toBe('max-age=5')
  expect(lines[0]).toContain('requires no token')
})

test.each([
  '/shards/shard1/nodes/bridge-0',
  '/shards/shard3/nodes/node-0-0',
  '/bridges/node-0-0',
  '/routers/__proto__',
])('%s is unknown', async (where) => {
  writeFileSync(file, TABLE)
  const { ask } = await start({ file })

  expect(await ask(where)).toMatchObject({ status: 404, text: '{"error":"unknown id"}' })
})

test('as JSON the answer has the ports apart, and our reader takes both forms', async () => {
  writeFileSync(file, TABLE)
  const { ask } = await start({ file, format: 'json' })

  const node = await ask('/shards/shard2/nodes/node-0-0')
  expect(JSON.parse(node.text)).toEqual({ hostname: '127.0.1.3', port: 7000, api_port: 8000 })
  expect(readResolverAnswer(node.headers.get('content-type') as string, node.text)).toEqual({
    host: '127.0.1.3',
    port: 7000,
    apiPort: 8000,
  })
})

test('a flat map serves all three paths and goes over the file; with echo an id is its own host', async () => {
  writeFileSync(file, TABLE)
  const { ask } = await start({ file, map: parseMap(['bridge-0=10.0.0.1', 'x=h:5']), echoes: true })

  for (const where of ['/shards/any/nodes/x', '/bridges/x', '/routers/x']) expect((await ask(where)).text).toBe('h:5')
  expect((await ask('/bridges/bridge-0')).text).toBe('10.0.0.1')
  expect((await ask('/bridges/container-7')).text).toBe('container-7')
})

test('an id without an entry has the host that the pattern of its kind makes of it', async () => {
  const patterns = `{ nodes: "{id}.{shard}.hotels.svc", bridges: "{id}.bridges.svc:9001" }`
  writeFileSync(file, `${TABLE}patterns: ${patterns}\n`)
  const { ask } = await start({ file })

  expect((await ask('/shards/shard1/nodes/node-0-0')).text).toBe('127.0.1.1')
  expect((await ask('/shards/shard1/nodes/node-7')).text).toBe('node-7.shard1.hotels.svc')
  expect((await ask('/bridges/b7')).text).toBe('b7.bridges.svc:9001')
  for (const where of ['/routers/r7', '/bridges/a.example%0A', '/bridges/a.example%3A80', '/shards/a%20b/nodes/n'])
    expect(await ask(where), where).toMatchObject({ status: 404 })
})

test('health, readiness, the table and the metrics are served', async () => {
  const { ask } = await start({ map: parseMap(['x=h:5']) })

  for (const method of ['GET', 'POST'])
    expect(await ask('/health', method)).toMatchObject({ status: 200, text: '{"status":"ok"}' })
  expect((await ask('/ready')).status).toBe(200)
  expect(JSON.parse((await ask('/')).text)).toEqual({
    ...{ nodes: {}, bridges: {}, routers: {}, any: { x: 'h:5' } },
    patterns: {},
  })
  await ask('/bridges/none')
  const metrics = (await ask('/metrics')).text
  expect(metrics).toContain('resolver_requests_total{endpoint="/bridges/{id}",status="404"} 1')
  expect(metrics).toContain('resolver_entries{kind="any"} 1')
})

test('a changed file is reloaded; an invalid one is reported and the old table stays', async () => {
  writeFileSync(file, TABLE)
  const { ask, lines } = await start({ file })
  writeFileSync(file, 'bridges: { bridge-0: 10.1.1.1, more: 10.1.1.2 }\n')
  await eventually(async () => expect((await ask('/bridges/more')).text).toBe('10.1.1.2'))

  writeFileSync(file, 'bridges: [1]\n')
  await eventually(() => expect(lines).toContain('the table changed but cannot be used; the old one stays'))
  expect((await ask('/bridges/bridge-0')).text).toBe('10.1.1.1')
  expect((await ask('/metrics')).text).toContain('resolver_file_errors_total 1')
})

test.each([
  ['shards: [1]', 'file.yml:1: shards: must be a mapping of ids'],
  ['shards: { s: 5 }', 'file.yml:1: shards: s: must be a mapping of ids'],
  ['bridges: { b: 5 }', 'file.yml:1: bridges: b: must be host'],
  ['bridges: { b: "two words" }', 'file.yml:1: bridges: b: must be host'],
  ['bridges: { b: { port: 5 } }', 'file.yml:1: bridges: b: must be host'],
  ['bridges: { b: { hostname: a, port: 0 } }', 'file.yml:1: bridges: b: must be host'],
  ['nodes: {}', 'file.yml:1: nodes: the file has shards, bridges, routers and patterns'],
  [
    'patterns: { node: "{id}.svc" }',
    'file.yml:1: patterns: node: there are nodes, bridges, routers; did you mean nodes?',
  ],
  ['patterns: { nodes: a.svc }', 'file.yml:1: patterns: nodes: must be a host with {id}, which may have {shard}'],
  ['patterns: { nodes: "{id}.{zone}.svc" }', 'file.yml:1: patterns: nodes: must be a host'],
  ['patterns: { bridges: "{id}.{shard}.svc" }', 'file.yml:1: patterns: bridges: must be a host with {id}'],
  ['patterns: { routers: "{id}. svc" }', 'file.yml:1: patterns: routers: must be a host with {id}'],
  ['a: [', 'file.yml:'],
])('a table %s is refused: %s', (source, message) => {
  expect(() => parseTable(source, 'file.yml')).toThrow(message)
})

test('an empty table is one', () => {
  expect(parseTable('shards:\n', 'file.yml').nodes.size).toBe(0)
})

test.each(['x', '=h', 'x=', 'x=a b'])('a pair %j is refused', (pair) => {
  expect(() => parseMap([pair])).toThrow('is not id=host')
})
