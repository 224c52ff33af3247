'use client'
/** The chart of one figure of the cluster, with the time range of the page. */

import type { SeriesName } from '@vacancy/shared/contract'
import { useMemo } from 'react'
import { ErrorState, Skeleton } from '../../ui/panel.tsx'
import { ChartContext } from '../../ui/time-chart.tsx'
import { combined } from './combined.ts'
import * as copy from './copy.ts'
import { SeriesChart } from './metric-charts.tsx'
import { useSeries } from './queries.ts'
import { fromFirst } from './series.ts'
import { TimeControls } from './time-controls.tsx'
import { useTimeRange } from './time-state.ts'

type FigureChartProps = {
  readonly name: SeriesName
  readonly title: string
  readonly unit: string
  readonly combine: (values: readonly number[]) => number
}

const FALLBACK = 'now-15m'
const HEIGHT = 168
const CLUSTER = {}

export function FigureChart({ name, title, unit, combine }: FigureChartProps) {
  const state = useTimeRange(FALLBACK)
  const names = useMemo(() => [name], [name])
  const { data: whole, error, refetch } = useSeries(CLUSTER, names, state.range)
  const data = useMemo(() => whole && fromFirst(whole), [whole])
  const series = useMemo(
    () => data && [{ label: copy.cluster.all, values: combined(data, name, combine) }],
    [data, name, combine],
  )
  return (
    <div className="flex min-w-0 flex-col gap-2">
      <TimeControls {...state} isCompact />
      {data && series ? (
        <ChartContext value={state.control}>
          <SeriesChart
            chart={{ title, unit, names }}
            body={data}
            series={series}
            of={CLUSTER}
            sync="overview"
            height={HEIGHT}
          />
        </ChartContext>
      ) : error ? (
        <ErrorState error={error} onRetry={refetch} />
      ) : (
        <Skeleton rows={7} />
      )}
    </div>
  )
}
