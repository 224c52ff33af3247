import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { writeDataset } from './csv.ts'
import { createDataset, type Dataset, type DatasetSpec, SHAPES } from './dataset.ts'
import { answerTo, createTables, SEARCH_CLASSES, type SearchFields, searches, updates } from './queries.ts'

const root = mkdtempSync(join(tmpdir(), 'vacancy-queries-'))
afterAll(() => rmSync(root, { recursive: true }))

function datasetOf(shape: DatasetSpec['shape'], packages: number): Dataset {
  return createDataset({ shape, packages, days: 10, from: 20_500, seed: 4, segments: 2, nights: 'random' })
}

function linesOf(dir: string, file: string): string[][] {
  const lines = readFileSync(join(dir, file), 'utf8').trimEnd().split('\n').slice(1)
  return lines.map((line) => line.split(','))
}

/** Wire protocol docs/design/protocol.md#searches, read off the CSV files line by line. */
function answerFromFiles(dir: string, wanted: SearchFields): string[] {
  const nights = new Map<string, number>()
  for (const [id = '', roomType, date = '', availability, price, features = ''] of linesOf(dir, 'packages.csv')) {
    const fits =
      roomType === wanted.roomType &&
      wanted.dates.includes(date) &&
      Number(availability) >= 1 &&
      Number(price) <= (wanted.finalPrice ?? Infinity) &&
      (wanted.rateFeatures ?? []).every((name) => features.split('|').includes(name))
    if (fits) nights.set(id, (nights.get(id) ?? 0) + 1)
  }
  return linesOf(dir, 'properties.csv')
    .filter(
      ([id = '', segment, area, type, category, stars, , , amenities = '']) =>
        nights.get(id) === wanted.dates.length &&
        segment === wanted.segment &&
        type === wanted.propertyType &&
        (wanted.area ?? area) === area &&
        (wanted.category ?? category) === category &&
        String(wanted.stars ?? stars) === stars &&
        (wanted.amenities ?? []).every((name) => amenities.split('|').includes(name)),
    )
    .map(([id = '']) => id)
}

test.each(SHAPES.flatMap((shape) => SEARCH_CLASSES.map((kind) => [shape, kind] as const)))(
  '%s, %s: each search has as many hits as the files say',
  (shape, kind) => {
    const dataset = datasetOf(shape, 4000)
    const tables = createTables(dataset)
    const dir = join(root, `${shape}-${kind}`)
    writeDataset(dataset, { dir })

    for (const { fields, hits } of searches(tables, { kind, count: 12, seed: 3 })) {
      const ids = answerFromFiles(dir, fields)
      expect(ids.length).toBeGreaterThan(0)
      expect(hits).toBe(Math.min(ids.length, fields.limit))
      expect(answerTo(tables, fields).toSorted()).toEqual(ids.toSorted())
    }
  },
)

test('searches are all different, equal for equal seeds, and name a type', () => {
  const tables = createTables(datasetOf('uniform', 40_000))
  const first = searches(tables, { kind: 'broad', count: 300, seed: 8 })
  const again = searches(tables, { kind: 'broad', count: 300, seed: 8 })

  expect(first).toHaveLength(300)
  expect(new Set(first.map(({ fields }) => JSON.stringify(fields))).size).toBe(300)
  expect(again).toEqual(first)
  expect(first.every(({ fields }) => fields.propertyType !== '')).toBe(true)
})

test('in a segment of 25,000 properties a broad search reaches its limit and a selective one finds about 30', () => {
  const spec = { shape: 'uniform', packages: 400_000, days: 4, from: 20_500, seed: 1, segments: 1 } as const
  const tables = createTables(createDataset({ ...spec, nights: 'random' }))
  const broad = searches(tables, { kind: 'broad', count: 20, seed: 1 })
  const selective = searches(tables, { kind: 'selective', count: 20, seed: 1 })

  expect(broad.map(({ hits }) => hits)).toEqual(broad.map(() => 300))
  for (const { hits } of selective) expect(hits >= 30 && hits <= 45, `${hits} hits`).toBe(true)
})

test('too little data gives fewer searches instead of an endless hunt for more', () => {
  const tables = createTables(datasetOf('uniform', 1))

  expect(searches(tables, { kind: 'broad', count: 5, seed: 1 }).length).toBeLessThanOrEqual(5)
})

test('updates name packages that exist', () => {
  const dataset = datasetOf('skewed', 4000)
  const dir = join(root, 'updates')
  writeDataset(dataset, { dir })
  const known = new Set(linesOf(dir, 'packages.csv').map((cells) => cells.slice(0, 3).join(',')))

  for (const { fields } of updates(createTables(dataset), { count: 200, seed: 2 })) {
    expect(known.has(`${fields.propertyId},${fields.roomType},${fields.date}`)).toBe(true)
  }
})
