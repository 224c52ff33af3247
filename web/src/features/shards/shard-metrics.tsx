'use client'

/** The metrics of a shard, all nodes in each chart. */

import { MetricCharts } from '../metrics/metric-charts.tsx'
import { ShardFrame } from './shard-page.tsx'

export function ShardMetricsPage({ id }: { readonly id: string }) {
  return (
    <ShardFrame id={id} tab="metrics">
      {() => <MetricCharts shard={id} />}
    </ShardFrame>
  )
}
