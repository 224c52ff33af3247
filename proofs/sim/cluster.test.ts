/** A sample of what `npm run proofs -- sim` runs by the thousand: the same 60 seeds in every run. */
import { describe, expect, test } from 'vitest'
import { runSeed } from './cluster.ts'
import { coreProgram } from './core-node.ts'
import { driverProgram } from './driver-node.ts'
import { PROFILES } from './knobs.ts'

/** A fraction of the events of a nightly run. */
const LENGTH = 0.25

describe.each([
  ['cores keep their guarantees under faults', coreProgram, 44],
  ['whole nodes keep theirs on disks that lose data, fill up, fail and rot, and match a model', driverProgram, 16],
] as const)('%s', (_promise, program, seeds) => {
  test.each(Array.from({ length: seeds }, (_, n) => n + 1))('seed %i', (seed) => {
    const profile = PROFILES[seed % PROFILES.length] ?? 'mixed'
    const { failure } = runSeed({ seed, profile, program, length: LENGTH })
    const again = `npm run proofs -- sim --seed ${seed} --profile ${profile} --program ${program.name} --length ${LENGTH}`
    expect(failure, `${again}\n${failure?.message}`).toBeUndefined()
  })
})
