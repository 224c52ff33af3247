import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EXIT } from '@vacancy/shared'
import { CONTROL_ROUTES } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { CONTROL_SCHEMA, loadControlConfig } from './config.ts'
import { pages, QUEUE_PAGE_ROUTES, stalePages } from './docs.ts'
import { CONTROL_METRICS } from './metrics.ts'
import { SERVE_SCHEMA } from './queue/config.ts'
import { QUEUE_METRICS } from './queue/metrics.ts'

const [PAGE, QUEUE_PAGE] = ['control-plane.md', 'queue.md'].map((name) =>
  readFileSync(join(import.meta.dirname, '../../docs', name), 'utf8'),
) as [string, string]

test('the committed pages are up to date (node server/src/docs.ts --write)', () => {
  expect(stalePages()).toEqual([])
})

test.each([
  ['control-plane-reference.md', [CONTROL_SCHEMA, CONTROL_METRICS, CONTROL_ROUTES]],
  ['queue-reference.md', [SERVE_SCHEMA, QUEUE_METRICS, QUEUE_PAGE_ROUTES]],
])('%s lists every key, metric and path', (file, tables) => {
  for (const name of tables.flatMap((table) => Object.keys(table))) expect(pages()[file]).toContain(`\`${name}\``)
})

test('every row of a table has as many cells as its header', () => {
  for (const page of [...Object.values(pages()), PAGE, QUEUE_PAGE])
    for (const block of page.split('\n\n').filter((block) => block.startsWith('|'))) {
      const cells = block
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/(?<!\\)\|/).length)
      expect(new Set(cells).size, block).toBe(1)
    }
})

test('the page for operators shows valid configuration files and correct exit codes', () => {
  const yaml = [...PAGE.matchAll(/```yaml\n([\s\S]*?)```/g)].map((match) => match[1] as string)
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-docs-'))
  const [whole = '', secure = '', proxied = ''] = yaml
  writeFileSync(join(folder, 'token'), 'secret')

  writeFileSync(join(folder, 'a.yml'), whole.replaceAll(/\/run\/secrets\/[\w-]+/g, join(folder, 'token')))
  expect(loadControlConfig({ file: join(folder, 'a.yml') }).values.nodes.length).toBe(2)
  const valuesOf = (text: string) => {
    writeFileSync(join(folder, 'b.yml'), text)
    return loadControlConfig({ file: join(folder, 'b.yml') }).values
  }
  expect(valuesOf(secure)).toMatchObject({ tlsCert: '/etc/ssl/vacancy.pem', tlsKey: '/etc/ssl/vacancy.key' })
  expect(valuesOf(proxied).trustProxy).toEqual(['127.0.0.1'])
  for (const code of [EXIT.ok, EXIT.failure, EXIT.usage, EXIT.bind]) expect(PAGE).toContain(`\n| ${code} | `)
})
