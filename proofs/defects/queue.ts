/** Rules that the queue breaks: of the shell around its engine, which a disk that loses what was not synced finds, and of the engine. */
import { type Defect, inFolder } from './defect.ts'

const losing = { proof: ['queue-losing', '--faults', '2000', '--seed', '1'] }
const model = { proof: ['queue-model', '--steps', '20000', '--seed', '1'] }

export const QUEUE_DEFECTS: readonly Defect[] = inFolder('queue/src', [
  {
    name: 'answers before the group is stored',
    edits: [
      [
        'partition.ts',
        '    await writeOrRefuse(partition, queue, journal, group)\n',
        '    void writeOrRefuse(partition, queue, journal, group).catch((e) => lose(partition, journal, e))\n',
      ],
    ],
    foundBy: losing,
  },
  {
    name: 'a failed group counts as stored',
    edits: [
      [
        'partition.ts',
        '    return lose(partition, journal, error as Error)\n',
        '    setImmediate(() => lose(partition, journal, error as Error))\n',
      ],
    ],
    foundBy: losing,
  },
  {
    name: 'a failed write is repeated in place',
    edits: [
      [
        'partition.ts',
        '    if (!(error instanceof JournalFullError) || partition.queue !== queue) throw error\n',
        '    if (partition.queue !== queue) throw error\n',
      ],
    ],
    foundBy: losing,
  },
  {
    name: 'a duplicate does not wait for the first one',
    edits: [['queue.ts', '        if (!groups.includes(group)) groups.push(group)\n', '        void group\n']],
    foundBy: losing,
  },
  {
    name: 'a confirmation does not wait',
    edits: [
      [
        'state.ts',
        "  for (const group of groups.splice(0)) end(group, 'unknown')\n",
        "  for (const group of groups.splice(0)) end(group, 'durable')\n",
      ],
    ],
    foundBy: losing,
  },
  {
    name: 'delivered before it is durable',
    edits: [
      [
        'queue.ts',
        'if (changes.length > 0) groups.push(appendPending(queue, changes, bytes))',
        'if (changes.length > 0) { groups.push(appendPending(queue, changes, bytes)); for (const c of changes) if (c.kind === "put") { settle(queue, c.job, now); c.job.topic.counts.ready += 0 } }',
      ],
    ],
    foundBy: model,
  },
  {
    name: 'a finished job keeps its row',
    edits: [
      [
        'places.ts',
        "  forgetJob(queue, job)\n  later(queue, { kind: 'done', seq })\n  if (topic.tail",
        '  forgetJob(queue, job)\n  if (topic.tail',
      ],
    ],
    foundBy: model,
  },
  {
    name: 'a refused job stays known',
    edits: [
      [
        'queue.ts',
        "      assert(change.job.state === STATE.pending, 'only a commit ends pending')\n      forgetJob(queue, change.job)",
        "      assert(change.job.state === STATE.pending, 'only a commit ends pending')",
      ],
    ],
    foundBy: model,
  },
  {
    name: 'a disconnect counts as a failure',
    edits: [
      [
        'delivery.ts',
        "      noteIn(job, 'disconnect', consumer.name, '', now)\n",
        "      noteIn(job, 'disconnect', consumer.name, '', now)\n      job.failures++\n",
      ],
    ],
    foundBy: model,
  },
  {
    name: 'a consumer that is back gets only one of its jobs',
    edits: [
      [
        'delivery.ts',
        '      taken.push(delivery)\n    }\n    other.deliveries.clear()',
        '      taken.push(delivery)\n      break\n    }\n    other.deliveries.clear()',
      ],
    ],
    foundBy: model,
  },
  {
    name: 'a cut returns its jobs at once',
    edits: [
      [
        'delivery.ts',
        '  if (consumer.deliveries.size > 0) queue.away.set(consumer.id, consumer)',
        '  giveBack(queue, consumer, now)',
      ],
    ],
    foundBy: model,
  },
  {
    name: 'a consumer that stays away keeps its jobs',
    edits: [['delivery.ts', 'if (consumer.awayUntil > now.monotonicMs) return', 'return']],
    foundBy: model,
  },
  {
    name: 'a delivery that is taken back counts again',
    edits: [
      [
        'delivery.ts',
        '      delivery.consumer = consumer\n',
        '      delivery.consumer = consumer\n      delivery.job.deliveries++\n',
      ],
    ],
    foundBy: model,
  },
  {
    name: 'a release counts as a delivery',
    edits: [['delivery.ts', "      job.deliveries--\n      noteIn(job, 'release'", "      noteIn(job, 'release'"]],
    foundBy: model,
  },
  {
    name: 'a nack is no failure',
    edits: [['delivery.ts', '  job.failures++\n  const error', '  const error']],
    foundBy: model,
  },
  {
    name: 'the last attempt is tried again',
    edits: [
      [
        'delivery.ts',
        'if (job.failures >= (job.maxAttempts || topic.config.max_attempts))',
        'if (job.failures > (job.maxAttempts || topic.config.max_attempts))',
      ],
    ],
    foundBy: model,
  },
  {
    name: 'an ended lease stays in the wheel',
    edits: [['delivery.ts', '  if (delivery.slot !== NO_SLOT) wheelRemove(queue.leases, delivery)\n', '']],
    foundBy: model,
  },
  {
    name: 'one delivery more than the window',
    edits: [
      ['delivery.ts', 'const room = Math.max(0, roomOf(consumer))', 'const room = Math.max(0, roomOf(consumer) + 1)'],
    ],
    foundBy: model,
  },
  {
    name: 'max_leased is ignored',
    edits: [['delivery.ts', 'if (max_leased > 0) allowed = Math.min(allowed, max_leased - topic.counts.leased)', '']],
    foundBy: model,
  },
  {
    name: 'a paused topic delivers',
    edits: [['delivery.ts', '  if (paused) return 0\n', '']],
    foundBy: model,
  },
  {
    name: 'ordered topics deliver two at a time',
    edits: [
      [
        'delivery.ts',
        'if (ordered) allowed = 1 - topic.counts.leased',
        'if (ordered) allowed = 2 - topic.counts.leased',
      ],
    ],
    foundBy: model,
  },
  {
    name: 'the newest job goes first',
    edits: [
      [
        'places.ts',
        'topic.returned[priority]?.items[0] ?? topic.ready[priority]?.first',
        'topic.returned[priority]?.items[0] ?? topic.ready[priority]?.last',
      ],
    ],
    foundBy: model,
  },
  {
    name: 'low priorities go first',
    edits: [
      [
        'places.ts',
        '    const priority = 31 - Math.clz32(topic.readyMask)\n    const job = headOf(topic, priority)\n    if (job !== undefined) return taken',
        '    const priority = 31 - Math.clz32(topic.readyMask & -topic.readyMask)\n    const job = headOf(topic, priority)\n    if (job !== undefined) return taken',
      ],
    ],
    foundBy: model,
  },
  {
    name: 'a finished id is forgotten at once',
    edits: [['places.ts', '    topic.finished.set(id, now.monotonicMs)\n', '']],
    foundBy: model,
  },
  {
    name: 'a dead job leaves its size behind',
    edits: [
      ['places.ts', '  topic.deadBytes -= job.bytes\n  listRemove(topic.dead, job)', '  listRemove(topic.dead, job)'],
    ],
    foundBy: model,
  },
  {
    name: 'a redrive keeps the old failures',
    edits: [['queue.ts', '  job.failures = 0\n  job.deliveries = 0\n  job.runAt = 0\n', '  job.runAt = 0\n']],
    foundBy: model,
  },
  {
    name: 'a moved job stays in the old topic',
    edits: [
      [
        'queue.ts',
        '      forgetJob(queue, change.from)\n      settle(queue, change.job, now)',
        '      settle(queue, change.job, now)',
      ],
    ],
    foundBy: model,
  },
  {
    name: 'groups beyond the first are lost',
    edits: [
      ['state.ts', '  queue.writing = queue.groups.shift()\n', '  queue.writing = queue.groups.splice(0).shift()\n'],
    ],
    foundBy: model,
  },
  {
    name: 'a full topic accepts more',
    edits: [['queue.ts', "    if (unfinishedOf(topic) + count > max_jobs) return 'max_jobs' as const\n", '']],
    foundBy: model,
  },
])
