/**
 * The metrics of the fabric's services (docs/design/http.md#metrics), one table per service. docs/fabric-metrics.md
 * is generated from them. `process_*` and `nodejs_*` come from prom-client.
 */

import type { MetricsTable } from '@vacancy/shared/node'

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60] as const

/** Limit for a label with caller-defined values: distinct series before the rest is `other`. */
export const SERIES_MAX = 1_000

export const REGISTRY_METRICS = {
  registry_requests_total: {
    type: 'counter',
    help: 'Requests by the pattern of their path; unknown paths as `none`.',
    labels: ['endpoint'],
  },
  registry_request_duration_seconds: {
    type: 'histogram',
    help: 'Time from the request to its response, including the wait of `GET /versions`.',
    labels: ['endpoint'],
    buckets: SECONDS,
  },
  registry_request_errors_total: {
    type: 'counter',
    help: 'Responses with 4xx (`client_error`) and 5xx (`server_error`).',
    labels: ['endpoint', 'error'],
  },
  registry_registered_routers: { type: 'gauge', help: 'Registered routers.' },
  registry_registered_bridges: { type: 'gauge', help: 'Registered bridges.' },
  registry_registered_nodes: { type: 'gauge', help: 'Registered nodes.' },
  registry_registered_zones: { type: 'gauge', help: 'Zones with at least one component.' },
  registry_heartbeat_timeout_total: {
    type: 'counter',
    help: 'Components removed because their heartbeats stopped.',
    labels: ['kind'],
  },
  registry_segment_updates_total: {
    type: 'counter',
    help: 'Segment lists that changed the state; beyond 1,000 shards, the rest as `other`.',
    labels: ['shard'],
  },
  registry_segment_update_last_timestamp: {
    type: 'gauge',
    help: 'Time of the last change by a segment list, seconds since 1970.',
  },
  registry_json_write_total: { type: 'counter', help: 'Successful writes of the state; on etcd, of changes.' },
  registry_json_write_errors_total: {
    type: 'counter',
    help: 'Failed writes of the state; on etcd, times that it became unavailable or refused a write.',
  },
  registry_last_persist_timestamp: { type: 'gauge', help: 'Time of the last write of the state, seconds since 1970.' },
  registry_segment_conflicts: { type: 'gauge', help: 'Segments that more than one shard claims.' },
  registry_identity_conflicts_total: {
    type: 'counter',
    help: 'Heartbeats with an id that another process uses as well.',
    labels: ['kind'],
  },
  registry_rejected_total: {
    type: 'counter',
    help: 'Refused requests: `invalid`, `limit`, `too_large`, `conflict`, `stale_term`, `zone`, `unauthorized`, `forbidden`.',
    labels: ['reason'],
  },
  registry_component_age_seconds: {
    type: 'gauge',
    help: 'Time since the last heartbeat; beyond 1,000 components, the oldest of the others as `other`.',
    labels: ['kind', 'id'],
  },
  registry_storage_up: {
    type: 'gauge',
    help: '1 when the last write of the state succeeded; on etcd, when it responds and accepts writes.',
  },
  registry_storage_latency_seconds: { type: 'histogram', help: 'Time to write the state.', buckets: SECONDS },
  tls_cert_not_after_seconds: {
    type: 'gauge',
    help: "Expiry of the listener's certificate, seconds since 1970; absent without TLS.",
    labels: ['listener'],
  },
} as const satisfies MetricsTable

export const RESOLVER_METRICS = {
  resolver_requests_total: {
    type: 'counter',
    help: 'Requests by the pattern of their path and the status of the response; unknown paths as `none`.',
    labels: ['endpoint', 'status'],
  },
  resolver_entries: { type: 'gauge', help: 'Ids in the table.', labels: ['kind'] },
  resolver_file_errors_total: { type: 'counter', help: 'Changes of the file that could not be loaded.' },
} as const satisfies MetricsTable
