/** Texts of golden searches: the list, and what they find in a snapshot. */
import type { Expectation, GoldenCheck, GoldenOutcome, GoldenSearch } from '@vacancy/shared/contract'
import { count, counted } from '../../lib/format.ts'

export const verdicts: { readonly [verdict in GoldenOutcome['verdict']]: string } = {
  passed: 'Passes',
  slow: 'Slow',
  failed: 'Fails',
}

export const list = {
  title: 'Golden searches',
  lead: 'Searches with what they must find. They run on every snapshot before its install, and here on the shard itself.',
  ofShard: (shard: string) => `Golden searches of ${shard}`,
  none: 'No golden searches yet. Run a search in the playground, then More, Save as golden search.',
  openPlayground: 'Open playground',
  run: (shard: string) => `Run all on ${shard}`,
  ran: (passed: number, all: number) =>
    passed === all ? `${all === 1 ? 'It passes' : `All ${all} pass`}.` : `${all - passed} of ${all} do not pass.`,
  name: 'Name',
  search: 'Search',
  expects: 'Expects',
  last: 'On the shard',
  notRun: 'not run',
  at: (node: string) => `${node},`,
  actions: 'Actions',
  actionsOf: (name: string) => `Actions for ${name}`,
  runOne: 'Run now',
  change: 'Change…',
  remove: 'Remove…',
  removeTitle: (name: string) => `Remove ${name}`,
  removeEffect: 'It is no longer run on snapshots. The audit log keeps what it was.',
  removed: (name: string) => `Removed ${name}.`,
}

export const snapshot = {
  title: 'Golden searches',
  none: (shard: string) => `${shard} has no golden searches: saved searches that must find the same in each snapshot.`,
  states: {
    none: '',
    due: 'Not run on this snapshot yet.',
    running: 'Running',
    done: '',
    'not-run': 'Not run:',
  } satisfies { readonly [state in GoldenCheck['state']]: string },
  runs: (done: number, of: number) => `Running: ${count(done)} of ${count(of)}`,
  run: 'Run on this snapshot',
  again: 'Run again',
  ranAt: 'Run',
  found: 'Finds',
  open: 'Open list',
}

/** "≥ 20 properties; contains a, b; p99 ≤ 2 ms" */
export function expectText({ atLeast, contains, p99Ms }: Expectation): string {
  return [
    ...(atLeast === null ? [] : [`at least ${counted(atLeast, 'property', 'properties')}`]),
    ...(contains.length > 0 ? [`contains ${contains.join(', ')}`] : []),
    ...(p99Ms === null ? [] : [`p99 within ${p99Ms} ms`]),
  ].join('; ')
}

/** "alps, double, 2 dates from 5 days ahead" */
export function searchText({ fields, daysAhead }: Pick<GoldenSearch, 'fields' | 'daysAhead'>): string {
  return Object.entries(fields)
    .map(([name, value]) => {
      if (name === 'segment') return String(value)
      if (name !== 'dates') return `${name} ${Array.isArray(value) ? value.join(' ') : String(value)}`
      const dates = [value].flat().map(String)
      if (daysAhead === null) return dates.join(' ')
      return `${counted(dates.length, 'date')} from ${counted(daysAhead, 'day')} ahead`
    })
    .join(', ')
}
