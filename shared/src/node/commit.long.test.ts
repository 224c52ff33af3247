import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { commitOf } from './commit.ts'

const hasGit = spawnSync('git', ['--version']).status === 0

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-commit-'))
  return () => rmSync(folder, { recursive: true, force: true })
})

test('a folder without history has no commit', () => expect(commitOf(folder)).toBe('unknown'))

test.runIf(hasGit)('a commit is abbreviated, and uncommitted changes are noted', () => {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).trim()
  git('init', '-q')
  const identity = ['-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'commit.gpgsign=false']
  git(...identity, 'commit', '-q', '--allow-empty', '-m', 'first')
  expect(commitOf(folder)).toBe(git('rev-parse', '--short=12', 'HEAD'))

  writeFileSync(join(folder, 'new'), '')
  expect(commitOf(folder)).toBe(`${git('rev-parse', '--short=12', 'HEAD')} with changes`)
})
