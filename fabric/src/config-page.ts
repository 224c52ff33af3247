/** `GET /config`: the flags in force and where each came from, for an admin (docs/design/http.md#configuration). */

import type { ConfigView } from '@vacancy/shared/node'
import { json } from '@vacancy/shared/node'
import type { Door } from './access.ts'
import type { Route } from './http.ts'

export function configRoute(door: Door, config: ConfigView): Route {
  return { method: 'GET', path: '/config', admit: door('admin'), answer: () => json(200, config) }
}
