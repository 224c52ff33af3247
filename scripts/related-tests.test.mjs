import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readImporters, relatedTests } from './related-tests.mjs'

let root
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'vacancy-related-'))
  for (const workspace of ['shared', 'engine']) {
    write(
      `${workspace}/package.json`,
      JSON.stringify({ exports: { '.': './src/index.ts' }, dependencies: { '@vacancy/shared': '0' } }),
    )
  }
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

test('tests reach a module through imports, nearest first', () => {
  write('engine/src/a.ts', '')
  write('engine/src/b.ts', "import './a.ts'")
  write('engine/src/a.test.ts', "import './b.ts'")
  write('engine/src/z.test.ts', "import './a.ts'")
  write('engine/src/other.test.ts', '')
  expect(related('engine/src/a.ts')).toEqual(['engine/src/z.test.ts', 'engine/src/a.test.ts'])
  expect(related('engine/src/a.ts', 1)).toEqual(['engine/src/z.test.ts'])
})

test('tests reach a worker that is started by its path, and programs behind the command', () => {
  write('engine/src/worker.ts', '')
  write('engine/src/cli/cli.ts', "new Worker(new URL('../worker.ts', import.meta.url))")
  write('engine/src/run.test.ts', "const PROGRAM = '../bin/vacancy.mjs'")
  expect(related('engine/src/worker.ts')).toEqual(['engine/src/run.test.ts'])
})

test('the tests of the workspace are taken, and those of its users where it has none', () => {
  write('shared/src/index.ts', "import './tested.ts'")
  write('shared/src/tested.ts', '')
  write('shared/src/tested.test.ts', "import './tested.ts'")
  write('engine/src/a.test.ts', "import '@vacancy/shared'")
  expect(related('shared/src/tested.ts')).toEqual(['shared/src/tested.test.ts'])
  expect(related('shared/src/index.ts')).toEqual(['engine/src/a.test.ts'])
})

test('of equally near tests those of the same folder are first', () => {
  write('engine/src/b/module.ts', '')
  write('engine/src/a/far.test.ts', "import '../b/module.ts'")
  write('engine/src/b/near.test.ts', "import './module.ts'")
  expect(related('engine/src/b/module.ts', 1)).toEqual(['engine/src/b/near.test.ts'])
})

test('the test beside the module is first, then those named after it, then the others of its folder', () => {
  const names = ['module.test.ts', 'module-limits.test.ts', 'a.test.ts', 'modules.test.ts']
  write('engine/src/module.ts', '')
  for (const name of names) write(`engine/src/${name}`, "import './module.ts'")
  expect(related('engine/src/module.ts')).toEqual(names.map((name) => `engine/src/${name}`))
})

test('simulations are always among the tests', () => {
  write('engine/src/a.ts', '')
  write('engine/src/b.ts', "import './a.ts'")
  write('engine/src/a.test.ts', "import './a.ts'")
  write('engine/src/c.test.ts', "import './a.ts'")
  write('engine/sim/store.test.ts', "import '../src/b.ts'")
  expect(related('engine/src/a.ts', 2)).toEqual(['engine/src/a.test.ts', 'engine/sim/store.test.ts'])
})

test('tests of reference pages are always among the tests, and do not stand for those of users', () => {
  write('shared/src/index.ts', "import './limits.ts'")
  write('shared/src/limits.ts', '')
  write('shared/src/limits.test.ts', "import './limits.ts'")
  write('engine/src/docs.ts', "import '@vacancy/shared'")
  write('engine/src/docs.test.ts', "import './docs.ts'")
  write('engine/src/a.test.ts', "import '@vacancy/shared'")
  // Runs the commands of a page that is written by hand.
  write('engine/src/platform/docs.test.ts', "import '@vacancy/shared'")
  expect(related('shared/src/limits.ts')).toEqual(['shared/src/limits.test.ts', 'engine/src/docs.test.ts'])
  expect(related('shared/src/index.ts')).toEqual([
    'engine/src/docs.test.ts',
    'engine/src/a.test.ts',
    'engine/src/platform/docs.test.ts',
  ])
})

test('a test of a page that is not generated from tables is like any other', () => {
  write('shared/src/limits.ts', '')
  write('shared/src/index.ts', "import './limits.ts'")
  write('shared/src/limits.test.ts', "import './limits.ts'")
  write('engine/src/docs.test.ts', "import '@vacancy/shared'")
  expect(related('shared/src/limits.ts')).toEqual(['shared/src/limits.test.ts'])
})

test('an import of types alone does not reach a module', () => {
  write('engine/src/a.ts', '')
  write('engine/src/typed.test.ts', "import type {\n  A,\n} from './a.ts'\nimport './b.ts'")
  write('engine/src/b.ts', "export type { A } from './a.ts'")
  write('engine/src/a.test.ts', "import { type A, a } from './a.ts'")
  expect(related('engine/src/a.ts')).toEqual(['engine/src/a.test.ts'])
})

function related(module, count = 10) {
  return relatedTests(readImporters(root, ['shared', 'engine']), module, count)
}

function write(file, text) {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
  writeFileSync(path.join(root, file), text)
}
