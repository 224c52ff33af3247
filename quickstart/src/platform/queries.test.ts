import { parseDay } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { fieldsOf } from './ask.ts'
import { type Answer, queriesReadme, sampleQueries } from './queries.ts'
import { packageOf, propertiesOf, segmentNames } from './sample.ts'

const DAY = parseDay('2026-11-23') as number
const DATE = '2026-11-23'
const queries = sampleQueries({ seed: 1, shards: 2, day: DAY })
const check = (name: string, answer: Answer) => queries.find((each) => each.name.startsWith(name))?.check(answer)
const ok = (body: object): Answer => ({ status: 200, body: { status: 'success', ...body } })

test('there are seven queries; a single shard has none for another shard', () => {
  expect(queries.map(({ name }) => name)).toEqual([
    ...['01-setprop.json', '02-setroompkg.json', '03-search.json', '04-segments.json'],
    ...['05-book.json', '06-other-shard.json', '07-unknown.json'],
  ])
  expect(sampleQueries({ seed: 1, shards: 1, day: DAY })).toHaveLength(6)
})

test('the search must contain the package that was written', () => {
  const days = [{ date: DATE, availability: 15, final_price: 150, rate_feature: ['free_cancellation', 'free_wifi'] }]
  const other = { property_id: 's1_seg1_p2', days: [] }

  expect(check('03', ok({ properties: [other, { days, property_id: 's1_seg1_p1' }] }))).toBe('')
  expect(check('03', ok({ properties: [other] }))).toBe('s1_seg1_p1 is not in the answer')
  const dearer = [{ ...days[0], final_price: 151 }]
  expect(check('03', ok({ properties: [{ property_id: 's1_seg1_p1', days: dearer }] }))).toContain('151')
  expect(check('03', { status: 503, body: { status: 'error' } })).toBe('the status is 503: {"status":"error"}')
})

test('the segments are those of all shards, in any order', () => {
  const segments = segmentNames(2).map((segment) => ({ segment, prop_count: 0 }))

  expect(check('04', ok({ segments: segments.toReversed() }))).toBe('')
  expect(check('04', ok({ segments: segments.slice(1) }))).not.toBe('')
})

test('a booking leaves 14 rooms', () => {
  expect(check('05', ok({ availability: 14 }))).toBe('')
  expect(check('05', ok({ availability: 13 }))).toBe('availability is 13, not 14')
})

test('the other shard answers with its ten properties', () => {
  const properties = propertiesOf(1, 1)
    .slice(0, 10)
    .map(({ propertyId }) => {
      const { availability, finalPrice, rateFeatures } = packageOf(1, propertyId, 'room1', DAY)
      const days = [{ date: DATE, availability, final_price: finalPrice, rate_feature: rateFeatures }]
      return { property_id: propertyId, days }
    })

  expect(check('06', ok({ properties }))).toBe('')
  expect(check('06', ok({ properties: properties.slice(1) }))).toBe('9 properties, not 10')
})

test('an unknown segment is 404', () => {
  expect(check('07', { status: 404, body: {} })).toBe('')
  expect(check('07', ok({ properties: [] }))).toBe('the status is 200, not 404')
})

test('the read-me names each file with its answer', () => {
  const text = queriesReadme(queries, 'http://localhost:8777')

  for (const { name, states } of queries) expect(text).toContain(`| ${name} | ${states} |`)
})

test('names of JSON become fields of the wire protocol; a single date is a list of one', () => {
  expect(fieldsOf('SEARCHAVAIL', { room_type: 'room1', date: DATE, rate_features: ['free_wifi'] })).toEqual({
    roomType: 'room1',
    dates: [DATE],
    rateFeatures: ['free_wifi'],
  })
  expect(fieldsOf('DECROOMAVL', { property_id: 'p', date: DATE })).toEqual({ propertyId: 'p', date: DATE })
})
