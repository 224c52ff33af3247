/** Rules that the driver of the core and what surrounds it break. */
import { type Defect, inFolder, simulated } from './defect.ts'

const by = (profile: string) => simulated('driver', profile)
const FORMATION_TESTS = { tests: 'engine/src/bootstrap/formation.test.ts' }

export const NODE_DEFECTS: readonly Defect[] = inFolder('engine/src', [
  {
    name: 'writes/retryable-though-logged',
    edits: [
      [
        'threads/writes.ts',
        "    case 'unsure':\n      return undefined\n",
        "    case 'unsure':\n      return REFUSED.notLeader\n",
      ],
    ],
    foundBy: by('elections'),
  },
  {
    name: 'writes/unknown-as-failed',
    edits: [
      [
        'threads/writes.ts',
        "    case 'given-up':\n      return REFUSED.outcomeUnknown\n",
        "    case 'given-up':\n      return REFUSED.notServing\n",
      ],
    ],
    foundBy: by('crash'),
  },
  {
    name: 'reads/served-before-applied',
    edits: [
      [
        'cluster/reads.ts',
        '  const applied = reads.applied()\n  if (index <= applied) reads.freshMs',
        '  const applied = Number.POSITIVE_INFINITY\n  if (index <= applied) reads.freshMs',
      ],
    ],
    foundBy: by('reads'),
  },
  {
    name: 'reads/stale-bound-ignored',
    edits: [['cluster/shared-status.ts', "  if (stalenessMs(cells, nowMs) > bound) return 'stale'\n", '']],
    foundBy: { tests: 'engine/src/cluster/shared-status.test.ts' },
  },
  {
    name: 'formation/wiped-voter-votes',
    edits: [
      [
        'bootstrap/formation.ts',
        '  // Applies docs/design/consensus.md#formation, except to untouched founders of the very same shard.\n',
        "  const wiped = formed[0]\n  if (wiped && wiped.report.contentDigest === '') return form(formation, wiped.report)\n",
      ],
      [
        'cluster/membership.ts',
        '  if (!canChange(membership, view)) return wait(TEXTS.unapplied)\n  if (!member) {\n',
        "  if (!canChange(membership, view)) return wait(TEXTS.unapplied)\n  if (member) {\n    propose(membership, { steps: [{ type: 'bind', id: member.id, incarnation }] })\n    return wait('it is being bound')\n  }\n  if (!member) {\n",
      ],
    ],
    foundBy: by('membership'),
  },
  {
    name: 'formation/unbound-ignored',
    edits: [['cluster/peer-link.ts', "    if (incarnation === '') setCounts(raft, id, true)\n", '']],
    foundBy: by('mixed'),
  },
  {
    // Empty nodes found a shard although a snapshot was reported.
    name: 'formation/empty-outvotes-data',
    edits: [
      [
        'bootstrap/formation.ts',
        '  for (const [, holders] of bySnapshot(current)) {\n',
        '  for (const [, holders] of []) {\n',
      ],
      [
        'bootstrap/formation.ts',
        "  if (all.some(({ shard, contentDigest }) => shard === formation.shardId && contentDigest !== '')) {\n",
        '  if (all.length === 0) {\n',
      ],
      [
        'bootstrap/formation.ts',
        '  const isEnough = empties.length === voters.length ||',
        '  const isEnough = empties.length >= needed ||',
      ],
    ],
    foundBy: FORMATION_TESTS,
  },
  {
    // A majority of the nodes that report counts, not of all voters.
    name: 'formation/reachable-majority',
    edits: [
      [
        'bootstrap/formation.ts',
        '  const needed = majorityOf(formation.voters.length)\n',
        '  const needed = majorityOf(current.length)\n',
      ],
      [
        'bootstrap/formation.ts',
        '  const needed = majorityOf(voters.length)\n',
        '  const needed = majorityOf(current.length)\n',
      ],
      [
        'bootstrap/formation.ts',
        '  const isEnough = empties.length === voters.length ||',
        '  const isEnough = empties.length >= needed ||',
      ],
    ],
    foundBy: FORMATION_TESTS,
  },
  {
    name: 'formation/codec-unchecked',
    edits: [['bootstrap/formation.ts', '  return codecHash !== codecs.orderedHash\n', '  return false\n']],
    foundBy: FORMATION_TESTS,
  },
  {
    // The log is compacted beyond a snapshot that is being sent, and the snapshot is not kept.
    name: 'transfer/compaction-beyond',
    edits: [
      [
        'cluster/transfer.ts',
        '  let index = Number.POSITIVE_INFINITY\n  const nowMs = sender.port.nowMs()\n',
        '  let index = Number.POSITIVE_INFINITY\n  return index\n  const nowMs = sender.port.nowMs()\n',
      ],
      [
        'cluster/transfer.ts',
        '  return [...new Set([...sender.outgoing.values()].map(({ index }) => index))]\n',
        '  return []\n',
      ],
    ],
    foundBy: by('snapshot'),
  },
  {
    // A snapshot becomes current before all of its chunks are here.
    name: 'transfer/switch-before-complete',
    edits: [
      ['cluster/transfer.ts', '  if (!isComplete) return\n', ''],
      ['snapshot/exchange.ts', "  if (missing.length > 0) return { state: 'lacking', missing }\n", ''],
    ],
    foundBy: { tests: 'engine/src/snapshot/exchange.test.ts' },
  },
  {
    name: 'snapshot/session-not-in-snapshot',
    edits: [
      ['snapshot/capture.ts', '    sessionCount: state(image, STATE.sessionCount),\n', '    sessionCount: 0,\n'],
      ['snapshot/capture.ts', '    sessions: encodeSessions(image),\n', '    sessions: new Uint8Array(0),\n'],
    ],
    foundBy: by('snapshot'),
  },
  {
    name: 'time/own-clock-trusted',
    edits: [
      [
        'cluster/keep-time.ts',
        '  return { monotonicMs, wallMs, others, voters,',
        '  others.splice(0, others.length, ...new Array(voters).fill(wallMs))\n  return { monotonicMs, wallMs, others, voters,',
      ],
    ],
    foundBy: by('reads'),
  },
  {
    name: 'recovery/uncommitted-applied',
    edits: [['data/recovery.ts', 'commit === undefined || index <= commit || isAlone(replayed.configuration)', 'true']],
    foundBy: by('conflicts'),
  },
  {
    // After a stall all ticks that were missed come at once, and an election with them.
    name: 'driver/tick-burst',
    edits: [
      [
        'cluster/member.ts',
        '    tick(replica.raft)\n',
        '    for (let i = 0; i < Math.max(1, Math.floor(sinceTick / tickMs)); i++) tick(replica.raft)\n',
      ],
    ],
    foundBy: { tests: 'proofs/sim/cluster.long.test.ts', named: 'driver/tick-burst' },
  },
])
