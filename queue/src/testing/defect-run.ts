/**
 * Runs the model with one planted defect, or none: `node defect-run.ts NAME SEED STEPS`. Prints what was found, and ends
 * with code 1 when something was.
 */
import { dirname } from 'node:path'
import { assert } from '@vacancy/shared'
import { plantDefect } from '@vacancy/testkit/plant'
import { DEFECTS } from './defects.ts'

const [name = '', seed = '1', steps = '20000'] = process.argv.slice(2)
const defect = DEFECTS.find((each) => each.name === name)
assert(defect !== undefined || name === '', `there is a defect "${name}"`)
if (defect !== undefined) plantDefect(defect, dirname(import.meta.dirname))

const { createRun, step } = await import('./model.ts')
const STEPS_OF_RUN = 5_000
for (let run = 0; run * STEPS_OF_RUN < Number(steps); run++) {
  const state = createRun(Number(seed) + run)
  for (let n = 0; n < STEPS_OF_RUN; n++) {
    try {
      step(state)
    } catch (error) {
      process.stdout.write(`seed ${Number(seed) + run}, step ${n}: ${(error as Error).message}\n`)
      process.exit(1)
    }
  }
}
