/** The metrics of `vacancy router`. docs/fabric-metrics.md is generated from them. */

import { counter, gauge, type MetricsTable, SPANS_METRIC, TOKEN_END_METRIC } from '@vacancy/shared/node'
import { CERTIFICATE_METRIC, FAULT_METRIC, forwardMetrics } from '../forward/metrics.ts'

export const ROUTER_METRICS = {
  ...forwardMetrics('router', 'hop'),
  router_shard_fault: FAULT_METRIC,
  router_spans_total: SPANS_METRIC,
  router_routes: gauge('Segments that this router can route.'),
  router_table_age_seconds: gauge('Time since the registry last confirmed the routes; absent before.'),
  router_registry_up: gauge('1 while the registry responds.'),
  router_resolver_errors_total: counter('Failed host lookups.'),
  router_heartbeat_age_seconds: gauge('Time since the last accepted registration; absent before, and in edge mode.'),
  tls_cert_not_after_seconds: CERTIFICATE_METRIC,
  token_not_after_seconds: TOKEN_END_METRIC,
} as const satisfies MetricsTable
