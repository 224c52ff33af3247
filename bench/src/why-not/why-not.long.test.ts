import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dayOf } from '@vacancy/shared'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDataset, type Dataset, type DatasetSpec } from '../dataset.ts'
import { completeSearches, createTables, searches, type Tables } from '../queries.ts'
import { CONNECT } from './connect.ts'
import { type SizeResult, whyNotCells } from './results.ts'
import { startSqlite } from './sqlite.ts'
import type { Connection } from './system.ts'
import { checkSystems, compareSystems, formatWhyNot } from './why-not.ts'

const PACKAGES = 10_000
const SPEC: DatasetSpec = {
  shape: 'uniform',
  packages: PACKAGES,
  days: 60,
  from: dayOf(Date.now()),
  seed: 1,
  segments: 0,
  nights: 'random',
}
const folder = mkdtempSync(join(tmpdir(), 'vacancy-why-not-'))
let dataset: Dataset
let tables: Tables
beforeAll(() => {
  dataset = createDataset(SPEC)
  tables = createTables(dataset)
})
afterAll(() => rmSync(folder, { recursive: true }))

test('Vacancy and SQLite are measured after they gave equal answers', async () => {
  const systems = ['vacancy', 'sqlite'] as const
  const plan = { packages: [PACKAGES], rounds: 2, seconds: 0.25, clients: 2, systems }
  const result = await compareSystems(join(folder, 'bench'), () => undefined, plan)
  const [size] = result.sizes

  expect(size?.compared).toBeGreaterThan(200)
  expect(size?.systems.map(({ name }) => name)).toEqual(['vacancy', 'sqlite'])
  const { rows } = whyNotCells(size as SizeResult, result.clients)
  const writes = rows.find(([what]) => what === 'Durable writes, 1 client')
  for (const cell of writes?.slice(1) ?? [])
    expect(cell).toMatch(/^[\d,]+\/s \([\d,]+–[\d,]+\), [\d.]+ ms \/ [\d.]+ ms$/)
  expect(rows.flat().join()).not.toMatch(/NaN|not measured/)
  expect(formatWhyNot(result)).toContain(`${PACKAGES.toLocaleString('en')} packages`)
}, 240_000)

test('a system that leaves out a property, or orders a page otherwise, fails the comparison', async () => {
  const system = await startSqlite({ dataset, spec: SPEC, dir: folder })
  const right = await CONNECT.sqlite(system.target, dataset)
  const wrong: Connection = { ...right, search: (fields) => async () => (await right.search(fields)()).slice(1) }
  const some = [
    ...completeSearches(tables, { count: 5, seed: 1 }),
    ...searches(tables, { kind: 'selective', count: 5, seed: 1 }),
  ]

  expect(await checkSystems([{ name: 'sqlite', connection: right }], tables, some)).toBeGreaterThan(some.length)
  await expect(checkSystems([{ name: 'redis', connection: wrong }], tables, some)).rejects.toThrow(/redis finds/)
  const unordered: Connection = {
    ...right,
    page: (fields) => async () => {
      const { stays, matches } = await right.page(fields)()
      return { stays: stays.toReversed(), matches }
    },
  }
  await expect(checkSystems([{ name: 'redis', connection: unordered }], tables, some)).rejects.toThrow(/another page/)
  await right.close()
})
