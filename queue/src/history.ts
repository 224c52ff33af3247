/** The course of topics over the last hour, for charts: a ring of numbers each, filled every ten seconds. Pure. */
import { TOPIC_SERIES, type TopicHistory, type TopicSeries } from '@vacancy/shared/contract'
import type { CourseTotals, History, Moment, Topic } from './job.ts'
import { quantileSince } from './latency.ts'
import { oldestReady } from './places.ts'
import type { Queue } from './state.ts'

export const HISTORY_STEP_MS = 10_000
/** An hour. */
const STEPS = 360
const SPARK_STEPS = 60
/** A sample that came later than this left a gap. */
const LATE_STEPS = 1.5

/**
 * Adds a sample to each topic; to be called every ten seconds.
 *
 * @param topicsMax how many topics may have a history, the first ones
 */
export function sampleHistory(queue: Queue, topicsMax: number, now: Moment): void {
  let kept = 0
  for (const topic of queue.topics.values()) {
    if (kept === topicsMax) break
    kept++
    if (topic.history === undefined) topic.history = createHistory(topic, now)
    else sampleTopic(topic, topic.history, now)
  }
}

function createHistory(topic: Topic, { monotonicMs }: Moment): History {
  const values = new Float32Array(STEPS * TOPIC_SERIES.length).fill(Number.NaN)
  return { values, next: 0, length: 0, at: monotonicMs, totals: totalsOf(topic), ...latenciesOf(topic) }
}

function totalsOf({ totals }: Topic): CourseTotals {
  const { accepted, acked, lateAcked, nacked, expired } = totals
  return { accepted, finished: acked + lateAcked, failed: nacked + expired }
}

function latenciesOf({ deliverySeconds, ackSeconds }: Topic): Pick<History, 'deliveries' | 'handlings'> {
  return { deliveries: deliverySeconds.counts.slice(), handlings: ackSeconds.counts.slice() }
}

function sampleTopic(topic: Topic, history: History, now: Moment): void {
  const elapsedMs = now.monotonicMs - history.at
  if (elapsedMs <= 0) return
  const missed = elapsedMs > LATE_STEPS * HISTORY_STEP_MS ? Math.round(elapsedMs / HISTORY_STEP_MS) - 1 : 0
  for (let n = Math.min(missed, STEPS); n > 0; n--) put(history, undefined)
  const before = history.totals
  const totals = totalsOf(topic)
  const rate = (name: keyof CourseTotals) => ((totals[name] - before[name]) / elapsedMs) * 1000
  const { ready, delayed, leased, dead } = topic.counts
  const oldest = oldestReady(topic)
  put(history, {
    in: rate('accepted'),
    out: rate('finished'),
    failed: rate('failed'),
    ready,
    delayed,
    leased,
    dead,
    oldest: oldest === undefined ? 0 : Math.max(0, now.wallMs - oldest.createdAt) / 1000,
    deliveryP50: quantileSince(topic.deliverySeconds, history.deliveries, 0.5),
    deliveryP99: quantileSince(topic.deliverySeconds, history.deliveries, 0.99),
    handlingP50: quantileSince(topic.ackSeconds, history.handlings, 0.5),
    handlingP99: quantileSince(topic.ackSeconds, history.handlings, 0.99),
  })
  history.at = now.monotonicMs
  history.totals = totals
  Object.assign(history, latenciesOf(topic))
}

function put(history: History, sample: Readonly<Record<TopicSeries, number>> | undefined): void {
  for (const [index, name] of TOPIC_SERIES.entries())
    history.values[index * STEPS + history.next] = sample === undefined ? Number.NaN : sample[name]
  history.next = (history.next + 1) % STEPS
  history.length = Math.min(history.length + 1, STEPS)
}

/** The newest values of a series, oldest first, with gaps before the first one. */
function lastOf(history: History | undefined, name: TopicSeries, steps: number): (number | null)[] {
  const first = TOPIC_SERIES.indexOf(name) * STEPS
  return Array.from({ length: steps }, (_, n) => {
    const age = steps - n
    if (history === undefined || age > history.length) return null
    const value = history.values[first + ((history.next - age + STEPS) % STEPS)] ?? Number.NaN
    return Number.isNaN(value) ? null : Math.round(value * 10_000) / 10_000
  })
}

function courseOf(steps: number, end: number): { from: string; to: string; stepSeconds: number } {
  return {
    from: new Date(end - steps * HISTORY_STEP_MS).toISOString(),
    to: new Date(end).toISOString(),
    stepSeconds: HISTORY_STEP_MS / 1000,
  }
}

/** When the last sample was taken, on the wall clock. */
function endOf(history: History | undefined, now: Moment): number {
  return history === undefined ? now.wallMs : now.wallMs - (now.monotonicMs - history.at)
}

export function topicHistory(topic: Topic, minutes: number, now: Moment): TopicHistory {
  const steps = (minutes * 60_000) / HISTORY_STEP_MS
  const { history } = topic
  return {
    topic: topic.name,
    ...courseOf(steps, endOf(history, now)),
    series: TOPIC_SERIES.map((name) => ({ name, values: lastOf(history, name, steps) })),
  }
}

/** Ready jobs and time to delivery in the last ten minutes, of each topic that has a history. */
export function sparklines(topics: readonly Topic[], now: Moment) {
  const [first] = topics
  return {
    ...courseOf(SPARK_STEPS, endOf(first?.history, now)),
    topics: topics
      .filter(({ history }) => history !== undefined)
      .map(({ name, history }) => ({
        topic: name,
        ready: lastOf(history, 'ready', SPARK_STEPS),
        deliveryP99: lastOf(history, 'deliveryP99', SPARK_STEPS),
      })),
  }
}
