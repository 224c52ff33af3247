/** The metrics of `vacancy bridge`. docs/fabric-metrics.md is generated from them. */

import { counter, gauge, type MetricsTable, SPANS_METRIC, TOKEN_END_METRIC } from '@vacancy/shared/node'
import { CERTIFICATE_METRIC, FAULT_METRIC, forwardMetrics } from '../forward/metrics.ts'

export const BRIDGE_METRICS = {
  ...forwardMetrics('bridge', 'node'),
  bridge_shard_fault: FAULT_METRIC,
  bridge_spans_total: SPANS_METRIC,
  bridge_node_role: gauge('1 for the role that each node has now: leader, follower or other.', ['node', 'role']),
  bridge_node_lag_entries: gauge(
    'Log entries that a node is behind the leader; absent where the node does not report it.',
    ['node'],
  ),
  bridge_hedges_total: counter('Reads that were sent to a second node as well (`--hedge-after-ms`).'),
  bridge_hedges_won_total: counter('Hedged reads whose reply came from the second node.'),
  bridge_leader_changes_total: counter('Times that another node became leader.'),
  bridge_discovery_rounds_total: counter('Rounds of discovery: `ok`, `no_leader` or `failed`.', ['result']),
  bridge_discovery_errors_total: counter(
    'Nodes left out of a round of discovery, by the step that failed; `identity`: it is another node than expected.',
    ['step'],
  ),
  bridge_registry_up: gauge('1 while the registry responds.'),
  bridge_resolver_errors_total: counter('Failed host lookups.'),
  bridge_heartbeat_age_seconds: gauge('Time since the last accepted registration; absent before.'),
  tls_cert_not_after_seconds: CERTIFICATE_METRIC,
  token_not_after_seconds: TOKEN_END_METRIC,
} as const satisfies MetricsTable
