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
export type ClientFrame = z.infer<typeof clientFrame>

export const serverFrame = z.discriminatedUnion('t', [
  z.object({ t: z.literal('hello'), server: z.string(), now: time }),
  z.object({ t: z.literal('snap'), topic: z.string(), seq: count, at: time, data: z.unknown() }),
  z.object({ t: z.literal('delta'), topic: z.string(), seq: count, at: time, ops: z.array(z.unknown()) }),
  z.object({ t: z.literal('pong'), n: count }),
  z.object({ t: z.literal('err'), id: count.optional(), code: z.string(), message: z.string() }),
  z.object({ t: z.literal('bye'), code: z.string(), retryMs: count }),
])

export const pollQuery = z.object({ topics: z.string().max(4_096) })
export const pollBody = z.object({
  topics: z.array(z.object({ topic: z.string(), seq: count, at: time, data: z.unknown() })),
})

export const LIVE_ROUTES = {
  'GET /api/v1/poll': {
    access: 'viewer',
    summary: 'Complete values of live topics, for networks that block WebSockets.',
    query: pollQuery,
    status: 200,
    response: pollBody,
  },
} as const satisfies { readonly [name: string]: ControlRoute }
