/**
 * The decisions of the fabric, without sockets or clock: whether a request may be sent again, with which code it ends,
 * and which hop it takes (docs/design/fabric.md#retries). The rule behind all of them: **a write is never sent twice
 * unless its first try was certainly not executed.**
 */

/** Numeric codes of ERROR replies. */
export type Code = 308 | 404 | 405 | 408 | 429 | 500 | 503

/** How one try of a request ended without a reply to pass on. */
export type Failure =
  /** The reply is an ERROR with this code. */
  | { readonly how: 'refused'; readonly code: number }
  /** The connection ended after the request was handed to it. */
  | { readonly how: 'lost' }
  /** No reply until the time of this try was over. */
  | { readonly how: 'silent' }

export type Tried = {
  readonly isWrite: boolean
  /** The write carries a request key: the engine executes it once however often it arrives. */
  readonly isRepeatable: boolean
  /** The hop is a component of this project, or a node: its 404 and 503 mean that nothing was executed. */
  readonly isOurs: boolean
  /** Tries so far. */
  readonly tries: number
  /** From the last try to its failure: how long the hop looked for a way. */
  readonly tookMs: number
  readonly leftMs: number
}

export type Verdict =
  /** Pass the reply on. */
  | { readonly do: 'pass' }
  /** Send it again: `again` at once, elsewhere if there is another hop; `later` when the routes may have changed. */
  | { readonly do: 'again' | 'later' }
  | { readonly do: 'answer'; readonly code: Code }

const PASS = { do: 'pass' } as const
const AGAIN = { do: 'again' } as const
const LATER = { do: 'later' } as const
const UNKNOWN = { do: 'answer', code: 408 } as const
/** Clients of a router know nothing of leaders: 308 and 405 end here. */
const NOT_SERVED = { do: 'answer', code: 503 } as const

/** With less time left a request is not sent: its reply would come too late, and leave a write in doubt. */
export const SENDABLE_MS = 20
/** A reply of 429 or 500 is tried on at most one further hop: more would multiply the load. */
const BUSY_TRIES_MAX = 2
/** Tries of one request. Deadlines bound them as well; this bounds loops between two hops that both refuse. */
const TRIES_MAX = 32

/** What follows a try that did not succeed. */
export function afterFailure(failure: Failure, tried: Tried): Verdict {
  const mayGoOn = tried.leftMs >= SENDABLE_MS && tried.tries < TRIES_MAX
  if (failure.how !== 'refused') {
    if (tried.isWrite && !tried.isRepeatable) return UNKNOWN
    return mayGoOn ? AGAIN : UNKNOWN
  }
  if (!mayGoOn) return failure.code === 308 || failure.code === 405 ? NOT_SERVED : PASS
  switch (failure.code) {
    case 308:
      return LATER
    case 405:
      return tried.isWrite ? NOT_SERVED : AGAIN
    case 503:
      if (tried.isWrite && !tried.isOurs) return PASS
      // The next refusal would take as long, and the deadline would leave the write in doubt before it.
      if (tried.isWrite && tried.tookMs > tried.leftMs) return PASS
      return tried.tries === 1 ? AGAIN : LATER
    case 429:
    case 500:
      return !tried.isWrite && tried.tries < BUSY_TRIES_MAX ? AGAIN : PASS
    default:
      return PASS
  }
}

/** The hedge of a read costs as much as 20 reads earn: at most 5 % of reads are hedged. */
export const HEDGE_COST = 20
/** A slow minute after an hour without one must not double the load. */
const HEDGE_CREDIT_MAX = 10 * HEDGE_COST

/** The credit for hedges after one more read. */
export function creditAfterRead(credit: number): number {
  return Math.min(HEDGE_CREDIT_MAX, credit + 1)
}

/** Whether a request that waits for its reply may be sent to a second hop as well: a read, once, within the credit. */
export function mayHedge(sent: Pick<Tried, 'isWrite' | 'tries' | 'leftMs'>, credit: number): boolean {
  return !sent.isWrite && sent.tries === 1 && sent.leftMs >= SENDABLE_MS && credit >= HEDGE_COST
}

/** A hop that said that the route is wrong gets the next request after this time. */
const LATER_MS = 25
const SOON_TRIES = TRIES_MAX / 2

/** The pause before a try on changed routes: the first half of the tries come fast, the others last to the deadline. */
export function laterMs(tries: number, limitMs: number): number {
  return tries <= SOON_TRIES ? LATER_MS : Math.max(LATER_MS, limitMs / (TRIES_MAX - SOON_TRIES))
}

/** What a choice needs to know of a hop. */
export type Candidate = {
  readonly inFlight: number
  /** Monotonic ms until which it is passed over; 0 = not ejected. */
  readonly ejectedUntilMs: number
}

/**
 * The hop of a request: of two drawn at random, the one with fewer requests in flight. Ejected hops are taken only if
 * nothing else is open, and `avoided` only after them.
 *
 * @param isOpen whether a request can be handed to the hop now
 * @param random a number from 0 up to but not including 1
 * @returns undefined when no hop is open
 */
export function chooseHop<Hop extends Candidate>(
  hops: readonly Hop[],
  isOpen: (hop: Hop) => boolean,
  nowMs: number,
  random: () => number,
  avoided?: Hop,
): Hop | undefined {
  if (hops.length === 1) return isOpen(hops[0] as Hop) ? hops[0] : undefined
  const open = hops.filter((hop) => hop !== avoided && isOpen(hop))
  if (open.length === 0) return avoided !== undefined && hops.includes(avoided) && isOpen(avoided) ? avoided : undefined
  const healthy = open.filter((hop) => hop.ejectedUntilMs <= nowMs)
  const pool = healthy.length > 0 ? healthy : open
  if (pool.length === 1) return pool[0]
  const first = Math.floor(random() * pool.length)
  const second = (first + 1 + Math.floor(random() * (pool.length - 1))) % pool.length
  const [a, b] = [pool[first] as Hop, pool[second] as Hop]
  return b.inFlight < a.inFlight ? b : a
}

/** Failures in a row after which a hop is ejected. */
export const EJECT_AFTER = 3
const EJECT_MS_MIN = 1_000
const EJECT_MS_MAX = 30_000

/** How long a hop is passed over the next time it is ejected. */
export function nextEjectMs(beforeMs: number): number {
  return Math.min(EJECT_MS_MAX, Math.max(EJECT_MS_MIN, beforeMs * 2))
}

const RETRY_MS_MIN = 100
/** A hop that came back is used within this time, so that a request can wait for it. */
const RETRY_MS_MAX = 500
const JITTER = 0.2

/** The wait before attempt `attempt` (1 = the first repetition): 100 ms doubling to 0.5 s, ± 20 %. */
export function retryWaitMs(attempt: number, random: number): number {
  const base = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(attempt - 1, 16))
  return base * (1 - JITTER + 2 * JITTER * random)
}
