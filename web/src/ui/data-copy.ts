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
}

export const field = { required: ' (required)' }

export const filterBox = {
  clear: 'Clear filters',
  active: (label: string) => `${label}: active filters`,
  remove: (part: string) => `Remove ${part}`,
  shownOf: (shown: string, total: string) => `${shown} of ${total}`,
}

export const freshness = { gone: ', not seen recently', never: ', never seen' }

export const id = { copy: (label: string) => `Copy ${label} ID` }

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
}
