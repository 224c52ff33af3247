/** Texts of the frame around every page. */
import { count } from '../../lib/format.ts'

export const product = 'Vacancy'

export const shell = {
  navigation: 'Pages',
  menu: 'Menu',
  search: 'Search or run a command',
  searchKey: 'Ctrl K',
  shortcuts: 'Keyboard shortcuts',
  signedInAs: (name: string, role: string) => `Signed in as ${name}, ${role}`,
  account: (name: string, role: string) => `${name} · ${role}`,
  appearance: 'Appearance',
  signOut: 'Sign out',
  badge: (items: number) => (items === 1 ? '1 item needs attention' : `${count(items)} items need attention`),
  skipToContent: 'Skip to content',
  skipToFilters: 'Skip to filters',
  skipToOperations: 'Skip to operations',
}

/** What keyboard shortcuts do. */
export const keys = {
  shortcuts: 'Show keyboard shortcuts',
  filter: 'Filter this page',
  nextRow: 'Next row of the table',
  previousRow: 'Previous row of the table',
  previousTab: 'Previous tab',
  nextTab: 'Next tab',
  goTo: (page: string) => `Go to ${page}`,
  pause: 'Pause or resume live updates',
}

export const banners = {
  lastKnown: 'Showing the last known state from',
  disconnected: 'Actions are disabled until the connection is back.',
  reconnect: 'Reconnect now',
  paused: 'Paused',
  pausedHint: 'Values on this page are frozen. Changes are applied when you resume.',
  resume: 'Resume',
  readOnly: 'Read only',
  readOnlyHint: 'You are signed in as a viewer. You can view everything but change nothing.',
}

export const live = {
  title: 'Live updates',
  retryingIn: (seconds: number) => `Disconnected, retrying in ${seconds} s`,
  retrying: 'Disconnected, retrying',
  signedOut: 'Signed out',
  paused: (changes: number) => `Paused, ${changes === 1 ? '1 change' : `${count(changes)} changes`} waiting`,
  connecting: 'Connecting',
  polling: (age: string) => `Polling ${age}`,
  past: 'Past',
  live: (seconds: string) => `Live ${seconds} s`,
  delayed: (seconds: number) => `Delayed ${seconds} s`,
  stale: (seconds: number) => `Stale ${seconds} s`,
}

export const arriving = 'Loading the page…'

export const failed = 'This page failed'

export const notFound = {
  title: 'Page not found',
  text: (path: string) => `There is no page at ${path}. Similar pages:`,
}
