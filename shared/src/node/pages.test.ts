import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { limitsTable, staleAmong } from './pages.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-pages-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('a page is outdated when its file has another text or is missing', () => {
  writeFileSync(path.join(folder, 'same.md'), 'same')
  writeFileSync(path.join(folder, 'other.md'), 'before')

  expect(staleAmong({ 'same.md': 'same', 'other.md': 'after', 'none.md': 'new' }, folder)).toEqual([
    'other.md',
    'none.md',
  ])
  mkdirSync(path.join(folder, 'folder.md'))
  expect(() => staleAmong({ 'folder.md': '' }, folder)).toThrow('EISDIR')
})

/** The command of a generator of two pages, in a process of its own. */
function program(): string {
  const file = path.join(folder, 'docs.ts')
  const pages = path.join(import.meta.dirname, 'pages.ts')
  writeFileSync(
    file,
    `import { pagesMain } from ${JSON.stringify(pages)}\npagesMain({ 'a.md': 'a', 'b.md': 'b' }, ${JSON.stringify(folder)})\n`,
  )
  return file
}

test('the command lists outdated pages and fails, writes them with --write, and then succeeds', () => {
  const file = program()
  writeFileSync(path.join(folder, 'a.md'), 'a')
  const run = (...flags: string[]) => {
    const { status, stdout } = spawnSync(process.execPath, [file, ...flags], { encoding: 'utf8' })
    return [status, stdout]
  }

  expect(run()).toEqual([1, 'Not current: b.md.\n'])
  expect(run('--write')).toEqual([0, 'Wrote b.md.\n'])
  expect(readFileSync(path.join(folder, 'b.md'), 'utf8')).toBe('b')
  expect(run()).toEqual([0, 'All pages are current.\n'])
  expect(execFileSync(process.execPath, [file, '--write'], { encoding: 'utf8' })).toBe('All pages are current.\n')
})

test('a table of limits has a row for each, with its digits in groups', () => {
  expect(
    limitsTable(
      { bytesMax: 1_048_576, radius: 6371008.8, path: '/live' },
      { bytesMax: 'A.', radius: 'B.', path: 'C.' },
    ),
  ).toBe(
    [
      '| Limit | Value | What it bounds |',
      '|---|---|---|',
      '| `bytesMax` | 1,048,576 | A. |',
      '| `radius` | 6,371,008.8 | B. |',
      '| `path` | /live | C. |',
    ].join('\n'),
  )
})
