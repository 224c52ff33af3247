/** The playground with a real shard and a real control plane, without substitutes. */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { connect } from '@vacancy/client'
import { dayOf, formatDay } from '@vacancy/shared'
import type { PlaygroundAnswer, QueryAnswer, ReplicasAnswer } from '@vacancy/shared/contract'
import { curlOf, typescriptOf } from '@vacancy/shared/snippets'
import { ADMIN_TOKEN } from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Caller, personOf, startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'
import { startShard, type TestShard } from '../testing/nodes.ts'

const run = promisify(execFile)
const DATES = [1, 2].map((day) => formatDay(dayOf(Date.now()) + day)) as [string, string]
/** Characters with a special meaning in shells or TypeScript. */
const SEGMENT = `it's "Café" $HOME \\ 'x'`
const SEARCH = { segment: SEGMENT, roomType: 'double', dates: DATES, finalPrice: 20_000, explain: 1 }
const NIGHT = { propertyId: 'h1', roomType: 'double', date: DATES[0] }

let shard: TestShard
let plane: TestControlPlane
let viewer: Caller
let operator: Caller
let program: Caller

beforeAll(async () => {
  shard = await startShard({ nodes: ['n1', 'n2', 'n3'], voters: ['n1', 'n2', 'n3'] })
  const nodes = shard.nodes().map(({ host, tcpPort }) => `${host}:${tcpPort}`)
  const client = await connect({ nodes, token: ADMIN_TOKEN, deadlineMs: 20_000 })
  for (const n of [1, 2, 3]) {
    const about = {
      area: 'a',
      propertyType: 'hotel',
      category: 'c',
      stars: n,
      latitude: 48,
      longitude: 16,
      amenities: [],
    }
    await client.setProperty({ segment: SEGMENT, propertyId: `h${n}`, ...about })
    for (const date of DATES)
      await client.setPackage({ propertyId: `h${n}`, roomType: 'double', date, availability: n, finalPrice: n * 9_000 })
  }
  await client.close()
  plane = await startTestControlPlane({
    config: {
      registry: shard.registryUrl,
      resolver: shard.resolverUrl,
      nodeMonitoringToken: ADMIN_TOKEN,
      nodeClientToken: ADMIN_TOKEN,
      nodeAdminToken: ADMIN_TOKEN,
    },
  })
  viewer = await plane.signIn('viewer')
  operator = await plane.signIn('operator')
  program = await plane.token('client')
  await happens('the control plane knows the three nodes', shard.nodes(), async () => {
    const { shard: found } = await start()
    return found?.nodes.filter(({ tcp, role }) => tcp !== null && role !== 'unknown').length === 3
  })
}, 180_000)
afterAll(async () => {
  await plane?.stop()
  await shard?.close()
})

async function start(): Promise<PlaygroundAnswer> {
  return (await viewer.call('GET', '/api/v1/playground')).body
}

async function ask(body: object, caller = viewer): Promise<QueryAnswer> {
  const answer = await caller.call('POST', '/api/v1/query', body)
  expect(answer.status, answer.text).toBe(200)
  return answer.body
}

test('the copied TypeScript runs unchanged', async () => {
  const nodes = (await start()).shard?.nodes.flatMap(({ tcp }) => tcp ?? []) ?? []
  const code = typescriptOf('SEARCHAVAIL', SEARCH, nodes)

  const { stdout } = await run(process.execPath, ['--input-type=module-typescript', '-e', code], {
    cwd: new URL('../..', import.meta.url),
    env: { PATH: process.env['PATH'], VACANCY_NODE_TOKEN: ADMIN_TOKEN },
  })

  const shown = await ask({ command: 'SEARCHAVAIL', fields: SEARCH })
  expect(shown.count).toBe(2)
  expect(JSON.parse(stdout).properties).toEqual(shown.result['properties'])
})

test('the copied curl runs unchanged', async () => {
  const token = program.headers['authorization']?.replace('Bearer ', '')
  const code = curlOf(plane.url, { shard: 's1', command: 'SEARCHAVAIL', fields: SEARCH })

  const { stdout } = await run('/bin/sh', ['-c', code], { env: { PATH: process.env['PATH'], VACANCY_TOKEN: token } })

  const shown = await ask({ command: 'SEARCHAVAIL', fields: SEARCH })
  expect(JSON.parse(stdout).result.properties).toEqual(shown.result['properties'])
})

test('a token session has a history and saved results like a person; API calls with the token have neither', async () => {
  const token = program.headers['authorization']?.replace('Bearer ', '')
  const browser = personOf(plane.url, await plane.anonymous().call('POST', '/api/v1/session/token', { token }))
  const request = { command: 'SEARCHAVAIL', fields: SEARCH }

  const answer = await ask(request, browser)
  expect((await ask(request, program)).seal).toBe('')

  const saved = await browser.call('POST', '/api/v1/saved-results', { fields: SEARCH, answer, browserMicros: 1_500 })
  expect(saved.status, saved.text).toBe(201)
  expect((await browser.call('GET', '/api/v1/history')).body.entries).toHaveLength(1)
})

test('a result is saved unchanged and readable by others; a modified result is refused', async () => {
  const request = { command: 'SEARCHAVAIL', fields: SEARCH }
  const answer = await ask(request)
  const body = { fields: SEARCH, answer, browserMicros: 1_500, repeats: { runs: [1, 2.5], failed: 0, wanted: 10 } }

  const saved = await viewer.call('POST', '/api/v1/saved-results', body)
  expect(saved.status, saved.text).toBe(201)
  const seen = (await operator.call('GET', `/api/v1/saved-results/${saved.body.id}`)).body
  const { seal: _, ...rows } = answer
  expect(seen).toMatchObject({ mine: false, fields: SEARCH, browserMicros: 1_500, repeats: body.repeats })
  expect(seen.answer).toEqual(rows)

  const dearer = JSON.parse(JSON.stringify(answer).replace(/"finalPrice":\d+/, '"finalPrice":1')) as QueryAnswer
  expect(dearer).not.toEqual(answer)
  for (const forged of [
    { ...body, answer: dearer },
    { ...body, answer: { ...answer, node: 'n9' } },
    { ...body, fields: { ...SEARCH, availability: 2 } },
    { ...body, node: 'n1' },
    { ...body, answer: { ...answer, seal: '' } },
  ]) {
    const refused = await viewer.call('POST', '/api/v1/saved-results', forged)
    expect(refused.status, refused.text).toBe(409)
    expect(refused.body.code).toBe('not-this-answer')
  }
  expect((await operator.call('POST', '/api/v1/saved-results', body)).status).toBe(409)
  expect((await ask(request, program)).seal).toBe('')
  expect((await ask({ ...request, keep: false })).seal).toBe('')
})

test('reads go to the requested node, by default not to the leader; writes find the leader', async () => {
  const leader = await shard.leader()
  const read = { command: 'PROPROOMLIST', fields: { propertyId: 'h1' } }

  expect((await ask(read)).node).not.toBe(leader.id)
  for (const { id } of shard.nodes()) expect((await ask({ ...read, node: id })).node).toBe(id)
  const written = await ask({ command: 'SETROOMAVL', fields: { ...NIGHT, amount: 5 }, write: true }, operator)

  expect(written).toMatchObject({ node: leader.id, role: 'leader', result: { availability: 5 } })
  const admin = await plane.signIn('admin')
  const { entries } = (await admin.call('GET', '/api/v1/audit?action=query.write')).body
  expect(entries.map(({ actor, target, result }: { [key: string]: string }) => [actor, target, result])).toEqual([
    [operator.me?.person.name, 's1: SETROOMAVL', 'done'],
    [operator.me?.person.name, 's1: SETROOMAVL', 'asked'],
  ])
})

test('the access levels of the routes are enforced over HTTP', async () => {
  const write = { command: 'SETROOMAVL', fields: { ...NIGHT, amount: 1 }, write: true }
  const status = async (caller: Caller, body: object = write) =>
    (await caller.call('POST', '/api/v1/query', body)).status

  expect(await status(plane.anonymous())).toBe(401)
  expect(await status(viewer)).toBe(403)
  expect(await status(program)).toBe(403)
  expect(await status(await plane.token('monitoring'), { command: 'GETSEGMENTS', fields: {} })).toBe(403)
  expect(await status(program, { command: 'GETSEGMENTS', fields: {} })).toBe(200)
  expect(await status(operator, { command: 'DELSEGMENT', fields: { segment: SEGMENT }, write: true })).toBe(400)
  expect((await ask({ command: 'GETSEGMENTS', fields: {} })).count).toBe(1)
})

test('every replica has the same result, and a silent one is listed without delaying the others', {
  timeout: 240_000,
}, async () => {
  const body = { command: 'SEARCHAVAIL', fields: SEARCH }
  const replicas = async (): Promise<ReplicasAnswer> => (await viewer.call('POST', '/api/v1/query/replicas', body)).body

  const equal = await replicas()
  expect(equal).toMatchObject({ equal: true, answered: 3, queried: 3, differences: [] })
  expect(new Set(equal.nodes.map(({ hash }) => hash)).size).toBe(1)
  expect(new Set(equal.nodes.map(({ index }) => index)).size).toBe(1)

  const leader = await shard.leader()
  const killed = shard.nodes().find(({ id }) => id !== leader.id) as ReturnType<TestShard['node']>
  await killed.kill()

  const partial = await happens('the killed node is reported', shard.nodes(), async () => {
    const answer = await replicas()
    return answer.answered === 2 && answer
  })
  expect(partial).toMatchObject({ equal: true, queried: 3 })
  expect(partial.nodes.find(({ node }) => node === killed.id)?.error).not.toBe('')
  expect((await ask(body)).count).toBe(2)
})
