/** Texts of the components that the shell loads. */

export const age = { suffix: ' ago', never: 'never', now: 'now' }

export const chip = { remove: 'Remove' }

export const clipboard = {
  copied: 'Copied',
  blocked: 'The browser blocked copying. Select the text instead.',
}

export const codeView = { copy: (label: string) => `Copy: ${label}` }

export const dialog = { close: 'Close' }

export const late = {
  notLoaded:
    'its code could not be loaded, perhaps because the control plane cannot be reached or is of another version',
  failed: (why: string) => `This part of the console could not be shown: ${why}. Open it again to retry.`,
}

export const page = {
  breadcrumb: 'Breadcrumb',
}

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

export const toasts = {
  label: 'Notifications',
  close: 'Dismiss',
  earlier: (earlier: number) => `${earlier} earlier`,
}
