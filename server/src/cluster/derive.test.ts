import { expect, test } from 'vitest'
import { goneNode, infoOf, NOW, seenNode, shardOf, statusOf } from '../testing/seen-nodes.ts'
import { briefOf, DERIVE_LIMITS, grouped, lagText, type ShardMemory, secondsText } from './derive.ts'
import { nothingSeen, type Seen } from './seen.ts'

const REFUSED = { code: 'refused', message: 'connection refused' }
const LATE = { code: 'timeout', message: 'no answer within 800 ms' }
const [n1, n2, n3] = [seenNode({ id: 'n1' }), seenNode({ id: 'n2' }), seenNode({ id: 'n3' })]
const nodeOf = (nodes: readonly Seen[], id: string) => {
  const node = shardOf(nodes).view.nodes.find((each) => each.id === id)
  if (!node) throw new Error(`${id} is missing`)
  return node
}
/** What n1 tells as leader of how far n2 is. */
const withLag = (entries: number, seconds: number, members = {}) =>
  seenNode({ id: 'n1', lags: { n2: [entries, seconds] }, ...members })
const falling = (entries: number) => [
  { at: NOW - 10_000, entries: entries + 1_000 },
  { at: NOW, entries },
]

/** §4.2, row by row. */
const NODE_ROWS: readonly (readonly [
  row: number,
  what: string,
  nodes: readonly Seen[],
  state: string,
  level: string,
  says: string,
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
    'its name is not known',
    [n1, goneNode({ id: 'n2' }, { code: 'name-not-found', message: 'its name is not known' }), n3],
    'unreachable',
    'crit',
    'Unreachable: its name is not known',
  ],
  [
    2,
    'three rounds without an answer',
    [n1, goneNode({ id: 'n2' }, LATE), n3],
    'not-answering',
    'crit',
    'Not answering: no answer within 800 ms',
  ],
  [
    3,
    'cores changed and it is gone',
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
    'it says so',
    [n1, seenNode({ id: 'n2', health: 'unavailable' }), n3],
    'unavailable',
    'crit',
    'Unavailable, the node says',
  ],
  [
    5,
    'claims to lead',
    [n1, seenNode({ id: 'n2', health: 'active_leader', leader: 'n2' }), n3],
    'conflicting-leader',
    'crit',
    'Claims to lead, a majority names n1',
  ],
  [
    6,
    'another codec list',
    [
      n1,
      seenNode(
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
    'Different data: another codec list than n1',
  ],
  [
    6,
    'another state at the same index',
    [
      seenNode(
        { id: 'n1' },
        { status: { value: statusOf({ digest: { value: '0'.repeat(16), checked_index: 10_000 } }), at: NOW } },
      ),
      seenNode(
        { id: 'n2' },
        { status: { value: statusOf({ digest: { value: '1'.repeat(16), checked_index: 10_000 } }), at: NOW } },
      ),
      n3,
    ],
    'different-data',
    'warn',
    'Different data: another state than n1 at index 10,000',
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
      seenNode({ id: 'n2', voters: ['n1', 'n3'], learners: ['n2'] }, { lags: falling(4_000) }),
      seenNode({ id: 'n3', voters: ['n1', 'n3'], learners: ['n2'] }),
    ],
    'catching-up',
    'info',
    'Catching up, ETA 40 s',
  ],
  [10, 'nothing is wrong', [n1, n2, n3], 'healthy', 'ok', 'Healthy'],
  [10, 'exactly at the limits', [withLag(1_000, 1), n2, n3], 'healthy', 'ok', 'Healthy'],
  [11, 'it was never asked', [n1, nothingSeen(n2.address), n3], 'unknown', 'unk', 'Unknown: has not answered yet'],
  [
    11,
    'it does not say how it is',
    [n1, seenNode({ id: 'n2' }, { health: undefined }), n3],
    'unknown',
    'unk',
    'Unknown: does not say how it is',
  ],
]

test.each(NODE_ROWS)('row %i, %s: state of a node', (row, _what, nodes, state, level, says) => {
  expect(nodeOf(nodes, 'n2')).toMatchObject({ state, level, says, rule: { number: row } })
})

test('a row above wins: a node that is far behind and unavailable is unavailable', () => {
  expect(nodeOf([withLag(99_000, 60), seenNode({ id: 'n2', health: 'unavailable' }), n3], 'n2').state).toBe(
    'unavailable',
  )
})

test('a learner that falls back is behind, however new it is', () => {
  const members = { voters: ['n1', 'n3'], learners: ['n2'] }
  const rising = [
    { at: NOW - 10_000, entries: 3_000 },
    { at: NOW, entries: 4_000 },
  ]
  const nodes = [
    withLag(4_000, 5, members),
    seenNode({ id: 'n2', ...members }, { lags: rising }),
    seenNode({ id: 'n3', ...members }),
  ]

  expect(nodeOf(nodes, 'n2')).toMatchObject({ state: 'behind', etaSeconds: null })
})

const three = { voters: ['n1', 'n2', 'n3'] }
const five = ['n1', 'n2', 'n3', 'n4', 'n5']
const inFive = (id: string) => seenNode({ id, voters: five })
const leaderless = (id: string) => seenNode({ id, leader: '', health: 'active_follower', ...three })
const long = (change: Partial<ShardMemory>): ShardMemory => ({
  ...{
    state: 'healthy',
    since: NOW - 60_000,
    leader: 'n1',
    leaderSince: NOW - 60_000,
    leaderlessSince: null,
    disagreeSince: null,
  },
  ...change,
})
const standalone = seenNode({ id: 'n1', health: 'active' }, { isStandalone: true, info: undefined })

/** §4.3, row by row. */
const SHARD_ROWS: readonly (readonly [
  what: string,
  nodes: readonly Seen[],
  memory: ShardMemory | undefined,
  state: string,
  level: string,
  says: string,
])[] = [
  [
    'no node answers',
    ['n1', 'n2', 'n3'].map((id) => goneNode({ id }, REFUSED)),
    undefined,
    'unknown',
    'unk',
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
    'two are named',
    [n1, n2, seenNode({ id: 'n3', leader: 'n3', health: 'active_follower' })],
    long({ disagreeSince: NOW - 5_000 }),
    'disagree',
    'crit',
    'Nodes disagree on who leads (3 of 3 voters answer, 2 needed)',
  ],
  [
    'one of five is away',
    [...['n1', 'n2', 'n3', 'n4'].map(inFive), goneNode({ id: 'n5', voters: five }, LATE)],
    undefined,
    'degraded',
    'warn',
    'Degraded, can lose 1 more (4 of 5 voters answer, 3 needed)',
  ],
  [
    'one of three is away',
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
    'its nodes were not asked yet',
    [n1, nothingSeen(n2.address), n3],
    undefined,
    'unknown',
    'unk',
    'Unknown: its nodes are being read',
  ],
]

test.each(SHARD_ROWS)('%s: state of a shard', (_what, nodes, memory, state, level, says) => {
  expect(shardOf(nodes, { memory }).view).toMatchObject({ state, level, says })
})

test('a shard that waits for its founders says for what', () => {
  const bootstrap = {
    waits_for: 'snapshot' as const,
    why: 'snapshot 8f3a is on 1 of 3 voters, 2 needed',
    needed: 2,
    voters: [],
  }
  const info = { ...infoOf({ id: 'n1', leader: '', voters: [] }), bootstrap }
  const { view } = shardOf([seenNode({ id: 'n1', health: 'unavailable' }, { info: { value: info, at: NOW } })])

  expect(view).toMatchObject({ state: 'forming', level: 'info', waitsFor: bootstrap.why })
})

test('two names for a moment are an election between two readings, not a disagreement', () => {
  const nodes = [n1, n2, seenNode({ id: 'n3', leader: 'n3', health: 'active_follower' })]

  const { view, memory } = shardOf(nodes, { memory: long({}) })

  expect(view.state).toBe('healthy')
  expect(memory.disagreeSince).toBe(NOW)
})

test('the state keeps its time while it stays, and the leader its own', () => {
  const first = shardOf([n1, n2, n3])
  const later = shardOf([n1, n2, n3], { now: NOW + 5_000, memory: first.memory })
  const moved = shardOf(
    ['n1', 'n2', 'n3'].map((id) => seenNode({ id, leader: 'n2' })),
    { now: NOW + 9_000, memory: later.memory },
  )

  expect(later.view).toMatchObject({ since: first.view.since, leaderSince: first.view.leaderSince })
  expect(moved.view).toMatchObject({ since: first.view.since, leader: 'n2', leaderSince: '2026-11-22T12:00:09.000Z' })
})

test('what a node said long ago of its shard counts no more while it answers', () => {
  const old = seenNode({ id: 'n2' }, { info: { value: infoOf({ id: 'n2' }), at: NOW - 15_001 } })

  expect(nodeOf([n1, old, n3], 'n2').namesLeader).toBeNull()
})

test('what was not told is null and never zero', () => {
  const { view } = shardOf([
    seenNode({ id: 'n1' }, { status: undefined, codecs: undefined, info: undefined, health: undefined }),
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
])('an answer of %i ms ago is %s', (age, freshness) => {
  expect(nodeOf([seenNode({ id: 'n2', at: NOW - age })], 'n2').freshness).toBe(freshness)
})

test('a learner is told from a follower by the list of members', () => {
  const members = { voters: ['n1', 'n2'], learners: ['n3'] }
  const { view } = shardOf(['n1', 'n2', 'n3'].map((id) => seenNode({ id, ...members })))

  expect(view.nodes.map(({ role, voter }) => [role, voter])).toEqual([
    ['leader', true],
    ['follower', true],
    ['learner', false],
  ])
})

test('a row of a shard does not change with every answer', () => {
  const at = (ms: number) =>
    briefOf(
      shardOf(
        ['n1', 'n2', 'n3'].map((id) => seenNode({ id, at: NOW + ms })),
        { now: NOW + ms, memory: long({}) },
      ).view,
    )

  expect(at(1_000)).toEqual(at(4_000))
})

test('numbers and times are words of their size', () => {
  expect([999, 1_000, 12_400, 1_234_567].map(grouped)).toEqual(['999', '1,000', '12,400', '1,234,567'])
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
