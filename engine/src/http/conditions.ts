/**
 * Which reasons hold for a clustered node, found in what it reports (consensus.md §14.1, platform.md §7.2), and the
 * words about them in the log.
 */

import type { Log } from '@vacancy/shared/node'
import type { ClusterStatus, RegistryStatus, ReplicaStatus, ResolverStatus } from '../status.ts'
import type { ClusterReason, NodeHandle, Unavailable, UnavailableReason } from './handle.ts'
import { isActive, REASONS } from './reasons.ts'

/** A follower answers reads while it is known to hold everything that was acknowledged this long ago (§14). */
export const STALENESS_MS_MAX = 10_000
/** How often the log says again what stops the node: what it waits for may change meanwhile. */
const STOPPED_LOG_MS = 10_000
const OTHER_LOG_MS = 3_600_000

export type Condition = { readonly reason: UnavailableReason; readonly detail: string }

/** What a node reports, as far as reasons follow from it. */
export type Reported = {
  readonly info: ClusterStatus
  readonly replica: ReplicaStatus | undefined
  readonly registry: RegistryStatus | undefined
  readonly resolver: ResolverStatus | undefined
}

/** What this module decides about; other reasons are set and cleared by whoever sees them. */
export const FOLLOWED: readonly ClusterReason[] = [
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
  const hold = (reason: ClusterReason, detail: string) => found.push({ reason, detail })
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

/** What keeps it from serving as a member. The first cause only: what follows from it would hide it. */
function* membership(info: ClusterStatus): Generator<Condition> {
  const { bootstrap, installing, awaitedLoad } = info
  if (info.isRemoved) {
    yield { reason: 'removed', detail: `${info.nodeId} is no member any more` }
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

/** What `/healthz` answers. */
export function healthOf(
  handle: Pick<NodeHandle, 'unavailable' | 'cluster'>,
): 'active' | 'active_leader' | 'active_follower' | 'unavailable' {
  if (!isActive(handle.unavailable())) return 'unavailable'
  const info = handle.cluster?.info()
  if (!info) return 'active'
  if (info.isRemoved || info.bootstrap || info.installing || info.awaitedLoad || !isFresh(info)) return 'unavailable'
  // A leader that is not sure of itself is a voter like the others: it goes on serving reads while it is fresh.
  return info.role === 'leader' && info.isLeading ? 'active_leader' : 'active_follower'
}

/** The reasons of a node by name, since when each holds, and when the log last told it. */
export type Conditions = {
  readonly held: Map<UnavailableReason, Unavailable>
  readonly toldMs: Map<UnavailableReason, number>
}

export function createConditions(held: Map<UnavailableReason, Unavailable>): Conditions {
  return { held, toldMs: new Map() }
}

/** Brings the reasons of FOLLOWED up to what holds now; the log tells what came, what stays and what is over. */
export function followConditions(
  { held, toldMs }: Conditions,
  now: readonly Condition[],
  nowMs: number,
  log: Pick<Log, 'info' | 'warn'>,
): void {
  for (const { reason, detail } of now) {
    held.set(reason, { reason, detail, sinceMs: held.get(reason)?.sinceMs ?? nowMs })
    const told = toldMs.get(reason)
    const again = REASONS[reason].stops === 'all' ? STOPPED_LOG_MS : OTHER_LOG_MS
    // A clock that was set back must not silence it.
    if (told !== undefined && nowMs >= told && nowMs - told < again) continue
    toldMs.set(reason, nowMs)
    log.warn({ reason, detail }, REASONS[reason].means)
  }
  for (const reason of FOLLOWED) {
    if (!held.has(reason) || now.some((each) => each.reason === reason)) continue
    held.delete(reason)
    toldMs.delete(reason)
    log.info({ reason }, 'this is over')
  }
}
