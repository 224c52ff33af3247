/** Texts of the topology: map, table, text, inspector, and the route of a segment. */
import { count, counted, sentence, zoneText } from '../../lib/format.ts'

export const page = {
  title: 'Topology',
  lead: (components: number, shards: number, problems: number) =>
    `${counted(components, 'component')} and ${counted(shards, 'shard')}, ${problems === 0 ? 'none with a problem' : `${count(problems)} with a problem`}`,
  views: 'Views',
  map: 'Map',
  table: 'Table',
  text: 'Text',
  empty: 'No routers, bridges or nodes known. A component appears here when the registry lists it.',
  command: 'npm run start:platform',
}

export const kinds = {
  proxy: 'HTTP proxy',
  edge: 'edge router',
  'zone-router': 'zone router',
  bridge: 'bridge',
  registry: 'registry',
  resolver: 'resolver',
  node: 'node',
  shard: 'shard',
  zone: 'zone',
} as const

export const states = {
  left: 'Left',
  'not-polled': 'Not polled',
  reading: 'Being read',
  unreachable: 'Unreachable',
  'not-answering': 'Does not answer',
  other: 'Other component',
  'not-ready': 'Not ready',
  unregistered: 'Not registered',
  ready: 'Ready',
} as const

/** Of a shard that is not polled. */
export const cutOff = 'Cut off: no bridge reaches it'
export const notObserved = 'Not observed'

export const problems = {
  title: 'Problems',
  more: (things: number) => `And ${count(things)} more. The table has all of them, worst first.`,
}

export const map = {
  label: (things: number) => `Map of ${counted(things, 'item')}. Arrow keys move through it, Enter opens the inspector`,
  find: 'Find…',
  zoomIn: 'Zoom in',
  zoomOut: 'Zoom out',
  fit: 'Fit',
  full: '1:1',
  traffic: 'Traffic',
  all: 'Reads and writes',
  reads: 'Reads',
  writes: 'Writes',
  zones: 'Collapsed zones',
  zone: (zone: string) => sentence(zoneText(zone)),
  collapsed: (shards: number, healthy: boolean) =>
    `${counted(shards, 'shard')}, ${healthy ? 'all healthy' : 'the others healthy'}`,
  showMap: 'Show map',
  legend: 'Solid: connected. Dashed: not connected. Dotted: not reported. Width and dots: requests per second.',
  apart: 'Registry and resolver',
}

export const table = {
  label: 'Components',
  filter: 'Filter components',
  filtered: (filter: string) => `No component matches “${filter}”.`,
  thing: 'Component',
  kind: 'Kind',
  zone: 'Zone',
  shard: 'Shard',
  state: 'State',
  registered: 'Registered',
  isListed: 'listed',
  notListed: 'not listed',
  reads: 'Reads',
  writes: 'Writes',
  p99: 'p99',
  version: 'Version',
}

export const text = {
  title: 'In words',
  copy: 'Copy',
  none: 'Nothing is known yet.',
  zone: (zone: string, shards: number, healthy: number) =>
    `${sentence(zoneText(zone))}: ${counted(shards, 'shard')}, ${count(healthy)} healthy.`,
  component: (kind: string, id: string, message: string) => `${kind} ${id}: ${message}.`,
  cut: (cut: string) => `Cut off: ${cut}.`,
  shard: (shard: string, leader: string | null, message: string) =>
    `${shard}: ${leader === null ? 'no leader' : `leader ${leader}`}. ${message}.`,
  all: (kind: string, ids: readonly string[]) => `${kind}: ${ids.join(', ')}. All ready.`,
}

export const inspector = {
  title: 'Inspector',
  none: 'Select a component in the map or the table.',
  state: 'State',
  since: 'Since',
  address: 'HTTP API',
  notPolled: 'none: not polled',
  version: 'Version',
  zone: 'Zone',
  shard: 'Shard',
  registered: 'Registry',
  listed: 'listed',
  notListed: 'not listed',
  notRegistering: 'does not register',
  late: 'last heartbeat',
  rates: 'Requests',
  ratesOf: (reads: string, writes: string, errors: string) => `${reads} reads, ${writes} writes, ${errors} errors`,
  p99: 'p99',
  connections: 'Clients',
  connectionsOf: (connections: string, inFlight: string) => `${connections} connections, ${inFlight} in flight`,
  cuts: 'Cut off by this',
  differences: 'Registered and observed differ',
  reasons: 'Reasons on /ready',
  incoming: 'Receives from',
  outgoing: 'Sends to',
  edge: 'Connection',
  sent: 'Sent',
  sentTip: 'Reads and writes that the sender counted for this connection',
  received: 'Received',
  receivedTip: 'All requests that the receiver counted, from all of its clients',
  openShard: (shard: string) => `Open ${shard}`,
  openNode: (node: string) => `Open ${node}`,
  segments: 'Segments',
  served: 'Reached through a bridge',
  yes: 'yes',
  no: 'no: cut off',
  unknown: 'not known',
  close: 'Close inspector',
}

export const route = {
  title: 'Where does a segment go, and why?',
  segment: 'Segment',
  submit: 'Show route',
  answer: (segment: string) => `Route of ${segment}`,
  list: 'Hops, in order',
  past: 'The route is what the components answer now, so the past has none.',
  reply: (url: string, status: number | null, duration: string) =>
    `${url} answered ${status ?? 'nothing'} in ${duration}`,
  fromPolls: 'from the polls of the control plane',
  body: 'Reply',
  again: 'Ask again',
}
