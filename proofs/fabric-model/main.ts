/**
 * `npm run proofs -- fabric-model`: routers and bridges over simulated connections, by the thousand
 * (docs/design/fabric.md#model-of-forwarding).
 */

import { EXIT } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { addCounts, CLASSES, type Counts, missingClasses } from './counts.ts'
import { runSeed } from './run.ts'

/** From this many seeds a class without a count is an error. */
const ALL_CLASSES_SEEDS = 150
/** One in this many seeds runs twice. */
const TWICE_EVERY = 100

const say = (line: string) => void process.stdout.write(`${line}\n`)

export const fabricModelCommand = defineCommand({
  name: 'proofs fabric-model',
  component: 'fabric-model',
  summary: 'Runs routers and bridges over simulated connections, and judges every request.',
  flags: {
    seeds: { type: 'integer', min: 1, max: 1_000_000, default: 200, summary: 'Runs, of at least 1,000 requests each.' },
    from: { type: 'integer', min: 0, max: 4_000_000_000, default: 1, summary: 'The first seed.' },
    seed: {
      type: 'integer',
      min: 0,
      max: 4_000_000_000,
      summary: 'This seed alone, twice: both runs must be the same.',
    },
    'keep-going': { type: 'boolean', summary: 'Continues after a failing seed.' },
  },
  run: async ({ flags: { seed, seeds, from, keepGoing } }) =>
    await (seed === undefined ? runSeeds(from, seeds, keepGoing) : runSeeds(seed, 1, keepGoing)),
})

async function runSeeds(from: number, seeds: number, keepGoing: boolean): Promise<number> {
  const counts: Counts = new Map()
  const began = performance.now()
  const failed: number[] = []
  let events = 0
  for (let seed = from; seed < from + seeds; seed++) {
    try {
      const outcome = await runSeed(seed, seeds === 1 ? say : undefined)
      addCounts(counts, outcome.counts)
      events += outcome.events
      if ((seeds === 1 || seed % TWICE_EVERY === 0) && (await runSeed(seed)).hash !== outcome.hash) {
        throw new Error('two runs of this seed differ')
      }
    } catch (error) {
      failed.push(seed)
      const { message, stack } = error as Error
      say(`seed ${seed}: ${seeds === 1 ? stack : message}`)
      if (!keepGoing) break
    }
  }
  const seconds = (performance.now() - began) / 1000
  for (const name of CLASSES) say(`${String(counts.get(name) ?? 0).padStart(12)}  ${name}`)
  say(`${seeds} seeds from ${from}, ${events} events, ${failed.length} failures, ${seconds.toFixed(1)} s`)
  const missing = seeds >= ALL_CLASSES_SEEDS && failed.length === 0 ? missingClasses(counts) : []
  if (missing.length > 0) say(`never met: ${missing.join(', ')}`)
  for (const seed of failed) say(`repeat with: npm run proofs -- fabric-model --seed ${seed}`)
  return failed.length > 0 || missing.length > 0 ? EXIT.failure : EXIT.ok
}
