/** Every metric of the control plane itself, one table. */
import {
  CERTIFICATE_END_METRIC,
  counter,
  gauge,
  histogram,
  type MetricsTable,
  SPANS_METRIC,
  TOKEN_END_METRIC,
} from '@vacancy/shared/node'

export const CONTROL_METRICS = {
  control_http_requests_total: counter('Completed requests, by route; all pages of the console are one route.', [
    'route',
    'status',
  ]),
  control_http_request_seconds: {
    ...histogram('Time from the request to the end of its response.', ['route']),
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
  control_refused_total: counter('Refused requests, by reason: credentials, role, origin, host, rate limit.', [
    'reason',
  ]),
  control_sign_ins_total: counter('Sign-in attempts, by result.', ['result']),
  control_sessions: gauge('Current sessions of people; a person may have several.'),
  control_live_connections: gauge('Open live channels.'),
  control_live_frames_total: counter('Frames sent over live channels.'),
  control_live_bytes_total: counter('Bytes sent over live channels.'),
  control_nodes: gauge('Polled nodes.'),
  control_node_requests_total: counter('Poll requests to nodes.'),
  control_node_failures_total: counter('Poll requests without a valid response.'),
  control_poll_round_seconds: gauge('Duration of the last poll round over all nodes.'),
  control_probes_total: counter(
    'Probes of clients that were answered, or failed: a search, and a hold with its release, by request.',
    ['request', 'result'],
  ),
  control_probe_seconds: {
    ...histogram('Time to the answer of a probe, by request.', ['request']),
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2],
  },
  control_probed_shards: gauge('Shards by what their clients get: answered, partly, failing, unmeasured.', ['state']),
  control_database_up: gauge('1 while the database responds.'),
  control_spans_total: SPANS_METRIC,
  token_not_after_seconds: TOKEN_END_METRIC,
  tls_cert_not_after_seconds: CERTIFICATE_END_METRIC,
} as const satisfies MetricsTable
