/** Texts of the components that only pages load: filters, tables, charts and forms. */

export const combobox = {
  choices: 'Suggestions',
  noMatch: 'No matches',
  remove: (value: string) => `Remove ${value}`,
}

export const confirmFields = {
  typeToConfirm: (text: string) => `Type ${text} to confirm`,
  typeFirst: (text: string | undefined) => `Type ${text} first`,
  reason: 'Reason (recorded in the audit log)',
  reasonTooShort: (characters: number) => `Enter a reason of at least ${characters} characters`,
  cancel: 'Cancel',
}

export const field = { required: ' (required)' }

export const filterBox = {
  clear: 'Clear filters',
  active: (label: string) => `${label}: active filters`,
  remove: (part: string) => `Remove ${part}`,
  shownOf: (shown: string, total: string) => `${shown} of ${total}`,
}

export const freshness = { gone: ', not seen recently', never: ', never seen' }

export const heat = {
  price: (from: string, to: string) => `Price colours by rank, from at most ${from} to more than ${to}`,
  availability: (to: string) => `Colours of rooms left, from 1 to ${to}`,
  atMost: (value: string) => `≤ ${value}`,
  overPrice: (price: string) => `> ${price} per night`,
  overTotal: (total: string) => `> ${total} per stay`,
  noneFits: 'no property fits',
  oneLeft: '1 left',
  atLeastRooms: (rooms: string) => `≥ ${rooms} left`,
  noneLeft: 'none left',
  full: 'full',
  noPackage: 'no package',
}

export const id = { copy: (label: string) => `Copy ${label} ID` }

export const event = {
  open: 'Open this moment',
  all: (events: number) => `${events} events`,
  kinds: {
    leader: 'Leader changes',
    restart: 'Restarts',
    operation: 'Operations',
    codecs: 'Codec lists',
    membership: 'Members',
    state: 'States',
    role: 'Elections',
    snapshot: 'Snapshots',
  },
}

export const nextSteps = 'Next steps'

export const progress = { indeterminate: 'in progress' }

export const table = {
  orderChanged: 'Order changed, sort again',
  select: (row: string) => `Select ${row}`,
  selectAll: (label: string) => `Select all: ${label}`,
}

export const timeChart = {
  more: (series: number) => `and ${series} more`,
  showChart: (title: string) => `Show ${title} as chart`,
  showTable: (title: string) => `Show ${title} as table`,
  timeColumn: 'UTC',
  noData: 'No data in this time range.',
  gap: 'not recorded',
  last: 'last',
  min: 'min',
  max: 'max',
  actions: (title: string) => `Copy ${title}`,
  copyPng: 'Copy as PNG',
  copyCsv: 'Copy as CSV',
  copyPromql: 'Copy as PromQL',
  noPicture: 'Show it as a chart first',
  noPromql: 'The control plane derives it; Prometheus has no such metric',
  copied: (what: string) => `${what} copied`,
  saved: (what: string) => `The browser does not allow copying it; ${what} was downloaded`,
  failed: 'The browser does not allow copying it',
  formats: { png: 'PNG', csv: 'CSV', promql: 'PromQL' },
}
