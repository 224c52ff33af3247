/** The metrics of `vacancy bridge`. docs/fabric-metrics.md is generated from them. */

import type { MetricsTable } from '@vacancy/shared/node'
import { CERTIFICATE_METRIC, forwardMetrics } from '../forward/metrics.ts'

export const BRIDGE_METRICS = {
  ...forwardMetrics('bridge', 'node'),
  bridge_node_role: {
    type: 'gauge',
    help: '1 for the role that each node has now: leader, follower or other.',
    labels: ['node', 'role'],
  },
  bridge_node_lag_entries: {
    type: 'gauge',
    help: 'Log entries that a node is behind the leader; absent where the node does not report it.',
    labels: ['node'],
  },
  bridge_hedges_total: { type: 'counter', help: 'Reads that were sent to a second node as well (`--hedge-after-ms`).' },
  bridge_hedges_won_total: { type: 'counter', help: 'Hedged reads whose reply came from the second node.' },
  bridge_leader_changes_total: { type: 'counter', help: 'Times that another node became leader.' },
  bridge_discovery_rounds_total: {
    type: 'counter',
    help: 'Rounds of discovery: `ok`, `no_leader` or `failed`.',
    labels: ['result'],
  },
  bridge_discovery_errors_total: {
    type: 'counter',
    help: 'Nodes left out of a round of discovery, by the step that failed; `identity`: it is another node than expected.',
    labels: ['step'],
  },
  bridge_registry_up: { type: 'gauge', help: '1 while the registry responds.' },
  bridge_resolver_errors_total: { type: 'counter', help: 'Failed host lookups.' },
  bridge_heartbeat_age_seconds: { type: 'gauge', help: 'Time since the last accepted registration; absent before.' },
  tls_cert_not_after_seconds: CERTIFICATE_METRIC,
} as const satisfies MetricsTable
