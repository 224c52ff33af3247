/** Rules that the driver of the core and what surrounds it break. */
import { type Defect, inFolder, simulated } from './defect.ts'

const by = (profile: string) => simulated('driver', profile)
const FORMATION_TESTS = { tests: 'engine/src/bootstrap/formation.test.ts' }

const inEngine = inFolder('engine/src')

export const NODE_DEFECTS: readonly Defect[] = [
  ...inEngine(by('elections'), {
    'writes/retryable-though-logged': 'threads/writes.ts: return undefined → return REFUSED.notLeader',
  }),
  ...inEngine(by('crash'), {
    'writes/unknown-as-failed': 'threads/writes.ts:  REFUSED.outcomeUnknown →  REFUSED.notServing',
  }),
  ...inEngine(by('crash'), {
    // A restored shard is the shard of the backup: its identity and its indexes go on.
    'restore/same-life': 'data/recovery-parts.ts: if (draws && isSeedOf → if (false && isSeedOf',
  }),
  ...inEngine(by('reads'), {
    'reads/served-before-applied': 'cluster/reads.ts: reads.applied()\n  if → Number.POSITIVE_INFINITY\n  if',
    'time/own-clock-trusted':
      'cluster/keep-time.ts: return { monotonicMs → others.splice(0, others.length, ...new Array(voters).fill(wallMs))\n  return { monotonicMs',
  }),
  ...inEngine(
    { tests: 'engine/src/cluster/shared-status.test.ts' },
    {
      'reads/stale-bound-ignored':
        "cluster/shared-status.ts:   if (stalenessMs(cells, nowMs) > bound) return 'stale'\n → ",
    },
  ),
  ...inEngine(
    { tests: 'engine/src/data/data-directory.test.ts' },
    {
      // Only what LOCK says about processes keeps a second one out.
      'data/lock-by-process-id':
        'data/data-directory.ts: withRoom(env, path, () => disk.lock(join(path, LOCK_FILE))) → { isInPlace: () => true, release: () => undefined }',
      'data/lost-lock-unnoticed': 'data/data-directory.ts: !lock.kernel.isInPlace() → false',
    },
  ),
  ...inEngine(
    { tests: 'engine/src/cluster/reads.test.ts' },
    { 'indexes/read-before-genesis': 'cluster/reads.ts: isUnknown && !reads.hasBegun() → false' },
  ),
  ...inEngine(
    { tests: 'engine/src/cluster/replica.test.ts' },
    { 'disk/hung-sync-uncounted': 'cluster/replica.ts:  ? replica.unansweredMs + sinceMs →  ? 0' },
  ),
  ...inEngine(
    { tests: 'engine/src/cluster/member.test.ts' },
    {
      'disk/leader-keeps-hung-disk': "cluster/member.ts: isStuck(replica) ? 'stuck' :  → ",
      // Ticks that pass while the timer sleeps are lost: elections come late.
      'driver/ticks-slept-away': 'cluster/member.ts: (member.ticksAsleep, passed) → (0, passed)',
      'members/former-id-kept': 'cluster/peer-link.ts:   takeId(raft, id)\n → ',
      'indexes/write-before-genesis': 'cluster/proposals.ts: replica.link?.hasBegun() === false → false',
    },
  ),
  ...inEngine(
    { tests: 'engine/src/raft/elections.test.ts' },
    { 'disk/stuck-node-campaigns': 'raft/elections.ts: raft.standsBack → false' },
  ),
  ...inEngine(by('membership'), {
    'formation/wiped-voter-votes': [
      "bootstrap/formation.ts: // Applies docs/design/consensus.md#formation, except to untouched founders of the very same shard. → const wiped = formed[0]\n  if (wiped && wiped.report.contentDigest === '') return form(formation, wiped.report)",
      "cluster/membership.ts: if (!member) { → if (member) {\n    propose(membership, { steps: [{ type: 'bind', id: member.id, incarnation }] })\n    return wait('it is being bound')\n  }\n  if (!member) {",
    ],
  }),
  ...inEngine(by('mixed'), {
    'formation/unbound-ignored': "cluster/peer-link.ts:     if (incarnation === '') setCounts(raft, id, true)\n → ",
  }),
  ...inEngine(FORMATION_TESTS, {
    // Empty nodes found a shard although a snapshot was reported.
    'formation/empty-outvotes-data': [
      'bootstrap/formation.ts: bySnapshot(current)) → [])',
      "bootstrap/formation.ts: some(({ shard, contentDigest }) => shard === formation.shardId && contentDigest !== '') → length === 0",
      'bootstrap/formation.ts: === voters.length  → >= needed ',
    ],
    // A majority of the nodes that report counts, not of all voters.
    'formation/reachable-majority': [
      'bootstrap/formation.ts: = majorityOf(formation.voters → = majorityOf(current',
      'bootstrap/formation.ts:  majorityOf(voters →  majorityOf(current',
      'bootstrap/formation.ts: === voters.length  → >= needed ',
    ],
    'formation/codec-unchecked': 'bootstrap/formation.ts: codecHash !== codecs.orderedHash → false',
  }),
  ...inEngine(by('snapshot'), {
    // The log is compacted beyond a snapshot that is being sent, and the snapshot is not kept.
    'transfer/compaction-beyond': [
      'cluster/transfer.ts: POSITIVE_INFINITY\n  const → POSITIVE_INFINITY\n  return index\n  const',
      'cluster/transfer.ts: ...new Set([...sender.outgoing.values()].map(({ index }) => index)) → ',
    ],
    'snapshot/session-not-in-snapshot': [
      'snapshot/capture.ts: state(image, STATE.sessionCount) → 0',
      'snapshot/capture.ts: encodeSessions(image → new Uint8Array(0',
    ],
  }),
  ...inEngine(
    { tests: 'engine/src/snapshot/exchange.test.ts' },
    {
      // A snapshot becomes current before all of its chunks are here.
      'transfer/switch-before-complete': [
        'cluster/transfer.ts:   if (!isComplete) return\n → ',
        "snapshot/exchange.ts:   if (missing.length > 0) return { state: 'lacking', missing }\n → ",
      ],
    },
  ),
  ...inEngine(by('conflicts'), {
    'recovery/uncommitted-applied':
      'data/recovery.ts: commit === undefined || index <= commit || isAlone(replayed.configuration) → true',
  }),
  ...inEngine(
    { tests: 'proofs/sim/cluster.long.test.ts', named: 'driver/tick-burst' },
    {
      // After a stall all ticks that were missed come at once, and an election with them.
      'driver/tick-burst':
        'cluster/member.ts: if (now - member.lastTickMs >= tickMs * 0.9) { → for (let due = Math.floor((now - member.lastTickMs) / tickMs); due > 1; due--) tick(replica.raft)\n  if (now - member.lastTickMs >= tickMs * 0.9) {',
    },
  ),
]
