/** The phase before a node is a member, with a schedule, a clock and peers of the test: rounds, replies, refusals and requests to join. */

import { createHash } from 'node:crypto'
import { createCodecList, turnableClock } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { createCluster } from '../data/data-directory.ts'
import type { Env } from '../env.ts'
import type { PeerFrame } from '../transport/frames.ts'
import { createPeers, type Peers } from '../transport/peers.ts'
import {
  type Joined,
  refuseForeign,
  report,
  reportedLeader,
  requestJoin,
  startBootstrap,
  startJoining,
} from './bootstrap.ts'
import { createFormation, type Decision, type Formation, type Held, onPeer, REMOVED, reportFor } from './formation.ts'

const CODECS = createCodecList(['breakfast'])
const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest()
const EMPTY: Held = { state: 'empty' }
const folder = (node: string) => Buffer.from(node.padEnd(16, '.')).toString('hex')
const CONFIGURATION = { voters: [1, 2], learners: [] } as unknown as Joined['configuration']

function formationOf(self: string, held: Held = EMPTY, shardId = 's1', voters = ['a', 'b', 'c']): Formation {
  return createFormation({
    ...{ self, incarnation: folder(self), shardId, voters, codecs: CODECS, formatVersion: 1 },
    ...{ formsWithMajority: false, held, sha256 },
  })
}

type Sent = { readonly node: string; readonly type: string }

function createWorld(self = 'a', held: Held = EMPTY) {
  const clock = turnableClock(1_000_000)
  const timers = new Set<{ dueMs: number; run: () => void }>()
  const lines: string[] = []
  const note = (level: string) => (_: object, text: string) => void lines.push(`${level}: ${text}`)
  const env = {
    clock,
    log: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
    schedule: {
      after(delayMs: number, run: () => void) {
        const timer = { dueMs: clock.monotonicMs() + delayMs, run }
        timers.add(timer)
        return () => void timers.delete(timer)
      },
    },
  } as unknown as Env
  const peers: Peers = createPeers(self, CODECS.orderedHash, env)
  const sent: Sent[] = []
  const wanted: string[][] = []
  peers.transport = {
    send(node: string, stream: string) {
      sent.push({ node, type: stream })
      return true
    },
    setPeers: (nodes: readonly string[]) => void wanted.push([...nodes]),
  } as unknown as NonNullable<Peers['transport']>
  const advance = (ms: number) => {
    const endMs = clock.monotonicMs() + ms
    for (;;) {
      const due = [...timers].filter(({ dueMs }) => dueMs <= endMs).sort((a, b) => a.dueMs - b.dueMs)[0]
      if (!due) break
      timers.delete(due)
      clock.advance(due.dueMs - clock.monotonicMs())
      due.run()
    }
    clock.advance(endMs - clock.monotonicMs())
  }
  const receive = (peer: string, frame: object) => peers.handler?.onFrame(peer, frame as PeerFrame)
  const to = () => sent.splice(0).map(({ node }) => node)
  return { env, peers, clock, timers, lines, wanted, advance, receive, to, formation: formationOf(self, held) }
}

const formationFrame = (from: Formation, node: string) => ({ type: 'formation', ...reportFor(from, node) })
/** A report of a node of a formed shard; shards with other positions of their first snapshot are other clusters. */
function formedFrame(from: string, leader: string, index = 1) {
  const frame = formationFrame(formationOf(from), 'a')
  return { ...frame, state: 'formed', index, term: 1, clusterId: clusterAt(index).clusterId, leader }
}

const clusterAt = (index: number) =>
  createCluster(
    { shardId: 's1', codecs: CODECS, base: { index, term: 1 }, snapshotDigest: '', voters: ['a', 'b', 'c'] },
    sha256,
  )

test('reports go to voters and seeds at once, and then each second until the end', () => {
  const { env, peers, formation, advance, to, wanted, timers } = createWorld()
  const bootstrap = startBootstrap(env, peers, formation, ['seed', 'b', 'a'], () => undefined)
  expect(to()).toEqual([])
  advance(0)
  expect(to()).toEqual(['b', 'c', 'seed'])
  expect(wanted).toEqual([['b', 'c', 'seed']])
  advance(999)
  expect(to()).toEqual([])
  advance(1)
  expect(to()).toEqual(['b', 'c', 'seed'])
  bootstrap.stop()
  advance(10_000)
  expect([to(), timers.size]).toEqual([[], 0])
})

test('a new control connection gets a report; the end of one forgets that its node is reachable', () => {
  const { env, peers, formation, to, receive } = createWorld()
  startBootstrap(env, peers, formation, [], () => undefined)
  peers.handler?.onOpen?.('c', 'bulk')
  expect(to()).toEqual([])
  peers.handler?.onOpen?.('c', 'control')
  expect(to()).toEqual(['c'])

  receive('b', formationFrame(formationOf('b'), 'a'))
  const isOpen = () => formation.reports.get('b')?.isOpen
  expect(isOpen()).toBe(true)
  peers.handler?.onClosed?.('b', 'bulk', false)
  expect(isOpen()).toBe(true)
  peers.handler?.onClosed?.('b', 'control', false)
  expect(isOpen()).toBe(false)
})

test('a first report is answered at once, and other frames are not', () => {
  const { env, peers, formation, to, receive, lines } = createWorld()
  startBootstrap(env, peers, formation, [], () => undefined)
  receive('b', formationFrame(formationOf('b'), 'a'))
  expect(to()).toEqual(['b'])
  receive('b', { type: 'heartbeat' })
  expect(to()).toEqual([])
  expect(lines.filter((line) => line.startsWith('warn'))).toEqual([])
})

test('a node of another shard is refused and counted, one of this shard is not', () => {
  const { peers, formation } = createWorld()
  refuseForeign(peers, formation, 'b', reportFor(formationOf('b'), 'a'))
  expect(peers.refused).toEqual({})
  refuseForeign(peers, formation, 'x', reportFor(formationOf('x', EMPTY, 's2'), 'a'))
  expect(peers.refused).toEqual({ formation: 1 })
})

test('frames count as refused during the bootstrap, too', () => {
  const { env, peers, formation, receive } = createWorld()
  startBootstrap(env, peers, formation, [], () => undefined)
  receive('x', formationFrame(formationOf('x', EMPTY, 's2'), 'a'))
  expect(peers.refused).toEqual({ formation: 1 })
})

/** Three nodes in one process whose frames arrive at once. */
function exchange(nodes: readonly ReturnType<typeof createWorld>[], ms: number): void {
  const forms = new Map(nodes.map((world) => [world.formation.self, world]))
  for (let at = 0; at < ms; at += 500) {
    for (const world of nodes) {
      world.advance(500)
      for (const node of world.to()) {
        const target = forms.get(node)
        if (target) target.receive(world.formation.self, formationFrame(world.formation, node))
      }
    }
  }
}

test('a decision is reported once, by a frame or a round, and ends the rounds', () => {
  const worlds = ['a', 'b', 'c'].map((self) => createWorld(self))
  const decisions = new Map<string, Decision[]>()
  for (const { env, peers, formation } of worlds) {
    const list: Decision[] = []
    decisions.set(formation.self, list)
    startBootstrap(env, peers, formation, [], (decision) => void list.push(decision))
  }
  exchange(worlds, 60_000)
  const kinds = [...decisions.values()].map((list) => list.map(({ kind }) => kind))
  expect(kinds).toEqual([['form'], ['form'], ['form']])
  expect(worlds.map(({ timers }) => timers.size)).toEqual([0, 0, 0])
})

test('a node that waits alone logs that, and decides nothing', () => {
  const { env, peers, formation, advance, lines } = createWorld()
  let decisions = 0
  startBootstrap(env, peers, formation, [], () => void decisions++)
  advance(120_000)
  expect(decisions).toBe(0)
  expect(lines.length).toBeGreaterThan(0)
  expect(lines.every((line) => line.startsWith('info: '))).toBe(true)
})

test('an empty node is quiet after a snapshot has arrived, logs that once, and sends nothing meanwhile', () => {
  const { env, peers, formation, advance, lines, to } = createWorld()
  let has = false
  let looks = 0
  const hasSeed = () => {
    looks++
    return has
  }
  startBootstrap(env, peers, formation, [], () => undefined, hasSeed)
  advance(1_000)
  const found = () => lines.filter((line) => line.includes('snapshot found in the folder'))
  expect([found().length, looks, to().length]).toEqual([0, 2, 4])
  has = true
  advance(1_000)
  expect([found(), looks]).toEqual([['info: snapshot found in the folder, founding the shard with it'], 3])
  to()
  advance(2_000)
  expect([found().length, looks, to()]).toEqual([1, 3, []])
  report(peers, formation, 'b')
  expect(to()).toEqual([])
})

test('a node that already has a seed does not look for one', () => {
  const { env, peers, formation, advance } = createWorld('a', {
    state: 'seeded',
    digest: 'aa'.repeat(32),
    index: 1,
    term: 1,
  })
  let looks = 0
  startBootstrap(
    env,
    peers,
    formation,
    [],
    () => undefined,
    () => Boolean(++looks),
  )
  advance(5_000)
  expect(looks).toBe(0)
})

test('a node requests to join from the leader it knows of, each second, and from no other node', () => {
  const { env, peers, formation, advance, receive, to, lines, wanted } = createWorld('d')
  startJoining(env, peers, formation, [], () => undefined)
  advance(0)
  advance(1_000)
  expect(lines).toEqual(['info: waiting for the leader of the shard to admit this node'])
  receive('b', formedFrame('b', 'z'))
  to()
  advance(1_000)
  expect(to().filter((node) => node === 'z')).toHaveLength(1)
  expect(wanted.at(-1)).toContain('z')
  receive('b', formedFrame('b', 'z'))
  advance(1_000)
  expect(to().filter((node) => node === 'z').length).toBeGreaterThanOrEqual(1)
})

test('a refusal is logged with its reason once, except that of a removed member', () => {
  const { env, peers, formation, receive, lines } = createWorld('d')
  startJoining(env, peers, formation, [], () => undefined)
  receive('b', { type: 'refused', reason: 'learners', detail: 'too many' })
  receive('b', { type: 'refused', reason: 'learners', detail: 'too many' })
  receive('b', { type: 'refused', reason: REMOVED, detail: '' })
  receive('b', { type: 'refused', reason: 'zone', detail: '' })
  expect(lines).toEqual(['info: b did not admit this node: learners too many', 'info: b did not admit this node: zone'])
})

test('an admitted node gets its number and configuration once, and its rounds end', () => {
  const { env, peers, formation, receive, timers, advance, to } = createWorld('d')
  const joined: Joined[] = []
  startJoining(env, peers, formation, [], (result) => void joined.push(result))
  receive('b', { type: 'refused', reason: 'busy', detail: '' })
  expect(joined).toEqual([])
  receive('b', { type: 'joined', member: 4, configuration: CONFIGURATION })
  receive('b', { type: 'joined', member: 5, configuration: CONFIGURATION })
  to()
  advance(5_000)
  expect([joined, timers.size, to()]).toEqual([[{ member: 4, configuration: CONFIGURATION }], 0, []])
})

test('a node does not request to join from itself', () => {
  const { peers, formation, to } = createWorld('a')
  requestJoin(peers, formation, 'a')
  expect(to()).toEqual([])
  requestJoin(peers, formation, 'z')
  expect(to()).toEqual(['z'])
})

test('the reported leader is that of the newest report, for three seconds, of an open connection and this cluster', () => {
  const { formation } = createWorld('d')
  const give = (formed: Formation, from: string, leader: string, atMs: number, index = 1) => {
    const { type: _, ...received } = formedFrame(from, leader, index)
    onPeer(formed, from, received as never, atMs)
  }
  expect(reportedLeader(formation, 0)).toBeUndefined()
  give(formation, 'b', 'x', 1_000)
  give(formation, 'c', 'y', 2_000)
  give(formation, 'e', '', 2_500)
  expect([reportedLeader(formation, 2_500), reportedLeader(formation, 5_000)]).toEqual(['y', 'y'])
  expect(reportedLeader(formation, 5_001)).toBeUndefined()
  give(formation, 'b', 'x', 6_000)
  expect(reportedLeader(formation, 6_000)).toBe('x')
  const held = formation.reports.get('b')
  if (held) formation.reports.set('b', { ...held, isOpen: false })
  expect(reportedLeader(formation, 6_000)).toBeUndefined()

  const { clusterId } = clusterAt(1)
  const formed = formationOf('d', {
    ...{ state: 'formed', clusterId, digest: '', index: 1, term: 1, voters: ['a', 'b', 'c'] },
    ...{ isFounder: true, isUntouched: false, leader: '' },
  })
  give(formed, 'b', 'x', 1_000)
  give(formed, 'c', 'y', 2_000, 7)
  expect(reportedLeader(formed, 2_000)).toBe('x')
})
