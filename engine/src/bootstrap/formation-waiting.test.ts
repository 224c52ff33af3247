/** What a node that waits for its shard reports to operators and peers, and the limits of what it counts (formation.ts). */

import { createHash } from 'node:crypto'
import { createCodecList } from '@vacancy/shared'
import { expect, test } from 'vitest'
import {
  beginQuiet,
  bootstrapOf,
  createFormation,
  decide,
  describeWaiting,
  FORMATION_LIMITS,
  type Formation,
  type FormationOptions,
  type FormationReport,
  type FormedState,
  type Held,
  hold,
  knownNodes,
  LOG_EVERY_MS,
  onPeer,
  onPeerLost,
  QUIET_MS,
  REPORT_MS_MAX,
  refusalOf,
  reportFor,
} from './formation.ts'

const CODECS = createCodecList(['breakfast'])
const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest()
const incarnationOf = (node: string): string => Buffer.from(node.padEnd(16, '.')).toString('hex')
const ABC = ['a', 'b', 'c']
const EMPTY: Held = { state: 'empty' }
const SEED: Held = { state: 'seeded', digest: '5e'.repeat(32), index: 7, term: 2 }
const OTHER: Held = { ...SEED, digest: '07'.repeat(32) }

function node(self: string, held: Held = EMPTY, options: Partial<FormationOptions> = {}): Formation {
  return createFormation({
    ...{ self, incarnation: incarnationOf(self), shardId: 's1', voters: ABC, codecs: CODECS, formatVersion: 1 },
    ...{ formsWithMajority: false, held, sha256 },
    ...options,
  })
}

/** The state of a node that founded the shard of a, b and c, by default without a snapshot. */
function formed(change: Partial<FormedState> = {}, from: Held = EMPTY): FormedState {
  const founder = node('a', from)
  for (const peer of ['b', 'c']) onPeer(founder, peer, reportTo(founder, node(peer, from)), 0)
  const decision = decide(founder, 0)
  if (decision.kind !== 'form') throw new Error('it founds the shard')
  const { clusterId, baseIndex: index, baseTerm: term, voters } = decision.cluster
  return {
    ...{ state: 'formed', clusterId, digest: '', index, term, voters, isFounder: true, isUntouched: true, leader: '' },
    ...(from.state === 'seeded' && { digest: from.digest }),
    ...change,
  } as FormedState
}

/** A report of a node that knows the present incarnation of its receiver. */
const reportTo = (to: Formation, from: Formation, change: Partial<FormationReport> = {}): FormationReport => ({
  ...reportFor(from, to.self),
  echo: to.incarnation,
  ...change,
})

const hear = (to: Formation, from: Formation, nowMs = 0, change: Partial<FormationReport> = {}): boolean =>
  onPeer(to, from.self, reportTo(to, from, change), nowMs)

test('an empty node reports no snapshot, and a formed one its shard', () => {
  const empty = node('a')
  expect(reportFor(empty, 'b')).toEqual({
    ...{ shard: 's1', votersDigest: empty.votersDigest, voters: ABC, codecHash: CODECS.orderedHash, formatVersion: 1 },
    ...{ incarnation: incarnationOf('a'), echo: '', formsWithMajority: false, state: 'empty', contentDigest: '' },
    ...{ index: 0, term: 0, clusterId: '', isFounder: false, isUntouched: false, leader: '', members: ABC },
  })
  expect(reportFor(node('a', SEED), 'b')).toMatchObject({ contentDigest: '5e'.repeat(32), index: 7, term: 2 })
  const held = formed({ leader: 'b', isUntouched: false })
  expect(reportFor(node('a', held, { voters: ['x'] }), 'b')).toMatchObject({
    ...{ state: 'formed', voters: ABC, votersDigest: empty.votersDigest, clusterId: held.clusterId },
    ...{ isFounder: true, isUntouched: false, leader: 'b' },
  })
})

test('a report is answered at once when it is the first of its folder, lacks our folder, or comes to a formed node', () => {
  const here = node('a')
  expect(hear(here, node('b'))).toBe(true)
  expect(hear(here, node('b'))).toBe(false)
  expect(hear(here, node('b'), 0, { echo: '' })).toBe(true)
  expect(hear(here, node('b'), 0, { incarnation: incarnationOf('again') })).toBe(true)
  expect(reportFor(here, 'b').echo).toBe(incarnationOf('again'))
  hold(here, formed())
  expect(hear(here, node('b', EMPTY, { incarnation: incarnationOf('again') }))).toBe(true)
  const member = node('b', formed(), { incarnation: incarnationOf('again') })
  expect(hear(here, member)).toBe(false)
  expect(onPeer(here, 'a', reportTo(here, node('a')), 0)).toBe(false)
})

test('at most 64 peers and 256 names are remembered, known peers always', () => {
  const here = node('a')
  const many = (from: number, count: number) => Array.from({ length: count }, (_, i) => `m${1_000 + from + i}`)
  for (const name of many(0, FORMATION_LIMITS.peers)) hear(here, node(name))
  expect([here.reports.size, hear(here, node('late'))]).toEqual([64, false])
  expect([here.reports.size, hear(here, node('m1000'), 0, { echo: '' })]).toEqual([64, true])
  hear(here, node('m1001'), 0, { members: many(100, 300) })
  expect([here.known.size, knownNodes(here).length]).toEqual([256, 256])
})

test('names of another shard are not learned', () => {
  const here = node('a')
  hear(here, node('x', EMPTY, { shardId: 's2' }), 0, { members: ['y'] })
  expect(knownNodes(here)).toEqual(ABC)
  hear(here, node('x'), 0, { members: ['y'] })
  expect(knownNodes(here)).toEqual([...ABC, 'x', 'y'])
})

test.each<[string, Partial<FormationReport>]>([
  ['whose digest is not that of its voters', { votersDigest: '00'.repeat(32) }],
  ['of a snapshot without a digest', { state: 'seeded', contentDigest: '' }],
  ['that is not formed and has a cluster', { clusterId: 'ab'.repeat(16) }],
  ['of a cluster that its genesis does not yield', { state: 'formed', clusterId: 'ab'.repeat(16) }],
])('a report %s is ignored', (_, change) => {
  const here = node('a')
  hear(here, node('b'), 0, change)
  expect(here.reports.size).toBe(0)
})

test.each([0, 1, 7, 8])('a list of %i voters is accepted from one to seven', (count) => {
  const voters = [...'bcdefghi'].slice(0, count)
  const votersDigest = Buffer.from(sha256(Buffer.from(JSON.stringify(voters)))).toString('hex')
  const here = node('a')
  hear(here, node('b'), 0, { voters, votersDigest })
  expect(here.reports.size).toBe(count >= 1 && count <= 7 ? 1 : 0)
})

test('a formed node of another shard is noted, since the id of its cluster cannot be computed here', () => {
  const here = node('a')
  hear(here, node('b', formed(), { shardId: 's2' }))
  expect(here.reports.size).toBe(1)
})

test.each<[string, Partial<FormationReport>, Held, string]>([
  ['a node like this one', {}, EMPTY, ''],
  ['another shard', { shard: 's2' }, EMPTY, 'it belongs to shard s2'],
  ['another format', { formatVersion: 2 }, EMPTY, 'its data has format 2'],
  ['other codecs', { codecHash: '00' }, EMPTY, 'its codec list differs'],
  ['another list', { votersDigest: '00', voters: ['a', 'x'] }, EMPTY, 'its list of initial voters is a, x'],
  ['another list of a formed node', { votersDigest: '00', state: 'formed' }, EMPTY, ''],
  ['another list, to a formed node', { votersDigest: '00' }, formed(), ''],
])('refusal of %s', (_, change, held, refusal) => {
  const here = node('a', held)
  expect(refusalOf(here, reportTo(here, node('b'), change))).toBe(refusal)
})

const waitOf = (formation: Formation, nowMs = 0) => {
  const decision = decide(formation, nowMs)
  return decision.kind === 'wait' ? [decision.waitsFor, decision.why] : [decision.kind]
}

test('a waiting node reports how many voters are empty and how many are needed', () => {
  const here = node('a')
  hear(here, node('b'))
  const missing = '2 of 3 initial voters report that they are empty; without a snapshot'
  expect(waitOf(here)).toEqual(['voters', `${missing} all must`])
  const willing = node('a', EMPTY, { formsWithMajority: true })
  hear(willing, node('b'))
  expect(waitOf(willing)).toEqual(['voters', `${missing} 2 with --form-with-majority are needed`])
  hear(willing, node('b', EMPTY, { formsWithMajority: true }))
  expect(waitOf(willing)).toEqual(['form'])
  const guest = node('x')
  for (const name of ABC) hear(guest, node(name))
  expect(waitOf(guest)).toEqual(['join', 'the initial voters form an empty shard'])
})

test('a waiting node reports where snapshots are, the most frequent first', () => {
  const here = node('a', SEED, { voters: [...'abcde'] })
  const peer = (name: string, held: Held) => node(name, held, { voters: [...'abcde'] })
  expect(waitOf(here)).toEqual(['snapshot', 'snapshot 5e5e5e5e5e5e… is on 1 of 5 voters, 3 needed'])
  for (const name of ['b', 'c']) hear(here, peer(name, OTHER))
  const why = 'snapshot 070707070707… is on 2, 5e5e5e5e5e5e… is on 1 of 5 voters, 3 needed'
  expect(waitOf(here)).toEqual(['snapshot', why])
  hear(here, peer('d', OTHER))
  expect(decide(here, 0)).toEqual({ kind: 'set-aside', reason: '3 of 5 voters hold snapshot 070707070707…' })
  hold(here, EMPTY)
  expect(waitOf(here)).toEqual(['join', 'snapshot 070707070707… is on 3 of 5 voters: they form the shard'])
})

test('data of a node that is gone, or of one that is no voter, is never outvoted by empty nodes', () => {
  const why = 'a snapshot was reported by a node that does not respond or is not an initial voter'
  const [here, guest] = [node('a'), node('a')]
  for (const peer of [node('b'), node('c')]) hear(guest, peer)
  hear(guest, node('x', SEED))
  expect(waitOf(guest)).toEqual(['snapshot', why])
  hear(here, node('b', SEED))
  hear(here, node('c'))
  onPeerLost(here, 'b')
  expect(waitOf(here)).toEqual(['snapshot', why])
  // Data of another shard do not count.
  const other = node('a')
  for (const peer of [node('b'), node('c'), node('x', SEED, { shardId: 's2' })]) hear(other, peer)
  expect(waitOf(other)).toEqual(['form'])
})

test('a report counts for ten seconds, and again only when it is repeated after a lost connection', () => {
  const here = node('a')
  for (const name of ['b', 'c']) hear(here, node(name), 1_000)
  expect([waitOf(here, 1_000 + REPORT_MS_MAX), waitOf(here, 1_001 + REPORT_MS_MAX)[0]]).toEqual([['form'], 'voters'])
  onPeerLost(here, 'c')
  onPeerLost(here, 'never seen')
  expect(waitOf(here, 1_000)[0]).toBe('voters')
  hear(here, node('c'), 1_000)
  expect(waitOf(here, 1_000)).toEqual(['form'])
})

test('formed nodes without a leader are named; two led clusters decide nothing', () => {
  const here = node('x')
  hear(here, node('a', formed({ isUntouched: false })))
  const cluster = formed().clusterId.slice(0, 12)
  expect(waitOf(here)).toEqual(['join', `a (cluster ${cluster}) is formed, without a known leader yet`])
  hear(here, node('b', formed({ isUntouched: false })))
  expect(waitOf(here)[1]).toBe(`a (cluster ${cluster}), b (cluster ${cluster}) are formed, without a known leader yet`)
  hear(here, node('a', formed({ leader: 'b' })))
  expect(decide(here, 0)).toMatchObject({ kind: 'join', via: 'a', leader: 'b', keepsSnapshot: false })

  const torn = node('x')
  hear(torn, node('a', formed({ isUntouched: false, leader: 'a' })))
  const other = formed({ isUntouched: false, leader: 'b' }, SEED)
  hear(torn, node('b', other))
  const leaders = `two clusters of shard ${torn.shardId} have leaders: a of ${cluster}, b of ${other.clusterId.slice(0, 12)}`
  expect(waitOf(torn)).toEqual(['join', leaders])
})

test('on joining, the snapshot that the shard began with stays, and any other one is set aside', () => {
  const join = (held: Held) => {
    const here = node('x', held)
    hear(here, node('a', formed({ leader: 'b', isUntouched: false }, SEED)))
    const decision = decide(here, 0)
    return decision.kind === 'join' ? decision.keepsSnapshot : decision.kind
  }
  const snapshots = [SEED, OTHER, { ...SEED, index: 8 } as Held, { ...SEED, term: 3 } as Held, EMPTY]
  expect(snapshots.map(join)).toEqual([true, 'set-aside', 'set-aside', 'set-aside', false])
})

test('a node that got a snapshot is silent for twelve seconds, then reads its folder again', () => {
  const here = node('a')
  beginQuiet(here, 500)
  beginQuiet(here, 900)
  const text = 'this node received a snapshot and is silent for 12 s, so that no node counts it as empty'
  expect([QUIET_MS, waitOf(here, 499 + QUIET_MS), decide(here, 500 + QUIET_MS).kind]).toEqual([
    12_000,
    ['snapshot', text],
    'reread',
  ])
  hear(here, node('b', formed({ leader: 'b' })))
  expect(decide(here, 500)).toMatchObject({ kind: 'set-aside' })
})

// Conflicts

test('another list of voters ends a voter once a majority of that list has it', () => {
  const list = ['a', 'b', 'c', 'd', 'e']
  const here = node('a')
  const others = ['b', 'c', 'd'].map((name) => node(name, EMPTY, { voters: list }))
  const kinds = others.map((other) => {
    hear(here, other)
    return decide(here, 0).kind
  })
  expect(kinds).toEqual(['wait', 'wait', 'fail'])
  const decision = decide(here, 0)
  expect(decision.kind === 'fail' && decision.error.message).toContain(
    '--initial-voters a, b, c, d, e; this one with a, b, c',
  )
  expect(decide(here, REPORT_MS_MAX + 1).kind).toBe('wait')
  const guest = node('x')
  for (const other of others) hear(guest, other)
  expect(decide(guest, 0).kind).toBe('wait')
  // Nodes outside their own list do not count for it.
  const outside = node('a')
  for (const name of ['b', 'c', 'y', 'z']) hear(outside, node(name, EMPTY, { voters: list }))
  expect(decide(outside, 0).kind).toBe('wait')
})

test('another codec list ends a node once a majority of its voters, or a member with a leader, has it', () => {
  const codecs = createCodecList(['other'])
  const here = node('a')
  const kinds = ['x', 'b', 'c'].map((name) => {
    hear(here, node(name, EMPTY, { codecs }))
    return decide(here, 0).kind
  })
  expect(kinds).toEqual(['wait', 'wait', 'fail'])
  const led = node('a')
  hear(led, node('x'), 0, { codecHash: codecs.orderedHash, leader: 'b' })
  expect(decide(led, 0).kind).toBe('fail')
})

// For operators

test('the state of each voter is listed', () => {
  const here = node('a', SEED, { voters: [...'abcdef'] })
  const list = { voters: [...'abcdef'] }
  hear(here, node('b', OTHER, list), 0)
  hear(here, node('c', EMPTY, { ...list, formatVersion: 9 }), 20_000)
  hear(here, node('d', EMPTY, list), 20_000)
  const cluster = formed().clusterId
  hear(here, node('e', formed({ isUntouched: false })), 20_000)
  const { voters, needed } = bootstrapOf(here, 20_000)
  const none = { snapshot: '', index: 0 }
  expect([needed, voters]).toEqual([
    4,
    [
      { id: 'a', state: 'seeded', snapshot: '5e'.repeat(32), index: 7, detail: '' },
      { id: 'b', state: 'seeded', snapshot: '07'.repeat(32), index: 7, detail: 'it no longer responds' },
      { id: 'c', state: 'refused', ...none, detail: 'its data has format 9' },
      { id: 'd', state: 'empty', ...none, detail: '' },
      { id: 'e', state: 'formed', ...none, detail: `cluster ${cluster.slice(0, 12)}, no leader` },
      { id: 'f', state: 'silent', ...none, detail: '' },
    ],
  ])
  hear(here, node('e', formed({ leader: 'b' })), 20_000)
  expect(bootstrapOf(here, 30_001).voters[4]?.detail).toBe(
    `it no longer responds, cluster ${cluster.slice(0, 12)}, led by b`,
  )
})

test('a formed node and one that joins are being admitted', () => {
  const admitted = { waitsFor: 'join', why: 'this node is being admitted' }
  expect(bootstrapOf(node('a', formed()), 0)).toMatchObject(admitted)
  const joining = node('x')
  hear(joining, node('a', formed({ leader: 'b', isUntouched: false })))
  expect(bootstrapOf(joining, 0)).toMatchObject({ ...admitted, needed: 2 })
})

test('the log has a line at once, and then every ten seconds', () => {
  const here = node('a', SEED)
  hear(here, node('c', EMPTY, { formatVersion: 9 }))
  const lines = [0, LOG_EVERY_MS - 1, LOG_EVERY_MS, LOG_EVERY_MS + 1].map((nowMs) => describeWaiting(here, nowMs))
  expect(lines.map((line) => line !== undefined)).toEqual([true, false, true, false])
  expect([LOG_EVERY_MS, lines[0]]).toEqual([
    10_000,
    {
      message: 'waiting to form: snapshot 5e5e5e5e5e5e… is on 1 of 3 voters, 2 needed',
      fields: { needed: 2, voters: { a: 'seeded 5e5e5e5e5e5e', b: 'silent', c: 'refused its data has format 9' } },
    },
  ])
})
