/**
 * Runs the model with one planted defect, or none: `node defect-run.ts NAME SEED STEPS`. Prints what was found, and ends
 * with code 1 when something was.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { basename, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { assert } from '@vacancy/shared'
import { DEFECTS } from './defects.ts'

const [name = '', seed = '1', steps = '20000'] = process.argv.slice(2)
const ENGINE = dirname(import.meta.dirname)
const defect = DEFECTS.find((each) => each.name === name)
assert(defect !== undefined || name === '', `there is a defect "${name}"`)

if (defect !== undefined)
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      const path = url.startsWith('file:') ? fileURLToPath(url) : ''
      if (dirname(path) !== ENGINE || basename(path) !== defect.file) return loaded
      const text = readFileSync(path, 'utf8')
      assert(text.split(defect.from).length === 2, `${defect.file} has the place of "${defect.name}" once`)
      return { ...loaded, source: text.replace(defect.from, () => defect.to) }
    },
  })

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
