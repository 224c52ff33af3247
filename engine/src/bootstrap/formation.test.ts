import { createHash } from 'node:crypto'
import { createCodecList } from '@vacancy/shared'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { configurationAt, genesisConfiguration, type Held } from '../data/genesis.ts'
import {
  beginQuiet,
  bootstrapOf,
  createFormation,
  type Decision,
  decide,
  describeWaiting,
  type Formation,
  type FormationOptions,
  hold,
  isQuiet,
  LOG_EVERY_MS,
  onPeer,
  onPeerLost,
  QUIET_MS,
  REPORT_MS_MAX,
  raftIdOf,
  reportFor,
} from './formation.ts'

const CODECS = createCodecList(['breakfast', 'refundable'])
const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest()
const ABC = ['a', 'b', 'c']
const ABCDE = ['a', 'b', 'c', 'd', 'e']
const EMPTY: Held = { state: 'empty' }

const seed = (name: string, index = 1): Held => ({
  state: 'seeded',
  digest: Buffer.from(sha256(new TextEncoder().encode(name))).toString('hex'),
  index,
  term: 1,
})

/** 32 hexadecimal digits that differ between the folders of a node. */
const folder = (node: string, number = 1): string => Buffer.from(`${node}${number}`.padEnd(16, '.')).toString('hex')

function node(self: string, held: Held, options: Partial<FormationOptions> = {}): Formation {
  return createFormation({
    self,
    incarnation: folder(self),
    shardId: 's1',
    voters: ABC,
    codecs: CODECS,
    formatVersion: 1,
    formsWithMajority: false,
    held,
    sha256,
    ...options,
  })
}

/** Two rounds of reports between all nodes: after the first one each knows its peers. */
function meet(nodes: readonly Formation[], nowMs = 0): void {
  for (let round = 0; round < 2; round++) {
    for (const from of nodes) {
      for (const to of nodes) if (from !== to) onPeer(to, from.self, reportFor(from, to.self), nowMs)
    }
  }
}

/** Acts on a decision as a node would. */
function follow(formation: Formation, decision: Decision): void {
  if (decision.kind === 'set-aside') hold(formation, EMPTY)
  if (decision.kind !== 'form' && decision.kind !== 'join') return
  const { clusterId, baseIndex, baseTerm, voters } = decision.cluster
  const { held } = formation
  const isFounder = decision.kind === 'form'
  const digest = decision.kind === 'form' && held.state === 'seeded' ? held.digest : ''
  hold(formation, {
    state: 'formed',
    clusterId,
    digest,
    index: baseIndex,
    term: baseTerm,
    voters,
    isFounder,
    isUntouched: true,
    leader: '',
  })
}

const kindsOf = (nodes: readonly Formation[]) => nodes.map((formation) => decide(formation, 0).kind)

test('a strict majority with the same snapshot forms, and all of it writes the same genesis', () => {
  const nodes = [node('a', seed('s')), node('b', seed('s')), node('c', EMPTY)]

  meet(nodes)

  const [a, b, c] = nodes.map((formation) => decide(formation, 0))
  expect(a).toEqual(b)
  expect(a).toMatchObject({ kind: 'form', cluster: { baseIndex: 1, baseTerm: 1, voters: ABC } })
  expect(c).toMatchObject({ kind: 'wait', waitsFor: 'join' })
})

test('a majority is one of all names, not of the reachable ones', () => {
  const nodes = [node('a', seed('s'), { voters: ABCDE }), node('b', seed('s'), { voters: ABCDE })]

  meet(nodes)

  expect(kindsOf(nodes)).toEqual(['wait', 'wait'])
  expect(bootstrapOf(nodes[0] as Formation, 0).why).toMatch(/^snapshot \w{12}… is on 2 of 5 voters, 3 needed$/)
})

test('equal content at another index or term is another snapshot', () => {
  const nodes = [node('a', seed('s', 7)), node('b', seed('s', 8)), node('c', EMPTY)]

  meet(nodes)

  expect(kindsOf(nodes)).toEqual(['wait', 'wait', 'wait'])
})

test('an empty shard forms only when all names report empty', () => {
  const nodes = ABC.map((name) => node(name, EMPTY))

  meet(nodes.slice(0, 2))
  expect(kindsOf(nodes.slice(0, 2))).toEqual(['wait', 'wait'])

  meet(nodes)
  expect(kindsOf(nodes)).toEqual(['form', 'form', 'form'])
})

test('with --form-with-majority on each of them a majority of empties is enough', () => {
  const flag = { formsWithMajority: true }
  const nodes = [node('a', EMPTY, flag), node('b', EMPTY, flag)]

  meet(nodes)
  expect(kindsOf(nodes)).toEqual(['form', 'form'])

  const halfFlagged = [node('a', EMPTY, flag), node('b', EMPTY)]
  meet(halfFlagged)
  expect(kindsOf(halfFlagged)).toEqual(['wait', 'wait'])
})

test('a majority of empty nodes never outvotes one that holds data, even after that one is gone', () => {
  const flag = { formsWithMajority: true }
  const nodes = [node('a', EMPTY, flag), node('b', EMPTY, flag), node('c', seed('s'), flag)]
  const [a, b] = nodes as [Formation, Formation]

  meet(nodes)
  for (const formation of [a, b]) onPeerLost(formation, 'c')

  expect(kindsOf([a, b])).toEqual(['wait', 'wait'])
  expect(bootstrapOf(a, 0)).toMatchObject({ waitsFor: 'snapshot' })
})

test('a node whose snapshot differs from that of a majority sets its own aside and waits to join', () => {
  const nodes = [node('a', seed('s')), node('b', seed('s')), node('c', seed('older'))]
  const c = nodes[2] as Formation

  meet(nodes)
  expect(kindsOf(nodes)).toEqual(['form', 'form', 'set-aside'])

  hold(c, EMPTY)
  expect(decide(c, 0)).toMatchObject({ kind: 'wait', waitsFor: 'join' })
})

test('two snapshots without a majority wait, and every 10 s the log names their holders', () => {
  const voters = ['a', 'b', 'c', 'd']
  const nodes = [seed('s'), seed('s'), seed('t'), seed('t')].map((held, i) => node(voters[i], held, { voters }))
  const [a] = nodes as [Formation]

  meet(nodes)

  expect(kindsOf(nodes)).toEqual(['wait', 'wait', 'wait', 'wait'])
  const line = describeWaiting(a, 0)
  expect(line?.message).toMatch(/is on 2, \w{12}… is on 2 of 4 voters, 3 needed/)
  expect(Object.keys((line as { fields: { voters: object } }).fields.voters)).toEqual(voters)
  expect(describeWaiting(a, LOG_EVERY_MS - 1)).toBeUndefined()
  expect(describeWaiting(a, LOG_EVERY_MS)).toBeDefined()
})

test('a founder that learns of another founder of the same snapshot founds the shard with it', () => {
  const nodes = [node('a', seed('s')), node('b', seed('s'))]
  const [a, b] = nodes as [Formation, Formation]
  meet(nodes)
  const first = decide(a, 0)
  follow(a, first)
  onPeerLost(b, 'a')

  onPeer(b, 'a', reportFor(a, 'b'), 0)

  expect(decide(b, 0)).toEqual(first)
})

test('a node that meets a formed member with a leader joins it and never forms', () => {
  const [a, b, c] = ABC.map((name) => node(name, seed('s'))) as [Formation, Formation, Formation]
  meet([a, b])
  follow(a, decide(a, 0))
  if (a.held.state === 'formed') hold(a, { ...a.held, isUntouched: false, leader: 'a' })

  meet([a, b, c])

  for (const formation of [b, c]) {
    expect(decide(formation, 0)).toMatchObject({ kind: 'join', via: 'a', leader: 'a', keepsSnapshot: true })
  }
})

test('a snapshot that a running shard did not begin with is set aside; a formed node alone decides nothing', () => {
  const old = node('a', seed('old'), { voters: ['a'] })
  follow(old, decide(old, 0))
  const restored = [node('b', seed('new')), node('c', seed('new'))]
  const [b] = restored as [Formation]

  meet([old, ...restored])
  expect(kindsOf(restored)).toEqual(['wait', 'wait'])

  if (old.held.state === 'formed') hold(old, { ...old.held, isUntouched: false, leader: 'a' })
  meet([old, ...restored])
  expect(decide(b, 0)).toMatchObject({ kind: 'set-aside' })
  hold(b, EMPTY)
  expect(decide(b, 0)).toMatchObject({ kind: 'join', keepsSnapshot: false, cluster: { voters: ['a'] } })
})

test('a report counts only if it echoes this incarnation, and while it is recent', () => {
  const [a, b] = [node('a', seed('s')), node('b', seed('s'))]
  const early = reportFor(b, 'a')

  onPeer(a, 'b', early, 0)
  expect(decide(a, 0).kind).toBe('wait')

  onPeer(b, 'a', reportFor(a, 'b'), 0)
  onPeer(a, 'b', reportFor(b, 'a'), 0)
  expect(decide(a, 0).kind).toBe('form')
  expect(decide(a, REPORT_MS_MAX + 1).kind).toBe('wait')
})

test('a wiped node never founds an empty shard again, whatever old reports it receives', () => {
  const nodes = ABC.map((name) => node(name, EMPTY))
  const [a, b, c] = nodes as [Formation, Formation, Formation]
  meet(nodes)
  const old = [reportFor(a, 'b'), reportFor(c, 'b')] as const
  for (const formation of nodes) follow(formation, decide(formation, 0))
  // b votes for a, and is wiped. a has campaigned. c has received no report of that.
  if (a.held.state === 'formed') hold(a, { ...a.held, isUntouched: false })
  expect(b.held.state).toBe('formed')
  const wiped = node('b', EMPTY, { incarnation: folder('b', 2) })

  onPeer(wiped, 'a', old[0], 0)
  onPeer(wiped, 'c', old[1], 0)
  expect(decide(wiped, 0).kind).toBe('wait')
  meet([a, wiped, c])
  expect(decide(wiped, 0).kind).toBe('wait')
})

test('different lists of initial voters do not count, and end the process once a majority agrees on one', () => {
  const other = node('c', EMPTY, { voters: ['a', 'c'] })
  const others = [node('a', EMPTY), node('b', EMPTY)]

  meet([other, others[0] as Formation])
  expect(decide(other, 0).kind).toBe('wait')
  expect(bootstrapOf(other, 0).voters[0]).toMatchObject({ id: 'a', state: 'refused' })

  meet([other, ...others])
  const decision = decide(other, 0)
  expect(decision.kind === 'fail' && decision.error.code).toBe('data_conflict')
  expect(decision.kind === 'fail' && decision.error.message).toContain('a, b, c')
  expect(kindsOf(others)).toEqual(['wait', 'wait'])
})

test('another codec list does not count, and ends the process where a majority has it', () => {
  const codecs = createCodecList(['refundable', 'breakfast'])
  const other = node('c', seed('s'), { codecs })
  const others = [node('a', seed('s')), node('b', seed('s'))]

  meet([other, others[0] as Formation])
  expect(kindsOf([other, others[0] as Formation])).toEqual(['wait', 'wait'])

  meet([other, ...others])
  expect(kindsOf([other, ...others])).toEqual(['fail', 'form', 'form'])
})

test('reports of nodes of another shard are ignored', () => {
  const stranger = node('b', seed('s'), { shardId: 's2' })
  const a = node('a', seed('s'))

  meet([a, stranger])

  expect(decide(a, 0).kind).toBe('wait')
  expect(bootstrapOf(a, 0).voters[1]).toMatchObject({ state: 'refused', detail: 'it belongs to shard s2' })
})

test('a report whose parts contradict each other is ignored', () => {
  const [a, b] = [node('a', seed('s')), node('b', seed('s'))]
  meet([a, b])
  const sound = reportFor(b, 'a')

  for (const change of [{ voters: ['a', 'b'] }, { contentDigest: '' }, { clusterId: folder('x') }, { voters: [] }]) {
    const fresh = node('a', seed('s'))
    onPeer(fresh, 'b', { ...sound, ...change }, 0)
    expect(fresh.reports.size).toBe(0)
  }
})

test('a node that is no initial voter never forms and joins through any formed one', () => {
  const learner = node('x', EMPTY)
  const nodes = ABC.map((name) => node(name, EMPTY))
  const [a] = nodes as [Formation]

  meet([learner, ...nodes])
  expect(decide(learner, 0)).toMatchObject({ kind: 'wait', waitsFor: 'join' })
  for (const formation of nodes) follow(formation, decide(formation, 0))
  if (a.held.state === 'formed') hold(a, { ...a.held, isUntouched: false, leader: 'b' })
  meet([learner, a])

  expect(decide(learner, 0)).toMatchObject({ kind: 'join', via: 'a', leader: 'b' })
})

test('a single voter forms at once; peers are learned from peers', () => {
  const single = node('a', EMPTY, { voters: ['a'] })
  expect(decide(single, 0).kind).toBe('form')

  const b = node('b', EMPTY, { voters: ['b'] })
  onPeer(b, 'x', { ...reportFor(node('x', EMPTY), 'b'), members: ['y', 'z'] }, 0)
  expect(reportFor(b, 'x').members).toEqual(['b', 'x', 'y', 'z'])
})

test('raft ids of founders are their positions by name; another incarnation has none', () => {
  const configuration = genesisConfiguration(['c', 'a', 'b'])
  const founder = { node: 'b', incarnation: folder('b'), isFounder: true }

  expect(configuration.voters).toEqual([1, 2, 3])
  expect(raftIdOf(configuration, founder)).toBe(2)
  expect(raftIdOf(configuration, { ...founder, isFounder: false })).toBe(0)
  const members = configuration.members.map((member) => ({ ...member, incarnation: folder(member.node) }))
  expect(raftIdOf({ ...configuration, members }, { ...founder, isFounder: false })).toBe(2)
  expect(raftIdOf({ ...configuration, members }, { ...founder, incarnation: folder('b', 2) })).toBe(0)
})

test('the members in a founding snapshot are ignored, those in a later one count', () => {
  const cluster = { clusterId: '', shardId: 's1', codecs: [], codecHash: '', baseIndex: 7, baseTerm: 2, voters: ABC }
  const membership = genesisConfiguration(['x', 'y'])

  expect(configurationAt(cluster, undefined).members.map(({ node }) => node)).toEqual(ABC)
  expect(configurationAt(cluster, { index: 7, term: 2, membership })).toEqual(genesisConfiguration(ABC))
  expect(configurationAt(cluster, { index: 8, term: 2, membership })).toEqual(membership)
})

// Properties

const RUNS = Number(process.env['FORMATION_RUNS'] ?? 300)
const SEED = Number(process.env['FORMATION_SEED'] ?? 1)

type World = {
  readonly nodes: Formation[]
  readonly formedBy: { node: string; clusterId: string; overData: boolean }[]
  nowMs: number
}

/** Reports, losses and set-asides in random order between nodes that each hold something. */
function wander(random: Random, options: { flags?: boolean } = {}): World {
  const names = random.below(2) === 0 ? ABC : ABCDE
  const formsWithMajority = (options.flags ?? true) && random.below(3) === 0
  const holdings = [EMPTY, seed('s'), ...(random.below(3) === 0 ? [seed('t')] : [])]
  const nodes = names.map((name) => {
    const held = holdings[random.below(holdings.length)] as Held
    return node(name, held, { voters: names, formsWithMajority })
  })
  const world: World = { nodes, formedBy: [], nowMs: 0 }
  for (let step = 0; step < 120; step++) {
    world.nowMs += random.below(3_000)
    const from = nodes[random.below(nodes.length)] as Formation
    const to = nodes[random.below(nodes.length)] as Formation
    if (from === to) continue
    if (random.below(12) === 0) onPeerLost(to, from.self)
    else onPeer(to, from.self, reportFor(from, to.self), world.nowMs)
    const acting = nodes[random.below(nodes.length)] as Formation
    if (acting.held.state === 'formed') continue
    const decision = decide(acting, world.nowMs)
    const knowsData = [...acting.reports.values()].some(({ report }) => report.contentDigest !== '')
    follow(acting, decision)
    if (decision.kind !== 'form') continue
    const { clusterId, baseIndex } = decision.cluster
    world.formedBy.push({ node: acting.self, clusterId, overData: knowsData && baseIndex === 0 })
  }
  return world
}

/** Two clusters, or an empty one founded by a node with a report of data. */
function violationOf(random: Random): string {
  const { formedBy } = wander(random)
  const ids = new Set(formedBy.map(({ clusterId }) => clusterId))
  return ids.size > 1 || formedBy.some(({ overData }) => overData) ? JSON.stringify(formedBy) : ''
}

test('no order of reports lets nodes form two clusters, or an empty one despite a report of data', () => {
  for (let run = 0; run < RUNS; run++) {
    expect(violationOf(createRandom(SEED + run)), `FORMATION_SEED=${SEED + run}`).toBe('')
  }
})

test('nodes with different codec lists do not found one shard', () => {
  const codecs = createCodecList(['refundable', 'breakfast'])
  const nodes = [node('a', seed('s')), node('b', seed('s'), { codecs }), node('c', EMPTY)]
  meet(nodes)

  expect(kindsOf(nodes)).not.toContain('form')
})

test('once all nodes are connected, a majority with one snapshot or all empty ones form or join', () => {
  for (let run = 0; run < RUNS; run++) {
    // With the flag, empty nodes without reports of data may form while the others wait: an operator must decide.
    const world = wander(createRandom(SEED + run), { flags: false })
    for (let round = 0; round < 4; round++) {
      world.nowMs += 1_000
      meet(world.nodes, world.nowMs)
      for (const formation of world.nodes) {
        if (formation.held.state !== 'formed') follow(formation, decide(formation, world.nowMs))
      }
    }
    const founders = world.nodes.filter(({ held }) => held.state === 'formed' && held.isFounder).length
    const states = world.nodes.map(({ held }) => held.state)
    const majority = Math.floor(world.nodes.length / 2) + 1
    const seeds = world.nodes.map(({ held }) => (held.state === 'seeded' ? held.digest : ''))
    const most = Math.max(0, ...seeds.filter(Boolean).map((digest) => seeds.filter((other) => other === digest).length))
    // This test elects no leader, so joining nodes wait. There are always enough founders to elect one.
    expect(founders === 0 || founders >= majority, `FORMATION_SEED=${SEED + run}: ${states}`).toBe(true)
    if (founders === 0) expect(most, `FORMATION_SEED=${SEED + run}: ${states}`).toBeLessThan(majority)
    if (founders === 0) expect(states, `FORMATION_SEED=${SEED + run}`).not.toEqual(states.map(() => 'empty'))
  }
})

test('an empty node that gets a snapshot stays silent, then reads its folder again and founds the shard with a second one', () => {
  const [a, b, c] = [node('a', EMPTY), node('b', EMPTY), node('c', EMPTY)]
  meet([a, b])
  expect(decide(a, 0)).toMatchObject({ kind: 'wait', waitsFor: 'voters' })

  for (const each of [a, b]) beginQuiet(each, 1_000)
  expect(decide(a, 1_000 + QUIET_MS - 1)).toMatchObject({ kind: 'wait', waitsFor: 'snapshot' })
  expect(decide(a, 1_000 + QUIET_MS)).toEqual({ kind: 'reread' })

  for (const each of [a, b]) hold(each, seed('x'))
  expect(isQuiet(a)).toBe(false)
  const now = 1_000 + QUIET_MS
  meet([a, b, c], now)
  expect(decide(a, now).kind).toBe('form')
  expect(decide(b, now).kind).toBe('form')
  expect(decide(c, now)).toMatchObject({ kind: 'wait', waitsFor: 'join' })
})

test('after its silence no node counts it as empty any more', () => {
  const [a, b, c] = [node('a', EMPTY), node('b', EMPTY), node('c', EMPTY)]
  meet([a, b, c], 0)
  beginQuiet(a, 0)

  expect(decide(c, REPORT_MS_MAX).kind).toBe('form')
  // c waits for a beyond the age limit of reports. Only then does a change what it holds.
  meet([b, c], QUIET_MS)
  expect(decide(c, QUIET_MS)).toMatchObject({ kind: 'wait', waitsFor: 'voters' })
  expect(decide(a, QUIET_MS).kind).toBe('reread')
})

test('a silent node that learns of a founded shard sets its snapshot aside and founds the empty shard with the others', () => {
  const [a, b, c] = [node('a', EMPTY), node('b', EMPTY), node('c', EMPTY)]
  meet([a, b, c], 0)
  beginQuiet(a, 0)
  follow(c, decide(c, 0))
  onPeer(a, 'c', reportFor(c, 'a'), 500)

  const decision = decide(a, 500)
  expect(decision).toMatchObject({
    kind: 'set-aside',
    reason: expect.stringContaining('load it into the running shard'),
  })
  follow(a, decision)
  expect(decide(a, 600).kind).toBe('form')
})
