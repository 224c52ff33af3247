/** Every metric of the control plane itself, one table. */
import type { MetricsTable } from '@vacancy/shared/node'

export const CONTROL_METRICS = {
  control_http_requests_total: {
    type: 'counter',
    help: 'Requests answered, by route; pages of the console are one route.',
    labels: ['route', 'status'],
  },
  control_http_request_seconds: {
    type: 'histogram',
    help: 'Time from the request to the end of its answer.',
    labels: ['route'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
  control_refused_total: {
    type: 'counter',
    help: 'Requests that were refused: no or wrong credentials, role too low, foreign page or host, too many.',
    labels: ['reason'],
  },
  control_sign_ins_total: { type: 'counter', help: 'Tries to sign in, by how they ended.', labels: ['result'] },
  control_sessions: { type: 'gauge', help: 'People signed in now; a person may be several times.' },
  control_live_connections: { type: 'gauge', help: 'Open live channels.' },
  control_live_frames_total: { type: 'counter', help: 'Frames sent over live channels.' },
  control_live_bytes_total: { type: 'counter', help: 'Bytes of these.' },
  control_nodes: { type: 'gauge', help: 'Nodes that are looked at.' },
  control_node_requests_total: { type: 'counter', help: 'Requests to nodes to see how they are.' },
  control_node_failures_total: { type: 'counter', help: 'Those without a useful answer.' },
  control_poll_round_seconds: { type: 'gauge', help: 'Time of the last round over all nodes.' },
  control_database_up: { type: 'gauge', help: '1 while the database answers.' },
  tls_cert_not_after_seconds: {
    type: 'gauge',
    help: 'When the certificate of a listener ends, seconds since 1970.',
    labels: ['listener'],
  },
} as const satisfies MetricsTable
