import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { connect, type VacancyClient } from '@vacancy/client'
import { dayOf, formatDay, parseDay } from '@vacancy/shared'
import type { ProblemError } from '@vacancy/shared/api/route'
import type { QueryRequest } from '@vacancy/shared/contract'
import { decodeReply, decodeRequest, FRAME_HEADER_BYTES } from '@vacancy/shared/wire'
import { TEST_CODECS } from '@vacancy/testkit/node'
import { seeded } from '@vacancy/testkit/random'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startNode } from '../testing/nodes.ts'
import { CLIENT, openPlayground, PERSON, VIEWER } from '../testing/playground-world.ts'

const TODAY = dayOf(Date.now())
const DAYS = Array.from({ length: 6 }, (_, day) => formatDay(TODAY + 1 + day))
const [FIRST, SECOND] = DAYS as [string, string]
const DOUBLES = Array.from({ length: 20 }, (_, n) => `h${n}`)
const PLACE = { latitude: 48.2, longitude: 16.37 }

let node: Awaited<ReturnType<typeof startNode>>
let other: Awaited<ReturnType<typeof startNode>>
let client: VacancyClient
let world: Awaited<ReturnType<typeof openPlayground>>

beforeAll(async () => {
  ;[node, other] = await Promise.all([startNode({ config: { query_limit: 10 } }), startNode()])
  client = await connect({ host: node.host, port: node.tcpPort })
  await fill(client)
  world = await openPlayground([
    { ...node, id: 'n1' },
    { ...other, id: 'n2', shard: 's2' },
  ])
  const far = await connect({ host: other.host, port: other.tcpPort })
  await far.setProperty({ ...property('elsewhere', 1), segment: 'Graz' })
  await far.close()
}, 240_000)
afterAll(async () => {
  await world?.close()
  await client?.close()
  await Promise.all([node?.close(), other?.close()])
})
beforeEach(() => void world.notes.splice(0))

function property(propertyId: string, n: number) {
  return {
    segment: 'Vienna',
    area: n % 2 === 0 ? 'Centre' : 'Prater',
    propertyId,
    propertyType: n % 3 === 0 ? 'hotel' : 'flat',
    category: 'city',
    stars: 1 + (n % 5),
    latitude: PLACE.latitude + n * 0.01,
    longitude: PLACE.longitude,
    amenities: n % 2 === 0 ? ['wifi', 'lift'] : ['wifi'],
  }
}

/** h0 … h19; a double each, a suite for every fourth; prices rise with n, h3 is sold out on the first night. */
async function fill(to: VacancyClient): Promise<void> {
  for (let n = 0; n < 20; n++) await to.setProperty(property(`h${n}`, n))
  const nights = Array.from({ length: 20 }, (_, n) => n).flatMap((n) =>
    DAYS.map((date) => ({
      propertyId: `h${n}`,
      roomType: 'double',
      date,
      availability: n === 3 && date === FIRST ? 0 : 1 + (n % 4),
      finalPrice: 10_000 + n * 500,
      rateFeatures: n % 2 === 0 ? ['breakfast', 'sea_view'] : ['refundable'],
    })),
  )
  await Promise.all(nights.map((night) => to.setPackage(night)))
  await to.setPackage({ propertyId: 'h4', roomType: 'suite', date: FIRST, availability: 2, finalPrice: 90_000 })
}

const search = (fields: object = {}): QueryRequest => ({
  shard: 's1',
  command: 'SEARCHAVAIL',
  fields: { segment: 'Vienna', roomType: 'double', dates: [FIRST, SECOND], ...fields },
})

async function problemOf(
  request: Promise<unknown>,
): Promise<Pick<ProblemError, 'status' | 'code' | 'message' | 'hint'>> {
  const { status, code, message, hint } = (await request.then(
    (answer) => Promise.reject(new Error(`it answered ${JSON.stringify(answer)}`)),
    (error) => error,
  )) as ProblemError
  return { status, code, message, hint }
}

describe('a query', () => {
  test('returns rows, counts, hops and the exact bytes', async () => {
    const body = search({ stars: 2, explain: 1 })

    const answer = await world.call('POST /api/v1/query', { body }, CLIENT)

    // h1, h6, h11 and h16 have two stars.
    expect(answer).toMatchObject({ shard: 's1', node: 'n1', count: 4, limit: 10, limited: false, attempts: 1 })
    expect(answer.result).toMatchObject({ numDays: 2 })
    expect(answer.examined).toBeGreaterThanOrEqual(4)
    expect(Number(answer.index)).toBeGreaterThan(0)
    expect(answer.hops.map(({ hop }) => hop)).toEqual(['control-plane', 'network', 'waiting', 'searching'])
    const sum = answer.hops.reduce((all, { micros }) => all + (micros ?? 0), 0)
    expect(Math.abs(sum - answer.totalMicros)).toBeLessThan(answer.totalMicros * 0.01 + 1)
    const sent = Buffer.from(answer.requestFrame, 'hex')
    expect(sent).toHaveLength(answer.bytesOut)
    expect(decodeRequest(sent.subarray(FRAME_HEADER_BYTES))).toEqual({ command: 'SEARCHAVAIL', fields: body.fields })
    const came = Buffer.from(answer.replyFrame, 'hex')
    expect(came).toHaveLength(answer.bytesIn)
    expect(came.readUInt32LE(1)).toBe(sent.readUInt32LE(1))
    const codecs = { names: TEST_CODECS, indexOf: new Map(TEST_CODECS.map((name, i) => [name, i])) } as never
    const reply = decodeReply('SEARCHAVAIL', came.subarray(FRAME_HEADER_BYTES), {
      dates: body.fields['dates'] as string[],
      codecs,
    })
    expect(reply.ok && JSON.parse(JSON.stringify(reply.result))).toEqual(answer.result)
  })

  test('has the times of the stages where they are asked for', async () => {
    const { hops } = await world.call('POST /api/v1/query', { body: search({ explain: 2 }) })

    expect(hops.map(({ hop }) => hop).slice(2)).toEqual(['waiting', 'planning', 'examining', 'writing'])
  })

  test('sends exactly the requested fields, and then has no times of the node', async () => {
    const answer = await world.call('POST /api/v1/query', { body: search() })

    expect(answer.requestFrame).not.toContain('0380')
    expect(answer.hops.filter(({ micros }) => micros === null).map(({ hop }) => hop)).toEqual(['waiting', 'searching'])
    expect(answer).toMatchObject({ examined: null, index: null, count: 10, limit: 10, limited: true })
  })

  test('with an unknown name is refused with the known ones', async () => {
    const call = (body: unknown) => problemOf(world.call('POST /api/v1/query', { body }))

    expect(await call({ command: 'GETSEGMENTS', fields: {} })).toMatchObject({ status: 400, code: 'shard-required' })
    expect(await call({ ...search(), shard: 's9' })).toMatchObject({ status: 404, hint: 'Known: s1, s2.' })
    expect(await call({ ...search(), node: 'n7' })).toMatchObject({ status: 404, hint: 'Known: n1.' })
    expect(await call(search({ stars: 'four' }))).toMatchObject({
      status: 400,
      code: 'invalid-fields',
      message: 'stars must be a whole number, 0 to 255',
    })
    expect(await call(search({ colour: 'red' }))).toMatchObject({ message: 'SEARCHAVAIL has no field colour' })
    expect(await call(search({ stars: 9 }))).toMatchObject({ status: 400, code: 'wire-validation-error' })
    expect(await call({ shard: 's1', command: 'PROPROOMLIST', fields: { propertyId: 'unknown' } })).toMatchObject({
      status: 404,
      code: 'wire-not-found',
    })
  })

  test('with invalid values is refused by the contract', async () => {
    for (const body of [
      { command: 'LOGIN', fields: { token: 'x' } },
      { command: '__proto__', fields: {} },
      search({ segment: { $ne: 1 } }),
      search({ dates: Array(5_000).fill(FIRST) }),
      { ...search(), shard: 'x'.repeat(129) },
      'SEARCHAVAIL',
    ]) {
      await expect(world.call('POST /api/v1/query', { body })).rejects.toThrow()
    }
  })

  test('keeps markup and control characters in names unchanged, and out of headers and paths', async () => {
    const segment = `<img src=x onerror=alert(1)>\u0000\r\nx: y`
    const body = search({ segment })

    expect(await problemOf(world.call('POST /api/v1/query', { body }))).toMatchObject({ status: 400 })
    const found = await world.call('GET /api/v1/words', {
      query: { shard: 's1', kind: 'area', segment: '../../status' },
    })
    expect(found.words).toEqual([])
  })
})

describe('a write', () => {
  const night = { propertyId: 'h19', roomType: 'double', date: DAYS[5] as string }
  const write = (more: object = {}) => ({
    shard: 's1',
    command: 'SETROOMAVL',
    fields: { ...night, amount: 7 },
    write: true,
    ...more,
  })

  test('needs an operator and write mode, and is audited before and after', async () => {
    for (const principal of [VIEWER, CLIENT]) {
      const refused = await problemOf(world.call('POST /api/v1/query', { body: write() }, principal))
      expect(refused).toMatchObject({ status: 403, code: 'forbidden' })
    }
    const off = await problemOf(world.call('POST /api/v1/query', { body: write({ write: false }) }))
    expect(off).toMatchObject({ status: 400, code: 'write-mode-off' })
    expect(world.notes.map(({ result }) => result)).toEqual(['refused', 'refused', 'refused'])
    expect((await client.getPackage(night)).availability).not.toBe(7)

    const answer = await world.call('POST /api/v1/query', { body: write() })

    expect(answer.result).toEqual({ availability: 7 })
    expect(world.notes.slice(3).map(({ action, target, result }) => `${action} ${target} ${result}`)).toEqual([
      'query.write s1: SETROOMAVL asked',
      'query.write s1: SETROOMAVL done',
    ])
    expect((await client.getPackage(night)).availability).toBe(7)
  })

  test('that the node refuses is audited as failed', async () => {
    const body = write({ command: 'DECROOMAVL', fields: { ...night, amount: 200 } })

    expect(await problemOf(world.call('POST /api/v1/query', { body }))).toMatchObject({
      status: 409,
      code: 'wire-underflow',
    })
    expect(world.notes.map(({ result }) => result)).toEqual(['asked', 'failed'])
  })

  test('that deletes needs the name of its object as confirmation', async () => {
    await client.setProperty(property('doomed', 1))
    await client.setPackage({ propertyId: 'doomed', roomType: 'double', date: FIRST, availability: 1, finalPrice: 1 })
    await client.setPackage({ propertyId: 'doomed', roomType: 'triple', date: SECOND, availability: 1, finalPrice: 1 })
    const body = { shard: 's1', command: 'DELPROP', fields: { propertyId: 'doomed' } }

    const answer = await world.call('POST /api/v1/query/preview', { body }, VIEWER)
    expect(answer).toMatchObject({ confirm: 'doomed', removes: { properties: 1, packages: 2 } })

    const request = { ...body, write: true }
    expect(await problemOf(world.call('POST /api/v1/query', { body: request }))).toMatchObject({
      code: 'not-confirmed',
    })
    expect(await client.propertyExists({ propertyId: 'doomed' })).toBe(true)
    await world.call('POST /api/v1/query', { body: { ...request, confirm: 'doomed' } })
    expect(await client.propertyExists({ propertyId: 'doomed' })).toBe(false)
  })

  test('is previewed with old and new values', async () => {
    const changesOf = async (command: string, fields: object) =>
      (await world.call('POST /api/v1/query/preview', { body: { shard: 's1', command, fields } })).changes.map(
        ({ what, before, after }) => `${what}: ${before} → ${after}`,
      )
    const of = { propertyId: 'h2', roomType: 'double', date: FIRST }

    expect(await changesOf('DECROOMAVL', { ...of, amount: 1 })).toEqual(['availability: 3 → 2'])
    expect(await changesOf('DECROOMAVL', { ...of, amount: 9 })).toEqual(['availability: 3 → null'])
    expect(await changesOf('SETROOMPKG', { ...of, finalPrice: 1 })).toEqual(['finalPrice: 11000 → 1'])
    expect(await changesOf('SETROOMPKG', { ...of, roomType: 'hut', finalPrice: 1 })).toEqual([
      'availability: null → 0',
      'finalPrice: null → 1',
      'rateFeatures: null → ',
    ])
    expect(await changesOf('SETPROP', { ...property('h2', 2), stars: 5 })).toEqual(['stars: 3 → 5'])
    expect(await changesOf('DELROOMDAY', of)).toEqual([`double, ${FIRST}: 3 left, 11000 → null`])
    expect(await changesOf('DELSEGMENT', { segment: 'nowhere' })).toEqual(['nowhere: null → null'])
    expect(await changesOf('DELSEGMENT', { segment: 'Vienna' })).toEqual(['Vienna: 20 properties, 121 packages → null'])
  })
})

describe('completion', () => {
  const words = async (query: object) => {
    const { words, more } = await world.call('GET /api/v1/words', { query: { shard: 's1', ...query } })
    return [...words.map(({ word, properties }) => `${word} ${properties}`), ...(more ? ['…'] : [])]
  }

  test('counts names by segment', async () => {
    expect(await words({ kind: 'segment' })).toEqual(['Vienna 20'])
    expect(await words({ kind: 'area', segment: 'Vienna' })).toEqual(['Centre 10', 'Prater 10'])
    expect(await words({ kind: 'area', segment: 'Vienna', prefix: 'Pr' })).toEqual(['Prater 10'])
    expect(await words({ kind: 'room_type' })).toEqual(['double 20', 'suite 1'])
    expect(await words({ kind: 'amenity', limit: 1 })).toEqual(['lift 10', '…'])
    expect(await words({ kind: 'rate_feature' })).toEqual(TEST_CODECS.map((name) => `${name} null`))
  })

  test('finds properties by a prefix of their id, and beyond the limit by the whole id', async () => {
    expect(await words({ kind: 'property', segment: 'Vienna', prefix: 'h1' })).toContain('h1 null')
    expect(await words({ kind: 'property', segment: 'Vienna', prefix: 'h19' })).toEqual(['h19 null', '…'])
    expect(
      await problemOf(world.call('GET /api/v1/words', { query: { shard: 's1', kind: 'property' } })),
    ).toMatchObject({
      code: 'segment-missing',
    })
  })
})

test('packages of a segment are counted by night; an unknown segment has none', async () => {
  const days = (segment: string) => world.call('GET /api/v1/segment-days', { query: { shard: 's1', segment } })

  expect(await days('Vienna')).toMatchObject({
    segment: 'Vienna',
    window: { from: FIRST, to: DAYS.at(-1) },
    packages: [21, 20, 20, 20, 20, 20],
  })
  for (const segment of ['Vienn', 'Viennaa', 'V', '../../status?x=1&y', '\ud83d']) {
    expect(await days(segment)).toMatchObject({ window: null, packages: [] })
  }
})

test('attributes of properties are returned by id, with unknown ids listed', async () => {
  const ids = [
    'h1',
    'h1',
    'unknown',
    'a,b',
    '<b>',
    'x'.repeat(40),
    ...Array.from({ length: 300 }, (_, n) => `n${n}`),
    'h2',
  ]

  const answer = await world.call('POST /api/v1/query/properties', { body: { shard: 's1', ids } })

  expect(answer.properties.map(({ id, stars, room_types }) => [id, stars, room_types])).toEqual([
    ['h1', 2, ['double']],
    ['h2', 3, ['double']],
  ])
  expect(answer.missing).toHaveLength(304)
})

test('the page opens with a query that has results', async () => {
  const start = await world.call('GET /api/v1/playground', { query: { shard: 's1' } })

  expect(start.missing).toEqual([])
  expect(start.shard).toMatchObject({ id: 's1', rateFeatures: TEST_CODECS, datesMax: 14, queryLimit: 10 })
  expect(start.shard?.nodes).toMatchObject([{ id: 'n1', tcp: `${node.host}:${node.tcpPort}` }])
  const body = { shard: 's1', ...start.shard?.example }
  const fields = { segment: 'Vienna', roomType: 'double', order: 1, count: 1 }
  expect(body).toMatchObject({ command: 'SEARCHAVAIL', fields })
  expect((await world.call('POST /api/v1/query', { body })).count).toBeGreaterThan(0)
})

describe('why not', () => {
  const why = (property: string, fields: object = {}) =>
    world.call('POST /api/v1/query/why-not', { body: { ...search(fields), property } })

  test('lists each condition that is not met', async () => {
    const explained = await why('h3', { stars: 5, rateFeatures: ['refundable', 'breakfast'], area: 'Prater' })

    expect(explained).toMatchObject({ verdict: 'filtered', node: 'n1' })
    expect(
      explained.checks.map(({ ok, date, message }) => `${ok ? '✓' : '✗'} ${date === null ? '' : `${date} `}${message}`),
    ).toEqual([
      '✓ segment Vienna',
      '✓ area Prater',
      '✗ stars 4, required 5',
      '✓ has double',
      `✗ ${FIRST} 0 left, at least 1 required`,
      `✓ ${FIRST} refundable`,
      `✗ ${FIRST} no breakfast`,
      `✓ ${SECOND} 4 left, at least 1 required`,
      `✓ ${SECOND} refundable`,
      `✗ ${SECOND} no breakfast`,
    ])
    // It used to advise to omit all dates.
    expect(explained.wouldMatchIf).toEqual([
      'stars were 4',
      'at least 0 rooms were required',
      'breakfast were not required',
    ])
    const mended = { stars: 4, rateFeatures: ['refundable'], area: 'Prater', availability: 0 }
    expect((await why('h3', mended)).verdict).toBe('in-result')
  })

  test('reports the position of a match, even beyond the limit', async () => {
    // The engine may reorder its rows meanwhile: then both are read again.
    const both = async (nth: number, limit: object) => {
      const dates = [FIRST, SECOND]
      const stays = await client.searchAvailability({ segment: 'Vienna', roomType: 'double', dates })
      const { verdict, rank } = await why(stays[nth]?.propertyId as string, limit)
      return { verdict, place: rank?.place, limit: rank?.limit, ofAtLeast: rank?.ofAtLeast }
    }
    await expect.poll(() => both(0, {})).toEqual({ verdict: 'in-result', place: 1, limit: 10, ofAtLeast: true })
    await expect.poll(() => both(1, { limit: 1 })).toMatchObject({ verdict: 'beyond-limit', place: 2, limit: 1 })
    const hidden = async () => {
      const found = await client.searchAvailability({ segment: 'Vienna', roomType: 'double', dates: [FIRST, SECOND] })
      const ids = found.map(({ propertyId }) => propertyId)
      return why(DOUBLES.find((id) => id !== 'h3' && !ids.includes(id)) as string)
    }
    await expect.poll(hidden).toMatchObject({ verdict: 'beyond-limit', rank: { place: 11 } })
    expect(await why('h18', { availability: 3 })).toMatchObject({ verdict: 'in-result', rank: { ofAtLeast: false } })
  })

  test('finds a property in another shard, or nowhere', async () => {
    expect(await why('elsewhere')).toMatchObject({ verdict: 'elsewhere', foundIn: ['s2'] })
    expect(await why('never')).toMatchObject({ verdict: 'nowhere', foundIn: [], missing: [] })
    expect(await problemOf(why('not a property id'))).toMatchObject({ status: 400 })
    expect(await why('a,b')).toMatchObject({ verdict: 'nowhere' })
  })

  test('is always consistent: in the result ⇔ explained as matching', { timeout: 240_000 }, async () => {
    const random = seeded(Number(process.env['VACANCY_SEED'] ?? 20_261_122))
    const pick = <T>(values: readonly T[]) => values[Math.floor(random() * values.length)] as T
    const verdicts = new Set<string>()
    for (let n = 0; n < 150; n++) {
      const forStay = random() < 0.7
      const fields: { [name: string]: unknown } = { segment: pick(['Vienna', 'Vienna', 'Vienna', 'Graz']) }
      const maybe = (name: string, value: unknown, chance = 0.25) => {
        if (random() < chance) fields[name] = value
      }
      if (forStay) {
        fields['roomType'] = pick(['double', 'double', 'suite', 'hut'])
        fields['dates'] = DAYS.slice(0, 1 + Math.floor(random() * DAYS.length))
        maybe('availability', pick([0, 1, 2, 3, 4]))
        maybe('finalPrice', pick([10_000, 12_000, 15_000, 4_294_967_295]))
        maybe('minPrice', pick([0, 10_500, 15_000]))
        maybe('rateFeatures', pick([['breakfast'], ['refundable'], ['breakfast', 'sea_view']]))
        maybe('propertyId', pick(['h1', 'h2']), 0.1)
        maybe('maxTotal', pick([10_000, 24_000, 45_000]))
        maybe('minTotal', pick([10_000, 24_000]), 0.1)
        if (random() < 0.25) {
          delete fields['roomType']
          Object.assign(fields, pick([{ anyRoomType: 1 }, { roomTypes: ['suite', 'hut'] }]))
        } else maybe('order', 1)
      }
      maybe('area', pick(['Centre', 'Prater', 'none']))
      maybe('propertyType', pick(['hotel', 'flat']))
      maybe('stars', pick([1, 2, 3, 4, 5]))
      maybe('minStars', pick([1, 2, 3, 4, 5]))
      maybe('category', pick(['city', 'beach']))
      maybe('amenities', pick([['wifi'], ['lift', 'wifi'], ['pool'], []]))
      const { latitude, longitude } = PLACE
      if (random() < 0.15)
        Object.assign(fields, {
          south: latitude - 0.01,
          north: latitude + 0.01,
          west: longitude,
          east: longitude + 0.02,
        })
      if (random() < 0.25)
        Object.assign(fields, PLACE, random() < 0.5 ? { radiusMetres: pick([500, 3_000, 20_000]) } : {})
      const property = `h${Math.floor(random() * 20)}`
      const body = { shard: 's1', command: forStay ? 'SEARCHAVAIL' : 'SEARCHPROP', fields }

      const found = async () => {
        const { result } = await world.call('POST /api/v1/query', { body })
        const { propertyIds, properties = [] } = result as {
          propertyIds?: string[]
          properties?: { propertyId: string }[]
        }
        return propertyIds ?? properties.map(({ propertyId }) => propertyId)
      }
      // The engine may reorder its rows meanwhile, so that other rows are within the limit.
      let ids = await found()
      let explained = await world.call('POST /api/v1/query/why-not', { body: { ...body, property } })
      for (let after = await found(); after.join() !== ids.join(); after = await found()) {
        ids = after
        explained = await world.call('POST /api/v1/query/why-not', { body: { ...body, property } })
      }

      const message = `${JSON.stringify(body)} ${property}: ${JSON.stringify(explained)}`
      expect(explained.verdict === 'in-result', message).toBe(ids.includes(property))
      expect(
        explained.checks.every(({ ok }) => ok),
        message,
      ).toBe(explained.verdict !== 'filtered')
      verdicts.add(explained.verdict)
    }
    expect([...verdicts].sort()).toEqual(['beyond-limit', 'filtered', 'in-result'])
  })

  test('finds the filter that excludes most results', async () => {
    const body = search({ area: 'Centre', stars: 4, rateFeatures: ['breakfast', 'refundable'] })

    const { tried } = await world.call('POST /api/v1/query/relax', { body })

    // Centre, four stars and breakfast: h8 and h18, whichever other filter is omitted.
    expect(tried[0]).toEqual({ field: 'rateFeatures', entry: 'refundable', count: 2, limited: false })
    expect(tried.find(({ field }) => field === 'area')?.count).toBe(0)
    // Four stars: h3 is sold out.
    const elsewhere = { south: 10, west: 10, north: 11, east: 11 }
    const boxed = await world.call('POST /api/v1/query/relax', { body: search({ stars: 4, ...elsewhere }) })
    expect(boxed.tried[0]).toMatchObject({ field: 'south', count: 3 })
  })

  test('counts beside the filters are those of the searches with each value', async () => {
    const given = { stars: 4, amenities: ['wifi'], rateFeatures: ['breakfast'] }
    const { filters } = await world.call('POST /api/v1/query/counts', { body: search({ ...given, limit: 1 }) })

    expect(filters.map(({ field }) => field).sort()).toEqual(
      ['amenities', 'area', 'category', 'propertyType', 'rateFeatures', 'stars'].sort(),
    )
    const lists: { readonly [field: string]: readonly string[] } = given as never
    for (const { field, values } of filters) {
      expect(values.length, field).toBeGreaterThan(0)
      for (const { value, count } of values) {
        const list = ['amenities', 'rateFeatures'].includes(field) && [...new Set([...(lists[field] ?? []), value])]
        const fields = { ...given, [field]: list || (field === 'stars' ? Number(value) : value), count: 1, order: 1 }
        const { result } = await world.call('POST /api/v1/query', { body: search(fields) })
        expect(Number((result as { page: { matches: number } }).page.matches), `${field} ${value}`).toBe(count)
      }
    }
  })

  test('the lowest totals by arrival are those of the searches from each day', async () => {
    const filters = { stars: 4, rateFeatures: ['breakfast'] }
    const { days, nights } = await world.call('POST /api/v1/query/arrivals', { body: search({ ...filters, limit: 1 }) })

    expect(nights).toBe(2)
    const arrivals = days.map(({ arrival }) => parseDay(arrival) as number)
    const [first = 0] = arrivals
    // From today on: midnight may pass meanwhile.
    expect([TODAY, TODAY + 1]).toContain(first)
    expect(arrivals).toEqual(Array.from({ length: TODAY + 1 + 13 - first + 1 }, (_, n) => first + n))
    for (const { arrival, total, properties } of days) {
      const dates = [arrival, formatDay((parseDay(arrival) as number) + 1)]
      const { result } = await world.call('POST /api/v1/query', {
        body: search({ ...filters, dates, order: 1, want: 1 }),
      })
      const found = (result as { properties: { total: number }[] }).properties
      expect([total, properties], arrival).toEqual([found[0]?.total ?? null, found.length])
    }
    expect(days.some(({ total }) => total === null) && days.some(({ total }) => total !== null)).toBe(true)
  })
})

describe('history', () => {
  test('runs of a person are stored, found, pinned and deleted; runs of a token are not stored', async () => {
    const principal = { ...PERSON, id: 'p9' }
    await world.call('POST /api/v1/query', { body: search({ area: 'Centre' }) }, principal)
    await problemOf(world.call('POST /api/v1/query', { body: search({ stars: 9 }) }, principal))
    await world.call('POST /api/v1/query', { body: { ...search(), keep: false } }, principal)
    await world.call('POST /api/v1/query', { body: search() }, CLIENT)

    const { entries, total } = await world.call('GET /api/v1/history', {}, principal)
    expect(total).toBe(2)
    expect(entries.map(({ ok, count, error }) => ({ ok, count, error: error.split(':')[0] }))).toEqual([
      { ok: false, count: null, error: 'wire-validation-error' },
      { ok: true, count: 10, error: '' },
    ])
    const older = entries[1] as (typeof entries)[number]
    const pinned = await world.call(
      'PUT /api/v1/history/{id}',
      { params: { id: older.id }, body: { pinned: true } },
      principal,
    )
    expect(pinned.pinned).toBe(true)
    expect((await world.call('GET /api/v1/history', { query: { search: 'CENTRE' } }, principal)).entries).toEqual([
      pinned,
    ])
    expect((await world.call('GET /api/v1/history', { query: { search: '%' } }, principal)).entries).toEqual([])
    const foreign = { params: { id: older.id }, body: { pinned: false } }
    expect(await problemOf(world.call('PUT /api/v1/history/{id}', foreign, VIEWER))).toMatchObject({ status: 404 })
    await world.call('DELETE /api/v1/history', {}, principal)
    expect((await world.call('GET /api/v1/history', {}, principal)).entries).toEqual([pinned])
  })
})

test('a silent node does not delay the results of the others, which used to take five seconds', async () => {
  const silent: Server = createServer((socket) => void socket.on('error', () => {}))
  await new Promise<void>((done) => silent.listen(0, '127.0.0.1', () => done()))
  const tcpPort = (silent.address() as AddressInfo).port
  const shard = await openPlayground([
    { ...node, id: 'n1' },
    { ...node, id: 'n2', tcpPort },
  ])
  const body = { shard: 's1', command: 'GETSEGMENTS', fields: {}, waitMs: 800 } as const
  // Connects to the responding node first, so that a busy machine does not time out.
  await shard.call('POST /api/v1/query', { body: { ...body, node: 'n1' } })

  const { nodes, answered, queried } = await shard.call('POST /api/v1/query/replicas', { body })

  expect([answered, queried]).toEqual([1, 2])
  expect(nodes.find(({ node: id }) => id === 'n2')?.error).toBe('no response within 800 ms')
  expect(nodes.find(({ node: id }) => id === 'n1')?.error).toBe('')
  await shard.close()
  silent.close()
})

test('replicas are compared at the log index of their results', async () => {
  const shard = await openPlayground([{ ...node, id: 'n1' }])

  const body = { shard: 's1', command: 'SEARCHPROP', fields: { segment: 'nowhere' } } as const
  // Connects first, so that a busy machine does not time out.
  await shard.call('POST /api/v1/query', { body: { ...body, node: 'n1' } })

  const { nodes } = await shard.call('POST /api/v1/query/replicas', { body: { ...body, waitMs: 800 } })

  expect(nodes).toMatchObject([{ node: 'n1', error: '', index: expect.stringMatching(/^\d+$/) }])
  await shard.close()
})

describe('a node with a different protocol', () => {
  const GARBAGE = Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')

  async function behind(answer: (socket: Socket) => void, http = '[]') {
    const tcp: Server = createServer(answer)
    const api = createHttpServer((_, response) => response.end(http))
    await Promise.all(
      [tcp, api].map((server) => new Promise<void>((done) => server.listen(0, '127.0.0.1', () => done()))),
    )
    const portOf = (server: Pick<Server, 'address'>) => (server.address() as AddressInfo).port
    const apiUrl = `http://127.0.0.1:${portOf(api)}`
    const strange = await openPlayground([{ id: 'x', apiUrl, host: '127.0.0.1', tcpPort: portOf(tcp) }])
    const close = async () => {
      await strange.close()
      tcp.close()
      api.close()
    }
    return { call: strange.call, close }
  }

  const strangers: readonly (readonly [string, (socket: Socket) => void])[] = [
    ['never responds', () => {}],
    ['sends invalid data', (socket) => socket.end(GARBAGE)],
    ['closes the connection', (socket) => socket.destroy()],
  ]
  test.each(strangers)('that %s is reported with its id, within the timeout', async (_, answer) => {
    const { call, close } = await behind((socket) => {
      socket.on('error', () => {})
      answer(socket)
    })
    const startedMs = performance.now()
    const body = { command: 'GETSEGMENTS', fields: {} }

    const refused = await problemOf(call('POST /api/v1/query', { body }))
    const replicas = await call('POST /api/v1/query/replicas', { body: { ...body, waitMs: 800 } })

    expect(refused).toMatchObject({ status: 502, code: 'node-unreachable' })
    expect(refused.message).toContain('x')
    expect(replicas).toMatchObject({ answered: 0, queried: 1, equal: false })
    expect(replicas.nodes[0]?.error).not.toBe('')
    expect(performance.now() - startedMs).toBeLessThan(10_000)
    await close()
  })

  test('and responds to HTTP with invalid data is reported with its response', async () => {
    const { call, close } = await behind((socket) => socket.destroy(), '<html>hello</html>')

    const words = await problemOf(call('GET /api/v1/words', { query: { kind: 'segment' } }))
    const attributes = await problemOf(call('POST /api/v1/query/properties', { body: { ids: ['h1'] } }))
    const start = await call('GET /api/v1/playground')

    expect(words).toMatchObject({ status: 502, code: 'node-answer' })
    expect(attributes).toMatchObject({ status: 502, code: 'node-answer' })
    expect(start.shard).toMatchObject({ rateFeatures: [], datesMax: null, example: null })
    expect(start.missing.map(({ source }) => source)).toEqual(['rate features', 'example'])
    await close()
  })
})

describe('segments and properties', () => {
  test('a page of segments has areas and packages by night, and the next page continues after it', async () => {
    const params = { shard: 's1' }
    const page = await world.call('GET /api/v1/shards/{shard}/segments', { params })

    expect(page).toMatchObject({ shard: 's1', node: 'n1', more: false })
    expect(page.window).toEqual({ from: FIRST, to: DAYS.at(-1) })
    const vienna = page.segments.find(({ name }) => name === 'Vienna')
    expect(vienna).toMatchObject({ areas: 2, packages: 20 * DAYS.length + 1 })
    expect(vienna?.nights[0]).toBe(21)
    const after = await world.call('GET /api/v1/shards/{shard}/segments', { params, query: { after: 'Vienna' } })
    expect(after.segments.map(({ name }) => name)).not.toContain('Vienna')
  })

  test('all properties of a segment are listed although a reply holds ten, with filters and without', async () => {
    const list = (query: object = {}) =>
      world.call('GET /api/v1/shards/{shard}/segments/{segment}/properties', {
        params: { shard: 's1', segment: 'Vienna' },
        query,
      })
    const idsOf = ({ properties }: Awaited<ReturnType<typeof list>>) => properties.map(({ id }) => id)

    const all = await list()
    expect(all.more).toBe(false)
    expect(all.total).toBe(all.properties.length)
    expect(idsOf(all)).toEqual(expect.arrayContaining(DOUBLES))
    expect(idsOf(all)).toEqual([...idsOf(all)].sort())
    const prater = await list({ area: 'Prater' })
    expect(idsOf(prater)).toEqual(all.properties.filter(({ area }) => area === 'Prater').map(({ id }) => id))
    const starred = await list({ stars: '3', amenity: 'lift' })
    const wanted = all.properties.filter(({ stars, amenities }) => stars >= 3 && amenities.includes('lift'))
    expect(idsOf(starred)).toEqual(wanted.map(({ id }) => id))
    const none = await world.call('GET /api/v1/shards/{shard}/segments/{segment}/properties', {
      params: { shard: 's1', segment: 'nowhere' },
    })
    expect(none).toMatchObject({ total: null, properties: [], more: false })
  })

  test('a calendar has sold-out nights, leaves out nights without a package, and names its index', async () => {
    const read = (property: string, query: object = {}) =>
      world.call('GET /api/v1/shards/{shard}/properties/{property}', { params: { shard: 's1', property }, query })

    const sold = await read('h3', { from: FIRST })
    expect(sold.rooms).toHaveLength(1)
    expect(sold.rooms[0]?.nights.map(({ date }) => date)).toEqual(DAYS)
    expect(sold.rooms[0]?.nights[0]).toEqual({
      date: FIRST,
      availability: 0,
      price: 11_500,
      features: ['refundable'],
    })
    expect(sold.window).toEqual({ from: FIRST, to: DAYS.at(-1) })
    expect(Number(sold.index?.from)).toBeGreaterThan(0)

    const two = await read('h4', { from: FIRST, nights: '2' })
    expect(two.rooms.map(({ room, nights }) => [room, nights.length])).toEqual([
      ['double', 2],
      ['suite', 1],
    ])
    expect((await problemOf(read('h99'))).code).toBe('property-not-found')
    expect((await problemOf(read('h4', { node: 'n9' }))).code).toBe('node-not-found')
  })

  test('a calendar waits for the index of a write', async () => {
    const edited = { propertyId: 'h4', roomType: 'suite', date: FIRST, finalPrice: 80_000, wantIndex: 1 }
    const body = { shard: 's1', command: 'SETROOMPKG', fields: edited, write: true, keep: false } as const
    const { result } = await world.call('POST /api/v1/query', { body })
    const params = { shard: 's1', property: 'h4' }

    const after = await world.call('GET /api/v1/shards/{shard}/properties/{property}', {
      params,
      query: { from: FIRST, atLeast: String(result['index']) },
    })
    expect(after.rooms.find(({ room }) => room === 'suite')?.nights[0]).toMatchObject({
      price: 80_000,
      availability: 2,
    })
    expect(world.notes.map(({ action }) => action)).toEqual(['query.write', 'query.write'])
    expect(world.notes.at(-1)?.result).toBe('done')
    const restored = { ...body, fields: { ...edited, finalPrice: 90_000 } }
    await world.call('POST /api/v1/query', { body: restored })
  })

  test('replicas that differ name the cells; a shard with one node is equal to itself', async () => {
    const params = { shard: 's1', property: 'h4' }
    const one = await world.call('GET /api/v1/shards/{shard}/properties/{property}/replicas', { params })
    expect(one).toMatchObject({ equal: true, answered: 1, differences: [] })

    // Two nodes that are not replicas of each other.
    const far = await connect({ host: other.host, port: other.tcpPort })
    await far.setProperty(property('h4', 4))
    await far.setPackage({ propertyId: 'h4', roomType: 'suite', date: FIRST, availability: 2, finalPrice: 70_000 })
    await far.close()
    const apart = await openPlayground([
      { ...node, id: 'n1' },
      { ...other, id: 'n2' },
    ])
    const answer = await apart.call('GET /api/v1/shards/{shard}/properties/{property}/replicas', {
      params,
      query: { from: FIRST },
    })
    await apart.close()
    expect(answer).toMatchObject({ equal: false, answered: 2, differencesCut: false })
    const suite = answer.differences.find(({ room, date }) => room === 'suite' && date === FIRST)
    expect(suite?.values.map((night) => night?.price)).toEqual([90_000, 70_000])
    expect(answer.differences.filter(({ room }) => room === 'double')).toHaveLength(DAYS.length)
    expect(answer.differences.every(({ room, values }) => room === 'suite' || values[1] === null)).toBe(true)
  })
})
