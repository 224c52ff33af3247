'use client'
/** Charts with one time range, which is in the URL; leader changes, restarts and operations are marked. */

import type { SeriesBody, ShardView } from '@vacancy/shared/contract'
import { type ComponentProps, memo, useDeferredValue, useMemo } from 'react'
import { bytes, clock, duration, figure } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { useUrlParam } from '../../lib/url.ts'
import { NO_SECOND_COLUMN, NO_THIRD_COLUMN, useMedia } from '../../ui/media.ts'
import { Panel } from '../../ui/panel.tsx'
import { ChartContext, TimeChart } from '../../ui/time-chart.tsx'
import type { ChartMark } from '../../ui/time-chart-lines.ts'
import * as copy from './copy.ts'
import type { DashboardChart } from './dashboards.ts'
import { kindsOf, type MarkKind, marksOf, toggledKinds } from './marks.ts'
import { useEvents, useSeries } from './queries.ts'
import { fromFirst, hasPromql, linesOf, looksOf, nodesOf, SHARD_CHARTS } from './series.ts'
import { MarkControls, TimeControls } from './time-controls.tsx'
import { type TimeState, useTimeRange } from './time-state.ts'

type ChartOwner = { readonly shard?: string; readonly node?: string }

/** Rendered first; the others follow once these are on the screen. */
const FIRST = 6
const FALLBACK = 'now-1h'
const NO_EVENTS: never[] = []
const idsOf = ({ nodes }: ShardView) => nodes.map(({ id }) => id)

/** All series of a shard or node. */
export function MetricCharts(of: { readonly shard: string; readonly node?: string }) {
  const { shard, node } = of
  return (
    <ChartsPanel title={copy.page.title} charts={SHARD_CHARTS} of={node === undefined ? { shard } : { shard, node }} />
  )
}

type ChartsPanelProps = {
  readonly title: string
  readonly hideTitle?: boolean
  readonly charts: readonly DashboardChart[]
  readonly of: ChartOwner
}

export function ChartsPanel({ title, hideTitle = false, charts, of }: ChartsPanelProps) {
  const state = useTimeRange(FALLBACK)
  const [chosen, setChosen] = useUrlParam('marks')
  const kinds = useMemo(() => kindsOf(chosen), [chosen])
  const names = useMemo(() => [...new Set(charts.flatMap((chart) => chart.names))], [charts])
  const series = useSeries(of, names, state.range)
  const members = useLive(of.shard === undefined ? undefined : (`shard:${of.shard}` as const), idsOf).data
  const events = useEvents(of, state.range).data?.events ?? NO_EVENTS
  // A new array draws all charts again.
  const marks = useMemo(() => marksOf(events, kinds), [events, kinds])
  return (
    <Panel title={title} hideTitle={hideTitle} query={series} at={(body) => body.to} skeleton={12}>
      {(body) => (
        <div className="flex flex-col gap-3">
          <TimeControls {...state} shard={of.shard} />
          <MarkControls
            events={events}
            kinds={kinds}
            onToggle={(kind: MarkKind) => setChosen(toggledKinds(kinds, kind), { push: true })}
          />
          <ChartGrid {...{ charts, body, marks, of, members }} control={state.control} />
        </div>
      )}
    </Panel>
  )
}

type ChartGridProps = Pick<MetricChartProps, 'body' | 'marks' | 'of'> & {
  readonly charts: readonly DashboardChart[]
  readonly members: readonly string[] | undefined
  readonly control: TimeState['control']
}

function ChartGrid({ charts, control, body: whole, members, ...rest }: ChartGridProps) {
  const count = useDeferredValue(charts.length, FIRST)
  const body = useMemo(() => fromFirst(whole), [whole])
  const looks = useMemo(() => looksOf([...(members ?? []), ...nodesOf(body)]), [members, body])
  const isSingle = useMedia(NO_SECOND_COLUMN)
  const isDouble = useMedia(NO_THIRD_COLUMN)
  const columns = isSingle ? 1 : isDouble ? 2 : 3
  return (
    <ChartContext value={control}>
      {body.recordedFrom !== undefined && (
        <p className="text-small text-text-2" data-recorded-from={body.recordedFrom}>
          {copy.page.recordedFrom(clock(body.recordedFrom))}
        </p>
      )}
      <div className="grid gap-x-6 gap-y-5 md:grid-cols-2 lg:grid-cols-3">
        {charts.map((chart, at) =>
          at < count ? (
            <MetricChart key={chart.title} hasNames={at < columns} {...{ chart, body, looks, ...rest }} />
          ) : (
            <div key={chart.title} className="h-60" />
          ),
        )}
      </div>
    </ChartContext>
  )
}

type MetricChartProps = {
  readonly chart: DashboardChart
  readonly looks: ReadonlyMap<string, number>
  readonly hasNames: boolean
  readonly body: SeriesBody
  readonly marks: readonly ChartMark[]
  readonly of: ChartOwner
}

/** Memoized: rendered again only with new values. */
const MetricChart = memo(function MetricChart({ chart, body, marks, of, looks, hasNames }: MetricChartProps) {
  const { lines, hidden } = useMemo(() => linesOf(body, chart.names, looks), [body, chart, looks])
  return (
    <div className="min-w-0">
      <SeriesChart series={lines} sync="metrics" {...{ chart, body, marks, hasNames, of }} />
      {hidden > 0 && <p className="text-small text-text-3">{copy.page.more(hidden)}</p>}
    </div>
  )
})

type SeriesChartProps = {
  readonly chart: DashboardChart
  readonly body: Pick<SeriesBody, 'from' | 'to' | 'stepSeconds'>
  readonly of: ChartOwner
} & Pick<ComponentProps<typeof TimeChart>, 'series' | 'marks' | 'hasNames' | 'sync' | 'height'>

/** A chart over the time range of the response. */
export function SeriesChart({ chart, body: { from, to, stepSeconds }, of, ...rest }: SeriesChartProps) {
  return (
    <TimeChart
      title={chart.title}
      unit={SCALED.has(chart.unit) ? '' : chart.unit}
      from={from}
      to={to}
      stepSeconds={stepSeconds}
      format={formatOf(chart.unit)}
      promql={
        chart.names.some(hasPromql) ? async () => (await import('./promql.ts')).promqlOf(chart.names, of) : undefined
      }
      {...rest}
    />
  )
}

/** Bytes and milliseconds change their unit with their size, so each value has its own and the title none. */
const SCALED: ReadonlySet<string> = new Set(['B', 'ms'])

function formatOf(unit: string): (value: number) => string {
  if (unit === 'B') return bytes
  if (unit === 'ms') return duration
  return figure
}
