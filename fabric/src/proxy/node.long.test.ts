/** The proxy in front of a real node, over both protocols, and the examples of its page. */

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { connect } from '@vacancy/client'
import { dateIn, type NodeProcess, removeFolder, startNodeProcess, temporaryFolder } from '@vacancy/testkit/node'
import { eventually } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { JSON_COMMANDS } from './commands.ts'
import { API_LIMITS } from './exchange.ts'
import { STATUS_OF_CODE } from './status.ts'
import { type Answer, openHttp2, postHttp2, startTestProxy, type TestProxy } from './testing/start.ts'
import { parseApiTokens } from './tokens.ts'

const PAGE = readFileSync(path.join(import.meta.dirname, '../../../docs/proxy.md'), 'utf8')
const HOW_TO = readFileSync(path.join(import.meta.dirname, '../../../docs/integrators.md'), 'utf8')

let folder: string
let node: NodeProcess
let proxy: TestProxy

beforeAll(async () => {
  folder = temporaryFolder()
  node = await startNodeProcess({ folder })
  proxy = await startTestProxy({ mode: 'standalone', upstream_port: node.tcpPort })
  await eventually(async () => expect((await proxy.get('/ready')).status).toBe(200), { timeout: 10_000 })
})

afterAll(async () => {
  await proxy?.stop()
  await node?.stop()
  removeFolder(folder)
})

const [DAY, NEXT] = [dateIn(3), dateIn(4)]

const property = (id: string, segment: string) => ({
  segment,
  area: 'old "town"',
  property_id: id,
  property_type: 'hotel',
  category: 'standard',
  stars: 3,
  latitude: 47.1,
  longitude: 11.2,
})

test('pages of a list are the same over HTTP and from the client, in order, each property once', async () => {
  const segment = 'pages'
  const prices = [50, 20, 90, 20, 70, 30, 60]
  for (const [n, price] of prices.entries()) {
    const id = `page-${n}`
    await proxy.post({ command: 'SETPROP', body: { ...property(id, segment), latitude: 47 + n / 1000 } })
    for (const date of [DAY, NEXT])
      for (const room_type of ['double', 'suite, large']) {
        const final_price = room_type === 'double' ? price : price + (n === 4 ? -60 : 1)
        await proxy.post({
          command: 'SETROOMPKG',
          body: { property_id: id, room_type, date, availability: 2, final_price },
        })
      }
  }
  const totals = prices.map((price, n) => ({ propertyId: `page-${n}`, total: 2 * price }))
  const wanted = totals.toSorted((a, b) => a.total - b.total || (a.propertyId < b.propertyId ? -1 : 1))
  const stay = { arrival: DAY, nights: 2 }
  const body = { segment, room_type: 'double', stay, order: 'total', limit: 3, count: true }
  const pages = []
  for (let cursor = ''; pages.length === 0 || cursor !== ''; ) {
    const { json } = await proxy.post({ command: 'SEARCHAVAIL', body: { ...body, cursor } })
    expect(json).toMatchObject({ status: 'success', matches: 7, index: expect.any(Number), more: json.cursor !== '' })
    pages.push(json.properties)
    cursor = json.cursor
  }
  expect(pages.map(({ length }) => length)).toEqual([3, 3, 1])
  expect(pages.flat().map(({ property_id, total }) => ({ propertyId: property_id, total }))).toEqual(wanted)
  expect(pages.flat()[0].days.map(({ date }: { date: string }) => date)).toEqual([DAY, NEXT])

  const client = await connect({ port: node.tcpPort })
  try {
    const fields = { segment, roomType: 'double', stay, order: 'total', limit: 3, count: true, compact: true } as const
    const found = []
    for await (const page of client.searchPages(fields)) {
      expect(page.matches).toBe(7)
      found.push(...page.properties.map(({ propertyId, total }) => ({ propertyId, total })))
    }
    expect(found).toEqual(wanted)
    const [cheapest] = await client.searchAvailability({ segment, stay, anyRoomType: true, limit: 1, rooms: 2 })
    expect(cheapest).toMatchObject({ propertyId: 'page-4', total: 20, roomType: 'suite, large' })
    const near = { latitude: 47.0061, longitude: 11.2 }
    const box = { south: 47.0025, west: 11, north: 47.0055, east: 12 }
    const inBox = await client.searchPropertyPage({ segment, order: 'distance', near, box, want: ['distance'] })
    expect(inBox.properties.map(({ propertyId }) => propertyId)).toEqual(['page-5', 'page-4', 'page-3'])
    expect(inBox.properties[0]?.distanceMetres).toBe(122)
    await expect(
      client.searchPage({ segment, roomType: 'suite, large', stay, order: 'total', cursor: await cursorOf(body) }),
    ).rejects.toMatchObject({ code: 'VALIDATION_ERROR', message: expect.stringContaining('cursor') })
  } finally {
    await client.close()
  }
})

const cursorOf = async (body: object): Promise<string> =>
  (await proxy.post({ command: 'SEARCHAVAIL', body })).json.cursor

test.each(['http1', 'http2'])('every command over %s', async (proto) => {
  const session = proto === 'http2' ? await openHttp2(proxy.url) : undefined
  const used = new Set<string>()
  const run = async (command: string, body?: object): Promise<Answer> => {
    used.add(command)
    const request = body ? { command, body } : { command }
    return session ? await postHttp2(session, request) : await proxy.post(request)
  }
  const ok = async (command: string, body?: object) => {
    const { status, json } = await run(command, body)
    expect(json).toMatchObject({ status: 'success' })
    expect(status).toBe(200)
    const { status: _, ...rest } = json
    return rest
  }
  const segment = `alpine-${proto}`
  const id = `p-"${proto}"`
  const [room, other] = ['double "à la carte"\\', 'suite']
  const on = (room_type: string, date: string) => ({ property_id: id, room_type, date })

  expect(await ok('GETCODECS')).toEqual({ rate_features: ['breakfast', 'refundable', 'sea_view'] })
  expect(await ok('SEARCHPROP', { segment })).toEqual({ properties: [] })
  expect(await ok('SEARCHAVAIL', { segment, room_type: room, date: DAY })).toEqual({ properties: [] })
  expect(await ok('SETPROP', property(id, segment))).toEqual({})
  expect(await ok('SEARCHPROP', { segment })).toEqual({ properties: [id] })
  await ok('SETPROP', property(`q-${proto}`, segment))
  expect((await ok('SEARCHPROP', { segment })).properties.toSorted()).toEqual([id, `q-${proto}`])
  expect((await ok('SEARCHPROP', { segment, limit: 1 })).properties.length).toBe(1)
  expect((await ok('GETSEGMENTS')).segments).toContainEqual({ segment, prop_count: 2, propCount: 2 })
  expect(await ok('PROPEXIST', { property_id: id })).toEqual({ exists: true })
  expect(await ok('PROPEXIST', { property_id: 'missing' })).toEqual({ exists: false })
  const features = ['breakfast', 'sea_view']
  await ok('SETROOMPKG', { ...on(room, DAY), availability: 5, final_price: 4_000_000_000, rate_features: features })
  await ok('SETROOMPKG', { ...on(room, NEXT), availability: 3, final_price: 90 })
  await ok('SETROOMPKG', { ...on(other, DAY), availability: 1 })
  const first = { date: DAY, availability: 5, final_price: 4_000_000_000, rate_feature: features }
  const second = { date: NEXT, availability: 3, final_price: 90, rate_feature: [] }
  expect(await ok('SEARCHAVAIL', { segment, room_type: room, date: [DAY, NEXT], type: 'hotel' })).toEqual({
    properties: [{ property_id: id, days: [first, second] }],
  })
  expect(await ok('SEARCHAVAIL', { segment, room_type: room, dates: DAY, rate_features: ['refundable'] })).toEqual({
    properties: [],
  })
  const window = { segment, room_type: room, from: DAY, to: NEXT, nights: 2, type: 'hotel' }
  const best = { total: 4_000_000_090, properties: 1, best: id }
  expect(await ok('PRICECAL', window)).toEqual({
    nights: 2,
    days: [
      { arrival: DAY, ...best },
      { arrival: NEXT, properties: 0 },
    ],
  })
  expect(await ok('SEARCHFLEX', { ...window, nights: 1, most_nights: 2, count: true, want: ['room_type'] })).toEqual({
    ...{ arrival_days: 2, matches: 1, more: false, cursor: '', index: expect.any(Number) },
    properties: [{ property_id: id, arrival: NEXT, nights: 1, total: 90, room_type: room }],
  })
  expect(await run('PRICECAL', { ...window, weekdays: ['friday'] })).toMatchObject({
    status: 400,
    json: { message: 'weekdays must be a list of mon, tue, wed, thu, fri, sat or sun, got "friday"' },
  })
  expect(await ok('GETPROPROOMDAY', on(room, DAY))).toEqual({ property_id: id, ...first })
  expect(await ok('PROPROOMEXIST', { property_id: id, room_type: room })).toEqual({ exists: true })
  expect((await ok('PROPROOMLIST', { property_id: id })).room_types.toSorted()).toEqual([room, other].toSorted())
  expect(await ok('PROPROOMDATELIST', { property_id: id, room_type: room })).toEqual({ dates: [DAY, NEXT] })
  const zero = await ok('SETROOMAVL', { ...on(room, DAY), amount: 0, want_index: true })
  expect(zero).toEqual({ availability: 0, index: expect.any(Number) })
  const as_of = zero.index
  expect(await ok('SETROOMAVL', { ...on(room, DAY), amount: 0, as_of })).toEqual({ availability: 0 })
  expect(await ok('INCROOMAVL', { ...on(room, DAY), amount: 255 })).toEqual({ availability: 255 })
  expect(await run('INCROOMAVL', { ...on(room, DAY), amount: 1 })).toMatchObject({
    status: 400,
    json: { code: 'OVERFLOW' },
  })
  expect(await ok('DECROOMAVL', { ...on(room, DAY), amount: 200 })).toEqual({ availability: 55 })
  expect(await run('DECROOMAVL', { ...on(room, DAY), amount: 56 })).toMatchObject({
    status: 400,
    json: { code: 'UNDERFLOW' },
  })
  const lines = [{ property_id: id, room_type: room, arrival: DAY, nights: 2, rooms: 2 }]
  const stay = { stay_id: `order-${proto}`, lines }
  const held = await ok('HOLDSTAY', { ...stay, seconds: 60, max_total: 9_000_000_000, want_index: true })
  expect(held).toMatchObject({ state: 'held', total: 2 * 4_000_000_000 + 2 * 90 })
  expect(held).toMatchObject({ deadline: expect.stringMatching(/Z$/), applied_index: held.index })
  expect(held.lines).toEqual([
    {
      ...lines[0],
      days: [
        { date: DAY, left: 53, final_price: 4_000_000_000, rate_feature: features },
        { date: NEXT, left: 1, final_price: 90, rate_feature: [] },
      ],
    },
  ])
  expect(await run('BOOKSTAY', { stay_id: `late-${proto}`, lines })).toMatchObject({
    status: 409,
    json: { code: 'SOLD_OUT', message: `SOLD_OUT: line=0 date=${NEXT} left=1 wanted=2` },
  })
  const { deadline: _, applied_index, ...rest } = held
  expect(await ok('CONFIRMSTAY', { stay_id: stay.stay_id })).toMatchObject({
    ...rest,
    state: 'booked',
    index: expect.any(Number),
  })
  expect((await ok('GETSTAY', { stay_id: stay.stay_id, min_index: applied_index })).state).toBe('booked')
  const listed = await ok('LISTSTAYS', { property_id: id, date: NEXT })
  expect(listed).toMatchObject({ cursor: '', stays: [{ stay_id: stay.stay_id, state: 'booked', lines }] })
  const released = await ok('RELEASESTAY', { stay_id: stay.stay_id })
  expect(released.state).toBe('released')
  expect(await run('BOOKSTAY', stay)).toMatchObject({ status: 409, json: { message: 'CONFLICT: state=released' } })
  const again = { ...stay, reinstate: true, released_at: released.index }
  const { index: booked_at } = await ok('BOOKSTAY', again)
  const late = { stay_id: stay.stay_id, booked_at: released.index }
  expect(await run('RELEASESTAY', late)).toMatchObject({ status: 409, json: { message: 'CONFLICT: state=booked' } })
  expect((await ok('RELEASESTAY', { stay_id: stay.stay_id, booked_at })).state).toBe('released')
  const unrecorded = { stay_id: `before-${proto}`, unrecorded: true, lines: [{ ...lines[0], rooms: 1 }] }
  expect((await ok('RELEASESTAY', unrecorded)).state).toBe('released')
  expect((await ok('RELEASESTAY', { stay_id: `never-${proto}`, void: true })).state).toBe('void')
  expect(await run('BOOKSTAY', { stay_id: 'x', lines: [{ ...lines[0], rooms: 'two' }] })).toMatchObject({
    status: 400,
    json: { code: 'VALIDATION_ERROR', message: 'lines[0].rooms must be a whole number from 1 to 255' },
  })
  await ok('DELROOMDAY', on(room, NEXT))
  expect(await ok('PROPROOMDATELIST', { property_id: id, room_type: room })).toEqual({ dates: [DAY] })
  await ok('DELPROPROOM', { property_id: id, room_type: other })
  await ok('DELPROPDAY', { property_id: id, date: DAY })
  expect(await run('GETPROPROOMDAY', on(room, DAY))).toMatchObject({ status: 400, json: { code: 'NOT_FOUND' } })
  await ok('DELPROP', { property_id: id })
  await ok('DELSEGMENT', { segment })
  expect(await run('DELSEGMENT', { segment })).toMatchObject({ status: 400, json: { code: 'NOT_FOUND' } })
  expect([...used].toSorted()).toEqual([...JSON_COMMANDS.keys()].toSorted())
  session?.destroy()
})

test('a search of 200 hits', async () => {
  const segment = 'many'
  const room = { room_type: 'double', date: DAY, availability: 2, final_price: 80, rate_features: ['breakfast'] }
  for (let i = 0; i < 200; i++) {
    await proxy.post({ command: 'SETPROP', body: property(`many-${i}`, segment) })
    await proxy.post({ command: 'SETROOMPKG', body: { property_id: `many-${i}`, ...room } })
  }

  const { json } = await proxy.post({ command: 'SEARCHAVAIL', body: { segment, room_type: 'double', date: DAY } })

  expect(json.properties.map((found: { property_id: string }) => found.property_id).toSorted()).toEqual(
    Array.from({ length: 200 }, (_, i) => `many-${i}`).toSorted(),
  )
  const days = [{ date: DAY, availability: 2, final_price: 80, rate_feature: ['breakfast'] }]
  for (const found of json.properties) expect(found.days).toEqual(days)
})

test('a write with a request key is executed once, and its reply names the index', async () => {
  const body = { property_id: 'keyed', room_type: 'r', date: DAY }
  await proxy.post({ command: 'SETPROP', body: property('keyed', 'keyed') })
  await proxy.post({ command: 'SETROOMPKG', body: { ...body, availability: 10 } })
  const write = {
    command: 'DECROOMAVL',
    body: { ...body, amount: 1, session: 'ab'.repeat(16), request_number: 1, want_index: true },
  }

  const [once, again] = [await proxy.post(write), await proxy.post(write)]

  expect(once.json).toMatchObject({ availability: 9, index: expect.any(Number) })
  expect(again.json.availability).toBe(9)
  expect((await proxy.post({ command: 'GETPROPROOMDAY', body })).json.availability).toBe(9)
})

test('an explained search', async () => {
  const { json } = await proxy.post({ command: 'SEARCHPROP', body: { segment: 'keyed', explain: 1 } })

  expect(json).toMatchObject({ properties: ['keyed'], explain: { rows_examined: expect.any(Number) } })
})

test('the examples of the page', async () => {
  const [, ...examples] = [...PAGE.matchAll(/```sh\n(.*?)```\n(?:\n```json\n(.*?)```)?/gs)]
  expect(examples.length).toBeGreaterThan(5)
  for (const [, command = '', wanted = ''] of examples) {
    // The feature of the sample is not in the list of this node.
    const own = (text: string) => text.replaceAll('includes_breakfast', 'breakfast')
    const { stdout } = await shell(`DAY=$(date -u +%F)\n${own(command)}`)
    expect(JSON.parse(stdout), command).toEqual(JSON.parse(own(wanted).replaceAll('2026-12-01', dateIn(0))))
  }
})

/** Runs lines of a page, with the proxy of this test. */
function shell(lines: string): Promise<{ stdout: string }> {
  const script = lines.replaceAll('http://localhost:8777', proxy.url).replaceAll('curl', 'curl -sS')
  return promisify(execFile)('bash', ['-ec', script], { cwd: folder })
}

test('pages are read, and a stay is held, confirmed and released, as the how-to sends it with curl', async () => {
  const stay = { property_id: 'hotel_123', room_type: 'double' }
  await proxy.post({ command: 'SETPROP', body: property('hotel_123', 'paris') })
  for (const night of [20, 21, 22])
    await proxy.post({
      command: 'SETROOMPKG',
      body: { ...stay, date: dateIn(night), availability: 3, final_price: 14_900 },
    })
  const [, pages = ''] = /```sh\n(NIGHT=.*?)```/s.exec(HOW_TO) ?? []
  for (const [property_id, final_price] of [
    ['near', 9000],
    ['far', 8000],
  ] as const) {
    await proxy.post({ command: 'SETPROP', body: property(property_id, 'tyrol') })
    for (const night of [7, 8]) {
      const body = { property_id, room_type: 'single', date: dateIn(night), availability: 1, final_price }
      await proxy.post({ command: 'SETROOMPKG', body })
    }
  }
  const second = JSON.parse((await shell(pages)).stdout)
  expect(second).toMatchObject({ matches: 2, more: false, cursor: '' })
  expect(second.properties).toEqual([{ property_id: 'near', total: 18_000, room_type: 'single' }])
  const [, lines = ''] = /```sh\n(ARRIVAL=.*?)```/s.exec(HOW_TO) ?? []
  const { stdout } = await shell(lines)
  const states = stdout
    .trim()
    .split(/(?<=\})\s*(?=\{"status)/)
    .map((text) => JSON.parse(text))

  expect(states).toMatchObject([
    { status: 'success', state: 'held', total: 89_400 },
    { status: 'success', state: 'booked', total: 89_400 },
    { status: 'success', state: 'released' },
  ])
})

test('the page names every status with its codes, valid tokens and the limits', () => {
  const rows = new Map(
    [...PAGE.matchAll(/^\| (\d{3}) \| ([^|]*) \|.*$/gm)].map(([row, status, codes]) => [`${status} ${codes}`, row]),
  )
  for (const [code, row] of Object.entries(STATUS_OF_CODE)) {
    const found = [...rows.keys()].some(
      (key) => key.startsWith(`${row.status} `) && key.includes(`\`${row.code ?? code}\``),
    )
    expect(found, code).toBe(true)
  }
  const auth = [...PAGE.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text as string)[1] as string
  expect(parseApiTokens(auth, 'auth.yml')).toMatchObject({ nodeToken: 'token-of-the-proxy', tokens: { length: 3 } })
  expect(PAGE).toContain(`| requests in flight of one connection | ${API_LIMITS.requestsPerConnection} |`)
  expect(PAGE).toContain(`| time for a request to arrive | ${API_LIMITS.requestMs / 1000} s |`)
})

test('/openapi.json describes every command and resolves its references', async () => {
  const document = JSON.parse((await proxy.get('/openapi.json')).text)
  const { schemas } = document.components

  for (const name of JSON_COMMANDS.keys()) {
    expect(schemas[`${name}Request`].properties.command).toEqual({ const: name })
    expect(schemas[`${name}Result`].required).toContain('status')
  }
  for (const [, name] of JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g)) {
    expect(schemas).toHaveProperty(name as string)
  }
  expect(schemas.SETPROPRequest.properties.body.required).not.toContain('amenities')
  expect(schemas.DECROOMAVLRequest.properties.body.properties.amount).toMatchObject({ minimum: 0, maximum: 255 })
})
