/**
 * `npm run proofs -- fabric-model`: routers and bridges over simulated connections, by the thousand
 * (docs/design/fabric.md#model-of-forwarding).
 */

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { assert, EXIT } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { plantDefect } from '@vacancy/testkit/plant'
import { addCounts, CLASSES, type Counts, missingClasses } from './counts.ts'
import { DEFECTS } from './defects.ts'

/** From this many seeds a class without a count is an error. */
const ALL_CLASSES_SEEDS = 150
/** One in this many seeds runs twice. */
const TWICE_EVERY = 100
const SRC = join(import.meta.dirname, '../../fabric/src')

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
    defect: { type: 'text', value: 'NAME', summary: 'Plants this defect.' },
    defects: { type: 'boolean', summary: 'Plants each defect in turn: each must be found within --seeds.' },
  },
  run: async ({ flags }) => {
    if (flags.defects) return findDefects(flags.seeds)
    const defect = DEFECTS.find(({ name }) => name === flags.defect)
    assert(flags.defect === undefined || defect !== undefined, `there is a defect "${flags.defect}"`)
    if (defect !== undefined) plantDefect(defect, SRC)
    return await runSeeds(flags)
  },
})

type Flags = {
  readonly seeds: number
  readonly from: number
  readonly seed: number | undefined
  readonly keepGoing: boolean
  readonly defect: string | undefined
}

async function runSeeds({ seed: only, seeds: wanted, from: first, keepGoing, defect }: Flags): Promise<number> {
  // Only now: a planted defect is part of what is loaded.
  const { runSeed } = await import('./run.ts')
  const from = only ?? first
  const seeds = only === undefined ? wanted : 1
  const of = defect === undefined ? '' : ` --defect '${defect}'`
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
  for (const seed of failed) say(`repeat with: npm run proofs -- fabric-model --seed ${seed}${of}`)
  return failed.length > 0 || missing.length > 0 ? EXIT.failure : EXIT.ok
}

/** Each defect in a process of its own. */
function findDefects(seeds: number): number {
  let left = 0
  for (const { name } of DEFECTS) {
    const args = [join(import.meta.dirname, '../cli.ts'), 'fabric-model', '--seeds', String(seeds), '--defect', name]
    const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1 << 26 })
    const [found] = /^seed \d+: .*$/m.exec(stdout) ?? []
    if (found === undefined) left++
    say(`${name}: ${found ?? 'NOT FOUND'}`)
  }
  say(`${DEFECTS.length - left} of ${DEFECTS.length} found`)
  return left === 0 ? EXIT.ok : EXIT.failure
}
