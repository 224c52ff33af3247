/** The playground's part of the control plane (console.md §9). */

import type { ControlRoute } from './control.ts'

export const PLAYGROUND_ROUTES = {} as const satisfies { readonly [name: string]: ControlRoute }
