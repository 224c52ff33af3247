/** The metrics that routers and bridges have in common, and how they are read from the counters of forwarding. */

import { counter, gauge, histogram, type Metrics, type MetricsTable, setTotal } from '@vacancy/shared/node'
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

/** The rows of a component by their names without its prefix. @param hop its word for what is behind it */
const rowsOf = (hop: string) => ({
  ...(Object.fromEntries(Object.entries(TOTALS).map(([name, [, help]]) => [name, counter(help)])) as {
    readonly [K in Total]: ReturnType<typeof counter<readonly []>>
  }),
  requests_total: counter(
    'Ended requests; `kind` is read or write, `result` is ok, the numeric code of the reply, or dropped.',
    ['kind', 'result'],
  ),
  request_duration_seconds: { ...histogram('Time from a request to its reply.', ['kind']), buckets: SECONDS },
  inflight: gauge('Requests in flight.'),
  held: gauge(`Requests that wait for a usable ${hop}.`),
  connections: gauge('Open client connections.'),
  hop_requests_total: counter(`Requests sent to each ${hop}, repeated ones each time; \`kind\` is read or write.`, [
    'hop',
    'kind',
  ]),
  hop_up: gauge(`Usable connections to each ${hop}.`, ['hop']),
  hop_inflight: gauge(`Requests in flight on each ${hop}.`, ['hop']),
  hop_ejected: gauge(`1 while the ${hop} is skipped after failures.`, ['hop']),
})
type Rows = ReturnType<typeof rowsOf>
type ForwardMetrics<P extends string> = { readonly [K in keyof Rows & string as `${P}_${K}`]: Rows[K] }

/** The rows of a component. */
export function forwardMetrics<P extends string>(prefix: P, hop: string): ForwardMetrics<P> {
  const rows = Object.entries(rowsOf(hop)).map(([name, row]) => [`${prefix}_${name}`, row])
  return Object.fromEntries(rows) as ForwardMetrics<P>
}

/** Certificates of a component, for its own table of metrics. */
export const CERTIFICATE_METRIC = gauge(
  'Expiry of the own certificate, seconds since 1970: of `tcp` and `http` (the listeners; of their authority where `_authority` follows), of `upstream` (shown to hops).',
  ['listener'],
)

/** Shards behind a component that do not serve, for its own table of metrics. */
export const FAULT_METRIC = gauge(
  '1 while a shard does not serve; `fault` is `down` (no node is reached) or `no_leader` (no writes). An edge router without a reachable router of a zone shows `zone` and its id.',
  ['shard', 'fault'],
)

/** Durations and results of ended requests, counted without the metrics library. */
export type Observed = {
  readonly ended: Map<string, number>
  readonly read: { readonly counts: Float64Array; sum: number }
  readonly write: { readonly counts: Float64Array; sum: number }
}

/** Their series exist from the start: a series that appears with its first event hides that event from rates. */
const RESULTS = ['ok', '408', '429', '500', '503', 'dropped'] as const

export function createObserved(): Observed {
  const histogram = () => ({ counts: new Float64Array(SECONDS.length + 1), sum: 0 })
  const series = (['read', 'write'] as const).flatMap((kind) =>
    RESULTS.map((result) => [`${kind} ${result}`, 0] as const),
  )
  return { ended: new Map(series), read: histogram(), write: histogram() }
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

/** Fills the rows of `forwardMetrics` before each page. */
export function collectForwarding<T extends MetricsTable>(
  metrics: Metrics<T>,
  prefix: string,
  forwarder: Forwarder,
  observed: Observed,
): void {
  const row = <K extends keyof Rows>(name: K) => metrics.of[`${prefix}_${name}`] as unknown as Metrics<Rows>['of'][K]
  metrics.readHistogram(`${prefix}_request_duration_seconds`, () =>
    (['read', 'write'] as const).map((kind) => ({ labels: { kind }, ...observed[kind] })),
  )
  metrics.onCollect(() => {
    for (const [name, [field]] of Object.entries(TOTALS)) setTotal(row(name as Total), forwarder.counters[field])
    for (const [key, total] of observed.ended) {
      const [kind = '', result = ''] = key.split(' ')
      setTotal(row('requests_total'), total, { kind, result })
    }
    row('inflight').set(forwarder.inFlight)
    row('held').set(forwarder.held.size)
    row('connections').set(forwarder.inbounds.size)
    const nowMs = forwarder.world.nowMs()
    for (const name of ['hop_up', 'hop_inflight', 'hop_ejected'] as const) row(name).reset()
    for (const hop of forwarder.pool.hops.values()) {
      const labels = { hop: hop.id }
      row('hop_up').set(labels, hop.links.filter(({ state }) => state === 'open').length)
      row('hop_inflight').set(labels, hop.inFlight)
      setTotal(row('hop_requests_total'), hop.readsSent, { ...labels, kind: 'read' })
      setTotal(row('hop_requests_total'), hop.writesSent, { ...labels, kind: 'write' })
      row('hop_ejected').set(labels, hop.ejectedUntilMs > nowMs ? 1 : 0)
    }
  })
}
