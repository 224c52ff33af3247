import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { commitOf } from './commit.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-commit-'))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('a folder without history has no commit; one with it says whether it was changed since', () => {
  expect(commitOf(folder)).toBe('unknown')

  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).trim()
  git('init', '-q')
  const identity = ['-c', 'user.name=t', '-c', 'user.email=t@localhost']
  git(...identity, 'commit', '-q', '--allow-empty', '-m', 'first')
  expect(commitOf(folder)).toBe(git('rev-parse', '--short', 'HEAD'))

  writeFileSync(join(folder, 'new'), '')
  expect(commitOf(folder)).toBe(`${git('rev-parse', '--short', 'HEAD')} with changes`)
})
