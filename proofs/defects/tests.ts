/** `node tests.ts NAME`: runs the tests that must find a defect, with the defect. */
import { join } from 'node:path'
import { assert, EXIT } from '@vacancy/shared'
import { editedSource } from '@vacancy/testkit/plant'
import { startVitest } from 'vitest/node'
import { DEFECTS } from './list.ts'

const ROOT = join(import.meta.dirname, '../..')

const [, , name] = process.argv
const defect = DEFECTS.find((each) => each.name === name)
assert(defect !== undefined && 'tests' in defect.foundBy, `tests find a defect "${name}"`)
const { tests, named } = defect.foundBy
const options = {
  ...{ root: ROOT, config: false as const, watch: false, pool: 'forks' as const, reporters: [] },
  // It would keep modules with the defect of another run.
  fsModuleCache: false,
  ...{ testTimeout: 240_000, hookTimeout: 240_000, ...(named !== undefined && { testNamePattern: named }) },
}
// Modules of the tests are loaded by vitest, which knows no hooks of Node.
const planted = {
  name: 'planted',
  enforce: 'pre' as const,
  load: (id: string) => editedSource(defect, id.split('?')[0] ?? ''),
}
const vitest = await startVitest('test', [tests], options, { plugins: [planted] })
const failed = vitest.state
  .getTestModules()
  .flatMap((module) => [...module.children.allTests('failed')])
  .map((test) => test.fullName)
const errors = vitest.state.getUnhandledErrors().map((error) => String(error))
const passed = vitest.state.getTestModules().flatMap((module) => [...module.children.allTests('passed')]).length
await vitest.close()
for (const text of [...failed, ...errors]) process.stdout.write(`failed: ${text.split('\n')[0]}\n`)
assert(failed.length + errors.length + passed > 0, `${tests} has tests`)
process.exit(failed.length + errors.length > 0 ? EXIT.failure : EXIT.ok)
