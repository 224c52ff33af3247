/** A node as seen by the HTTP API, as plain data, for tests of http/ and metrics.ts. */

import { type CodecList, createCodecList } from '@vacancy/shared'
import type { NodeSetTime } from '@vacancy/shared/contract'
import type { NightRead } from '../cluster/nights.ts'
import type { ClusterHandle, NodeHandle } from '../http/handle.ts'
import type { Buckets, ClusterStatus, MemberStatus, RegistryStatus, ReplicaStatus, SnapshotInfo } from '../status.ts'
import { createCounters } from '../tcp/counters.ts'

export const NOON = Date.UTC(2026, 5, 15, 12)

/** The codec list of the quick-start, whose hash exceeds 2^53. */
export const CODECS: CodecList = createCodecList(['Free_WiFi', 'BREAKFAST'])

const buckets = (counts: number[], sum: number): Buckets => ({ bounds: [0.001, 0.01], counts, sum })

export const REPLICA: ReplicaStatus = {
  role: 'leader',
  term: 3,
  firstIndex: 1,
  lastIndex: 120,
  commitIndex: 119,
  appliedIndex: 118,
  walBytes: 65_536,
  walFiles: 2,
  groups: 40,
  fsync: buckets([30, 8, 2], 0.25),
  commit: buckets([1, 2, 3], 0.5),
  tornTailBytes: 48,
  repeatsAnswered: 5,
  digestChecks: 7,
  digest: { lo: 0x89abcdef, hi: 0x01234567 },
  newestMark: { index: 100, lo: 0x33445566, hi: 0x00001122 },
  snapshotRunning: false,
  snapshotFailures: 1,
  snapshotDuration: buckets([0, 0, 1], 2),
  sparePages: 512,
  budget: { budgetBytes: 1_000_000, chargedBytes: 250_000, leftBytes: 700_000 },
  clock: { timeMs: NOON - 250, offsetMs: 250, state: 'following', lastSet: undefined },
  maintenanceRunning: false,
  lastMaintenanceDay: 20_619,
  lastMaintenanceMs: NOON - 43_200_000,
  removedPackages: 1_000,
  eventLoopStallMs: 4,
  diskFreeBytes: 1e9,
  diskLow: false,
  diskFull: false,
}

const SNAPSHOT: SnapshotInfo = {
  id: 'snapshot-000000000100',
  createdMs: NOON - 60_000,
  shardId: 's1',
  lastIndex: 100,
  lastTerm: 3,
  properties: 2,
  packages: 10,
  segments: 1,
  window: { from: '2026-06-15', to: '2027-06-15' },
  codecHash: CODECS.orderedHash,
  bytes: 4_096,
  origin: 'periodic',
  durationMs: 12,
}

/** The effect of setting the time of that node. */
export const SET_TIME: NodeSetTime = {
  applied: false,
  shard_time: '2026-01-17T12:00:00.000Z',
  new_time: '2026-01-15T12:00:00.000Z',
  import_nights: { from: '2026-01-15', to: '2026-01-16' },
  missed_nights: { from: '2026-01-15', to: '2026-01-16' },
  dropped_from: null,
}

/** A night of which the log has nothing. */
const NO_NIGHT: NightRead = {
  now: {
    ...{ index: 118, indexBase: 0, timeMs: NOON, segment: '', rooms: [], stays: [] },
    ...{ knownFrom: { index: 0, timeMs: 0 }, asOfFrom: 0 },
  },
  part: { mentions: [], firstIndex: 0, lastIndex: 0, firstMs: 0, next: undefined, bytes: 0, retainedFrom: 1 },
  others: [],
}

/** A standalone node that serves an empty store, with the given overrides. */
export function fakeHandle(differs: Partial<NodeHandle> = {}): NodeHandle {
  return {
    version: '1.2.3',
    shardId: 's1',
    startedMs: NOON - 90_000,
    coresAtStart: 4,
    coresNow: () => 4,
    memory: () => undefined,
    reader: 0,
    codecs: CODECS,
    codecMismatch: undefined,
    counters: [createCounters(), createCounters()],
    connectionsOpen: () => 3,
    servingThreads: 2,
    unavailable: () => [],
    replica: () => REPLICA,
    snapshot: () => SNAPSHOT,
    slow: () => [],
    wallMs: () => NOON,
    saveSnapshot: () => 'started',
    maintain: () => 'started',
    changeSetting: () => Promise.resolve({ status: 202, text: 'holds_max = 5 was proposed' }),
    setTime: () => Promise.resolve({ status: 202, text: JSON.stringify(SET_TIME) }),
    night: () => Promise.resolve(NO_NIGHT),
    shutdown: () => {},
    reloadTokens: () => 0,
    rotateTls: () => true,
    certificates: () => [],
    tokens: () => [],
    cluster: undefined,
    ...differs,
  }
}

/** A voter that follows, as its leader sees it. */
const FOLLOWER: MemberStatus = {
  id: 'n2',
  role: 'follower',
  isVoter: true,
  health: 'active',
  progress: 'replicate',
  matchIndex: 119,
  lagEntries: 1,
  lagMs: 15,
  host: '127.0.0.2',
  roundTrip: buckets([5, 1, 0], 0.004),
}

/** The report of n1, the leader of the voters n1, n2, n3 and the learner n4. */
export const LEADING: ClusterStatus = {
  nodeId: 'n1',
  zoneId: 'z1',
  clusterId: '0123456789abcdef0123456789abcdef',
  role: 'leader',
  term: 3,
  leader: 'n1',
  isLeading: true,
  members: [
    {
      ...FOLLOWER,
      id: 'n1',
      role: 'leader',
      progress: undefined,
      matchIndex: 120,
      lagEntries: 0,
      lagMs: 0,
      host: '127.0.0.1',
      roundTrip: undefined,
    },
    FOLLOWER,
    { ...FOLLOWER, id: 'n3', health: 'inactive', progress: 'probe', matchIndex: 20, lagEntries: 100, lagMs: 4_000 },
    { ...FOLLOWER, id: 'n4', role: 'learner', isVoter: false, health: 'installing', progress: 'snapshot' },
  ],
  isJoint: false,
  isRemoved: false,
  peers: ['n2', 'n3', 'n4'],
  stalenessMs: 0,
  bootstrap: undefined,
  installing: undefined,
  awaitedLoad: undefined,
  operation: undefined,
  lastOperations: [],
  operationsEnded: { done: 3, failed: 1 },
  isClockSuspect: false,
  transport: {
    opened: 3,
    accepted: 4,
    rejected: { shard: 1, certificate: 2 },
    errors: 5,
    dropped: 6,
    messagesSent: 700,
    messagesReceived: 800,
    bytesSent: 90_000,
    bytesReceived: 100_000,
    sendErrors: 11,
    receiveErrors: 12,
  },
  elections: { won: 2, lost: 1, refused: 3 },
  leaderChanges: 4,
  proposals: { applied: 118, dropped: 2, unknown: 1 },
  tickStalls: 1,
  transfers: {
    sending: 1,
    receiving: 0,
    sent: 2,
    received: 1,
    failed: 3,
    durationMs: 250,
    loadMs: 80,
    writePauseMs: 1.5,
  },
}

/** The report of n2 while n1 leads: it knows the members, but not their progress. */
export const FOLLOWING: ClusterStatus = {
  ...LEADING,
  nodeId: 'n2',
  role: 'follower',
  isLeading: false,
  stalenessMs: 120,
  members: LEADING.members.map((member) => ({
    ...member,
    health: 'unknown',
    progress: undefined,
    matchIndex: undefined,
    lagEntries: undefined,
    lagMs: undefined,
    roundTrip: undefined,
  })),
}

/** A registry that responds and has accepted the published list. */
export const REGISTRY: RegistryStatus = {
  address: 'http://r:8080',
  isReachable: true,
  fault: '',
  heartbeatAgeMs: 2_500,
  codecMismatch: '',
  published: { segments: 4, conflicts: 0 },
  refusal: '',
  pushes: { accepted: 2, failed: 1 },
}

/** A cluster whose leader accepts every request, with the given overrides. */
export function fakeCluster(differs: Partial<ClusterHandle> = {}): ClusterHandle {
  return {
    info: () => LEADING,
    leaderUrl: () => 'http://127.0.0.1:8080',
    request: async () => ({ status: 202, text: '' }),
    pull: () => ({ status: 202, text: '' }),
    pulled: () => undefined,
    setPeers: () => {},
    registry: () => undefined,
    resolver: () => undefined,
    ...differs,
  }
}
