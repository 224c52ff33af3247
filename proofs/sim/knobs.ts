/**
 * The settings of one simulated run, drawn from its seed: sizes that make rare paths common, and the enabled faults
 * (docs/design/testing.md#simulation, hostile settings and the swarm rule).
 */

import { between, betweenDecades, chance, pick, type Random, streamOf } from '@vacancy/testkit/random'
import { EPOCH_MS } from './clocks.ts'

/** Fault classes that the generator and the shrinker can disable one by one. */
export const FAULT_CLASSES = [
  'drop',
  'duplicate',
  'late',
  'damage',
  'partition',
  'oneway',
  'slowlink',
  'reset',
  'kill',
  'power',
  'killall',
  'rolling',
  'stall',
  'slowdisk',
  'hungdisk',
  'fulldisk',
  'cut',
  'diskerror',
  'corrupt',
  'clock',
  'transfer',
  'membership',
  'wipe',
  'shutdown',
  'slowapply',
  'snapshot',
  'maintenance',
  'load',
  'exhaust',
  'restore',
] as const
export type FaultClass = (typeof FAULT_CLASSES)[number]

export const PROFILES = [
  'mixed',
  'calm',
  'network',
  'crash',
  'elections',
  'conflicts',
  'reads',
  'membership',
  'snapshot',
  'disk',
  'fulldisk',
  'refusals',
  'lockstep',
] as const
export type Profile = (typeof PROFILES)[number]

export type Knobs = {
  readonly voters: number
  readonly learners: number
  readonly tickMs: number
  readonly electionTicks: number
  readonly heartbeatTicks: number
  readonly latencyUsMin: number
  readonly latencyUsMax: number
  readonly dropP: number
  readonly duplicateP: number
  readonly lateP: number
  readonly damageP: number
  /** Streams deliver in order but for late and repeated frames. */
  readonly isOrdered: boolean
  readonly syncUsMin: number
  readonly syncUsMax: number
  readonly logFileBytes: number
  readonly flushThreshold: number
  readonly messageBytes: number
  readonly inflightMessages: number
  readonly inflightBytes: number
  readonly keepBytes: number
  readonly snapshotEvery: number
  readonly keptEntries: number
  readonly clockErrorPercent: number
  readonly clients: number
  readonly registers: number
  readonly thinkUs: number
  readonly keylessPercent: number
  readonly readPercent: number
  /** Share of attempts sent to a random node instead of the leader. */
  readonly roamPercent: number
  readonly classes: readonly FaultClass[]
  /** Mean time between two scheduled faults. */
  readonly faultEveryUs: number
  /** Length of the fault phase. */
  readonly events: number
  readonly sometimesP: number
  readonly usesStore: boolean
  /** Start of simulated time, in UTC. */
  readonly epochMs: number
  readonly memoryBytes: number
  /** The memory of a shard, which its writers fill; 0 for more than they write. */
  readonly memoryBudget: number
  /** Clients that change the structure of the store: their number, properties per client, and write interval. */
  readonly builders: number
  readonly builtProperties: number
  readonly buildUs: number
  /** Clients that sell stays, each with the hotels' source of record. */
  readonly stayClients: number
  readonly snapshotBytesPerSecond: number
  /** Capacity of the request key table with the store: from all sessions to none. */
  readonly sessionBytes: number
  /** How often per tick a leader of bare cores probes further back in the log of a peer than necessary. */
  readonly probeBackP: number
  /** Settings of bare cores. */
  readonly isLockStep: boolean
  readonly preVote: boolean
  readonly checkQuorum: boolean
  /** Crashes and full disks may store a part of a hand-over. */
  readonly tearsHandOvers: boolean
  /** How often a new leader of bare cores is cut off at once. */
  readonly isolatedP: number
}

/** Also shortly before New Year, and before a 29 February: clocks differ by seconds at least, so nodes cross it apart. */
const EPOCHS = [
  ...[EPOCH_MS, EPOCH_MS, EPOCH_MS],
  ...[Date.parse('2026-12-31T23:59:52Z'), Date.parse('2028-02-28T23:59:52Z')],
] as const

/** Maximum simulated time of the fault phase. */
export const FAULT_PHASE_US_MAX = 600_000_000

const OF_PROFILE: { readonly [profile in Profile]?: readonly FaultClass[] } = {
  calm: [],
  network: ['drop', 'duplicate', 'late', 'damage', 'partition', 'oneway', 'slowlink', 'reset', 'stall'],
  crash: [
    'kill',
    'power',
    'cut',
    'killall',
    'rolling',
    'stall',
    'drop',
    'partition',
    'slowdisk',
    'hungdisk',
    'maintenance',
  ],
  elections: ['kill', 'power', 'killall', 'late', 'stall', 'partition', 'oneway', 'slowdisk', 'transfer'],
  conflicts: [
    'kill',
    'power',
    'cut',
    'partition',
    'oneway',
    'late',
    'drop',
    'slowdisk',
    'stall',
    'transfer',
    'fulldisk',
  ],
  reads: ['partition', 'oneway', 'stall', 'late', 'kill', 'slowapply', 'transfer'],
  membership: ['membership', 'transfer', 'wipe', 'kill', 'power', 'partition', 'oneway', 'drop', 'late', 'load'],
  snapshot: [
    ...(['snapshot', 'kill', 'power', 'cut', 'partition', 'drop', 'late', 'duplicate', 'slowlink'] as const),
    ...(['maintenance', 'load'] as const),
  ],
  disk: ['slowdisk', 'hungdisk', 'fulldisk', 'cut', 'diskerror', 'corrupt', 'power', 'kill', 'killall'],
  fulldisk: ['fulldisk', 'cut', 'kill', 'power', 'partition', 'oneway', 'late', 'drop', 'slowdisk', 'transfer'],
  refusals: ['fulldisk', 'slowdisk', 'partition', 'kill', 'power', 'oneway', 'transfer'],
  lockstep: [
    'kill',
    'power',
    'partition',
    'oneway',
    'stall',
    'late',
    'drop',
    'duplicate',
    'transfer',
    'wipe',
    'fulldisk',
  ],
}

/** Purpose of each profile. */
const ALWAYS: { readonly [profile in Profile]?: readonly FaultClass[] } = {
  membership: ['membership'],
  snapshot: ['snapshot'],
  conflicts: ['cut', 'partition'],
  fulldisk: ['fulldisk'],
  refusals: ['fulldisk', 'slowdisk', 'partition', 'kill'],
  lockstep: ['kill', 'partition', 'wipe'],
}

/** @param length scales the number of events */
export function drawKnobs(seed: number, profile: Profile, length = 1, usesStore = false): Knobs {
  const random = streamOf(seed, 'knobs')
  const ofStore = streamOf(seed, 'store')
  const ofProbes = streamOf(seed, 'probes')
  const ofStays = streamOf(seed, 'stays')
  const ofOrder = streamOf(seed, 'order')
  const voters = pick(random, profile === 'membership' ? [1, 3, 3, 5] : [1, 3, 3, 3, 3, 5, 5, 7])
  const electionTicks = betweenDecades(random, 4, 60)
  const heartbeatTicks = between(random, 1, Math.max(1, Math.floor(electionTicks / 4)))
  const tickMs = between(random, 2, 30)
  const latencyUsMax = betweenDecades(random, 200, Math.max(400, tickMs * electionTicks * 40))
  const drawn = drawClasses(random, profile)
  const classes = usesStore ? [...drawn, ...classesOfStore(seed, profile, drawn.length === 0)] : drawn
  const has = (name: FaultClass) => classes.includes(name)
  const lengthClass = random.below(10)
  const clients = between(random, 1, 8)
  const logFileBytes = 16_384 << random.below(5)
  const knobs: Knobs = {
    voters,
    learners: random.below(3) === 0 ? between(random, 1, 3) : 0,
    tickMs,
    electionTicks,
    heartbeatTicks,
    latencyUsMin: Math.ceil(latencyUsMax / betweenDecades(random, 1, 50)),
    latencyUsMax,
    dropP: has('drop') ? betweenDecades(random, 1, 300) / 1_000 : 0,
    duplicateP: has('duplicate') ? betweenDecades(random, 1, 200) / 1_000 : 0,
    lateP: has('late') ? betweenDecades(random, 1, 200) / 1_000 : 0,
    damageP: has('damage') ? betweenDecades(random, 1, 30) / 1_000 : 0,
    isOrdered: chance(ofOrder, 0.5),
    syncUsMin: betweenDecades(random, 10, 200),
    // A disk as slow as an election timeout is a fault, not a setting.
    syncUsMax: betweenDecades(random, 200, Math.max(400, tickMs * electionTicks * 60)),
    logFileBytes,
    // A group of single entries fits a file of this size.
    flushThreshold: Math.min(betweenDecades(random, 1, 2_000), Math.floor((logFileBytes - 8_192) / 100)),
    messageBytes: betweenDecades(random, 64, 1 << 20),
    inflightMessages: betweenDecades(random, 1, 256),
    inflightBytes: betweenDecades(random, 256, 16 << 20),
    keepBytes: betweenDecades(random, 64, 1 << 20),
    // One event of a store costs as much as a thousand others.
    snapshotEvery: betweenDecades(random, usesStore ? 60 : 5, has('snapshot') ? (usesStore ? 400 : 100) : 3_000),
    keptEntries: chance(random, 0.5) ? 0 : betweenDecades(random, 1, 1_000),
    clockErrorPercent: between(random, 0, 20),
    clients,
    // Few concurrent operations per register: checking many with unknown outcomes takes too long.
    registers: between(random, Math.ceil(clients / 2), 6),
    thinkUs: betweenDecades(random, 500, tickMs * electionTicks * 500),
    keylessPercent: pick(random, [0, 20, 100]),
    readPercent: pick(random, [0, 20, 50]),
    roamPercent: pick(random, [1, 5, 30]),
    classes,
    faultEveryUs: Math.max(20_000, tickMs * electionTicks * betweenDecades(random, 500, 20_000)),
    events: Math.round((lengthClass < 5 ? 2_000 : lengthClass < 9 ? 10_000 : 60_000) * length),
    sometimesP: chance(random, 0.3) ? betweenDecades(random, 10, 1_000) / 1_000 : 0,
    usesStore,
    probeBackP: chance(ofProbes, profile === 'conflicts' ? 0.5 : 0.1) ? betweenDecades(ofProbes, 10, 300) / 1_000 : 0,
    sessionBytes: chance(ofStore, 0.5) ? 1 << 20 : betweenDecades(ofStore, 1_000, 20_000),
    builders: chance(ofStore, 0.85) ? between(ofStore, 1, 2) : 0,
    builtProperties: pick(ofStore, [10, 60, 400, 900]),
    stayClients: usesStore && chance(ofStays, 0.8) ? between(ofStays, 1, 4) : 0,
    buildUs: betweenDecades(ofStore, 100_000, 2_000_000),
    memoryBudget: chance(ofStore, 0.3) ? betweenDecades(ofStore, 1 << 20, 8 << 20) : 0,
    epochMs: usesStore ? pick(streamOf(seed, 'epoch'), EPOCHS) : EPOCH_MS,
    memoryBytes: 64 << 20,
    snapshotBytesPerSecond: betweenDecades(ofStore, 20_000, 20_000_000),
    isLockStep: false,
    preVote: true,
    checkQuorum: true,
    tearsHandOvers: false,
    isolatedP: 0,
  }
  return withWindow({ ...knobs, ...ofProfile(random, profile, knobs) })
}

/** What clients and builders add to the log, at most. */
const ADDED_BYTES_PER_SECOND = 12_800

/**
 * With a few entries in flight on a slow disk the log grows faster than it is replicated, and no write is ever
 * acknowledged, also without faults. Such a disk gets a window that is large enough.
 */
function withWindow(knobs: Knobs): Knobs {
  const neededBytes = Math.ceil((knobs.syncUsMax / 1e6) * ADDED_BYTES_PER_SECOND)
  return {
    ...knobs,
    messageBytes: Math.max(knobs.messageBytes, Math.ceil(neededBytes / knobs.inflightMessages)),
    inflightBytes: Math.max(knobs.inflightBytes, neededBytes),
  }
}

/** Overrides that make the rare paths of a profile common. */
function ofProfile(random: Random, profile: Profile, knobs: Knobs): Partial<Knobs> {
  const electionUs = knobs.tickMs * knobs.electionTicks * 1_000
  const often = { faultEveryUs: Math.round(electionUs * (0.5 + random.below(30) / 10)) }
  const voters = pick(random, [3, 3, 5])
  const quick = { ...often, voters, learners: 0, heartbeatTicks: 1 }
  switch (profile) {
    case 'elections':
      // Slow disks and short timeouts: votes and terms are being written when the process ends.
      return {
        ...quick,
        electionTicks: between(random, 4, 8),
        syncUsMin: Math.round(knobs.tickMs * 500),
        syncUsMax: Math.round(knobs.tickMs * 2_500),
        thinkUs: betweenDecades(random, 5_000, 50_000),
      }
    case 'conflicts':
      return {
        ...often,
        voters,
        syncUsMin: 200,
        // As slow as an election: entries of one leader are stored in one turn with the entries of the next that
        // replace them.
        syncUsMax: Math.round(electionUs / pick(random, [8, 8, 1, 0.5])),
        flushThreshold: pick(random, [1, 2, 8, knobs.flushThreshold]),
        snapshotEvery: 2_000,
        clients: 4,
        thinkUs: 5_000,
      }
    case 'reads':
      return {
        ...often,
        voters,
        readPercent: 50,
        roamPercent: 40,
        clients: 6,
        registers: 3,
        thinkUs: betweenDecades(random, 500, 5_000),
        clockErrorPercent: 20,
      }
    case 'snapshot':
      // Frequent snapshots and file ends while entries are being written.
      return {
        logFileBytes: 16_384,
        flushThreshold: Math.min(80, knobs.flushThreshold),
        keptEntries: pick(random, [0, 0, 8]),
        clients: 6,
        thinkUs: betweenDecades(random, 300, 3_000),
      }
    case 'membership':
      return { ...often, learners: between(random, 0, 3), snapshotEvery: betweenDecades(random, 20, 3_000) }
    case 'fulldisk':
      // Entries are being written to a full disk, and others are about to replace them.
      return {
        ...quick,
        electionTicks: between(random, 4, 12),
        syncUsMin: 200,
        syncUsMax: Math.round(electionUs / 4),
        snapshotEvery: 2_000,
        clients: 6,
        thinkUs: betweenDecades(random, 1_000, 10_000),
      }
    case 'refusals':
      // The disk is full and slower than elections: refused writes and later ones wait for it together.
      return {
        ...quick,
        electionTicks: between(random, 4, 8),
        latencyUsMin: 100,
        latencyUsMax: 1_000,
        syncUsMin: 200,
        syncUsMax: electionUs,
        logFileBytes: 16_384,
        flushThreshold: between(random, 1, 3),
        messageBytes: 1 << 16,
        snapshotEvery: 2_000,
        clients: 6,
        thinkUs: betweenDecades(random, 500, 5_000),
      }
    case 'lockstep':
      return ofLockStep(random, knobs.tickMs)
    default:
      return {}
  }
}

/** Cores set unlike the product, whose messages carry an entry or two: terms begin before those before are settled. */
function ofLockStep(random: Random, tickMs: number): Partial<Knobs> {
  const preVote = chance(random, 0.8)
  const electionTicks = between(random, 4, 8)
  return {
    faultEveryUs: Math.round(tickMs * electionTicks * 1_000 * pick(random, [0.3, 1, 3])),
    isLockStep: chance(random, 0.5),
    preVote,
    // Without both, a member that hears nothing may disturb the others forever (docs/design/consensus.md#check-quorum).
    checkQuorum: !preVote || chance(random, 0.75),
    voters: pick(random, [2, 3, 3, 3, 4, 5, 5]),
    learners: pick(random, [0, 0, 1]),
    electionTicks,
    heartbeatTicks: 1,
    tearsHandOvers: chance(random, 0.5),
    isolatedP: pick(random, [0, 0.3, 0.7]),
    latencyUsMin: 100,
    latencyUsMax: Math.round(tickMs * pick(random, [100, 500, 1_000])),
    syncUsMin: 100,
    syncUsMax: Math.round(tickMs * pick(random, [100, 1_000, 3_000])),
    messageBytes: between(random, 1, 200),
    inflightMessages: between(random, 1, 4),
    snapshotEvery: 2_000,
    probeBackP: pick(random, [0, 0.05, 0.3]),
    readPercent: 50,
    roamPercent: 40,
    clients: 6,
    registers: 3,
    thinkUs: betweenDecades(random, 500, 20_000),
  }
}

/** One run in ten has no faults, one in ten a single class, and the others a random subset. */
function drawClasses(random: Random, profile: Profile): readonly FaultClass[] {
  const all = OF_PROFILE[profile] ?? WITHOUT_STORE
  if (all.length === 0) return []
  const kind = random.below(10)
  if (kind === 0) return []
  if (kind === 1) return [pick(random, all)]
  const p = pick(random, [0.25, 0.5, 0.75])
  const always = ALWAYS[profile] ?? []
  return all.filter((name) => always.includes(name) || chance(random, p))
}

const WITHOUT_STORE = FAULT_CLASSES.filter((name) => name !== 'exhaust' && name !== 'restore')
/** Profiles in which stores also run out of memory, and in which shards are restored. */
const EXHAUSTING: readonly Profile[] = ['mixed', 'crash', 'snapshot', 'membership', 'disk']
const RESTORING: readonly Profile[] = ['mixed', 'calm', 'crash', 'elections', 'membership', 'snapshot']

/** Faults that only a store has; the others that were drawn are unchanged. */
function classesOfStore(seed: number, profile: Profile, isFaultless: boolean): FaultClass[] {
  const exhausts = !isFaultless && EXHAUSTING.includes(profile) && chance(streamOf(seed, 'exhaust'), 0.4)
  const restores = RESTORING.includes(profile) && chance(streamOf(seed, 'restore'), 0.5)
  return [...(exhausts ? ['exhaust' as const] : []), ...(restores ? ['restore' as const] : [])]
}

export type Fault = {
  readonly atUs: number
  readonly kind: FaultClass
  /** A node, or 0 for the leader. */
  readonly target: number
  readonly lengthUs: number
  /** A number whose meaning depends on the kind. */
  readonly detail: number
  /** Nodes on one side of a partition, or directed links as from · 16 + to. */
  readonly nodes?: readonly number[]
}
