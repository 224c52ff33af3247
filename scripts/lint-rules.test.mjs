import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ROOT } from './pinned-node.mjs'

const BIOME = path.join(ROOT, 'node_modules/@biomejs/biome/bin/biome')

let root

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'vacancy-lint-'))
  const settings = JSON.parse(readFileSync(path.join(ROOT, 'biome.json'), 'utf8'))
  writeFileSync(path.join(root, 'biome.json'), JSON.stringify({ ...settings, vcs: { enabled: false } }))
})

afterEach(() => rmSync(root, { recursive: true, force: true }))

/** The output of biome for a file with this name and content, with the rules of this repository. */
function lint(file, code) {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
  writeFileSync(path.join(root, file), `${code}\n`)
  const { stdout, stderr } = spawnSync(process.execPath, [BIOME, 'lint'], { cwd: root, encoding: 'utf8' })
  return stdout + stderr
}

const REFUSED = [
  ['engine/src/store/apply.ts', 'export const now = Date.now()', 'noRestrictedGlobals'],
  ['engine/src/search/plan.ts', 'export const now = performance.now()', 'noRestrictedGlobals'],
  ['engine/src/raft/raft.ts', 'setTimeout(() => 1, 30)', 'noRestrictedGlobals'],
  ['shared/src/ids.ts', 'export const pid = process.pid', 'noRestrictedGlobals'],
  ['shared/src/wire/frame.ts', 'export const empty = Buffer.alloc(0)', 'noRestrictedGlobals'],
  ['engine/src/tcp/server.ts', 'export const port = process.env["PORT"]', 'noProcessEnv'],
  ['engine/src/tcp/server.ts', 'console.log(1)', 'noConsole'],
  ['client/src/client.ts', 'export const x: any = 1', 'noExplicitAny'],
]

test.each(REFUSED)('%s may not contain %s', (file, code, rule) => {
  expect(lint(file, code)).toContain(rule)
})

const ALLOWED = [
  ['shared/src/clock.ts', 'export const wallMs = () => Date.now()'],
  ['shared/src/node/process.ts', 'export const env = process.env'],
  ['engine/src/store/apply.test.ts', 'export const now = Date.now()'],
  ['engine/src/cluster/replica-worker.ts', 'export const now = performance.now()'],
  ['engine/src/cli/cli.ts', 'console.log(1)'],
]

test.each(ALLOWED)('%s may contain %s', (file, code) => {
  const output = lint(file, code)

  expect(output).toContain('Checked')
  expect(output).not.toMatch(/noRestrictedGlobals|noProcessEnv|noConsole/)
})
