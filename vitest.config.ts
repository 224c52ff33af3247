import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import house from './package.json' with { type: 'json' }

/** Of tests that start real processes, which share the cores with each other. That of others is in the setup file. */
const limits = {
  testTimeout: 180_000,
  hookTimeout: 180_000,
  expect: { poll: { timeout: 20_000 } },
  setupFiles: [fileURLToPath(import.meta.resolve('./scripts/setup-tests.mjs'))],
}

/** Tests of the console start no programs, and run a third faster in threads. Others change signals, folders and exit codes. */
const poolOf = (name: string) => (name === 'web' ? 'threads' : 'forks')

const project = (name: string) => ({
  test: {
    ...{ name, root: `./${name}`, include: [name === 'proofs' ? '**/*.test.ts' : 'src/**/*.test.{ts,tsx}'] },
    pool: poolOf(name),
    ...limits,
  },
})

/** Without durations of an earlier run, small files are last, and long ones among them would keep one worker busy at the end. */
const LONG = /[.](?:program|long)[.]test[.]|[/]sim[/]/

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => Number(LONG.test(b.moduleId)) - Number(LONG.test(a.moduleId)))
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    // Much of their time they wait for processes: three keep two cores busy.
    maxWorkers: 3,
    projects: [
      ...house.workspaces.map(project),
      { test: { name: 'scripts', root: './scripts', include: ['*.test.mjs'], ...limits } },
    ],
  },
})
