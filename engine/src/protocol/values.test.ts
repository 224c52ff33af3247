import { addOneYear, createCodecList, formatDay, LIMITS, parseDay } from '@vacancy/shared'
import { type CommandName, encodeRequest, scanRequest } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { checkSearch } from '../search/plan.ts'
import { createSearch, type Search } from '../search/query.ts'
import { createValues, readRequestKey, setToday, type Values } from './values.ts'

const FRAME_HEADER = 9
const TODAY = parseDay('2026-11-20') as number
const LAST = addOneYear(TODAY)
const CODECS = createCodecList(['free_cancellation', 'breakfast', 'wifi'])
const STAY = { segment: 's', roomType: 'double', dates: ['2026-11-20'] }

type Fields = { readonly [name: string]: unknown }

function read(command: CommandName, fields: Fields): Values {
  const values = createValues(CODECS)
  setToday(values, TODAY)
  const encoded = encodeRequest({ command, correlationId: 1, fields: fields as never }).subarray(FRAME_HEADER)
  // The encoder refuses empty entries: `^` stands for a comma.
  const payload = encoded.map((byte) => (byte === 0x5e ? 0x2c : byte))
  expect(scanRequest(values.scan, payload, 0, payload.length)).toBe('')
  return values
}

function check(fields: Fields, forStay = true): { readonly search: Search; readonly values: Values } {
  const values = read(forStay ? 'SEARCHAVAIL' : 'SEARCHPROP', fields)
  const search = createSearch()
  checkSearch(search, values, { datesMax: 14, calendarDays: 92, queryLimit: 1000 }, forStay)
  return { search, values }
}

const faultOf = (fields: Fields, forStay = true) => check(fields, forStay).values.fault
const stay = (fields: Fields) => check({ ...STAY, ...fields }).search
const dates = (count: number) => Array.from({ length: count }, (_, i) => formatDay(TODAY + i))

test('a search without filters has the documented defaults', () => {
  expect(stay({})).toMatchObject({
    ...{ nights: 1, limit: 1000, minAvailability: 1, features: 0, minPrice: 0, maxPrice: 4_294_967_294 },
    ...{ stars: 0, minStars: 0, amenities: 0, hasProperty: false, hasPosition: false, radiusMetres: 5000 },
    explain: false,
  })
})

test.each<[Fields, string]>([
  [{ longitude: 180, latitude: 90 }, ''],
  [{ longitude: -180, latitude: -90 }, ''],
  [{ longitude: 180.001, latitude: 0 }, 'VALIDATION_ERROR: longitude must be -180 to 180 degrees'],
  [{ longitude: -180.001, latitude: 0 }, 'VALIDATION_ERROR: longitude must be -180 to 180 degrees'],
  [{ longitude: 0, latitude: 90.001 }, 'VALIDATION_ERROR: latitude must be -90 to 90 degrees'],
  [{ longitude: 0, latitude: -90.001 }, 'VALIDATION_ERROR: latitude must be -90 to 90 degrees'],
  [{ longitude: 1 }, 'VALIDATION_ERROR: longitude and latitude come together'],
  [{ latitude: 1 }, 'VALIDATION_ERROR: longitude and latitude come together'],
  [{ longitude: 181 }, 'VALIDATION_ERROR: longitude must be -180 to 180 degrees'],
  [{ radiusMetres: 100 }, 'VALIDATION_ERROR: radiusMetres needs a position'],
  [{ longitude: 1, latitude: 1, radiusMetres: 1 }, ''],
  [
    { longitude: 1, latitude: 1, radiusMetres: 0 },
    `VALIDATION_ERROR: radiusMetres must be 1 to ${LIMITS.radiusMetresMax}`,
  ],
  [{ longitude: 1, latitude: 1, radiusMetres: LIMITS.radiusMetresMax }, ''],
  [
    { longitude: 1, latitude: 1, radiusMetres: LIMITS.radiusMetresMax + 1 },
    `VALIDATION_ERROR: radiusMetres must be 1 to ${LIMITS.radiusMetresMax}`,
  ],
  [{ stars: 0 }, 'VALIDATION_ERROR: stars must be 1 to 5, got 0'],
  [{ stars: 1 }, ''],
  [{ stars: 5 }, ''],
  [{ stars: 6 }, 'VALIDATION_ERROR: stars must be 1 to 5, got 6'],
  [{ minStars: 6 }, 'VALIDATION_ERROR: minStars must be 1 to 5, got 6'],
  [{ limit: 0n }, 'VALIDATION_ERROR: limit must be 1 or more'],
  [{ segment: 'default' }, ''],
])('both searches check %o', (fields, fault) => {
  expect(faultOf({ ...STAY, ...fields })).toBe(fault)
  expect(faultOf({ segment: 's', ...fields }, false)).toBe(fault)
})

test.each<[string[], string]>([
  [[formatDay(TODAY - 1)], 'VALIDATION_ERROR: date 2026-11-19 is in the past, today is 2026-11-20'],
  [[formatDay(LAST)], ''],
  [[formatDay(LAST + 1)], 'VALIDATION_ERROR: date 2027-11-21 is after the last one, 2027-11-20'],
  [['2026-11-31'], 'VALIDATION_ERROR: 2026-11-31 is not a date of the form YYYY-MM-DD'],
  [['2026-11-2'], 'VALIDATION_ERROR: 2026-11-2 is not a date of the form YYYY-MM-DD'],
  [dates(14), ''],
  [[...dates(14), ...dates(14)], ''],
  [dates(15), 'VALIDATION_ERROR: a query may name 14 dates at most'],
  [[' ^ ^'], 'VALIDATION_ERROR: dates must name at least one date'],
])('dates %j', (given, fault) => {
  expect(faultOf({ ...STAY, dates: given })).toBe(fault)
})

test('dates are sorted, and repeats count once', () => {
  const given = ['2026-11-23', ' 2026-11-21 ', '2026-11-25', '2026-11-21^', '2026-11-20', '2026-11-23']
  const { search, values } = check({ ...STAY, dates: given })
  expect(search.nights).toBe(4)
  expect([...values.days.subarray(0, 4)].map(formatDay)).toEqual([
    '2026-11-20',
    '2026-11-21',
    '2026-11-23',
    '2026-11-25',
  ])
})

test.each<[bigint, number]>([
  [1n, 1],
  [999n, 999],
  [1000n, 1000],
  [1001n, 1000],
  [2n ** 32n, 1000],
  [2n ** 53n, 1000],
  [2n ** 64n - 1n, 1000],
])('a limit of %d finds at most %d', (limit, most) => {
  expect(stay({ limit }).limit).toBe(most)
})

test('the fields of a reply bound its rows, with one field less for explain', () => {
  const limits = { datesMax: 14, calendarDays: 92, queryLimit: 1_000_000 }
  const limitOf = (forStay: boolean, explain?: number) => {
    const fields = { ...(forStay ? STAY : { segment: 's' }), ...(explain === undefined ? {} : { explain }) }
    const search = createSearch()
    checkSearch(search, read(forStay ? 'SEARCHAVAIL' : 'SEARCHPROP', fields), limits, forStay)
    return search.limit
  }
  expect([limitOf(true), limitOf(true, 0), limitOf(true, 1)]).toEqual([32_767, 32_767, 32_639])
  expect([limitOf(false), limitOf(false, 0), limitOf(false, 1)]).toEqual([65_535, 65_535, 65_279])
})

test('prices, rooms and rate features are read as given', () => {
  const search = stay({
    finalPrice: 4_294_967_295,
    minPrice: 250,
    availability: 7,
    rateFeatures: ['wifi', 'breakfast'],
  })
  expect(search).toMatchObject({ maxPrice: 4_294_967_294, minPrice: 250, minAvailability: 7, features: 0b110 })
  expect(stay({ finalPrice: 99 }).maxPrice).toBe(99)
  expect(stay({ rateFeatures: ['free_cancellation'] }).features).toBe(1)
  expect(stay({ availability: 0 }).minAvailability).toBe(0)
})

test('a rate feature outside the codec list is refused', () => {
  const fault = (name: string) => faultOf({ ...STAY, rateFeatures: [name] })
  for (const name of ['wif', 'wifi2', 'Wifi', 'xifi'])
    expect(fault(name)).toBe(`VALIDATION_ERROR: rate feature ${name} is not in the codec list`)
})

test('amenities are trimmed, empty and repeated ones dropped, and at most 64 are allowed', () => {
  const amenities = (count: number) => Array.from({ length: count }, (_, i) => `amenity${i}`)
  const { search, values } = check({ ...STAY, amenities: [' pool', 'wifi ^^  ', 'pool', 'pools', 'poo'] })
  const text = (at: number) =>
    Buffer.from(values.scan.bytes.slice(search.amenityStarts[at], search.amenityEnds[at])).toString()
  expect(Array.from({ length: search.amenities }, (_, at) => text(at))).toEqual(['pool', 'wifi', 'pools', 'poo'])
  expect(stay({ amenities: amenities(64) }).amenities).toBe(64)
  expect(faultOf({ ...STAY, amenities: [...amenities(64), 'amenity0'] })).toBe('')
  expect(faultOf({ ...STAY, amenities: amenities(65) })).toBe('VALIDATION_ERROR: amenities are 64 at most')
})

test('of several errors the first is reported', () => {
  expect(faultOf({ ...STAY, stars: 9, limit: 0n, radiusMetres: 0 })).toBe(
    'VALIDATION_ERROR: stars must be 1 to 5, got 9',
  )
})

test('the day of the next request may be another one', () => {
  const values = createValues(CODECS)
  setToday(values, TODAY)
  const first = [...values.packedDays.subarray(0, 3)]
  setToday(values, TODAY + 1)
  expect(values).toMatchObject({ today: TODAY + 1, lastDay: LAST + 1 })
  expect([...values.packedDays.subarray(0, 2)]).toEqual(first.slice(1))
})

const SESSION = '00112233445566778899aabbccddeeff'
const KEYED = { propertyId: 'p', roomType: 'double', date: '2026-11-20', amount: 1 }

function readKey(fields: Fields): { readonly given: boolean; readonly fault: string; readonly key: Uint8Array } {
  const values = read('SETROOMAVL', { ...KEYED, ...fields })
  const position = (name: string) => values.scan.command.fields.findIndex((spec) => spec.name === name)
  const key = new Uint8Array(24)
  const given = readRequestKey(values, position('session'), position('requestNumber'), key)
  return { given, fault: values.fault, key }
}

test('a request key is 16 bytes of session and a number', () => {
  const { given, fault, key } = readKey({ session: SESSION, requestNumber: 258n })
  expect({ given, fault }).toEqual({ given: true, fault: '' })
  expect(Buffer.from(key).toString('hex')).toBe(`${SESSION}0201000000000000`)
  expect(readKey({})).toMatchObject({ given: false, fault: '' })
})

test.each<[Fields, string]>([
  [{ session: SESSION }, 'a request key has both session and requestNumber'],
  [{ requestNumber: 1n }, 'a request key has both session and requestNumber'],
  [{ session: SESSION.slice(1), requestNumber: 1n }, 'session must be 32 lower-case hexadecimal digits'],
  [{ session: `${SESSION}0`, requestNumber: 1n }, 'session must be 32 lower-case hexadecimal digits'],
  [{ session: SESSION.toUpperCase(), requestNumber: 1n }, 'session must be 32 lower-case hexadecimal digits'],
  [{ session: `${SESSION.slice(0, 31)}g`, requestNumber: 1n }, 'session must be 32 lower-case hexadecimal digits'],
  [{ session: `g${SESSION.slice(1)}`, requestNumber: 1n }, 'session must be 32 lower-case hexadecimal digits'],
  [{ session: SESSION, requestNumber: 0n }, 'requestNumber must be 1 or more'],
  [{ session: SESSION, requestNumber: 2n ** 53n - 1n }, 'requestNumber must be 1 or more'],
])('a request key %o is refused', (fields, fault) => {
  expect(readKey(fields).fault).toBe(`VALIDATION_ERROR: ${fault}`)
})

test('the largest request number is accepted', () => {
  expect(readKey({ session: SESSION, requestNumber: 2n ** 53n - 2n })).toMatchObject({ given: true, fault: '' })
})
