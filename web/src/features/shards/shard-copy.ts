/** Texts of the pages of one shard and of its nodes. */
import { counted, zoneText } from '../../lib/format.ts'

export const shard = {
  tabs: {
    members: 'Members',
    segments: 'Segments',
    stays: 'Stays',
    snapshots: 'Snapshots',
    events: 'Events',
    metrics: 'Metrics',
    config: 'Config',
  },
  label: (shard: string) => `Shard ${shard}`,
  noLeader: 'no leader',
  leader: 'leader',
  term: (term: string) => `term ${term}`,
  inThisStateFor: 'in this state for',
  transfer: 'Transfer leadership…',
  more: 'More',
  moreActions: (shard: string) => `More actions for ${shard}`,
  copySummary: 'Copy summary',
  summaryCopied: 'Summary copied',
  copyBlocked: 'The browser blocked copying',
  compareConfig: 'Compare config',
  openInPlayground: 'Open in playground',
  playgroundFailed: (reason: string) => `Could not open the playground: ${reason}`,
  downloadDiagnostics: 'Download diagnostics',
  diagnosticsSaved: (shard: string) => `Diagnostics of ${shard} downloaded`,
}

export const transfer = {
  standalone: 'Nothing to transfer: a standalone node has no replicas',
  noLeader: 'Nothing to transfer: no leader',
  noOtherVoter: 'Nothing to transfer: there is no other voter',
}

export const spare = {
  needs: (missing: number, voters: number) => `needs ${missing} more of ${voters} voters`,
  canLose: (spare: number | null, voters: number) => `can lose ${spare} of ${voters}`,
  cannotLose: (voters: number) => `cannot lose another of ${voters}`,
}

/** The plain text summary of a shard. */
export const summary = {
  lag: (entries: number) => `lag ${entries}`,
  lagUnknown: 'lag unknown',
  voter: ' (voter)',
  lastResponse: (time: string) => `last response ${time}`,
  neverResponded: 'never responded',
  leader: (leader: string, since: string | null) => `leader ${leader} since ${since ?? 'unknown'}`,
  place: (zone: string, leader: string, term: string | number | null, since: string) =>
    `${zoneText(zone)}, ${leader}, term ${term ?? 'unknown'}, state since ${since}`,
  waitsFor: (reason: string) => `waits for: ${reason}`,
  at: (time: string) => `as of ${time}`,
}

export const members = {
  title: 'Members',
  role: 'Role',
  node: 'Node',
  state: 'State',
  log: 'Log position',
  logTip: "On one scale: from the first to the last entry of the leader's log",
  lag: 'Lag',
  p99: 'p99',
  p99Tip: '99th percentile of read latency',
  snapshot: 'Snapshot',
  memory: 'Memory',
  cpu: 'CPU',
  actions: 'Actions',
  isLeader: 'leader',
  caughtUpIn: (time: string) => `caught up in ${time}`,
  lastSeen: 'last seen',
  neverSeen: 'not seen since the control plane started',
  storeMemory: (share: string) => `${share} of the store memory in use`,
  cores: (cores: string) => `${cores} cores`,
  coresOf: (used: string, cores: number) => `${used} of ${counted(cores, 'core')}`,
  promote: 'Promote…',
  demote: 'Demote…',
  replace: 'Replace…',
  makeLeader: 'Make leader…',
  isLeaderAlready: (node: string) => `${node} is already the leader`,
}

export const logBar = {
  unknown: (node: string) => `${node} does not report a log position`,
  text: (position: string, committed: string | undefined, missing: string | undefined, needsSnapshot: boolean) =>
    [
      `log up to ${position}`,
      ...(committed === undefined ? [] : [`committed to ${committed}`]),
      missing === undefined ? 'nothing missing' : `${missing} missing`,
      ...(needsSnapshot ? ['needs a snapshot first'] : []),
    ].join(', '),
}

export const leaderReports = {
  title: 'Leader as seen by each node',
  titleDisagree: 'Leader as seen by each node: nodes disagree',
  majority: (majority: number, voters: number, term: string | undefined) =>
    `majority ${majority} of ${voters}${term === undefined ? '' : ` · term ${term}`}`,
  node: 'Node',
  leader: 'Leader',
  health: 'Own health',
  term: 'Term',
  answered: 'Last response',
  notReported: 'not reported',
  none: 'none',
}

export const change = {
  title: 'Membership change',
  inProgress: 'in progress',
  of: (kind: string) => `${kind} of`,
  last: (kind: string) => `last change: ${kind} of`,
}

export const leadership = {
  title: 'Leadership timeline, last 24 h',
  showTimeline: 'Show as timeline',
  showTable: 'Show as table',
  elections: (elections: number) => (elections === 0 ? 'no elections' : counted(elections, 'election')),
  noGap: 'always a leader',
  longestGap: (time: string) => `longest gap ${time}`,
  unknownFor: (time: string) => `unknown for ${time}`,
  cut: (changes: string) => `only the newest ${changes} changes are shown`,
  list: 'Leaders, oldest first',
  noLeader: 'no leader',
  unknown: 'unknown',
  ago: (time: string) => `${time} ago`,
  now: 'now',
  when: (from: string, to: string, time: string) => `${from} to ${to} UTC, ${time}`,
  unknownStretch: (when: string) => `Leader unknown, ${when}`,
  noLeaderStretch: (when: string) => `No leader, ${when}`,
  leaderStretch: (leader: string, when: string, term: string | undefined) =>
    `Leader ${leader}, ${when}${term === undefined ? '' : `, term ${term}`}`,
  table: 'Leadership',
  from: 'From',
  to: 'To',
  leader: 'Leader',
  term: 'Term',
  duration: 'Duration',
}

export const trouble = {
  electing: 'Electing a leader',
  noLeader: 'No leader',
  noLeaderCauses:
    'Usual causes: voters cannot reach each other (packet loss, a firewall, an expired certificate), or equal election timeouts keep splitting the vote.',
  quorumLost: 'Quorum lost',
  quorumLostCauses: 'The data is kept. The shard recovers by itself once a majority of its voters responds.',
  forming: 'Forming',
  formingCauses:
    'An empty shard forms once its initial voters are up and connected, or once an operator lets it form with fewer.',
  unknown: 'No node responds',
  unknownCauses:
    'None of the nodes responded to this control plane. They are down, or the network between is. Their addresses and last errors are listed below.',
  noWrites: 'Until then no write and no membership change is accepted. Reads that allow old data are still answered.',
  actions: 'What to do',
  voters: (up: number, voters: number, majority: number) =>
    `${up} of ${counted(voters, 'voter')} ${up === 1 ? 'responds' : 'respond'}, ${majority} ${majority === 1 ? 'is' : 'are'} needed`,
  election: (timeout: string) => `A new leader is usually elected within one election timeout, ${timeout}.`,
  waiting: (missing: number) =>
    `No leader can be elected until ${counted(missing, 'more voter')} ${missing === 1 ? 'responds' : 'respond'}.`,
  bringBack: (needed: number, away: number) =>
    needed >= away
      ? away === 1
        ? 'Start this voter or restore its network:'
        : `Start all ${away} of these voters or restore their network:`
      : `Start ${needed} of these ${away} voters or restore ${needed === 1 ? 'its' : 'their'} network:`,
  seen: 'last seen',
  never: 'never',
  candidate: (lastEntry: string, isWaiting: boolean) =>
    `is the best candidate: of the voters that respond it has the longest log, up to entry ${lastEntry}.${isWaiting ? ' Keep it running.' : ''}`,
  evidence: (voters: number) => `Logs of ${counted(voters, 'voter')}`,
  table: 'Voters',
  voter: 'Voter',
  lastEntry: 'Last entry',
  term: 'Term',
  lastSeen: 'Last seen',
  lastError: 'Last error',
}

/** The short form of docs/clusters.md#runbook-the-quorum-is-lost. */
export const runbook = {
  title: 'Runbook: the voters cannot be brought back',
  steps: [
    { text: 'Only if the disks of a majority are permanently lost: stop all remaining nodes of the shard.' },
    {
      text: 'Choose the survivor with the highest last index.',
      command: 'vacancy inspect data',
    },
    {
      text: 'Export it. Writes that only the lost majority acknowledged are not in it.',
      command: 'vacancy export data --output-path backup',
    },
    {
      text: 'Move every data directory away, without deleting it. Put the backup into empty directories of a majority of the initial voters, and start all.',
    },
    { text: 'Write lost changes again from your own database.' },
  ] as readonly { readonly text: string; readonly command?: string }[],
  source: 'In full in docs/clusters.md, “Runbook: the quorum is lost”.',
}

export const events = {
  title: 'Events',
  empty: 'No events since the control plane started.',
  of: (name: string) => `Events of ${name}`,
  filter: 'Filter events by node',
  kinds: 'Filter events by kind',
  allKinds: 'All but snapshots',
  allNodes: 'All nodes',
  copyMarkdown: 'Copy as Markdown',
  markdownEmpty: (shard: string) => `No events for ${shard}.`,
  markdownTitle: (shard: string, time: string) => `Events of ${shard}, up to ${time} UTC`,
  markdownHead: '| Time | Node | Event |',
}

export const config = {
  title: 'Configuration',
  empty:
    'No node reported its configuration. The control plane needs the admin token of the nodes to read it (node_admin_token).',
  warnings: 'Conflicting values',
  allEqual: 'The nodes that reported their configuration agree. Data directories and ports are their own.',
  differ: (differ: number, keys: number) => `${differ} of ${keys} keys ${differ === 1 ? 'differs' : 'differ'}.`,
  others: (keys: number, differ: number) => (differ === 0 ? counted(keys, 'key') : counted(keys, 'other key')),
  key: 'Key',
  value: 'Value',
  origin: 'Origin',
  keys: (keys: number) => counted(keys, 'key'),
  ofNow: 'Past configurations are not recorded. These are the current values.',
  notReported: 'not reported',
  nodeNotReported: 'The node did not report its configuration.',
}

export const node = {
  lastResponse: 'last response',
  lastKnownValues: 'showing last known values',
  whyState: 'Why this state',
  rule: (number: number) => `Rule ${number} of 11:`,
  identity: 'Identity',
  name: 'Logical name',
  http: 'HTTP',
  tcp: 'TCP',
  peerPort: 'Peer port',
  resolver: 'Resolver',
  version: 'Version',
  started: 'Started',
  cores: 'Cores',
  coresNow: (now: number, start: number) => `${now} now, ${start} at start`,
  codecs: 'Codec list',
  log: 'Log',
  knownLeader: 'Known leader',
  noLeader: 'none',
  term: 'Term',
  firstEntry: 'First entry',
  lastEntry: 'Last entry',
  committed: 'Committed',
  applied: 'Applied',
  matched: 'Matched, by the leader',
  lag: 'Lag',
  lagText: (entries: string, time: string | undefined) =>
    `${entries} ${entries === '1' ? 'entry' : 'entries'}${time === undefined ? '' : `, ${time}`}`,
  data: 'Data',
  packages: 'Packages',
  properties: 'Properties',
  segments: 'Segments',
  window: 'Hot window',
  digest: 'State digest',
  atEntry: (index: string) => `at entry ${index}`,
  snapshot: 'Snapshot',
  snapshotText: (packages: string, size: string, index: string) =>
    `, ${packages} packages, ${size}, up to entry ${index},`,
  machine: 'Machine',
  memory: 'Memory',
  ofStore: (share: string) => `, ${share} of the store memory in use`,
  walSize: 'Log on disk',
  walText: (size: string, files: number) => `${size} in ${counted(files, 'file')}`,
  disk: 'Disk',
  diskFull: 'full',
  diskFree: (size: string) => `${size} free`,
  connections: 'Connections',
  connectionsOf: (open: string, limit: string | undefined) => (limit === undefined ? open : `${open} of ${limit}`),
  cpu: 'CPU',
  cpuText: (used: string, cores: number | undefined) =>
    `${used}${cores === undefined ? '' : ` of ${cores}`} cores in use`,
  queries: 'Queries',
  writes: 'Writes',
  p99: 'Read p99',
  neverReported: 'never reported',
  show: (title: string) => `Show ${title.toLowerCase()}`,
  hide: (title: string) => `Hide ${title.toLowerCase()}`,
  prepare: 'Prepare machine for restart…',
  raw: 'Raw responses',
  noResponse: 'no response',
  neverResponded: 'never responded',
  responseOf: (path: string) => `Response of ${path}`,
  emptyBody: '(empty body)',
}

export const forget = {
  dialog: (node: string) => `Forget ${node}…`,
  title: (name: string) => `Forget ${name}`,
  confirm: (node: string) => `Forget ${node}`,
  forgotten: (name: string) => `${name} forgotten`,
  effect:
    'The node disappears from the console until it registers again. Nothing changes on the node or in its shard. Last response:',
}
