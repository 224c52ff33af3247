/** Planted defects of the queue, which its tests must find. */
import type { Defect } from '@vacancy/testkit/plant'

/** Of the shell around the engine: a journal that loses what was not synced finds them. */
export const LOSING_DEFECTS: readonly Defect[] = [
  {
    name: 'answers before the group is stored',
    file: 'partition.ts',
    from: '    await writeOrRefuse(partition, queue, journal, group)\n',
    to: '    void writeOrRefuse(partition, queue, journal, group).catch((e) => lose(partition, journal, e))\n',
  },
  {
    name: 'a failed group counts as stored',
    file: 'partition.ts',
    from: '    return lose(partition, journal, error as Error)\n',
    to: '    setImmediate(() => lose(partition, journal, error as Error))\n',
  },
  {
    name: 'a failed write is repeated in place',
    file: 'partition.ts',
    from: '    if (!(error instanceof JournalFullError) || partition.queue !== queue) throw error\n',
    to: '    if (partition.queue !== queue) throw error\n',
  },
  {
    name: 'a duplicate does not wait for the first one',
    file: 'queue.ts',
    from: '        if (!groups.includes(group)) groups.push(group)\n',
    to: '        void group\n',
  },
  {
    name: 'a confirmation does not wait',
    file: 'state.ts',
    from: "  for (const group of groups.splice(0)) end(group, 'unknown')\n",
    to: "  for (const group of groups.splice(0)) end(group, 'durable')\n",
  },
]

/** Of the engine: the model finds them. */
export const DEFECTS: readonly Defect[] = [
  {
    name: 'delivered before it is durable',
    file: 'queue.ts',
    from: 'if (changes.length > 0) groups.push(appendPending(queue, changes, bytes))',
    to: 'if (changes.length > 0) { groups.push(appendPending(queue, changes, bytes)); for (const c of changes) if (c.kind === "put") { settle(queue, c.job, now); c.job.topic.counts.ready += 0 } }',
  },
  {
    name: 'a finished job keeps its row',
    file: 'places.ts',
    from: "  forgetJob(queue, job)\n  later(queue, { kind: 'done', seq })\n  if (topic.tail",
    to: '  forgetJob(queue, job)\n  if (topic.tail',
  },
  {
    name: 'a refused job stays known',
    file: 'queue.ts',
    from: "      assert(change.job.state === STATE.pending, 'only a commit ends pending')\n      forgetJob(queue, change.job)",
    to: "      assert(change.job.state === STATE.pending, 'only a commit ends pending')",
  },
  {
    name: 'a disconnect counts as a failure',
    file: 'delivery.ts',
    from: "      noteIn(job, 'disconnect', consumer.name, '', now)\n",
    to: "      noteIn(job, 'disconnect', consumer.name, '', now)\n      job.failures++\n",
  },
  {
    name: 'a release counts as a delivery',
    file: 'delivery.ts',
    from: "      job.deliveries--\n      noteIn(job, 'release'",
    to: "      noteIn(job, 'release'",
  },
  {
    name: 'a nack is no failure',
    file: 'delivery.ts',
    from: '  job.failures++\n  const error',
    to: '  const error',
  },
  {
    name: 'the last attempt is tried again',
    file: 'delivery.ts',
    from: 'if (job.failures >= (job.maxAttempts || topic.config.max_attempts))',
    to: 'if (job.failures > (job.maxAttempts || topic.config.max_attempts))',
  },
  {
    name: 'an ended lease stays in the wheel',
    file: 'delivery.ts',
    from: '  if (delivery.slot !== NO_SLOT) wheelRemove(queue.leases, delivery)\n',
    to: '',
  },
  {
    name: 'one delivery more than the window',
    file: 'delivery.ts',
    from: 'const room = Math.max(0, roomOf(consumer))',
    to: 'const room = Math.max(0, roomOf(consumer) + 1)',
  },
  {
    name: 'max_leased is ignored',
    file: 'delivery.ts',
    from: 'if (max_leased > 0) allowed = Math.min(allowed, max_leased - topic.counts.leased)',
    to: '',
  },
  {
    name: 'a paused topic delivers',
    file: 'delivery.ts',
    from: '  if (paused) return 0\n',
    to: '',
  },
  {
    name: 'ordered topics deliver two at a time',
    file: 'delivery.ts',
    from: 'if (ordered) allowed = 1 - topic.counts.leased',
    to: 'if (ordered) allowed = 2 - topic.counts.leased',
  },
  {
    name: 'the newest job goes first',
    file: 'places.ts',
    from: 'topic.returned[priority]?.items[0] ?? topic.ready[priority]?.first',
    to: 'topic.returned[priority]?.items[0] ?? topic.ready[priority]?.last',
  },
  {
    name: 'low priorities go first',
    file: 'places.ts',
    from: '    const priority = 31 - Math.clz32(topic.readyMask)\n    const job = headOf(topic, priority)\n    if (job !== undefined) return taken',
    to: '    const priority = 31 - Math.clz32(topic.readyMask & -topic.readyMask)\n    const job = headOf(topic, priority)\n    if (job !== undefined) return taken',
  },
  {
    name: 'a finished id is forgotten at once',
    file: 'places.ts',
    from: '    topic.finished.set(id, now.monotonicMs)\n',
    to: '',
  },
  {
    name: 'a dead job leaves its size behind',
    file: 'places.ts',
    from: '  topic.deadBytes -= job.bytes\n  listRemove(topic.dead, job)',
    to: '  listRemove(topic.dead, job)',
  },
  {
    name: 'a redrive keeps the old failures',
    file: 'queue.ts',
    from: '  job.failures = 0\n  job.deliveries = 0\n  job.runAt = 0\n',
    to: '  job.runAt = 0\n',
  },
  {
    name: 'a moved job stays in the old topic',
    file: 'queue.ts',
    from: '      forgetJob(queue, change.from)\n      settle(queue, change.job, now)',
    to: '      settle(queue, change.job, now)',
  },
  {
    name: 'groups beyond the first are lost',
    file: 'state.ts',
    from: '  queue.writing = queue.groups.shift()\n',
    to: '  queue.writing = queue.groups.splice(0).shift()\n',
  },
  {
    name: 'a full topic accepts more',
    file: 'queue.ts',
    from: "    if (unfinishedOf(topic) + count > max_jobs) return 'max_jobs' as const\n",
    to: '',
  },
]
