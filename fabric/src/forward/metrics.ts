/** The metrics that routers and bridges have in common, and how they are read from the counters of forwarding. */

import { type Metrics, type MetricsTable, setTotal } from '@vacancy/shared/node'
import type { Counters, Ended, Forwarder } from './forwarder.ts'

const SECONDS = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2] as const

/** Counter names without their prefix, and where their totals are. */
const TOTALS = {
  connections_opened_total: ['connectionsOpened', 'Accepted client connections.'],
  connections_closed_total: ['connectionsClosed', 'Closed client connections.'],
  connections_refused_total: ['connectionsRefused', 'Client connections closed at once: the limit, or a stop.'],
  tls_errors_total: ['handshakesFailed', 'TLS handshakes of clients that failed.'],
  login_failures_total: ['loginsRefused', 'LOGINs with an unknown or expired token.'],
  frames_received_total: ['framesReceived', 'Requests received.'],
  frames_forwarded_total: ['framesForwarded', 'Requests sent to hops, repeated ones each time.'],
  bytes_received_total: ['bytesReceived', 'Bytes from clients.'],
  bytes_sent_total: ['bytesSent', 'Bytes of replies to clients.'],
  keepalives_received_total: ['keepalives', 'Keepalives from clients.'],
  keepalives_sent_total: ['keepalivesSent', 'Keepalives to hops.'],
  client_errors_total: ['clientErrors', 'Frames refused here: malformed, too large, not logged in, overloaded.'],
  unknown_segment_total: ['unknownSegments', 'Requests that ended with 404.'],
  network_errors_total: ['networkErrors', 'Requests whose hop connection ended before the reply.'],
  timeouts_total: ['timeouts', 'Requests that were sent and had no reply at their deadline.'],
  resyncs_total: ['resyncs', 'Times that bytes between frames were skipped.'],
  retries_total: ['retries', 'Requests sent again, which happens only if nothing was executed or it is a read.'],
  write_redirects_total: ['redirects', 'Writes refused because the node was not the leader.'],
  stray_replies_total: ['strayReplies', 'Replies to requests that were no longer waited for.'],
  flag_mismatch_total: ['flagMismatches', 'Requests whose write flag contradicts their command.'],
} as const satisfies { readonly [name: string]: readonly [keyof Counters, string] }

type Total = keyof typeof TOTALS

type ForwardMetrics<P extends string> = {
  readonly [K in Total as `${P}_${K}`]: { readonly type: 'counter'; readonly help: string }
} & {
  readonly [K in 'requests_total' as `${P}_${K}`]: {
    readonly type: 'counter'
    readonly help: string
    readonly labels: readonly ['kind', 'result']
  }
} & {
  readonly [K in 'request_duration_seconds' as `${P}_${K}`]: {
    readonly type: 'histogram'
    readonly help: string
    readonly labels: readonly ['kind']
    readonly buckets: readonly number[]
  }
} & {
  readonly [K in 'inflight' | 'connections' | 'held' as `${P}_${K}`]: { readonly type: 'gauge'; readonly help: string }
} & {
  readonly [K in 'hop_requests_total' as `${P}_${K}`]: {
    readonly type: 'counter'
    readonly help: string
    readonly labels: readonly ['hop', 'kind']
  }
} & {
  readonly [K in 'hop_up' | 'hop_inflight' | 'hop_ejected' as `${P}_${K}`]: {
    readonly type: 'gauge'
    readonly help: string
    readonly labels: readonly ['hop']
  }
}

/** Certificates of a component, for its own table of metrics. */
export const CERTIFICATE_METRIC = {
  type: 'gauge',
  help: 'Expiry of the own certificate, seconds since 1970: of `tcp` and `http` (the listeners), of `upstream` (shown to hops).',
  labels: ['listener'],
} as const

/** The rows of a component. @param hop its word for what is behind it */
export function forwardMetrics<P extends string>(prefix: P, hop: string): ForwardMetrics<P> {
  const rows: { [name: string]: MetricsTable[string] } = {}
  for (const [name, [, help]] of Object.entries(TOTALS)) rows[`${prefix}_${name}`] = { type: 'counter', help }
  Object.assign(rows, {
    [`${prefix}_requests_total`]: {
      type: 'counter',
      help: 'Ended requests; `kind` is read or write, `result` is ok, the numeric code of the reply, or dropped.',
      labels: ['kind', 'result'],
    },
    [`${prefix}_request_duration_seconds`]: {
      type: 'histogram',
      help: 'Time from a request to its reply.',
      labels: ['kind'],
      buckets: SECONDS,
    },
    [`${prefix}_inflight`]: { type: 'gauge', help: 'Requests in flight.' },
    [`${prefix}_held`]: { type: 'gauge', help: `Requests that wait for a usable ${hop}.` },
    [`${prefix}_connections`]: { type: 'gauge', help: 'Open client connections.' },
    [`${prefix}_hop_requests_total`]: {
      type: 'counter',
      help: `Requests sent to each ${hop}, repeated ones each time; \`kind\` is read or write.`,
      labels: ['hop', 'kind'],
    },
    [`${prefix}_hop_up`]: { type: 'gauge', help: `Usable connections to each ${hop}.`, labels: ['hop'] },
    [`${prefix}_hop_inflight`]: { type: 'gauge', help: `Requests in flight on each ${hop}.`, labels: ['hop'] },
    [`${prefix}_hop_ejected`]: {
      type: 'gauge',
      help: `1 while the ${hop} is skipped after failures.`,
      labels: ['hop'],
    },
  })
  return rows as ForwardMetrics<P>
}

/** Durations and results of ended requests, counted without the metrics library. */
export type Observed = {
  readonly ended: Map<string, number>
  readonly read: { readonly counts: Float64Array; sum: number }
  readonly write: { readonly counts: Float64Array; sum: number }
}

export function createObserved(): Observed {
  const histogram = () => ({ counts: new Float64Array(SECONDS.length + 1), sum: 0 })
  return { ended: new Map(), read: histogram(), write: histogram() }
}

export function observe(observed: Observed, { request, result, seconds }: Ended): void {
  const kind = request.isWrite ? 'write' : 'read'
  const key = `${kind} ${result}`
  observed.ended.set(key, (observed.ended.get(key) ?? 0) + 1)
  const histogram = observed[kind]
  let bucket = 0
  while (bucket < SECONDS.length && seconds > (SECONDS[bucket] as number)) bucket++
  histogram.counts[bucket] = (histogram.counts[bucket] as number) + 1
  histogram.sum += seconds
}

/** Rows by the names that are put together from the prefix. */
type Rows = Metrics<{
  readonly plain: { readonly type: 'counter'; readonly help: '' }
  readonly ended: { readonly type: 'counter'; readonly help: ''; readonly labels: readonly ['kind', 'result'] }
  readonly level: { readonly type: 'gauge'; readonly help: '' }
  readonly sent: { readonly type: 'counter'; readonly help: ''; readonly labels: readonly ['hop', 'kind'] }
  readonly hop: { readonly type: 'gauge'; readonly help: ''; readonly labels: readonly ['hop'] }
}>['of']

/** Fills the rows of `forwardMetrics` before each page. */
export function collectForwarding<T extends MetricsTable>(
  metrics: Metrics<T>,
  prefix: string,
  forwarder: Forwarder,
  observed: Observed,
): void {
  const row = <K extends keyof Rows>(_kind: K, name: string) => metrics.of[`${prefix}_${name}`] as unknown as Rows[K]
  metrics.readHistogram(`${prefix}_request_duration_seconds`, () =>
    (['read', 'write'] as const).map((kind) => ({ labels: { kind }, ...observed[kind] })),
  )
  metrics.onCollect(() => {
    for (const [name, [field]] of Object.entries(TOTALS)) setTotal(row('plain', name), forwarder.counters[field])
    for (const [key, total] of observed.ended) {
      const [kind = '', result = ''] = key.split(' ')
      setTotal(row('ended', 'requests_total'), total, { kind, result })
    }
    row('level', 'inflight').set(forwarder.inFlight)
    row('level', 'held').set(forwarder.held.size)
    row('level', 'connections').set(forwarder.inbounds.size)
    const nowMs = forwarder.world.nowMs()
    for (const name of ['hop_up', 'hop_inflight', 'hop_ejected']) row('hop', name).reset()
    for (const hop of forwarder.pool.hops.values()) {
      const labels = { hop: hop.id }
      row('hop', 'hop_up').set(labels, hop.links.filter(({ state }) => state === 'open').length)
      row('hop', 'hop_inflight').set(labels, hop.inFlight)
      setTotal(row('sent', 'hop_requests_total'), hop.readsSent, { ...labels, kind: 'read' })
      setTotal(row('sent', 'hop_requests_total'), hop.writesSent, { ...labels, kind: 'write' })
      row('hop', 'hop_ejected').set(labels, hop.ejectedUntilMs > nowMs ? 1 : 0)
    }
  })
}
