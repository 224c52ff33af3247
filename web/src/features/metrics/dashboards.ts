/** The dashboards: which series each of their charts shows. */
import { SERIES, type SeriesName } from '@vacancy/shared/series'
import * as copy from './copy.ts'

export type DashboardChart = {
  readonly title: string
  readonly unit: string
  /** Several series of one unit share a chart. */
  readonly names: readonly SeriesName[]
}

export type Dashboard = {
  readonly id: string
  readonly title: string
  /** Its series exist for each shard and node, too. */
  readonly hasShards: boolean
  readonly charts: readonly DashboardChart[]
}

const chart = (title: string, ...names: readonly [SeriesName, ...SeriesName[]]): DashboardChart => ({
  ...{ title, unit: SERIES[names[0]].unit, names },
})

/** Series with a chart on the pages of shards and nodes. */
type TitledSeries = { [Name in SeriesName]: (typeof SERIES)[Name] extends { title: string } ? Name : never }[SeriesName]

/** The chart of one series, with the title it has on those pages. */
const titled = (name: TitledSeries): DashboardChart => chart(SERIES[name].title, name)

const { dashboards, charts } = copy

export const DASHBOARDS: readonly Dashboard[] = [
  {
    ...{ id: 'engine', title: dashboards.engine, hasShards: true },
    charts: [
      titled('queries'),
      chart(charts.latency, 'p50', 'p99'),
      titled('errors'),
      titled('writes'),
      titled('connections'),
      titled('cpu'),
      titled('memory'),
      chart(charts.staysHeld, 'stays_held'),
      chart(charts.stays, 'stays_holds', 'stays_booked', 'stays_confirmed', 'stays_released', 'stays_expired'),
      chart(charts.staysRefused, 'refused_sold_out', 'refused_price', 'refused_expired', 'refused_conflict'),
      chart(charts.oversold, 'nights_oversold'),
    ],
  },
  {
    ...{ id: 'consensus', title: dashboards.consensus, hasShards: true },
    charts: [
      chart(charts.leaderChanges, 'leader_moves'),
      titled('lag_entries'),
      chart(charts.lagSeconds, 'lag_seconds'),
      titled('commit_p99'),
      titled('fsync_p99'),
      titled('wal'),
    ],
  },
  {
    ...{ id: 'fabric', title: dashboards.fabric, hasShards: false },
    charts: [
      chart(charts.fabricRequests, 'fabric_reads', 'fabric_writes'),
      chart(charts.fabricErrors, 'fabric_errors'),
      chart(charts.fabricP99, 'fabric_p99'),
      chart(charts.components, 'fabric_components', 'fabric_down'),
    ],
  },
  {
    ...{ id: 'queue', title: dashboards.queue, hasShards: false },
    charts: [
      chart(charts.queueRates, 'queue_in', 'queue_out', 'queue_failed'),
      chart(charts.queueDepth, 'queue_ready', 'queue_leased', 'queue_delayed'),
      chart(charts.queueDead, 'queue_dead'),
      chart(charts.consumers, 'queue_consumers'),
    ],
  },
  {
    ...{ id: 'import', title: dashboards.import, hasShards: false },
    charts: [chart(charts.importRecords, 'import_records'), chart(charts.imports, 'import_running')],
  },
  {
    ...{ id: 'console', title: dashboards.console, hasShards: false },
    charts: [
      chart(charts.polls, 'control_polls', 'control_failures'),
      chart(charts.round, 'control_round'),
      chart(charts.clients, 'control_clients'),
      chart(charts.frames, 'control_frames'),
      chart(charts.bytes, 'control_bytes'),
      chart(charts.controlMemory, 'control_memory'),
    ],
  },
]
