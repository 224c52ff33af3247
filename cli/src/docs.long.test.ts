/** Commands on the pages exist, with their flags and fields; links resolve; pages stay short enough to read. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseCommand } from '@vacancy/shared/node'
import { isCommandName } from '@vacancy/shared/wire'
import { runVacancy } from '@vacancy/testkit/node'
import { expect, test } from 'vitest'
import { fieldsOf, QUERY_COMMANDS } from './query.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PAGES = [
  'README.md',
  'docs/operators.md',
  'docs/integrators.md',
  'docs/clusters.md',
  'docs/registry.md',
  'docs/reliability.md',
  'docs/limits.md',
  'docs/why-not.md',
  'CONTRIBUTING.md',
]
/** Generated pages, whose cells and paragraphs are as long as the texts of their tables. */
const GENERATED = /^<!-- (?:Generated|Made) from /m
const LINE_LENGTH = 140
const README_LINES = 110
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object }

const textOf = (page: string) => readFileSync(join(ROOT, page), 'utf8')
const lines = PAGES.flatMap((page) =>
  [...textOf(page).matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) =>
    block
      .trim()
      .split('\n')
      .map((line) => ({ page, line })),
  ),
)
const vacancyLines = lines.filter(({ line }) => /^(npx )?vacancy /.test(line))
const wordsOf = (line: string) =>
  line
    .replace(/^npx /, '')
    .replace('$(date -u +%F)', '2026-12-01')
    .replace('$ARRIVAL', '2026-12-24')
    .replaceAll("'", '')
    .split(' ')
    .slice(1)

test.each(lines)('$page: `$line` begins with an existing command', ({ line }) => {
  const script = /^npm (?:run )?(?!install )(\S+)/.exec(line)?.[1]

  if (script !== undefined) expect(Object.keys(scripts)).toContain(script)
  else if (line.startsWith('node ')) expect(existsSync(join(ROOT, line.split(' ')[1] ?? '')), line).toBe(true)
  else
    expect(line).toMatch(
      /^(npx vacancy|vacancy|npm install|podman|openssl|curl|cp|ln|mkdir|chown|printf|echo|entry\(\)|sha256sum|systemctl|tar|for|done|(export )?[A-Z_]+=.*| {2}.*)( |$)/,
    )
})

test('the README shows how to start and test, and stays short', () => {
  const readme = textOf('README.md')

  const first = lines.filter(({ page }) => page === 'README.md').map(({ line }) => line)
  expect(first.slice(0, 2)).toEqual(['npm start', 'npm test'])
  expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(README_LINES)
})

test('lines of hand-written pages are short enough', () => {
  const docs = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'))
  const pages = ['README.md', 'CONTRIBUTING.md', ...docs.map((name) => `docs/${name}`)]
  const written = pages.filter((page) => page === 'docs/benchmarks.md' || !GENERATED.test(textOf(page)))
  expect(written).toContain('docs/operators.md')

  for (const page of written) expect(longLinesOf(textOf(page)), page).toEqual([])
})

test.each(vacancyLines.filter(({ line }) => line.includes('vacancy query')))('$page: `$line` is valid', ({ line }) => {
  const [, word = '', ...args] = wordsOf(line)
  if (word === '--help') return
  const command = QUERY_COMMANDS.find(({ name }) => name.endsWith(` ${word}`))
  if (!command) throw new Error(`there is no vacancy query ${word}`)

  const { operands } = parseCommand(command, args, {})

  const [name, ...pairs] = operands
  if (word === 'send' && name !== undefined && isCommandName(name)) fieldsOf(name, pairs)
  expect(word === 'send').toBe(operands.length > 0)
})

test('other subcommands and their flags are in their help', async () => {
  const others = vacancyLines.map(({ line }) => wordsOf(line)).filter(([word]) => word !== 'query')
  const helps = new Map<string, string>()
  for (const word of new Set(others.map(([word = '']) => word))) {
    const { code, stdout } = await runVacancy([word, '--help'])
    expect({ word, code }).toEqual({ word, code: 0 })
    helps.set(word, stdout)
  }

  for (const [word = '', ...args] of others) {
    for (const flag of args.filter((arg) => arg.startsWith('--'))) expect(helps.get(word)).toContain(`${flag} `)
  }
})

test('links between pages lead to files and headings', () => {
  for (const page of [...PAGES, 'CHANGELOG.md']) {
    for (const [, target = '', heading = ''] of textOf(page).matchAll(/\]\((?!http)([^)#]*)(?:#([^)]+))?\)/g)) {
      const file = target === '' ? page : join(dirname(page), target)
      expect(existsSync(join(ROOT, file)), `${page} → ${file}`).toBe(true)
      if (heading !== '') expect(anchorsOf(textOf(file)), `${page} → ${file}#${heading}`).toContain(heading)
    }
  }
})

function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-'),
  )
}

/** Lines that are too long, outside tables and code. */
function longLinesOf(text: string): string[] {
  const prose = text.replaceAll(/^```.*?^```/gms, '')
  return prose.split('\n').filter((line) => line.length > LINE_LENGTH && !line.startsWith('|'))
}
