'use client'
/** Charts of a shard or node with one time range; leader changes, restarts and operations are marked. */

import type { ClusterEvent, SeriesBody } from '@vacancy/shared/contract'
import { type ComponentProps, memo, useMemo } from 'react'
import { bytes, duration, shortCount } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlChoice } from '../../lib/url.ts'
import { Chip } from '../../ui/badge.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type ChartMark, TimeChart } from '../../ui/time-chart.tsx'
import { useShardEvents } from '../shards/queries.ts'
import * as copy from './copy.ts'
import { useSeries } from './queries.ts'
import { type ChartSpec, isBlank, linesOf, RANGES, SHARD_CHARTS } from './series.ts'

type MetricChartsProps = { readonly shard: string; readonly node?: string }

const MARKED: readonly ClusterEvent['kind'][] = ['leader', 'restart', 'operation']
const EVENTS = 500

export function MetricCharts({ shard, node }: MetricChartsProps) {
  const [range, setRange] = useUrlChoice('from', RANGES)
  const of = node === undefined ? { shard } : { shard, node }
  const series = useSeries(
    of,
    SHARD_CHARTS.map((chart) => chart.name),
    range,
  )
  const events = useShardEvents(shard, { limit: EVENTS })
  // A new array draws all charts again.
  const marks = useMemo(
    () => (series.data ? marksOf(events.data?.events ?? [], series.data, shard) : []),
    [events.data, series.data, shard],
  )
  return (
    <Panel
      title={copy.page.title}
      query={series}
      at={(body) => body.to}
      skeleton={12}
      actions={
        // biome-ignore lint/a11y/useSemanticElements: a fieldset would draw a box around chips.
        <div role="group" aria-label={copy.page.range} className="flex gap-1">
          {(['now-15m', 'now-1h', 'now-6h', 'now-24h'] as const).map((one) => (
            <Chip key={one} pressed={range === one} onClick={() => setRange(one, { push: true })}>
              {copy.page.ranges[one]}
            </Chip>
          ))}
        </div>
      }
    >
      {(body) => (
        <div className="grid gap-x-6 gap-y-5 md:grid-cols-2 lg:grid-cols-3">
          {SHARD_CHARTS.map((chart) => (
            <MetricChart key={chart.name} chart={chart} body={body} marks={marks} sync={`metrics-${shard}`} />
          ))}
        </div>
      )}
    </Panel>
  )
}

/** Events within the shown time range. */
function marksOf(events: readonly ClusterEvent[], { from, to }: SeriesBody, shard: string): ChartMark[] {
  const [start, end] = [Date.parse(from), Date.parse(to)]
  const isWithin = (at: string) => Date.parse(at) >= start && Date.parse(at) <= end
  return events
    .filter((event) => MARKED.includes(event.kind) && isWithin(event.at))
    .map((event) => ({ at: event.at, label: event.message, href: routes.shardEvents(shard) }))
}

type MetricChartProps = {
  readonly chart: ChartSpec
  readonly body: SeriesBody
  readonly marks: readonly ChartMark[]
  readonly sync: string
}

/** Memoized: rendered again only with new values. */
const MetricChart = memo(function MetricChart({ chart, body, marks, sync }: MetricChartProps) {
  const { lines, hidden } = useMemo(() => linesOf(body, chart.name), [body, chart])
  return (
    <div className="min-w-0">
      <SeriesChart chart={chart} body={body} series={lines} marks={marks} sync={sync} />
      {isBlank(lines) && <p className="text-small text-text-3">{copy.page.noData}</p>}
      {hidden > 0 && <p className="text-small text-text-3">{copy.page.more(hidden)}</p>}
    </div>
  )
})

type SeriesChartProps = {
  readonly chart: Pick<ChartSpec, 'title' | 'unit'>
  readonly body: Pick<SeriesBody, 'from' | 'to' | 'stepSeconds'>
} & Pick<ComponentProps<typeof TimeChart>, 'series' | 'marks' | 'sync' | 'height'>

/** A chart over the time range of the response. */
export function SeriesChart({ chart, body: { from, to, stepSeconds }, ...rest }: SeriesChartProps) {
  return (
    <TimeChart
      title={chart.title}
      unit={chart.unit}
      from={from}
      to={to}
      stepSeconds={stepSeconds}
      format={formatOf(chart.unit)}
      {...rest}
    />
  )
}

/** Formats values by unit: bytes and milliseconds change their unit with their size. */
function formatOf(unit: string): (value: number) => string {
  if (unit === 'B') return bytes
  if (unit === 'ms') return duration
  return number
}

function number(value: number): string {
  return Number.isInteger(value) || Math.abs(value) >= 100 ? shortCount(value) : value.toFixed(2)
}
