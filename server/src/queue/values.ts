/** Figures of all topics together, for the metrics of the cluster. */

import type { Partition } from '@vacancy/queue'
import type { Values } from '../history/series.ts'

type Totals = { readonly at: number; readonly accepted: number; readonly finished: number; readonly failed: number }

/** @returns reads the figures; rates are those since the read before, none when the queue was loaded in between */
export function queueValues(partitions: readonly Partition[], monotonicMs: () => number): () => Values {
  let before: Totals | undefined
  return () => {
    const queues = partitions.flatMap(({ queue }) => queue ?? [])
    if (queues.length === 0) {
      before = undefined
      return {}
    }
    const topics = queues.flatMap((queue) => [...queue.topics.values()])
    const sum = (of: (topic: (typeof topics)[number]) => number) => topics.reduce((all, topic) => all + of(topic), 0)
    const now: Totals = {
      at: monotonicMs(),
      accepted: sum(({ totals }) => totals.accepted),
      finished: sum(({ totals }) => totals.acked + totals.lateAcked),
      failed: sum(({ totals }) => totals.nacked + totals.expired),
    }
    const last = before
    before = now
    const rate = (name: 'accepted' | 'finished' | 'failed') =>
      last && now.at > last.at && now[name] >= last[name]
        ? ((now[name] - last[name]) / (now.at - last.at)) * 1_000
        : null
    return {
      queue_ready: sum(({ counts }) => counts.ready),
      queue_leased: sum(({ counts }) => counts.leased),
      queue_delayed: sum(({ counts }) => counts.delayed),
      queue_dead: sum(({ counts }) => counts.dead),
      queue_in: rate('accepted'),
      queue_out: rate('finished'),
      queue_failed: rate('failed'),
      queue_consumers: queues.reduce((all, { consumers }) => all + consumers.size, 0),
    }
  }
}
