import { parseDay } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { fieldsOf } from './ask.ts'
import { type Answer, queriesReadme, type SampleProperty, sampleQueries } from './queries.ts'

const DATE = '2026-11-23'
const DAY = parseDay(DATE) as number
const property = (propertyId: string, segment: string): SampleProperty => ({
  propertyId,
  segment,
  area: 'innsbruck',
  propertyType: 'hotel',
  category: 'standard',
  stars: 3,
  latitude: 47,
  longitude: 11,
  amenities: ['wifi'],
})
const FIRST = { name: 'shard1', properties: [property('p1', 'tyrol'), property('p2', 'savoy')] }
const OTHER = { name: 'shard2', properties: [property('p3', 'valais'), property('p4', 'valais')] }
const queries = sampleQueries({ shards: [FIRST, OTHER], propertyId: 'p1', roomType: 'double' }, DAY)
const check = (name: string, answer: Answer) => queries.find((each) => each.name.startsWith(name))?.check(answer)
const ok = (body: object): Answer => ({ status: 200, body: { status: 'success', ...body } })

test('there are seven queries; a single shard has none for another shard', () => {
  expect(queries.map(({ name }) => name)).toEqual([
    ...['01-setprop.json', '02-setroompkg.json', '03-search.json', '04-segments.json'],
    ...['05-book.json', '06-other-shard.json', '07-unknown.json'],
  ])
  expect(sampleQueries({ shards: [FIRST], propertyId: 'p1', roomType: 'double' }, DAY)).toHaveLength(6)
})

test('the search must contain the package that was written', () => {
  const days = [{ date: DATE, availability: 15, final_price: 150, rate_feature: ['free_cancellation', 'free_wifi'] }]
  const other = { property_id: 'p2', days: [] }

  expect(check('03', ok({ properties: [other, { days, property_id: 'p1' }] }))).toBe('')
  expect(check('03', ok({ properties: [other] }))).toBe('p1 is not in the answer')
  const dearer = [{ ...days[0], final_price: 151 }]
  expect(check('03', ok({ properties: [{ property_id: 'p1', days: dearer }] }))).toContain('151')
  expect(check('03', { status: 503, body: { status: 'error' } })).toBe('the status is 503: {"status":"error"}')
})

test('the segments are those of all shards, in any order', () => {
  const segments = ['valais', 'savoy', 'tyrol'].map((segment) => ({ segment, prop_count: 0 }))

  expect(check('04', ok({ segments }))).toBe('')
  expect(check('04', ok({ segments: segments.slice(1) }))).not.toBe('')
})

test('a booking leaves 14 rooms', () => {
  expect(check('05', ok({ availability: 14 }))).toBe('')
  expect(check('05', ok({ availability: 13 }))).toBe('availability is 13, not 14')
})

test('the other shard answers with all properties of its segment', () => {
  expect(check('06', ok({ properties: ['p4', 'p3'] }))).toBe('')
  expect(check('06', ok({ properties: ['p3'] }))).toBe('1 properties, not 2')
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
