/** `npm run proofs -- queue-model`: random steps of the queue's engine beside an exact model. */
import { EXIT } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { SEED_FLAG, seedOfNow } from '../seed.ts'
import { createRun, step } from './model.ts'

const STEPS_OF_RUN = 5_000

/** @returns how often each step was taken. @throws with the seed of the run that failed */
export function runSteps(steps: number, seed: number): { readonly [step: string]: number } {
  const counts: { [step: string]: number } = {}
  for (let run = 0; run * STEPS_OF_RUN < steps; run++) {
    const state = createRun(seed + run)
    for (let n = 0; n < STEPS_OF_RUN; n++) {
      try {
        step(state)
      } catch (error) {
        throw new Error(`seed ${seed + run}: step ${n}: ${(error as Error).message}`, { cause: error })
      }
    }
    for (const [name, count] of Object.entries(state.counts)) counts[name] = (counts[name] ?? 0) + count
  }
  return counts
}

export const queueModelCommand = defineCommand({
  name: 'proofs queue-model',
  component: 'queue-model',
  summary: 'Takes random steps of the queue engine, and compares it with an exact model after each.',
  flags: {
    steps: { type: 'integer', min: 1, max: 1_000_000_000, default: 1_000_000, summary: 'In runs of 5,000.' },
    seed: SEED_FLAG,
  },
  run: async ({ flags: { steps, seed = seedOfNow() } }) => {
    try {
      runSteps(steps, seed)
    } catch (error) {
      process.stdout.write(`${(error as Error).message}\n`)
      return EXIT.failure
    }
    process.stdout.write(`${steps} steps from seed ${seed}, 0 failures\n`)
    return EXIT.ok
  },
})
