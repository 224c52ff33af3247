/** Texts of the ways in of clients, which load with their table. */
import type { ClientWay } from '@vacancy/shared/contract'
import { count, counted, duration } from '../../lib/format.ts'

export const ways = {
  table: 'Ways in',
  shard: 'Shard',
  through: 'Through',
  result: 'Result',
  search: 'Search p50 / p99',
  hold: 'Hold p50 / p99',
  failures: 'Failures, 5 min',
  answered: 'Last answer',
  kinds: { edge: 'Edge router', node: 'Node' } satisfies Record<ClientWay['through'], string>,
  latency: (latency: ClientWay['search']['latency']) =>
    latency === null ? '–' : `${duration(latency.p50)} / ${duration(latency.p99)}`,
  of: (failed: number, sent: number) => `${count(failed)} of ${count(sent)}`,
  none: 'No shard is known yet.',
  more: (rest: number) => `${counted(rest, 'more way', 'more ways')} in, all of them in a better state.`,
}
