'use client'
/** The last 15 minutes of the whole cluster: five small charts with a shared cross-hair. */

import type { SeriesBody, SeriesName } from '@vacancy/shared/contract'
import { memo, useMemo } from 'react'
import { Panel } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import { SeriesChart } from './metric-charts.tsx'
import { useSeries } from './queries.ts'
import { combined } from './series.ts'

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const most = (values: readonly number[]) =>
  values.reduce((top, value) => Math.max(top, value), Number.NEGATIVE_INFINITY)

const CHARTS: readonly {
  title: string
  name: SeriesName
  unit: string
  combine: (values: readonly number[]) => number
}[] = [
  { title: copy.cluster.queries, name: 'queries', unit: '1/s', combine: sum },
  { title: copy.cluster.p99, name: 'p99', unit: 'ms', combine: most },
  { title: copy.cluster.writes, name: 'writes', unit: '1/s', combine: sum },
  { title: copy.cluster.lag, name: 'lag_entries', unit: 'entries', combine: most },
  { title: copy.cluster.leaderChanges, name: 'leader_moves', unit: '', combine: sum },
]

const FROM = 'now-15m'
const HEIGHT = 120

export function ClusterCharts() {
  const series = useSeries(
    {},
    CHARTS.map((chart) => chart.name),
    FROM,
  )
  return (
    <Panel title={copy.cluster.title} query={series} at={(body) => body.to} skeleton={11}>
      {(body) => (
        <div className="grid gap-x-6 gap-y-4 sm:grid-cols-2 lg:grid-cols-3">
          {CHARTS.map((chart) => (
            <ClusterChart key={chart.name} chart={chart} body={body} />
          ))}
        </div>
      )}
    </Panel>
  )
}

type ClusterChartProps = { readonly chart: (typeof CHARTS)[number]; readonly body: SeriesBody }

/** Memoized: rendered again only with new values. */
const ClusterChart = memo(function ClusterChart({ chart, body }: ClusterChartProps) {
  const series = useMemo(
    () => [{ label: copy.cluster.all, values: combined(body, chart.name, chart.combine) }],
    [body, chart],
  )
  return <SeriesChart chart={chart} body={body} series={series} sync="overview" height={HEIGHT} />
})
