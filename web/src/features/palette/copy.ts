/** Texts of the command palette. */
import { counted, zoneText } from '../../lib/format.ts'

export const palette = {
  title: 'Commands',
  label: 'Search or run a command',
  placeholder: 'Page, shard, “transfer s3 n2”, or a time such as 18:20',
  results: 'Results',
  empty: 'No results. Search for properties in the playground.',
  escape: 'Esc',
}

export const groups = {
  segments: 'Route of a segment',
  stays: 'Stays',
  past: 'The past',
  recent: 'Recent',
  pages: 'Pages',
  shards: 'Shards and nodes',
  actions: 'Actions',
  topics: 'Topics',
  jobs: 'Jobs',
  views: 'Views',
  queries: 'Saved queries',
  imports: 'Imports',
}

export const queue = {
  dead: (jobs: number) => counted(jobs, 'dead job'),
  job: (topic: string, state: string) => `${state}, ${topic}`,
}

export const actions = {
  routeOf: (segment: string) => `Route of ${segment}`,
  routeHint: 'topology',
  findStay: (stay: string) => `Find stay ${stay}`,
  stays: (shard: string) => `Find stay in ${shard}…`,
  clusterAt: (time: string) => `Cluster at ${time}`,
  chartsAt: (time: string) => `Charts at ${time}`,
  prepare: (zone: string) => `Prepare ${zoneText(zone)} for restart`,
  opensPlan: 'opens a plan',
  transfer: (shard: string, node: string) => `Transfer leadership of ${shard} to ${node}`,
  promote: (node: string, shard: string) => `Promote ${node} of ${shard}`,
  demote: (node: string, shard: string) => `Demote ${node} of ${shard}`,
  replace: (node: string, shard: string) => `Replace voter ${node} of ${shard}`,
  pause: 'Pause live updates',
  resume: 'Resume live updates',
  theme: (theme: string) => `Theme: ${theme}`,
  themes: { system: 'system', light: 'light', dark: 'dark', contrast: 'high contrast' },
  signOut: 'Sign out',
}
