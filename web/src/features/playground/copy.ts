/** Texts of the playground. */
import type { CommandGroup } from '@vacancy/shared/wire'
import { counted } from '../../lib/format.ts'

export const commandGroups: { readonly [group in CommandGroup]: string } & { readonly delete: string } = {
  search: 'Search',
  shard: 'Shard',
  properties: 'Properties',
  packages: 'Packages',
  availability: 'Availability',
  stays: 'Stays',
  connection: 'Connection',
  delete: 'Delete',
}

export const page = {
  title: 'Playground',
  divider: 'Width of the request',
  continueWithout: (shard: string) => `Continue without shard ${shard}`,
  draftUnreadable: (reason: string) => `Could not restore your draft: ${reason}`,
  linkUnreadable: (reason: string) => `Could not open the link: ${reason}.`,
  linkAction: 'Request a new link, or start here.',
  draftRestored: (time: string) => `Draft restored from ${time}.`,
  draftNotSaved: (reason: string) => `Draft not saved: ${reason} Reloading may lose it.`,
  startOver: 'Start over',
  anyShard: 'the shard',
  request: 'Request',
  result: 'Result',
}

export const actions = {
  run: 'Run',
  runWrite: 'Run write',
  runKey: 'Ctrl Enter',
  runShortcut: 'Run the query',
  repeat: (times: number) => `Run ${times} times and measure`,
  bar: 'Run and target',
  more: 'More',
  history: 'History',
  compareReplicas: 'Compare replicas',
  explain: 'Explain match',
  explainDialog: 'Explain match…',
  copyAs: 'Copy as',
  copyShortcut: 'Copy the query as code',
  explainShortcut: 'Explain why a property matches or not',
  copyWithKey: (kind: string) => `${kind} (Ctrl .)`,
  copiedAs: (kind: string) => `Copied as ${kind}`,
  copyBlocked: 'The browser blocked copying.',
  noNodeAddress: 'No node reports its address',
  share: 'Share',
  save: 'Save query…',
  saveAsGolden: 'Save as golden search…',
  cancel: 'Cancel',
  stop: 'Stop',
  open: 'Open',
  openInPlayground: 'Open in playground',
}

export const code = {
  title: 'Request as code',
  label: 'Language',
  show: 'Show code…',
  setup: 'Save the code as query.mjs in a new folder and run there:',
  commands: 'Commands',
  of: (kind: string) => `Request as ${kind}`,
}

export const writeMode = {
  label: 'Write mode',
  hint: 'Turns off after 15 minutes or when this tab closes.',
  on: (shard: string) => `Write mode is on: requests can change data on ${shard}. It turns off after 15 minutes.`,
  turnOnFirst: 'Turn on write mode first. This command changes data.',
}

export const target = {
  command: 'Command',
  commandOption: (title: string, name: string, isWrite: boolean) => `${title} (${name})${isWrite ? ' · write' : ''}`,
  shard: 'Shard',
  node: 'Node',
  autoLeader: 'Auto (leader)',
  autoFollower: 'Auto (follower)',
  edge: (edges: readonly string[]) =>
    `Through the edge${edges[0] === undefined ? ', none responds' : ` · ${edges.join(', ')}`}`,
  unknownNode: (node: string) => `${node} · unknown`,
}

export const editor = {
  label: 'Request as',
  form: 'Form',
  json: 'JSON',
  wire: 'Wire',
  jsonError: (line: number) => `The JSON has an error in line ${line}. Showing the last valid request.`,
  discardJson: 'Discard JSON changes',
  jsonField: 'Request as JSON',
  jsonHint: 'Write numbers above 9,007,199,254,740,991 as strings.',
  errorAt: (line: number, column: number, reason: string) => `Line ${line}, column ${column}: ${reason}`,
  requestFrame: 'Request frame',
  correlationNote: 'the correlation ID is set on sending',
  incomplete: (reason: string) => `Incomplete request: ${reason}`,
  noFields: 'This command has no fields.',
  fewerFields: 'Fewer fields',
  moreFields: (fields: number) => `More fields (${fields})`,
  frameSize: (bytes: number) => `Wire frame, ${counted(bytes, 'byte')}`,
}

export const fields = {
  unused: (shard: string | undefined, names: string) => `Not in use on ${shard}: ${names}`,
  limitHint: (max: string) => `1 to ${max}; default ${max}.`,
  notInCodecs: (name: string) => `${name} (not in the codec list)`,
  linesExample: '[{"propertyId":"hotel_123","roomType":"double","arrival":"2026-12-24","nights":3,"rooms":2}]',
}

/** Names of numbers in the fields of a search. */
export const searches = {
  orders: {
    row: 'As stored',
    total: 'Cheapest total first',
    totalDown: 'Dearest total first',
    distance: 'Nearest first',
    stars: 'Most stars first',
    id: 'By id',
  },
  pages: { counted: 'Pages, with the number of all', uncounted: 'Pages, not counted' },
  wants: { total: 'Total', distance: 'Distance', position: 'Position', roomType: 'Room type' },
  default: 'Default',
}

/** Beside the filters of a search. */
export const counts = {
  matching: (properties: string) => `${properties} match`,
  all: (properties: number) => counted(properties, 'property', 'properties'),
  of: (node: string) => `Numbers beside filters: how many properties match with that choice, counted on ${node}.`,
  ofLastRun: 'Numbers beside filters are those of the last run.',
  none: (reason: string) => `No numbers beside filters: ${reason}`,
}

/** Prices by day of arrival, below the dates of a stay. */
export const arrivals = {
  label: (nights: number) => `Cheapest total of ${counted(nights, 'night')}, by arrival`,
  day: (date: string, total: string, properties: string) => `Arrive ${date}: from ${total}, ${properties}`,
  none: (date: string) => `Arrive ${date}: no property fits`,
  ofLastRun: 'Prices are those of the last run.',
  failed: (reason: string) => `No prices of other arrivals: ${reason}`,
}

export const dates = {
  notADate: (text: string) =>
    `${text} is not a date. Use 2026-11-20, 2026-11-20..2026-11-23 or 2026-11-20+4 for four nights.`,
  endsEarly: (text: string) => `${text} ends before it starts`,
  tooLong: (text: string) => `${text} is longer than a year`,
  count: (dates: number) => counted(dates, 'night'),
  tooMany: (nights: number, max: number, shard: string) => `${nights} nights; ${shard} accepts at most ${max}.`,
  outside: (outside: number, all: number, shard: string) =>
    outside === all ? `no data on ${shard}` : `${outside} of them without data on ${shard}`,
  max: (dates: number) => `max ${dates}`,
  data: (from: string, to: string) => `data: ${from} – ${to}`,
  openCalendar: 'Calendar',
  closeCalendar: 'Close calendar',
  before: (shard: string) => `before the first date of ${shard}`,
  after: (shard: string) => `after the last date of ${shard}`,
  atMost: (dates: number, shard: string) => `at most ${dates} dates on ${shard}`,
  noPackages: (segment: string) => `no packages in ${segment}`,
  chooseFirst: 'Choose the first date',
  chooseLast: (from: string) => `From ${from}: choose the last date`,
  previousMonth: 'Previous month',
  nextMonth: 'Next month',
}

export const requestErrors = {
  notAnObject: 'The request must be an object: { "command": …, "fields": { … } }',
  unknownCommand: (command: string) => `Unknown command: ${command}`,
  unknownKey: (key: string) => `Unknown key "${key}"; only "command" and "fields" are allowed`,
  fieldsNotAnObject: '"fields" must be an object',
  notHexadecimal: 'Not hexadecimal: only pairs of 0–9 and a–f are allowed.',
  login: 'A LOGIN frame contains a token and is not decoded.',
}

/** Each completes "Could not open the link: …". */
export const linkErrors = {
  characters: 'it contains invalid characters',
  damaged: 'it is incomplete or damaged',
  shard: 'its shard name is invalid',
  command: 'its command is unknown',
  fields: (command: string) => `it has fields that ${command} does not have`,
  tooLong: 'its request is too long',
}

export const links = {
  blocked: (link: string) => `The browser blocked copying. The link is ${link}`,
  read: 'Link copied. Opening it runs the same query.',
  write: 'Link copied. Opening it shows the same request without running it.',
}

export const wire = {
  caption: (label: string, bytes: number) => `${label}, ${counted(bytes, 'byte')}`,
  cut: (bytes: number) => `, first ${bytes} shown`,
  copyHex: (label: string) => `Copy: ${label} as hex`,
  parts: (label: string) => `Parts of ${label}`,
  offset: 'Offset',
  bytes: 'Bytes',
  part: 'Part',
  value: 'Value',
  decode: 'Decode a frame',
  decodeHint: 'Paste hexadecimal bytes. Spaces are ignored.',
  pasted: 'Pasted bytes',
  use: (command: string) => `Use this ${command}`,
}

export const results = {
  matches: (matches: string) => `${matches} match`,
  nextPage: 'Next page',
  firstPage: 'First page',
  none: 'No result yet. Run the request to see its rows, timing and bytes.',
  label: 'Result as',
  tabs: { table: 'Table', calendar: 'Calendar', map: 'Map', json: 'JSON', wire: 'Wire', timing: 'Timing' },
  noMatches: 'No matches.',
  done: 'Done.',
  first: (rows: string) => `Showing the first ${rows}; more may exist.`,
  written: 'written',
  limit: (rows: string) => `limit ${rows}`,
  datesOf: (dates: number, max: number) => `${dates} of ${max} nights`,
  from: (node: string) => `from ${node}`,
  measuring: 'Still measuring. Stop the runs or wait for them.',
  shareWithResult: 'Share with result',
  shared: 'Link copied. Anyone who can sign in can open this result for 30 days.',
  sharedNotCopied: 'Result saved for 30 days. The browser blocked copying its link.',
  result: 'Result',
  jsonCut: (characters: string) => `Showing the first ${characters} characters. Export the table for all of it.`,
  request: 'Request',
  requestNote: 'as sent',
  reply: 'Reply',
  replyNote: 'as received',
  replyCutNote: 'truncated',
  property: (id: string) => `Property ${id}`,
  copyId: (id: string) => `Copy ${id}`,
  stars: (stars: number) => counted(stars, 'star'),
  noAmenities: 'no amenities',
  rooms: (rooms: string) => `rooms: ${rooms || 'none'}`,
  total: (price: string) => `total ${price}`,
  openCalendar: 'Open calendar',
  box: (south: string, north: string, west: string, east: string) =>
    `Map box: ${south} to ${north}° N, ${west} to ${east}° E`,
  removeBox: 'Remove map box',
}

export const resultTable = {
  label: 'Results',
  exportCsv: 'Export CSV',
  exportJson: 'Export JSON',
  copyHint: 'Ctrl C copies the focused row',
  copied: 'Row copied',
  property: 'Property',
  total: 'Total',
  distance: 'Distance',
  roomType: 'Room type',
  area: 'Area',
  stars: 'Stars',
  nightTip: 'Price · rooms left',
}

export const calendar = {
  label: 'Prices by property and date',
  property: 'Property',
  total: 'Total',
  left: (rooms: number) => `${rooms} left`,
  noneLeft: 'none left',
}

export const timing = {
  label: 'Time by hop',
  hops: {
    browser: 'Browser and its network',
    'control-plane': 'Control plane',
    network: 'Network and node, without the search',
    node: 'Node: the search',
    waiting: 'Queued',
    searching: 'Search and encoding',
    planning: 'Plan',
    examining: 'Examine rows',
    writing: 'Write the reply',
  },
  total: 'Total',
  inNode: 'In the node',
  hitsWritten: 'Without an order, hits are written while rows are examined.',
  notReported: 'not reported',
  explainSearch: 'Turn on “Explain” to see the part of the node. Until then it is included in the network time.',
  explainOther: 'Nodes report their part only for searches. Here it is included in the network time.',
  compared: (label: string, then: string, now: string) =>
    `${label}: ${then}. Latest run: ${now} in the control plane and the node.`,
  comparedRun: (time: string) => `Run of ${time}`,
  servedBy: 'Served by',
  index: 'Index',
  examined: 'Rows examined',
  returned: 'Rows returned',
  bytesOut: 'Bytes sent',
  bytesIn: 'Bytes received',
  attempts: 'Nodes tried',
  runs: (done: number, wanted: number, failed: number, times: string) =>
    `${done} of ${wanted} runs${failed > 0 ? `, ${failed} failed` : ''}: ${times}`,
  spread: (p50: string, p99: string, min: string, max: string) => `p50 ${p50} · p99 ${p99} · ${min} to ${max}`,
}

export const history = {
  drawer: 'History and saved',
  title: 'History',
  clearUnpinned: 'Clear unpinned',
  search: 'Search history',
  empty: 'No runs yet. Each run is listed here with its request and timing; its rows are not kept.',
  noMatch: (search: string) => `No run matches “${search}”.`,
  table: 'Runs',
  time: 'Time',
  query: 'Query',
  rows: 'Rows',
  duration: 'Duration',
  actions: 'Actions',
  failed: 'failed',
  pin: 'Pin',
  unpin: 'Unpin',
  compare: 'Compare with the current request',
  compareTitle: (time: string) => `Run of ${time} and current request`,
  outcomes: (then: string, now: string | undefined) =>
    now === undefined ? `Then: ${then}.` : `Then: ${then}. Latest run: ${now}.`,
  outcome: (rows: number | null, time: string) => (rows === null ? 'failed' : `${counted(rows, 'row')} in ${time}`),
  identical: 'The requests are identical.',
  differences: 'Differences',
  field: 'Field',
  before: 'Then',
  now: 'Now',
  compareResults: 'Run both and compare results',
  compared: (same: string, differing: number) =>
    differing === 0
      ? `Both find the same ${same} now.`
      : `Now ${counted(differing, 'property differs', 'properties differ')}, ${same} are the same.`,
  comparedLimited: 'Only hits up to the limit are compared.',
  comparedTable: 'Results that differ',
  found: 'found',
}

export const savedQueries = {
  title: 'Saved queries',
  empty: 'No saved queries yet. Save a query to reuse it; {{name}} in a text field becomes a parameter.',
  folder: 'Folder',
  name: 'Name',
  command: 'Command',
  owner: 'Owner',
  visible: 'Visible to',
  actions: 'Actions',
  you: 'you',
  everyone: 'everyone',
  delete: (name: string) => `Delete ${name}`,
  deleted: (name: string) => `${name} deleted`,
}

export const savedResults = {
  title: 'Saved results',
  empty: 'No saved results yet. “Share with result” keeps a result with its request and timing for 30 days.',
  taken: 'Taken',
  query: 'Query',
  rows: 'Rows',
  duration: 'Duration',
  owner: 'Owner',
  expires: 'Expires',
}

export const savedResult = {
  title: (command: string) => `${command}, saved result`,
  fallbackTitle: 'Saved result',
  savedBy: (owner: string) => `Saved by ${owner}`,
  details: 'Details',
  taken: 'Taken',
  by: 'Saved by',
  ownName: (name: string) => `you, ${name}`,
  shard: 'Shard',
  servedBy: 'Served by',
  requested: ' (requested)',
  index: 'Index',
  browser: 'Browser time',
  server: 'Control plane and node',
  expires: 'Expires',
  request: 'Request',
  result: 'Result',
  copyLink: 'Copy link',
  deleteDialog: 'Delete…',
  deleteTitle: (owner: string | undefined) => `Delete this result${owner === undefined ? '' : ` of ${owner}`}`,
  delete: 'Delete result',
  deleted: 'Saved result deleted',
  deleteEffect: (command: string, time: string) =>
    `${command}, ${time}. Its link stops working. Data on the shard is not affected.`,
  note: 'Rows, prices and times are from the run. Areas, stars and positions are current.',
}

export const savedQuery = {
  fallbackTitle: 'Saved query',
  changedBy: (owner: string) => `Saved by ${owner}, changed`,
  query: 'Query',
  parameterHint: 'Leave empty to omit the field.',
  request: 'Request',
  run: (name: string) => `Run ${name}`,
  edit: 'Edit…',
}

export const saveDialog = {
  title: 'Save query',
  editTitle: (name: string) => `Edit ${name}`,
  save: 'Save query',
  saveChanges: 'Save changes',
  nameFirst: 'Enter a name first',
  name: 'Name',
  folder: 'Folder',
  folderHint: 'Groups queries in the list.',
  visible: 'Visible to',
  me: 'Only you',
  all: 'Everyone who can sign in',
  saved: (name: string) => `Saved as ${name}`,
}

export const replicas = {
  title: (command: string) => `${command} on every replica`,
  panel: 'Replicas',
  again: 'Read again',
  waiting: 'waiting for a response',
  equal: 'equal',
  different: 'different',
  equalCount: (answered: number, all: number) => `${answered} of ${all} replicas are equal`,
  resultsDiffer: 'Results differ',
  atIndex: (index: string) => ` at index ${index}`,
  atIndexes: (indexes: string) => ` at indexes ${indexes}`,
  missing: (nodes: number) => `; ${nodes} did not respond`,
  reads: (reads: number) => ` (read ${reads} times while indexes advanced)`,
  table: 'Results by node',
  node: 'Node',
  role: 'Role',
  index: 'Index',
  time: 'Time',
  rows: 'Rows',
  result: 'Result',
  differences: 'Differing rows',
  row: 'Row',
  more: 'More rows differ than are listed.',
}

export const explain = {
  title: 'Explain match',
  property: 'Property',
  propertyFirst: 'Enter a property first',
  submit: 'Explain',
  verdicts: {
    'in-result': 'in the result',
    'beyond-limit': 'past the limit',
    filtered: 'filtered out',
    elsewhere: 'in another shard',
    nowhere: 'does not exist',
    unsettled: 'inconclusive',
  },
  conditions: 'Conditions',
  met: 'met',
  notMet: 'not met',
  wouldMatch: (changes: string) => `It would match if ${changes}.`,
  missing: (sources: string) => `No response from ${sources}`,
  readOn: (node: string, index: string | undefined) =>
    `Read on ${node}${index === undefined ? '' : ` at index ${index}`} and verified against the search result.`,
  findFilter: 'Find the limiting filter',
  noSingleFilter: 'No single filter is the cause: without any one of them there are still no matches.',
  without: 'Without ',
  mapBox: 'the map box',
  matches: (properties: number, isLimited: boolean) =>
    `: ${counted(properties, 'property', 'properties')}${isLimited ? ' or more' : ''}`,
  removeFilter: 'Remove filter',
}

export const writeDialog = {
  title: (command: string, shard: string) => `${command} on ${shard}`,
  loading: 'The changes are still loading',
  typeFirst: (text: string) => `Type ${text} first`,
  typeToDelete: (text: string) => `Type ${text} to delete it`,
  run: (command: string) => `Run ${command}`,
  panel: 'Changes',
  deletes: (properties: number, packages: number) =>
    `Deletes ${counted(properties, 'property', 'properties')} and ${counted(packages, 'package')}. This cannot be undone.`,
  noChange: 'Nothing to change: the data already has these values.',
  changes: 'Changes',
  field: 'Field',
  before: 'Current',
  after: 'New',
  nothing: 'none',
  note: (node: string) => `Read on ${node}. The data may still change until the request is sent.`,
}
