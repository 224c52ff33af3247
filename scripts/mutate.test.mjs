import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'

const PROGRAM = path.join(import.meta.dirname, 'mutate.mjs')
const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-mutate-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('a run tries the drawn edits, reports each and leaves the tree as it is', () => {
  const json = path.join(folder, 'report.json')

  const { status, stdout, stderr } = run(
    '--workspace',
    'web',
    '--edits',
    '2',
    '--seed',
    '1',
    '--min',
    '0',
    '--json',
    json,
  )

  expect(stderr).toBe('')
  expect(status).toBe(0)
  expect(stdout).toMatch(/^web: [\d.]+ % noticed .* threshold 0 %: passed$/m)
  const [report] = JSON.parse(readFileSync(json, 'utf8')).workspaces
  expect(report.caught + report.timeout + report.survived).toBe(2)
  for (const { file, before, after, line, status } of report.edits) {
    expect(['caught', 'timeout', 'survived']).toContain(status)
    expect(before).not.toBe(after)
    expect(readFileSync(path.join(import.meta.dirname, '..', file), 'utf8').split('\n')[line - 1]).toContain(
      before.split('\n')[0],
    )
  }
})

test.each([
  ['an unknown workspace', ['--workspace', 'nowhere'], 'unknown workspace nowhere'],
  ['a count that is not a number', ['--edits', 'many'], '--edits must be a whole number'],
  ['no job at all', ['--jobs', '0'], '--jobs must be at least 1'],
  ['an unknown option', ['--fast'], "Unknown option '--fast'"],
])('%s is a usage error', (_, options, message) => {
  const { status, stderr } = run(...options)

  expect(status).toBe(64)
  expect(stderr).toContain(message)
})

function run(...options) {
  return spawnSync(process.execPath, [PROGRAM, ...options], { encoding: 'utf8' })
}
