/**
 * The metrics of the fabric's services (docs/design/http.md#metrics), one table per service. docs/fabric-metrics.md
 * is generated from them. `process_*` and `nodejs_*` come from prom-client.
 */

import {
  CERTIFICATE_END_METRIC,
  counter,
  gauge,
  histogram,
  type MetricsTable,
  TOKEN_END_METRIC,
} from '@vacancy/shared/node'

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60] as const

/** Limit for a label with caller-defined values: distinct series before the rest is `other`. */
export const SERIES_MAX = 1_000

export const REGISTRY_METRICS = {
  registry_requests_total: counter('Requests by the pattern of their path; unknown paths as `none`.', ['endpoint']),
  registry_request_duration_seconds: {
    ...histogram('Time from the request to its response, including the wait of `GET /versions`.', ['endpoint']),
    buckets: SECONDS,
  },
  registry_request_errors_total: counter('Responses with 4xx (`client_error`) and 5xx (`server_error`).', [
    'endpoint',
    'error',
  ]),
  registry_registered_routers: gauge('Registered routers.'),
  registry_registered_bridges: gauge('Registered bridges.'),
  registry_registered_nodes: gauge('Registered nodes.'),
  registry_registered_zones: gauge('Zones with at least one component.'),
  registry_heartbeat_timeout_total: counter('Components removed because their heartbeats stopped.', ['kind']),
  registry_segment_updates_total: counter(
    'Segment lists that changed the state; beyond 1,000 shards, the rest as `other`.',
    ['shard'],
  ),
  registry_segment_update_last_timestamp: gauge('Time of the last change by a segment list, seconds since 1970.'),
  registry_json_write_total: counter('Successful writes of the state; on etcd, of changes.'),
  registry_json_write_errors_total: counter(
    'Failed writes of the state; on etcd, times that it became unavailable or refused a write.',
  ),
  registry_last_persist_timestamp: gauge('Time of the last write of the state, seconds since 1970.'),
  registry_segment_conflicts: gauge('Segments that more than one shard claims.'),
  registry_identity_conflicts_total: counter('Heartbeats with an id that another process uses as well.', ['kind']),
  registry_rejected_total: counter(
    'Refused requests: `invalid`, `limit`, `too_large`, `conflict`, `stale_term`, `zone`, `unauthorized`, `forbidden`.',
    ['reason'],
  ),
  registry_component_age_seconds: gauge(
    'Time since the last heartbeat; beyond 1,000 components, the oldest of the others as `other`.',
    ['kind', 'id'],
  ),
  registry_storage_up: gauge(
    '1 when the last write of the state succeeded; on etcd, when it responds and accepts writes.',
  ),
  registry_storage_latency_seconds: { ...histogram('Time to write the state.'), buckets: SECONDS },
  tls_cert_not_after_seconds: CERTIFICATE_END_METRIC,
  token_not_after_seconds: TOKEN_END_METRIC,
} as const satisfies MetricsTable

export const RESOLVER_METRICS = {
  resolver_requests_total: counter(
    'Requests by the pattern of their path and the status of the response; unknown paths as `none`.',
    ['endpoint', 'status'],
  ),
  resolver_entries: gauge('Ids in the table.', ['kind']),
  resolver_file_errors_total: counter('Changes of the file that could not be loaded.'),
} as const satisfies MetricsTable
