import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dayOf } from '@vacancy/shared'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closeBench, createBench, SIZES } from '../bench.ts'
import { createDataset, type Dataset, type DatasetSpec } from '../dataset.ts'
import { completeSearches, createTables, searches, type Tables } from '../queries.ts'
import { checkSystems } from './check.ts'
import { CONNECT } from './connect.ts'
import { whyNotCells } from './results.ts'
import { startSqlite } from './sqlite.ts'
import type { Connection } from './system.ts'
import { compareSystems, formatWhyNot } from './why-not.ts'

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
  const say = () => undefined
  const bench = createBench({ size: { ...SIZES.quick, packages: PACKAGES }, dir: join(folder, 'bench'), say })
  try {
    const plan = { packages: PACKAGES, seconds: 1, clients: 2, systems: ['vacancy', 'sqlite'] as const }
    const result = await compareSystems(bench, plan)

    expect(result.compared).toBeGreaterThan(200)
    expect(result.systems.map(({ name }) => name)).toEqual(['vacancy', 'sqlite'])
    const { rows } = whyNotCells(result)
    expect(rows.map(([what]) => what)).toContain('Durable writes, 1 client')
    expect(rows.flat().join()).not.toMatch(/NaN|–|not measured/)
    expect(formatWhyNot(result)).toContain(`${PACKAGES.toLocaleString('en')} packages`)
  } finally {
    await closeBench(bench, { keep: false })
  }
}, 240_000)

test('a system that leaves out a property fails the comparison', async () => {
  const system = await startSqlite({ dataset, spec: SPEC, dir: folder })
  const right = await CONNECT.sqlite(system.target, dataset)
  const wrong: Connection = { ...right, search: (fields) => async () => (await right.search(fields)()).slice(1) }
  const some = [
    ...completeSearches(tables, { count: 5, seed: 1 }),
    ...searches(tables, { kind: 'selective', count: 5, seed: 1 }),
  ]

  expect(await checkSystems([{ name: 'sqlite', connection: right }], tables, some)).toBeGreaterThan(some.length)
  await expect(checkSystems([{ name: 'redis', connection: wrong }], tables, some)).rejects.toThrow(/redis finds/)
  await right.close()
})
