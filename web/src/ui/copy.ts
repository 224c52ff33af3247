/** Texts of the shared components. */

export const age = { suffix: ' ago', never: 'never', now: 'now' }

export const chip = { remove: 'Remove' }

export const clipboard = {
  copied: 'Copied',
  blocked: 'The browser blocked copying. Select the text instead.',
}

export const codeView = { copy: (label: string) => `Copy: ${label}` }

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

export const dialog = { close: 'Close' }

export const field = { required: ' (required)' }

export const filterBox = {
  clear: 'Clear filters',
  active: (label: string) => `${label}: active filters`,
  remove: (part: string) => `Remove ${part}`,
  shownOf: (shown: string, total: string) => `${shown} of ${total}`,
}

export const freshness = { gone: ', not seen recently', never: ', never seen' }

export const id = { copy: (label: string) => `Copy ${label} ID` }

export const page = { breadcrumb: 'Breadcrumb' }

export const panel = {
  clearFilters: 'Clear filters',
  copyDetails: 'Copy details',
  failed: 'This panel failed',
  fromCommandLine: 'From the command line',
  loading: 'Loading',
  noResponse: 'no response',
  refreshFailed: (message: string) => `Refresh failed: ${message}`,
  reload: 'Reload panel',
  request: (id: string) => `request ${id}`,
  retry: 'Retry',
  showAll: 'Show all',
  unknownError: 'Something went wrong.',
}

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

export const toasts = { label: 'Notifications', close: 'Dismiss' }
