import { expect, test } from 'vitest'
import { secondsText } from '../history/figures.ts'
import { goneNode, infoOf, MISMATCH, NOW, observedNode, shardOf, statusOf } from '../testing/observed-nodes.ts'
import { briefOf, DERIVE_LIMITS, lagText, type ShardMemory } from './derive.ts'
import { type DigestMark, emptyObservation, type NodeObservation, withDigest } from './observation.ts'

const REFUSED = { code: 'refused', message: 'connection refused' }
const LATE = { code: 'timeout', message: 'no response within 800 ms' }
const [n1, n2, n3] = [observedNode({ id: 'n1' }), observedNode({ id: 'n2' }), observedNode({ id: 'n3' })]
const nodeOf = (nodes: readonly NodeObservation[], id: string) => {
  const node = shardOf(nodes).view.nodes.find((each) => each.id === id)
  if (!node) throw new Error(`${id} is missing`)
  return node
}
/** Progress of n2 as reported by n1, the leader. */
const withLag = (entries: number, seconds: number, members = {}) =>
  observedNode({ id: 'n1', lags: { n2: [entries, seconds] }, ...members })
const falling = (entries: number) => [
  { at: NOW - 10_000, entries: entries + 1_000 },
  { at: NOW, entries },
]
/** An unavailable n2 that reports these reasons, in this order. */
const unavailableFor = (reasons: readonly (readonly [reason: string, detail: string, stops: 'all' | 'writes'])[]) =>
  observedNode(
    { id: 'n2', health: 'unavailable' },
    {
      status: {
        value: statusOf({
          reasons: reasons.map(([reason, detail, stops]) => ({ ...MISMATCH, reason, detail, stops })),
        }),
        at: NOW,
      },
    },
  )

/** docs/design/control-plane.md#node-state, row by row. */
const NODE_ROWS: readonly (readonly [
  row: number,
  what: string,
  nodes: readonly NodeObservation[],
  state: string,
  level: string,
  message: string,
])[] = [
  [
    1,
    'three rounds refused',
    [n1, goneNode({ id: 'n2' }, REFUSED), n3],
    'unreachable',
    'crit',
    'Unreachable: connection refused',
  ],
  [
    1,
    'unknown host name',
    [n1, goneNode({ id: 'n2' }, { code: 'name-not-found', message: 'unknown host name' }), n3],
    'unreachable',
    'crit',
    'Unreachable: unknown host name',
  ],
  [
    2,
    'three rounds without a response',
    [n1, goneNode({ id: 'n2' }, LATE), n3],
    'not-answering',
    'crit',
    'Not answering: no response within 800 ms',
  ],
  [
    3,
    'cores changed and it is down',
    [
      n1,
      goneNode({ id: 'n2' }, REFUSED, { status: { value: statusOf({ cores: { start: 8, now: 6 } }), at: NOW } }),
      n3,
    ],
    'cores-changed',
    'crit',
    'Stopped: cores changed 8 → 6',
  ],
  [
    4,
    'it reports it',
    [n1, observedNode({ id: 'n2', health: 'unavailable' }), n3],
    'unavailable',
    'crit',
    'Unavailable, without a reported reason',
  ],
  [
    4,
    'it reports a reason that stops only writes before the one that stops everything',
    [
      n1,
      unavailableFor([
        ['log_full', 'the log is full', 'writes'],
        ['loading', 'loading a snapshot', 'all'],
      ]),
      n3,
    ],
    'unavailable',
    'crit',
    'Unavailable: loading a snapshot',
  ],
  [
    4,
    'no reason that it reports stops everything',
    [
      n1,
      unavailableFor([
        ['first_reason', '', 'writes'],
        ['second_reason', 'the second', 'writes'],
      ]),
      n3,
    ],
    'unavailable',
    'crit',
    'Unavailable: first_reason',
  ],
  [
    6,
    'a different codec list',
    [
      n1,
      observedNode(
        { id: 'n2' },
        {
          codecs: {
            value: { rate_features: ['x'], hash: 2, hash_hex: '1'.repeat(16), ordered_hash: 'b'.repeat(64) },
            at: NOW,
          },
        },
      ),
      n3,
    ],
    'different-data',
    'warn',
    'Different data: its codec list differs from n1',
  ],
  [
    6,
    'a different state at the same index',
    [
      observedNode({ id: 'n1' }, { digests: [{ index: 10_000, value: '0'.repeat(16) }] }),
      observedNode({ id: 'n2' }, { digests: [{ index: 10_000, value: '1'.repeat(16) }] }),
      n3,
    ],
    'different-data',
    'warn',
    'Different data: its state differs from n1 at index 10,000',
  ],
  [
    7,
    'more than 10,000 entries',
    [withLag(12_400, 0.5), n2, n3],
    'far-behind',
    'warn',
    'Far behind: 12,400 entries, 500 ms',
  ],
  [7, 'more than 10 s', [withLag(40, 14), n2, n3], 'far-behind', 'warn', 'Far behind: 40 entries, 14 s'],
  [8, 'more than 1,000 entries', [withLag(1_001, 0.2), n2, n3], 'behind', 'warn', 'Behind: 1,001 entries, 200 ms'],
  [8, 'more than 1 s', [withLag(5, 1.1), n2, n3], 'behind', 'warn', 'Behind: 5 entries, 1.1 s'],
  [
    9,
    'a learner whose lag falls',
    [
      withLag(4_000, 5, { voters: ['n1', 'n3'], learners: ['n2'] }),
      observedNode({ id: 'n2', voters: ['n1', 'n3'], learners: ['n2'] }, { lags: falling(4_000) }),
      observedNode({ id: 'n3', voters: ['n1', 'n3'], learners: ['n2'] }),
    ],
    'catching-up',
    'info',
    'Catching up, ETA 40 s',
  ],
  [10, 'nothing is wrong', [n1, n2, n3], 'healthy', 'ok', 'Healthy'],
  [10, 'exactly at the limits', [withLag(1_000, 1), n2, n3], 'healthy', 'ok', 'Healthy'],
  [11, 'it was never polled', [n1, emptyObservation(n2.address), n3], 'unknown', 'unk', 'Unknown: no response yet'],
  [
    11,
    'it reports no health',
    [n1, observedNode({ id: 'n2' }, { health: undefined }), n3],
    'unknown',
    'unk',
    'Unknown: reports no health',
  ],
]

test.each(NODE_ROWS)('row %i, %s: state of a node', (row, _what, nodes, state, level, message) => {
  expect(nodeOf(nodes, 'n2')).toMatchObject({ state, level, message, rule: { number: row } })
})

test('earlier rows take precedence: a node that is far behind and unavailable is unavailable', () => {
  expect(nodeOf([withLag(99_000, 60), observedNode({ id: 'n2', health: 'unavailable' }), n3], 'n2').state).toBe(
    'unavailable',
  )
})

test('a learner whose lag grows is behind, however new it is', () => {
  const members = { voters: ['n1', 'n3'], learners: ['n2'] }
  const rising = [
    { at: NOW - 10_000, entries: 3_000 },
    { at: NOW, entries: 4_000 },
  ]
  const nodes = [
    withLag(4_000, 5, members),
    observedNode({ id: 'n2', ...members }, { lags: rising }),
    observedNode({ id: 'n3', ...members }),
  ]

  expect(nodeOf(nodes, 'n2')).toMatchObject({ state: 'behind', etaSeconds: null })
})

const three = { voters: ['n1', 'n2', 'n3'] }
const five = ['n1', 'n2', 'n3', 'n4', 'n5']
const inFive = (id: string) => observedNode({ id, voters: five })
const leaderless = (id: string) => observedNode({ id, leader: '', health: 'active_follower', ...three })
const long = (change: Partial<ShardMemory>): ShardMemory => ({
  ...{
    state: 'healthy',
    since: NOW - 60_000,
    leader: 'n1',
    leaderSince: NOW - 60_000,
    term: 4,
    knownSince: NOW - 60_000,
    leaderlessSince: null,
    disagreeSince: null,
    claiming: new Map(),
    differing: new Map(),
  },
  ...change,
})
const standalone = observedNode({ id: 'n1', health: 'active' }, { isStandalone: true, info: undefined })

/** docs/design/control-plane.md#shard-state, row by row. */
const SHARD_ROWS: readonly (readonly [
  what: string,
  nodes: readonly NodeObservation[],
  memory: ShardMemory | undefined,
  state: string,
  level: string,
  message: string,
])[] = [
  [
    'no node responds',
    ['n1', 'n2', 'n3'].map((id) => goneNode({ id }, REFUSED)),
    undefined,
    'unknown',
    'crit',
    'Unknown: no node answers',
  ],
  [
    'too few voters',
    [n1, goneNode({ id: 'n2' }, REFUSED), goneNode({ id: 'n3' }, LATE)],
    undefined,
    'quorum-lost',
    'crit',
    'Quorum lost (1 of 3 voters answers, 2 needed)',
  ],
  [
    'no leader for long',
    ['n1', 'n2', 'n3'].map(leaderless),
    long({ leaderlessSince: NOW - DERIVE_LIMITS.electionTimeoutMs - 1 }),
    'no-leader',
    'crit',
    'No leader (3 of 3 voters answer, 2 needed)',
  ],
  [
    'no leader for a moment',
    ['n1', 'n2', 'n3'].map(leaderless),
    long({}),
    'electing',
    'info',
    'Electing (3 of 3 voters answer, 2 needed)',
  ],
  [
    'two leaders are named',
    [n1, n2, observedNode({ id: 'n3', leader: 'n3', health: 'active_follower' })],
    long({ disagreeSince: NOW - 5_000 }),
    'disagree',
    'crit',
    'Nodes disagree about the leader (3 of 3 voters answer, 2 needed)',
  ],
  [
    'one of five is down',
    [...['n1', 'n2', 'n3', 'n4'].map(inFive), goneNode({ id: 'n5', voters: five }, LATE)],
    undefined,
    'degraded',
    'warn',
    'Degraded, can lose 1 more (4 of 5 voters answer, 3 needed)',
  ],
  [
    'one of three is down',
    [n1, n2, goneNode({ id: 'n3' }, LATE)],
    undefined,
    'degraded-last',
    'crit',
    'Degraded, cannot lose another (2 of 3 voters answer, 2 needed)',
  ],
  [
    'one is behind',
    [withLag(2_000, 2), n2, n3],
    undefined,
    'attention',
    'warn',
    'Needs attention, can lose 1 (3 of 3 voters answer, 2 needed)',
  ],
  ['nothing is wrong', [n1, n2, n3], undefined, 'healthy', 'ok', 'Healthy, can lose 1 of 3'],
  ['it has no copies', [standalone], undefined, 'standalone', 'info', 'Standalone, no copies'],
  [
    'its nodes were not polled yet',
    [n1, emptyObservation(n2.address), n3],
    undefined,
    'unknown',
    'unk',
    'Unknown: polling its nodes',
  ],
]

test.each(SHARD_ROWS)('%s: state of a shard', (_what, nodes, memory, state, level, message) => {
  expect(shardOf(nodes, { memory }).view).toMatchObject({ state, level, message })
})

test.each<[string, readonly NodeObservation[], string, string]>([
  ['that is healthy', [n1, n2, n3], 'cut-off', 'Cut off: no bridge reaches it; the members are healthy'],
  [
    'that has lost a voter',
    [n1, n2, goneNode({ id: 'n3' }, REFUSED)],
    'cut-off',
    'Cut off: no bridge reaches it; degraded, cannot lose another (2 of 3 voters answer, 2 needed)',
  ],
  ['without copies', [standalone], 'cut-off', 'Cut off: no bridge reaches it; standalone, no copies'],
  [
    'without its quorum',
    [n1, goneNode({ id: 'n2' }, REFUSED), goneNode({ id: 'n3' }, REFUSED)],
    'quorum-lost',
    'Quorum lost (1 of 3 voters answers, 2 needed); no bridge reaches it',
  ],
])('no bridge reaches a shard %s', (_, nodes, state, message) => {
  expect(shardOf(nodes, { isCut: true }).view).toMatchObject({ state, level: 'crit', message })
})

test('a shard that waits for its founding voters reports what is missing', () => {
  const bootstrap = {
    waits_for: 'snapshot' as const,
    why: 'snapshot 8f3a is on 1 of 3 voters, 2 needed',
    needed: 2,
    voters: [],
  }
  const info = { ...infoOf({ id: 'n1', leader: '', voters: [] }), bootstrap }
  const { view } = shardOf([observedNode({ id: 'n1', health: 'unavailable' }, { info: { value: info, at: NOW } })])

  expect(view).toMatchObject({ state: 'forming', level: 'info', waitsFor: bootstrap.why })
})

const ended = (id: string, commit: number) =>
  observedNode({ id, leader: '', health: 'active_follower', ...three, commit })
test.each([
  ['a healthy shard', [n1, n2, n3], ''],
  [
    'one without its quorum',
    [n1, goneNode({ id: 'n2' }, REFUSED), goneNode({ id: 'n3' }, LATE)],
    'Waiting for n2, n3.',
  ],
  [
    'one without a leader',
    [ended('n1', 50_000), ended('n2', 50_012), ended('n3', 49_000)],
    'n2 has the longest log, which ends at 50,012',
  ],
  [
    'one without a leader and one of its voters',
    [ended('n1', 50_000), ended('n2', 49_000), goneNode({ id: 'n3', leader: '', ...three, commit: 60_000 }, LATE)],
    'n3 is missing; n1 has the longest log, which ends at 50,000',
  ],
])('%s shows what it waits for', (_, nodes, waitsFor) => {
  expect(shardOf(nodes).view.waitsFor).toBe(waitsFor)
})

test('a shard is clustered, standalone, or unknown until a node has reported', () => {
  const silent = observedNode({ id: 'n1' }, { info: undefined })

  expect([[silent, n2], [standalone], [silent]].map((nodes) => shardOf(nodes).view.mode)).toEqual([
    'clustered',
    'standalone',
    'unknown',
  ])
})

test('the state of a node shows the values that it follows from', () => {
  const inputsOf = (lagging: NodeObservation, id: string) => nodeOf([lagging, n2, n3], id).rule.inputs

  expect(inputsOf(withLag(1, 0.5), 'n2')).toEqual({
    'rounds missed': '0',
    '/healthz': 'active_follower',
    'leader by majority': 'n1',
    lag: '1 entry, 500 ms',
  })
  // The leader has no lag of its own.
  expect(inputsOf(withLag(1, 0.5), 'n1')).toEqual({
    'rounds missed': '0',
    '/healthz': 'active_leader',
    'leader by majority': 'n1',
  })
})

test('two leaders for a moment are an election between two polls, not a disagreement', () => {
  const nodes = [n1, n2, observedNode({ id: 'n3', leader: 'n3', health: 'active_follower' })]

  const { view, memory } = shardOf(nodes, { memory: long({}) })

  expect(view.state).toBe('healthy')
  expect(memory.disagreeSince).toBe(NOW)
})

test.each([
  ['in the same term', 4],
  ['in an earlier term', 3],
])('row 5: a node that goes on claiming to lead beside a majority is in conflict, %s', (_what, term) => {
  const others = ['n1', 'n3']
  const at = (ms: number) => [
    ...others.map((id) => observedNode({ id, at: NOW + ms })),
    observedNode({ id: 'n2', leader: 'n2', term, at: NOW + ms }),
  ]
  const first = shardOf(at(0))
  const soon = shardOf(at(1_000), { now: NOW + 1_000, memory: first.memory })
  const later = shardOf(at(2_000), { now: NOW + 2_000, memory: soon.memory })
  const n2Of = ({ view }: typeof first) => view.nodes.find(({ id }) => id === 'n2')

  expect([first, soon].map((shard) => n2Of(shard)?.state)).toEqual(['healthy', 'healthy'])
  expect(n2Of(later)).toMatchObject({
    ...{ state: 'conflicting-leader', level: 'crit', message: 'Claims to lead, a majority names n1' },
    rule: { number: 5 },
  })
  expect(later.view.state).toBe('disagree')
})

test('a leader that one node names in a later term leads: the others were read before', () => {
  const nodes = [
    ...['n1', 'n2'].map((id) => observedNode({ id })),
    observedNode({ id: 'n3', leader: 'n3', term: 5, health: 'active_follower' }),
  ]
  const { view } = shardOf(nodes, { memory: long({}) })

  expect(view).toMatchObject({ state: 'healthy', leader: 'n3', term: 5 })
  expect(view.nodes.map(({ role }) => role)).toEqual(['follower', 'follower', 'leader'])
  expect(view.nodes.every(({ state }) => state === 'healthy')).toBe(true)
})

test('voters that were not read lately may know the leader: the shard is unknown, and not without a leader', () => {
  const unread = (id: string) => observedNode({ id, at: NOW - 15_001 })
  const { view, memory } = shardOf([leaderless('n1'), unread('n2'), unread('n3')], { memory: long({}) })

  expect(view).toMatchObject({ state: 'unknown', level: 'unk', leader: null, rates: { queries: null } })
  expect(memory).toMatchObject({ leader: 'n1', leaderSince: NOW - 60_000, leaderlessSince: null })
  expect(shardOf([leaderless('n1'), leaderless('n2'), unread('n3')], { memory: long({}) }).view.state).toBe('electing')
})

test('state and leader keep their start times until they change', () => {
  const first = shardOf([n1, n2, n3])
  const later = shardOf([n1, n2, n3], { now: NOW + 5_000, memory: first.memory })
  const moved = shardOf(
    ['n1', 'n2', 'n3'].map((id) => observedNode({ id, leader: 'n2' })),
    { now: NOW + 9_000, memory: later.memory },
  )

  expect(later.view).toMatchObject({ since: first.view.since, leaderSince: first.view.leaderSince })
  expect(moved.view).toMatchObject({ since: first.view.since, leader: 'n2', leaderSince: '2026-11-22T12:00:09.000Z' })
})

test('old reports of a responding node about its shard do not count', () => {
  const old = observedNode({ id: 'n2' }, { info: { value: infoOf({ id: 'n2' }), at: NOW - 15_001 } })

  expect(nodeOf([n1, old, n3], 'n2').namesLeader).toBeNull()
})

test('a shard without a responding node has no figures, and no spare voter', () => {
  const { view } = shardOf(['n1', 'n2', 'n3'].map((id) => goneNode({ id }, REFUSED)))
  expect(view).toMatchObject({ spare: null, maxLagEntries: null, packages: null, rates: { queries: null } })
})

test('the lag of a member is unknown until it has matched the new leader once', () => {
  const commit = 128_268
  const nodes = ['n1', 'n2', 'n3'].map((id) => observedNode({ id, commit, lags: { n2: [commit, 60], n3: [2, 0] } }))
  expect(nodeOf(nodes, 'n2')).toMatchObject({ lagEntries: null, state: 'healthy' })
  expect(nodeOf(nodes, 'n3').lagEntries).toBe(2)
})

test('values that are not reported are null, never zero', () => {
  const { view } = shardOf([
    observedNode({ id: 'n1' }, { status: undefined, codecs: undefined, info: undefined, health: undefined }),
  ])

  expect(view).toMatchObject({
    packages: null,
    maxLagEntries: null,
    window: null,
    term: null,
    spare: null,
    rates: { queries: null },
  })
  expect(view.nodes[0]).toMatchObject({
    lagEntries: null,
    memory: null,
    packages: null,
    orderedHash: null,
    voter: null,
    role: 'unknown',
  })
})

test.each([
  [3_000, 'live'],
  [3_001, 'delayed'],
  [15_000, 'delayed'],
  [15_001, 'gone'],
])('a response %i ms ago is %s', (age, freshness) => {
  expect(nodeOf([observedNode({ id: 'n2', at: NOW - age })], 'n2').freshness).toBe(freshness)
})

test('learners and followers are distinguished by the member list', () => {
  const members = { voters: ['n1', 'n2'], learners: ['n3'] }
  const { view } = shardOf(['n1', 'n2', 'n3'].map((id) => observedNode({ id, ...members })))

  expect(view.nodes.map(({ role, voter }) => [role, voter])).toEqual([
    ['leader', true],
    ['follower', true],
    ['learner', false],
  ])
})

test('the row of a shard does not change with every response', () => {
  const at = (ms: number) =>
    briefOf(
      shardOf(
        ['n1', 'n2', 'n3'].map((id) => observedNode({ id, at: NOW + ms })),
        { now: NOW + ms, memory: long({}) },
      ).view,
    )

  expect(at(1_000)).toEqual(at(4_000))
})

test('times are formatted by size', () => {
  expect([0.003, 1.25, 14.2, 89, 240, 7_200].map(secondsText)).toEqual([
    '3 ms',
    '1.3 s',
    '14 s',
    '89 s',
    '4 min',
    '2 h',
  ])
  expect(lagText(1, null)).toBe('1 entry')
})

// Digests

const A = 'a'.repeat(16)
const B = 'b'.repeat(16)
/** A status under writes: the current state, and the newest digest mark. */
const digestStatus = (applied: number, value: string, checked?: DigestMark) =>
  statusOf({
    replica: {
      ...{ role: 'follower', term: 4, first_index: 1, last_index: applied, commit_index: applied },
      ...{ applied_index: applied, lag_entries: 0 },
    },
    digest: { value, checked_index: checked?.index ?? 0, ...(checked && { checked_value: checked.value }) },
  })
const reporting = (id: string, digests: readonly DigestMark[], status = digestStatus(1, A)) =>
  observedNode({ id }, { digests, status: { value: status, at: NOW } })
const statesOf = (nodes: readonly NodeObservation[], memory?: ShardMemory) => {
  const derived = shardOf(nodes, { memory })
  return { states: derived.view.nodes.map(({ state }) => state), memory: derived.memory }
}
const HEALTHY = ['healthy', 'healthy', 'healthy']

test('digests of different times are not compared; this used to show healthy followers as different under writes', () => {
  // As nodes report before the first check: index 0, with the state at the time of the poll.
  const before = ['n1', 'n2', 'n3'].map((id, i) => reporting(id, [], digestStatus(100 + i, `${i}`.repeat(16))))
  // Equal marks, with states of different times.
  const mark = { index: 64, value: A }
  const after = ['n1', 'n2', 'n3'].map((id, i) => reporting(id, [mark], digestStatus(100 + i, `${i}`.repeat(16), mark)))

  expect(statesOf(before).states).toEqual(HEALTHY)
  expect(statesOf(after).states).toEqual(HEALTHY)
})

test('nodes that report different newest marks are compared at the newest common one', () => {
  const leader = reporting('n1', [
    { index: 10, value: A },
    { index: 20, value: A },
    { index: 30, value: A },
  ])
  const behind = reporting('n2', [{ index: 20, value: A }])
  const different = reporting('n3', [
    { index: 10, value: A },
    { index: 20, value: B },
  ])

  const { view } = shardOf([leader, behind, different])

  expect(view.nodes.map(({ state, message }) => [state, message])).toEqual([
    ['healthy', 'Healthy'],
    ['healthy', 'Healthy'],
    ['different-data', 'Different data: its state differs from n1 at index 20'],
  ])
})

test('a difference is shown until a later common index is equal, even when there is no common index for a while', () => {
  const leader = (...marks: DigestMark[]) => reporting('n1', marks)
  const other = (...marks: DigestMark[]) => [reporting('n2', marks), n3] as const

  const first = statesOf([leader({ index: 20, value: A }), ...other({ index: 20, value: B })])
  const apart = statesOf([leader({ index: 30, value: A }), ...other({ index: 20, value: B })], first.memory)
  const equal = statesOf([leader({ index: 40, value: A }), ...other({ index: 40, value: A })], apart.memory)

  expect(first.states[1]).toBe('different-data')
  expect(apart.states[1]).toBe('different-data')
  expect(equal.states).toEqual(HEALTHY)
  expect(equal.memory.differing.size).toBe(0)
})

test('nodes without a digest of the checked index are compared only when both have applied the same entry', () => {
  const leader = reporting('n1', [], digestStatus(100, A))

  expect(statesOf([leader, reporting('n2', [], digestStatus(101, B)), n3]).states).toEqual(HEALTHY)
  expect(statesOf([leader, reporting('n2', [], digestStatus(100, A)), n3]).states).toEqual(HEALTHY)
  expect(statesOf([leader, reporting('n2', [], digestStatus(100, B)), n3]).states[1]).toBe('different-data')
})

test('lag alone is not a difference', () => {
  const leader = reporting(
    'n1',
    Array.from({ length: 64 }, (_, i) => ({ index: 1_000 + i, value: A })),
  )

  expect(statesOf([leader, reporting('n2', [{ index: 12, value: B }]), n3]).states).toEqual(HEALTHY)
})

test('at most 64 distinct marks of a node are kept, and dropped when its log restarts', () => {
  let marks: readonly DigestMark[] = []
  for (let i = 1; i <= 70; i++) {
    marks = withDigest(marks, digestStatus(i, A, { index: i, value: A }))
    marks = withDigest(marks, digestStatus(i + 1, B, { index: i, value: A }))
  }

  expect(marks.map(({ index }) => index)).toEqual(Array.from({ length: 64 }, (_, i) => i + 7))
  expect(withDigest(marks, digestStatus(80, A))).toBe(marks)
  expect(withDigest(marks, digestStatus(5, B, { index: 3, value: B }))).toEqual([{ index: 3, value: B }])
})

test('the displayed digest belongs to the displayed index', () => {
  const digestOf = (status: ReturnType<typeof statusOf>) => shardOf([reporting('n1', [], status)]).view.nodes[0]?.digest

  expect(digestOf(digestStatus(100, B, { index: 64, value: A }))).toEqual({ value: A, index: 64 })
  expect(digestOf(digestStatus(100, B))).toEqual({ value: B, index: 100 })
  expect(digestOf(statusOf({}))).toBeNull()
})

const mismatched = { status: { value: statusOf({ reasons: [MISMATCH] }), at: NOW } }

test('a node that ended because its state differed keeps that reason; it used to be shown as refusing connections', () => {
  const ending = observedNode({ id: 'n2', health: 'unavailable' }, mismatched)

  expect(nodeOf([n1, ending, n3], 'n2')).toMatchObject({
    ...{ state: 'unavailable', level: 'crit', reasons: [MISMATCH] },
    message: 'Unavailable: its state differs from the log (digest_mismatch)',
  })
  for (const [error, state, number] of [
    [REFUSED, 'unreachable', 1],
    [LATE, 'not-answering', 2],
  ] as const) {
    expect(nodeOf([n1, goneNode({ id: 'n2' }, error, mismatched), n3], 'n2')).toMatchObject({
      ...{ state, level: 'crit', rule: { number, inputs: { 'last error': error.message } } },
      message: 'Stopped: its state differed from the log (digest_mismatch)',
      reasons: [MISMATCH],
    })
  }
  // After the restart it has not reported its metrics yet.
  expect(nodeOf([n1, observedNode({ id: 'n2' }, mismatched), n3], 'n2')).toMatchObject({ state: 'healthy' })
})

test('a voter that is about to end is not counted as available, as it used to be', () => {
  const { view } = shardOf([n1, observedNode({ id: 'n2', health: 'unavailable' }, mismatched), n3])

  expect(view).toMatchObject({
    ...{ state: 'degraded-last', level: 'crit', votersUp: 3, spare: 0 },
    message: 'Degraded, cannot lose another (3 of 3 voters answer, 1 of them ends soon, 2 needed)',
  })
})
