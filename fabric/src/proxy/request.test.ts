import { readFileSync } from 'node:fs'
import { proxyCurlOf } from '@vacancy/shared/snippets'
import { law } from '@vacancy/shared/testing/law'
import { COMMAND_LIST, decodeRequest } from '@vacancy/shared/wire'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { JSON_COMMANDS, type JsonCommand, type JsonField } from './commands.ts'
import { parseBody, readCommand, readRequest, type Segments } from './request.ts'
import { isRefusal } from './status.ts'

const PROPERTY = {
  segment: 'paris',
  area: 'marais',
  property_id: 'p1',
  property_type: 'hotel',
  category: 'standard',
  stars: 3,
  latitude: 48.8,
  longitude: 2.3,
}
const ROOM = { property_id: 'p1', room_type: 'double', date: '2026-12-24' }
const STAY = { segment: 'paris', room_type: 'double', date: ['2026-12-24'] }

function read(body: unknown, segments: Segments = 'none') {
  const command = readCommand(body)
  return isRefusal(command) ? command : readRequest(command, body as object, segments)
}

function fieldsOf(body: unknown): object {
  const request = read(body)
  if (isRefusal(request)) throw new Error(request.message)
  return decodeRequest(request.payload).fields
}

const messageOf = (body: unknown, segments?: Segments) => {
  const request = read(body, segments)
  return isRefusal(request) ? request.message : 'accepted'
}

test('the commands of the table are there, LOGIN is not', () => {
  expect([...JSON_COMMANDS.keys()]).toEqual(COMMAND_LIST.filter(({ name }) => name !== 'LOGIN').map(({ name }) => name))
})

// Values of a field: what JSON holds, and what the wire decoder must read.
const words = fc
  .string({ unit: 'binary', minLength: 1, maxLength: 40 })
  .filter((text) => text.isWellFormed() && !text.includes(',') && text.trim() === text && text !== '')

const line = fc.record({
  propertyId: words,
  roomType: words,
  arrival: fc.constantFrom('2026-12-24', '2028-02-29'),
  nights: fc.integer({ min: 1, max: 30 }),
  rooms: fc.integer({ min: 1, max: 255 }),
})

const IN_WORDS = [
  'order',
  'want',
  'count',
  'compact',
  'cursor',
  'maxTotal',
  'minTotal',
  'anyRoomType',
  'roomTypes',
  'facets',
  'totalBounds',
  'disjunctiveFacets',
  'facetValues',
  'cells',
]

function valuesOf({ kind, min, max }: JsonField): fc.Arbitrary<readonly [json: unknown, wire: unknown]> {
  switch (kind) {
    case 'text':
      return words.map((text) => [text, text])
    case 'list':
    case 'texts':
      return fc.uniqueArray(words, { minLength: 1, maxLength: 5 }).chain((list) => {
        const values: (readonly [unknown, unknown])[] = [[list, list]]
        if (kind === 'texts' && list.length === 1) values.push([list[0], list])
        return fc.constantFrom(...values)
      })
    case 'names':
      return fc.array(words, { minLength: 1, maxLength: 5 }).map((list) => [list, list])
    case 'word':
    case 'words':
    case 'facets':
    case 'wholes':
      return fc.constant([undefined, undefined])
    case 'lines':
      return fc
        .array(line, { minLength: 1, maxLength: 16 })
        .map((lines) => [
          lines.map(({ propertyId, roomType, ...rest }, n) =>
            n % 2 === 0 ? { property_id: propertyId, room_type: roomType, ...rest } : { propertyId, roomType, ...rest },
          ),
          lines,
        ])
    case 'flag':
      return fc.constantFrom([true, 1], [1, 1], [false, undefined], [0, undefined])
    case 'whole':
      return fc.integer({ min, max: Math.min(max, Number.MAX_SAFE_INTEGER) }).map((n) => [n, n])
    case 'number':
      return fc.double({ min, max, noNaN: true }).map((n) => [n + 0, n + 0])
  }
}

test.each([...JSON_COMMANDS.values()].map((command) => [command.name, command] as const))(
  '%s: any valid body is the request that the wire decoder reads, in either spelling',
  (name, command: JsonCommand) => {
    // Searches in words are below.
    const fields = command.fields.filter(({ spec, isInPart }) => !isInPart && !IN_WORDS.includes(spec.name))
    const drawn = fc.tuple(
      ...fields.map((field) =>
        fc.tuple(
          fc.constantFrom(...[...command.names].flatMap(([key, named]) => (named === field ? [key] : []))),
          field.required
            ? valuesOf(field)
            : fc.oneof(valuesOf(field), fc.constantFrom([undefined, undefined], [null, undefined])),
        ),
      ),
    )
    law([drawn, fc.constantFrom('body', 'payload')], (values, key) => {
      const body = Object.fromEntries(values.map(([each, [json]]) => [each, json]))
      // Flexible dates always have pages.
      const page = name === 'SEARCHFLEX' ? { count: 2 } : {}
      const wanted = Object.fromEntries(
        fields.flatMap((field, i) => {
          const wire = values[i]?.[1][1]
          if (wire !== undefined) return [[field.spec.name, wire]]
          return field.spec.required ? [[field.spec.name, []]] : []
        }),
      )

      const request = read(JSON.parse(JSON.stringify({ command: name, [key]: body })))

      expect(isRefusal(request) ? request : decodeRequest(request.payload)).toEqual({
        command: name,
        fields: { ...wanted, ...page },
      })
    })
  },
)

test('weekdays of arrival are named, and flexible dates have the values and pages of a search in words', () => {
  const window = { segment: 'paris', any_room_type: true, from: '2026-12-20', to: '2027-01-10', nights: 3 }
  const sent = { segment: 'paris', anyRoomType: 1, from: '2026-12-20', to: '2027-01-10', nights: 3 }
  const ofWeek = { ...window, weekdays: ['mon', 'sun'], rooms: 2 }

  expect(fieldsOf({ command: 'PRICECAL', body: ofWeek })).toEqual({ ...sent, weekdays: 65, availability: 2 })
  expect(fieldsOf({ command: 'SEARCHFLEX', body: { ...window, most_nights: 5, order: 'stars' } })).toEqual({
    ...{ ...sent, mostNights: 5, order: 4, count: 2, want: 9 },
  })
  expect(messageOf({ command: 'PRICECAL', body: { ...window, order: 'total' } })).toBe('"order" is not known')
})

const FOUND = { segment: 'paris', room_type: 'double', dates: ['2026-12-24', '2026-12-25'] }
const SENT = { segment: 'paris', roomType: 'double', dates: ['2026-12-24', '2026-12-25'] }

test.each([
  [{ ...FOUND }, { ...SENT }],
  [
    {
      ...FOUND,
      facets: ['stars', 'rate_features', { total: [100, 200] }],
      disjunctive_facets: ['stars'],
      facet_values: 9,
    },
    { ...SENT, facets: 100, totalBounds: [100, 200], disjunctiveFacets: 4, facetValues: 9 },
  ],
  [
    { ...FOUND, box: { south: 1, west: 2, north: 3, east: 4 }, cells: [16, 12] },
    { ...SENT, south: 1, west: 2, north: 3, east: 4, cells: [16, 12] },
  ],
  [
    { ...FOUND, order: 'total' },
    { ...SENT, order: 1, want: 1, count: 2 },
  ],
  [
    { ...FOUND, order: 'total_down', count: true, limit: 25 },
    { ...SENT, order: 2, want: 1, count: 1, limit: 25 },
  ],
  [
    { ...FOUND, order: 'stars', want: ['room_type', 'position'] },
    { ...SENT, order: 4, want: 12, count: 2 },
  ],
  [
    { ...FOUND, order: 'distance', latitude: 48.8, longitude: 2.3, count: false },
    { ...SENT, order: 3, latitude: 48.8, longitude: 2.3, want: 2, count: 2 },
  ],
  [
    { ...FOUND, maxTotal: 300, min_total: 100 },
    { ...SENT, maxTotal: 300, minTotal: 100, want: 1 },
  ],
  [
    { ...FOUND, order: 'id', cursor: 'AQ', compact: true },
    { ...SENT, order: 6, cursor: 'AQ', count: 2, compact: 1 },
  ],
  [
    { ...FOUND, rooms: 2 },
    { ...SENT, availability: 2 },
  ],
  [
    { ...FOUND, box: { south: -1, west: 170, north: 1.5, east: -170 } },
    { ...SENT, south: -1, west: 170, north: 1.5, east: -170 },
  ],
  [
    { segment: 'paris', any_room_type: true, stay: { arrival: '2026-12-24', nights: 2 } },
    { segment: 'paris', anyRoomType: 1, dates: SENT.dates, want: 9, count: 2 },
  ],
  [
    { segment: 'paris', room_types: ['suite, large', 'double'], dates: SENT.dates },
    { segment: 'paris', roomTypes: ['suite, large', 'double'], dates: SENT.dates, want: 9, count: 2 },
  ],
])('a search in words is the request of the wire: %j', (body, fields) => {
  expect(fieldsOf({ command: 'SEARCHAVAIL', body })).toEqual(fields)
})

test('a request of the wire as the console shows it for curl is the same request', () => {
  const box = { south: -1, west: 170, north: 1.5, east: -170 }
  const wanted = { ...SENT, ...box, order: 2, want: 5, count: 1, compact: 1, maxTotal: 300, limit: 25 }

  const curl = proxyCurlOf('http://proxy', 'SEARCHAVAIL', wanted)
  const [, text = ''] = /--data-raw '(.*)'/.exec(curl) ?? []

  expect(fieldsOf(JSON.parse(text))).toEqual(wanted)
})

const WORDS = 'total, total_down, distance, stars or id'
test.each([
  [{ order: 'price' }, `order must be ${WORDS}, got "price"`],
  [{ order: 1 }, `order must be ${WORDS}, got 1`],
  [{ order: 'score' }, `order must be ${WORDS}, got "score"`],
  [{ want: 'total' }, 'want must be a list of total, distance, position or room_type, got "total"'],
  [{ want: ['price'] }, 'want must be a list of total, distance, position or room_type, got "price"'],
  [{ count: 'yes' }, 'count must be true or false, got "yes"'],
  [{ compact: 2 }, 'compact must be true or false, got 2'],
  [{ limit: 0 }, 'limit must be a whole number from 1 to 9007199254740991'],
  [{ box: { south: 1, west: 2, north: 3 } }, 'box must be an object with south, west, north and east'],
  [{ box: { south: 1, west: 2, north: 3, east: 4, up: 5 } }, 'box: "up" is not known'],
  [{ box: { south: 1, west: 2, north: 300, east: 4 } }, 'north must be a number from -90 to 90'],
  [{ south: 1 }, '"south" is not known'],
  [{ stay: { arrival: '2026-12-24', nights: 2 } }, 'dates and stay are the same field: give one'],
  [
    { dates: null, stay: { arrival: '2026-12-24', nights: 0 } },
    'stay.nights must be a whole number from 1 to 366, got 0',
  ],
  [{ dates: null, stay: { arrival: '24.12.', nights: 1 } }, 'stay.arrival must be a date, YYYY-MM-DD, got "24.12."'],
  [{ room_type: null }, 'room_type is required, or any_room_type, or room_types'],
  [{ room_type: null, room_types: [] }, 'room_types must be an array of texts, not empty'],
  [{ rooms: 2, availability: 2 }, 'rooms and availability are the same field: give one'],
])('a search in words that does not fit is refused with what is accepted: %j', (more, message) => {
  expect(messageOf({ command: 'SEARCHAVAIL', body: { ...FOUND, ...more } })).toBe(message)
})

test('properties have no order by total', () => {
  const body = { segment: 'paris', order: 'total' }
  expect(messageOf({ command: 'SEARCHPROP', body })).toBe('order must be distance, stars or id, got "total"')
})

test('any JSON is read or refused, whatever it holds', () => {
  const names = [...JSON_COMMANDS.values()].flatMap(({ fields }) =>
    fields.flatMap(({ name, aliases }) => [name, ...aliases]),
  )
  const body = fc.dictionary(fc.constantFrom(...names, '__proto__', 'constructor', 'toString'), fc.jsonValue())
  const command = fc.constantFrom(...JSON_COMMANDS.keys(), '__proto__', 'constructor', 'LOGIN')
  law([command, body, fc.jsonValue(), fc.constantFrom('router', 'none')], (name, values, segment, segments) => {
    const request = read(JSON.parse(JSON.stringify({ command: name, segment, body: values })), segments as Segments)
    if (isRefusal(request)) expect(request).toMatchObject({ status: 400, message: expect.any(String) })
    else expect(decodeRequest(request.payload).command).toBe(name)
  })
})

test.each([
  [undefined, 'Invalid JSON: the body must be an object'],
  ['text', 'Invalid JSON: the body must be an object'],
  [[], 'Invalid JSON: the body must be an object'],
  [{}, 'Missing command field'],
  [{ command: '' }, 'Missing command field'],
  [{ command: 7 }, 'unsupported command'],
  [{ command: 'searchprop' }, 'unsupported command'],
  [{ command: 'LOGIN', body: { token: 'x' } }, 'unsupported command'],
  [{ command: '__proto__' }, 'unsupported command'],
  [{ command: 'constructor' }, 'unsupported command'],
  [{ command: 'SEARCHPROP' }, 'segment is required'],
  [{ command: 'SEARCHPROP', body: [] }, 'body must be an object'],
  [{ command: 'SEARCHPROP', body: 'x' }, 'body must be an object'],
  [{ command: 'SEARCHPROP', body: {}, payload: {} }, 'body and payload are the same field: give one'],
  [{ command: 'SEARCHPROP', body: JSON.parse('{"__proto__":{"segment":"x"}}') }, '"__proto__" is not known'],
  [{ command: 'SEARCHPROP', body: { segment: 'x', toString: 1 } }, '"toString" is not known'],
  [{ command: 'SEARCHPROP', bodi: { segment: 'x' } }, '"bodi" is not known; did you mean body?'],
  [{ command: 'GETCODECS', body: { segment: 'x' } }, '"segment" is not known'],
  [
    { command: 'SEARCHAVAIL', body: { ...STAY, finalprice: 90 } },
    '"finalprice" is not known; did you mean finalPrice?',
  ],
  [
    { command: 'SEARCHAVAIL', body: { ...STAY, finalPrice: 90, final_price: 95 } },
    'finalPrice and final_price are the same field: give one',
  ],
  [{ command: 'BOOKSTAY', body: { stay_id: 's', maxTotals: 1 } }, '"maxTotals" is not known; did you mean maxTotal?'],
  [
    { command: 'BOOKSTAY', body: { stay_id: 's', lines: [{ property: 'p' }] } },
    'lines[0]: "property" is not known; did you mean property_id?',
  ],
  [{ command: 'SEARCHPROP', body: { segment: '' } }, 'segment is required'],
  [{ command: 'SEARCHPROP', body: { segment: null } }, 'segment is required'],
  [{ command: 'SEARCHPROP', body: { segment: 7 } }, 'segment must be text'],
  [
    { command: 'SEARCHPROP', body: { segment: 'x', limit: 0 } },
    'limit must be a whole number from 1 to 9007199254740991',
  ],
  [
    { command: 'SEARCHPROP', body: { segment: 'x', limit: '5' } },
    'limit must be a whole number from 1 to 9007199254740991',
  ],
  [
    { command: 'SEARCHPROP', body: { segment: 'x', limit: 1.5 } },
    'limit must be a whole number from 1 to 9007199254740991',
  ],
  [
    { command: 'SEARCHPROP', body: { segment: 'x', limit: 1e300 } },
    'limit must be a whole number from 1 to 9007199254740991',
  ],
  [{ command: 'SEARCHPROP', body: { segment: 'x', stars: 6 } }, 'stars must be between 1 and 5'],
  [{ command: 'SEARCHPROP', body: { segment: 'x', stars: '3' } }, 'stars must be between 1 and 5'],
  [
    { command: 'SEARCHPROP', body: { segment: 'x', type: 'a', property_type: 'b' } },
    'type and property_type are the same field: give one',
  ],
  [{ command: 'SEARCHPROP', body: { segment: 'x', latitude: 91 } }, 'latitude must be a number from -90 to 90'],
  [{ command: 'SEARCHPROP', body: { segment: 'x', longitude: '2' } }, 'longitude must be a number from -180 to 180'],
  [
    { command: 'SEARCHPROP', body: { segment: 'x', amenities: 'wifi' } },
    'amenities must be an array of texts, not empty and without commas',
  ],
  [
    { command: 'SEARCHPROP', body: { segment: 'x', amenities: ['a,b'] } },
    'amenities must be an array of texts, not empty and without commas',
  ],
  [
    { command: 'SEARCHPROP', body: { segment: 'x', amenities: [''] } },
    'amenities must be an array of texts, not empty and without commas',
  ],
  [{ command: 'SEARCHPROP', body: { segment: '\ud800' } }, 'segment is not valid Unicode'],
  [{ command: 'SEARCHAVAIL', body: { ...STAY, date: [] } }, 'date is required'],
  [{ command: 'SEARCHAVAIL', body: { ...STAY, date: undefined } }, 'date is required'],
  [
    { command: 'SEARCHAVAIL', body: { ...STAY, availability: 256 } },
    'availability must be a whole number from 0 to 255',
  ],
  [
    { command: 'SEARCHAVAIL', body: { ...STAY, final_price: 2 ** 32 } },
    'final_price must be a whole number from 0 to 4294967295',
  ],
  [{ command: 'SETROOMPKG', body: { ...ROOM, availability: -1 } }, 'availability must be a whole number from 0 to 255'],
  [
    { command: 'SETROOMPKG', body: { ...ROOM, final_price: 2 ** 32 - 1 } },
    'final_price must be a whole number from 0 to 4294967294',
  ],
  [{ command: 'DECROOMAVL', body: ROOM }, 'amount is required and must be 0-255'],
  [{ command: 'DECROOMAVL', body: { ...ROOM, amount: 256 } }, 'amount is required and must be 0-255'],
  [{ command: 'DECROOMAVL', body: { ...ROOM, amount: '1' } }, 'amount is required and must be 0-255'],
  [{ command: 'DECROOMAVL', body: { ...ROOM, amount: true } }, 'amount is required and must be 0-255'],
  [{ command: 'SETPROP', body: { ...PROPERTY, stars: undefined } }, 'stars is required'],
])('%j is refused: %s', (body, message) => {
  expect(messageOf(body)).toBe(message)
})

test('a request of more than 64 KiB is refused', () => {
  expect(messageOf({ command: 'SETPROP', body: { ...PROPERTY, area: 'x'.repeat(70_000) } })).toBe(
    'frame of 70110 bytes exceeds 65536',
  )
})

test('aliases of existing documents', () => {
  const plain = fieldsOf({ command: 'SEARCHAVAIL', body: { ...STAY, type: 'hotel', rate_features: ['a'] } })
  const { date, ...rest } = STAY

  expect(
    fieldsOf({
      command: 'SEARCHAVAIL',
      payload: { ...rest, dates: date, property_type: 'hotel', rate_feature: ['a'] },
    }),
  ).toEqual(plain)
  expect(
    fieldsOf({ command: 'SEARCHAVAIL', body: { ...rest, date: date[0], type: 'hotel', rate_features: ['a'] } }),
  ).toEqual(plain)
})

type Sent = { readonly command: string | null; readonly fields?: object }

test('what existing clients send over the wire is accepted as JSON, in either spelling', () => {
  const file = new URL('../../../shared/vectors/requests.json', import.meta.url)
  const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: { name: string; json: Sent }[] }
  const sent = cases.filter(({ json }) => JSON_COMMANDS.has(json.command ?? ''))
  const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

  for (const { name, json } of sent) {
    const { command, fields = {} } = json
    const spelt = Object.fromEntries(Object.entries(fields).map(([key, value]) => [snake(key), value]))
    const [camel, other] = [read({ command, body: fields }), read({ command, body: spelt })]
    expect([name, camel]).toEqual([name, other])
    // One price is beyond what a package may have, for a node too.
    if (isRefusal(camel)) expect(camel.message).toMatch(/^final_price must be/)
  }
  expect(sent.length).toBeGreaterThan(50)
})

test('a list that clears, one that is sent empty, and one that means nothing', () => {
  expect(fieldsOf({ command: 'SETROOMPKG', body: { ...ROOM, rate_features: [] } })).toMatchObject({ rateFeatures: [] })
  expect(fieldsOf({ command: 'SETROOMPKG', body: ROOM })).not.toHaveProperty('rateFeatures')
  expect(fieldsOf({ command: 'SETPROP', body: PROPERTY })).toMatchObject({ amenities: [] })
  expect(fieldsOf({ command: 'SEARCHAVAIL', body: { ...STAY, amenities: [], area: '' } })).toEqual({
    segment: 'paris',
    roomType: 'double',
    dates: ['2026-12-24'],
  })
})

test.each([
  [{ command: 'SEARCHPROP', segment: 'paris', body: { segment: 'rome' } }, 'segment and body.segment differ'],
  [{ command: 'PROPEXIST', body: { property_id: 'p' } }, 'segment is required'],
  [{ command: 'PROPEXIST', segment: 5, body: { property_id: 'p' } }, 'segment must be text'],
  [{ command: 'PROPEXIST', body: { property_id: 'p', segment: 5 } }, 'segment must be text'],
  [{ command: 'PROPEXIST', body: { property_id: 'p', segment: 'paris' } }, 'accepted'],
  [{ command: 'PROPEXIST', segment: '__keepalive__', body: { property_id: 'p' } }, 'segment is a reserved name'],
  [{ command: 'PROPEXIST', segment: '__status__', body: { property_id: 'p' } }, 'segment is a reserved name'],
  [{ command: 'SEARCHPROP', body: { segment: 'GETSEGMENTS' } }, 'segment is a reserved name'],
  [
    { command: 'PROPEXIST', segment: 'é'.repeat(128), body: { property_id: 'p' } },
    'segment must be 1 to 255 bytes, got 256',
  ],
  [
    { command: 'PROPEXIST', segment: 'a\nb', body: { property_id: 'p' } },
    'segment must not hold control characters, has byte 10 at 1',
  ],
  [{ command: 'PROPEXIST', segment: 'paris', body: { property_id: 'p' } }, 'accepted'],
  [{ command: 'SEARCHPROP', segment: '', body: { segment: 'paris' } }, 'accepted'],
  [{ command: 'SEARCHPROP', segment: 'paris', body: { segment: 'paris' } }, 'accepted'],
  [{ command: 'GETSEGMENTS', segment: '' }, 'accepted'],
  [{ command: 'GETCODECS' }, 'accepted'],
])('through a router: %j: %s', (body, message) => {
  expect(messageOf(body, 'router')).toBe(message)
})

test('without a router the segment beside the command is ignored', () => {
  expect(messageOf({ command: 'SEARCHPROP', segment: 'rome', body: { segment: 'paris' } })).toBe('accepted')
  expect(messageOf({ command: 'PROPEXIST', segment: '__keepalive__', body: { property_id: 'p' } })).toBe('accepted')
})

test.each(['', '{', '{"a":1}x', 'NaN', '\ufeff{'])('%j is not JSON', (text) => {
  expect(parseBody(Buffer.from(text))).toMatchObject({ status: 400, code: 'PARSE_ERROR', message: 'Invalid JSON' })
})

test('a body that is not UTF-8 is refused', () => {
  expect(parseBody(Buffer.from([0x22, 0xff, 0x22]))).toMatchObject({ status: 400, message: 'Invalid JSON' })
})
