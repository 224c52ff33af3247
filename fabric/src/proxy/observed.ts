/** What the proxy counts: requests by command and status, durations, bytes, refusals, and the slowest requests. Pure. */

import { DURATION_BUCKETS } from './metrics.ts'

export const REJECTIONS = [
  'invalid',
  'too_large',
  'slow',
  'unauthorized',
  'forbidden',
  'limit',
  'not_ready',
  'malformed',
  'internal',
] as const
export type Rejection = (typeof REJECTIONS)[number]

/** One response. */
export type Response = {
  readonly id: string
  readonly atMs: number
  /** `none` where the request named no known command. */
  readonly command: string
  readonly segment: string
  readonly status: number
  /** Name of the token; undefined without one. */
  readonly token: string | undefined
  readonly bytes: number
  readonly totalMs: number
  /** Undefined where nothing was sent. */
  readonly upstreamMs: number | undefined
  /** Of the trace that the request belongs to. */
  readonly traceId: string | undefined
}

/** Durations of one series: counts per bucket, and one for larger values; sum in seconds. */
export type Durations = { readonly counts: Float64Array; sum: number; total: number }

export type Observed = {
  readonly slowMs: number
  /** By command, then status. */
  readonly requests: Map<string, Map<number, Durations>>
  readonly upstream: Map<string, Durations>
  readonly tokens: Map<string, number>
  readonly rejections: Record<Rejection, number>
  /** The last slow requests, a ring. */
  readonly slow: Response[]
  nextSlow: number
  commands: number
  bytesReceived: number
  bytesSent: number
  clientErrors: number
  loginFailures: number
}

const SLOW_MAX = 100

export function createObserved(slowMs: number): Observed {
  return {
    slowMs,
    requests: new Map(),
    upstream: new Map(),
    tokens: new Map(),
    rejections: Object.fromEntries(REJECTIONS.map((reason) => [reason, 0])) as Record<Rejection, number>,
    slow: [],
    nextSlow: 0,
    commands: 0,
    bytesReceived: 0,
    bytesSent: 0,
    clientErrors: 0,
    loginFailures: 0,
  }
}

export function observe(observed: Observed, response: Response): void {
  const { command, status, token, totalMs, upstreamMs } = response
  const byStatus = entryOf(observed.requests, command, () => new Map<number, Durations>())
  addDuration(entryOf(byStatus, status, createDurations), totalMs)
  if (upstreamMs !== undefined) {
    observed.commands++
    addDuration(entryOf(observed.upstream, command, createDurations), upstreamMs)
  }
  if (token !== undefined) {
    const name = token === '' ? 'unnamed' : token
    observed.tokens.set(name, (observed.tokens.get(name) ?? 0) + 1)
  }
  observed.bytesSent += response.bytes
  if (status >= 400 && status < 500) observed.clientErrors++
  if (totalMs >= observed.slowMs && command !== 'none') {
    observed.slow[observed.nextSlow] = response
    observed.nextSlow = (observed.nextSlow + 1) % SLOW_MAX
  }
}

function entryOf<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const known = map.get(key)
  if (known !== undefined) return known
  const created = create()
  map.set(key, created)
  return created
}

function createDurations(): Durations {
  return { counts: new Float64Array(DURATION_BUCKETS.length + 1), sum: 0, total: 0 }
}

function addDuration(series: Durations, ms: number): void {
  const seconds = ms / 1000
  let bucket = 0
  while (bucket < DURATION_BUCKETS.length && seconds > (DURATION_BUCKETS[bucket] as number)) bucket++
  series.counts[bucket] = (series.counts[bucket] as number) + 1
  series.sum += seconds
  series.total++
}

/** The sum of what several workers counted. */
export function sumObserved(all: readonly Observed[]): Observed {
  const [first] = all
  const sum = createObserved(first?.slowMs ?? 0)
  for (const each of all) {
    for (const [command, byStatus] of each.requests) {
      const into = entryOf(sum.requests, command, () => new Map<number, Durations>())
      for (const [status, series] of byStatus) addSeries(entryOf(into, status, createDurations), series)
    }
    for (const [command, series] of each.upstream) addSeries(entryOf(sum.upstream, command, createDurations), series)
    for (const [token, total] of each.tokens) sum.tokens.set(token, (sum.tokens.get(token) ?? 0) + total)
    for (const reason of REJECTIONS) sum.rejections[reason] += each.rejections[reason]
    for (const key of TOTALS) sum[key] += each[key]
    sum.slow.push(...each.slow)
  }
  sum.slow.sort((a, b) => a.atMs - b.atMs)
  sum.slow.splice(0, sum.slow.length - SLOW_MAX)
  return sum
}

const TOTALS = ['commands', 'bytesReceived', 'bytesSent', 'clientErrors', 'loginFailures'] as const

function addSeries(into: Durations, series: Durations): void {
  for (const [bucket, count] of series.counts.entries()) into.counts[bucket] = (into.counts[bucket] as number) + count
  into.sum += series.sum
  into.total += series.total
}

/** For `/debug/slow`: the newest first. */
export function slowRequests({ slow, nextSlow }: Observed): readonly object[] {
  return [...slow.slice(nextSlow), ...slow.slice(0, nextSlow)].reverse().map((response) => ({
    at: new Date(response.atMs).toISOString(),
    request_id: response.id,
    command: response.command,
    segment: response.segment,
    status: response.status,
    token: response.token ?? null,
    milliseconds: tenths(response.totalMs),
    upstream_milliseconds: response.upstreamMs === undefined ? null : tenths(response.upstreamMs),
    trace_id: response.traceId ?? null,
  }))
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}
