import { afterEach, describe, expect, expectTypeOf, test } from 'vitest'
import { connectIn } from './client.ts'
import { startScriptedNode } from './testing/scripted-node.ts'
import { turnedWorld } from './testing/turned-world.ts'

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

async function start() {
  const node = await startScriptedNode()
  cleanUp.push(() => node.close())
  const client = await connectIn(turnedWorld(), { port: node.port })
  cleanUp.push(() => client.close())
  return { node, client }
}

const stay = { arrival: '2026-12-24', nights: 2 } as const
const SEARCH = { segment: 's', roomType: 'r', stay } as const
const SENT = { segment: 's', roomType: 'r', dates: ['2026-12-24', '2026-12-25'] }
const hit = (propertyId: string, total: number) => ({ propertyId, days: [], total })
const pageOf = (cursor: string, matches?: number) => ({
  index: 7,
  more: cursor !== '',
  cursor,
  ...(matches !== undefined && { matches }),
})

describe('a search in words', () => {
  test.each([
    [{ ...SEARCH }, SENT],
    [
      { ...SEARCH, order: 'totalDown' },
      { ...SENT, order: 2, want: 1 },
    ],
    [
      { ...SEARCH, order: 'stars', want: ['position', 'roomType'] },
      { ...SENT, order: 4, want: 12 },
    ],
    [
      { ...SEARCH, maxTotal: 900 },
      { ...SENT, maxTotal: 900, want: 1 },
    ],
    [
      { ...SEARCH, rooms: 2, compact: true },
      { ...SENT, availability: 2, compact: 1 },
    ],
    [
      { ...SEARCH, order: 'distance', near: { latitude: 47, longitude: 11, radiusMetres: 900 } },
      { ...SENT, order: 3, latitude: 47, longitude: 11, radiusMetres: 900, want: 2 },
    ],
    [
      { ...SEARCH, box: { south: -1, west: 170, north: 1, east: -170 } },
      { ...SENT, south: -1, west: 170, north: 1, east: -170 },
    ],
    [
      { segment: 's', stay, anyRoomType: true },
      { segment: 's', dates: SENT.dates, anyRoomType: 1, want: 9 },
    ],
    [
      { segment: 's', stay, roomTypes: ['suite, large', 'r'] },
      { segment: 's', dates: SENT.dates, roomTypes: ['suite, large', 'r'], want: 9 },
    ],
  ] as const)('%j is the request of the wire', async (fields, sent) => {
    const { node, client } = await start()
    const found = client.searchAvailability(fields)
    const request = await node.next()
    request.answer({ numDays: 2, properties: [] })

    expect(await found).toEqual([])
    expect(request.fields).toEqual(sent)
  })

  test.each([
    [{ order: 'price' }, 'order must be total, totalDown, distance, stars or id, got "price"'],
    [{ want: ['price'] }, 'want must be a list of total, distance, position or roomType, got "price"'],
    [{ compact: 'yes' }, 'compact must be true or false, got "yes"'],
    [{ stay: { arrival: '2026-02-30', nights: 1 } }, 'stay.arrival must be a date, YYYY-MM-DD, got "2026-02-30"'],
    [{ stay: { arrival: '2026-12-24', nights: 0 } }, 'stay.nights must be a whole number from 1 to 366, got 0'],
    [{ dates: ['2026-12-24'] }, 'dates and stay are the same field: give one'],
    [{ rooms: 1, availability: 1 }, 'availability and rooms are the same field: give one'],
    [{ box: { south: 1, west: 2, north: 3, east: Number.NaN } }, 'box.east must be a number, got NaN'],
    [{ near: { latitude: 1 } }, 'near must be an object with latitude and longitude'],
    [{ near: { latitude: 1, longitude: 2 }, latitude: 1 }, 'latitude and near are the same field: give one'],
    [{ roomType: undefined }, 'roomType is required, or anyRoomType, or roomTypes'],
    [{ roomTypes: [''] }, 'an entry of roomTypes must be a text of 1 to 255 bytes'],
    [{ cursor: 'AQ' }, 'cursor is for pages: use searchPage or searchPages'],
    [{ colour: 'blue' }, 'SEARCHAVAIL has no field colour'],
  ])('with %j is refused with what is accepted', async (fields, message) => {
    const { client } = await start()

    await expect(client.searchAvailability({ ...SEARCH, ...fields } as never)).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      message: expect.stringContaining(message),
    })
  })
})

test('pages follow each other by cursor, and a property comes once', async () => {
  const { node, client } = await start()
  const script = (async () => {
    const [first, second] = [await node.next(), undefined]
    first.answer({ numDays: 2, properties: [hit('a', 10), hit('b', 20)], page: pageOf('AQ', 3) })
    const next = second ?? (await node.next())
    next.answer({ numDays: 2, properties: [hit('b', 25), hit('c', 30)], page: pageOf('', 3) })
    return [first.fields, next.fields]
  })()

  const pages = []
  const fields = { ...SEARCH, order: 'total', limit: 2, count: true, compact: true } as const
  for await (const page of client.searchPages(fields)) {
    expectTypeOf(page.matches).toEqualTypeOf<number>()
    expectTypeOf(page.properties[0]).toExtend<{ propertyId: string; total: number | bigint } | undefined>()
    pages.push(page)
  }

  const [first, next] = await script
  expect(first).toEqual({ ...SENT, order: 1, limit: 2, want: 1, count: 1, compact: 1 })
  expect(next).toEqual({ ...first, cursor: 'AQ' })
  expect(pages).toEqual([
    { properties: [hit('a', 10), hit('b', 20)], ...pageOf('AQ', 3) },
    { properties: [hit('c', 30)], ...pageOf('', 3) },
  ])
})

test('a page of properties has their values, and no number of matches unless it is asked for', async () => {
  const { node, client } = await start()
  const near = { latitude: 47, longitude: 11 }
  const found = client.searchPropertyPage({ segment: 's', order: 'distance', near, want: ['distance'] })
  const request = await node.next()
  request.answer({ propertyIds: ['p'], values: [{ distanceMetres: 87 }], page: pageOf('AQ') })

  expect(request.fields).toEqual({ segment: 's', ...near, order: 3, want: 2, count: 2 })
  expect(await found).toEqual({ properties: [{ propertyId: 'p', distanceMetres: 87 }], ...pageOf('AQ') })
})

test('pages need an order, and a node that knows them', async () => {
  const { node, client } = await start()
  const orders = 'a page needs order: total, totalDown, distance, stars or id'
  await expect(client.searchPage(SEARCH as never)).rejects.toThrow(orders)
  await expect(
    client
      .searchPropertyPages({ segment: 's' } as never)
      [Symbol.asyncIterator]()
      .next(),
  ).rejects.toThrow('a page needs order: distance, stars or id')
  const found = client.searchPage({ ...SEARCH, order: 'id' })
  const settled = expect(found).rejects.toMatchObject({ code: 'malformed_reply' })
  const request = await node.next()
  request.answer({ numDays: 2, properties: [] })
  await settled
})

const WINDOW = { segment: 's', from: '2026-12-20', to: '2026-12-27', nights: 2, weekdays: ['fri', 'sat'] } as const
const SENT_WINDOW = { ...WINDOW, weekdays: 48 }

test('a price calendar is a list of days, each with the lowest total where a stay fits', async () => {
  const { node, client } = await start()
  const found = client.priceCalendar({ ...WINDOW, propertyId: 'p', anyRoomType: true, rooms: 2 })
  const request = await node.next()
  const days = [
    { arrival: '2026-12-25', total: 200, properties: 1, best: 'p' },
    { arrival: '2026-12-26', properties: 0 },
  ]
  request.answer({ nights: 2, days })

  expect(request.fields).toEqual({ ...SENT_WINDOW, propertyId: 'p', anyRoomType: 1, availability: 2 })
  expect(await found).toEqual(days)
})

test('flexible dates are a page of properties with their best stay', async () => {
  const { node, client } = await start()
  const fields = { ...WINDOW, roomTypes: ['r'], mostNights: 4, limit: 25, count: true, cursor: '' } as const
  const found = client.searchFlexible(fields)
  const request = await node.next()
  const stays = [{ propertyId: 'p', arrival: '2026-12-26', nights: 3, total: 250, roomType: 'r' }]
  request.answer({ arrivalDays: 2, bestStays: stays, page: pageOf('', 1) })

  const { cursor: _, ...sent } = fields
  expect(request.fields).toEqual({ ...sent, ...SENT_WINDOW, count: 1, want: 9 })
  const page = await found
  expect(page).toEqual({ properties: stays, ...pageOf('', 1) })
  expectTypeOf(page.properties[0]).toExtend<{ arrival: string; nights: number; roomType: string } | undefined>()
})

test.each([
  [{ weekdays: ['friday'] }, 'weekdays must be a list of mon, tue, wed, thu, fri, sat or sun, got "friday"'],
  [{ order: 'price' }, 'PRICECAL has no field order'],
  [{ stay }, 'PRICECAL has no field stay'],
  [{ to: undefined }, 'to is required'],
])('a calendar with %j is refused with what is accepted', async (fields, message) => {
  const { client } = await start()

  await expect(client.priceCalendar({ ...WINDOW, roomType: 'r', ...fields } as never)).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringContaining(message),
  })
})

test('types say what a search returns', async () => {
  const { client } = await start()
  type Found<F> = F extends (fields: never) => Promise<(infer Hit)[]> ? Hit : never
  const plain = () => client.searchAvailability(SEARCH)
  const any = () => client.searchAvailability({ segment: 's', stay, anyRoomType: true, compact: true })
  const far = () => client.searchAvailability({ ...SEARCH, want: ['distance'], order: 'total' })
  const some = (want: ('distance' | 'total')[]) => client.searchAvailability({ ...SEARCH, want })

  expectTypeOf<keyof Found<typeof plain>>().toEqualTypeOf<'propertyId' | 'days'>()
  expectTypeOf<keyof Found<typeof any>>().toEqualTypeOf<'propertyId' | 'total' | 'roomType'>()
  expectTypeOf<keyof Found<typeof far>>().toEqualTypeOf<'propertyId' | 'days' | 'total' | 'distanceMetres'>()
  expectTypeOf<Found<typeof some>['distanceMetres']>().toEqualTypeOf<number | undefined>()
  // @ts-expect-error a page needs an order
  const unordered = () => client.searchPage(SEARCH)
  // @ts-expect-error one of the two
  const twice = () => client.searchAvailability({ ...SEARCH, dates: ['2026-12-24'] })
  expect([plain, any, far, some, unordered, twice]).toHaveLength(6)
})

test('a page counts its matches by value and by cell, and its type has the counts that were asked for', async () => {
  const { node, client } = await start()
  const box = { south: 1, west: 2, north: 3, east: 4 }
  const found = client.searchPage({
    ...({ ...SEARCH, order: 'total', box, disjunctiveFacets: ['stars'], facetValues: 9 } as const),
    ...{ facets: ['stars', { total: [10_000] }], cells: [4, 2] },
  } as const)
  const counts = {
    facets: {
      stars: [{ value: 4, count: 2 }],
      total: [
        { minTotal: 0, maxTotal: 9_999, count: 2 },
        { minTotal: 10_000, count: 0 },
      ],
    },
    cells: [{ column: 0, row: 1, count: 2, lowestTotal: 9_000, latitude: 2.5, longitude: 2.25 }],
  }
  const request = await node.next()
  request.answer({ numDays: 2, properties: [], page: pageOf(''), ...counts })
  const page = await found

  expect(request.fields).toMatchObject({
    facets: 68,
    totalBounds: [10_000],
    disjunctiveFacets: 4,
    facetValues: 9,
    cells: [4, 2],
  })
  expect(page).toMatchObject(counts)
  expectTypeOf(page.facets.stars).toEqualTypeOf<{ value: number; count: number }[]>()
  expectTypeOf(page.cells[0]?.lowestTotal).toEqualTypeOf<number | bigint | undefined>()
  // @ts-expect-error the area was not asked for
  expect(page.facets.area).toBeUndefined()
  await expect(client.searchPage({ ...SEARCH, order: 'total', facets: ['total'] } as never)).rejects.toThrow(
    'needs its bounds',
  )
  await expect(client.searchAvailability({ ...SEARCH, cells: [1, 1] } as never)).rejects.toThrow('cells is for pages')
})
