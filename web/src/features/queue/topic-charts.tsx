'use client'
/** The course of a topic: rates, waiting jobs, the oldest age and latencies, with one cross-hair. */
import type { TopicHistory, TopicSeries } from '@vacancy/shared/contract'
import { memo, useMemo } from 'react'
import { duration } from '../../lib/format.ts'
import { useUrlChoice } from '../../lib/url.ts'
import { Chip } from '../../ui/badge.tsx'
import { Panel } from '../../ui/panel.tsx'
import { TimeChart } from '../../ui/time-chart.tsx'
import * as copy from './copy.ts'
import { useTopicHistory } from './queries.ts'

type Chart = {
  readonly title: string
  /** Empty for seconds, which are shown as a duration. */
  readonly unit: string
  readonly series: readonly TopicSeries[]
}

const CHARTS: readonly Chart[] = [
  { title: copy.charts.rates, unit: '1/s', series: ['in', 'out', 'failed'] },
  { title: copy.charts.waiting, unit: copy.charts.jobs, series: ['ready', 'delayed', 'leased'] },
  { title: copy.charts.oldest, unit: '', series: ['oldest'] },
  { title: copy.charts.delivery, unit: '', series: ['deliveryP50', 'deliveryP99'] },
  { title: copy.charts.handling, unit: '', series: ['handlingP50', 'handlingP99'] },
  { title: copy.charts.dead, unit: copy.charts.jobs, series: ['dead'] },
]
const RANGES = ['60', '15'] as const

export function TopicCharts({ topic }: { readonly topic: string }) {
  const [minutes, setMinutes] = useUrlChoice('minutes', RANGES)
  const query = useTopicHistory(topic, Number(minutes))
  return (
    <Panel
      title={copy.charts.title}
      query={query}
      at={({ to }) => to}
      skeleton={12}
      actions={
        // biome-ignore lint/a11y/useSemanticElements: a fieldset would draw a box around chips.
        <div role="group" aria-label={copy.charts.range} className="flex gap-1">
          {RANGES.toReversed().map((one) => (
            <Chip key={one} pressed={minutes === one} onClick={() => setMinutes(one, { push: true })}>
              {copy.charts.minutes(one)}
            </Chip>
          ))}
        </div>
      }
    >
      {(history) => (
        <div className="grid gap-x-6 gap-y-5 md:grid-cols-2">
          {CHARTS.map((chart) => (
            <TopicChart key={chart.title} chart={chart} history={history} />
          ))}
        </div>
      )}
    </Panel>
  )
}

/** Memoized: drawn again only with new values. */
const TopicChart = memo(function TopicChart({
  chart: { title, unit, series },
  history,
}: {
  readonly chart: Chart
  readonly history: TopicHistory
}) {
  const lines = useMemo(
    () =>
      series.map((name) => ({
        label: copy.charts.series[name],
        values: history.series.find((one) => one.name === name)?.values ?? [],
      })),
    [series, history],
  )
  const { from, to, stepSeconds } = history
  return (
    <div className="min-w-0">
      <TimeChart
        {...{ title, unit, from, to, stepSeconds }}
        series={lines}
        sync="queue-topic"
        noData={copy.charts.noData}
        {...(unit === '' && { format: (seconds: number) => duration(seconds * 1_000) })}
        {...(unit === '1/s' && { format: (value: number) => String(Math.round(value * 10) / 10) })}
      />
    </div>
  )
})
