/** Texts of snapshots: list, details, comparison, nodes and recovery. */
import { count } from '../../lib/format.ts'

export const common = {
  snapshots: 'Snapshots',
  newImport: 'New import',
  cancel: 'Cancel',
  unknown: 'unknown',
}

export const list = {
  ofShard: (shard: string) => `Snapshots for ${shard}`,
  empty: 'No snapshots yet. Import CSV files to build one; snapshots of nodes appear here when the nodes report them.',
  name: 'Snapshot',
  origin: 'Origin',
  origins: {
    import: 'import',
    seed: 'built elsewhere',
    periodic: 'periodic',
    requested: 'requested',
    maintenance: 'maintenance',
    shutdown: 'shutdown',
    recovery: 'restore',
  },
  shard: 'Shard',
  state: 'State',
  packages: 'Packages',
  storedOn: 'Stored on',
  controlPlane: 'control plane',
  nights: 'Nights',
  size: 'Size',
  created: 'Created',
}

export const state = {
  invalid: 'invalid: different codec list',
  serving: (shards: string) => `serving ${shards}`,
  onNodes: (nodes: string) => `on ${nodes}`,
  stored: 'stored',
  countersDiffer: 'row counts differ',
}

export const details = {
  fallbackTitle: 'Snapshot',
  unknownTitle: 'Snapshot not found',
  unknown: (id: string) => `There is no snapshot ${id}. It was deleted, or the node has a newer one.`,
  similar: 'Similar:',
  openSnapshots: 'Open all snapshots',
  onlyOnNode: 'It is stored only on a node',
  countersDiffer: 'Its row counts differ',
  undo: (shard: string) => `Undo install on ${shard}…`,
  compare: (shard: string) => `Compare with live ${shard}`,
  download: 'Download snapshot',
  downloadArchive: 'Download archive',
  title: 'Details',
  digest: 'Content digest',
  sha256: 'SHA-256 of the file',
  shard: 'Built for shard',
  packages: 'Packages',
  properties: 'Properties',
  segments: 'Segments',
  nights: 'Nights',
  size: 'Size',
  codecs: 'Codec list',
  created: 'Created',
  by: (name: string) => ` by ${name}`,
  newestOf: 'Newest snapshot of',
  import: 'Import',
  openImport: 'Open import',
  sources: 'Source files',
  sourceSize: (size: string, rows: string) => `${size}, ${rows} rows`,
  installs: 'Installations',
  installed: (state: string, shard: string) => `${state} on ${shard}`,
}

export const remove = {
  dialog: 'Delete snapshot…',
  inUse: (shards: string) => `In use by ${shards}`,
  title: (name: string) => `Delete snapshot ${name}`,
  confirm: (id: string) => `Delete snapshot ${id}`,
  effect:
    'The file is deleted from the control plane. Nodes keep their data. Only another import can create the file again.',
  deleted: (name: string) => `Snapshot ${name} deleted`,
}

const verdicts = { yes: 'yes', no: 'no', unknown: 'not known' }

export const recovery = {
  title: 'Recovery after a full stop',
  table: 'Shards after a full stop',
  shard: 'Shard',
  verdict: 'Would restart from disk',
  verdicts,
  sentence: (verdict: keyof typeof verdicts) => `Would restart from disk: ${verdicts[verdict]}`,
  reason: 'Reason',
  files: (text: string) => `Snapshot files: ${text}.`,
}

export const matrix = {
  title: (shard: string) => `Nodes and snapshots of ${shard}`,
  empty: (shard: string) => `No nodes of ${shard} are known.`,
  node: 'Node',
  learner: 'learner',
  newest: 'Newest snapshot',
  heldBy: (name: string, holders: number, voters: number, isStored: boolean) =>
    `${name}, newest of ${holders} of ${voters} voters; ${isStored ? 'stored on the control plane' : 'only on nodes'}`,
  invalid: 'invalid: built with a different codec list',
  logIndex: 'Log index',
  updated: 'Updated',
  never: 'never',
  silent: (nodes: string) => `No response from ${nodes}; showing the last known values, if any.`,
  lastKnown: 'last known',
  notReported: 'not reported',
  noSnapshot: 'no snapshot reported',
  likeMajority: 'same as the majority',
  unlikeMajority: 'not that of the majority',
  hint: 'Nodes report only their newest snapshot. Each continues from it with its own log, so nodes with different snapshots can have the same data.',
}

const changedParts = { attributes: 'attributes', rooms: 'room types', packages: 'packages' }

export const compare = {
  title: 'Compare snapshots',
  choose: 'Choose…',
  liveShard: (shard: string) => `live shard ${shard}`,
  named: (name: string, id: string) => `${name} (${id})`,
  sides: 'Selection',
  a: 'A',
  b: 'B',
  difference: 'Difference',
  hint: 'Choose two sides: stored snapshots, or the live data of a shard.',
  equal: 'Equal: the same number of packages in each segment on each day.',
  different: 'The two sides differ.',
  codecsDiffer: ' They use different codec lists.',
  map: 'Packages: B minus A',
  codecsTitle: 'Codec lists',
  codecsEqual: 'Both use the same codec list.',
  codecsUnknown: 'A side did not report its codec list. Only the hashes can be compared.',
  codecsOrder: 'Order matters: a snapshot built with the one list cannot be read with the other.',
  codecEntry: 'Entry',
  placeA: 'Place in A',
  placeB: 'Place in B',
  codecHash: 'Codec list',
  propertiesTitle: 'Properties that differ',
  propertiesOfShard: 'Properties are compared between two stored snapshots. The live data of a shard has only counts.',
  propertiesEqual: 'Both have the same properties with the same packages.',
  propertiesSummary: (removed: number, added: number, changed: number) =>
    `${count(removed)} only in A, ${count(added)} only in B, ${count(changed)} changed.`,
  propertiesCut: (listed: number) => `The first ${count(listed)} of each kind are listed.`,
  property: 'Property',
  propertyIn: (side: 'a' | 'b' | 'both', what: readonly ('attributes' | 'rooms' | 'packages')[]) =>
    side === 'a' ? 'only in A' : side === 'b' ? 'only in B' : what.map((one) => changedParts[one]).join(', '),
  daysChanged: 'Days that differ',
  largestLoss: 'Largest loss',
  largestGain: 'Largest gain',
  byOn: (by: string, date: string) => `${by} on ${date}`,
  summary: (segments: string, days: string) => `${segments} and ${days} differ.`,
  table: 'Segments',
  segment: 'Segment',
  in: 'In',
  inBoth: 'both',
  onlyA: 'only A',
  onlyB: 'only B',
  properties: 'Properties',
  packagesA: 'Packages A',
  packagesB: 'Packages B',
  change: 'Packages A → B',
  same: 'same',
  reportedBy: 'Reported by',
  built: 'Built',
  packages: 'Packages',
  nights: 'Nights',
}
