/**
 * A control plane with a tenth of its processor time, in simulated time: it reads late what nodes sent in time. The
 * simulation knows every election and every node that ended: nothing else may become an event.
 */
import { turnableClock } from '@vacancy/shared'
import type { ClusterEvent } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { seeded } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { changesOf, type Told } from '../history/events.ts'
import { type HttpReply, NODE_HTTP, NodeHttpError } from '../http/node-http.ts'
import { infoOf, NOW, statusOf } from '../testing/observed-nodes.ts'
import { createCollector, shardView } from './collector.ts'
import { addNode } from './collector-state.ts'
import { emptyObservation } from './observation.ts'
import { pollDue } from './polling.ts'
import { deriveDueViews } from './shard-views.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const NODES = ['n1', 'n2', 'n3']

type Truth = {
  leader: string
  term: number
  readonly down: Set<string>
  readonly elections: { at: number; leader: string }[]
}
type Pending = { readonly began: number; readonly arrives: number; readonly settle: (isLate: boolean) => void }

function world(shards: number) {
  const random = seeded(SEED)
  const between = (least: number, most: number) => least + random() * (most - least)
  const clock = turnableClock(NOW)
  const truths = new Map<string, Truth>()
  const told = new Map<string, Told>()
  const events: (Omit<ClusterEvent, 'id' | 'at'> & { readonly at: number })[] = []
  let pending: Pending[] = []

  const bodyOf = (shard: string, truth: Truth, id: string, path: string): unknown => {
    if (path === '/healthz') return truth.leader === id ? 'active_leader' : 'active_follower'
    if (path === '/cluster/info') return { ...infoOf({ id, leader: truth.leader, term: truth.term }), shard_id: shard }
    if (path === '/node-info') return { leader_id: truth.leader, shard_id: shard, zone_id: 'eu-1', node_id: id }
    if (path === '/leader') return JSON.stringify(truth.leader)
    if (path === '/peers') return JSON.stringify(NODES)
    if (path === '/status') return statusOf({ shard_id: shard })
    return path === '/metrics' ? 'vacancy_wal_bytes 12' : {}
  }
  const request = async (url: string): Promise<HttpReply> => {
    const [, host = '', path = ''] = /^http:\/\/([^/]+)(.*)$/.exec(url) ?? []
    const [shard = '', id = ''] = host.split('-')
    const truth = truths.get(shard) as Truth
    const { promise, resolve, reject } = Promise.withResolvers<HttpReply>()
    if (truth.down.has(id)) throw new NodeHttpError('refused', 'connection refused')
    const began = clock.wallMs()
    const body = bodyOf(shard, truth, id, path)
    pending.push({
      ...{ began, arrives: began + between(1, 20) },
      settle(isLate) {
        if (isLate) reject(new NodeHttpError('timeout', `no response within ${NODE_HTTP.timeoutMs} ms`))
        else
          resolve({
            status: 200,
            type: '',
            body: typeof body === 'string' ? body : JSON.stringify(body),
            milliseconds: 1,
          })
      },
    })
    return await promise
  }
  const collector = createCollector(
    {
      ...{ registries: [], resolver: undefined, nodes: [], apiPort: 8_080, tcpPort: 7_777 },
      ...{ registryToken: undefined, nodeToken: undefined, monitoringToken: 'm', adminToken: 'a' },
    },
    { request, close: () => undefined },
    {
      facts: () => ({ operation: null, writePause: null }),
      onShard(view) {
        const change = changesOf(told.get(view.id), view, clock.monotonicMs())
        told.set(view.id, change.told)
        for (const found of change.found) events.push({ ...found, at: clock.wallMs() })
      },
      onShardGone: () => undefined,
      onReading: () => undefined,
    },
    { error: (fields: unknown) => expect.unreachable(JSON.stringify(fields)) } as unknown as Log,
    clock,
  )
  for (let n = 1; n <= shards; n++) {
    const shard = `s${n}`
    truths.set(shard, { leader: NODES[n % 3] as string, term: 1, down: new Set(), elections: [] })
    for (const id of NODES) {
      const address = { id, shard, zone: 'eu-1', apiUrl: `http://${shard}-${id}`, tcp: undefined }
      addNode(collector, emptyObservation(address), { by: 'list', namedAt: NOW, role: undefined, nextAt: 0 })
    }
  }
  return {
    ...{ collector, clock, truths, events, random },
    elect(shard: string): void {
      const truth = truths.get(shard) as Truth
      const able = NODES.filter((id) => !truth.down.has(id) && id !== truth.leader)
      truth.leader = able[Math.floor(random() * able.length)] as string
      truth.term++
      truth.elections.push({ at: clock.wallMs(), leader: truth.leader })
    },
    /** Lets the control plane run every `wakeMs`, and read up to `readsMax` replies each time. */
    async run(ms: number, wakeMs: number, readsMax: number, atEach: () => void = () => {}): Promise<void> {
      for (const end = clock.wallMs() + ms; clock.wallMs() < end; ) {
        clock.advance(wakeMs)
        atEach()
        const now = clock.wallMs()
        const isOver = ({ began }: Pending) => now - began >= NODE_HTTP.timeoutMs
        // What has arrived is read in any order, and half of what is late is given up before it is read.
        const late = pending.filter((each) => isOver(each) && random() < 0.5)
        const read = pending.filter((each) => each.arrives <= now && !late.includes(each)).slice(0, readsMax)
        pending = pending.filter((each) => !late.includes(each) && !read.includes(each))
        for (const each of late) each.settle(true)
        for (const each of read) each.settle(false)
        await new Promise(setImmediate)
        pollDue(collector)
        deriveDueViews(collector)
        await new Promise(setImmediate)
      }
    },
  }
}

test.each([
  ['a tenth of a core', 200, 6],
  ['a hundredth of a core', 1_900, 4],
])('%s: every event happened, and the last leader is found', async (_what, wakeMs, readsMax) => {
  const { run, elect, truths, events, random, collector } = world(6)
  await run(30_000, wakeMs, readsMax)
  expect(events, `VACANCY_SEED=${SEED}`).toEqual([])
  await run(300_000, wakeMs, readsMax, () => {
    for (const shard of truths.keys()) if (random() < wakeMs / 60_000) elect(shard)
  })
  await run(20_000, 50, 1_000)

  for (const [shard, { elections, leader }] of truths) {
    const found = events.filter((event) => event.shard === shard)
    const leaders = found.filter(({ kind }) => kind === 'leader')
    const where = `VACANCY_SEED=${SEED}, ${shard}`
    expect(
      found.filter((event) => !leaders.includes(event)),
      where,
    ).toEqual([])
    expect(shardView(collector, shard)?.leader, where).toBe(leader)
    let from = 0
    for (const { node, at } of leaders) {
      const next = elections.findIndex((each, place) => place >= from && each.leader === node && each.at <= at)
      expect(next, `${where}: leader ${node}`).toBeGreaterThanOrEqual(from)
      from = next + 1
    }
  }
  expect(events.length).toBeGreaterThan(6)
})

test('a node that refuses connections is found out all the same', async () => {
  const { run, truths, events } = world(3)
  await run(30_000, 200, 20)
  const { leader, down } = truths.get('s1') as Truth
  const gone = NODES.find((id) => id !== leader) as string
  down.add(gone)
  await run(60_000, 200, 20)

  expect(events.map(({ shard, node, level }) => [shard, node, level])).toEqual([
    ['s1', null, 'crit'],
    ['s1', gone, 'crit'],
  ])
})
