/** Uploads, imports and snapshots of the control plane (console.md §8 and §10). */

import type { ControlRoute } from './control.ts'

export const IMPORT_ROUTES = {} as const satisfies { readonly [name: string]: ControlRoute }
