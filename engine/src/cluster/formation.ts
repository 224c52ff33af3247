/**
 * Before the first election: which nodes found the shard, with which snapshot, and who joins it instead (consensus.md
 * §16.4, G1–G9). A state machine without a clock, a disk or a network: reports of peers go in, a decision comes out.
 *
 * **The genesis is a function of what is agreed on** (G2): shard, voter list, snapshot, its index and term. So every
 * founder writes the same CLUSTER without a coordinator, and founding is safe as soon as a strict majority of all names
 * in the list holds the same: two majorities share a node, and a node holds one thing.
 *
 * **A report counts only when it answers ours.** Each report repeats the incarnation of the node that it is for; one
 * that was on its way since before our folder was made says nothing about now. Without that, a node whose disk was wiped
 * could found its shard a second time on reports that the first one was sent, and vote again where it has voted.
 *
 * **Untouched members still count as what they founded with.** A founder tells the others that it is formed before they
 * have made up their minds, and G1 alone would leave it waiting for votes of nodes that wait for it. As long as a member
 * has never voted, stood or heard a leader, nobody can have been elected by it, and a node of the same snapshot may
 * found the shard along with it. Once a vote was cast, the candidate that it was cast for is not untouched any more, so
 * of an empty shard, where all names must be heard (G4), no wiped node is a founder again. (A wiped node that an operator
 * gives the seed once more, while those it voted with are out of reach, is; restoring goes by G7. So does a wiped node
 * under `--form-with-majority`, which is for the first start alone.)
 *
 * **What a node holds changes only after a silence.** A snapshot may be put into the folder of an empty node that waits.
 * Peers may be founding an empty shard on its word meanwhile, so it says nothing for longer than a report counts
 * (QUIET_MS) and then holds the snapshot. Hears it of a formed peer before, the snapshot is set aside and it goes on as
 * the empty node it was. Whatever the network does to that order, a node founds once: two shards would need two
 * majorities; a founder that is left alone by it is told apart, waits, and is given back with --rejoin.
 *
 * **Who is bound and who is replaced** (§7.1, G3). Founders are members 1 … n of the genesis, unbound; they vote and
 * their acknowledgements count from the start, because nobody but a founder ever speaks under such an id. The leader
 * binds them at first contact. Whoever is no founder, an empty initial voter as well, has no raft id at all: it asks the
 * leader to be taken in, which replaces its unbound member by a new one (membership.ts). It cannot know whether an
 * earlier incarnation of it took part, and under the old id it could vote twice in one term even when it was bound:
 * once before it was wiped, for a candidate of a later term than the leader that binds it, and once after.
 */

import { assert, type CodecList, VacancyError } from '@vacancy/shared'
import type { Configuration } from '../raft/messages.ts'
import { hex } from '../snapshot/format.ts'
import type { BootstrapStatus, BootstrapVoter } from '../status.ts'
import { type Cluster, createCluster } from './data-directory.ts'

/** How often nodes that are not formed tell each other where they stand. */
export const REPORT_EVERY_MS = 1_000
/** Why a leader refuses a node that was a member: it was removed, or another one took its place. */
export const REMOVED = 'removed'
/** A report that is older says nothing about what its sender holds now. */
export const REPORT_MS_MAX = 10_000
/** A node that is given a snapshot while it waits is silent this long: nobody counts it as empty any more. */
export const QUIET_MS = REPORT_MS_MAX + 2 * REPORT_EVERY_MS
/** How often the log says what is missing (G5). */
export const TELL_EVERY_MS = 10_000
export const FORMATION_LIMITS = { voters: 7, peers: 64, members: 256 } as const

/** What a node holds. `digest` is the content digest, 64 hexadecimal digits. */
export type Held =
  | { readonly state: 'empty' }
  | { readonly state: 'seeded'; readonly digest: string; readonly index: number; readonly term: number }
  | FormedState

/** The genesis of a formed node, and what became of it. */
export type FormedState = {
  readonly state: 'formed'
  readonly clusterId: string
  /** Of the snapshot it was founded with; '' for an empty shard. */
  readonly digest: string
  readonly index: number
  readonly term: number
  readonly voters: readonly string[]
  readonly isFounder: boolean
  /** Nothing but the genesis: it never voted, stood, or heard a leader. */
  readonly isUntouched: boolean
  /** Node id; '' while none is known. */
  readonly leader: string
}

/** What a node tells a peer; the fields of a formation frame. */
export type FormationReport = {
  readonly shard: string
  /** Of the sender's sorted `--initial-voters`, 64 hexadecimal digits; of a formed one those of its genesis. */
  readonly votersDigest: string
  readonly voters: readonly string[]
  readonly codecHash: string
  readonly formatVersion: number
  readonly incarnation: string
  /** Incarnation of the node it is for, as last heard; '' before. */
  readonly echo: string
  readonly formsWithMajority: boolean
  readonly state: Held['state']
  /** '' where there is no snapshot; of a formed node that of its genesis, as index and term. */
  readonly contentDigest: string
  readonly index: number
  readonly term: number
  /** '' unless formed. */
  readonly clusterId: string
  readonly isFounder: boolean
  readonly isUntouched: boolean
  readonly leader: string
  /** Nodes that the sender knows of. */
  readonly members: readonly string[]
}

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
  readonly defects?: ReadonlySet<string> | undefined
}

type Heard = { readonly report: FormationReport; readonly atMs: number; readonly isOpen: boolean }

export type Formation = Omit<FormationOptions, 'held' | 'voters'> & {
  held: Held
  /** Sorted. */
  readonly voters: readonly string[]
  readonly votersDigest: string
  /** The last report of each node, also of one that is gone: data that was heard of stays known. */
  readonly heard: Map<string, Heard>
  readonly known: Set<string>
  toldMs: number
  /** A snapshot came into the folder of this empty node then. */
  quietSinceMs: number | undefined
}

export type Decision =
  | { readonly kind: 'wait'; readonly waitsFor: BootstrapStatus['waitsFor']; readonly why: string }
  /** Write this CLUSTER, start from the held snapshot or empty, and take part. */
  | { readonly kind: 'form'; readonly cluster: Cluster; readonly configuration: Configuration }
  /** Write this CLUSTER as no founder, and ask `leader` to be taken in (`join`). */
  | {
      readonly kind: 'join'
      readonly via: string
      readonly leader: string
      readonly cluster: Cluster
      /** The held snapshot is the one that the shard began with: a prefix of its history, and it may stay. */
      readonly keepsSnapshot: boolean
    }
  /** Move the held snapshot to `quarantine/`, say so with `hold`, and decide again (G5). */
  | { readonly kind: 'set-aside'; readonly reason: string }
  /** The silence is over: the folder has a snapshot now, so read it again. */
  | { readonly kind: 'look-again' }
  /** The process ends. */
  | { readonly kind: 'fail'; readonly error: VacancyError }

export function createFormation(options: FormationOptions): Formation {
  const { held, voters: given, ...rest } = options
  const voters = given.toSorted()
  assert(voters.length > 0 && voters.length <= FORMATION_LIMITS.voters, 'a list of initial voters has 1 to 7 names')
  assert(new Set(voters).size === voters.length, 'each initial voter is named once')
  const votersDigest = digestOf(options.sha256, voters)
  return {
    ...rest,
    held,
    voters,
    votersDigest,
    heard: new Map(),
    known: new Set(voters),
    toldMs: -TELL_EVERY_MS,
    quietSinceMs: undefined,
  }
}

function digestOf(sha256: FormationOptions['sha256'], voters: readonly string[]): string {
  return hex(sha256(new TextEncoder().encode(JSON.stringify(voters))))
}

/** The configuration of the genesis: raft ids 1 … n in the order of the names, all unbound (§7.1). */
export function genesisConfiguration(voters: readonly string[]): Configuration {
  const members = voters.toSorted().map((node, i) => ({ id: i + 1, node, incarnation: '' }))
  const ids = members.map(({ id }) => id)
  return { members, voters: ids, outgoing: [], learners: [], staged: [], autoLeave: false }
}

/**
 * Who the members were where a snapshot was taken, or where the log begins without one. A snapshot that a shard began
 * with may carry the members of the shard it came from: those count for nothing here (G7).
 */
export function configurationAt(
  cluster: Cluster,
  snapshot:
    | { readonly index: number; readonly term: number; readonly membership?: Configuration | undefined }
    | undefined,
): Configuration {
  const isBase = snapshot?.index === cluster.baseIndex && snapshot.term === cluster.baseTerm
  // A standalone node writes snapshots without members: it has never had others than its genesis says.
  return (isBase ? undefined : snapshot?.membership) ?? genesisConfiguration(cluster.voters)
}

/**
 * The raft id of a node in a configuration.
 *
 * @returns 0 when it is no member: removed, replaced, or not yet taken in
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

/** This node holds something else now: its snapshot was set aside, it was formed, or its member's state moved on. */
export function hold(formation: Formation, held: Held): void {
  assert(formation.held.state !== 'formed' || held.state === 'formed', 'a formed node stays formed')
  formation.held = held
  formation.quietSinceMs = undefined
}

/** A snapshot lies in the folder of this node, which was empty so far: it tells nobody anything until it holds it. */
export function beginQuiet(formation: Formation, nowMs: number): void {
  assert(formation.held.state === 'empty', 'only an empty node is given a snapshot')
  formation.quietSinceMs ??= nowMs
}

export function isQuiet({ quietSinceMs }: Formation): boolean {
  return quietSinceMs !== undefined
}

/** What this node tells a peer. */
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
    echo: formation.heard.get(peer)?.report.incarnation ?? '',
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

/** All nodes that were named to this one, sorted; itself among them. One reachable seed is enough (platform.md §7.9). */
export function knownNodes(formation: Formation): string[] {
  return [...new Set([formation.self, ...formation.known])].sort().slice(0, FORMATION_LIMITS.members)
}

/**
 * Takes a report in.
 *
 * @returns whether to answer at once, instead of with the next round
 */
export function onPeer(formation: Formation, peer: string, report: FormationReport, nowMs: number): boolean {
  if (peer === formation.self || !isSound(formation, report)) return false
  const before = formation.heard.get(peer)
  if (!before && formation.heard.size >= FORMATION_LIMITS.peers) return false
  formation.heard.set(peer, { report, atMs: nowMs, isOpen: true })
  // Nodes of another shard, and those they know, are nobody to look for.
  const named = report.shard === formation.shardId ? [peer, ...report.members] : []
  for (const node of named) {
    if (formation.known.size < FORMATION_LIMITS.members) formation.known.add(node)
  }
  const isNew = before?.report.incarnation !== report.incarnation
  const isAsked = report.state !== 'formed' && formation.held.state === 'formed'
  return isNew || isAsked || report.echo !== formation.incarnation
}

/** What contradicts itself is not looked at. */
function isSound(formation: Formation, report: FormationReport): boolean {
  const { voters, votersDigest, state, clusterId, contentDigest } = report
  if (voters.length === 0 || voters.length > FORMATION_LIMITS.voters) return false
  if (digestOf(formation.sha256, voters.toSorted()) !== votersDigest) return false
  if (state === 'seeded' && contentDigest === '') return false
  // Of another shard the id cannot be computed; it is turned away for that.
  if (state !== 'formed' || report.shard !== formation.shardId) return state === 'formed' || clusterId === ''
  return clusterOf(formation, report).clusterId === clusterId
}

/** The connections to a peer are gone: what it said does not count until it says it again. */
export function onPeerLost(formation: Formation, peer: string): void {
  const heard = formation.heard.get(peer)
  if (heard) formation.heard.set(peer, { ...heard, isOpen: false })
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
  /** Heard, and agreed with. `isCurrent`: it said so lately, and to this very incarnation. */
  | { readonly state: 'heard'; readonly report: FormationReport; readonly isCurrent: boolean }

function standOf(formation: Formation, heard: Heard | undefined, nowMs: number): Stand {
  if (!heard) return { state: 'silent' }
  const { report } = heard
  const detail = refusalOf(formation, report)
  if (detail !== '') return { state: 'refused', detail }
  return { state: 'heard', report, isCurrent: isRecent(heard, nowMs) && report.echo === formation.incarnation }
}

const isRecent = ({ isOpen, atMs }: Heard, nowMs: number): boolean => isOpen && nowMs - atMs <= REPORT_MS_MAX

/** Why a node is not talked to (G9, platform.md §7.9); '' when it is. */
export function refusalOf(formation: Formation, report: FormationReport): string {
  if (report.shard !== formation.shardId) return `it belongs to shard ${report.shard}`
  if (report.formatVersion !== formation.formatVersion) return `its data has format ${report.formatVersion}`
  if (hasOtherCodecs(formation, report)) return 'its codec list is another one'
  // Once a shard is formed its stored membership counts, and nobody's list.
  const isFormed = report.state === 'formed' || formation.held.state === 'formed'
  if (isFormed || report.votersDigest === formation.votersDigest) return ''
  return `its list of initial voters is ${report.voters.join(', ')}`
}

function hasOtherCodecs({ codecs, defects }: Formation, { codecHash }: FormationReport): boolean {
  return codecHash !== codecs.orderedHash && !defects?.has('formation/codec-unchecked')
}

const majorityOf = (count: number): number => Math.floor(count / 2) + 1

/** What to do now. Asked again after every report and once a second; changes nothing. */
export function decide(formation: Formation, nowMs: number): Decision {
  assert(formation.held.state !== 'formed', 'a formed node has nothing to decide (G8)')
  const error = conflictOf(formation, nowMs)
  if (error) return { kind: 'fail', error }
  const stands = new Map<string, Stand>()
  for (const [node, heard] of formation.heard) stands.set(node, standOf(formation, heard, nowMs))
  const formed = [...stands].flatMap(([node, stand]) =>
    stand.state === 'heard' && stand.report.state === 'formed' ? [{ node, ...stand }] : [],
  )
  if (formation.quietSinceMs !== undefined) return decideQuiet(formation, formation.quietSinceMs, formed.length, nowMs)
  const own = reportFor(formation, '')
  const wiped = formation.defects?.has('formation/wiped-voter-votes') ? formed[0] : undefined
  if (wiped && wiped.report.contentDigest === '') return form(formation, wiped.report)
  // G1, but for founders of the very same shard that have done nothing yet.
  const isSame = ({ report }: { report: FormationReport }) =>
    report.isUntouched && report.clusterId === clusterOf(formation, own).clusterId
  if (formed.length > 0 && !formed.every(isSame)) return decideToJoin(formation, formed, own)
  const counted: Stand[] = formation.voters.map((node) =>
    node === formation.self
      ? { state: 'heard', report: own, isCurrent: true }
      : (stands.get(node) ?? { state: 'silent' }),
  )
  return decideToForm(formation, counted, own)
}

function decideQuiet(formation: Formation, sinceMs: number, formed: number, nowMs: number): Decision {
  if (formed > 0) {
    const reason = `shard ${formation.shardId} was founded while this node was given a snapshot: load it into the running shard`
    return { kind: 'set-aside', reason }
  }
  if (nowMs - sinceMs >= QUIET_MS) return { kind: 'look-again' }
  const why = `this node was given a snapshot; it keeps still for ${QUIET_MS / 1000} s, so that nobody counts it as empty`
  return { kind: 'wait', waitsFor: 'snapshot', why }
}

/** Lists that differ from what most others agree on end the process; there is no way on from here. */
function conflictOf(formation: Formation, nowMs: number): VacancyError | undefined {
  const otherLists = new Map<string, number>()
  let otherCodecs = 0
  for (const [node, heard] of formation.heard) {
    const { report } = heard
    if (!isRecent(heard, nowMs) || report.shard !== formation.shardId) continue
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
  // A shard that has a leader has a majority; a formed node alone may be one that a restore forgot (G6, G7).
  const led = formed.filter(({ report, isCurrent }) => isCurrent && report.leader !== '')
  const [first] = led
  if (!first) {
    const names = formed.map(({ node, report }) => `${node} (cluster ${report.clusterId.slice(0, 12)})`)
    const why = `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} formed and know of no leader yet`
    return { kind: 'wait', waitsFor: 'join', why }
  }
  if (led.some(({ report }) => report.clusterId !== first.report.clusterId)) {
    const names = led.map(({ node, report }) => `${node} of ${report.clusterId.slice(0, 12)}`)
    const why = `two clusters of shard ${formation.shardId} have leaders: ${names.join(', ')}`
    return { kind: 'wait', waitsFor: 'join', why }
  }
  const cluster = clusterOf(formation, first.report)
  assert(cluster.clusterId === first.report.clusterId, 'the genesis of a formed peer gives its cluster id (G2)')
  const keepsSnapshot = own.state === 'seeded' && isSameSnapshot(own, first.report)
  if (own.state === 'seeded' && !keepsSnapshot) {
    const reason = `shard ${formation.shardId} runs already, and did not begin with this snapshot`
    return { kind: 'set-aside', reason }
  }
  return { kind: 'join', via: first.node, leader: first.report.leader, cluster, keepsSnapshot }
}

const isSameSnapshot = (a: Snapshot, b: Snapshot): boolean =>
  a.contentDigest === b.contentDigest && a.index === b.index && a.term === b.term

function decideToForm(formation: Formation, voters: readonly Stand[], own: FormationReport): Decision {
  const current = voters.flatMap((stand) => (stand.state === 'heard' && stand.isCurrent ? [stand.report] : []))
  const isVoter = formation.voters.includes(formation.self)
  const needed = neededOf(formation, current.length)
  const outvotes = formation.defects?.has('formation/empty-outvotes-data') ?? false
  if (!outvotes) {
    // G2, G5. Nobody is counted twice, so at most one snapshot has a strict majority of all names.
    for (const [, holders] of bySnapshot(current)) {
      const [held] = holders
      if (!held || holders.length < needed) continue
      if (own.state === 'seeded' && isSameSnapshot(own, held) && isVoter) return form(formation, own)
      if (own.state === 'seeded' && !isSameSnapshot(own, held)) {
        const reason = `${holders.length} of ${voters.length} voters hold snapshot ${short(held.contentDigest)}`
        return { kind: 'set-aside', reason }
      }
      const why = `snapshot ${short(held.contentDigest)} is on ${holders.length} of ${voters.length} voters: they form`
      return { kind: 'wait', waitsFor: 'join', why }
    }
    // Also data of nodes that are gone, that are no voters or have another list: empties never outvote it (G4).
    const all = [own, ...[...formation.heard.values()].map(({ report }) => report)]
    if (all.some(({ shard, contentDigest }) => shard === formation.shardId && contentDigest !== '')) {
      return { kind: 'wait', waitsFor: 'snapshot', why: whySnapshot(formation, current) }
    }
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
  // Untouched founders of the empty shard count as empty, and as willing: they have formed.
  const empties = current.filter(({ contentDigest }) => contentDigest === '')
  const willing = empties.filter(({ state, formsWithMajority }) => state === 'formed' || formsWithMajority)
  const outvotes = formation.defects?.has('formation/empty-outvotes-data') ?? false
  const needed = neededOf(formation, current.length)
  const reachable = formation.defects?.has('formation/reachable-majority') ?? false
  const isEnough =
    empties.length === voters.length ||
    (formation.formsWithMajority && willing.length >= needed) ||
    ((outvotes || reachable) && empties.length >= needed)
  if (isEnough && isVoter && own.state === 'empty') return form(formation, own)
  const why = isEnough
    ? 'the initial voters form an empty shard'
    : `${empties.length} of ${voters.length} initial voters report that they are empty; without a snapshot ${
        formation.formsWithMajority ? `${majorityOf(voters.length)} with --form-with-majority are needed` : 'all must'
      }`
  return { kind: 'wait', waitsFor: isEnough ? 'join' : 'voters', why }
}

function neededOf({ voters, defects }: Formation, heard: number): number {
  return majorityOf(defects?.has('formation/reachable-majority') ? heard : voters.length)
}

function form(formation: Formation, from: FormationReport): Decision {
  const cluster = clusterOf(formation, from)
  return { kind: 'form', cluster, configuration: genesisConfiguration(cluster.voters) }
}

/** Who holds which snapshot. A founder holds the one it founded with. */
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
  if (held.length === 0) return 'a snapshot was seen on a node that does not answer or is no initial voter'
  const said = held.map((holders) => `${short(holders[0]?.contentDigest ?? '')} is on ${holders.length}`)
  return `snapshot ${said.join(', ')} of ${count} voters, ${majorityOf(count)} needed`
}

const short = (digest: string): string => `${digest.slice(0, 12)}…`

// What is told

/** For `/cluster/info`, and as the table of the log (platform.md §7.11). */
export function bootstrapOf(formation: Formation, nowMs: number): BootstrapStatus {
  const decision = formation.held.state === 'formed' ? undefined : decide(formation, nowMs)
  const isWaiting = decision?.kind === 'wait'
  return {
    waitsFor: isWaiting ? decision.waitsFor : 'join',
    why: isWaiting ? decision.why : 'this node is being taken in',
    needed: majorityOf(formation.voters.length),
    voters: formation.voters.map((id) => voterOf(formation, id, nowMs)),
  }
}

function voterOf(formation: Formation, id: string, nowMs: number): BootstrapVoter {
  const isSelf = id === formation.self
  const heard = formation.heard.get(id)
  const stand: Stand = isSelf
    ? { state: 'heard', report: reportFor(formation, ''), isCurrent: true }
    : standOf(formation, heard, nowMs)
  if (stand.state !== 'heard') {
    return { id, state: stand.state, snapshot: '', index: 0, detail: stand.state === 'refused' ? stand.detail : '' }
  }
  const { state, contentDigest, index, clusterId, leader } = stand.report
  const isGone = !isSelf && heard !== undefined && !isRecent(heard, nowMs)
  const details = [
    ...(isGone ? ['it does not answer any more'] : []),
    ...(state === 'formed'
      ? [`cluster ${clusterId.slice(0, 12)}, ${leader === '' ? 'no leader' : `led by ${leader}`}`]
      : []),
  ]
  return { id, state, snapshot: contentDigest, index, detail: details.join(', ') }
}

/**
 * What the log says while a node waits: once every TELL_EVERY_MS what is missing, and who holds what (G5).
 *
 * @returns undefined when it was said lately
 */
export function tellWaiting(formation: Formation, nowMs: number): { message: string; fields: object } | undefined {
  if (nowMs - formation.toldMs < TELL_EVERY_MS) return undefined
  formation.toldMs = nowMs
  const { why, voters, needed } = bootstrapOf(formation, nowMs)
  const table = Object.fromEntries(
    voters.map(({ id, state, snapshot, detail }) => [
      id,
      [state, snapshot.slice(0, 12), detail].filter(Boolean).join(' '),
    ]),
  )
  return { message: `waiting to form: ${why}`, fields: { voters: table, needed } }
}
