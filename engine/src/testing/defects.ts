/**
 * The planted defects: mistakes that the programme has to notice (reliability.md §7). Each is a name that production code
 * is given in `Env.defects` or `RaftConfig.defects`, where it switches one rule off; no program that ships gives any.
 */

import { RAFT_DEFECTS } from '../raft/defects.ts'
import type { Profile } from './knobs.ts'

export type DefectRow = {
  readonly name: string
  /** What a run has to be made of to meet it; `elsewhere`: the layer named finds it, with its own tests. */
  readonly program: 'core' | 'driver' | 'elsewhere'
  readonly layer: string
  /** A profile in which it is met sooner. */
  readonly profile?: Profile
}

const PROFILE_OF: { readonly [name: string]: Profile } = {}

export const DEFECTS: readonly DefectRow[] = [
  ...RAFT_DEFECTS.map((name) => {
    const profile = PROFILE_OF[name]
    return { name, program: 'core', layer: 'simulation', ...(profile && { profile }) } as const
  }),
]
