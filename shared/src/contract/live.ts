/**
 * The live channel between console and control plane, `/api/v1/live` (docs/design/control-plane.md#live-channel):
 * JSON in text frames.
 */

import { z } from 'zod'
import { type ControlRoute, count, time } from './control.ts'
import { TOPIC } from './live-frames.ts'

export const clientFrame = z.discriminatedUnion('t', [
  z.object({ t: z.literal('sub'), id: count, topic: z.string().regex(TOPIC), since: count.optional() }),
  z.object({ t: z.literal('unsub'), id: count }),
  z.object({ t: z.literal('ping'), n: count }),
])
const pollQuery = z.object({ topics: z.string().max(4_096) })
const pollBody = z.object({
  now: time,
  topics: z.array(z.object({ topic: z.string(), seq: count, at: time, data: z.unknown() })),
})

export const LIVE_ROUTES = {
  'GET /api/v1/poll': {
    access: 'viewer',
    summary: 'Complete values of live topics, for networks that block WebSockets.',
    query: pollQuery,
    response: pollBody,
  },
} as const satisfies { readonly [name: string]: ControlRoute }
