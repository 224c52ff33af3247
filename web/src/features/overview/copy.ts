/** Texts of the overview. */
import { count, counted } from '../../lib/format.ts'

export const overview = {
  title: 'Overview',
  rack: 'Key rack',
  noShards:
    'No shards yet. A shard appears here once its nodes register, or when the configuration of the control plane lists them.',
  cluster: 'Cluster',
  running: 'Running',
  nothingRunning: 'No operations or imports are running.',
  events: 'Recent events',
  noEvents: 'No events since the control plane started.',
  shards: 'Shards',
  healthy: (shards: string) => `${shards} healthy`,
  nodes: 'Nodes',
  responding: (nodes: string) => `${nodes} responding`,
  packages: 'Packages',
  properties: 'Properties',
  window: 'Window',
  zone: (zone: string) => `Zone ${zone}`,
  shardsChanged: (shards: number) => `${counted(shards, 'shard')} changed state`,
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
  lastChange: (health: string, ago: string, event: string) =>
    `${health} Last change ${ago === 'now' ? ago : `${ago} ago`}: ${event}.`,
  for: 'for',
  since: (time: string) => `since ${time}`,
  trends: { growing: 'growing', steady: 'steady', shrinking: 'improving' },
  snooze: 'Snooze',
  snoozeItem: (item: string) => `Snooze: ${item}`,
  unsnooze: 'Unsnooze',
  hour: 'For 1 hour',
  day: 'For 1 day',
  change: 'Until it changes',
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
  error: (message: string, code: string) => `${message} (${code})`,
}
