import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REGISTRY_LIMITS } from '@vacancy/shared/contract'
import { parseTokens } from '@vacancy/shared/node'
import { expect, test } from 'vitest'
import { FABRIC_ROLES, FABRIC_TOKENS } from './access.ts'
import { REGISTRY_FLAGS, RESOLVER_FLAGS } from './config.ts'
import { pages } from './docs.ts'
import { HTTP_LIMITS } from './http.ts'
import { REGISTRY_METRICS, RESOLVER_METRICS } from './metrics.ts'
import { parseTable } from './resolver.ts'

const REGISTRY_PAGE = readFileSync(join(import.meta.dirname, '../../docs/registry.md'), 'utf8')

test.each([
  ['fabric-config.md', [...Object.keys(REGISTRY_FLAGS), ...Object.keys(RESOLVER_FLAGS)].map((flag) => `\`--${flag}\``)],
  ['fabric-metrics.md', [...Object.keys(REGISTRY_METRICS), ...Object.keys(RESOLVER_METRICS)]],
])('%s lists every row of its table', (file, names) => {
  for (const name of names) expect(pages()[file]).toContain(name)
})

test('every row of a table has as many cells as its header', () => {
  for (const text of [...Object.values(pages()), REGISTRY_PAGE]) {
    const tables = text
      .split('\n\n')
      .map((block) => block.trimEnd().split('\n'))
      .filter(([head]) => head?.startsWith('|'))
    expect(tables.length).toBeGreaterThan(0)
    for (const lines of tables)
      expect(new Set(lines.map((line) => line.split(/(?<!\\)\|/).length)).size, lines[0]).toBe(1)
  }
})

test('the page for operators shows valid files and correct limits', () => {
  const yaml = [...REGISTRY_PAGE.matchAll(/```yaml\n([\s\S]*?)```/g)].map((match) => match[1] as string)

  const [table, patterns, tokens] = yaml as [string, string, string]
  expect(parseTable(table, 'resolver.yml').nodes.size).toBe(2)
  expect(Object.keys(parseTable(patterns, 'resolver.yml').patterns)).toEqual(['nodes', 'bridges', 'routers'])
  expect(parseTokens(tokens, 'auth.yml', FABRIC_TOKENS).length).toBe(3)
  for (const role of FABRIC_ROLES) expect(REGISTRY_PAGE).toContain(`\`${role}\``)
  for (const limit of [
    REGISTRY_LIMITS.componentsMax,
    REGISTRY_LIMITS.segmentsPerPushMax,
    REGISTRY_LIMITS.claimsMax,
    REGISTRY_LIMITS.reservationsMax,
    HTTP_LIMITS.connectionsMax,
  ])
    expect(REGISTRY_PAGE).toContain(limit.toLocaleString('en-US'))
})
