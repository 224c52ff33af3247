/** `npm run proofs -- queue-model`: random steps of the queue's engine beside an exact model. */
import { EXIT } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { SEED_FLAG, seedOfNow } from '../seed.ts'
import { createRun, step } from './model.ts'

const STEPS_OF_RUN = 5_000

export const queueModelCommand = defineCommand({
  name: 'proofs queue-model',
  component: 'queue-model',
  summary: 'Takes random steps of the queue engine, and compares it with an exact model after each.',
  flags: {
    steps: { type: 'integer', min: 1, max: 1_000_000_000, default: 1_000_000, summary: 'In runs of 5,000.' },
    seed: SEED_FLAG,
  },
  run: async ({ flags: { steps, seed = seedOfNow() } }) => {
    for (let run = 0; run * STEPS_OF_RUN < steps; run++) {
      const state = createRun(seed + run)
      for (let n = 0; n < STEPS_OF_RUN; n++) {
        try {
          step(state)
        } catch (error) {
          process.stdout.write(`seed ${seed + run}: step ${n}: ${(error as Error).message}\n`)
          return EXIT.failure
        }
      }
    }
    process.stdout.write(`${steps} steps from seed ${seed}, 0 failures\n`)
    return EXIT.ok
  },
})
