/** Every metric of the control plane itself, one table. */
import type { MetricsTable } from '@vacancy/shared/node'

export const CONTROL_METRICS = {
  control_http_requests_total: {
    type: 'counter',
    help: 'Completed requests, by route; all pages of the console are one route.',
    labels: ['route', 'status'],
  },
  control_http_request_seconds: {
    type: 'histogram',
    help: 'Time from the request to the end of its response.',
    labels: ['route'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
  control_refused_total: {
    type: 'counter',
    help: 'Refused requests, by reason: credentials, role, origin, host, rate limit.',
    labels: ['reason'],
  },
  control_sign_ins_total: { type: 'counter', help: 'Sign-in attempts, by result.', labels: ['result'] },
  control_sessions: { type: 'gauge', help: 'Current sessions of people; a person may have several.' },
  control_live_connections: { type: 'gauge', help: 'Open live channels.' },
  control_live_frames_total: { type: 'counter', help: 'Frames sent over live channels.' },
  control_live_bytes_total: { type: 'counter', help: 'Bytes sent over live channels.' },
  control_nodes: { type: 'gauge', help: 'Polled nodes.' },
  control_node_requests_total: { type: 'counter', help: 'Poll requests to nodes.' },
  control_node_failures_total: { type: 'counter', help: 'Poll requests without a valid response.' },
  control_poll_round_seconds: { type: 'gauge', help: 'Duration of the last poll round over all nodes.' },
  control_database_up: { type: 'gauge', help: '1 while the database responds.' },
  tls_cert_not_after_seconds: {
    type: 'gauge',
    help: 'Expiry of the certificate of a listener, seconds since 1970.',
    labels: ['listener'],
  },
} as const satisfies MetricsTable
