'use client'
/** Charts of one shard or node: one time range for all of them, changes of leadership and restarts as marks. */

import type { ClusterEvent } from '@vacancy/shared/contract'
import { bytes, duration, shortCount } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlChoice } from '../../lib/url.ts'
import { Chip } from '../../ui/badge.tsx'
import { Panel } from '../../ui/panel.tsx'
import { TimeChart } from '../../ui/time-chart.tsx'
import { useShardEvents } from '../shards/queries.ts'
import { useSeries } from './queries.ts'
import { type ChartSpec, isBlank, linesOf, RANGE_SAYS, RANGES, SHARD_CHARTS } from './series.ts'

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
  const marks = (events.data?.events ?? [])
    .filter((event) => MARKED.includes(event.kind))
    .map((event) => ({ at: event.at, label: event.says, href: routes.shardEvents(shard) }))
  return (
    <Panel
      title="Metrics"
      query={series}
      at={(body) => body.to}
      skeleton={12}
      actions={
        // biome-ignore lint/a11y/useSemanticElements: a fieldset would draw a box around chips.
        <div role="group" aria-label="Time range" className="flex gap-1">
          {(['now-15m', 'now-1h', 'now-6h', 'now-24h'] as const).map((one) => (
            <Chip key={one} pressed={range === one} onClick={() => setRange(one, { push: true })}>
              {RANGE_SAYS[one]}
            </Chip>
          ))}
        </div>
      }
    >
      {(body) => (
        <div className="grid gap-x-6 gap-y-5 md:grid-cols-2 lg:grid-cols-3">
          {SHARD_CHARTS.map((chart) => {
            const { lines, leftOut } = linesOf(body, chart.name)
            return (
              <div key={chart.id} className="min-w-0">
                <TimeChart
                  title={chart.title}
                  unit={chart.unit}
                  from={body.from}
                  to={body.to}
                  stepSeconds={body.stepSeconds}
                  series={lines}
                  marks={marks}
                  sync={`metrics-${shard}`}
                  format={formatOf(chart)}
                />
                {isBlank(lines) && <p className="text-small text-text-3">Not told in this time.</p>}
                {leftOut > 0 && <p className="text-small text-text-3">and {leftOut} more with lower values</p>}
              </div>
            )
          })}
        </div>
      )}
    </Panel>
  )
}

/** Values as the unit has them: bytes and milliseconds change their unit with their size. */
export function formatOf({ unit }: Pick<ChartSpec, 'unit'>): (value: number) => string {
  if (unit === 'B') return bytes
  if (unit === 'ms') return duration
  return (value) => (Number.isInteger(value) || Math.abs(value) >= 100 ? shortCount(value) : value.toFixed(2))
}
