import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ROOT } from './pinned-node.mjs'

const BIOME = path.join(ROOT, 'node_modules/@biomejs/biome/bin/biome')

let house

beforeEach(() => {
  house = mkdtempSync(path.join(tmpdir(), 'vacancy-lint-'))
  const settings = JSON.parse(readFileSync(path.join(ROOT, 'biome.json'), 'utf8'))
  writeFileSync(path.join(house, 'biome.json'), JSON.stringify({ ...settings, vcs: { enabled: false } }))
})

afterEach(() => rmSync(house, { recursive: true, force: true }))

/** What biome says about a file of that name with that content, in a house with our rules. */
function lint(file, code) {
  mkdirSync(path.dirname(path.join(house, file)), { recursive: true })
  writeFileSync(path.join(house, file), `${code}\n`)
  const { stdout, stderr } = spawnSync(process.execPath, [BIOME, 'lint'], { cwd: house, encoding: 'utf8' })
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

test.each(REFUSED)('%s may not say %s', (file, code, rule) => {
  expect(lint(file, code)).toContain(rule)
})

const ALLOWED = [
  ['shared/src/clock.ts', 'export const wallMs = () => Date.now()'],
  ['shared/src/node/process.ts', 'export const env = process.env'],
  ['engine/src/store/apply.test.ts', 'export const now = Date.now()'],
  ['engine/src/cluster/replica-worker.ts', 'export const now = performance.now()'],
  ['engine/src/cli.ts', 'console.log(1)'],
]

test.each(ALLOWED)('%s may say %s', (file, code) => {
  const said = lint(file, code)

  expect(said).toContain('Checked')
  expect(said).not.toMatch(/noRestrictedGlobals|noProcessEnv|noConsole/)
})
