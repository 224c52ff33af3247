/** Texts of the registry: services, codec list and resolver. */
import { counted, zoneText } from '../../lib/format.ts'

export const common = {
  registry: 'Registry',
  cancel: 'Cancel',
  more: (count: number) => `and ${count} more`,
}

export const tabs = { services: 'Services', datasets: 'Datasets', codecs: 'Codec list', resolver: 'Resolver' }

/** Where to go from a page of the registry. */
export const next = {
  topology: { label: 'Topology', hint: 'how these components are connected' },
  route: { label: 'Topology', hint: 'where a segment goes, and why' },
  snapshots: { label: 'Snapshots', hint: 'built with this list' },
  services: { label: 'Services', hint: 'what is registered under these names' },
}

export const services = {
  title: 'Services',
  filter: 'Filter services',
  empty: 'No services registered. A node registers when its configuration has a `registry_addr`.',
  filtered: (filter: string) => `No service matches “${filter}”.`,
  noRegistry: 'No registry configured',
  noRegistryHint: 'The configuration of the control plane lists the nodes below.',
  down: (address: string) => `No response from the registry at ${address}`,
  downHint: 'Showing its last response.',
  noResponse: 'No response.',
  away: (count: number) =>
    count === 1 ? 'One of the registries is unreachable' : `${count} of the registries are unreachable`,
  awayHint: (address: string) => `Reading the registry at ${address}.`,
  service: 'Service',
  kind: 'Kind',
  shard: 'Shard',
  zone: 'Zone',
  role: 'Role',
  version: 'Version',
  heartbeat: 'Heartbeat',
  heartbeatTip: 'Age of the newest heartbeat, as reported by the registry',
  seen: 'Observed',
  difference: 'Difference',
  none: 'none',
  responds: 'responds',
  notSeen: 'not observed',
  card: (kind: string, shard: string | null, zone: string) =>
    `${kind}${shard === null ? '' : ` of ${shard}`}, ${zoneText(zone)}`,
  conflicts: 'Segments claimed by several shards',
  conflictsTable: 'Conflicts',
  segment: 'Segment',
  owner: 'Owner',
  claims: 'Also claimed by',
}

export const datasets = {
  state: 'Registry',
  address: 'Address',
  epoch: 'Epoch',
  version: 'Global version',
  read: 'Read',
  warming: 'It restarted, and removes nothing until every component has had time to report.',
  title: 'Datasets',
  empty: 'The registry holds no dataset yet. Routers and bridges read these lists.',
  name: 'Dataset',
  versionOf: 'Version',
  entries: 'Entries',
  segments: 'Segments',
  filter: 'Filter segments',
  noSegments: 'No segment is claimed. The leader of a shard pushes its list.',
  filtered: (filter: string) => `No segment or shard contains “${filter}”.`,
  segment: 'Segment',
  shard: 'Shard',
  claims: 'Also claimed by',
  none: 'none',
  reserved: 'Reserved until',
  route: 'Route',
  showRoute: (segment: string) => `Show route of ${segment}`,
  shown: (shown: string, total: string) => `${shown} of ${total} segments. Filter to see others.`,
  noRegistry: 'No registry configured',
  noRegistryHint: 'Set the key registry in the configuration of the control plane.',
}

export const codecs = {
  title: 'Rate features, in order',
  empty: 'No codec list reported yet, neither by the registry nor by a node.',
  edit: 'Edit codec list…',
  tracking: 'A plan is being tracked. Close it first',
  nodes: 'Nodes using this list',
  noNodes: 'No nodes known.',
  reportedBy: 'Reported by',
  entries: 'Entries',
  entryCount: (entries: number) => `${counted(entries, 'rate feature')}, max 24`,
  hash: 'Ordered hash',
  table: 'Rate features',
  position: 'Position',
  feature: 'Rate feature',
  packagesIn: (shard: string) => `Packages in ${shard}`,
  packagesTip: (packages: string, snapshot: string, time: string) =>
    `Of ${packages} packages in snapshot ${snapshot}, built ${time}. Later writes are not counted.`,
  orderMatters: 'The order matters: any change of the list invalidates existing snapshots.',
  usageNote: 'Packages are counted in the last installed snapshot of a shard. Later writes are not counted. ',
  usageUnknown: (shards: string, more: number) =>
    `No count for ${shards}${more > 0 ? ` and ${more} more` : ''}, whose snapshots were not built on this server. `,
  usageHidden: (shards: number) => `${counted(shards, 'more shard')} not shown.`,
  node: 'Node',
  list: 'List',
  notReportedTip: 'This node did not report its codec list',
  notReported: 'not reported',
  same: 'the same',
  different: 'different',
  nodesTable: 'Codec lists of nodes',
}

export const editor = {
  title: 'Edit codec list',
  form: 'Codec list',
  planReady: 'The plan is below the list',
  atLeastOne: 'A list needs at least one entry',
  invalidEntries: (entries: number) => `Correct ${counted(entries, 'entry', 'entries')} first`,
  noChanges: 'No changes yet',
  discard: 'Discard changes',
  close: 'Close editor',
  showPlan: 'Show plan',
  planTitle: 'Plan',
  track: 'Track this plan…',
  entries: 'Entries, in order',
  position: (position: number) => `Position ${position}`,
  unnamed: 'the entry',
  moved: (name: string, position: number) => `${name} is at position ${position}`,
  moveUp: (name: string) => `Move ${name} up`,
  moveDown: (name: string) => `Move ${name} down`,
  remove: (name: string) => `Remove ${name}`,
  isFirst: 'Already first',
  isLast: 'Already last',
  add: 'Add entry',
  full: (max: number) => `A list has at most ${max} entries`,
}

export const entryErrors = {
  empty: 'Enter a name',
  blanks: 'Must not start or end with a blank',
  characters: 'Must not contain , | " or \\',
  control: 'Must not contain control characters',
  tooLong: (bytes: number) => `At most ${bytes} bytes`,
  duplicate: (name: string) => `Duplicate of ${name}. Names differ by more than letter case`,
}

export const entryChanges = {
  new: 'new',
  was: (name: string) => `was ${name}`,
  from: (position: number) => `from position ${position}`,
}

export const trackDialog = {
  title: 'Track a codec list change',
  confirm: 'Track plan',
  text: 'Tracking changes nothing on the registry and the nodes. Everyone sees the plan on this page, and its steps are checked off as the registry and the nodes report the list with the hash you type here. Compare it with the hash on the machines.',
}

export const tracked = {
  title: 'Codec list change in progress',
  closed: 'Plan closed. Nothing was changed on the registry and the nodes.',
  close: 'Close plan',
  stop: 'Stop tracking',
  since: 'tracked since',
  by: (name: string, reason: string) => `by ${name}: ${reason}`,
  progress: (done: number, all: number) => `${done} of ${all} reported steps done`,
}

export const plan = {
  manual: 'The console cannot make this change',
  manualHint:
    'The registry reads its list from a file at start, and all nodes must use the same list. This plan shows the cost and the steps in order. The service is down from the second to the fifth step.',
  changes: 'Changes',
  onlyOrder: 'Only the order differs. That is a change as well, because the position identifies a feature.',
  newHash: 'New ordered hash',
  insteadOf: 'instead of',
  invalidSnapshots: (snapshots: number) => `${counted(snapshots, 'snapshot')} will be invalid`,
  noSnapshots: 'None known, neither here nor on a node that responds.',
  snapshotList: 'Snapshots that will be invalid',
  ofShard: (shard: string, size: string, nodes: string) => `of ${shard}, ${size}${nodes === '' ? '' : `, on ${nodes}`}`,
  download: (name: string) => `Download ${name}`,
  onlyOnNodes: 'only on nodes: export it there',
  queries: 'Saved queries that use a removed entry',
  queryOf: (owner: string, entries: string) => ` of ${owner}: ${entries}`,
  hiddenQueries: (queries: number) => `${counted(queries, 'private query', 'private queries')} of other people`,
  newFile: 'New file',
  downloadFile: 'Download codecs.yml',
  steps: 'Steps',
  stepList: 'Steps of the change',
  states: { hand: 'manual, not reported', open: 'not done yet', done: 'done', unknown: 'unknown' },
  step: (number: number, title: string) => `${number}. ${title}`,
  reported: (evidence: string) => `Reported: ${evidence}.`,
  newImport: 'New import',
}

export const resolver = {
  title: 'Query resolver',
  kind: 'Kind',
  kinds: { node: 'Node of a shard', router: 'Router', bridge: 'Bridge' },
  shard: 'Shard',
  id: 'ID',
  idFirst: 'Enter an identity first',
  submit: 'Resolve',
  answer: 'Response',
  empty: 'No query yet.',
  history: 'Recent responses',
  identity: 'Identity',
  result: 'Result',
  address: 'Address',
  none: 'none',
  duration: 'Duration',
  time: 'Time',
  emptyBody: '(empty body)',
  found: (status: number | null) => `found, ${status ?? ''}`,
  notFound: 'not found, 404',
  noResponse: 'no response',
  status: (status: number) => `status ${status}`,
}
