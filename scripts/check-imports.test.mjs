import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkImports } from './check-imports.mjs'

let root

// A small repository in which every import is allowed.
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'vacancy-imports-'))
  const addWorkspace = (name, exports, dependencies) =>
    write(`${name}/package.json`, JSON.stringify({ name: `@vacancy/${name}`, exports, dependencies }))
  const ours = { '@vacancy/shared': '0.1.0' }
  write(
    'package.json',
    JSON.stringify({
      workspaces: ['shared', 'testkit', 'engine', 'client', 'bench', 'quickstart'],
      devDependencies: { vitest: '5.1.0' },
    }),
  )
  addWorkspace('shared', { '.': './src/index.ts', './node': './src/node/index.ts' }, { zod: '4.6.7' })
  addWorkspace('testkit', { './until': './src/until.ts' }, ours)
  addWorkspace(
    'engine',
    { './cli': './src/cli/cli.ts' },
    { ...ours, '@vacancy/client': '0.1.0', '@vacancy/testkit': '0' },
  )
  addWorkspace('client', { '.': './src/index.ts' }, ours)
  addWorkspace('bench', {}, { ...ours, '@vacancy/client': '0.1.0' })
  addWorkspace('quickstart', {}, { ...ours, '@vacancy/client': '0.1.0', '@vacancy/engine': '0.1.0' })
  for (const name of ['zod', 'vitest']) mkdirSync(path.join(root, 'node_modules', name), { recursive: true })

  write('shared/src/index.ts', "export * from './dates.ts'\nimport { z } from 'zod'\n")
  write('shared/src/dates.ts', 'export const day: number = 1 // Math.random() is not taken here\n')
  write('shared/src/node/index.ts', "import { hostname } from 'node:os'\nexport const host = hostname()\n")
  write('engine/src/cli/cli.ts', "import '../node.ts'\nimport '@vacancy/shared/node'\n")
  write('engine/src/node.ts', "import './tcp/server.ts'\nimport './cluster/replica.ts'\n")
  write('engine/src/tcp/server.ts', "new Worker(new URL('./serving-worker.ts', import.meta.url))\n")
  write('engine/src/tcp/serving-worker.ts', "import '../store/store.ts'\nimport 'node:net'\n")
  write('engine/src/cluster/replica.ts', "import '../raft/raft.ts'\nimport '../store/store.ts'\n")
  write(
    'engine/src/store/store.ts',
    "import type { day } from '@vacancy/shared'\nimport { type Cell } from './layout.ts'\n",
  )
  write('engine/src/store/layout.ts', 'export type Cell = number\n')
  write(
    'engine/src/store/store.test.ts',
    "import { test } from 'vitest'\nimport 'node:fs'\nimport '../testing/disk.ts'\n",
  )
  write('engine/src/search/kernel.as.ts', "import { at } from './words.as'\n")
  write('engine/src/search/words.as.ts', '@inline export function at(i: u32): u32 { return i }\n')
  write('engine/src/raft/raft.ts', "import { day } from '@vacancy/shared'\n")
  write('engine/src/testing/disk.ts', "import '../cluster/replica.ts'\nimport '@vacancy/testkit/until'\n")
  write('testkit/src/until.ts', "import '@vacancy/shared'\n")
  write('client/src/index.ts', "import '@vacancy/shared'\n")
  write('bench/src/load.ts', "import '@vacancy/client'\n")
  write('quickstart/src/start.ts', "import '@vacancy/shared/node'\n")
})

afterEach(() => rmSync(root, { recursive: true, force: true }))

function write(file, text) {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
  writeFileSync(path.join(root, file), text)
}

test('good imports pass, and every file was looked at', () => {
  expect(checkImports(root, {})).toEqual({ faults: [], modules: 19 })
})

const BAD = [
  ['shared-layer', 'shared/src/dates.ts', "import '../../client/src/index.ts'"],
  ['engine-layer', 'engine/src/node.ts', "import '@vacancy/client'"],
  ['engine-layer', 'engine/src/node.ts', "import '@vacancy/testkit/until'"],
  ['quickstart-layer', 'quickstart/src/start.ts', "import '@vacancy/engine/cli'"],
  ['by-name', 'client/src/index.ts', "import '../../shared/src/dates.ts'"],
  ['engine-looks-down', 'engine/src/store/store.ts', "import '../search/words.ts'", 'engine/src/search/words.ts'],
  ['engine-looks-down', 'engine/src/cluster/replica.ts', "import type { Server } from '../tcp/server.ts'"],
  ['engine-looks-down', 'engine/src/cluster/replica.ts', "type Server = import('../tcp/server.ts').Server"],
  ['engine-looks-down', 'engine/src/wal/wal.ts', "const lazy = await import('../cluster/replica.ts')"],
  ['engine-looks-down', 'engine/src/wal/wal.ts', "new Worker(new URL('../tcp/serving-worker.ts', import.meta.url))"],
  ['engine-looks-down', 'engine/src/helpers/bytes.ts', "import '../store/store.ts'"],
  [
    'server-looks-down',
    'server/src/history/events.ts',
    "import '../cluster/derive.ts'",
    'server/src/cluster/derive.ts',
  ],
  ['raft-knows-no-neighbour', 'engine/src/raft/raft.ts', "import '../store/layout.ts'"],
  ['pure-core', 'shared/src/dates.ts', "import { hostname } from 'node:os'"],
  ['pure-core', 'engine/src/store/layout.ts', "import type { Stats } from 'fs'"],
  ['pure-core', 'engine/src/raft/raft.ts', "import '@vacancy/shared/node'"],
  ['pure-core', 'engine/src/search/rank.ts', 'export const pivot = Math.random()'],
  ['tests-are-not-shipped', 'engine/src/node.ts', "import './testing/disk.ts'"],
  ['tests-are-not-shipped', 'client/src/index.ts', "import './index.test.ts'", 'client/src/index.test.ts'],
  ['quick-tests', 'engine/src/store/store.test.ts', "import { spawn } from 'node:child_process'"],
  ['quick-tests', 'engine/src/testing/disk.ts', "import { spawn } from 'node:child_process'"],
  ['no-circles', 'engine/src/store/layout.ts', "export * from './store.ts'"],
  ['no-circles', 'engine/src/store/layout.ts', "import type { Store } from './store.ts'"],
  [
    'light-threads: engine/src/tcp/serving-worker.ts → shared/src/node/index.ts',
    'engine/src/tcp/serving-worker.ts',
    "import '@vacancy/shared/node'",
  ],
  ['resolvable', 'engine/src/node.ts', "import './missing.ts'"],
  ['resolvable', 'engine/src/node.ts', "import '@vacancy/shared/internals'"],
  ['resolvable', 'engine/src/node.ts', "import 'zod'"],
  ['resolvable', 'engine/src/node.ts', "import 'vitest'"],
  ['resolvable', 'engine/src/node.ts', 'await import(process.argv[2])'],
  ['resolvable', 'engine/src/search/kernel.as.ts', "import { gone } from './gone.as'"],
  ['cannot be read', 'engine/src/node.ts', "import { from './node.ts"],
]

test.each(BAD)('%s: %s may not say %s', (rule, file, line, other) => {
  if (other) write(other, 'export {}\n')
  write(file, `${line}\n`)

  const { faults } = checkImports(root, {})

  expect(faults).toContainEqual(expect.stringContaining(rule))
})

test('a workspace without a layer is refused, and a repository without modules is detected', () => {
  write('package.json', JSON.stringify({ workspaces: ['shared', 'attic'] }))
  expect(checkImports(root).faults).toContain('attic: belongs to no layer. Add a row to check-imports')

  for (const workspace of ['shared', 'testkit', 'engine', 'client', 'bench', 'quickstart']) {
    rmSync(path.join(root, workspace, 'src'), { recursive: true })
  }
  expect(checkImports(root).modules).toBe(0)
})

test('folders that import each other pass only as an exception that is still needed', () => {
  const pair = { 'client faces pool': 'one knows the other' }
  expect(checkImports(root, pair).faults).toEqual([
    'one-way: client faces pool no longer import each other. Remove the exception',
  ])

  write('client/src/faces/face.ts', "import '../pool/pool.ts'\n")
  write('client/src/pool/pool.ts', "import '../faces/names.ts'\n")
  write('client/src/faces/names.ts', 'export {}\n')
  write('client/src/pool/pool.test.ts', "import '../faces/face.ts'\n")

  expect(checkImports(root, pair).faults).toEqual([])
  expect(checkImports(root, {}).faults).toEqual([
    'one-way: client faces pool import each other: client/src/faces/face.ts → client/src/pool/pool.ts, client/src/pool/pool.ts → client/src/faces/names.ts',
  ])
})
