import { parseDay } from '@vacancy/shared'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  CODECS,
  packageOf,
  packagesCsv,
  packagesOf,
  propertiesCsv,
  propertiesOf,
  ROOM_TYPES,
  segmentNames,
} from './sample.ts'

const MONDAY = parseDay('2026-11-23') as number
const seeds = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const shards = fc.integer({ min: 0, max: 7 })

test('a shard has 40 properties in 4 segments of its own and 1,600 packages in ten days', () => {
  const properties = propertiesOf(1, 1)

  expect(properties).toHaveLength(40)
  expect([...new Set(properties.map(({ segment }) => segment))]).toEqual(segmentNames(2).slice(4))
  expect(packagesOf(1, 1, { first: MONDAY, last: MONDAY + 9 })).toHaveLength(1_600)
  expect(properties[0]).toMatchObject({ propertyId: 's2_seg1_p1', segment: 'segment_5', area: 'area_2_1' })
})

test('every property and package is within its bounds, for any seed', () => {
  fc.assert(
    fc.property(seeds, shards, fc.nat({ max: 366 }), (seed, shard, later) => {
      for (const { stars, latitude, longitude, amenities, segment } of propertiesOf(seed, shard)) {
        const k = ((Number(segment.slice('segment_'.length)) - 1) % 4) + 1
        expect(stars).toBeGreaterThanOrEqual(2)
        expect(stars).toBeLessThanOrEqual(5)
        expect(Math.abs(latitude - (40 + 0.5 * (shard + 1) + 0.1 * k))).toBeLessThanOrEqual(0.010001)
        expect(Math.abs(longitude - (-74 + 0.5 * (shard + 1) + 0.1 * k))).toBeLessThanOrEqual(0.010001)
        expect(amenities.length).toBeGreaterThanOrEqual(3)
        expect(amenities.length).toBeLessThanOrEqual(5)
      }
      const [{ propertyId } = { propertyId: '' }] = propertiesOf(seed, shard)
      for (const room of ROOM_TYPES) {
        const night = packageOf(seed, propertyId, room, MONDAY + later)
        expect(night.availability).toBeGreaterThanOrEqual(1)
        expect(night.availability).toBeLessThanOrEqual(20)
        expect(night.finalPrice).toBeGreaterThanOrEqual(50)
        expect(night.finalPrice).toBeLessThanOrEqual(384)
        expect(Number.isInteger(night.finalPrice)).toBe(true)
        expect(night.rateFeatures.length).toBeGreaterThanOrEqual(1)
        expect(night.rateFeatures.length).toBeLessThanOrEqual(3)
        expect(CODECS.filter((name) => night.rateFeatures.includes(name))).toEqual(night.rateFeatures)
      }
    }),
    { numRuns: 30 },
  )
})

test('equal seeds make equal data, and a night does not depend on the first day', () => {
  const whole = packagesOf(7, 0, { first: MONDAY, last: MONDAY + 3 })
  const later = packagesOf(7, 0, { first: MONDAY + 2, last: MONDAY + 3 })

  expect(later).toEqual(whole.filter(({ date }) => date >= '2026-11-25'))
  expect(propertiesOf(7, 0)).toEqual(propertiesOf(7, 0))
  expect(propertiesOf(8, 0)).not.toEqual(propertiesOf(7, 0))
})

test('a weekend night costs a fifth more', () => {
  const priceOn = (date: string) => packageOf(1, 'p', 'room1', parseDay(date) as number).finalPrice
  // Both days are equal modulo 3, so only the weekend differs.
  const [friday, saturday] = ['2026-12-04', '2026-11-28']

  expect((parseDay(friday) as number) % 3).toBe((parseDay(saturday) as number) % 3)
  expect(priceOn(saturday)).toBe(Math.floor(priceOn(friday) * 1.2))
})

test('the CSV files have the columns of the import', () => {
  const [header, first] = propertiesCsv(propertiesOf(1, 0)).split('\n')
  const [packageHeader, night] = packagesCsv(packagesOf(1, 0, { first: MONDAY, last: MONDAY })).split('\n')

  expect(header).toBe('PropertyID,Segment,Area,PropertyType,Category,Stars,Latitude,Longitude,Amenities')
  expect(first).toMatch(/^s1_seg1_p1,segment_1,area_1_1,\w+,\w+,[2-5],40\.\d{6},-73\.\d{6},\w+(\|\w+){2,4}$/)
  expect(packageHeader).toBe('PropertyID,RoomType,Date,Availability,FinalPrice,RateFeature')
  expect(night).toMatch(/^s1_seg1_p1,room1,2026-11-23,\d+,\d+,\w+(\|\w+){0,2}$/)
})
