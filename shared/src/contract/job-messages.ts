/** The job queue: messages of the consumer interface (docs/design/queue-delivery.md#consumers). */

import { z } from 'zod'
import { count } from './control.ts'
import { JOB_LIMITS, topicName } from './jobs.ts'

/** Results of acknowledgements, sent as `confirm` to consumers that request it. */
export const CONFIRM_RESULTS = ['done', 'retry', 'dead', 'extended', 'released', 'late', 'unknown', 'stale'] as const
export type ConfirmResult = (typeof CONFIRM_RESULTS)[number]
export const MESSAGE_FAULTS = ['bad_message', 'unknown_action', 'wrong_topic', 'stale_lease', 'unknown_job'] as const
export type MessageFault = (typeof MESSAGE_FAULTS)[number]

/** Every message of the server has these five fields with these types, and no other field that equals one in any case. */
export const serverMessage = z.looseObject({
  action: z.enum(['accepted', 'rejected', 'job', 'heartbeat', 'confirm', 'error', 'drain']),
  topic: z.string(),
  jobId: z.string(),
  seqId: count,
  data: z.unknown(),
})

const delivery = { jobId: z.string().optional(), seqId: count.optional(), lease: z.string().optional() }
/** A consumer may name its topic and itself in every message. */
const common = { topic: z.string().optional(), uuid: z.unknown().optional() }
const namesOnly = { topic: z.unknown().optional(), uuid: z.unknown().optional() }
/** Messages of consumers after their field names were matched without case and underscores, and empty ones left out. */
export const consumerMessage = z.discriminatedUnion('action', [
  z.strictObject({
    action: z.literal('init'),
    uuid: z.string().min(1).max(JOB_LIMITS.consumerNameMax),
    topic: topicName,
    prefetch: z.int().min(1).optional(),
    confirm: z.boolean().optional(),
  }),
  z
    .strictObject({
      action: z.literal('ack'),
      ...common,
      ...delivery,
      jobs: z.array(z.strictObject(delivery)).min(1).max(JOB_LIMITS.acksPerMessage).optional(),
    })
    .refine(
      (ack) => ack.jobs === undefined || Object.keys(delivery).every((name) => !(name in ack)),
      'has jobs and a delivery',
    ),
  z.strictObject({
    action: z.literal('nack'),
    ...common,
    ...delivery,
    requeue: z.boolean().optional(),
    delayMs: z.int().min(0).max(JOB_LIMITS.delayMsMax).optional(),
    error: z.string().optional(),
  }),
  z.strictObject({ action: z.literal('release'), ...common, ...delivery }),
  z.strictObject({ action: z.literal('extend'), ...common, ...delivery, ms: z.int().min(1).optional() }),
  z.strictObject({ action: z.literal('credit'), ...namesOnly, prefetch: z.int().min(0) }),
  z.strictObject({ action: z.literal('ping'), ...namesOnly }),
  z.strictObject({ action: z.literal('close'), ...namesOnly }),
])
export type ConsumerMessage = z.infer<typeof consumerMessage>
