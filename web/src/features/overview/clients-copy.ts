/** Texts of what clients see. */
import type { ClientsSummary } from '@vacancy/shared/contract'
import { age, count, counted, duration } from '../../lib/format.ts'

export const clients = {
  title: 'Clients',
  show: 'Show each way in',
  hide: 'Hide',
  off: 'Off',
  offText: 'What clients see is not measured: probe_interval_secs is 0.',
  waiting: 'Not measured yet',
  waitingText: (intervalSeconds: number) =>
    `Every way in is probed once within ${age(intervalSeconds * 1_000)}, by a search and a hold that takes nothing.`,
  answered: 'Answered',
  failing: (shards: number) => `${counted(shards, 'shard')} not answered`,
  partly: (shards: number) => `${counted(shards, 'shard')} answered in part`,
  unmeasured: (shards: number) => `${counted(shards, 'shard')} not measured`,
  shards: ({ answered, partly, shards }: ClientsSummary) =>
    `${count(answered + partly)} of ${counted(shards, 'shard')} answered`,
  latency: (what: 'Search' | 'Hold', latency: ClientsSummary['search']) =>
    latency === null ? `${what}: no answer yet` : `${what} p50 ${duration(latency.p50)}, p99 ${duration(latency.p99)}`,
}
