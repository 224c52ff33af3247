import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkLinks, headingsOf, linksOf } from './check-links.mjs'

const ROOT = path.resolve(import.meta.dirname, '..')

let root

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'vacancy-links-'))
  write('docs/design/store.md', '# Store\n\n## Row order\n\n## Row order\n')
  write('engine/src/raft/DESIGN.md', '# Raft\n\n## Votes & terms\n')
})

afterEach(() => rmSync(root, { recursive: true, force: true }))

function write(file, text) {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true })
  writeFileSync(path.join(root, file), text)
}

test('every link of this repository leads somewhere', () => {
  const { faults, links } = checkLinks(ROOT)

  expect(faults).toEqual([])
  expect(links).toBeGreaterThan(200)
})

test('links between pages, to files, to folders and within a page are followed', () => {
  write(
    'docs/page.md',
    '# Page\n\n[order](design/store.md#row-order) [raft](../engine/src/raft) [here](#page) [web](https://x.y/#z)\n',
  )

  expect(checkLinks(root)).toEqual({ faults: [], links: 3 })
})

test.each([
  [
    'a page that does not exist',
    '[gone](design/gone.md)',
    'docs/page.md:3: design/gone.md: docs/design/gone.md does not exist',
  ],
  [
    'a heading that does not exist',
    '[gone](design/store.md#rows)',
    'docs/page.md:3: design/store.md#rows: docs/design/store.md has no heading #rows',
  ],
  ['a heading of the same page', '[gone](#gone)', 'docs/page.md:3: #gone: docs/page.md has no heading #gone'],
  ['an image', '![gone](gone.png "title")', 'docs/page.md:3: gone.png: docs/gone.png does not exist'],
  ['an image as a tag', '<img alt="" src="gone.png">', 'docs/page.md:3: gone.png: docs/gone.png does not exist'],
  ['a link definition', '[gone]: gone.md', 'docs/page.md:3: gone.md: docs/gone.md does not exist'],
  ['a path outside of the repository', '[out](../../etc)', 'docs/page.md:3: ../../etc: ../etc does not exist'],
])('%s is reported', (_, line, fault) => {
  write('docs/page.md', `# Page\n\n${line}\n`)

  expect(checkLinks(root).faults).toEqual([fault])
})

test('comments of sources may cite pages by their path, and a DESIGN.md from the root or beside the file', () => {
  write(
    'engine/src/raft/raft.ts',
    '/** See docs/design/store.md#row-order-1, `engine/src/raft/DESIGN.md#votes--terms`. */\n// DESIGN.md#raft\n',
  )

  expect(checkLinks(root)).toEqual({ faults: [], links: 3 })
})

test.each([
  ['docs/design/gone.md', 'docs/design/gone.md does not exist'],
  ['docs/design/store.md#rows', 'docs/design/store.md has no heading #rows'],
  ['DESIGN.md#rows', 'engine/src/wal/DESIGN.md does not exist'],
  ['../raft/DESIGN.md#rows', 'engine/src/raft/DESIGN.md has no heading #rows'],
])('a comment that cites %s is reported', (citation, fault) => {
  write('engine/src/wal/wal.ts', `\n// Why: ${citation}.\n`)

  expect(checkLinks(root).faults).toEqual([`engine/src/wal/wal.ts:2: ${citation}: ${fault}`])
})

test('headings get the anchors of GitHub', () => {
  const page = '# `vacancy run` & [flags]\n## Row order\n## Row order\n```sh\n# no heading\n```\n<a id="own"></a>\n'

  expect([...headingsOf(page)]).toEqual(['vacancy-run--flags', 'row-order', 'row-order-1', 'own'])
})

test('links in code are ignored', () => {
  expect(linksOf('`[a](b.md)`\n\n```\n[c](d.md)\n```\n\n[e](f.md)\n')).toEqual([{ line: 7, url: 'f.md' }])
})

test('installed packages and builds are not searched', () => {
  write('node_modules/x/README.md', '[gone](gone.md)')
  write('web/.next/page.md', '[gone](gone.md)')

  expect(checkLinks(root).faults).toEqual([])
})
