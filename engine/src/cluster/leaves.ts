/**
 * Which voter may end by itself, as when the number of cores changed on all machines: the leader lets one go at a time,
 * itself last, so that a majority stays (docs/design/http.md#core-count).
 */

/** What a leader knows of voters that want to end. */
export type Leaves = {
  /**
   * Since when no voter was seen away. A leader begins with its election, since one before it may have let a voter go; a
   * process that came back takes a while until it serves.
   */
  wholeSinceMs: number
  /** The last request of another voter, or the first of the leader: it waits for the others after that. */
  askedMs: number | undefined
  going: { readonly node: string; readonly untilMs: number } | undefined
}

/** How long a leader waits for requests of others before it goes itself: each voter asks once a second. */
const LAST_MS = 5_000

export function createLeaves(nowMs: number): Leaves {
  return { wholeSinceMs: nowMs, askedMs: undefined, going: undefined }
}

/** 409: not now, and why. */
type Answer = { readonly status: 202 | 409; readonly text: string }

type Request = {
  readonly node: string
  readonly isLeader: boolean
  /** From the request until its process has ended, at most; the same on all voters. */
  readonly forMs: number
  /** Another voter that is not connected, or behind; '' for none. */
  readonly away: string
}

export function decideLeave(leaves: Leaves, { node, isLeader, forMs, away }: Request, nowMs: number): Answer {
  const { going } = leaves
  if (!isLeader || leaves.askedMs === undefined) leaves.askedMs = nowMs
  if (away !== '') {
    leaves.wholeSinceMs = nowMs
    return wait(`${away} is away or behind`)
  }
  if (going && going.node !== node && nowMs < going.untilMs) return wait(`${going.node} is ending`)
  if (!(nowMs >= leaves.wholeSinceMs + forMs)) return wait(`all others have to be there for ${forMs / 1000} s`)
  if (isLeader && nowMs < leaves.askedMs + LAST_MS) return wait('the leader ends last')
  leaves.going = { node, untilMs: nowMs + forMs }
  return { status: 202, text: '' }
}

const wait = (text: string): Answer => ({ status: 409, text })
