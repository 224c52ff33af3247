/** The metrics of the proxy. docs/fabric-metrics.md is generated from them. */

import {
  CERTIFICATE_END_METRIC,
  counter,
  gauge,
  histogram,
  type MetricsTable,
  SPANS_METRIC,
  TOKEN_END_METRIC,
} from '@vacancy/shared/node'

/** Upper bounds of the duration histograms, in seconds. */
export const DURATION_BUCKETS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 25,
] as const

export const PROXY_METRICS = {
  api_commands_total: counter('Commands sent to the upstream.'),
  api_bytes_received_total: counter('Bytes of request bodies.'),
  api_bytes_sent_total: counter('Bytes of response bodies.'),
  api_client_errors_total: counter('Responses with 4xx.'),
  api_client_login_fail_total: counter('Requests with a missing, malformed or unknown token.'),
  api_requests_total: counter('Requests by command (`none` if it is unknown) and HTTP status.', ['command', 'status']),
  api_token_requests_total: counter('Requests by the name of their token; tokens without a name as `unnamed`.', [
    'token',
  ]),
  api_request_duration_seconds: {
    ...histogram('Time from the header of a request to its response.', ['command', 'status']),
    buckets: DURATION_BUCKETS,
  },
  api_upstream_duration_seconds: {
    ...histogram(
      'Time from sending a command to its reply; the difference from api_request_duration_seconds is the overhead of the proxy.',
      ['command'],
    ),
    buckets: DURATION_BUCKETS,
  },
  api_inflight: gauge('Requests in flight, `http1` or `http2`.', ['proto']),
  api_connections: gauge('Connections of clients, `http1` or `http2`.', ['proto']),
  api_rejected_total: counter(
    'Refused before a command was sent: `invalid`, `too_large`, `slow`, `unauthorized`, `forbidden`, `limit`, `not_ready`, `connections`, `unreadable`; and `malformed` replies.',
    ['reason'],
  ),
  api_workers: gauge('Workers that serve; the other metrics are sums over them.'),
  backend_inflight: gauge('Commands at the upstream.'),
  backend_connections: gauge('Open connections to the upstream.'),
  backend_opened_connections_total: counter('Connections opened to the upstream.'),
  backend_disconnect_total: counter('Connections to the upstream that were lost.'),
  backend_login_fail_total: counter('Connections on which the upstream refused the token.'),
  backend_followers_total: gauge('Followers of the shard; 0 except in mode cluster.'),
  backend_shard_fault: gauge(
    '1 while a shard behind the proxy does not serve; `fault` is `down` (no node is reached) or `no_leader` (no writes).',
    ['shard', 'fault'],
  ),
  backend_leader_change_total: counter('Changes of the leader of the shard; mode cluster.'),
  api_spans_total: SPANS_METRIC,
  tls_cert_not_after_seconds: CERTIFICATE_END_METRIC,
  token_not_after_seconds: TOKEN_END_METRIC,
} as const satisfies MetricsTable
