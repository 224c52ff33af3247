'use client'
/** The metrics of a shard, all nodes in each chart. */

import { ShardFrame } from '../shards/shard-page.tsx'
import { MetricCharts } from './metric-charts.tsx'

export function ShardMetricsPage({ id }: { readonly id: string }) {
  return (
    <ShardFrame id={id} tab="metrics">
      {() => <MetricCharts shard={id} />}
    </ShardFrame>
  )
}
