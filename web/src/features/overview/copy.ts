/** Texts of the overview. */
import { count, counted, sentence, zoneText } from '../../lib/format.ts'

export const overview = {
  title: 'Overview',
  rack: 'Key rack',
  noShards:
    'No shards yet. A shard appears here once its nodes register, or when the configuration of the control plane lists them.',
  cluster: 'Cluster',
  running: 'Running',
  events: 'Recent events',
  noEvents: 'No events since the control plane started.',
  shards: 'Shards',
  healthy: (shards: string) => `${shards} healthy`,
  nodes: 'Nodes',
  responding: (nodes: string) => `${nodes} responding`,
  packages: 'Packages',
  properties: 'Properties',
  window: 'Window',
  zone: (zone: string) => sentence(zoneText(zone)),
  shardsChanged: (shards: number) => `${counted(shards, 'shard')} changed state`,
}

export const rack = {
  allHealthy: (shards: number) => (shards === 1 ? '1 shard, healthy' : `${count(shards)} shards, all healthy`),
  problems: (problems: number, shards: number) => `${count(problems)} of ${counted(shards, 'shard')} not healthy`,
  strip: (healthy: number, shards: number) => `${count(healthy)} of ${counted(shards, 'shard')} healthy`,
  zoneActions: (zone: string) => `Actions for ${zoneText(zone)}`,
  showInTable: 'Show in the table of shards',
  prepare: 'Prepare for restart…',
  show: 'Show',
  hide: 'Hide',
  showZone: (zone: string) => `Show all shards of ${zone}`,
  hideZone: (zone: string) => `Hide healthy shards of ${zone}`,
}

export const pulse = {
  title: 'Load, latency and errors of the cluster',
  figures: 'Figures',
  queries: 'Queries',
  p99: 'Read p99',
  errors: 'Errors',
  writes: 'Writes',
  lag: 'Largest lag',
  leaderChanges: 'New leaders',
  by: { queries: 'queries', p99: 'read p99', errors: 'errors', writes: 'writes', lag: 'lag' },
  top: (what: 'shards' | 'nodes', by: string) => `Top ${what} by ${by}`,
  none: 'None.',
  more: (rest: number) => `and ${count(rest)} more`,
  course: (title: string, lowest: string, highest: string) => `${title}, last 15 min: ${lowest} to ${highest}`,
  noCourse: (title: string) => `${title}: nothing recorded yet`,
}

export const oneShard = {
  title: (shard: string) => `Shard ${shard}`,
  open: (shard: string) => `Open ${shard}`,
  spare: 'Voters that may fail',
  memory: 'Store memory in use',
  connections: 'Connections',
  disk: 'Least free disk',
  snapshot: 'Newest snapshot',
  maintenance: 'Next maintenance',
  maintenanceAt: (time: string, left: string) => `${time} UTC, in ${left}`,
  noMaintenance: 'unknown without the configuration of a node',
  window: 'Dates held until',
  windowLeft: (day: string, days: number) => `${day}, ${counted(days, 'day')} left`,
  of: (node: string, value: string) => `${value} on ${node}`,
  spareOf: (spare: number, voters: number) => `${spare} of ${voters}`,
  connectionsOf: (open: string, limit: string) => `${open} of ${limit}`,
}

export const attention = {
  title: 'Attention',
  list: 'Needs attention',
  count: (items: number) => `${counted(items, 'item needs', 'items need')} attention.`,
  noShards: 'No shards are known yet.',
  oneHealthy: 'The only shard is healthy.',
  allHealthy: (shards: number) => `All ${count(shards)} shards are healthy.`,
  someHealthy: (healthy: number, shards: number) =>
    `${count(healthy)} of ${counted(shards, 'shard')} are healthy. Nothing else needs attention.`,
  lastChange: (health: string, ago: string) => `${health} Last change ${ago === 'now' ? 'just now' : `${ago} ago`}.`,
  for: 'for',
  since: (time: string) => `since ${time}`,
  levels: { ok: 'Healthy', info: 'Note', warn: 'Warning', crit: 'Critical', unk: 'Unknown' },
  trends: { growing: 'growing', steady: 'steady', shrinking: 'improving' },
  snoozeItem: (item: string) => `Snooze: ${item}`,
  unsnooze: 'Unsnooze',
  hour: 'For 1 hour',
  day: 'For 1 day',
  change: 'Until it changes',
  showAll: (items: number) => `Show all ${count(items)} items`,
  showFewer: 'Show fewer',
  snoozed: 'Snoozed',
  snoozedCount: (items: number) => `${items} snoozed`,
  snoozedUntilChange: 'snoozed until it changes',
  snoozedUntil: (time: string) => `snoozed until ${time} UTC`,
}

export const noResponse = {
  title: (nodes: number) => `None of ${nodes} nodes responds to this control plane`,
  resolver: 'Query resolver',
  causes:
    'All nodes are down, or the network between is: a firewall, a host name that no longer resolves, a wrong port. Attempts:',
  table: 'Attempts',
  target: 'Target',
  result: 'Result',
  duration: 'Duration',
}
