import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatDay, parseDay } from '@vacancy/shared'
import { parseCommand } from '@vacancy/shared/node'
import { afterAll, describe, expect, test } from 'vitest'
import { type ORDERS, PACKAGES_HEADER, PROPERTIES_HEADER } from './csv.ts'
import { createDataset, type Dataset, type DatasetSpec, namesIn, nightsOf, SHAPES } from './dataset.ts'
import { availabilityOf, featuresOf, priceOf } from './inventory.ts'
import { createRandom, cumulative, nextU32, permute, pickMask, pickWeighted, upperBound } from './random.ts'
import { holdsSample, sampleCommand, specFrom, writeSample } from './sample.ts'

const root = mkdtempSync(join(tmpdir(), 'vacancy-sample-'))
afterAll(() => rmSync(root, { recursive: true }))

const FROM = 20_500
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-57][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/
const SHORT_ID = /^[!-~][ -~]{0,12}[!-~]$/

function specOf(changes: Partial<DatasetSpec>): DatasetSpec {
  return { shape: 'uniform', packages: 5003, days: 20, from: FROM, seed: 1, segments: 0, nights: 'random', ...changes }
}

function write(name: string, dataset: Dataset, order: (typeof ORDERS)[number] = 'grouped') {
  const dir = join(root, name)
  const sample = writeSample(dataset, { dir, order })
  const read = (file: string) => readFileSync(join(dir, file), 'utf8')
  return { dir, sample, properties: read('properties.csv'), packages: read('packages.csv'), codecs: read('codecs.yml') }
}

/** The slow, obvious reader: no cell of a sample needs quotes. */
function cellsOf(text: string, header: string): string[][] {
  expect(text.startsWith(header)).toBe(true)
  expect(text.endsWith('\n')).toBe(true)
  expect(text).not.toMatch(/["\r]/)
  return text
    .slice(header.length, -1)
    .split('\n')
    .map((line) => line.split(','))
}

describe.each(SHAPES)('shape %s', (shape) => {
  const dataset = createDataset(specOf({ shape }))
  const files = write(`valid-${shape}`, dataset)
  const properties = cellsOf(files.properties, PROPERTIES_HEADER)
  const packages = cellsOf(files.packages, PACKAGES_HEADER)
  const rateFeatures = [...files.codecs.matchAll(/^ {2}- (\w+)$/gm)].map(([, name]) => name)

  test('has exactly the requested packages, each once', () => {
    const keys = packages.map(([id, roomType, date]) => `${id},${roomType},${date}`)

    expect(packages).toHaveLength(5003)
    expect(new Set(keys).size).toBe(5003)
  })

  test('has properties a node accepts, each once', () => {
    for (const cells of properties) {
      const [id = '', segment, area, type, category, stars, latitude, longitude, amenities] = cells
      expect(cells).toHaveLength(9)
      expect(id.length > 14 ? UUID.test(id) : SHORT_ID.test(id), id).toBe(true)
      expect([segment, area, type, category].every((text) => text && text.length <= 64)).toBe(true)
      expect(['1', '2', '3', '4', '5']).toContain(stars)
      expect(Math.abs(Number(latitude))).toBeLessThanOrEqual(90)
      expect(Math.abs(Number(longitude))).toBeLessThanOrEqual(180)
      expect(latitude).toMatch(/^-?\d+\.\d{6}$/)
      expect(new Set(amenities?.split('|')).size).toBe(amenities?.split('|').length)
    }
    expect(new Set(properties.map(([id]) => id)).size).toBe(properties.length)
  })

  test('has packages a node accepts, of properties that exist', () => {
    const known = new Set(properties.map(([id]) => id))
    for (const cells of packages) {
      const [id, roomType, date = '', availability, price, features = ''] = cells
      const day = parseDay(date) ?? -1
      expect(cells).toHaveLength(6)
      expect(known.has(id)).toBe(true)
      expect(roomType).toMatch(/^\w{1,64}$/)
      expect(day).toBeGreaterThanOrEqual(FROM)
      expect(day).toBeLessThan(FROM + 20)
      expect(Number(availability)).toBeLessThanOrEqual(255)
      expect(price).toMatch(/^\d+$/)
      expect(features.split('|').every((name) => name === '' || rateFeatures.includes(name))).toBe(true)
    }
  })

  test('files agree with the data set on each package', () => {
    const written = new Map(packages.map((cells) => [cells.slice(0, 3).join(','), cells.slice(3).join(',')]))
    const { names, rows, properties: columns } = dataset
    for (let row = 0; row < rows.property.length; row++) {
      for (let night = 0; night < nightsOf(dataset, row); night++) {
        const id = columns.ids[rows.property[row] ?? -1]
        const key = `${id},${names.roomTypes[rows.roomType[row] ?? -1]},${formatDay(FROM + night)}`
        const packed = dataset.packageOf(dataset, row, FROM + night)
        const features = namesIn(featuresOf(packed), names.rateFeatures).join('|')
        expect(written.get(key)).toBe(`${availabilityOf(packed)},${priceOf(packed)},${features}`)
      }
    }
  })

  test('equal arguments give equal bytes, another seed gives others', () => {
    const digest = (name: string, seed: number) => {
      const { dir } = write(`${name}-${shape}`, createDataset(specOf({ shape, seed })))
      const hash = createHash('sha256')
      for (const file of readdirSync(dir).toSorted()) hash.update(file).update(readFileSync(join(dir, file)))
      return hash.digest('hex')
    }

    expect(digest('first', 1)).toBe(digest('second', 1))
    expect(digest('first', 1)).not.toBe(digest('third', 2))
  })

  test('a later first day keeps the packages of the days that both have', () => {
    const later = createDataset(specOf({ shape, from: FROM + 3 }))

    expect(later.properties.ids).toEqual(dataset.properties.ids)
    for (let row = 0; row < 50; row++) {
      expect(later.packageOf(later, row, FROM + 9)).toBe(dataset.packageOf(dataset, row, FROM + 9))
    }
  })

  test('constant nights have one price and availability a room', () => {
    const constant = createDataset(specOf({ shape, nights: 'constant' }))
    const nights = new Set([0, 1, 7].map((night) => constant.packageOf(constant, 3, FROM + night)))

    expect(nights.size).toBe(1)
  })
})

test('shuffled files hold the lines of the grouped ones in another order', () => {
  const dataset = createDataset(specOf({ shape: 'region' }))
  const grouped = write('grouped', dataset)
  const shuffled = write('shuffled', dataset, 'shuffled')

  expect(shuffled.packages).not.toBe(grouped.packages)
  expect(shuffled.packages.split('\n').toSorted()).toEqual(grouped.packages.split('\n').toSorted())
  expect(shuffled.properties).toBe(grouped.properties)
})

test('the sizes in sample.json are those of the files', () => {
  const { sample, properties, packages } = write('sizes', createDataset(specOf({})))

  expect(sample.propertiesBytes).toBe(Buffer.byteLength(properties))
  expect(sample.packagesBytes).toBe(Buffer.byteLength(packages))
})

test('a region is dearer at weekends and has weekends that are sold out', () => {
  const dataset = createDataset(specOf({ shape: 'region', packages: 60_000, days: 60 }))
  const prices = { weekend: 0, other: 0 }
  let soldOut = 0
  for (let row = 0; row < dataset.rows.property.length - 1; row++) {
    for (let day = FROM; day < FROM + 56; day++) {
      const packed = dataset.packageOf(dataset, row, day)
      const isWeekend = [5, 6].includes(new Date(day * 86_400_000).getUTCDay())
      prices[isWeekend ? 'weekend' : 'other'] += priceOf(packed) / (isWeekend ? 2 : 5)
      if (isWeekend && availabilityOf(packed) === 0) soldOut += 1
    }
  }

  expect(prices.weekend).toBeGreaterThan(1.15 * prices.other)
  expect(soldOut).toBeGreaterThan(500)
})

/** Searches that readers type, by the flags of `vacancy query search`. */
const SEARCHES = ['README.md', 'docs/integrators.md'].flatMap((page) =>
  [...readFileSync(join(import.meta.dirname, '../..', page), 'utf8').matchAll(/vacancy query search (.*)$/gm)].map(
    ([line = '', flags = '']) => ({
      line,
      given: Object.fromEntries([...flags.matchAll(/--([\w-]+) ([^-]\S*)/g)].map(([, name, value]) => [name, value])),
    }),
  ),
)

test.each(SEARCHES)('on any day of four years the sample of npm start has what is searched by $line', ({ given }) => {
  const dataset = createDataset(specOf({ shape: 'region', packages: 300_000, days: 120 }))
  const { names, rows, properties } = dataset
  const { segment = '', latitude, longitude, radius, price = Number.POSITIVE_INFINITY } = given
  const [wanted, room] = [names.segments.indexOf(segment), names.roomTypes.indexOf(given['room-type'] ?? '')]
  const isNear = (property: number) => {
    const [north, east] = [properties.latitudeMicro, properties.longitudeMicro].map(
      (each) => (each[property] ?? 0) / 1e6,
    )
    const metres = 111_200 * Math.hypot((north ?? 0) - Number(latitude), ((east ?? 0) - Number(longitude)) * 0.7)
    return latitude === undefined || metres < Number(radius)
  }
  const candidates = [...rows.roomType.keys()].filter((row) => {
    const property = rows.property[row] ?? 0
    return properties.segment[property] === wanted && rows.roomType[row] === room && isNear(property)
  })
  const nights = Array.from({ length: Number(given['nights']) }, (_, night) => Number(given['from']) + night)
  const first = parseDay('2028-01-01') ?? 0
  for (let today = first; today < first + 4 * 365 + 1; today++) {
    const found = candidates.some((row) =>
      nights.every((ahead) => {
        const packed = dataset.packageOf(dataset, row, today + ahead)
        const asked = priceOf(packed)
        return availabilityOf(packed) > 0 && asked <= Number(price) && asked >= Number(given['min-price'] ?? 0)
      }),
    )
    if (!found) expect(formatDay(today)).toBe('a day on which it finds something')
  }
})

test('a folder holds a data set only when it is whole and made of the same arguments', () => {
  const spec = specOf({})
  const { dir } = write('whole', createDataset(spec))

  expect(holdsSample(dir, { spec, order: 'grouped' })).toBe(true)
  expect(holdsSample(dir, { spec, order: 'shuffled' })).toBe(false)
  expect(holdsSample(dir, { spec: specOf({ seed: 2 }), order: 'grouped' })).toBe(false)
  rmSync(join(dir, 'sample.json'))
  expect(holdsSample(dir, { spec, order: 'grouped' })).toBe(false)
})

/** What the command line makes of these arguments. */
function specOfArguments(...args: string[]): DatasetSpec {
  const { flags } = parseCommand(sampleCommand, ['--out', 'x', '--packages', '10', ...args], {})
  return specFrom(flags as unknown as Parameters<typeof specFrom>[0], FROM)
}

test.each([
  [['--from', '2026-02-30'], '--from: 2026-02-30 is not a date such as 2026-03-01'],
  [['--shape', 'region', '--segments', '9'], '--segments: the region has 8 segments at most'],
  [['--days', '367'], '--days: 367'],
  [['--packages', '0'], '--packages: 0'],
])('arguments %j are refused with a sentence', (args, sentence) => {
  expect(() => specOfArguments(...args)).toThrow(sentence)
})

test('the first night is today unless another one is given', () => {
  expect(specOfArguments().from).toBe(FROM)
  expect(specOfArguments('--from', '2026-03-01').from).toBe(parseDay('2026-03-01'))
})

test('equal seeds draw equal numbers, other seeds draw others', () => {
  const draw = (seed: number) => {
    const random = createRandom(seed)
    return Array.from({ length: 8 }, () => nextU32(random))
  }

  expect(draw(1)).toEqual(draw(1))
  expect(draw(1)).not.toEqual(draw(2))
})

test.each([1, 2, 3, 7, 1000, 4097])('permute takes each of %i places exactly once', (size) => {
  const images = Array.from({ length: size }, (_, index) => permute(index, size, 9))

  expect(images.toSorted((a, b) => a - b)).toEqual(Array.from({ length: size }, (_, index) => index))
})

test('a weight of nothing is never drawn, the others about as often as they weigh', () => {
  const random = createRandom(5)
  const sums = cumulative([3, 0, 1])
  const drawn = [0, 0, 0]

  for (let i = 0; i < 4000; i++) {
    const place = pickWeighted(random, sums)
    drawn[place] = (drawn[place] ?? 0) + 1
  }

  expect(drawn[1]).toBe(0)
  expect(drawn[0]).toBeGreaterThan(2800)
  expect(drawn[2]).toBeGreaterThan(800)
})

test('a mask has the requested number of bits, but no more than exist', () => {
  const random = createRandom(3)
  const bits = (mask: number) => mask.toString(2).replaceAll('0', '').length

  expect(bits(pickMask(random, 8, 5))).toBe(5)
  expect(pickMask(random, 3, 9)).toBe(0b111)
})

test('upperBound finds the first greater entry', () => {
  const sorted = Uint32Array.of(0, 3, 3, 8)

  expect([0, 2, 3, 7, 8].map((value) => upperBound(sorted, value))).toEqual([1, 1, 3, 3, 4])
})
