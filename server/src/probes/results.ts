/** What the probes of one way in have shown, and what follows for its shard and for all of them. Pure. */
import type { ClientsOfShard, ClientsSummary, ClientWay } from '@vacancy/shared/contract'
import type { Unprobed, Way } from './ways.ts'

export const PROBE = {
  /** Of one request; what a client gives it by default. */
  deadlineMs: 2_000,
  /** Results of this time are summed up, of at most so many probes. */
  windowMs: 300_000,
  samplesMax: 64,
  /** A failure is an outage once it repeats: a client repeats a call, too. */
  failuresMin: 2,
} as const

/** The result of one request of a probe. */
export type Outcome =
  | { readonly kind: 'answered'; readonly ms: number }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  /** The node does not lead: it was not sent the write, or refused it at once, as it should. */
  | { readonly kind: 'elsewhere' }
  /** It cannot be measured here, for this reason. */
  | { readonly kind: 'impossible'; readonly message: string }

/** @param hold undefined: not sent, because the search got no answer at all */
export type ProbeResult = { readonly search: Outcome; readonly hold: Outcome | undefined }

type Failed = Extract<Outcome, { kind: 'failed' }> & { readonly request: 'search' | 'hold' }

/** Times of the probes of the window, with milliseconds; NaN for one that failed. */
type Tally = { readonly times: readonly number[]; readonly ms: readonly number[] }

export type WayResults = {
  readonly search: Tally
  readonly hold: Tally
  /** Failures in a row, since the first of them, and the last one. */
  readonly failures: number
  readonly since: number | undefined
  readonly failed: Failed | undefined
  readonly answeredAt: number | undefined
  /** When the first probe ended. */
  readonly firstAt: number | undefined
  /** The last hold that was committed. */
  readonly committedAt: number | undefined
  readonly lastHold: Outcome['kind'] | undefined
  /** Why holds cannot be measured; ''. */
  readonly readsOnly: string
}

const EMPTY: Tally = { times: [], ms: [] }

export const NO_RESULTS: WayResults = {
  ...{ search: EMPTY, hold: EMPTY, failures: 0, since: undefined, failed: undefined },
  ...{ answeredAt: undefined, firstAt: undefined, committedAt: undefined, lastHold: undefined, readsOnly: '' },
}

export function addResult(results: WayResults, { search, hold }: ProbeResult, now: number): WayResults {
  const failed: Failed | undefined =
    search.kind === 'failed'
      ? { ...search, request: 'search' }
      : hold?.kind === 'failed'
        ? { ...hold, request: 'hold' }
        : undefined
  return {
    search: tallied(results.search, search, now),
    hold: tallied(results.hold, hold, now),
    failures: failed ? results.failures + 1 : 0,
    since: failed ? (results.since ?? now) : undefined,
    failed,
    answeredAt: failed ? results.answeredAt : now,
    firstAt: results.firstAt ?? now,
    committedAt: hold?.kind === 'answered' ? now : results.committedAt,
    lastHold: hold?.kind ?? results.lastHold,
    readsOnly: hold?.kind === 'impossible' ? hold.message : '',
  }
}

function tallied({ times, ms }: Tally, outcome: Outcome | undefined, now: number): Tally {
  const value = outcome?.kind === 'answered' ? outcome.ms : outcome?.kind === 'failed' ? Number.NaN : undefined
  const from = times.findIndex((at) => now - at < PROBE.windowMs)
  const first = Math.max(from < 0 ? times.length : from, times.length + 1 - PROBE.samplesMax)
  const more = value === undefined ? [] : [value]
  return { times: [...times.slice(first), ...more.map(() => now)], ms: [...ms.slice(first), ...more] }
}

function latencyOf(tallies: readonly Tally[], now: number): ClientsSummary['search'] {
  const values = new Float64Array(tallies.reduce((sum, { ms }) => sum + ms.length, 0))
  let count = 0
  for (const { times, ms } of tallies) {
    for (const [n, value] of ms.entries()) {
      if (!Number.isNaN(value) && now - (times[n] as number) < PROBE.windowMs) values[count++] = value
    }
  }
  if (count === 0) return null
  const sorted = values.subarray(0, count).sort()
  const at = (share: number) => Math.round((sorted[Math.ceil(share * count) - 1] as number) * 10) / 10
  return { p50: at(0.5), p99: at(0.99) }
}

/** One way in with its results. */
type Known = { readonly way: Way; readonly results: WayResults }

function viewOfWay({ way: { shard, through, id }, results }: Known, now: number): ClientWay {
  const { failures, failed, since, answeredAt, lastHold, readsOnly } = results
  const isFailing = failed !== undefined && failures >= PROBE.failuresMin
  const state = isFailing ? 'fails' : answeredAt === undefined ? 'waiting' : 'answers'
  return {
    ...{ shard, through, id, state },
    message: isFailing
      ? `${failed.request === 'search' ? 'Searches' : 'Holds'} fail: ${failed.message}`
      : state === 'waiting'
        ? 'Not measured yet'
        : readsOnly !== ''
          ? `Searches are answered; holds are not measured: ${readsOnly}`
          : lastHold === 'elsewhere'
            ? 'Searches are answered; writes go to the leader'
            : 'Searches and holds are answered',
    code: isFailing ? failed.code : '',
    failing: isFailing ? failed.request : null,
    since: isFailing && since !== undefined ? timeOf(since) : null,
    answeredAt: answeredAt === undefined ? null : timeOf(answeredAt),
    search: probedOf(results.search, now),
    hold: probedOf(results.hold, now),
  }
}

function probedOf(tally: Tally, now: number): ClientWay['search'] {
  const failed = tally.ms.filter(Number.isNaN).length
  return { latency: latencyOf([tally], now), answered: tally.ms.length - failed, failed }
}

const NOTHING: ClientWay['search'] = { latency: null, answered: 0, failed: 0 }

function viewOfUnprobed({ shard, through, id, why }: Unprobed): ClientWay {
  return {
    ...{ shard, through, id, state: 'not-probed', message: `Not probed: ${why}`, code: '', failing: null },
    ...{ since: null, answeredAt: null, search: NOTHING, hold: NOTHING },
  }
}

/** @param intervalMs between two probes of a way */
export function viewOfShard(
  shard: string,
  known: readonly Known[],
  unprobed: readonly Unprobed[],
  now: number,
  intervalMs: number,
): ClientsOfShard {
  const views = known.map((each) => viewOfWay(each, now))
  return {
    shard,
    ...verdict(known, views, unprobed, now, intervalMs),
    search: latencyOf(
      known.map(({ results }) => results.search),
      now,
    ),
    hold: latencyOf(
      known.map(({ results }) => results.hold),
      now,
    ),
    ways: [...views, ...unprobed.map(viewOfUnprobed)],
  }
}

function verdict(
  known: readonly Known[],
  views: readonly ClientWay[],
  unprobed: readonly Unprobed[],
  now: number,
  intervalMs: number,
): Pick<ClientsOfShard, 'state' | 'message'> {
  const failing = views.filter(({ state }) => state === 'fails')
  const [first] = failing
  if (views.length === 0) return { state: 'not-probed', message: unprobed[0]?.why ?? 'no way in is known' }
  // Where one way still searches, what clients miss is to book.
  const worst = failing.find((each) => each.failing === 'hold') ?? first
  if (worst && failing.length === views.length) return { state: 'fails', message: worst.message }
  const isMeasured = views.every(({ state }) => state !== 'waiting')
  if (isMeasured && !isBookable(known, now, intervalMs))
    return {
      state: 'fails',
      message: worst?.failing === 'hold' ? worst.message : 'Holds fail: no node accepts a write',
    }
  if (first) return { state: 'partly', message: `through ${first.id}: ${first.message}` }
  return { state: isMeasured ? 'answers' : 'waiting', message: '' }
}

/**
 * Whether a hold was committed through some way lately. Only the leader accepts writes, so one of the nodes must; for a
 * while after a change of the leader the probes of both are of before.
 */
function isBookable(known: readonly Known[], now: number, intervalMs: number): boolean {
  if (known.some(({ results: { lastHold, readsOnly } }) => lastHold === 'answered' || readsOnly !== '')) return true
  const last = Math.max(...known.map(({ results: { committedAt, firstAt } }) => committedAt ?? firstAt ?? now))
  return now - last < 2 * intervalMs + PROBE.deadlineMs
}

export function summaryOfClients(
  shards: readonly ClientsOfShard[],
  known: readonly Known[],
  now: number,
  intervalMs: number,
): ClientsSummary {
  const count = (...states: readonly ClientsOfShard['state'][]) =>
    shards.filter(({ state }) => states.includes(state)).length
  const unmeasured = count('waiting', 'not-probed')
  return {
    state: intervalMs === 0 ? 'off' : unmeasured === shards.length ? 'waiting' : 'measured',
    intervalSeconds: intervalMs / 1_000,
    shards: shards.length,
    answered: count('answers'),
    partly: count('partly'),
    failing: count('fails'),
    unmeasured,
    search: latencyOf(
      known.map(({ results }) => results.search),
      now,
    ),
    hold: latencyOf(
      known.map(({ results }) => results.hold),
      now,
    ),
  }
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}
