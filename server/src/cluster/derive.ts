/**
 * Derives the states of nodes and shards from the reports of nodes. Pure: the time is an argument, missing values stay
 * null, and no message contains a duration, which would change every second.
 */
import { CATCH_UP, groupDigits } from '@vacancy/shared'
import type {
  ClusterInfo,
  Freshness,
  Level,
  MissingSource,
  NodeState,
  NodeStatus,
  NodeView,
  ShardBrief,
  ShardState,
  ShardView,
  ViewRole,
} from '@vacancy/shared/contract'
import { secondsText, significant } from '../history/figures.ts'
import type { NodeObservation } from './observation.ts'

export const DERIVE_LIMITS = {
  missedRounds: 3,
  liveMs: 3_000,
  delayedMs: 15_000,
  behind: { entries: 1_000, seconds: 1 },
  farBehind: { entries: 10_000, seconds: 10 },
  /** For nodes whose configuration cannot be read: the defaults of raft_tick_ms × raft_election_tick. */
  electionTimeoutMs: 1_800,
} as const

const REFUSED = new Set(['refused', 'name-not-found', 'unreachable'])

/** State of a shard that is carried over to its next view. */
export type ShardMemory = {
  readonly state: ShardState
  readonly since: number
  readonly leader: string | null
  readonly leaderSince: number | null
  /** Since when no majority names a leader. */
  readonly leaderlessSince: number | null
  readonly disagreeSince: number | null
  readonly term: number | null
  /** Since when this leader is known in this term. */
  readonly knownSince: number
  /** Nodes that claim to lead while a majority names another. */
  readonly claiming: ReadonlyMap<string, Claiming>
  /** Nodes whose state differed from the leader's at the newest comparable index. */
  readonly differing: ReadonlyMap<string, Divergence>
}

type Claiming = { readonly since: number; readonly isConflict: boolean }

type Divergence = { readonly leader: string; readonly index: number }

export type ShardFacts = {
  readonly id: string
  readonly nodes: readonly NodeObservation[]
  readonly now: number
  readonly memory: ShardMemory | undefined
  readonly operation: string | null
  readonly writePause: ShardView['writePause']
  /** No bridge in front of it works. */
  readonly isCut?: boolean
}

type Membership = {
  readonly voters: readonly string[]
  readonly learners: readonly string[]
  /** As reported by the leader, if it responded. */
  readonly info: ClusterInfo | undefined
}

export function deriveShard(facts: ShardFacts): { readonly view: ShardView; readonly memory: ShardMemory } {
  const { id, now, memory } = facts
  const nodes = facts.nodes
    .map((observation) => withoutOld(observation, now))
    .sort((a, b) => (a.address.id < b.address.id ? -1 : 1))
  const isStandalone =
    nodes.length > 0 &&
    nodes.every((observation) => observation.isStandalone || observation.status?.value.mode === 'standalone')
  const believed = membershipOf(nodes, undefined)
  const isVoter = (observation: NodeObservation) => believed.voters.includes(observation.address.id)
  const majority = Math.floor(believed.voters.length / 2) + 1
  // One that was not polled yet is not down.
  const votersUp = nodes.filter(
    (observation) => isVoter(observation) && (isUp(observation) || isUnpolled(observation)),
  ).length
  // It responds but no longer votes.
  const votersEnding = nodes.filter(
    (observation) => isVoter(observation) && isUp(observation) && isEnding(observation),
  ).length
  const claims = nodes.filter(isUp).map((observation) => ({ observation, claim: claimOf(observation, now) }))
  const ofVoters = claims.flatMap(({ observation, claim }) => (isVoter(observation) ? [claim] : []))
  const { leader, term, mayBe } = observedLeader(ofVoters, majority)
  const leaderSince = leader === null ? null : memory?.leader === leader ? memory.leaderSince : now
  const members = membershipOf(nodes, leader ?? undefined)
  const electionTimeoutMs =
    nodes.find((observation) => observation.limits)?.limits?.electionTimeoutMs ?? DERIVE_LIMITS.electionTimeoutMs
  const leaderObservation = nodes.find((observation) => observation.address.id === leader)
  const isKnown = memory?.leader === leader && memory.term === (term ?? null)
  // Until a while after, a report of another leader is one from before the election, or of a node that learns of it now.
  const knownSince = isKnown ? memory.knownSince : now
  const settledAt = knownSince + electionTimeoutMs
  const claiming = claimingNodes(nodes, { leader, term, settledAt, now, electionTimeoutMs }, memory?.claiming)
  const differing = divergences(nodes, leaderObservation, memory?.differing)
  const views = nodes.map((observation) =>
    deriveNode(observation, { now, leader, leaderObservation, members, isStandalone, differing, claiming }),
  )

  const isAnswering = nodes.some(isUp)
  const named = claims.flatMap(({ claim }) => (claim && claim.names !== '' ? [claim] : []))
  const leaderlessSince = isAnswering && leader === null && !mayBe ? (memory?.leaderlessSince ?? now) : null
  const disagreeSince = named.some(({ names }) => names !== named[0]?.names) ? (memory?.disagreeSince ?? now) : null
  const doDisagree = named.some((claim) => {
    if (disagreeSince === null || claim.names === leader) return false
    const isBehind = claim.term !== undefined && term !== undefined && term > claim.term
    return claim.at > (isBehind ? settledAt : disagreeSince + electionTimeoutMs)
  })
  const spare = believed.voters.length === 0 || !isAnswering ? null : Math.max(0, votersUp - votersEnding - majority)
  const forming =
    nodes.find((observation) => isUp(observation) && observation.info?.value.bootstrap)?.info?.value.bootstrap ?? null
  const isFirst = memory === undefined || memory.state === 'unknown'
  const own = judgeShard({
    // Nodes that were not polled yet do not count as down: no state is derived before all were polled once.
    isBeingRead: isFirst && nodes.some(isUnpolled),
    mayLead: mayBe,
    isAnswering,
    isStandalone,
    isForming: forming !== null && leader === null && forming.waits_for !== 'join',
    voters: believed.voters.length,
    votersUp,
    votersEnding,
    majority,
    hasLeader: leader !== null,
    isLeaderlessLong: leaderlessSince !== null && now - leaderlessSince > electionTimeoutMs,
    doDisagree,
    isUneasy: views.some(({ level }) => level === 'warn' || level === 'crit'),
    standalone: views[0],
  })
  const verdict = facts.isCut ? cutOff(own) : own
  const since = memory?.state === verdict.state ? memory.since : now
  const live = isAnswering ? views : []
  const reporter = live.find((view) => view.id === leader) ?? live.find(({ packages }) => packages !== null)
  const reported = leaderObservation ?? nodes.find((observation) => isUp(observation) && observation.info)
  const lags = views.flatMap(({ lagEntries }) => (lagEntries === null ? [] : [lagEntries]))
  const snapshotTimes = views.flatMap(({ snapshot }) => (snapshot ? [snapshot.createdAt] : []))
  const view: ShardView = {
    id,
    zone: nodes.find((observation) => observation.address.zone !== '')?.address.zone ?? '',
    mode: isStandalone ? 'standalone' : nodes.some((observation) => observation.info) ? 'clustered' : 'unknown',
    ...verdict,
    since: time(since),
    leader,
    leaderSince: leaderSince === null ? null : time(leaderSince),
    term: (leader === null ? undefined : term) ?? reported?.info?.value.term ?? null,
    voters: believed.voters.length,
    votersUp,
    majority: believed.voters.length === 0 ? 0 : majority,
    spare,
    nodes: views,
    maxLagEntries: lags.length === 0 ? null : Math.max(...lags),
    packages: reporter?.packages ?? null,
    properties: reporter?.properties ?? null,
    segments: reporter?.segments ?? null,
    window: reporter?.window ?? null,
    snapshotAt: snapshotTimes.sort().at(-1) ?? null,
    rates: ratesOf(views),
    change: changeOf(reported?.info?.value),
    lastChange: lastChangeOf(reported?.info?.value),
    operation: facts.operation,
    writePause: facts.writePause,
    waitsFor: waitsFor(verdict.state, views, forming?.why ?? ''),
    electionTimeoutMs,
    missing: nodes.flatMap(missingOf),
  }
  return {
    view,
    memory: {
      ...{ state: verdict.state, since, leaderlessSince, disagreeSince, differing, claiming, knownSince },
      term: mayBe ? (memory?.term ?? null) : (term ?? null),
      leader: mayBe ? (memory?.leader ?? null) : leader,
      leaderSince: mayBe ? (memory?.leaderSince ?? null) : leaderSince,
    },
  }
}

/** The rates of a shard: the sums of its nodes' rates, and the highest of their latencies. */
function ratesOf(views: readonly NodeView[]): NodeView['rates'] {
  // The sum of some of them would be a fall that did not happen.
  const isPart = views.some(isUnread)
  const rateOf = (key: keyof NodeView['rates'], combine: (values: number[]) => number) => {
    if (isPart) return null
    const values = views.flatMap(({ rates, freshness }) => {
      const value = rates[key]
      return value === null || freshness === 'gone' ? [] : [value]
    })
    return values.length === 0 ? null : combine(values)
  }
  const sum = (values: number[]) => significant(values.reduce((all, each) => all + each, 0))
  const greatest = (values: number[]) => Math.max(...values)
  return {
    queries: rateOf('queries', sum),
    // Each write is counted by one node, the one that received it.
    writes: rateOf('writes', sum),
    errors: rateOf('errors', sum),
    p50: rateOf('p50', greatest),
    p99: rateOf('p99', greatest),
  }
}

// Nodes

type NodeContext = {
  readonly now: number
  readonly leader: string | null
  readonly leaderObservation: NodeObservation | undefined
  readonly members: Membership
  readonly isStandalone: boolean
  readonly differing: ReadonlyMap<string, Divergence>
  readonly claiming: ReadonlyMap<string, Claiming>
}

/** The view of a node. */
function deriveNode(observation: NodeObservation, context: NodeContext): NodeView {
  const { address, status, info } = observation
  const { now, leader, members, leaderObservation } = context
  const member = (leaderObservation?.info?.value ?? info?.value)?.nodes.find(({ id }) => id === address.id)
  const isLeader = leader === address.id
  // A leader counts from 0 until a member has matched once, and one that is silent counts no more.
  const isCounted = !isLeader && leaderObservation !== undefined && isUp(leaderObservation) && member?.match_index !== 0
  const lag = isCounted ? (member?.lag_entries ?? null) : null
  const lagSeconds = isCounted ? roundedOrNull(member?.lag_seconds ?? null) : null
  const trend = lagTrend(observation.lags)
  const role = roleOf(observation, context)
  const eta = role === 'learner' && lag !== null && trend < 0 ? Math.ceil(lag / -trend) : null
  const document = status?.value
  const verdict = judgeNode({ observation, role, lag, lagSeconds, isLagFalling: trend < 0, eta, ...context })
  const snapshot = document?.snapshot ?? null
  const memory = document?.memory
  const used = (memory?.indexes ?? 0) + (memory?.packages ?? 0)
  return {
    id: address.id,
    shard: address.shard,
    zone: address.zone,
    apiUrl: address.apiUrl,
    tcp: address.tcp
      ? `${address.tcp.host.includes(':') ? `[${address.tcp.host}]` : address.tcp.host}:${address.tcp.port}`
      : null,
    role,
    voter: context.isStandalone || members.info === undefined ? null : members.voters.includes(address.id),
    ...verdict,
    freshness: freshnessOf(observation, now),
    answeredAt: timeOrNull(observation.answeredAt ?? observation.before?.at),
    error: observation.error ? { ...observation.error, since: time(observation.error.since) } : null,
    health: observation.health?.value ?? null,
    namesLeader: claimOf(observation, now)?.names ?? null,
    term: info?.value.term ?? document?.replica?.term ?? null,
    firstIndex: info?.value.first_index ?? document?.replica?.first_index ?? null,
    lastIndex: info?.value.last_index ?? document?.replica?.last_index ?? null,
    commitIndex: info?.value.commit_index ?? document?.replica?.commit_index ?? null,
    appliedIndex: info?.value.applied_index ?? document?.replica?.applied_index ?? null,
    matchIndex: member?.match_index ?? null,
    lagEntries: lag,
    lagSeconds,
    etaSeconds: eta,
    snapshot: snapshot && {
      id: snapshot.id,
      createdAt: snapshot.created_at,
      lastIndex: snapshot.last_index,
      packages: snapshot.packages,
      properties: snapshot.properties,
      segments: snapshot.segments,
      codecHash: snapshot.codec_hash,
      bytes: snapshot.bytes,
      origin: snapshot.origin,
    },
    window: snapshot?.window ?? null,
    packages: document?.packages ?? null,
    properties: document?.properties ?? null,
    segments: document?.segments.length ?? null,
    memory: memory
      ? {
          rss: memory.rss,
          free: memory.free ?? null,
          share: memory.free === undefined ? null : Math.round((used / Math.max(1, used + memory.free)) * 1000) / 1000,
        }
      : null,
    wal: document?.wal ?? null,
    disk: document?.disk ? { freeBytes: document.disk.free_bytes, full: document.disk.full } : null,
    cpu: observation.cpu ?? null,
    connections: document?.connections ?? null,
    connectionsLimit: observation.connectionsLimit ?? null,
    version: document?.version ?? null,
    startedAt: document?.started_at ?? null,
    cores: document?.cores ?? null,
    orderedHash: orderedHash(observation) ?? null,
    digest: shownDigest(document),
    reasons: document?.reasons ?? [],
    rates: observation.rates?.value ?? { queries: null, writes: null, errors: null, p50: null, p99: null },
    ages: {
      health: timeOrNull(observation.health?.at),
      info: timeOrNull(observation.info?.at),
      status: timeOrNull(status?.at),
      metrics: timeOrNull(observation.rates?.at),
    },
  }
}

type NodeJudgement = Pick<NodeView, 'state' | 'level' | 'message' | 'rule'>

const LEVEL_OF: { readonly [state in NodeState]: Level } = {
  unreachable: 'crit',
  'not-answering': 'crit',
  'cores-changed': 'crit',
  unavailable: 'crit',
  'conflicting-leader': 'crit',
  'different-data': 'warn',
  'far-behind': 'warn',
  behind: 'warn',
  'catching-up': 'info',
  healthy: 'ok',
  unknown: 'unk',
}

/** The states of a node in order of precedence: the first that applies. */
function judgeNode(
  facts: NodeContext & {
    readonly observation: NodeObservation
    readonly role: ViewRole
    readonly lag: number | null
    readonly lagSeconds: number | null
    readonly isLagFalling: boolean
    readonly eta: number | null
  },
): NodeJudgement {
  const { observation, leader, leaderObservation, lag, lagSeconds, role } = facts
  const inputs: Record<string, string> = {}
  const is = (number: number, state: NodeState, message: string): NodeJudgement => ({
    state,
    level: LEVEL_OF[state],
    message,
    rule: { number, inputs },
  })
  inputs['rounds missed'] = String(observation.missed)
  if (observation.error) inputs['last error'] = observation.error.message
  if (!isUp(observation) && observation.missed >= DERIVE_LIMITS.missedRounds) {
    const cores = observation.status?.value.cores
    // Checked before the rows of silent nodes, because here the reason of the silence is known.
    if (cores && cores.start !== cores.now) {
      inputs['cores'] = `${cores.start} at start, ${cores.now} last reported`
      return is(3, 'cores-changed', `Stopped: cores changed ${cores.start} → ${cores.now}`)
    }
    const isRefused = observation.error !== undefined && REFUSED.has(observation.error.code)
    if (hasMismatch(observation.status?.value)) {
      const message = 'Stopped: its state differed from the log (digest_mismatch)'
      return isRefused ? is(1, 'unreachable', message) : is(2, 'not-answering', message)
    }
    const was = observation.answeredAt === undefined ? observation.before?.role : undefined
    const why = `${observation.error?.message ?? 'no answer'}${was === undefined ? '' : `; ${was} when it was last seen`}`
    if (isRefused) return is(1, 'unreachable', `Unreachable: ${why}`)
    return is(2, 'not-answering', `Not answering: ${why}`)
  }
  const health = observation.health?.value
  inputs['/healthz'] = health ?? 'not reported'
  if (health === 'unavailable') {
    if (isEnding(observation)) {
      return is(4, 'unavailable', 'Unavailable: its state differs from the log (digest_mismatch)')
    }
    const reason =
      observation.status?.value.reasons.find(({ stops }) => stops === 'all') ?? observation.status?.value.reasons[0]
    return is(
      4,
      'unavailable',
      reason ? `Unavailable: ${reason.detail || reason.reason}` : 'Unavailable, without a reported reason',
    )
  }
  inputs['leader by majority'] = leader ?? 'none'
  if (facts.claiming.get(observation.address.id)?.isConflict) {
    return is(5, 'conflicting-leader', `Claims to lead, a majority names ${leader}`)
  }
  const difference =
    leaderObservation && leaderObservation !== observation
      ? differenceOf(observation, leaderObservation, facts.differing)
      : undefined
  if (difference) {
    inputs['difference'] = difference
    return is(6, 'different-data', difference)
  }
  if (lag !== null) inputs['lag'] = lagText(lag, lagSeconds)
  // A learner that is catching up is fine, however far behind it is.
  const isComing = role === 'learner' && facts.isLagFalling
  const exceeds = (limit: { readonly entries: number; readonly seconds: number }) =>
    (lag !== null && lag > limit.entries) || (lagSeconds !== null && lagSeconds > limit.seconds)
  if (!isComing && exceeds(DERIVE_LIMITS.farBehind)) {
    return is(7, 'far-behind', `Far behind: ${lagText(lag ?? 0, lagSeconds)}`)
  }
  if (!isComing && exceeds(DERIVE_LIMITS.behind)) return is(8, 'behind', `Behind: ${lagText(lag ?? 0, lagSeconds)}`)
  if (isComing && lag !== null && lag > CATCH_UP.entriesMax) {
    const eta = facts.eta === null ? '' : `, ETA ${secondsText(facts.eta)}`
    return is(9, 'catching-up', `Catching up${eta}`)
  }
  if (health?.startsWith('active')) return is(10, 'healthy', 'Healthy')
  if (observation.answeredAt === undefined) {
    return is(11, 'unknown', observation.error ? `Unknown: ${observation.error.message}` : 'Unknown: no response yet')
  }
  const fault = observation.sources['/healthz']?.error?.message
  return is(11, 'unknown', `Unknown: ${fault ?? 'reports no health'}`)
}

/** The node detected that its state differs from the log: it stops serving and voting, and ends seconds later. */
export function hasMismatch(reported: Pick<NodeStatus, 'reasons'> | undefined): boolean {
  return reported?.reasons.some(({ reason }) => reason === 'digest_mismatch') ?? false
}

function isEnding({ health, status }: NodeObservation): boolean {
  return health?.value === 'unavailable' && hasMismatch(status?.value)
}

/** How the data of a node differs from its leader's, as far as both reported it. */
function differenceOf(
  observation: NodeObservation,
  leader: NodeObservation,
  differing: ReadonlyMap<string, Divergence>,
): string | undefined {
  const [hash, leaderHash] = [orderedHash(observation), orderedHash(leader)]
  if (hash !== undefined && leaderHash !== undefined && hash !== leaderHash) {
    return `Different data: its codec list differs from ${leader.address.id}`
  }
  const difference = differing.get(observation.address.id)
  return (
    difference &&
    `Different data: its state differs from ${difference.leader} at index ${groupDigits(difference.index)}`
  )
}

/**
 * Finds nodes whose state differs from the leader's. States can only be compared at the same index, and two nodes are
 * rarely at the same one when they are polled. A difference remains until both are equal at a later index.
 */
function divergences(
  nodes: readonly NodeObservation[],
  leader: NodeObservation | undefined,
  before: ReadonlyMap<string, Divergence> | undefined,
): ReadonlyMap<string, Divergence> {
  const differing = new Map<string, Divergence>()
  for (const observation of nodes) {
    const { id } = observation.address
    const known = before?.get(id)
    const compared =
      leader && leader !== observation && isUp(observation) ? compareDigests(observation, leader) : undefined
    if (compared && !compared.isEqual) differing.set(id, { leader: leader?.address.id ?? '', index: compared.index })
    else if (!compared && known && leader !== observation) differing.set(id, known)
  }
  return differing
}

/** @returns undefined when there is no index with digests of both */
function compareDigests(
  a: NodeObservation,
  b: NodeObservation,
): { readonly index: number; readonly isEqual: boolean } | undefined {
  for (const { index, value } of a.digests.toReversed()) {
    const other = b.digests.find((mark) => mark.index === index)
    if (other) return { index, isEqual: other.value === value }
  }
  if (a.digests.length > 0 && b.digests.length > 0) return undefined
  // For a node that reports no marks, the current states count when both have applied the same entries.
  const [own, other] = [a.status?.value, b.status?.value]
  const index = own?.replica?.applied_index
  if (!own?.digest || !other?.digest || index === undefined || index !== other.replica?.applied_index) return undefined
  return { index, isEqual: own.digest.value === other.digest.value }
}

function shownDigest(status: NodeStatus | undefined): NodeView['digest'] {
  const { digest, replica } = status ?? {}
  if (!digest) return null
  if (digest.checked_value !== undefined && digest.checked_index > 0) {
    return { value: digest.checked_value, index: digest.checked_index }
  }
  return replica ? { value: digest.value, index: replica.applied_index } : null
}

function roleOf(observation: NodeObservation, { leader, claiming, members, isStandalone }: NodeContext): ViewRole {
  if (!isUp(observation)) return 'unknown'
  if (isStandalone) return 'standalone'
  const { id } = observation.address
  const health = observation.health?.value
  // Others may have named the leader after its own health was read, and the health of the one before it is older still.
  if (leader === id && health?.startsWith('active')) return 'leader'
  if (health === 'active_leader' && (leader === null || claiming.get(id)?.isConflict)) return 'leader'
  if (members.learners.includes(id)) return 'learner'
  const own = observation.info?.value.nodes.find((node) => node.id === id)?.role
  if (own === 'candidate') return 'candidate'
  // The health of learners and followers is the same.
  if (members.voters.includes(id)) return 'follower'
  return observation.health?.value === 'active_follower' ? 'follower' : 'unknown'
}

/** From the newer report: the list itself is polled once a minute, its hash with the metrics. */
function orderedHash({ codecs, status }: NodeObservation): string | undefined {
  const isStatusNewer = status !== undefined && (codecs === undefined || status.at > codecs.at)
  return isStatusNewer ? status.value.ordered_hash : codecs?.value.ordered_hash
}

/** Whether it counts as up: it has responded, and has not missed three rounds since. */
export function isUp(observation: NodeObservation): boolean {
  return observation.answeredAt !== undefined && observation.missed < DERIVE_LIMITS.missedRounds
}

/** Old reports of a responding node about leader and members do not count. */
function withoutOld(observation: NodeObservation, now: number): NodeObservation {
  const isOld =
    isUp(observation) && observation.info !== undefined && now - observation.info.at > DERIVE_LIMITS.delayedMs
  return isOld ? { ...observation, info: undefined } : observation
}

/** Not read lately, and not known to be away: it may be in any state. */
export function isUnread({ freshness, level }: Pick<NodeView, 'freshness' | 'level'>): boolean {
  return freshness === 'gone' && level !== 'crit'
}

function isUnpolled(observation: NodeObservation): boolean {
  return observation.answeredAt === undefined && observation.error === undefined && observation.address.apiUrl !== ''
}

function freshnessOf(observation: NodeObservation, now: number): Freshness {
  if (observation.answeredAt === undefined) return observation.before === undefined ? 'never' : 'gone'
  if (!isUp(observation) || now - observation.answeredAt > DERIVE_LIMITS.delayedMs) return 'gone'
  return now - observation.answeredAt <= DERIVE_LIMITS.liveMs ? 'live' : 'delayed'
}

/** Entries per second; negative while it catches up. */
function lagTrend(lags: NodeObservation['lags']): number {
  const [first, last] = [lags[0], lags.at(-1)]
  if (!first || !last || last.at <= first.at) return 0
  return (last.entries - first.entries) / ((last.at - first.at) / 1000)
}

function missingOf(observation: NodeObservation): MissingSource[] {
  const source = `${observation.address.shard}/${observation.address.id}`
  if (!isUp(observation) && observation.error)
    return [{ source, ...observation.error, since: time(observation.error.since) }]
  return Object.entries(observation.sources).flatMap(([path, { error }]) =>
    error ? [{ source: `${source} ${path}`, ...error, since: time(error.since) }] : [],
  )
}

// Shards

/** The leader in a node's newest report; '' when it knows none. */
type Claim = { readonly names: string; readonly term: number | undefined; readonly at: number }

/** @returns undefined when there is no report, or only one that is too old */
function claimOf({ info, nodeInfo, namesLeader }: NodeObservation, now: number): Claim | undefined {
  const isNewer = namesLeader && namesLeader.at > (nodeInfo?.at ?? 0)
  const other = isNewer ? namesLeader : nodeInfo && { value: nodeInfo.value.leader_id, at: nodeInfo.at }
  const claim: Claim | undefined = info
    ? { names: info.value.leader_id, term: info.value.term, at: info.at }
    : other && { names: other.value, term: undefined, at: other.at }
  return claim && now - claim.at <= DERIVE_LIMITS.delayedMs ? claim : undefined
}

/**
 * Nodes are polled one after the other: an election between two polls is no conflict. It is one when a node still claims
 * to lead a while after the later term, or the claim itself, was known.
 */
function claimingNodes(
  nodes: readonly NodeObservation[],
  known: {
    readonly leader: string | null
    readonly term: number | undefined
    readonly settledAt: number
    readonly now: number
    readonly electionTimeoutMs: number
  },
  before: ReadonlyMap<string, Claiming> | undefined,
): ReadonlyMap<string, Claiming> {
  const { leader, term, settledAt, now, electionTimeoutMs } = known
  const claiming = new Map<string, Claiming>()
  for (const { address, health, info } of nodes) {
    if (health?.value !== 'active_leader' || leader === null || leader === address.id) continue
    const was = before?.get(address.id) ?? { since: now, isConflict: false }
    // Its term is read after its health: until then the last verdict stands.
    const isRead = info !== undefined && info.at >= health.at
    const isBehind = isRead && term !== undefined && info.value.term < term
    const isLong = health.at > (isBehind ? settledAt : was.since + electionTimeoutMs)
    claiming.set(address.id, isRead ? { ...was, isConflict: isLong } : was)
  }
  return claiming
}

/**
 * The leader named by a majority of all voters. Voters that are down name none. Nodes are polled one after the other: a
 * report of an earlier term was made before a majority elected the leader that a later one names.
 *
 * @param claims of the voters that are up; undefined for those that were not read lately
 * @returns `mayBe`: none is known to lead, and those that were not read could name one
 */
function observedLeader(
  claims: readonly (Claim | undefined)[],
  majority: number,
): { readonly leader: string | null; readonly term: number | undefined; readonly mayBe: boolean } {
  const named = claims.filter((claim) => claim !== undefined && claim.names !== '') as readonly Claim[]
  const terms = named.flatMap(({ term }) => (term === undefined ? [] : [term]))
  const term = terms.length === 0 ? undefined : Math.max(...terms)
  // Nodes may know the term of an election before its leader: of two, the newer report is right.
  const elected = named.filter((claim) => claim.term === term).toSorted((a, b) => b.at - a.at)[0]?.names
  const counts = new Map<string, number>()
  for (const claim of named) {
    const isBefore = claim.term !== undefined && term !== undefined && claim.term < term
    const name = isBefore && elected !== undefined ? elected : claim.names
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  for (const [name, count] of counts) if (count >= majority) return { leader: name, term, mayBe: false }
  const unread = claims.filter((claim) => claim === undefined).length
  return { leader: null, term, mayBe: unread > 0 && Math.max(0, ...counts.values()) + unread >= majority }
}

/** From the leader if it responds, else from the node with the highest commit index. */
function membershipOf(nodes: readonly NodeObservation[], leader: string | undefined): Membership {
  let best: NodeObservation | undefined
  const rank = (observation: NodeObservation) => {
    const info = observation.info?.value as ClusterInfo
    return [isUp(observation) ? 1 : 0, observation.address.id === leader ? 1 : 0, info.term, info.commit_index] as const
  }
  for (const observation of nodes) {
    if (!observation.info || observation.info.value.members.voters.length === 0) continue
    if (!best || isMore(rank(observation), rank(best))) best = observation
  }
  const info = best?.info?.value
  return { voters: info?.members.voters ?? [], learners: info?.members.learners ?? [], info }
}

function isMore(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((value, i) => value !== b[i])
  return at >= 0 && (a[at] as number) > (b[at] as number)
}

/** The states of a shard in order of precedence: the first that applies. */
function judgeShard(facts: {
  readonly isBeingRead: boolean
  readonly isAnswering: boolean
  readonly isStandalone: boolean
  readonly isForming: boolean
  readonly voters: number
  readonly votersUp: number
  /** How many of these are about to end. */
  readonly votersEnding: number
  readonly majority: number
  readonly hasLeader: boolean
  /** None is known, and nodes that were not read may name one. */
  readonly mayLead: boolean
  readonly isLeaderlessLong: boolean
  readonly doDisagree: boolean
  readonly isUneasy: boolean
  readonly standalone: NodeView | undefined
}): { readonly state: ShardState; readonly level: Level; readonly message: string } {
  const { voters, votersUp, votersEnding, majority } = facts
  const is = (state: ShardState, level: Level, message: string) => ({ state, level, message })
  const ending = votersEnding === 0 ? '' : `, ${votersEnding} of them ${votersEnding === 1 ? 'ends' : 'end'} soon`
  const answer = `${votersUp} of ${voters} voters ${votersUp === 1 ? 'answers' : 'answer'}${ending}, ${majority} needed`
  if (facts.isBeingRead) return is('unknown', 'unk', 'Unknown: polling its nodes')
  if (!facts.isAnswering) return is('unknown', 'crit', 'Unknown: no node answers')
  if (facts.isStandalone) {
    const level = facts.standalone && facts.standalone.level !== 'ok' ? facts.standalone.level : 'info'
    return is('standalone', level, 'Standalone, no copies')
  }
  if (facts.isForming) return is('forming', 'info', 'Forming: waiting for its founding voters')
  if (voters === 0) return is('unknown', 'unk', 'Unknown: no node reports the members of the shard')
  if (votersUp < majority) return is('quorum-lost', 'crit', `Quorum lost (${answer})`)
  if (facts.mayLead) return is('unknown', 'unk', 'Unknown: too few of its voters were read lately')
  if (!facts.hasLeader) {
    return facts.isLeaderlessLong
      ? is('no-leader', 'crit', `No leader (${answer})`)
      : is('electing', 'info', `Electing (${answer})`)
  }
  if (facts.doDisagree) return is('disagree', 'crit', `Nodes disagree about the leader (${answer})`)
  const spare = votersUp - votersEnding - majority
  if (votersUp - votersEnding < voters) {
    return spare > 0
      ? is('degraded', 'warn', `Degraded, can lose ${spare} more (${answer})`)
      : is('degraded-last', 'crit', `Degraded, cannot lose another (${answer})`)
  }
  const loses = spare > 0 ? `can lose ${spare}` : 'cannot lose any'
  if (facts.isUneasy) return is('attention', 'warn', `Needs attention, ${loses} (${answer})`)
  return is('healthy', 'ok', `Healthy, ${loses} of ${voters}`)
}

/** In these states it serves nothing, or is about to, whether it is reached or not. */
const WORSE: ReadonlySet<ShardState> = new Set(['unknown', 'forming', 'quorum-lost', 'no-leader', 'disagree'])

/** The state of a shard that works as its nodes tell, but that no client reaches. */
function cutOff(own: ReturnType<typeof judgeShard>): ReturnType<typeof judgeShard> {
  if (WORSE.has(own.state)) return { ...own, message: `${own.message}; no bridge reaches it` }
  const members = own.level === 'ok' ? 'the members are healthy' : startedLow(own.message)
  return { state: 'cut-off', level: 'crit', message: `Cut off: no bridge reaches it; ${members}` }
}

function startedLow(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}

function waitsFor(state: ShardState, nodes: readonly NodeView[], forming: string): string {
  const away = nodes.filter(({ voter, freshness }) => voter && freshness !== 'live' && freshness !== 'delayed')
  const names = away.map(({ id }) => id).join(', ')
  if (state === 'forming') return forming
  if (state === 'quorum-lost') return `Waiting for ${names === '' ? 'its voters' : names}.`
  if (state !== 'no-leader' && state !== 'electing') return ''
  // A node that does not respond cannot be elected, whatever its log contains.
  const best = nodes.filter((node) => node.voter && node.lastIndex !== null && !away.includes(node))
  best.sort((a, b) => (b.lastIndex as number) - (a.lastIndex as number))
  const candidate = best[0]
    ? `${best[0].id} has the longest log, which ends at ${groupDigits(best[0].lastIndex as number)}`
    : ''
  return [names === '' ? '' : `${names} is missing`, candidate].filter((part) => part !== '').join('; ')
}

function changeOf(info: ClusterInfo | undefined): ShardView['change'] {
  const change = info?.operation
  return change ? { kind: change.kind, node: change.node, startedAt: change.started_at, step: change.step } : null
}

function lastChangeOf(info: ClusterInfo | undefined): ShardView['lastChange'] {
  return info?.last_operation ?? null
}

/** A shard as a row. The time of its newest response is coarse, so that an unchanged row is not sent. */
export function briefOf(view: ShardView): ShardBrief {
  const memory = view.nodes.flatMap((node) => (node.memory ? [node.memory.rss] : []))
  const answered = view.nodes.flatMap(({ answeredAt }) => (answeredAt === null ? [] : [Date.parse(answeredAt)]))
  const { id, zone, mode, state, level, message, since, leader, leaderSince, term, voters, votersUp, spare } = view
  const { maxLagEntries, packages, properties, window, snapshotAt, rates, operation } = view
  return {
    ...{ id, zone, mode, state, level, message, since, leader, leaderSince, term, voters, votersUp, spare },
    ...{ maxLagEntries, packages, properties, window, snapshotAt, rates, operation },
    slots: view.nodes.map((node) => ({
      node: node.id,
      role: node.role,
      state: node.state,
      level: node.level,
      message: node.message,
      freshness: node.freshness,
    })),
    memoryBytes: memory.length === 0 ? null : memory.reduce((all, each) => all + each, 0),
    answeredAt: answered.length === 0 ? null : time(Math.floor(Math.max(...answered) / COARSE_MS) * COARSE_MS),
  }
}

const COARSE_MS = 5_000

// Words

export function time(ms: number): string {
  return new Date(ms).toISOString()
}

function timeOrNull(ms: number | undefined): string | null {
  return ms === undefined ? null : time(ms)
}

function roundedOrNull(value: number | null): number | null {
  return value === null ? null : significant(value)
}

export function lagText(entries: number, seconds: number | null): string {
  return `${groupDigits(entries)} ${entries === 1 ? 'entry' : 'entries'}${seconds === null ? '' : `, ${secondsText(seconds)}`}`
}
