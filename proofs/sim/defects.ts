/**
 * Planted defects: mistakes that the simulation must find (docs/design/testing.md#planted-defects). Each is a name in
 * `Env.defects` or `RaftConfig.defects` that disables one rule of production code; no shipped program sets any.
 */

import { RAFT_DEFECTS } from '../../engine/src/raft/defects.ts'
import { STORE_DEFECTS } from '../../engine/src/store/defects.ts'
import { WAL_DEFECTS } from '../../engine/src/wal/defects.ts'
import type { Profile } from './knobs.ts'

export type DefectRow = {
  readonly name: string
  /** The program that can trigger it; `elsewhere`: tests of the named layer find it. */
  readonly program: 'core' | 'log' | 'driver' | 'elsewhere'
  readonly layer: string
  /** A profile that triggers it sooner. */
  readonly profile?: Profile
}

const PROFILE_OF: { readonly [name: string]: Profile } = {
  'raft/vote-not-durable': 'elections',
  'raft/own-ack-before-persist': 'conflicts',
  'raft/stale-confirmation-trusted': 'conflicts',
  'raft/apply-before-persist': 'conflicts',
  'raft/old-term-commit': 'conflicts',
  'raft/commit-beyond-match': 'conflicts',
  'raft/votes-twice': 'elections',
  'raft/vote-ignores-log': 'elections',
  'raft/lease-ignored': 'calm',
  'raft/transfer-never-ends': 'elections',
  'raft/commit-not-with-entries': 'membership',
  'raft/learner-refuses-votes': 'membership',
  'raft/ignore-outgoing-majority': 'membership',
  'raft/second-change-in-flight': 'membership',
  'raft/joint-left-twice': 'membership',
  'raft/removed-leader-stays': 'membership',
  'raft/read-without-quorum': 'reads',
  'raft/read-before-own-entry': 'reads',
  'raft/read-index-after-check': 'reads',
  'wal/commit-of-next': 'conflicts',
  'wal/refused-write-left': 'fulldisk',
  'wal/compacts-too-much': 'snapshot',
  'sessions/lost-at-load': 'snapshot',
  'sessions/evicted-by-map': 'snapshot',
  'sessions/results-not-in-digest': 'snapshot',
  'apply/own-memory-decides': 'snapshot',
  'cow/pages-not-copied': 'snapshot',
  'memory/exhausted-as-fault': 'disk',
  'stays/generation-ignored': 'calm',
  'stays/settings-from-file': 'mixed',
}

/** Defects of the driver and its surroundings, named after their location. */
const DRIVER_DEFECTS: readonly DefectRow[] = [
  { name: 'writes/retryable-though-logged', program: 'driver', layer: 'simulation', profile: 'elections' },
  { name: 'writes/unknown-as-failed', program: 'driver', layer: 'simulation', profile: 'crash' },
  { name: 'reads/served-before-applied', program: 'driver', layer: 'simulation', profile: 'reads' },
  { name: 'formation/wiped-voter-votes', program: 'driver', layer: 'simulation', profile: 'membership' },
  { name: 'formation/unbound-ignored', program: 'driver', layer: 'simulation', profile: 'mixed' },
  { name: 'transfer/compaction-beyond', program: 'driver', layer: 'simulation', profile: 'snapshot' },
  { name: 'transfer/switch-before-complete', program: 'elsewhere', layer: 'snapshot/exchange.test.ts' },
  { name: 'formation/empty-outvotes-data', program: 'elsewhere', layer: 'bootstrap/formation.test.ts' },
  { name: 'formation/reachable-majority', program: 'elsewhere', layer: 'bootstrap/formation.test.ts' },
  { name: 'formation/codec-unchecked', program: 'elsewhere', layer: 'bootstrap/formation.test.ts' },
  { name: 'reads/stale-bound-ignored', program: 'elsewhere', layer: 'cluster/shared-status.test.ts' },
  {
    name: 'snapshot/session-not-in-snapshot',
    program: 'driver',
    layer: 'simulation',
    profile: 'snapshot',
  },
  { name: 'time/own-clock-trusted', program: 'driver', layer: 'O15', profile: 'reads' },
  { name: 'recovery/uncommitted-applied', program: 'driver', layer: 'simulation', profile: 'conflicts' },
  { name: 'driver/tick-burst', program: 'elsewhere', layer: 'sim/cluster.long.test.ts' },
]

/** Found by the lock-step simulation of the core, which covers other paths. */
const OF_CORE_TESTS: readonly string[] = [
  'raft/lease-ignored',
  'raft/old-term-commit',
  'raft/ignore-outgoing-majority',
  'raft/read-before-own-entry',
  'raft/mute-votes',
]

/**
 * Needs a hand-over that replaces entries and is refused in the middle, followed by a vote of the next term and a
 * commit index beyond the replaced entries, all in one turn of a full disk, which is too rare in the simulation.
 *
 * The same for a refused group without entries, with appends sent before the refusal arrived.
 */
const OF_LOG_TESTS: readonly string[] = ['wal/commit-behind-refusal', 'wal/stores-taken-back']

/** Only concurrent reader threads can find these: the simulation is sequential. */
const OF_STORE_TESTS: readonly string[] = ['version/unmarked', 'version/reclaims-early']
const OF_STAY_TESTS: readonly string[] = ['stays/table-unmarked']

export const DEFECTS: readonly DefectRow[] = [
  ...RAFT_DEFECTS.map((name) => {
    if (OF_CORE_TESTS.includes(name)) return { name, program: 'elsewhere', layer: 'sim/raft.test.ts' } as const
    const profile = PROFILE_OF[name]
    return { name, program: 'core', layer: 'simulation', ...(profile && { profile }) } as const
  }),
  ...WAL_DEFECTS.map((name) => {
    if (OF_LOG_TESTS.includes(name)) return { name, program: 'elsewhere', layer: 'wal/wal-thread.test.ts' } as const
    const profile = PROFILE_OF[name] ?? 'disk'
    return { name, program: 'log', layer: 'simulation', profile } as const
  }),
  ...STORE_DEFECTS.map((name) => {
    if (OF_STAY_TESTS.includes(name)) return { name, program: 'elsewhere', layer: 'store/stays.test.ts' } as const
    if (OF_STORE_TESTS.includes(name)) return { name, program: 'elsewhere', layer: 'store/structure.test.ts' } as const
    const profile = PROFILE_OF[name] ?? 'crash'
    return { name, program: 'driver', layer: 'simulation', profile } as const
  }),
  ...DRIVER_DEFECTS,
]
