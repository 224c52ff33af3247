/** Every path of the control plane. The console takes only its types: schemas stay out of what a browser loads. */

import { z } from 'zod'
import { ACCESS_ROUTES } from './access.ts'
import { CLUSTER_ROUTES } from './cluster-view.ts'
import { CODEC_ROUTES } from './codecs.ts'
import type { ControlRoute } from './control.ts'
import { IMPORT_ROUTES } from './imports.ts'
import { LIVE_ROUTES } from './live.ts'
import { PLAYGROUND_ROUTES } from './playground.ts'

/** What the program itself answers. */
export const PROGRAM_ROUTES = {
  'GET /health': {
    access: 'open',
    summary: 'Whether the process lives.',
    status: 200,
    response: z.object({ status: z.literal('ok') }),
  },
  'GET /ready': {
    access: 'open',
    summary: 'Whether it does all of its work, and why not; 503 when it does not.',
    status: 200,
    response: z.object({ ready: z.boolean(), reasons: z.array(z.object({ name: z.string(), says: z.string() })) }),
  },
  'GET /metrics': {
    access: 'viewer',
    summary: 'Metrics for Prometheus.',
    status: 200,
    gives: 'text',
    response: z.string(),
  },
} as const satisfies { readonly [name: string]: ControlRoute }

export const CONTROL_ROUTES = {
  ...PROGRAM_ROUTES,
  ...ACCESS_ROUTES,
  ...LIVE_ROUTES,
  ...CLUSTER_ROUTES,
  ...PLAYGROUND_ROUTES,
  ...IMPORT_ROUTES,
  ...CODEC_ROUTES,
} as const

export type ControlRoutes = typeof CONTROL_ROUTES
export type ControlRouteName = keyof ControlRoutes
type Side<R, K extends string, D> = R extends { readonly [key in K]: infer S extends z.ZodType } ? S : D
/** What a caller passes, before defaults are filled in. */
export type RouteInput<N extends ControlRouteName> = {
  readonly params: z.input<Side<ControlRoutes[N], 'params', z.ZodUndefined>>
  readonly query: z.input<Side<ControlRoutes[N], 'query', z.ZodUndefined>>
  readonly body: z.input<Side<ControlRoutes[N], 'body', z.ZodUndefined>>
}
/** What a handler is given. */
export type RouteAsked<N extends ControlRouteName> = {
  readonly params: z.output<Side<ControlRoutes[N], 'params', z.ZodUndefined>>
  readonly query: z.output<Side<ControlRoutes[N], 'query', z.ZodUndefined>>
  readonly body: z.output<Side<ControlRoutes[N], 'body', z.ZodUndefined>>
}
export type RouteAnswer<N extends ControlRouteName> = z.output<ControlRoutes[N]['response']>
