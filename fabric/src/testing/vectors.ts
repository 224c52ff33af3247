/** The request vectors, as clients of generation 2 send them through routers. */

import { readFileSync } from 'node:fs'
import { enclose } from './platform.ts'

type Vector = {
  readonly name: string
  readonly hex: string
  /** Which clients send it: `1`, `2`, `1+2`, or `vacancy` for extension fields. */
  readonly generation: string
  readonly json: { readonly command: string | null; readonly envelope?: { readonly segment: string } }
}

export const { cases } = JSON.parse(
  readFileSync(new URL('../../../shared/vectors/requests.json', import.meta.url), 'utf8'),
) as {
  readonly cases: readonly Vector[]
}

export type Routable = Vector & { readonly json: { readonly command: string } }

export const ROUTABLE = cases.filter((vector): vector is Routable => ![null, 'LOGIN'].includes(vector.json.command))

/** The frame that a client of generation 2 sends for a vector. */
export function routedFrame({ hex, json: { command, envelope } }: Routable): Buffer {
  const frame = Buffer.from(hex, 'hex')
  return envelope ? frame : enclose(frame, 'segment_1', command)
}
