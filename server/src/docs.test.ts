import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EXIT } from '@vacancy/shared'
import { CONTROL_ROUTES } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { CONTROL_SCHEMA, loadControlConfig } from './config.ts'
import { pages, stalePages } from './docs.ts'
import { CONTROL_METRICS } from './metrics.ts'

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/control-plane.md'), 'utf8')

test('the committed page is up to date (node server/src/docs.ts --write)', () => {
  expect(stalePages()).toEqual([])
})

test('the page lists every key, metric and path, and every row has as many cells as its header', () => {
  const text = Object.values(pages()).join()
  for (const name of [...Object.keys(CONTROL_SCHEMA), ...Object.keys(CONTROL_METRICS), ...Object.keys(CONTROL_ROUTES)])
    expect(text).toContain(`\`${name}\``)
  for (const page of [text, PAGE])
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
