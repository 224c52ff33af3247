import { parseDay } from '@vacancy/shared'
import { expect, test } from 'vitest'
import type { ClockStatus, ClusterStatus } from '../status.ts'
import { FOLLOWING, fakeCluster, LEADING, NOON, REGISTRY, REPLICA } from '../testing/fake-handle.ts'
import {
  clockReason,
  clusterConditions,
  createConditions,
  endingsOf,
  FOLLOWED,
  followConditions,
  healthOf,
  STALENESS_MS_MAX,
} from './conditions.ts'

import type { UnavailableReason } from './handle.ts'
import { CLUSTER_REASONS, REASONS } from './reasons.ts'

const nothing = { replica: REPLICA, registry: undefined, resolver: undefined }

const reasonsOf = (info: ClusterStatus) => clusterConditions({ ...nothing, info }).map(({ reason }) => reason)

test('a leader, a fresh follower and a fresh learner have no reasons', () => {
  for (const info of [LEADING, FOLLOWING, { ...FOLLOWING, role: 'learner' } as const])
    expect(reasonsOf(info)).toEqual([])
})

const outside: ClusterStatus = { ...FOLLOWING, leader: '', members: [], stalenessMs: undefined }
const bootstrap = { why: 'snapshot 8f3a is on 1 of 3 voters, 2 needed', needed: 2, voters: [] }
const far = { from: 'n1', index: 900, bytesDone: 10, bytesTotal: 80 }

const CASES: [string, ClusterStatus, UnavailableReason[]][] = [
  ['waits for a snapshot', { ...outside, bootstrap: { ...bootstrap, waitsFor: 'snapshot' } }, ['waiting_for_snapshot']],
  ['waits for empty voters', { ...outside, bootstrap: { ...bootstrap, waitsFor: 'voters' } }, ['forming']],
  ['requests to join', { ...outside, bootstrap: { ...bootstrap, waitsFor: 'join' } }, ['joining']],
  ['was removed', { ...FOLLOWING, isRemoved: true, leader: '', stalenessMs: 50_000 }, ['removed']],
  ['receives a snapshot', { ...FOLLOWING, stalenessMs: undefined, installing: far }, ['installing']],
  ['lacks chunks of a load', { ...FOLLOWING, awaitedLoad: { digest: 'ab', bytesMissing: 5 } }, ['awaiting_load']],
  ['was never confirmed', { ...FOLLOWING, stalenessMs: undefined }, ['catching_up']],
  ['was confirmed in time', { ...FOLLOWING, stalenessMs: STALENESS_MS_MAX }, []],
  ['was confirmed too long ago', { ...FOLLOWING, stalenessMs: STALENESS_MS_MAX + 1 }, ['stale']],
  ['is fresh and has no leader', { ...FOLLOWING, leader: '' }, ['no_leader']],
  ['is cut off', { ...FOLLOWING, leader: '', stalenessMs: 20_000 }, ['stale', 'no_leader']],
  ['was just elected', { ...LEADING, isLeading: false, stalenessMs: 300 }, ['no_leader']],
  ['has a clock that is off', { ...LEADING, isClockSuspect: true }, ['clock_suspect']],
]

test.each(CASES)('a node that %s', (_, info, reasons) => {
  expect(reasonsOf(info)).toEqual(reasons)
})

test('health agrees with the reasons', () => {
  for (const [what, info] of CASES) {
    const conditions = clusterConditions({ ...nothing, info })
    const unavailable = () => conditions.map((each) => ({ ...each, sinceMs: NOON }))
    const byReasons = conditions.every(({ reason }) => REASONS[reason].stops !== 'all')

    const cluster = fakeCluster({ info: () => info })
    expect(healthOf({ unavailable, cluster }) !== 'unavailable', what).toBe(byReasons)
  }
})

test('registry, resolver and a slow log are reported and do not stop the node', () => {
  const registry = { ...REGISTRY, isReachable: false, fault: 'ECONNREFUSED', codecMismatch: 'POOL is new at 3' }
  const resolver = { address: 'v:9090', durations: {}, errors: {}, error: 'timeout' }

  const found = clusterConditions({ info: LEADING, replica: { ...REPLICA, walSlow: true }, registry, resolver })

  expect(found).toEqual([
    { reason: 'wal_slow', detail: '' },
    { reason: 'registry_unreachable', detail: 'http://r:8080: ECONNREFUSED' },
    { reason: 'codec_mismatch', detail: 'POOL is new at 3' },
    { reason: 'resolver_unreachable', detail: 'v:9090: timeout' },
  ])
  for (const { reason } of found) expect(REASONS[reason].stops).toBe('nothing')
})

test('segments that the registry assigns to another shard are reported', () => {
  const detailsOf = (differs: object) =>
    clusterConditions({ ...nothing, info: LEADING, registry: { ...REGISTRY, ...differs } })

  expect(detailsOf({})).toEqual([])
  expect(detailsOf({ published: { segments: 4, conflicts: 1 } })).toEqual([
    { reason: 'segments_refused', detail: '1 of 4 segments belong to another shard' },
  ])
  expect(detailsOf({ refusal: 'stale term' })).toEqual([{ reason: 'segments_refused', detail: 'stale term' }])
})

test('every clustered reason is tracked, except the one before the first status', () => {
  const ofEveryNode = ['clock_suspect']
  const followed = [...FOLLOWED, 'waiting_for_registry'].filter((reason) => !ofEveryNode.includes(reason))
  expect(followed.sort()).toEqual(Object.keys(CLUSTER_REASONS).sort())
})

function logged() {
  const lines: string[] = []
  const line = (level: string) => (fields: object) => {
    lines.push(`${level} ${(fields as { reason: UnavailableReason }).reason}`)
  }
  return { lines, log: { info: line('info'), warn: line('warn') } }
}

test('a reason has its start time, and is removed when it no longer holds', () => {
  const conditions = createConditions(new Map())
  const { lines, log } = logged()
  conditions.held.set('disk_full', { reason: 'disk_full', detail: '', sinceMs: NOON })

  followConditions(conditions, [{ reason: 'stale', detail: '11 s' }], NOON, log)
  followConditions(conditions, [{ reason: 'stale', detail: '12 s' }], NOON + 1_000, log)
  expect(conditions.held.get('stale')).toEqual({ reason: 'stale', detail: '12 s', sinceMs: NOON })
  followConditions(conditions, [], NOON + 2_000, log)

  expect([...conditions.held.keys()]).toEqual(['disk_full'])
  expect(lines).toEqual(['warn stale', 'info stale'])
})

test('the log repeats reasons that stop a node every 10 s, and others every hour', () => {
  const conditions = createConditions(new Map())
  const { lines, log } = logged()
  const now = [
    { reason: 'forming', detail: '' },
    { reason: 'codec_mismatch', detail: '' },
  ] as const

  for (let second = 0; second <= 3_600; second++) followConditions(conditions, now, NOON + second * 1_000, log)

  expect(lines.filter((line) => line === 'warn forming')).toHaveLength(361)
  expect(lines.filter((line) => line === 'warn codec_mismatch')).toHaveLength(2)
})

const MINUTE = 60_000
const HOUR = 60 * MINUTE

test.each<[ClockStatus['state'], number, string | undefined, string]>([
  ['following', 99 * HOUR, undefined, ''],
  ['holding', -26 * HOUR, 'clock_suspect', 'the clock is 1 d 2 h behind shard time'],
  ['holding', 24 * HOUR - MINUTE, 'clock_suspect', 'the clock is 23 h 59 min ahead of shard time'],
  ['holding', 24 * HOUR - MINUTE / 2, 'clock_suspect', 'the clock is 1 d 0 h ahead of shard time'],
  ['suspect', -MINUTE - 1, 'clock', 'shard time is 0 h 1 min ahead of the clock'],
  ['suspect', -MINUTE, 'clock', 'nights before 2026-11-20 are dropped already'],
])('a clock that is %s by %i ms', (state, offsetMs, reason, detail) => {
  const clock = { timeMs: NOON, offsetMs, state, lastSet: undefined }
  expect(clockReason(clock, parseDay('2026-11-20') as number)).toEqual([reason, detail])
})

const DAY_MS = 86_400_000
const token = (name: string, days: number) =>
  ({ name, role: 'client', expiresMs: NOON + days * DAY_MS, hash: new Uint8Array(32) }) as const

const dateIn = (days: number) => new Date(NOON + days * DAY_MS).toISOString()

test.each([
  ['nothing that ends later, or never', [['cluster', 14]], [token('shop', 15), token('', Infinity)], ''],
  [
    'a certificate from 14 days before its end',
    [['cluster', 13]],
    [],
    `the certificate of the cluster listener ends at ${dateIn(13)}`,
  ],
  [
    'what ends first, first',
    [
      ['cluster_authority', 2],
      ['tcp', -1],
    ],
    [],
    `the certificate of the tcp listener ended at ${dateIn(-1)}; the authority of the cluster listener ends at ${dateIn(2)}`,
  ],
  [
    'a token until 14 days after its end',
    [],
    [token('shop', -13), token('old', -14)],
    `the token shop ended at ${dateIn(-13)}`,
  ],
] as const)('a node reports %s', (_, certificates, tokens, text) => {
  const ends = certificates.map(([listener, days]) => ({ listener, notAfterMs: NOON + days * DAY_MS }))
  expect(endingsOf(ends, tokens, NOON)).toBe(text)
})
