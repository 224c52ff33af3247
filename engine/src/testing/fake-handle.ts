/** The node as the HTTP side sees it, as plain data: for tests of http/ and metrics.ts. */

import { type CodecList, createCodecList } from '@vacancy/shared'
import type { NodeHandle } from '../http/handle.ts'
import type { Buckets, ReplicaStatus, SnapshotInfo } from '../status.ts'
import { createCounters } from '../tcp/counters.ts'

export const NOON = Date.UTC(2026, 5, 15, 12)

/** The list of the quick-start: its hash is beyond 2^53. */
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
  lastDigestCheckIndex: 100,
  snapshotRunning: false,
  snapshotFailures: 1,
  snapshotDuration: buckets([0, 0, 1], 2),
  sparePages: 512,
  maintenanceRunning: false,
  lastMaintenanceDay: 20_619,
  lastMaintenanceMs: NOON - 43_200_000,
  removedPackages: 1_000,
  eventLoopStallMs: 4,
  diskFreeBytes: 1e9,
  diskFull: false,
}

export const SNAPSHOT: SnapshotInfo = {
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

/** A standalone node that serves and holds nothing, but for what a test says. */
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
    kernels: () => 'wasm',
    unavailable: () => [],
    replica: () => REPLICA,
    snapshot: () => SNAPSHOT,
    slow: () => [],
    wallMs: () => NOON,
    saveSnapshot: () => 'started',
    maintain: () => 'started',
    shutdown: () => {},
    reloadTokens: () => 0,
    rotateTls: () => {},
    ...differs,
  }
}
