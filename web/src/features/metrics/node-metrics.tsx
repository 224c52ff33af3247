'use client'
/** Charts of a node, loaded on demand with the chart library. */

import dynamic from 'next/dynamic'

const MetricCharts = dynamic(() => import('./metric-charts.tsx').then((module) => module.MetricCharts), { ssr: false })

export function NodeMetrics({ shard, node }: { readonly shard: string; readonly node: string }) {
  return <MetricCharts shard={shard} node={node} />
}
