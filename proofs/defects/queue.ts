/** Rules that the queue breaks: of the shell around its engine, which a journal that fails finds, and of the engine. */
import { type Defect, inFolder } from './defect.ts'

const losing = { proof: ['queue-losing', '--faults', '2000', '--seed', '1'] }
const model = { proof: ['queue-model', '--steps', '20000', '--seed', '1'] }

const inQueue = inFolder('queue/src')

export const QUEUE_DEFECTS: readonly Defect[] = [
  ...inQueue(losing, {
    'answers before the group is stored':
      'partition.ts: await writeOrRefuse(partition, queue, journal, group → void writeOrRefuse(partition, queue, journal, group).catch((e) => lose(partition, journal, e)',
    'a failed group counts as stored':
      'partition.ts: return lose(partition, journal, error as Error → setImmediate(() => lose(partition, journal, error as Error)',
    'a failed write is repeated in place': 'partition.ts: !(error instanceof JournalFullError) ||  → ',
    'a duplicate does not wait for the first one':
      'queue.ts: if (!groups.includes(group)) groups.push(group) → void group',
    'a confirmation does not wait': "state.ts: , 'unknown') → , 'durable')",
  }),
  ...inQueue(model, {
    'delivered before it is durable':
      'queue.ts: groups.push(appendPending(queue, changes, bytes)) → { groups.push(appendPending(queue, changes, bytes)); for (const c of changes) if (c.kind === "put") { settle(queue, c.job, now); c.job.topic.counts.ready += 0 } }',
    'a finished job keeps its row': "places.ts: later(queue, { kind: 'done', seq })\n   → ",
    'a refused job stays known': 'queue.ts: )\n      forgetJob(queue, change.job) → )',
    'a disconnect counts as a failure':
      "delivery.ts: disconnect', consumer.name, '', now)\n → disconnect', consumer.name, '', now)\n      job.failures++\n",
    'a consumer that is back gets only one of its jobs':
      'delivery.ts: taken.push(delivery)\n → taken.push(delivery)\n      break\n',
    'a cut returns its jobs at once':
      'delivery.ts: if (consumer.deliveries.size > 0) queue.away.set(consumer.id, consumer) → giveBack(queue, consumer, now)',
    'a consumer that stays away keeps its jobs':
      'delivery.ts: if (consumer.awayUntil > now.monotonicMs) return → return',
    'a delivery that is taken back counts again':
      'delivery.ts: delivery.consumer = consumer\n → delivery.consumer = consumer\n      delivery.job.deliveries++\n',
    'a release counts as a delivery': 'delivery.ts: job.deliveries--\n       → ',
    'a nack is no failure': 'delivery.ts: job.failures++\n   → ',
    'the last attempt is tried again': 'delivery.ts: .failures >= → .failures >',
    'an ended lease stays in the wheel':
      'delivery.ts:   if (delivery.slot !== NO_SLOT) wheelRemove(queue.leases, delivery)\n → ',
    'one delivery more than the window': 'delivery.ts: roomOf(consumer)) → roomOf(consumer) + 1)',
    'max_leased is ignored':
      'delivery.ts: if (max_leased > 0) allowed = Math.min(allowed, max_leased - topic.counts.leased) → ',
    'a paused topic delivers': 'delivery.ts:   if (paused) return 0\n → ',
    'ordered topics deliver two at a time': 'delivery.ts: = 1 - topic. → = 2 - topic.',
    'the newest job goes first': 'places.ts: priority]?.first → priority]?.last',
    'low priorities go first': 'places.ts: topic.readyMask) → topic.readyMask & -topic.readyMask)',
    'a finished id is forgotten at once': 'places.ts:     topic.finished.set(id, now.monotonicMs)\n → ',
    'a dead job leaves its size behind': 'places.ts: topic.deadBytes -= job.bytes\n   → ',
    'a redrive keeps the old failures': 'queue.ts: failures = 0\n  job.deliveries = 0\n  job. → ',
    'a moved job stays in the old topic': 'queue.ts: forgetJob(queue, change.from)\n       → ',
    'groups beyond the first are lost': 'state.ts: groups.shift → groups.splice(0).shift',
    'a full topic accepts more':
      "queue.ts:     if (unfinishedOf(topic) + count > max_jobs) return 'max_jobs' as const\n → ",
  }),
]
