/** Texts of metric charts and dashboards. */
import type { ClusterEvent } from '@vacancy/shared/contract'
import { counted } from '../../lib/format.ts'

export const cluster = { all: 'all' }

export const page = {
  title: 'Metrics',
  label: 'Dashboards',
  shard: 'Shard',
  allShards: 'All shards',
  unknownTitle: 'Dashboard not found',
  unknown: (id: string) => `There is no dashboard ${id}. The dashboards are:`,
  recordedFrom: (time: string) => `Nothing was recorded in this time range before ${time} UTC.`,
  more: (lines: number) => `and ${lines} more with lower values`,
}

export const time = {
  range: 'Time range',
  presets: {
    'now-5m': '5 min',
    'now-15m': '15 min',
    'now-1h': '1 h',
    'now-6h': '6 h',
    'now-24h': '24 h',
  },
  typed: 'Type a time range',
  invalid: 'Not a time range. Such as now-3h, 18:20, or 2026-11-20 18:00..18:30 (UTC).',
  earlier: 'Earlier',
  later: 'Later',
  zoomIn: 'Zoom in',
  zoomOut: 'Zoom out',
  hint: 'Drag on a chart to zoom, click to pin a time.',
  pinned: (at: string) => `Pinned ${at}`,
  unpin: 'Unpin',
  open: 'Open this moment',
  events: 'Events on the charts',
  list: (events: number) => `${counted(events, 'event')} in this time range`,
  none: 'No events of these kinds in this time range.',
}

const KINDS: Record<ClusterEvent['kind'], string> = {
  leader: 'leader',
  role: 'election',
  state: 'state',
  membership: 'member',
  restart: 'restart',
  snapshot: 'snapshot',
  codecs: 'codecs',
  operation: 'operation',
}

export const marks = {
  short: ({ kind, node, shard }: Pick<ClusterEvent, 'kind' | 'node' | 'shard'>) =>
    kind === 'leader' && node !== null ? `${shard} → ${node}` : `${KINDS[kind]} ${node ?? shard}`,
}

export const dashboards = {
  engine: 'Engine',
  consensus: 'Consensus',
  fabric: 'Fabric',
  queue: 'Queue',
  import: 'Import',
  console: 'Control plane',
}

export const charts = {
  latency: 'Read latency',
  staysHeld: 'Stays on hold',
  stays: 'Stays',
  staysRefused: 'Refused stays by reason',
  oversold: 'Oversold nights',
  leaderChanges: 'Leader changes',
  lagSeconds: 'Lag in time',
  fabricRequests: 'Requests',
  fabricErrors: 'Failed requests',
  fabricP99: 'Slowest p99',
  components: 'Components',
  queueRates: 'Jobs',
  queueDepth: 'Waiting jobs',
  queueDead: 'Dead jobs',
  consumers: 'Consumers',
  importRecords: 'Records built',
  imports: 'Running imports',
  polls: 'Polls of nodes',
  round: 'Poll round',
  clients: 'Open browsers',
  frames: 'Live frames',
  bytes: 'Live bytes per second',
  controlMemory: 'Memory of the control plane',
}
