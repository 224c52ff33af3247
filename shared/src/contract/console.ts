/** Every path of the control plane. The console imports only its types, so that browsers do not load the schemas. */

import { z } from 'zod'
import { ACCESS_ROUTES } from './access.ts'
import { CLUSTER_ROUTES } from './cluster-view.ts'
import { CODEC_ROUTES } from './codecs.ts'
import type { ControlRoute } from './control.ts'
import { GOLDEN_CHECK_ROUTES, GOLDEN_ROUTES } from './golden.ts'
import { HANDOVER_ROUTES } from './handover.ts'
import { IMPORT_ROUTES } from './imports.ts'
import { QUEUE_ROUTES } from './jobs.ts'
import { LIVE_ROUTES } from './live.ts'
import { PAST_ROUTES } from './past.ts'
import { PLAYGROUND_ROUTES } from './playground.ts'
import { PROBE_ROUTES } from './probes.ts'
import { TOPOLOGY_ROUTES } from './topology-view.ts'

/** Paths that the program itself serves. */
export const PROGRAM_ROUTES = {
  'GET /health': {
    access: 'open',
    summary: 'Whether the process is alive.',
    response: z.object({ status: z.literal('ok') }),
  },
  'GET /ready': {
    access: 'open',
    summary: 'Whether it is fully working, and why not; 503 when it is not.',
    response: z.object({ ready: z.boolean(), reasons: z.array(z.object({ name: z.string(), message: z.string() })) }),
  },
  'GET /metrics': { access: 'viewer', summary: 'Metrics for Prometheus.', gives: 'text', response: z.string() },
} as const satisfies { readonly [name: string]: ControlRoute }

export const CLIENT_ROUTES = {
  'GET /api/v1/client.tgz': {
    access: 'open',
    summary: 'The client library for TypeScript with its dependencies: `npm install` takes this address.',
    gives: 'bytes',
    response: z.string(),
  },
} as const satisfies { readonly [name: string]: ControlRoute }

export const CONTROL_ROUTES = {
  ...PROGRAM_ROUTES,
  ...CLIENT_ROUTES,
  ...ACCESS_ROUTES,
  ...LIVE_ROUTES,
  ...CLUSTER_ROUTES,
  ...PAST_ROUTES,
  ...HANDOVER_ROUTES,
  ...TOPOLOGY_ROUTES,
  ...PROBE_ROUTES,
  ...PLAYGROUND_ROUTES,
  ...GOLDEN_ROUTES,
  ...GOLDEN_CHECK_ROUTES,
  ...IMPORT_ROUTES,
  ...CODEC_ROUTES,
  /** `vacancy queue serve` serves them, too. */
  ...QUEUE_ROUTES,
} as const

type ControlRoutes = typeof CONTROL_ROUTES
export type ControlRouteName = keyof ControlRoutes
type Side<R, K extends string, D> = R extends { readonly [key in K]: infer S extends z.ZodType } ? S : D
/** The caller's input, before defaults are filled in. */
export type RouteInput<N extends ControlRouteName> = {
  readonly params: z.input<Side<ControlRoutes[N], 'params', z.ZodUndefined>>
  readonly query: z.input<Side<ControlRoutes[N], 'query', z.ZodUndefined>>
  readonly body: z.input<Side<ControlRoutes[N], 'body', z.ZodUndefined>>
}
/** The handler's input. */
export type HandlerInput<N extends ControlRouteName> = {
  readonly params: z.output<Side<ControlRoutes[N], 'params', z.ZodUndefined>>
  readonly query: z.output<Side<ControlRoutes[N], 'query', z.ZodUndefined>>
  readonly body: z.output<Side<ControlRoutes[N], 'body', z.ZodUndefined>>
}
export type RouteAnswer<N extends ControlRouteName> = z.output<ControlRoutes[N]['response']>
