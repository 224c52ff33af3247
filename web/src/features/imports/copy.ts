/** Texts of imports: list, new import, checks, uploads, builds and results. */
import type { ImportState, ImportView } from '@vacancy/shared/contract'
import { counted } from '../../lib/format.ts'

export const common = {
  imports: 'Imports',
  newImport: 'New import',
  cancel: 'Cancel',
}

export const states: Readonly<Record<ImportState, string>> = {
  uploading: 'Uploading',
  queued: 'Queued',
  checking: 'Reading files',
  building: 'Building',
  verifying: 'Verifying',
  built: 'Built',
  failed: 'Failed',
  cancelled: 'Cancelled',
}

export const phases: Readonly<Record<NonNullable<ImportView['progress']>['phase'], string>> = {
  settings: 'read files and check settings',
  properties: 'properties',
  packages: 'packages',
  tables: 'sort and link',
  write: 'write',
  verify: 'verify',
  errors: 'collect all errors',
}

export const list = {
  name: 'Import',
  shard: 'Shard',
  state: 'State',
  progress: 'Progress',
  packages: 'Packages',
  by: 'By',
  started: 'Started',
  empty: 'No imports yet. An import turns two CSV files into a snapshot that you can install on a shard.',
  unusedUploads: 'Unused uploads',
  unusedUploadsHint: 'Uploads are kept for 48 hours after their last byte and can be used by another import.',
  receivedOf: (received: string, size: string) => `${received} of ${size}`,
  incomplete: ', incomplete',
  delete: (name: string) => `Delete ${name}`,
}

export const start = {
  lead: 'Build a snapshot from two CSV files. Nothing is uploaded until you confirm.',
  target: '1 Shard and name',
  shard: 'Shard',
  shardHint: 'You can enter a shard that does not exist yet.',
  name: 'Name',
  nameHint: 'Shown in lists, for example hotels-november.',
  ownCodecs: (file: string) => `Uses the codec list of ${file} instead of the one of the cluster.`,
  codecs: (features: number, source: string, names: string) =>
    `${counted(features, 'rate feature')} in the codec list of ${source}: ${names}`,
  noCodecs: 'Codec list unavailable',
  noCodecsHint: 'Rate features cannot be checked here, and the build waits for the list.',
  codecsOfBefore: 'codecs.yml of the previous import',
  replaces: (name: string, kept: string) => `Replaces ${name}. ${kept} is kept; choose the other file.`,
  replacesBoth: (name: string, missing: string) =>
    `Replaces ${name}. The upload of ${missing}.csv has expired; choose both files.`,
  beforeUnreadable: (reason: string) => `Could not read the previous import: ${reason}`,
}

export const files = {
  title: '2 Files',
  dropHint:
    'Drop properties.csv and packages.csv here, plain or as .gz, in any order. For a node with its own codec list, add its codecs.yml.',
  choose: 'Choose files',
  codecs: 'codec list',
  remove: (name: string) => `Remove ${name}`,
  swap: 'Swap files',
  unreadable: (reason: string) => `Could not read the files: ${reason}`,
  invalid: (name: string, fault: string) => `${name} ${fault}.`,
  duplicate: (name: string, kind: string) => `${name} is a second ${kind} file.`,
  nameMismatch: (name: string, kind: string) => `${name} is used as ${kind}.csv, because of its content.`,
  codecsTooLarge: (name: string, size: string) => `${name} is too large for a codec list: ${size}.`,
  codecsInvalid: (name: string, reason: string) => `${name}: ${reason}`,
  folderUnreadable: (reason: string) => `Could not list the import folder: ${reason}`,
  folder: 'Or choose from the import folder of the control plane, without upload',
  inFolder: (kind: string) => `${kind}.csv in the folder`,
  folderMore: 'More files exist than are listed.',
  places: { browser: '', folder: 'from the import folder, no upload', upload: 'uploaded before' },
  notChosen: 'not chosen yet',
}

/** Each completes "hotels.csv …". */
export const fileFaults = {
  empty: 'is empty',
  utf16: 'is UTF-16: save it as UTF-8',
  zip: 'is a ZIP archive: unpack it, or compress it with gzip',
  nul: 'contains NUL bytes and is not text',
  noRows: 'has no rows',
  brokenLine: (line: number) => `has an unclosed quote or an overlong line in line ${line}`,
  columns: (columns: number, line: number, properties: number, packages: number) =>
    `has ${counted(columns, 'column')} in line ${line}; properties have ${properties}, packages ${packages}`,
  carriageReturns: '; lines end with a carriage return only',
}

export const check = {
  title: '3 Check',
  none: 'Files are checked as soon as you choose them.',
  elsewhere: 'These files are not in this browser. The build checks every row.',
  sampling: 'Checking a sample of the files.',
  all: 'Check every row here',
  stop: 'Stop checking',
  progress: 'Checking every row',
  failed: (reason: string) => `Could not check the files: ${reason}`,
  workerFailed: 'The check could not start.',
  inSample: (size: string) => `in a sample of ${size}`,
  result: (errors: number, rows: number, isSample: boolean) =>
    `${errors > 0 ? `${isSample ? 'At least ' : ''}${counted(errors, 'error')}` : 'No errors'} in ${counted(rows, 'row')}`,
  stopped: ' (stopped)',
  columnCount: (found: number, expected: number, text: string) => `${found} columns instead of ${expected}: ${text}`,
  inLine: (line: number, reason: string | undefined) => `line ${line} ${reason}`,
  nearest: (name: string, nearest: string) => `${name} (nearest: ${nearest})`,
}

export const findingsTable = {
  title: 'Findings',
  level: 'Level',
  file: 'File',
  finding: 'Finding',
  count: 'Count',
  firstLine: 'First line',
  lineUnknown: 'unknown',
  example: 'Example',
  card: (count: number, file: string, line: string | undefined, action: string) =>
    `${counted(count, 'time')} in ${file}${line === undefined ? '' : `, first in line ${line}`}. ${action}`,
  previews: 'First rows of the files',
  previewTab: (kind: string, hasHeader: boolean) => `${kind}, header: ${hasHeader ? 'yes' : 'no'}`,
  preview: (kind: string) => `First rows of ${kind}`,
  noRows: 'No rows to show.',
  invalid: ' (invalid)',
}

/** What a finding is, and what to do. */
export const findings = {
  header: {
    text: 'The header does not match the columns of the file',
    action: 'Correct the header, or remove it: files without a header are read by position.',
  },
  'header-names': {
    text: 'Unknown column names; read by position',
    action: 'Verify in the preview that each column holds what its heading says.',
  },
  order: {
    text: 'Columns in a different order; read by name',
    action: 'No action needed. Packages in the documented order are read faster.',
  },
  columns: {
    text: 'Wrong number of columns',
    action: 'Separate cells by commas, and quote cells that contain one.',
  },
  quote: {
    text: 'Unclosed quote, or text after a closing quote',
    action: 'Double quotes inside a quoted cell.',
  },
  long: { text: 'Line longer than 65,536 bytes', action: 'Check its line ends and quotes.' },
  text: {
    text: 'Name with a control character, blank, or longer than 255 bytes',
    action: 'Correct the name.',
  },
  utf8: { text: 'Not UTF-8', action: 'Export the file as UTF-8.' },
  nul: { text: 'Contains NUL bytes', action: 'Export the file as CSV.' },
  feature: {
    text: 'Rate feature is not in the codec list',
    action: 'Correct the name, or change the codec list first. Otherwise the import stops.',
  },
  features: { text: 'More than 24 rate features', action: 'Remove the excess.' },
  date: { text: 'Invalid date', action: 'Write dates as 2026-11-24.' },
  availability: { text: 'Availability is not a whole number 0–255', action: 'Limit larger numbers to 255.' },
  price: {
    text: 'Price is not a whole number 0–4294967294',
    action: 'Use whole numbers of the smallest currency unit. 120.00 is accepted.',
  },
  latitude: {
    text: 'Latitude is not between −90 and 90',
    action: 'Check whether latitude and longitude are swapped.',
  },
  longitude: { text: 'Longitude is not between −180 and 180', action: 'Use a decimal point.' },
  digits: {
    text: 'Position without six decimal places',
    action: 'No action needed. Six decimal places are 10 cm.',
  },
  empty: {
    text: 'Empty name',
    action: 'A property needs an id, segment, area, type and category; a package needs a room type.',
  },
  id: {
    text: 'Property id is neither a UUID nor 1–14 printable ASCII characters',
    action: 'Use a UUID, or 1–14 printable ASCII characters.',
  },
  stars: { text: 'Stars are not a whole number 1–5', action: 'Round them.' },
  twice: { text: 'Duplicate property', action: 'Keep one of the lines.' },
  'package-twice': { text: 'Duplicate property, room type and date', action: 'Keep one of the lines.' },
  unknown: {
    text: 'Package of a property that is not in properties.csv',
    action: 'Add the property, or remove the package.',
  },
  rooms: { text: 'Property with more than 10 room types', action: 'Check for spelling variants of one room type.' },
  free: { text: 'Price 0', action: 'Check whether the price is missing.' },
  past: { text: 'Date in the past or beyond the usual window', action: 'Such packages are skipped and counted.' },
}

export const send = {
  title: '4 Upload and build',
  upload: 'Upload size',
  free: 'Free on the control plane',
  packages: 'Packages (estimate)',
  memory: 'Memory per node (estimate)',
  buildTime: 'Build time (estimate)',
  noSpace: 'Not enough disk space on the control plane',
  noSpaceHint: (needed: string, free: string) =>
    `The files need ${needed}; ${free} are free. Delete old snapshots or unused uploads.`,
  missing: (parts: readonly string[]) => `First ${parts.join(', ')}`,
  enterShard: 'enter a shard',
  enterName: 'enter a name',
  choose: (kind: string) => `choose ${kind}.csv`,
  unknownFeature: 'A rate feature is not in the codec list. Correct the file or change the list first',
  build: 'Build',
  uploadAndBuild: 'Upload and build',
  uploadedAs: (name: string, kind: string) => `${name} was uploaded as ${kind}.csv.`,
}

export const upload = {
  receivedOf: (received: string, size: string) => `${received} of ${size}`,
  rate: (bytes: string) => `${bytes}/s`,
  left: (time: string) => `${time} left`,
  pause: (name: string) => `Pause ${name}`,
  resume: (name: string) => `Resume ${name}`,
  paused: 'Paused',
  offline: 'Offline. Resumes when the connection is back.',
  unreadable: 'The file can no longer be read. Choose it again.',
  resumesAt: (name: string, share: string) => `${name} resumes at ${share}`,
  chooseHint: (name: string, size: string) =>
    `Waiting for the file, unless another tab or computer uploads it. Choose ${name} (${size}) again to resume.`,
  choose: (name: string) => `Choose ${name} again`,
  sizeDiffers: (chosen: string, size: string, expected: string, expectedSize: string) =>
    `${chosen} has ${size}; ${expected} had ${expectedSize}.`,
  contentDiffers: (chosen: string) => `${chosen} has the same size but different content.`,
}

export const page = {
  unknownTitle: 'Import not found',
  unknown: (id: string) => `There is no import ${id}. Only the newest 200 imports are kept.`,
  openImports: 'Open all imports',
  fallbackTitle: 'Import',
  forShard: 'For shard',
  nights: (from: string, to: string) => `nights ${from} – ${to}`,
  started: 'started',
  by: (name: string) => `by ${name}`,
  withoutRows: ', without the rows rejected by',
  anotherImport: 'a previous import',
  ownCodecs: (names: string) => `, with its own codec list: ${names}`,
  cancelImport: 'Cancel import',
  cancelled: (name: string) => `${name} cancelled. Its output is deleted; its uploads are kept for 48 hours.`,
  cancelledHint: 'Its uploads are kept for 48 hours and can be used by another import.',
  label: (name: string) => `Import ${name}`,
  steps: 'Import steps',
  step: { files: 'Files', upload: 'Upload', build: 'Build', result: 'Result' },
  upload: 'Upload',
  uploadHint:
    'The build starts when both files are uploaded. You can leave this page; after a reload you have to choose the same files again.',
  build: 'Build',
  phase: (number: number, of: number, phase: string) => `Phase ${number} of ${of}: ${phase}`,
  progress: (share: string, records: string) => `${share} · ${records} records`,
  rate: 'Records per second',
  eta: 'Phase ends in',
  runningFor: 'Running for',
  memory: 'Builder memory',
  rateChart: (max: string) => `Records per second, max ${max}`,
  result: 'Result',
  speed: (rate: string, threads: number) => `${rate} records per second with ${counted(threads, 'thread')}.`,
  snapshot: 'Snapshot',
  compare: (shard: string) => `Compare with live ${shard}`,
  download: 'Download snapshot',
  open: 'Open snapshot',
  copyCommand: 'Copy build-snapshot command',
  files: 'Files',
  rows: (rows: string) => `${rows} rows`,
  unpacked: 'unpacked from gzip',
  log: (lines: number) => `Log (${counted(lines, 'line')})`,
}

export const counters = {
  title: 'Counters',
  agree: 'Row counts match.',
  differ: 'Row counts differ. This snapshot cannot be installed.',
  caption: 'Row counts by source',
  source: 'Counted by',
  properties: 'Properties',
  packages: 'Packages',
  skipped: 'Skipped',
  rowsOfFiles: 'Rows of the files',
  builder: 'Builder',
  readBack: 'Snapshot, read back',
  rejected: (rows: number) => `${counted(rows, 'row')} skipped that the previous import rejected`,
  rejectedSum: (rows: string, accepted: string, outside: string, rejected: string) =>
    `Rows in files ${rows} = accepted ${accepted} + outside the window ${outside} + rejected ${rejected}.`,
  outside: (packages: number) => `${counted(packages, 'package')} skipped`,
  outsideSum: (rows: string, accepted: string, skipped: string) =>
    `Their nights are outside the window of this import. Rows of packages.csv ${rows} = accepted ${accepted} + skipped ${skipped}.`,
}

export const coverage = {
  title: 'Coverage: segments and nights',
  mapTitle: 'Packages by segment and night',
  views: (title: string) => `${title}: views`,
  map: 'Map',
  table: 'Table',
  segment: 'Segment',
  properties: 'Properties',
  packages: 'Packages',
  daysWithout: 'Days without packages',
  none: 'No packages on any day.',
  cell: (segment: string, date: string, packages: number) => `${segment}, ${date}: ${counted(packages, 'package')}`,
  label: (title: string) => `${title}. The Table tab has the same as numbers.`,
  max: (packages: number) => `max ${counted(packages, 'package')} per day and segment`,
}

export const rooms = {
  title: 'Room types per property',
  caption: 'Properties by number of room types',
  tooMany: (properties: number) => `${counted(properties, 'property has', 'properties have')} more than 10 room types.`,
}

export const errors = {
  title: 'Errors',
  file: 'File',
  line: 'Line',
  column: 'Column',
  message: 'Error',
  row: 'Row',
  rowNotKept: 'not kept',
  kind: 'Kind',
  allKinds: (errors: string) => `All kinds (${errors})`,
  kindCount: (kind: string, errors: string) => `${kind} (${errors})`,
  search: 'Find text or a line number',
  count: (errors: number) => counted(errors, 'error'),
  ofKept: (kept: string) => `of the first ${kept}, which are kept`,
  more: 'Show more errors',
  replace: (kind: string) => `Replace ${kind}.csv`,
  buildAgain: 'Build again without the rejected rows',
  buildAgainDialog: (rows: number) => `Build again without the ${counted(rows, 'rejected row')}…`,
}

export const again = {
  title: (name: string, rows: number) => `Build ${name} without ${counted(rows, 'row')}`,
  build: (rows: number) => `Build without ${counted(rows, 'row')}`,
  effect: (rows: number) =>
    `The build uses the same files without the ${counted(rows, 'row')} that this import rejected, so their data is not in the snapshot. Packages of a skipped property are rejected as well.`,
}
