'use client'
/**
 * Load, latency and errors of the whole cluster: each figure now, with its course over 15 minutes. The chosen one has a
 * chart and the shards, or the nodes of the only shard, with the highest values.
 */

import type { NodeView, SeriesName, ShardBrief, Summary } from '@vacancy/shared/contract'
import clsx from 'clsx'
import dynamic from 'next/dynamic'
import { memo, useDeferredValue, useMemo } from 'react'
import { useMoment } from '../../lib/address.tsx'
import { count, duration, rate } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { rangeBetweenMs } from '../../lib/time-range.ts'
import { useUrlChoice } from '../../lib/url.ts'
import { Link } from '../../ui/link.tsx'
import { Skeleton } from '../../ui/panel.tsx'
import { Sparkline } from '../../ui/sparkline.tsx'
import { combined } from '../metrics/combined.ts'
import { useSeries } from '../metrics/queries.ts'
import * as copy from './copy.ts'
import { type Figure, highest, newest, type Ranked, ranked, total } from './figures.ts'

const FigureChart = dynamic(() => import('../metrics/figure-chart.tsx').then((module) => module.FigureChart), {
  ssr: false,
  loading: ChartLoading,
})

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)
const most = (values: readonly number[]) => values.reduce((top, value) => Math.max(top, value))

type Tile = {
  readonly series: SeriesName
  readonly title: string
  readonly unit: string
  readonly format: (value: number | null) => string
  readonly combine: (values: readonly number[]) => number
  readonly figure: (shards: Summary['shards'], line: readonly (number | null)[]) => Figure
  /** Of one shard and of one node, with the name of their order; absent where only the cluster has it. */
  readonly top?: {
    readonly by: string
    readonly of: (one: Pick<ShardBrief, 'rates'> & { readonly lag: number | null }) => number | null
  }
}

const TILES: readonly Tile[] = [
  {
    ...{ series: 'queries', title: copy.pulse.queries, unit: '1/s', format: rate, combine: sum },
    figure: (shards) => total(shards, 'queries'),
    top: { by: copy.pulse.by.queries, of: ({ rates }) => rates.queries },
  },
  {
    ...{ series: 'p99', title: copy.pulse.p99, unit: 'ms', format: duration, combine: most },
    figure: (shards) => highest(shards, ({ rates }) => rates.p99),
    top: { by: copy.pulse.by.p99, of: ({ rates }) => rates.p99 },
  },
  {
    ...{ series: 'errors', title: copy.pulse.errors, unit: '1/s', format: rate, combine: sum },
    figure: (shards) => total(shards, 'errors'),
    top: { by: copy.pulse.by.errors, of: ({ rates }) => rates.errors },
  },
  {
    ...{ series: 'writes', title: copy.pulse.writes, unit: '1/s', format: rate, combine: sum },
    figure: (shards) => total(shards, 'writes'),
    top: { by: copy.pulse.by.writes, of: ({ rates }) => rates.writes },
  },
  {
    ...{ series: 'lag_entries', title: copy.pulse.lag, unit: 'entries', format: count, combine: most },
    figure: (shards) => highest(shards, ({ maxLagEntries }) => maxLagEntries),
    top: { by: copy.pulse.by.lag, of: ({ lag }) => lag },
  },
  {
    ...{ series: 'leader_moves', title: copy.pulse.leaderChanges, unit: '', format: count, combine: sum },
    // Counted over the whole course, unlike the others.
    figure: (_, line) => {
      const values = line.filter((value) => value !== null)
      return { value: values.length === 0 ? null : sum(values) }
    },
  },
]

const NAMES = TILES.map(({ series }) => series) as [SeriesName, ...SeriesName[]]
/** In a past view, before its moment. */
const COURSE_MS = 15 * 60_000
const NO_LINE: readonly (number | null)[] = []
const RANKED_MAX = 6

export function Pulse({ summary }: { readonly summary: Summary }) {
  const moment = useMoment()
  const range = useMemo(() => {
    if (moment === undefined) return { from: 'now-15m', to: 'now' }
    const at = Date.parse(moment)
    return rangeBetweenMs(at - COURSE_MS, at)
  }, [moment])
  const { data } = useSeries({}, NAMES, range)
  const lines = useMemo(
    () => new Map(data && TILES.map(({ series, combine }) => [series, combined(data, series, combine)])),
    [data],
  )
  const [chosen, choose] = useUrlChoice('figure', NAMES)
  // The chart waits until the attention list is on the screen.
  const isTimeForChart = useDeferredValue(true, false)
  const isOne = summary.shards.length === 1
  const tile = TILES.find(({ series }) => series === chosen) as Tile
  return (
    <section aria-label={copy.pulse.title} className="rounded-panel border border-line bg-surface">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would draw a box around buttons. */}
      <div role="group" aria-label={copy.pulse.figures} className="grid grid-cols-3 lg:grid-cols-6">
        {TILES.map((each) => {
          const line = lines.get(each.series) ?? NO_LINE
          const { value: now, shard } = each.figure(summary.shards, line)
          // Figures of a recorded state are up to a minute old; those of the course are of its end.
          const value = moment !== undefined && each.top ? (newest(line) ?? now) : now
          return (
            <TileView
              key={each.series}
              tile={each}
              line={line}
              text={each.format(value)}
              shard={isOne || value === 0 ? undefined : shard}
              isChosen={each === tile}
              onChoose={choose}
            />
          )
        })}
      </div>
      <div
        className={clsx(
          'grid min-h-72 gap-x-8 gap-y-4 border-line border-t px-4 py-3',
          tile.top && 'md:grid-cols-[minmax(0,1fr)_13rem]',
        )}
      >
        {isTimeForChart ? (
          <FigureChart name={tile.series} title={tile.title} unit={tile.unit} combine={tile.combine} />
        ) : (
          <ChartLoading />
        )}
        {tile.top && <Top summary={summary} top={tile.top} format={tile.format} />}
      </div>
    </section>
  )
}

function ChartLoading() {
  return <Skeleton rows={8} />
}

type TileViewProps = {
  readonly tile: Tile
  readonly line: readonly (number | null)[]
  readonly text: string
  readonly shard: string | undefined
  readonly isChosen: boolean
  readonly onChoose: (series: SeriesName, options: { readonly push: boolean }) => void
}

const TileView = memo(function TileView({ tile, line, text, shard, isChosen, onChoose }: TileViewProps) {
  const { series, title, format } = tile
  const values = line.filter((value) => value !== null)
  const course =
    values.length === 0
      ? copy.pulse.noCourse(title)
      : copy.pulse.course(title, format(Math.min(...values)), format(Math.max(...values)))
  return (
    <button
      type="button"
      data-figure={series}
      aria-pressed={isChosen}
      onClick={() => onChoose(series, { push: true })}
      className={clsx(
        'grid min-w-0 gap-0.5 border-b-2 first:rounded-ss-panel last:lg:rounded-se-panel py-2.5 ps-4 pe-2 text-start max-sm:ps-3 max-sm:pe-1',
        isChosen ? 'border-accent bg-info-bg' : 'border-transparent hover:bg-sunken',
      )}
    >
      <span className="flex items-baseline gap-x-1.5 whitespace-nowrap text-small text-text-2">
        <span className="truncate">{title}</span>
        {shard !== undefined && <span className="font-mono max-sm:hidden">{shard}</span>}
      </span>
      <span className="whitespace-nowrap font-semibold tabular-nums sm:text-title">{text}</span>
      <Sparkline label={course} values={line} className="h-5 w-full max-w-40 max-sm:hidden" />
    </button>
  )
})

type TopProps = Pick<Tile, 'format'> & {
  readonly summary: Summary
  readonly top: NonNullable<Tile['top']>
}

/** The shards with the highest values now; of a cluster of one shard its nodes. */
function Top({ summary: { shards }, top: { by, of }, format }: TopProps) {
  const only = shards.length === 1 ? shards[0] : undefined
  const nodes: readonly NodeView[] = useLive(only && (`shard:${only.id}` as const)).data?.nodes ?? []
  const { rows, more } = useMemo(() => {
    const all = only
      ? // What a node reported before it fell silent is no value of now.
        nodes.flatMap(({ id, rates, lagEntries, error }) => (error ? [] : [{ id, rates, lag: lagEntries }]))
      : shards.map(({ id, rates, maxLagEntries }) => ({ id, rates, lag: maxLagEntries }))
    return ranked(all, of, RANKED_MAX)
  }, [only, nodes, shards, of])
  const hrefOf = (id: string) => (only ? routes.node(only.id, id) : routes.shard(id))
  return (
    <div className="flex min-w-0 flex-col gap-2 md:pt-1.5">
      <h3 className="font-medium text-table">{copy.pulse.top(only ? 'nodes' : 'shards', by)}</h3>
      {rows.length === 0 ? (
        <p className="text-small text-text-2">{copy.pulse.none}</p>
      ) : (
        <ol className="grid grid-cols-[auto_minmax(0,1fr)_auto] items-center gap-x-3 gap-y-1 text-table">
          {rows.map((row) => (
            <RankedRow key={row.id} row={row} href={hrefOf(row.id)} text={format(row.value)} />
          ))}
        </ol>
      )}
      {more > 0 && <p className="text-small text-text-2">{copy.pulse.more(more)}</p>}
    </div>
  )
}

type RankedRowProps = { readonly row: Ranked; readonly href: string; readonly text: string }

function RankedRow({ row: { id, share }, href, text }: RankedRowProps) {
  return (
    <li className="contents">
      <Link href={href} className="inline-flex min-h-6 items-center font-mono">
        {id}
      </Link>
      <span aria-hidden="true" className="h-2 rounded-full bg-sunken">
        <span className="block h-full rounded-full bg-series-1" style={{ width: `${Math.max(share * 100, 1)}%` }} />
      </span>
      <span className="num">{text}</span>
    </li>
  )
}
