/**
 * Derives the unavailability reasons of a clustered node from its reports (docs/design/http.md#health-and-reasons,
 * docs/design/http.md#node-api), and logs them.
 */

import { formatDay } from '@vacancy/shared'
import { endingText, type Log, tokenEnds } from '@vacancy/shared/node'
import type { TokenHash } from '@vacancy/shared/tokens'
import type { ClockStatus, ClusterStatus, RegistryStatus, ReplicaStatus, ResolverStatus } from '../status.ts'
import type { Certificate, NodeHandle, Unavailable, UnavailableReason } from './handle.ts'
import { isActive, REASONS } from './reasons.ts'

/**
 * A follower answers reads while it is known to hold everything that was acknowledged this long ago
 * (docs/design/consensus.md#reads).
 */
export const STALENESS_MS_MAX = 10_000
/** How often the log repeats a reason that stops the node: its detail may change meanwhile. */
const STOPPED_LOG_MS = 10_000
const OTHER_LOG_MS = 3_600_000

export type Condition = { readonly reason: UnavailableReason; readonly detail: string }

/** The reports from which reasons follow. */
export type Reported = {
  readonly info: ClusterStatus
  readonly replica: ReplicaStatus | undefined
  readonly registry: RegistryStatus | undefined
  readonly resolver: ResolverStatus | undefined
}

/** The reasons that this module decides about; others are set and cleared where they arise. */
export const FOLLOWED: readonly UnavailableReason[] = [
  'forming',
  'waiting_for_snapshot',
  'joining',
  'removed',
  'installing',
  'awaiting_load',
  'catching_up',
  'stale',
  'no_leader',
  'codec_mismatch',
  'registry_unreachable',
  'segments_refused',
  'resolver_unreachable',
  'clock_suspect',
  'wal_slow',
]

const WAITS = { snapshot: 'waiting_for_snapshot', voters: 'forming', join: 'joining' } as const

/** The reasons that hold now. */
export function clusterConditions({ info, replica, registry, resolver }: Reported): Condition[] {
  const found: Condition[] = [...membership(info)]
  const hold = (reason: UnavailableReason, detail: string) => found.push({ reason, detail })
  if (info.isClockSuspect) hold('clock_suspect', '')
  if (replica?.walSlow) hold('wal_slow', '')
  if (registry) {
    const { address, isReachable, fault, codecMismatch, refusal, published } = registry
    if (!isReachable) hold('registry_unreachable', `${address}: ${fault}`)
    if (codecMismatch !== '') hold('codec_mismatch', codecMismatch)
    if (refusal !== '') hold('segments_refused', refusal)
    else if (published && published.conflicts > 0) {
      hold('segments_refused', `${published.conflicts} of ${published.segments} segments belong to another shard`)
    }
  }
  if (resolver && resolver.error !== '') hold('resolver_unreachable', `${resolver.address}: ${resolver.error}`)
  return found
}

/** Which certificates and tokens of a node end soon or have ended; '' for none. */
export function endingsOf(certificates: readonly Certificate[], tokens: readonly TokenHash[], nowMs: number): string {
  const ends = certificates.map(({ listener, notAfterMs }) => ({
    what: listener.endsWith('_authority')
      ? `the authority of the ${listener.replace('_authority', '')} listener`
      : `the certificate of the ${listener} listener`,
    atMs: notAfterMs,
  }))
  return endingText([...ends, ...tokenEnds(tokens, nowMs)], nowMs)
}

const MINUTE_MS = 60_000

/** A reason caused by the clock, if any. Its detail changes with the difference only, not with the time. */
export function clockReason(
  { state, offsetMs }: ClockStatus,
  lastMaintenanceDay: number,
): readonly ['clock' | 'clock_suspect' | undefined, string] {
  if (state === 'following') return [undefined, '']
  const apart = spanText(Math.abs(offsetMs))
  if (state === 'holding') {
    return ['clock_suspect', `the clock is ${apart} ${offsetMs < 0 ? 'behind' : 'ahead of'} shard time`]
  }
  if (offsetMs < -MINUTE_MS) return ['clock', `shard time is ${apart} ahead of the clock`]
  return ['clock', `nights before ${formatDay(lastMaintenanceDay)} are dropped already`]
}

function spanText(ms: number): string {
  const minutes = Math.round(ms / MINUTE_MS)
  const [days, hours] = [Math.floor(minutes / 1440), Math.floor((minutes % 1440) / 60)]
  return days > 0 ? `${days} d ${hours} h` : `${hours} h ${minutes % 60} min`
}

/** What keeps the node from serving as a member. Only the first cause: its consequences would hide it. */
function* membership(info: ClusterStatus): Generator<Condition> {
  const { bootstrap, installing, awaitedLoad } = info
  if (info.isRemoved) {
    yield { reason: 'removed', detail: `${info.nodeId} is no longer a member` }
    return
  }
  if (bootstrap) {
    yield { reason: WAITS[bootstrap.waitsFor], detail: bootstrap.why }
    return
  }
  if (installing) {
    const { from, index, bytesDone, bytesTotal } = installing
    yield { reason: 'installing', detail: `snapshot at ${index} from ${from}: ${bytesDone} of ${bytesTotal} bytes` }
  } else if (awaitedLoad) {
    const { digest, bytesMissing } = awaitedLoad
    yield { reason: 'awaiting_load', detail: `${bytesMissing} bytes of snapshot ${digest.slice(0, 12)} are missing` }
  } else if (info.stalenessMs === undefined) {
    if (!info.isLeading) yield { reason: 'catching_up', detail: '' }
  } else if (!isFresh(info)) {
    yield { reason: 'stale', detail: `last confirmed ${Math.floor(info.stalenessMs / 1000)} s ago` }
  }
  if (info.leader === '') {
    yield {
      reason: 'no_leader',
      detail: `${active(info)} of ${info.members.filter((each) => each.isVoter).length} voters are known to be active`,
    }
  } else if (info.role === 'leader' && !info.isLeading) {
    yield { reason: 'no_leader', detail: `${info.nodeId} was elected and has not confirmed it with a majority yet` }
  }
}

function active({ members, nodeId }: ClusterStatus): number {
  return members.filter(({ id, isVoter, health }) => isVoter && (health === 'active' || id === nodeId)).length
}

function isFresh({ isLeading, stalenessMs }: ClusterStatus): boolean {
  return isLeading || (stalenessMs !== undefined && stalenessMs <= STALENESS_MS_MAX)
}

/** The response of `/healthz`. */
export function healthOf(
  handle: Pick<NodeHandle, 'unavailable' | 'cluster'>,
): 'active' | 'active_leader' | 'active_follower' | 'unavailable' {
  if (!isActive(handle.unavailable())) return 'unavailable'
  const info = handle.cluster?.info()
  if (!info) return 'active'
  if (info.isRemoved || info.bootstrap || info.installing || info.awaitedLoad || !isFresh(info)) return 'unavailable'
  // A leader without a confirmed majority is a voter like the others: it serves reads while it is fresh.
  return info.role === 'leader' && info.isLeading ? 'active_leader' : 'active_follower'
}

/** The reasons of a node by name, with their start times and the last time each was logged. */
export type Conditions = {
  readonly held: Map<UnavailableReason, Unavailable>
  readonly loggedMs: Map<UnavailableReason, number>
}

export function createConditions(held: Map<UnavailableReason, Unavailable>): Conditions {
  return { held, loggedMs: new Map() }
}

/** Updates the reasons of FOLLOWED, and logs which ones are new, remain and ended. */
export function followConditions(
  { held, loggedMs }: Conditions,
  now: readonly Condition[],
  nowMs: number,
  log: Pick<Log, 'info' | 'warn'>,
): void {
  for (const { reason, detail } of now) {
    held.set(reason, { reason, detail, sinceMs: held.get(reason)?.sinceMs ?? nowMs })
    const logged = loggedMs.get(reason)
    const again = REASONS[reason].stops === 'all' ? STOPPED_LOG_MS : OTHER_LOG_MS
    // A clock that was set back must not suppress it.
    if (logged !== undefined && nowMs >= logged && nowMs - logged < again) continue
    loggedMs.set(reason, nowMs)
    log.warn({ reason, detail }, REASONS[reason].means)
  }
  for (const reason of FOLLOWED) {
    if (!held.has(reason) || now.some((each) => each.reason === reason)) continue
    held.delete(reason)
    loggedMs.delete(reason)
    log.info({ reason }, 'reason cleared')
  }
}
