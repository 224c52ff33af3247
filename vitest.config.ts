import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import house from './package.json' with { type: 'json' }

/** Tests start real processes and share the cores with each other: generous time, few workers. */
const limits = {
  testTimeout: 180_000,
  hookTimeout: 180_000,
  expect: { poll: { timeout: 20_000 } },
  setupFiles: [fileURLToPath(import.meta.resolve('./scripts/seed-tests.mjs'))],
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

/** Simulations, and tests of whole shards and programs. */
const SLOW =
  /[./](?:shard|sim|simulated|chaos|kill|raft|start|starter|charge|cli)[.]test[.]|[/]queue[/]src[/](?:owners|failover|losing|docs|commands|client|sqlite-journal)[.]test|[/]platform[/](?:up|outages|docs)[.]test|[/]etcd-store[.]test|[/](?:healing|interop|path|chaos)[.]test/

/** Without durations of an earlier run, small files are last, and slow ones among them would keep one worker busy at the end. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => Number(SLOW.test(b.moduleId)) - Number(SLOW.test(a.moduleId)))
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: SlowFirst },
    // Much of their time they wait for processes: three keep two cores busy.
    maxWorkers: 3,
    projects: [
      ...house.workspaces.map(project),
      { test: { name: 'scripts', root: './scripts', include: ['*.test.mjs'], ...limits } },
    ],
  },
})
