/** Why a property matches a search, filter by filter, and what would have to change. */

import { LIMITS } from '@vacancy/shared'
import type { NightPackage, RequestFields } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import type { PropertyAttributes } from './ask.ts'
import { examine, type SearchCommand } from './match.ts'

const PROPERTY: PropertyAttributes = {
  ...{ id: 'p1', segment: 'city', area: 'old town', type: 'hotel', category: 'business', stars: 4 },
  ...{ latitude: 52, longitude: 13, amenities: ['pool', 'spa'], room_types: ['double', 'suite'] },
}

const night = (date: string, change: Partial<NightPackage> = {}): NightPackage => ({
  ...{ date, availability: 3, finalPrice: 100, rateFeatures: ['breakfast'] },
  ...change,
})

type Given = { readonly property?: Partial<PropertyAttributes>; readonly nights?: readonly (NightPackage | string)[] }

function examined(command: SearchCommand, fields: RequestFields, { property = {}, nights = [] }: Given = {}) {
  const packages = nights.map((each) =>
    typeof each === 'string' ? ([each, undefined] as const) : ([each.date, each] as const),
  )
  const found = examine(command, fields, { ...PROPERTY, ...property }, new Map(packages))
  return {
    checks: found.checks.map(
      ({ field, date, ok, message }) => `${ok ? '+' : '-'} ${field}${date ? ` ${date}` : ''}: ${message}`,
    ),
    matches: found.matches,
    wouldMatchIf: found.wouldMatchIf,
  }
}
const searched = (fields: RequestFields, property: Partial<PropertyAttributes> = {}) =>
  examined('SEARCHPROP', fields, { property })

test('without filters every property matches', () => {
  expect(searched({})).toEqual({ checks: [], matches: true, wouldMatchIf: [] })
})

test.each<[RequestFields, string, string]>([
  [{ segment: 'city' }, '+ segment: segment city', ''],
  [{ segment: 'coast' }, '- segment: segment city, required coast', 'segment were city'],
  [{ area: 'old town' }, '+ area: area old town', ''],
  [{ area: 'port' }, '- area: area old town, required port', 'area were old town'],
  [{ propertyType: 'hotel' }, '+ propertyType: type hotel', ''],
  [{ propertyType: 'hostel' }, '- propertyType: type hotel, required hostel', 'type were hotel'],
  [{ category: 'business' }, '+ category: category business', ''],
  [{ category: 'family' }, '- category: category business, required family', 'category were business'],
  [{ stars: 4 }, '+ stars: stars 4', ''],
  [{ stars: 5 }, '- stars: stars 4, required 5', 'stars were 4'],
  [{ minStars: 3 }, '+ minStars: stars 4, at least 3 required', ''],
  [{ minStars: 4 }, '+ minStars: stars 4, at least 4 required', ''],
  [{ minStars: 5 }, '- minStars: stars 4, at least 5 required', 'the minimum stars were 4'],
  [{ minStars: 1 }, '+ minStars: stars 4, at least 1 required', ''],
  [{ amenities: ['spa'] }, '+ amenities: has spa', ''],
  [{ amenities: ['gym'] }, '- amenities: has no gym', 'gym were not required'],
])('the filter %j', (fields, check, want) => {
  expect(searched(fields)).toEqual({ checks: [check], matches: want === '', wouldMatchIf: want === '' ? [] : [want] })
})

test.each<RequestFields>([{ minStars: 0 }, { amenities: [] }, { latitude: 1 }, { longitude: 1 }, { radiusMetres: 1 }])(
  '%j is no filter',
  (fields) => {
    expect(searched(fields, { latitude: 80 })).toEqual({ checks: [], matches: true, wouldMatchIf: [] })
  },
)

test('the filters are checked in the order of the engine', () => {
  const fields: RequestFields = {
    ...{ latitude: 52, longitude: 13, amenities: ['pool', 'gym'], category: 'x', minStars: 5, stars: 4 },
    ...{ propertyType: 'hotel', area: 'old town', segment: 'x' },
  }

  expect(searched(fields)).toEqual({
    checks: [
      ...['- segment: segment city, required x', '+ area: area old town', '+ propertyType: type hotel'],
      ...['+ stars: stars 4', '- minStars: stars 4, at least 5 required', '- category: category business, required x'],
      ...['+ amenities: has pool', '- amenities: has no gym', '+ radiusMetres: 0 m away, at most 5000 m allowed'],
    ],
    matches: false,
    wouldMatchIf: [
      ...['segment were city', 'the minimum stars were 4', 'category were business'],
      'gym were not required',
    ],
  })
})

test('a property is looked up by its id in a search for availability only', () => {
  expect(searched({ propertyId: 'p2' }).checks).toEqual([])
  expect(examined('SEARCHAVAIL', { propertyId: 'p2', roomType: 'double' })).toMatchObject({
    checks: ['- propertyId: property p1, required p2', '+ roomType: has double'],
    wouldMatchIf: ['property were p1'],
  })
})

// Position

const METRES_PER_DEGREE = (LIMITS.earthRadiusMetres * Math.PI) / 180

test.each<[string, RequestFields, Partial<PropertyAttributes>, number]>([
  ['north', { latitude: 51, longitude: 13 }, {}, METRES_PER_DEGREE],
  ['east, at the equator', { latitude: 0, longitude: 14 }, { latitude: 0 }, METRES_PER_DEGREE],
  ['east, at 60 degrees', { latitude: 60, longitude: 13.01 }, { latitude: 60 }, METRES_PER_DEGREE / 200],
  ['across the date line', { latitude: 0, longitude: -179.5 }, { latitude: 0, longitude: 179.5 }, METRES_PER_DEGREE],
  ['over the pole', { latitude: 89.5, longitude: 0 }, { latitude: 89.5, longitude: 180 }, METRES_PER_DEGREE],
  ['on the other side', { latitude: 0, longitude: 0 }, { latitude: 0, longitude: 180 }, METRES_PER_DEGREE * 180],
])('the distance of a property %s is that on the globe', (_, position, property, expected) => {
  const far = Number(/(\d+) m away/.exec(searched({ ...position, radiusMetres: 1 }, property).checks[0] ?? '')?.[1])

  // The angle between points that are close to each other differs a little from the arc along the parallel.
  expect(Math.abs(far - expected)).toBeLessThanOrEqual(1 + expected * 1e-6)
})

test('a property is within the radius that is stated, and not within 1 m less', () => {
  const position = { latitude: 51.98, longitude: 13.01 }
  const { checks, wouldMatchIf } = searched({ ...position, radiusMetres: 10 })
  const far = Number(/^- radiusMetres: (\d+) m away, at most 10 m allowed$/.exec(checks[0] ?? '')?.[1])

  expect(wouldMatchIf).toEqual([`the radius were ${far} m`])
  expect(searched({ ...position, radiusMetres: far }).matches).toBe(true)
  expect(searched({ ...position, radiusMetres: far - 1 }).matches).toBe(false)
})

test('without a radius it is 5 km', () => {
  const at = (metres: number) => searched({ latitude: 52 + metres / METRES_PER_DEGREE, longitude: 13 }).matches

  expect([at(4_999), at(5_001)]).toEqual([true, false])
  expect(searched({ latitude: 52, longitude: 13, radiusMetres: 0 }).checks).toEqual([
    '+ radiusMetres: 0 m away, at most 0 m allowed',
  ])
})

// Nights

const stay = (fields: RequestFields, ...nights: readonly (NightPackage | string)[]) => {
  const dates = nights.map((each) => (typeof each === 'string' ? each : each.date))
  const { checks, ...rest } = examined('SEARCHAVAIL', { roomType: 'double', dates, ...fields }, { nights })
  return { ...rest, checks: checks.slice(1) }
}

test.each([
  [['double', 'suite'], 'double, suite'],
  [[], 'no room type'],
])('a room type that the property with %j lacks ends the checks', (room_types, others) => {
  expect(examined('SEARCHAVAIL', { roomType: 'single', dates: ['d1'] }, { property: { room_types } })).toEqual({
    checks: [`- roomType: has no single, but ${others}`],
    matches: false,
    wouldMatchIf: [`the room type were ${others}`],
  })
})

test('a search for properties has no nights', () => {
  expect(searched({ roomType: 'single', dates: ['d1'] })).toEqual({ checks: [], matches: true, wouldMatchIf: [] })
})

test.each<[string, RequestFields, Partial<NightPackage>, string[], string[]]>([
  [
    'one room, unless more are required',
    {},
    { availability: 1 },
    ['+ availability d1: 1 left, at least 1 required'],
    [],
  ],
  [
    'no room',
    {},
    { availability: 0 },
    ['- availability d1: 0 left, at least 1 required'],
    ['at least 0 rooms were required'],
  ],
  ['enough rooms', { availability: 3 }, {}, ['+ availability d1: 3 left, at least 3 required'], []],
  [
    'too few rooms',
    { availability: 4 },
    {},
    ['- availability d1: 3 left, at least 4 required'],
    ['at least 3 rooms were required'],
  ],
  [
    'the maximum price',
    { finalPrice: 100 },
    {},
    ['+ availability d1: 3 left, at least 1 required', '+ finalPrice d1: price 100, at most 100 allowed'],
    [],
  ],
  [
    'a higher price',
    { finalPrice: 99 },
    {},
    ['+ availability d1: 3 left, at least 1 required', '- finalPrice d1: price 100, at most 99 allowed'],
    ['the maximum price were 100'],
  ],
  [
    'the highest price',
    { finalPrice: LIMITS.priceMax },
    { finalPrice: LIMITS.priceMax },
    ['+ availability d1: 3 left, at least 1 required'],
    [],
  ],
  [
    'a price that no search finds',
    { finalPrice: LIMITS.priceMax + 1 },
    { finalPrice: LIMITS.priceMax + 1 },
    ['+ availability d1: 3 left, at least 1 required', '- finalPrice d1: price 4294967295, at most 4294967294 allowed'],
    ['the maximum price were 4294967295'],
  ],
  [
    'the minimum price',
    { minPrice: 100 },
    {},
    ['+ availability d1: 3 left, at least 1 required', '+ minPrice d1: price 100, at least 100 required'],
    [],
  ],
  [
    'a lower price',
    { minPrice: 101 },
    {},
    ['+ availability d1: 3 left, at least 1 required', '- minPrice d1: price 100, at least 101 required'],
    ['the minimum price were 100'],
  ],
  ['no minimum price', { minPrice: 0 }, {}, ['+ availability d1: 3 left, at least 1 required'], []],
  [
    'the lowest minimum price',
    { minPrice: 1 },
    { finalPrice: 0 },
    ['+ availability d1: 3 left, at least 1 required', '- minPrice d1: price 0, at least 1 required'],
    ['the minimum price were 0'],
  ],
  [
    'a rate feature and a missing one',
    { rateFeatures: ['breakfast', 'late'] },
    {},
    ['+ availability d1: 3 left, at least 1 required', '+ rateFeatures d1: breakfast', '- rateFeatures d1: no late'],
    ['late were not required'],
  ],
])('a night with %s', (_, fields, change, checks, wouldMatchIf) => {
  expect(stay(fields, night('d1', change))).toEqual({ checks, matches: wouldMatchIf.length === 0, wouldMatchIf })
})

test.each<[(NightPackage | string)[], string[]]>([
  [['d1'], ['it had packages on these dates']],
  [['d1', 'd2'], ['it had packages on these dates']],
  [['d1', night('d2')], ['d1 were left out']],
  [['d3', night('d2'), 'd1'], ['2 dates were left out (d1, d3)']],
])('nights without a package can only be left out: case %#', (nights, wouldMatchIf) => {
  const { checks, ...rest } = stay({}, ...nights)

  expect(rest).toEqual({ matches: false, wouldMatchIf })
  expect(checks.filter((check) => check.startsWith('-'))).toEqual(
    nights.flatMap((each) => (typeof each === 'string' ? [`- dates ${each}: no package`] : [])).sort(),
  )
})

test('the changes suffice for all nights together, and nights are checked in order of their dates', () => {
  const fields = { availability: 5, finalPrice: 90, minPrice: 50, rateFeatures: ['late', 'breakfast'] }
  const nights = [
    night('d3', { availability: 5, finalPrice: 40, rateFeatures: ['late', 'breakfast'] }),
    night('d2', { availability: 2, finalPrice: 120, rateFeatures: [] }),
    night('d1', { availability: 4, finalPrice: 30 }),
    ...['d4'],
  ]

  const { checks, matches, wouldMatchIf } = stay(fields, ...nights)

  expect(matches).toBe(false)
  expect([...new Set(checks.map((check) => check.split(/[ :]/)[2]))]).toEqual(['d1', 'd2', 'd3', 'd4'])
  expect(wouldMatchIf).toEqual([
    ...['at least 2 rooms were required', 'the maximum price were 120', 'the minimum price were 30'],
    ...['late were not required', 'breakfast were not required', 'd4 were left out'],
  ])
  // With these changes it matches.
  expect(stay({ availability: 2, finalPrice: 120, minPrice: 30 }, ...nights.slice(0, 3)).matches).toBe(true)
})

test('changes of the property come before those of nights', () => {
  const fields = { segment: 'x', roomType: 'double', dates: ['d1'] }

  expect(examined('SEARCHAVAIL', fields, { nights: ['d1', night('d2')] }).wouldMatchIf).toEqual([
    ...['segment were city', 'd1 were left out'],
  ])
})
