/** `npm run proofs -- defects`: plants each defect in turn, and runs what must find it (docs/design/testing.md#planted-defects). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { EXIT } from '@vacancy/shared'
import { commitOf, defineCommand } from '@vacancy/shared/node'
import { environmentWith } from '@vacancy/testkit/plant'
import { startProgram } from '@vacancy/testkit/program'
import type { Defect } from './defect.ts'
import { DEFECTS } from './list.ts'

const CLI = join(import.meta.dirname, '../cli.ts')
const TESTS = join(import.meta.dirname, 'tests.ts')
/** Tests of threads depend on their schedule. */
const TEST_RUNS_MAX = 8

type Finding = {
  readonly name: string
  readonly isFound: boolean
  /** Seeds until it was found, in a simulation. */
  readonly seeds?: number
  /** What failed. */
  readonly by: string
  readonly seconds: number
}

export const defectsCommand = defineCommand({
  name: 'proofs defects',
  component: 'defects',
  summary: 'Plants each defect in turn and runs what must find it. Fails when one is not found.',
  flags: {
    only: { type: 'text', default: '', value: 'TEXT', summary: 'Defects with this text in their name.' },
    seeds: {
      type: 'integer',
      min: 1,
      max: 1_000_000,
      default: 400,
      summary: 'Seeds of a simulation until it gives up.',
    },
    jobs: {
      type: 'integer',
      min: 1,
      max: 64,
      default: availableParallelism(),
      summary: 'Searches at the same time.',
    },
    list: { type: 'boolean', summary: 'Lists the names.' },
    json: { type: 'text', value: 'FILE', summary: 'Writes the findings.' },
  },
  run: async ({ flags: { only, seeds, jobs, list, json } }) => {
    const say = (line: string) => void process.stdout.write(`${line}\n`)
    const wanted = DEFECTS.filter(({ name }) => name.includes(only))
    if (list) {
      for (const { name } of wanted) say(name)
      return EXIT.ok
    }
    const findings: Finding[] = []
    const left = [...wanted]
    const search = async () => {
      for (let defect = left.shift(); defect !== undefined; defect = left.shift()) {
        const finding = await find(defect, seeds)
        findings.push(finding)
        say(`${finding.name.padEnd(40)} ${textOf(finding)}`)
      }
    }
    await Promise.all(Array.from({ length: jobs }, search))
    const missed = findings.filter(({ isFound }) => !isFound)
    say(`${findings.length - missed.length} of ${findings.length} found`)
    if (json !== undefined) {
      const order = new Map(wanted.map(({ name }, n) => [name, n]))
      findings.sort((a, b) => (order.get(a.name) ?? 0) - (order.get(b.name) ?? 0))
      writeFileSync(
        json,
        `${JSON.stringify({ commit: commitOf(CLI.slice(0, -'/cli.ts'.length)), findings }, undefined, 2)}\n`,
      )
    }
    return missed.length === 0 && findings.length > 0 ? EXIT.ok : EXIT.failure
  },
})

function textOf({ isFound, seeds, by, seconds }: Finding): string {
  const after = `${Math.round(seconds)} s`
  if (!isFound) return `NOT FOUND, ${after}`
  return `${seeds === undefined ? '' : `${seeds} seeds, `}${after}: ${by.slice(0, 120)}`
}

async function find(defect: Defect, seeds: number): Promise<Finding> {
  const { name, foundBy } = defect
  const begun = performance.now()
  // Failing runs write files.
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-defect-'))
  try {
    const found =
      'tests' in foundBy ? await failingTest(defect, folder) : await failingRun(defect, foundBy.proof, seeds, folder)
    return { name, isFound: found !== undefined, by: '', ...found, seconds: (performance.now() - begun) / 1000 }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function failingTest({ name }: Defect, folder: string) {
  for (let run = 0; run < TEST_RUNS_MAX; run++) {
    const { code, output } = await runToEnd([TESTS, name], folder, {})
    if (code === EXIT.ok) continue
    const [, by] = /^failed: (.*)$/m.exec(output) ?? []
    if (by === undefined) throw new Error(`${name}: its tests did not run:\n${output}`)
    return { by }
  }
  return undefined
}

async function failingRun(defect: Defect, args: readonly string[], seeds: number, folder: string) {
  const environment = environmentWith(defect)
  if (args[0] !== 'sim') {
    const { code, output } = await runToEnd([CLI, ...args], folder, environment)
    if (code === EXIT.ok) return undefined
    return { by: failureIn(output)?.by ?? output.trim().split('\n').at(-1) ?? '' }
  }
  for (let from = 1; from <= seeds; ) {
    const range = ['--from', String(from), '--seeds', String(seeds - from + 1), '--no-shrink']
    const { code, output } = await runToEnd([CLI, ...args, ...range], folder, environment)
    if (code === EXIT.ok) return undefined
    const failure = failureIn(output)
    if (failure === undefined) throw new Error(`${defect.name}: the simulation did not run:\n${output}`)
    // Too many histories explain the replies: nothing was shown.
    if (!failure.by.includes('undecided')) return { seeds: failure.seed, by: failure.by }
    from = failure.seed + 1
  }
  return undefined
}

function failureIn(output: string) {
  const [, seed, by] = /^seed (\d+)(?: failed after [\d.]+ s)?: (?!\d+ runs in )(.*)$/m.exec(output) ?? []
  return seed === undefined || by === undefined ? undefined : { seed: Number(seed), by }
}

async function runToEnd(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv) {
  const program = startProgram(args, { cwd, env, isBound: true })
  return { code: await program.ended, output: program.output() }
}
