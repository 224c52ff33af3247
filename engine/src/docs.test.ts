import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ERRORS, EXIT, WIRE_CODES } from '@vacancy/shared'
import { COMMAND_LIST } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { ENGINE_SCHEMA } from './config.ts'
import { pages } from './docs.ts'
import { EXIT_CODES } from './exit-codes.ts'
import { REASONS } from './http/reasons.ts'
import { METRICS } from './metrics.ts'

test.each([
  ['commands.md', COMMAND_LIST.flatMap(({ name, fields }) => [name, ...fields.map((field) => field.summary)])],
  ['config.md', Object.keys(ENGINE_SCHEMA)],
  ['errors.md', [...Object.keys(ERRORS), ...WIRE_CODES]],
  ['reasons.md', Object.values(EXIT).map((exit) => `| ${exit} |`)],
  ['metrics.md', Object.keys(METRICS)],
])('%s names everything of its table', (file, names) => {
  const text = readFileSync(join(import.meta.dirname, '../../docs', file), 'utf8')

  for (const name of names) expect(text).toContain(name)
})

test('each reason and exit code has a meaning, a check and a command', () => {
  const text = pages()['reasons.md']

  for (const { means, lookAt, type } of [...Object.values(REASONS), ...Object.values(EXIT_CODES)]) {
    for (const words of [means, lookAt, type]) expect(text).toContain(words.replaceAll('|', '\\|'))
  }
})

test('every row of a table has as many cells as its head', () => {
  for (const [file, text] of Object.entries(pages())) {
    const tables = text
      .split('\n\n')
      .map((block) => block.trimEnd().split('\n'))
      .filter(([head]) => head?.startsWith('|'))
    expect(tables.length, file).toBeGreaterThan(0)
    for (const lines of tables) {
      const cells = lines.map((line) => line.split(/(?<!\\)\|/).length)
      expect(new Set(cells).size, `${file}: ${lines[0]}`).toBe(1)
    }
  }
})
