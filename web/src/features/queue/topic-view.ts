/** State and filter fields of topics. Pure. */
import type { Level, SavedView, TopicStats } from '@vacancy/shared/contract'
import { type Filter, parseFilter } from '../../lib/filter.ts'
import { routes } from '../../lib/routes.ts'
import * as copy from './copy.ts'
import { DEAD_FIELDS } from './dead-filter.ts'

type TopicState = 'paused' | 'stalled' | 'no-consumers' | 'dead' | 'active' | 'idle'

type Shown = { readonly state: TopicState; readonly level: Level; readonly label: string }

/** The first reason why jobs are not worked on; otherwise whether there is work. */
export function stateOf(topic: TopicStats): Shown {
  const { paused, stalledConsumers, consumers, ready, leased, dead, rates1m } = topic
  if (paused) return { state: 'paused', level: 'warn', label: copy.states.paused }
  if (stalledConsumers > 0) return { state: 'stalled', level: 'warn', label: copy.states.stalled(stalledConsumers) }
  if (consumers === 0 && ready > 0) return { state: 'no-consumers', level: 'warn', label: copy.states.noConsumers }
  // At an instant a topic that flows may have no job.
  const flows = rates1m.accepted > 0 || rates1m.acked > 0 || rates1m.failed > 0
  if (dead > 0 && !flows && ready + leased === 0) {
    return { state: 'dead', level: 'warn', label: copy.states.dead(dead) }
  }
  if (flows || ready + leased > 0) return { state: 'active', level: 'ok', label: copy.states.active }
  return { state: 'idle', level: 'unk', label: copy.states.idle }
}

const NUMBERS = ['ready', 'leased', 'delayed', 'dead', 'in', 'out', 'failed', 'oldest', 'consumers', 'bytes'] as const
const TEXTS = ['topic', 'state'] as const
type Key = (typeof NUMBERS)[number] | (typeof TEXTS)[number]

/** The list of topics in a saved view. */
export function topicsViewHref({ filter, sort, columns }: Omit<SavedView, 'name'>): string {
  return routes.queue({ filter, sort, columns: columns?.join(',') })
}

/** Parts of the URL of a topic that a saved view of its jobs keeps. */
const JOBS_VIEW = ['state', ...DEAD_FIELDS] as const

/** The list of jobs that a URL shows, as the filter of a saved view; '' for the default list. */
export function jobsViewFilter(search: URLSearchParams): string {
  const kept = JOBS_VIEW.flatMap((name) => {
    const value = search.get(name)
    return value === null || value === '' ? [] : [[name, value]]
  })
  return new URLSearchParams(kept).toString()
}

/** A saved view of jobs, in a topic. */
export function jobsViewHref(topic: string, { filter }: Pick<SavedView, 'filter'>): string {
  return routes.topic(topic, Object.fromEntries(new URLSearchParams(jobsViewFilter(new URLSearchParams(filter)))))
}

/** Fields of a topic by filter key. */
export function topicFields(topic: TopicStats): Record<Key, string | number> {
  return {
    topic: topic.topic,
    state: stateOf(topic).state,
    ready: topic.ready,
    leased: topic.leased,
    delayed: topic.delayed,
    dead: topic.dead,
    in: topic.rates1m.accepted,
    out: topic.rates1m.acked,
    failed: topic.rates1m.failed,
    oldest: topic.oldestReadyMs / 1_000,
    consumers: topic.consumers,
    bytes: topic.bytes,
  }
}

/** The filter without invalid pairs, and a message for each of those. */
export function parseTopicFilter(text: string): { readonly filter: Filter; readonly faults: readonly string[] } {
  const { words, pairs } = parseFilter(text)
  const faults: string[] = []
  const known = pairs.filter(({ key, op, value }) => {
    if (TEXTS.some((one) => one === key)) return true
    if (!NUMBERS.some((one) => one === key)) faults.push(copy.topics.unknownKey(key, [...TEXTS, ...NUMBERS].join(', ')))
    else if (Number.isNaN(Number(value))) faults.push(copy.topics.needsNumber(key, `${op === ':' ? '' : op}${value}`))
    else return true
    return false
  })
  return { filter: { words, pairs: known }, faults }
}

/** Keys for completion, with the values in use. */
export function topicKeys(topics: readonly TopicStats[]): { readonly [key: string]: readonly string[] } {
  return {
    state: [...new Set(topics.map((topic) => stateOf(topic).state))].sort(),
    dead: ['>0'],
    oldest: ['>60'],
    ...Object.fromEntries(NUMBERS.filter((key) => key !== 'dead' && key !== 'oldest').map((key) => [key, []])),
  }
}
