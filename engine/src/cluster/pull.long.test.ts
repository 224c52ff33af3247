/** Nodes download a snapshot over HTTP: a running shard loads it, and empty nodes found their shard with it. */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { NodeCoverage, NodeStatus } from '@vacancy/shared/contract'
import { dateIn, getText, runVacancy, TEST_CODECS } from '@vacancy/testkit/node'
import {
  ADMIN_TOKEN,
  infoOf,
  leaderOf,
  openShard,
  type Shard,
  type ShardNode,
  sameDigest,
} from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'

// A test starts several processes, on two cores that others use as well.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const HOTELS = 300
const NIGHTS = 5
const PULL_TOKEN = 'for-one-snapshot'

let shard: Shard
let server: Server
let url: string
let file: Buffer
let digest: string
/** Responses are cut after this many bytes; 0: never. */
let cutAfter = 0
const ranges: string[] = []

beforeAll(async () => {
  shard = await openShard()
  shard.startRegistry()
  shard.startResolver()
  const folder = join(shard.folder, 'built')
  mkdirSync(folder)
  writeFileSync(join(folder, 'codecs.yml'), `rate_features:\n${TEST_CODECS.map((codec) => `  - ${codec}\n`).join('')}`)
  const hotels = Array.from({ length: HOTELS }, (_, i) => `hotel_${i}`)
  writeFileSync(
    join(folder, 'properties.csv'),
    hotels.map((id, i) => `${id},segment_${i % 3},valley,hotel,standard,3,47,11,wifi\n`).join(''),
  )
  const nights = Array.from({ length: NIGHTS }, (_, i) => dateIn(i + 1))
  writeFileSync(
    join(folder, 'packages.csv'),
    hotels.map((id) => nights.map((date) => `${id},double,${date},3,120,breakfast\n`).join('')).join(''),
  )
  const { code, output } = await runVacancy(['build-snapshot', '--shard-id', 'shard-1', '--input-path', folder])
  if (code !== 0) throw new Error(output)
  digest = /snapshot ([0-9a-f]{64})/.exec(output)?.[1] ?? ''
  file = readFileSync(join(folder, 'seed.snapshot'))
  server = createServer((request, response) => {
    if (request.headers.authorization !== `Bearer ${PULL_TOKEN}`) return void response.writeHead(401).end()
    const range = request.headers.range ?? ''
    ranges.push(range)
    const start = Number(/^bytes=(\d+)-$/.exec(range)?.[1] ?? 0)
    const rest = file.subarray(start)
    const head = { 'content-length': rest.length, 'content-range': `bytes ${start}-${file.length - 1}/${file.length}` }
    response.writeHead(start > 0 ? 206 : 200, head)
    if (cutAfter === 0) return void response.end(rest)
    response.write(rest.subarray(0, cutAfter), () => setTimeout(() => response.destroy(), 500))
    cutAfter = 0
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/snapshot`
})
afterEach(() => Promise.all(shard.running().map((node) => node.kill())))
afterAll(async () => {
  server.close()
  await shard.close()
})

let folders = 0
function newShard() {
  const folder = join(shard.folder, `shard-${++folders}`)
  return {
    folder: (name: string) => join(folder, name),
    start: (name: string) => shard.start(name, { dataDir: join(folder, name) }),
  }
}

async function load(node: ShardNode, body: object): Promise<[number, string]> {
  const response = await fetch(`http://${node.host}:${node.apiPort}/cluster/load`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    body: JSON.stringify(body),
  })
  return [response.status, await response.text()]
}

async function statusOf(node: ShardNode): Promise<NodeStatus> {
  const [, body] = await getText(node, '/status')
  return JSON.parse(body) as NodeStatus
}

async function holdsAll(node: ShardNode): Promise<boolean> {
  const [status, body] = await getText(node, '/coverage')
  if (status !== 200) return false
  const { segments, packages } = JSON.parse(body) as NodeCoverage
  return (
    packages === HOTELS * NIGHTS && segments.every(({ packages: days }) => days.every((each) => each === HOTELS / 3))
  )
}

test('a running shard downloads a snapshot through its leader, resumes after a cut, and all nodes serve it', async () => {
  const { start, folder } = newShard()
  for (const name of shard.voters) start(name)
  const leader = await leaderOf(shard)
  cutAfter = Math.floor(file.length / 2)
  ranges.length = 0

  expect(await load(leader, { url, digest, token: PULL_TOKEN })).toEqual([202, 'load in progress'])

  await happens('all nodes hold it', shard.running(), async () =>
    (await Promise.all(shard.running().map(holdsAll))).every(Boolean),
  )
  await sameDigest(shard.running())
  expect((await statusOf(leader)).cluster?.pull).toMatchObject({ digest, state: 'asked', bytes_done: file.length })
  expect(ranges).toEqual(['', expect.stringMatching(/^bytes=[1-9]\d*-$/)])
  expect(readdirSync(join(folder(leader.name), 'pulled'))).toEqual([])
  const [, first] = await getText(leader, '/coverage?limit=2')
  expect(JSON.parse(first)).toMatchObject({
    more: true,
    window: { from: dateIn(1), to: dateIn(NIGHTS) },
    segments: [{ name: 'segment_0' }, { name: 'segment_1' }],
  })
  const [, rest] = await getText(leader, '/coverage?limit=2&after=segment_1')
  expect(JSON.parse(rest)).toMatchObject({ more: false, segments: [{ name: 'segment_2', properties: HOTELS / 3 }] })

  expect(await load(leader, { url, digest })).toEqual([202, 'load in progress'])
  await happens('the download fails without its token', [leader], async () => {
    const { cluster } = await statusOf(leader)
    return cluster?.pull?.state === 'failed' && cluster.pull.error === 'the server returned 401'
  })
  expect(await load(leader, { url: 'file:///etc/passwd', digest })).toEqual([400, expect.stringContaining('http')])
})

test('two of three empty nodes found the shard with a downloaded snapshot; the third receives it', async () => {
  const { start } = newShard()
  const waiting = [start('node-1'), start('node-2')]
  await happens('they wait for the third', waiting, async () => {
    const infos = await Promise.all(waiting.map(infoOf))
    return infos.every(({ bootstrap }) => bootstrap?.why.startsWith('2 of 3 initial voters report that they are empty'))
  })

  for (const node of waiting)
    expect(await load(node, { url, digest, token: PULL_TOKEN })).toEqual([202, 'load in progress'])
  await happens('both report that they hold back', waiting, async () => {
    const infos = await Promise.all(waiting.map(infoOf))
    return infos.every(({ bootstrap }) => bootstrap?.why.includes('is silent'))
  })
  const third = start('node-3')

  await leaderOf(shard)
  await happens('all nodes hold it', shard.running(), async () =>
    (await Promise.all(shard.running().map(holdsAll))).every(Boolean),
  )
  await sameDigest(shard.running())
  // The first two founded the shard without it: it joined as a new member.
  await happens('all three are voters', shard.running(), async () => {
    const { members } = await infoOf(third)
    return members.voters.join() === 'node-1,node-2,node-3'
  })
})
