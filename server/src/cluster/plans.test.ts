import type { Environment, Handover, Operation, PlanCheck, ShardView } from '@vacancy/shared/contract'
import { describe, expect, test } from 'vitest'
import { goneNode, NOW, observedNode, shardOf, statusOf } from '../testing/observed-nodes.ts'
import { planBack, planPrepare } from './handover-plan.ts'
import { machineOf } from './impact.ts'
import type { NodeObservation } from './observation.ts'
import type { PlanContext, PlanDraft } from './operation-types.ts'
import { planDemote, planPromote, planTransfer, planTransferThenDemote } from './plans.ts'

const members = { voters: ['n1', 'n2', 'n3'], learners: ['n4'] }
const REFUSED = { code: 'refused', message: 'connection refused' }

/** Three voters and a learner; n1 has been the leader for a long time. */
function contextOf(
  change: {
    readonly nodes?: readonly NodeObservation[]
    readonly shard?: Partial<ShardView>
    readonly look?: Partial<PlanContext>
  } = {},
): PlanContext {
  const nodes = change.nodes ?? ['n1', 'n2', 'n3', 'n4'].map((id) => observedNode({ id, ...members }))
  const { view } = shardOf(nodes)
  return {
    now: NOW,
    shard: { ...view, leaderSince: '2026-11-22T08:00:00.000Z', ...change.shard },
    observations: nodes,
    running: undefined,
    isAdmin: true,
    hasAdminToken: true,
    clusterPause: null,
    bridges: ['b1'],
    baseUrl: 'http://console',
    ...change.look,
  }
}

const lagging = (entries: number, seconds: number, id = 'n2') => [
  observedNode({ id: 'n1', ...members, lags: { [id]: [entries, seconds] } }),
  ...['n2', 'n3', 'n4'].map((each) => observedNode({ id: each, ...members })),
]
const find = (draft: PlanDraft, id: string): PlanCheck | undefined => draft.checks.find((check) => check.id === id)
const transfer = (context: PlanContext) => planTransfer({ kind: 'transfer', shard: 's1', node: 'n2' }, context)
const promote = (context: PlanContext) => planPromote({ kind: 'promote', shard: 's1', node: 'n4' }, context)
const demote = (context: PlanContext) => planDemote({ kind: 'demote', shard: 's1', node: 'n3' }, context)

test('a transfer to an up-to-date voter passes every check', () => {
  const draft = transfer(contextOf())

  expect(draft.checks.filter(({ level }) => level !== 'ok')).toEqual([])
  expect(draft).toMatchObject({
    title: 'Transfer leadership of s1 to n2',
    action: 'Transfer leadership to n2',
    isArmed: false,
  })
  expect(draft.before.leader).toBe('n1')
  expect(draft.after).toMatchObject({ leader: 'n2', voters: 3, spare: 1 })
  expect(draft.after.nodes.map(({ node, role }) => `${node} ${role}`)).toEqual([
    'n1 follower',
    'n2 leader',
    'n3 follower',
    'n4 learner',
  ])
  expect(draft.alternatives.map(({ node }) => node)).toEqual(['n3'])
})

/** docs/design/control-plane.md#checks, transfer. */
const TRANSFER: readonly (readonly [check: string, level: string, what: string, context: PlanContext])[] = [
  ['leader', 'block', 'no leader', contextOf({ shard: { leader: null } })],
  ['leader', 'block', 'nodes disagree', contextOf({ shard: { state: 'disagree' } })],
  ['target', 'block', 'it is already the leader', contextOf({ shard: { leader: 'n2' } })],
  [
    'target-voter',
    'block',
    'it is a learner',
    contextOf({ nodes: ['n1', 'n2', 'n3'].map((id) => observedNode({ id, voters: ['n1', 'n3'], learners: ['n2'] })) }),
  ],
  [
    'target-answers',
    'block',
    'it does not respond',
    contextOf({
      nodes: [
        observedNode({ id: 'n1', ...members }),
        goneNode({ id: 'n2', ...members }, REFUSED),
        observedNode({ id: 'n3', ...members }),
      ],
    }),
  ],
  [
    'idle',
    'block',
    'another operation runs',
    contextOf({ look: { running: { id: 'op_1', title: 'Promote n4' } as Operation } }),
  ],
  [
    'member-change',
    'block',
    'the shard itself runs a change',
    contextOf({ shard: { change: { kind: 'join', node: 'n5', startedAt: '2026-11-22T12:00:00.000Z', step: '' } } }),
  ],
  ['admin', 'block', 'the caller is not an admin', contextOf({ look: { isAdmin: false } })],
  ['token', 'block', 'there is no token for nodes', contextOf({ look: { hasAdminToken: false } })],
  [
    'same-data',
    'block',
    'its codec list differs',
    contextOf({
      nodes: ['n1', 'n2', 'n3'].map((id) =>
        observedNode(
          { id },
          id === 'n2'
            ? {
                codecs: {
                  value: { rate_features: ['x'], hash: 2, hash_hex: '1'.repeat(16), ordered_hash: 'b'.repeat(64) },
                  at: NOW,
                },
              }
            : {},
        ),
      ),
    }),
  ],
  ['lag', 'block', 'more than 10,000 entries', contextOf({ nodes: lagging(10_001, 2) })],
  ['lag', 'warn', 'more than 1,000 entries', contextOf({ nodes: lagging(1_001, 0.1) })],
  ['lag', 'warn', 'more than a second', contextOf({ nodes: lagging(3, 1.5) })],
  ['spare', 'warn', 'no voter to spare', contextOf({ shard: { spare: 0 } })],
  [
    'machine',
    'warn',
    'fewer cores',
    contextOf({
      nodes: ['n1', 'n2', 'n3'].map((id) =>
        observedNode(
          { id },
          id === 'n2' ? { status: { value: statusOf({ cores: { start: 6, now: 6 } }), at: NOW } } : {},
        ),
      ),
    }),
  ],
  ['recent-change', 'warn', 'the leader is new', contextOf({ shard: { leaderSince: '2026-11-22T11:59:30.000Z' } })],
  [
    'maintenance',
    'warn',
    'the maintenance window is near',
    contextOf({
      nodes: ['n1', 'n2', 'n3'].map((id) =>
        observedNode(
          { id },
          {
            limits: {
              electionTimeoutMs: 1_800,
              snapshotIntervalSeconds: 60,
              snapshotTriggerCount: 1,
              maintenanceHour: 12,
            },
          },
        ),
      ),
    }),
  ],
]

test.each(TRANSFER)('transfer, check %s fails as %s: %s', (id, level, _what, context) => {
  expect(find(transfer(context), id)).toMatchObject({ level })
})

test('a plan can wait for a target that is far behind', () => {
  const context = contextOf({ nodes: lagging(12_400, 14) })

  const waiting = planTransfer({ kind: 'transfer', shard: 's1', node: 'n2', waitForLag: true }, context)

  expect(find(transfer(context), 'lag')?.fix).toMatchObject({
    label: 'Wait, then transfer',
    plan: { waitForLag: true },
  })
  expect(find(waiting, 'lag')?.level).toBe('info')
  expect(waiting.isArmed).toBe(true)
})

test('without a target the voter with the smallest lag is proposed', () => {
  const draft = planTransfer({ kind: 'transfer', shard: 's1' }, contextOf({ nodes: lagging(500, 0.1) }))

  expect(draft.node).toBe('n3')
})

test('a check with unknown values is a warning', () => {
  const nodes = ['n1', 'n2', 'n3'].map((id) => observedNode({ id }, { status: undefined, codecs: undefined }))

  const draft = transfer(contextOf({ nodes }))

  expect(find(draft, 'same-data')).toMatchObject({ level: 'warn', text: expect.stringContaining('not known') })
  expect(find(draft, 'machine')).toMatchObject({ level: 'warn', text: expect.stringContaining('not known') })
})

test('the expected pause comes from transfers of the shard, else of other shards, else from the configuration', () => {
  const effectOf = (context: PlanContext) => transfer(context).effects[0]
  const rates = { queries: null, writes: 1_240, errors: null, p50: null, p99: null }
  const own = effectOf(contextOf({ shard: { writePause: { median: 180, worst: 420, count: 20 }, rates } }))
  const others = effectOf(contextOf({ look: { clusterPause: { median: 90, worst: 100, count: 3 } } }))
  const none = effectOf(contextOf())

  expect(own).toEqual({
    text: 'Writes to s1 pause: 180 ms typical, 420 ms worst. 1,240 writes/s now, so about 223 wait.',
    source: 'last 20 transfers of s1',
  })
  expect(others?.source).toBe('last 3 transfers of other shards')
  expect(none?.text).toContain('at most one election timeout, 1.8 s')
})

test('the commands of the plan address the leader', () => {
  expect(transfer(contextOf()).commands).toEqual({
    cli: 'vacancy cluster transfer n2 --node n1:8080 --token-file admin.token --wait',
    curl: `curl -X POST 'http://console/cluster/transfer-leader?shard=s1' -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -d '{"target_node_id":"n2"}'`,
  })
})

/** docs/design/control-plane.md#checks, promote. */
const PROMOTE: readonly (readonly [check: string, level: string, what: string, context: PlanContext])[] = [
  ['quorum', 'block', 'the quorum is lost', contextOf({ shard: { votersUp: 1 } })],
  ['leader', 'block', 'no leader', contextOf({ shard: { leader: null } })],
  [
    'target-answers',
    'block',
    'it does not respond',
    contextOf({
      nodes: [
        ...['n1', 'n2', 'n3'].map((id) => observedNode({ id, ...members })),
        goneNode({ id: 'n4', ...members }, REFUSED),
      ],
    }),
  ],
  [
    'learner',
    'block',
    'it is a voter',
    contextOf({ nodes: ['n1', 'n2', 'n3', 'n4'].map((id) => observedNode({ id, voters: ['n1', 'n2', 'n3', 'n4'] })) }),
  ],
  ['lag', 'warn', 'it is behind', contextOf({ nodes: lagging(4_000, 5, 'n4') })],
  ['odd', 'warn', 'four voters', contextOf()],
]

test.each(PROMOTE)('promote, check %s fails as %s: %s', (id, level, _what, context) => {
  expect(find(promote(context), id)).toMatchObject({ level })
})

test('four voters tolerate as many failures as three, and need more acknowledgements', () => {
  expect(find(promote(contextOf()), 'odd')?.text).toBe(
    '4 voters tolerate 1 failure, as 3 do, but need 3 acknowledgements',
  )
  expect(promote(contextOf()).after).toMatchObject({ voters: 4, majority: 3, spare: 1 })
})

/** docs/design/control-plane.md#checks, demote. */
const DEMOTE: readonly (readonly [check: string, level: string, what: string, context: PlanContext])[] = [
  ['not-leader', 'block', 'it leads', contextOf({ shard: { leader: 'n3' } })],
  ['majority-after', 'block', 'too few voters would remain', contextOf({ shard: { votersUp: 2 } })],
  ['voter-remains', 'block', 'it is the last voter', contextOf({ shard: { voters: 1, votersUp: 1 } })],
  [
    'target-voter',
    'block',
    'it is a learner',
    contextOf({ nodes: ['n1', 'n2', 'n3'].map((id) => observedNode({ id, voters: ['n1', 'n2'], learners: ['n3'] })) }),
  ],
  ['spare', 'warn', 'no failure would be tolerated', contextOf()],
  ['odd', 'warn', 'two voters', contextOf()],
]

test.each(DEMOTE)('demote, check %s fails as %s: %s', (id, level, _what, context) => {
  expect(find(demote(context), id)).toMatchObject({ level })
})

test('for a leader, the plan offers to transfer first, as one operation with two halves', () => {
  const context = contextOf({ shard: { leader: 'n3' } })
  const nodes = ['n1', 'n2', 'n3', 'n4'].map((id) => observedNode({ id, leader: 'n3', ...members }))

  const both = planTransferThenDemote({ kind: 'transfer-then-demote', shard: 's1', node: 'n3' }, contextOf({ nodes }))

  expect(find(demote(context), 'not-leader')?.fix?.plan).toEqual({
    kind: 'transfer-then-demote',
    shard: 's1',
    node: 'n3',
  })
  expect(both.title).toBe('Transfer leadership of s1 to n1, then demote n3')
  expect(both.after).toMatchObject({ leader: 'n1', voters: 2, spare: 0 })
  expect(both.after.nodes.map(({ node, role }) => `${node} ${role}`)).toEqual([
    'n1 leader',
    'n2 follower',
    'n3 learner',
    'n4 learner',
  ])
  expect(both.checks.filter(({ level }) => level === 'block')).toEqual([])
})

test.each([
  [[], undefined],
  [['b1'], '1 bridge (b1) changes its write target; open connections stay.'],
  [['b1', 'b2'], '2 bridges (b1, b2) change their write target; open connections stay.'],
  [
    ['b1', 'b2', 'b3', 'b4', 'b5', 'b6'],
    '6 bridges (b1, b2, b3, b4, b5) change their write target; open connections stay.',
  ],
])('a transfer behind the bridges %j names its effect on them', (bridges, text) => {
  const { effects } = transfer(contextOf({ look: { bridges } }))

  expect(effects.find(({ source }) => source === 'registry')?.text).toBe(text)
})

describe('handover plan', () => {
  const PRODUCTION: Environment = { label: 'TEST', kind: 'production' }
  const members = { voters: ['n1', 'n2', 'n3'], learners: [] }

  /** Three voters led by n1, in the given zones. */
  function contextOf(id: string, zones: readonly string[], over: Partial<ShardView> = {}): PlanContext {
    const observations = ['n1', 'n2', 'n3'].map((node) => observedNode({ id: node, ...members }))
    const { view } = shardOf(observations)
    const nodes = view.nodes.map((node, at) => ({
      ...node,
      zone: zones[at] as string,
      apiUrl: `http://host-${at + 1}:8080`,
    }))
    return {
      now: NOW,
      shard: { ...view, id, nodes, leaderSince: '2026-11-22T08:00:00.000Z', ...over },
      observations,
      running: undefined,
      isAdmin: true,
      hasAdminToken: true,
      clusterPause: null,
      bridges: [],
      baseUrl: 'http://console',
    }
  }

  const prepare = (...contexts: PlanContext[]) => planPrepare({ kind: 'zone', name: 'a' }, contexts, PRODUCTION)

  test('leaders within the scope move to voters outside, others are left alone', () => {
    const plan = prepare(
      contextOf('s2', ['a', 'a', 'b']),
      contextOf('s1', ['b', 'a', 'a']),
      contextOf('s3', ['a', 'b', 'b']),
    )

    expect(plan.items.map(({ shard, from, to }) => [shard, from, to])).toEqual([
      ['s2', 'n1', 'n3'],
      ['s3', 'n1', 'n2'],
    ])
    expect(plan).toMatchObject({ kind: 'prepare', moves: 2, reasonRequired: true, back: null })
  })

  test('a leader without a voter outside stays, with the reason', () => {
    const plan = prepare(
      contextOf('s1', ['a', 'a', 'a']),
      contextOf('s2', ['a', 'b', 'b'], {
        change: { kind: 'promote', node: 'n4', startedAt: '2026-11-22T08:00:00.000Z', step: '' },
      }),
    )

    expect(plan.moves).toBe(0)
    expect(plan.items[0]?.blocked).toBe('no voter is outside zone a')
    expect(plan.items[1]?.blocked).toContain('another change')
  })

  test('a machine is the host of the address of its nodes', () => {
    const context = contextOf('s1', ['a', 'a', 'a'])
    const plan = planPrepare({ kind: 'machine', name: 'host-1' }, [context], PRODUCTION)

    expect(plan.items.map(({ to }) => to)).toEqual(['n2'])
    expect(machineOf({ apiUrl: '' })).toBe('')
  })

  test('the basis changes with the shards and their leaders, not with their order', () => {
    const shards = [contextOf('s1', ['a', 'b', 'b']), contextOf('s2', ['a', 'b', 'b'])] as const

    expect(prepare(...shards).basis).toBe(prepare(shards[1], shards[0]).basis)
    expect(prepare(shards[0]).basis).not.toBe(prepare(...shards).basis)
  })

  test('only moved leaders return, and only where they do not lead already', () => {
    const item = (shard: string, from: string, state: string) => ({ shard, from, to: 'n1', state })
    const earlier = {
      id: 'handover_1',
      scope: { kind: 'zone', name: 'b' },
      items: [
        item('s1', 'n2', 'done'),
        item('s2', 'n1', 'done'),
        item('s3', 'n2', 'skipped'),
        item('gone', 'n2', 'done'),
      ],
    } as unknown as Handover
    const plan = planBack(earlier, (id) => (id === 'gone' ? undefined : contextOf(id, ['a', 'b', 'b'])), PRODUCTION)

    expect(plan).toMatchObject({ title: 'Bring leaders back to zone b', back: 'handover_1', kind: 'bring-back' })
    expect(plan.items.map(({ shard, from, to }) => [shard, from, to])).toEqual([['s1', 'n1', 'n2']])
  })
})
