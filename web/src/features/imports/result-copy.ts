/** Texts of the result of an import, which pages of snapshots show too. */
import { counted } from '../../lib/format.ts'

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
  day: 'Day',
  difference: 'B minus A',
  differenceOf: (segment: string, date: string, by: string) => `${segment}, ${date}: ${by}`,
  cell: (segment: string, date: string, packages: number) => `${segment}, ${date}: ${counted(packages, 'package')}`,
  label: (title: string) => `${title}. The Table tab has the same as numbers.`,
  packagesOf: (by: string) => `${by} packages`,
  max: (packages: number) => `max ${counted(packages, 'package')} per day and segment`,
}

export const rooms = {
  title: 'Room types per property',
  caption: 'Properties by number of room types',
  tooMany: (properties: number) => `${counted(properties, 'property has', 'properties have')} more than 10 room types.`,
}
