'use client'
/** The whole cluster in its last 15 minutes: five small charts with one cross-hair. */

import type { SeriesBody, SeriesName } from '@vacancy/shared/contract'
import { memo, useMemo } from 'react'
import { Panel } from '../../ui/panel.tsx'
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
  { title: 'Queries', name: 'queries', unit: '1/s', combine: sum },
  { title: 'Slowest read p99', name: 'p99', unit: 'ms', combine: most },
  { title: 'Writes', name: 'writes', unit: '1/s', combine: sum },
  { title: 'Largest lag', name: 'lag_entries', unit: 'entries', combine: most },
  { title: 'Leader changes', name: 'leader_moves', unit: '', combine: sum },
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
    <Panel title="Last 15 min, whole cluster" query={series} at={(body) => body.to} skeleton={11}>
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

/** Drawn anew with its values, not with the page around it. */
const ClusterChart = memo(function ClusterChart({ chart, body }: ClusterChartProps) {
  const series = useMemo(() => [{ label: 'all', values: combined(body, chart.name, chart.combine) }], [body, chart])
  return <SeriesChart chart={chart} body={body} series={series} sync="overview" height={HEIGHT} />
})
