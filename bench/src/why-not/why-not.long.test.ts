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
import { encodeCommand, parseReply } from './resp.ts'
import { whyNotCells, whyNotLines } from './results.ts'
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

test('a system that is not installed is named in the table and below it', () => {
  const result = {
    ...{ command: '', startedAt: '2026-11-23T10:00:00.000Z', seconds: 1, packages: 10, compared: 2, clients: 8 },
    hits: { broad: 300, selective: 30 },
    machine: {
      ...{ cpu: 'A processor', cores: 2, memoryGb: 8, system: 'Linux', node: '26', v8: '14', vacancy: '0.1.0' },
      ...{ commit: 'abc', loadBefore: 0 },
    },
    systems: [{ name: 'redis' as const, notMeasured: 'Redis is not installed' }],
    notes: [],
  }

  expect(whyNotCells(result).rows[0]).toEqual(['Searches of 300 hits, 1 client', 'not measured'])
  expect(whyNotLines(result).join()).not.toContain('busy')
  expect(whyNotLines({ ...result, machine: { ...result.machine, loadBefore: 3 } }).join()).toContain('busy')
  expect(whyNotLines(result)).toContain('Redis was not measured: Redis is not installed.')
})

test('replies of Redis are read whole, in pieces and nested', () => {
  const text = '*3\r\n:7\r\n$3\r\na\r\n\r\n*1\r\n$-1\r\n'
  const bytes = Buffer.from(text)

  expect(encodeCommand(['GET', 12]).toString()).toBe('*2\r\n$3\r\nGET\r\n$2\r\n12\r\n')
  for (let length = 0; length < bytes.length; length++) expect(parseReply(bytes.subarray(0, length), 0)).toBeUndefined()
  expect(parseReply(bytes, 0)).toEqual({ value: [7, Buffer.from('a\r\n'), [null]], end: bytes.length })
  expect(parseReply(Buffer.from('-ERR no\r\n'), 0)?.value).toMatchObject({ message: 'Redis: ERR no' })
})
