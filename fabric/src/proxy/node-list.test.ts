import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { shardNodesBody } from '@vacancy/shared/contract'
import { openHttpCaller } from '@vacancy/shared/node'
import { systemSchedule } from '@vacancy/shared/schedule'
import { afterEach, expect, test } from 'vitest'
import { keepingLog } from '../testing/http.ts'
import { type NodeListOptions, openNodeList, parseNodeList } from './node-list.ts'

const closing: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

function open(from: NodeListOptions['from']) {
  const log = keepingLog()
  const list = openNodeList({ seedIds: ['node-1'], from, refreshMs: 10, schedule: systemSchedule, log })
  closing.push(list.close)
  const find = (id: string) => list.resolver.find({ kind: 'node', shard: '', id })
  return { ...list, find }
}

test('a list in YAML or JSON, with the API port or without', () => {
  const yaml = 'nodes:\n  - node_id: node-1\n    addr: 10.0.0.1\n  - {node_id: node-2, addr: "::1", port: 81}\n'
  const json = '{"nodes":[{"node_id":"node-1","addr":"10.0.0.1"},{"node_id":"node-2","addr":"::1","port":81}]}'

  for (const text of [yaml, json]) {
    expect([...parseNodeList(text, 'x')]).toEqual([
      ['node-1', { host: '10.0.0.1' }],
      ['node-2', { host: '::1', apiPort: 81 }],
    ])
  }
})

test.each([
  ['', 'x: nodes:'],
  ['{', 'x:1:'],
  ['nodes: 5', 'x: nodes:'],
  ['nodes: [{node_id: a}]', 'x: nodes.0.addr:'],
  ['nodes: [{node_id: a, addr: "b/c"}]', 'x: nodes.0.addr:'],
  ['nodes: [{node_id: a, addr: b, port: 0}]', 'x: nodes.0.port:'],
  ['nodes: [{node_id: a, addr: b, port: "80"}]', 'x: nodes.0.port:'],
  [`nodes: [${'{node_id: a, addr: b},'.repeat(1_001)}]`, 'x: nodes:'],
])('%j is refused', (text, reason) => {
  expect(() => parseNodeList(text, 'x')).toThrow(reason)
})

test('a file is followed, and one that cannot be used changes nothing', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-nodes-'))
  closing.push(() => rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'discovery.yml')
  const list = open({ kind: 'static', file })

  expect(await list.registry.get('', shardNodesBody)).toMatchObject({ kind: 'ok', body: { nodes: ['node-1'] } })
  expect(await list.find('node-1')).toMatchObject({ kind: 'failed', reason: expect.stringContaining('ENOENT') })
  writeFileSync(file, 'nodes: [{node_id: node-1, addr: a}]')
  await expect.poll(() => list.find('node-1')).toEqual({ kind: 'found', address: { host: 'a' } })
  expect(await list.find('node-2')).toMatchObject({ kind: 'unknown' })
  writeFileSync(file, 'nodes: [{node_id: node-1, addr: b, port: 1}, {node_id: node-2, addr: c}]')
  await expect.poll(() => list.find('node-1')).toEqual({ kind: 'found', address: { host: 'b', apiPort: 1 } })
  rmSync(file)
  await new Promise((resolve) => setImmediate(resolve))
  expect(await list.find('node-2')).toEqual({ kind: 'found', address: { host: 'c' } })
})

test('an endpoint is read again and again; statuses, rubbish and large bodies change nothing', async () => {
  let answer = { status: 200, body: '{"nodes":[{"node_id":"node-1","addr":"a"}]}' }
  let calls = 0
  const server = createServer((_request, response) => {
    calls++
    response.writeHead(answer.status).end(answer.body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/nodes?zone=1`
  const caller = openHttpCaller({ name: 'node list', log: keepingLog() })
  const list = open({ kind: 'http', url, caller, timeoutMs: 1_000 })

  expect(await list.find('node-1')).toEqual({ kind: 'found', address: { host: 'a' } })
  for (const bad of [
    { status: 500, body: answer.body.replace('"a"', '"z"') },
    { status: 200, body: '<html>' },
    { status: 200, body: `{"nodes":[{"node_id":"node-1","addr":"z"}],"x":"${'y'.repeat(2 << 20)}"}` },
  ]) {
    answer = bad
    const before = calls
    await expect.poll(() => calls).toBeGreaterThan(before + 1)
    expect(await list.find('node-1')).toEqual({ kind: 'found', address: { host: 'a' } })
  }
  answer = { status: 200, body: '{"nodes":[{"node_id":"node-1","addr":"b","port":9}]}' }
  await expect.poll(() => list.find('node-1')).toEqual({ kind: 'found', address: { host: 'b', apiPort: 9 } })
})
