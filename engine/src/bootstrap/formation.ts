/**
 * Before the first election: which nodes found the shard, with which snapshot, and which nodes join it instead
 * (docs/design/consensus.md#formation). A state machine without a clock, a disk or a network: reports of peers go in, a
 * decision comes out.
 *
 * **The genesis is a function of the agreed values** (docs/design/consensus.md#formation): shard, voter list, snapshot,
 * its index and term. Every founder therefore writes the same CLUSTER without a coordinator. Founding is safe as soon
 * as a strict majority of all names in the list holds the same snapshot: two majorities share a node, and a node holds
 * one thing.
 *
 * **A report counts only if it echoes our incarnation.** A report sent before our folder was made carries no
 * information about the present. Otherwise a node whose disk was wiped could found its shard again on reports to its
 * previous incarnation, and vote a second time in the same term.
 *
 * **Untouched members still count with what they founded.** A founder may report that it is formed before the others
 * have decided. Under docs/design/consensus.md#formation alone it would then wait for votes of nodes that wait for it.
 * A member that has never voted, campaigned or received a message of a leader cannot have elected one, so a node with
 * the same snapshot may found the shard with it. A candidate that received a vote is no longer untouched. An empty
 * shard needs reports of all names (docs/design/consensus.md#formation), so a wiped node never founds it again. (Two
 * exceptions: a wiped node that gets the seed again while the nodes it voted with are unreachable, which the rules for
 * restoring in docs/design/consensus.md#formation cover, and a wiped node under `--form-with-majority`, which is for
 * the first start only.)
 *
 * **What a node holds changes only after a silence.** An operator may put a snapshot into the folder of an empty node
 * that waits. Meanwhile its peers may be founding an empty shard on its reports. It therefore sends no reports for
 * longer than a report counts (QUIET_MS) and then holds the snapshot. If a formed peer reports before that, the node
 * sets the snapshot aside and continues as an empty node. Under any network order a node founds only once, because two
 * shards would need two majorities. A founder that remains alone is recognized by the others, waits, and is recovered
 * with --rejoin.
 *
 * **Binding and replacement** (docs/design/consensus.md#formation). Founders are members 1 … n of the genesis, unbound.
 * They vote and their acknowledgements count from the start, because only founders ever use such an id. The leader
 * binds them at first contact. A node that is not a founder, including an empty initial voter, has no raft id: it
 * requests to join, and the leader replaces its unbound member by a new one (membership.ts). Such a node cannot know
 * whether an earlier incarnation of it took part. Under the old id it could vote twice in one term even after being
 * bound: once before it was wiped, for a candidate of a later term than that of the binding leader, and once after.
 */

import { assert, type CodecList, VacancyError } from '@vacancy/shared'
import { type Cluster, createCluster } from '../data/data-directory.ts'
import { type Founded, genesisConfiguration, type Held } from '../data/genesis.ts'
import type { Configuration } from '../raft/messages.ts'
import { hex } from '../snapshot/format.ts'
import type { BootstrapStatus, BootstrapVoter } from '../status.ts'
import { FORMATION_LIMITS, type FormationReport } from '../transport/formation-report.ts'

/** How often nodes that are not formed exchange reports. */
export const REPORT_EVERY_MS = 1_000
/** Why a leader refuses a former member: it was removed or replaced. */
export const REMOVED = 'removed'
/** An older report carries no information about what its sender holds now. */
export const REPORT_MS_MAX = 10_000
/** How long a node that gets a snapshot while it waits is silent, so that no node counts it as empty any more. */
export const QUIET_MS = REPORT_MS_MAX + 2 * REPORT_EVERY_MS
/** How often the log lists what is missing (docs/design/consensus.md#formation). */
export const LOG_EVERY_MS = 10_000
export type FormationOptions = {
  readonly self: string
  readonly incarnation: string
  readonly shardId: string
  /** `--initial-voters`; this node need not be among them. */
  readonly voters: readonly string[]
  readonly codecs: CodecList
  readonly formatVersion: number
  /** `--form-with-majority` */
  readonly formsWithMajority: boolean
  readonly held: Held
  readonly sha256: (bytes: Uint8Array) => Uint8Array
}

type ReceivedReport = { readonly report: FormationReport; readonly atMs: number; readonly isOpen: boolean }

export type Formation = Omit<FormationOptions, 'held' | 'voters'> & ReturnType<typeof createFormation>

export type Decision =
  | { readonly kind: 'wait'; readonly waitsFor: BootstrapStatus['waitsFor']; readonly why: string }
  | Founded
  /** The process ends. */
  | { readonly kind: 'fail'; readonly error: VacancyError }

export function createFormation(options: FormationOptions) {
  const { held, voters: given, ...rest } = options
  const voters = given.toSorted()
  assert(voters.length > 0 && voters.length <= FORMATION_LIMITS.voters, 'a list of initial voters has 1 to 7 names')
  assert(new Set(voters).size === voters.length, 'each initial voter is named once')
  const votersDigest = digestOf(options.sha256, voters)
  return {
    ...rest,
    held,
    /** Sorted. */
    voters,
    votersDigest,
    /** The last report of each node, including nodes that are gone: a report of data remains known. */
    reports: new Map<string, ReceivedReport>(),
    known: new Set(voters),
    loggedMs: -LOG_EVERY_MS,
    /** When a snapshot arrived in the folder of this empty node. */
    quietSinceMs: undefined as number | undefined,
  }
}

function digestOf(sha256: FormationOptions['sha256'], voters: readonly string[]): string {
  return hex(sha256(new TextEncoder().encode(JSON.stringify(voters))))
}

/**
 * The raft id of a node in a configuration.
 *
 * @returns 0 for a non-member: removed, replaced, or not yet admitted
 */
export function raftIdOf(
  { members }: Configuration,
  self: { readonly node: string; readonly incarnation: string; readonly isFounder: boolean },
): number {
  const member = members.find(({ node }) => node === self.node)
  if (!member) return 0
  if (member.incarnation === self.incarnation) return member.id
  return member.incarnation === '' && self.isFounder ? member.id : 0
}

/** What this node holds has changed: its snapshot was set aside, it was formed, or its member's state advanced. */
export function hold(formation: Formation, held: Held): void {
  assert(formation.held.state !== 'formed' || held.state === 'formed', 'a formed node stays formed')
  formation.held = held
  formation.quietSinceMs = undefined
}

/** A snapshot arrived in the folder of this empty node, which sends no reports until it holds it. */
export function beginQuiet(formation: Formation, nowMs: number): void {
  assert(formation.held.state === 'empty', 'only an empty node gets a snapshot')
  formation.quietSinceMs ??= nowMs
}

export function isQuiet({ quietSinceMs }: Formation): boolean {
  return quietSinceMs !== undefined
}

/** The report of this node to a peer. */
export function reportFor(formation: Formation, peer: string): FormationReport {
  const { held, shardId, codecs, formatVersion, incarnation, formsWithMajority } = formation
  const isFormed = held.state === 'formed'
  const voters = isFormed ? held.voters : formation.voters
  return {
    shard: shardId,
    votersDigest: isFormed ? digestOf(formation.sha256, voters) : formation.votersDigest,
    voters,
    codecHash: codecs.orderedHash,
    formatVersion,
    incarnation,
    echo: formation.reports.get(peer)?.report.incarnation ?? '',
    formsWithMajority,
    state: held.state,
    contentDigest: held.state === 'empty' ? '' : held.digest,
    index: held.state === 'empty' ? 0 : held.index,
    term: held.state === 'empty' ? 0 : held.term,
    clusterId: isFormed ? held.clusterId : '',
    isFounder: isFormed && held.isFounder,
    isUntouched: isFormed && held.isUntouched,
    leader: isFormed ? held.leader : '',
    members: knownNodes(formation),
  }
}

/**
 * All nodes that this node knows, sorted, including itself. One reachable seed is enough
 * (docs/design/http.md#node-flags).
 */
export function knownNodes(formation: Formation): string[] {
  return [...new Set([formation.self, ...formation.known])].sort().slice(0, FORMATION_LIMITS.members)
}

/**
 * Handles a report.
 *
 * @returns whether to reply at once instead of with the next round
 */
export function onPeer(formation: Formation, peer: string, report: FormationReport, nowMs: number): boolean {
  if (peer === formation.self || !isSound(formation, report)) return false
  const before = formation.reports.get(peer)
  if (!before && formation.reports.size >= FORMATION_LIMITS.peers) return false
  formation.reports.set(peer, { report, atMs: nowMs, isOpen: true })
  // Nodes of another shard, and those they know, are not dialled.
  const named = report.shard === formation.shardId ? [peer, ...report.members] : []
  for (const node of named) {
    if (formation.known.size < FORMATION_LIMITS.members) formation.known.add(node)
  }
  const isNew = before?.report.incarnation !== report.incarnation
  const needsReply = report.state !== 'formed' && formation.held.state === 'formed'
  return isNew || needsReply || report.echo !== formation.incarnation
}

/** A report that contradicts itself is ignored. */
function isSound(formation: Formation, report: FormationReport): boolean {
  const { voters, votersDigest, state, clusterId, contentDigest } = report
  if (voters.length === 0 || voters.length > FORMATION_LIMITS.voters) return false
  if (digestOf(formation.sha256, voters.toSorted()) !== votersDigest) return false
  if (state === 'seeded' && contentDigest === '') return false
  // The id of another shard cannot be computed. The node is refused for its shard.
  if (state !== 'formed' || report.shard !== formation.shardId) return state === 'formed' || clusterId === ''
  return clusterOf(formation, report).clusterId === clusterId
}

/** The connections to a peer are lost: its report counts again only when it is repeated. */
export function onPeerLost(formation: Formation, peer: string): void {
  const received = formation.reports.get(peer)
  if (received) formation.reports.set(peer, { ...received, isOpen: false })
}

type Snapshot = { readonly contentDigest: string; readonly index: number; readonly term: number }

function clusterOf(formation: Formation, from: Snapshot & { readonly voters: readonly string[] }): Cluster {
  const { shardId, codecs, sha256 } = formation
  const { contentDigest, index, term, voters } = from
  return createCluster({ shardId, codecs, base: { index, term }, snapshotDigest: contentDigest, voters }, sha256)
}

// The decision

/** A voter as it counts now. */
type Stand =
  | { readonly state: 'silent' }
  | { readonly state: 'refused'; readonly detail: string }
  /** Its report is consistent with ours. `isCurrent`: the report is recent and echoes this incarnation. */
  | { readonly state: 'reported'; readonly report: FormationReport; readonly isCurrent: boolean }

function standOf(formation: Formation, received: ReceivedReport | undefined, nowMs: number): Stand {
  if (!received) return { state: 'silent' }
  const { report } = received
  const detail = refusalOf(formation, report)
  if (detail !== '') return { state: 'refused', detail }
  return { state: 'reported', report, isCurrent: isRecent(received, nowMs) && report.echo === formation.incarnation }
}

const isRecent = ({ isOpen, atMs }: ReceivedReport, nowMs: number): boolean => isOpen && nowMs - atMs <= REPORT_MS_MAX

/**
 * Why this node ignores a peer (docs/design/consensus.md#formation, docs/design/http.md#node-flags); '' when it does
 * not.
 */
export function refusalOf(formation: Formation, report: FormationReport): string {
  if (report.shard !== formation.shardId) return `it belongs to shard ${report.shard}`
  if (report.formatVersion !== formation.formatVersion) return `its data has format ${report.formatVersion}`
  if (hasOtherCodecs(formation, report)) return 'its codec list differs'
  // Once a shard is formed its stored membership counts, not the lists of nodes.
  const isFormed = report.state === 'formed' || formation.held.state === 'formed'
  if (isFormed || report.votersDigest === formation.votersDigest) return ''
  return `its list of initial voters is ${report.voters.join(', ')}`
}

function hasOtherCodecs({ codecs }: Formation, { codecHash }: FormationReport): boolean {
  return codecHash !== codecs.orderedHash
}

const majorityOf = (count: number): number => Math.floor(count / 2) + 1

/** The present decision, evaluated after every report and once a second. Has no side effects. */
export function decide(formation: Formation, nowMs: number): Decision {
  assert(formation.held.state !== 'formed', 'a formed node has nothing to decide')
  const error = conflictOf(formation, nowMs)
  if (error) return { kind: 'fail', error }
  const stands = new Map<string, Stand>()
  for (const [node, received] of formation.reports) stands.set(node, standOf(formation, received, nowMs))
  const formed = [...stands].flatMap(([node, stand]) =>
    stand.state === 'reported' && stand.report.state === 'formed' ? [{ node, ...stand }] : [],
  )
  if (formation.quietSinceMs !== undefined) return decideQuiet(formation, formation.quietSinceMs, formed.length, nowMs)
  const own = reportFor(formation, '')
  // Applies docs/design/consensus.md#formation, except to untouched founders of the very same shard.
  const isSame = ({ report }: { report: FormationReport }) =>
    report.isUntouched && report.clusterId === clusterOf(formation, own).clusterId
  if (formed.length > 0 && !formed.every(isSame)) return decideToJoin(formation, formed, own)
  const counted: Stand[] = formation.voters.map((node) =>
    node === formation.self
      ? { state: 'reported', report: own, isCurrent: true }
      : (stands.get(node) ?? { state: 'silent' }),
  )
  return decideToForm(formation, counted, own)
}

function decideQuiet(formation: Formation, sinceMs: number, formed: number, nowMs: number): Decision {
  if (formed > 0) {
    const reason = `shard ${formation.shardId} was founded while this node received a snapshot: load it into the running shard`
    return { kind: 'set-aside', reason }
  }
  if (nowMs - sinceMs >= QUIET_MS) return { kind: 'reread' }
  const why = `this node received a snapshot and is silent for ${QUIET_MS / 1000} s, so that no node counts it as empty`
  return { kind: 'wait', waitsFor: 'snapshot', why }
}

/** A list that differs from that of most other nodes ends the process: no decision is possible. */
function conflictOf(formation: Formation, nowMs: number): VacancyError | undefined {
  const otherLists = new Map<string, number>()
  let otherCodecs = 0
  for (const [node, received] of formation.reports) {
    const { report } = received
    if (!isRecent(received, nowMs) || report.shard !== formation.shardId) continue
    if (hasOtherCodecs(formation, report)) {
      otherCodecs += report.leader !== '' ? formation.voters.length : formation.voters.includes(node) ? 1 : 0
    } else if (report.state !== 'formed' && report.votersDigest !== formation.votersDigest) {
      const count = (otherLists.get(report.votersDigest) ?? 0) + (report.voters.includes(node) ? 1 : 0)
      otherLists.set(report.votersDigest, count)
      if (count >= majorityOf(report.voters.length) && formation.voters.includes(formation.self)) {
        const [theirs, own] = [report.voters.join(', '), formation.voters.join(', ')]
        const reason = `Most nodes were started with --initial-voters ${theirs}; this one with ${own}. Give all the same.`
        return new VacancyError('data_conflict', { reason })
      }
    }
  }
  if (otherCodecs < majorityOf(formation.voters.length)) return undefined
  const reason =
    'The other nodes of the shard have another codec list: stop all of them, give all the same list, start them again.'
  return new VacancyError('data_conflict', { reason })
}

function decideToJoin(
  formation: Formation,
  formed: readonly { readonly node: string; readonly report: FormationReport; readonly isCurrent: boolean }[],
  own: FormationReport,
): Decision {
  // A shard with a leader has a majority. A formed node alone may be left over from before a restore
  // (docs/design/consensus.md#formation).
  const led = formed.filter(({ report, isCurrent }) => isCurrent && report.leader !== '')
  const [first] = led
  if (!first) {
    const names = formed.map(({ node, report }) => `${node} (cluster ${report.clusterId.slice(0, 12)})`)
    const why = `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} formed, without a known leader yet`
    return { kind: 'wait', waitsFor: 'join', why }
  }
  if (led.some(({ report }) => report.clusterId !== first.report.clusterId)) {
    const names = led.map(({ node, report }) => `${node} of ${report.clusterId.slice(0, 12)}`)
    const why = `two clusters of shard ${formation.shardId} have leaders: ${names.join(', ')}`
    return { kind: 'wait', waitsFor: 'join', why }
  }
  const cluster = clusterOf(formation, first.report)
  assert(cluster.clusterId === first.report.clusterId, 'the genesis of a formed peer yields its cluster id')
  const keepsSnapshot = own.state === 'seeded' && isSameSnapshot(own, first.report)
  if (own.state === 'seeded' && !keepsSnapshot) {
    const reason = `shard ${formation.shardId} is already running, and was not formed from this snapshot`
    return { kind: 'set-aside', reason }
  }
  return { kind: 'join', via: first.node, leader: first.report.leader, cluster, keepsSnapshot }
}

const isSameSnapshot = (a: Snapshot, b: Snapshot): boolean =>
  a.contentDigest === b.contentDigest && a.index === b.index && a.term === b.term

function decideToForm(formation: Formation, voters: readonly Stand[], own: FormationReport): Decision {
  const current = voters.flatMap((stand) => (stand.state === 'reported' && stand.isCurrent ? [stand.report] : []))
  const isVoter = formation.voters.includes(formation.self)
  const needed = majorityOf(formation.voters.length)
  // No node is counted twice, so at most one snapshot has a strict majority of all names
  // (docs/design/consensus.md#formation).
  for (const [, holders] of bySnapshot(current)) {
    const [held] = holders
    if (!held || holders.length < needed) continue
    if (own.state === 'seeded' && isSameSnapshot(own, held) && isVoter) return form(formation, own)
    if (own.state === 'seeded' && !isSameSnapshot(own, held)) {
      const reason = `${holders.length} of ${voters.length} voters hold snapshot ${short(held.contentDigest)}`
      return { kind: 'set-aside', reason }
    }
    const why = `snapshot ${short(held.contentDigest)} is on ${holders.length} of ${voters.length} voters: they form the shard`
    return { kind: 'wait', waitsFor: 'join', why }
  }
  // Includes data of nodes that are gone, are not voters or have another list: empty nodes never outvote it
  // (docs/design/consensus.md#formation).
  const all = [own, ...[...formation.reports.values()].map(({ report }) => report)]
  if (all.some(({ shard, contentDigest }) => shard === formation.shardId && contentDigest !== '')) {
    return { kind: 'wait', waitsFor: 'snapshot', why: whySnapshot(formation, current) }
  }
  return decideEmpty(formation, current, own, isVoter)
}

function decideEmpty(
  formation: Formation,
  current: readonly FormationReport[],
  own: FormationReport,
  isVoter: boolean,
): Decision {
  const { voters } = formation
  // Untouched founders of the empty shard count as empty and as willing to found it.
  const empties = current.filter(({ contentDigest }) => contentDigest === '')
  const willing = empties.filter(({ state, formsWithMajority }) => state === 'formed' || formsWithMajority)
  const needed = majorityOf(voters.length)
  const isEnough = empties.length === voters.length || (formation.formsWithMajority && willing.length >= needed)
  if (isEnough && isVoter && own.state === 'empty') return form(formation, own)
  const why = isEnough
    ? 'the initial voters form an empty shard'
    : `${empties.length} of ${voters.length} initial voters report that they are empty; without a snapshot ${
        formation.formsWithMajority ? `${majorityOf(voters.length)} with --form-with-majority are needed` : 'all must'
      }`
  return { kind: 'wait', waitsFor: isEnough ? 'join' : 'voters', why }
}

function form(formation: Formation, from: FormationReport): Decision {
  const cluster = clusterOf(formation, from)
  return { kind: 'form', cluster, configuration: genesisConfiguration(cluster.voters) }
}

/** The nodes that hold each snapshot. A founder holds the one it founded with. */
function bySnapshot(reports: readonly FormationReport[]): Map<string, FormationReport[]> {
  const holders = new Map<string, FormationReport[]>()
  for (const report of reports) {
    if (report.contentDigest === '') continue
    const key = `${report.contentDigest} ${report.index} ${report.term}`
    const list = holders.get(key)
    if (list) list.push(report)
    else holders.set(key, [report])
  }
  return holders
}

function whySnapshot(formation: Formation, current: readonly FormationReport[]): string {
  const count = formation.voters.length
  const held = [...bySnapshot(current).values()].sort((a, b) => b.length - a.length)
  if (held.length === 0) return 'a snapshot was reported by a node that does not respond or is not an initial voter'
  const holdings = held.map((holders) => `${short(holders[0]?.contentDigest ?? '')} is on ${holders.length}`)
  return `snapshot ${holdings.join(', ')} of ${count} voters, ${majorityOf(count)} needed`
}

const short = (digest: string): string => `${digest.slice(0, 12)}…`

// Reports

/** For `/cluster/info`, and as the table in the log (docs/design/consensus.md#formation). */
export function bootstrapOf(formation: Formation, nowMs: number): BootstrapStatus {
  const decision = formation.held.state === 'formed' ? undefined : decide(formation, nowMs)
  const isWaiting = decision?.kind === 'wait'
  return {
    waitsFor: isWaiting ? decision.waitsFor : 'join',
    why: isWaiting ? decision.why : 'this node is being admitted',
    needed: majorityOf(formation.voters.length),
    voters: formation.voters.map((id) => voterOf(formation, id, nowMs)),
  }
}

function voterOf(formation: Formation, id: string, nowMs: number): BootstrapVoter {
  const isSelf = id === formation.self
  const received = formation.reports.get(id)
  const stand: Stand = isSelf
    ? { state: 'reported', report: reportFor(formation, ''), isCurrent: true }
    : standOf(formation, received, nowMs)
  if (stand.state !== 'reported') {
    return { id, state: stand.state, snapshot: '', index: 0, detail: stand.state === 'refused' ? stand.detail : '' }
  }
  const { state, contentDigest, index, clusterId, leader } = stand.report
  const isGone = !isSelf && received !== undefined && !isRecent(received, nowMs)
  const details = [
    ...(isGone ? ['it no longer responds'] : []),
    ...(state === 'formed'
      ? [`cluster ${clusterId.slice(0, 12)}, ${leader === '' ? 'no leader' : `led by ${leader}`}`]
      : []),
  ]
  return { id, state, snapshot: contentDigest, index, detail: details.join(', ') }
}

/**
 * The log line of a waiting node, once every LOG_EVERY_MS: what is missing, and which node holds what
 * (docs/design/consensus.md#formation).
 *
 * @returns undefined if the last line is more recent
 */
export function describeWaiting(formation: Formation, nowMs: number): { message: string; fields: object } | undefined {
  if (nowMs - formation.loggedMs < LOG_EVERY_MS) return undefined
  formation.loggedMs = nowMs
  const { why, voters, needed } = bootstrapOf(formation, nowMs)
  const table = Object.fromEntries(
    voters.map(({ id, state, snapshot, detail }) => [
      id,
      [state, snapshot.slice(0, 12), detail].filter(Boolean).join(' '),
    ]),
  )
  return { message: `waiting to form: ${why}`, fields: { voters: table, needed } }
}
