/** Texts of imports: list, new import, uploads and builds. Results have their own. */
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

/** In the order of a build. */
export const phases: Readonly<Record<NonNullable<ImportView['progress']>['phase'], string>> = {
  settings: 'Read files and check settings',
  properties: 'Read properties',
  packages: 'Read packages',
  tables: 'Sort and link',
  write: 'Write the snapshot',
  verify: 'Verify the file',
  errors: 'Collect all errors',
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
  target: '1 Shard, name and prices',
  shard: 'Shard',
  shardHint: 'You can enter a shard that does not exist yet.',
  name: 'Name',
  nameHint: 'Shown in lists, for example hotels-november.',
  decimals: 'Decimals of prices',
  decimalsHint: 'In packages.csv. With 2, 12.50 is stored as 1250.',
  decimalsOf: (decimals: string) => (decimals === '0' ? '0: whole numbers' : decimals),
  ownCodecs: (file: string) => `Uses the codec list of ${file} instead of the one of the cluster.`,
  codecs: (features: number, source: string, names: string) =>
    `${counted(features, 'rate feature')} in the codec list of ${source}: ${names}`,
  noCodecs: 'Codec list unavailable',
  noCodecsHint: 'The build waits for the list.',
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
  noted: (name: string, fault: string) => `${name} ${fault}.`,
  duplicate: (name: string, kind: string) => `${name} is a second ${kind} file.`,
  nameMismatch: (name: string, kind: string) => `${name} is used as ${kind}.csv, because of its content.`,
  codecsTooLarge: (name: string, size: string) => `${name} is too large for a codec list: ${size}.`,
  codecsInvalid: (name: string, reason: string) => `${name}: ${reason}`,
  folderUnreadable: (reason: string) => `Could not list the import folder: ${reason}`,
  folder: 'Or choose from the import folder of the control plane, without upload',
  inFolder: (kind: string) => `${kind}.csv in the folder`,
  folderMore: 'More files exist than are listed.',
  recent: ', changed just now: may still be written',
  places: { browser: '', folder: 'from the import folder, no upload', upload: 'uploaded before' },
  notChosen: 'not chosen yet',
}

/** Each completes "hotels.csv …". */
export const heads = {
  empty: 'is empty',
  utf8: 'is not UTF-8: save it as UTF-8',
  form: (column: string, form: string) =>
    `has ${form} in ${column}: save it in the form that the column needs, or import it with vacancy import-source`,
  nul: 'contains NUL bytes and is not text',
  noRows: 'has no rows',
  brokenLine: (line: number) => `has an unclosed quote or an overlong line in line ${line}`,
  columns: (columns: number, line: number, properties: number, packages: number) =>
    `has ${counted(columns, 'column')} in line ${line}; properties have ${properties}, packages ${packages}`,
  carriageReturns: '; lines end with a carriage return only',
  inLine: (line: number, reason: string) => `line ${line} ${reason}`,
  otherOrder: 'has its columns in another order; they are read by name',
}

export const send = {
  title: '3 Upload and build',
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
  decimals: (decimals: number) => `, prices with ${counted(decimals, 'decimal')}`,
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
  eta: 'Ends in',
  runningFor: 'Running for',
  memory: 'Builder memory',
  phases: 'Phases',
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
  views: 'Errors: views',
  alike: 'Equal errors together',
  each: 'Every row',
  rows: 'Rows',
  firstLine: 'First line',
  ofAlike: (shown: string) => `The ${shown} most frequent are shown.`,
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
