/** The same read on every node of a shard. The nodes are stubs. */

import type { AnswerSeen, VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import type { QueryCommand } from '@vacancy/shared/contract'
import type { RequestFields } from '@vacancy/shared/wire'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import { ProblemError } from '../http/route.ts'
import type { Reach } from './ask.ts'
import { replicas } from './replicas.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')

/** The reply of a node to its nth read, from 1; 'silent' never replies. */
type Node = (read: number) => object | 'silent'
const wire = vi.hoisted(() => ({ nodes: {} as { [id: string]: unknown }, reads: [] as [string, RequestFields][] }))
vi.mock('./node-clients.ts', async (original) => ({
  ...(await original<typeof import('./node-clients.ts')>()),
  clientOf: async (_: unknown, [node]: readonly NodeAddress[]) =>
    ({
      send: async (_command: string, fields: RequestFields, { watch }: { watch: (seen: AnswerSeen) => void }) => {
        const id = node?.id ?? ''
        wire.reads.push([id, fields])
        watch({ address: id, request: new Uint8Array(9), answer: new Uint8Array(), milliseconds: 2 })
        const found = (wire.nodes[id] as Node)(wire.reads.filter(([other]) => other === id).length)
        if (found instanceof Error) throw found
        return await (found === 'silent' ? new Promise(() => {}) : found)
      },
    }) as unknown as VacancyClient,
}))
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  wire.reads = []
})
afterEach(() => {
  vi.useRealTimers()
})

async function compared(
  nodes: { [id: string]: Node },
  command: QueryCommand = 'SEARCHPROP',
  fields: object = { segment: 'city' },
) {
  wire.nodes = nodes
  const cluster = {
    shards: () => [{ id: 's1' }],
    addresses: () => Object.keys(nodes).map((id) => ({ id, shard: 's1', apiUrl: '', tcp: { host: id, port: 1 } })),
    node: (_: string, id: string) => (id === 'n1' ? { role: 'leader' } : undefined),
  } as unknown as Cluster
  const reach = { cluster, clients: { clock: turnableClock(NOW) } } as unknown as Reach
  const body = { command, fields, shard: 's1', waitMs: 300 }
  const request = replicas(reach, { body, signal: new AbortController().signal } as never)
  let isOver = false
  const end = () => {
    isOver = true
  }
  request.then(end, end)
  while (!isOver) await vi.advanceTimersByTimeAsync(10)
  return await request
}
const found = (index: number, ...propertyIds: string[]) => ({ propertyIds, explain: { appliedIndex: BigInt(index) } })
const readsOf = (id: string) => wire.reads.filter(([node]) => node === id).length

test('only reads are compared', async () => {
  await expect(compared({ n1: () => ({}) }, 'DELPROP', { propertyId: 'h1' })).rejects.toMatchObject({
    ...{ code: 'no-read', message: 'DELPROP writes.', field: 'command' },
  })
  await expect(compared({ n1: () => ({}) }, 'SEARCHPROP', { segment: 1 })).rejects.toMatchObject({
    code: 'invalid-fields',
  })
})

test('equal rows in another order are equal', async () => {
  const answer = await compared({ n1: () => found(7, 'a', 'b', 'c'), n2: () => found(9, 'c', 'a', 'b') })

  const hash = answer.nodes[0]?.hash
  expect(answer).toEqual({
    ...{ shard: 's1', at: '2026-11-22T12:00:00.000Z', equal: true, answered: 2, queried: 2, reads: 1 },
    nodes: [
      { node: 'n1', role: 'leader', index: '7', micros: 2_000, count: 3, hash, error: '' },
      { node: 'n2', role: 'unknown', index: '9', micros: 2_000, count: 3, hash, error: '' },
    ],
    ...{ differences: [], differencesCut: false },
  })
  expect(hash).toMatch(/^[0-9a-f]{64}$/)
  expect(wire.reads[0]?.[1]).toEqual({ segment: 'city', explain: 1 })
})

test('rows that differ at one index are listed at once', async () => {
  const refused = new ProblemError(404, 'wire-not-found', 'unknown segment')
  const answer = await compared({ n1: () => found(7, 'c', 'a'), n2: () => refused, n3: () => found(7, 'a', 'b') })

  expect(answer).toMatchObject({ equal: false, answered: 2, queried: 3, reads: 1, differencesCut: false })
  expect(answer.differences).toEqual([
    { row: 'b', values: [null, null, 'yes'] },
    { row: 'c', values: ['yes', null, null] },
  ])
  expect(answer.nodes[1]).toEqual({
    ...{ node: 'n2', role: 'unknown', index: null, micros: null, count: null, hash: null, error: 'unknown segment' },
  })
})

test('replicas at different indexes are read until they agree', async () => {
  const answer = await compared({
    n1: () => found(9, 'a'),
    n2: (read) => (read < 3 ? found(read, 'b') : found(9, 'a')),
  })

  expect(answer).toMatchObject({ equal: true, reads: 3, differences: [] })
})

test('after four reads their differences are shown; a silent node is read once', async () => {
  const answer = await compared({
    ...{ n1: () => found(9, 'a'), n2: (read) => found(read, 'b') },
    ...{ n3: () => 'silent', n4: () => new ProblemError(503, 'wire-503', 'busy') },
  })

  expect(answer).toMatchObject({ equal: false, reads: 4, answered: 2, queried: 4 })
  expect(answer.nodes[2]).toMatchObject({ error: 'no response within 300 ms', hash: null })
  expect(['n1', 'n2', 'n3', 'n4'].map(readsOf)).toEqual([4, 4, 1, 4])
})

test('without a reply nothing is equal', async () => {
  expect(await compared({ n1: () => 'silent' })).toMatchObject({ equal: false, answered: 0, reads: 1 })
})

test('a defect is not a row of the result', async () => {
  await expect(compared({ n1: () => new TypeError('defect') })).rejects.toThrow('defect')
})

const day = (availability: number, rateFeatures: string[] = []) => ({
  ...{ date: '2026-12-01', availability, finalPrice: 90, rateFeatures },
})
test.each<[QueryCommand, object, object, object, object[]]>([
  [
    'SEARCHAVAIL',
    { segment: 'city', roomType: 'double', dates: ['2026-12-01'] },
    { properties: [{ propertyId: 'h1', days: [day(2), day(3)] }] },
    { properties: [{ propertyId: 'h1', days: [day(2, ['late', 'wifi']), day(3)] }] },
    [{ row: 'h1', values: ['2026-12-01 90 ×2 · 2026-12-01 90 ×3', '2026-12-01 90 ×2 late,wifi · 2026-12-01 90 ×3'] }],
  ],
  [
    'PROPROOMDATELIST',
    { propertyId: 'h1', roomType: 'double' },
    { dates: ['2026-12-01', '2026-12-02'], index: 5n },
    { dates: ['2026-12-01'], index: 5n },
    [{ row: '2026-12-02', values: ['yes', null] }],
  ],
  [
    'PROPROOMLIST',
    { propertyId: 'h1' },
    { roomTypes: ['double'] },
    { roomTypes: [] },
    [{ row: 'double', values: ['yes', null] }],
  ],
  [
    'GETSEGMENTS',
    {},
    { segments: [{ segment: 'city', propertyCount: 4 }] },
    { segments: [{ segment: 'city', propertyCount: 5 }] },
    [{ row: 'city', values: ['4', '5'] }],
  ],
  [
    'PROPEXIST',
    { propertyId: 'h1' },
    { exists: true, index: 5n },
    { exists: false, index: 5n },
    [{ row: 'exists', values: ['true', 'false'] }],
  ],
])('rows of %s are compared by their key', async (command, fields, first, second, differences) => {
  const answer = await compared({ n1: () => first, n2: () => second }, command, fields)

  expect(answer).toMatchObject({ equal: false, differences })
  expect(answer.differences).toHaveLength(differences.length)
})

test('an index that differs alone is no difference', async () => {
  const answer = await compared(
    { n1: () => ({ exists: true, index: 5n }), n2: () => ({ exists: true, index: 6n }) },
    'PROPEXIST',
    { propertyId: 'h1' },
  )

  expect(answer).toMatchObject({ equal: true, reads: 1, nodes: [{ index: '5', count: 1 }, { index: '6' }] })
})

test.each([
  [100, false],
  [101, true],
])('of %d differing rows at most 100 are listed', async (count, differencesCut) => {
  const ids = Array.from({ length: count }, (_, at) => `h${at}`)

  const answer = await compared({ n1: () => found(1, ...ids), n2: () => found(1) })

  expect([answer.differences.length, answer.differencesCut]).toEqual([100, differencesCut])
})
