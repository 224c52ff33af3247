import { LIMITS } from '@vacancy/shared'
import type { StayLine } from '@vacancy/shared/wire'
import {
  ask,
  closeClient,
  dateIn,
  metric,
  type NodeProcess,
  openClient,
  post,
  removeFolder,
  somewhere,
  startNodeProcess,
  statusOf,
  succeed,
  temporaryFolder,
  type WireClient,
} from '@vacancy/testkit/node'
import { until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'

const folder = temporaryFolder()
let node: NodeProcess
let client: WireClient

async function connect(): Promise<void> {
  node = await startNodeProcess({ folder })
  client = await openClient(node)
}

beforeAll(async () => {
  await connect()
  await until('the shard has stays', async () => {
    const answer = await ask(client, 'GETSTAY', { stayId: 'none' })
    return (!answer.ok && answer.code === 'NOT_FOUND') || undefined
  })
})

afterAll(async () => {
  closeClient(client)
  await node.stop()
  removeFolder(folder)
})

const line = (propertyId: string, rest: Partial<StayLine> = {}): StayLine => ({
  propertyId,
  roomType: 'double',
  arrival: dateIn(3),
  nights: 3,
  rooms: 1,
  ...rest,
})

async function hotel(propertyId: string, rooms: number, nights = 3): Promise<void> {
  await succeed(client, 'SETPROP', somewhere(propertyId))
  for (let n = 0; n < nights; n++) {
    const night = { propertyId, roomType: 'double', date: dateIn(3 + n) }
    await succeed(client, 'SETROOMPKG', { ...night, availability: rooms, finalPrice: 100 + n })
  }
}

const leftOn = async (propertyId: string, n = 0) =>
  (await succeed(client, 'GETPROPROOMDAY', { propertyId, roomType: 'double', date: dateIn(3 + n) })) as {
    availability: number
  }

test('a stay is held, confirmed and released; each call may be repeated', async () => {
  await hotel('life', 5)
  const hold = { stayId: 'order-1', seconds: 900, maxTotal: 606, lines: [line('life', { rooms: 2 })] }

  const held = await succeed(client, 'HOLDSTAY', { ...hold, wantIndex: 1 })
  expect(held).toMatchObject({ state: 'held', total: 606, lines: [{ propertyId: 'life', rooms: 2 }] })
  expect(held).toMatchObject({ lines: [{ days: [0, 1, 2].map((n) => ({ date: dateIn(3 + n), availability: 3 })) }] })
  expect(await succeed(client, 'HOLDSTAY', hold)).toMatchObject({ state: 'held', total: 606 })

  const booked = await succeed(client, 'CONFIRMSTAY', { stayId: 'order-1' })
  expect(booked).toMatchObject({ state: 'booked', total: 606 })
  expect(booked).not.toHaveProperty('deadlineMs')
  expect(await succeed(client, 'CONFIRMSTAY', { stayId: 'order-1' })).toEqual(booked)
  expect(await succeed(client, 'BOOKSTAY', { stayId: 'order-1', lines: hold.lines })).toEqual(booked)
  expect(await succeed(client, 'GETSTAY', { stayId: 'order-1' })).toEqual(booked)

  expect(await succeed(client, 'RELEASESTAY', { stayId: 'order-1' })).toMatchObject({ state: 'released' })
  expect(await succeed(client, 'RELEASESTAY', { stayId: 'order-1' })).toMatchObject({ state: 'released' })
  expect((await leftOn('life')).availability).toBe(5)
})

test('a refusal names the night, leaves no record and takes nothing', async () => {
  await hotel('full', 2)
  await succeed(client, 'SETROOMAVL', { propertyId: 'full', roomType: 'double', date: dateIn(5), amount: 1 })

  expect(await ask(client, 'BOOKSTAY', { stayId: 'full-1', lines: [line('full', { rooms: 2 })] })).toEqual({
    ok: false,
    code: 'SOLD_OUT',
    message: `line=0 date=${dateIn(5)} left=1 wanted=2`,
  })
  expect(await ask(client, 'GETSTAY', { stayId: 'full-1' })).toMatchObject({ ok: false, code: 'NOT_FOUND' })
  expect((await leftOn('full')).availability).toBe(2)
})

test('a reply carries the index of the write where a call requests it, and reads wait for it', async () => {
  await hotel('index', 5)
  const lines = [line('index'), line('index', { nights: 1 })]

  const booked = (await succeed(client, 'BOOKSTAY', { stayId: 'index-1', lines, wantIndex: 1 })) as {
    appliedIndex: number
    index: number
  }

  expect(booked.appliedIndex).toBe(booked.index)
  expect(await succeed(client, 'GETSTAY', { stayId: 'index-1', minIndex: booked.appliedIndex })).toMatchObject({
    state: 'booked',
    lines,
  })
})

test('a late value of the source puts no sold room back on sale', async () => {
  await hotel('late', 5)
  const night = { propertyId: 'late', roomType: 'double', date: dateIn(3) }
  const written = (await succeed(client, 'SETROOMAVL', { ...night, amount: 5, wantIndex: 1 })) as { index: number }
  await succeed(client, 'BOOKSTAY', { stayId: 'late-1', lines: [line('late', { rooms: 2 })] })

  const late = { ...night, asOf: written.index }
  expect(await succeed(client, 'SETROOMAVL', { ...late, amount: 4 })).toMatchObject({ availability: 2 })
  await succeed(client, 'SETROOMPKG', { ...late, availability: 3 })
  expect((await leftOn('late')).availability).toBe(1)
  for (const asOf of [2 ** 52, 2n ** 64n - 1n])
    expect(await ask(client, 'SETROOMAVL', { ...night, amount: 4, asOf })).toMatchObject({ code: 'UNKNOWN_INDEX' })
  expect(await ask(client, 'SETROOMAVL', { ...night, amount: 4, asOf: 1 })).toMatchObject({ code: 'TOO_OLD' })
  expect(await ask(client, 'SETROOMPKG', { ...late, finalPrice: 3 })).toEqual({
    ok: false,
    code: 'VALIDATION_ERROR',
    message: 'asOf needs availability',
  })
  expect((await leftOn('late')).availability).toBe(1)
})

test('the stays of a night are listed, newest first, page by page', async () => {
  await hotel('listed', 9)
  for (const n of [1, 2, 3]) {
    const lines = [line('listed', { arrival: dateIn(2 + n), nights: 4 - n })]
    await succeed(client, 'BOOKSTAY', { stayId: `listed-${n}`, lines, source: `desk-${n}` })
  }
  const list = async (fields: object) =>
    (await succeed(client, 'LISTSTAYS', { propertyId: 'listed', ...fields })) as {
      stays: { stayId: string; source: string }[]
      cursor: string
    }

  const first = await list({ limit: 2 })
  expect(first.stays.map(({ stayId }) => stayId)).toEqual(['listed-3', 'listed-2'])
  expect((await list({ limit: 2, cursor: first.cursor })).stays).toMatchObject([
    { stayId: 'listed-1', source: 'desk-1' },
  ])
  expect((await list({ date: dateIn(3) })).stays.map(({ stayId }) => stayId)).toEqual(['listed-1'])
  expect((await list({ roomType: 'suite' })).stays).toEqual([])
  expect(await ask(client, 'LISTSTAYS', { propertyId: 'nowhere' })).toMatchObject({ code: 'NOT_FOUND' })
  expect(await ask(client, 'LISTSTAYS', { propertyId: 'listed', cursor: 'x' })).toMatchObject({
    code: 'VALIDATION_ERROR',
    message: 'Invalid cursor.',
  })
})

test('of many clients that want the last room, exactly one gets it', async () => {
  await hotel('last', 1, 1)
  const clients = await Promise.all(Array.from({ length: 40 }, () => openClient(node)))
  const calls = clients.flatMap((each, c) =>
    Array.from({ length: 25 }, (_, n) =>
      ask(each, 'BOOKSTAY', { stayId: `last-${c}-${n}`, lines: [line('last', { nights: 1 })] }),
    ),
  )

  const answers = await Promise.all(calls)

  expect(answers.filter(({ ok }) => ok)).toHaveLength(1)
  expect(new Set(answers.map((answer) => (answer.ok ? 'booked' : answer.code)))).toEqual(
    new Set(['booked', 'SOLD_OUT']),
  )
  expect((await leftOn('last')).availability).toBe(0)
  for (const each of clients) closeClient(each)
})

const lines = Array.from({ length: 16 }, () => line('life', { nights: 16 }))
test.each<[string, object, string]>([
  ['no property id', { lines: [line('')] }, 'line 0 has no valid property id'],
  ['a long property id', { lines: [line('x'.repeat(15))] }, 'line 0 has no valid property id'],
  ['no room type', { lines: [line('life', { roomType: '' })] }, 'line 0 has a room type that'],
  ['0 nights', { lines: [line('life', { nights: 0 })] }, 'line 0 must have 1 to 30 nights, got 0'],
  ['31 nights', { lines: [line('life', { nights: 31 })] }, 'line 0 must have 1 to 30 nights, got 31'],
  ['0 rooms', { lines: [line('life'), line('life', { rooms: 0 })] }, 'line 1 must have 1 to 255 rooms, got 0'],
  ['270 nights in all', { lines: [...lines.slice(1), line('life', { nights: 30 })] }, 'the lines have 270 nights'],
  ['a night in the past', { lines: [line('life', { arrival: '2020-02-29' })] }, 'a night lies outside the window'],
  ['a night after a year', { lines: [line('life', { arrival: dateIn(367) })] }, 'a night lies outside'],
  ['an invalid id', { stayId: ' x', lines: [line('life')] }, 'stayId must be a UUID'],
  ['itself replaced', { stayId: 'self', replaces: 'self', lines: [line('life')] }, 'a stay cannot replace itself'],
  ['a long source', { source: 'x'.repeat(33), lines: [line('life')] }, 'source '],
  [
    'an unknown feature',
    { rateFeatures: ['pony'], lines: [line('life')] },
    'rate feature pony is not in the codec list',
  ],
  ['half a request key', { requestNumber: 1, lines: [line('life')] }, 'a request key has both'],
])('a stay with %s is refused', async (_, fields, message) => {
  await hotel('life', 5)
  const answer = await ask(client, 'BOOKSTAY', { stayId: 'hostile', ...fields } as never)

  expect(answer).toMatchObject({ ok: false, code: 'VALIDATION_ERROR' })
  expect(answer.ok ? '' : answer.message).toContain(message)
})

test.each<[string, 'HOLDSTAY' | 'CONFIRMSTAY' | 'RELEASESTAY', object, string]>([
  ['9 seconds', 'HOLDSTAY', { seconds: 9, lines: [line('life')] }, 'seconds must be 10 to 86400, got 9'],
  ['a day and a second', 'HOLDSTAY', { seconds: 86_401, lines: [line('life')] }, 'seconds must be'],
  ['a total without retake', 'CONFIRMSTAY', { maxTotal: 1 }, 'maxTotal needs retake'],
  ['void and lines', 'RELEASESTAY', { void: 1, lines: [line('life')] }, 'void and lines exclude each other'],
  ['a switch of 2', 'RELEASESTAY', { void: 2 }, 'void must be 0 or 1'],
])('%s: %s is refused', async (_, command, fields, message) => {
  const answer = await ask(client, command, { stayId: 'hostile', ...fields } as never)

  expect(answer).toMatchObject({ ok: false, code: 'VALIDATION_ERROR' })
  expect(answer.ok ? '' : answer.message).toContain(message)
})

test('one line of many without a property, room type or package refuses the whole stay', async () => {
  await hotel('whole', 5)
  const refused = async (bad: StayLine) =>
    ask(client, 'BOOKSTAY', { stayId: 'whole-1', lines: [line('whole'), line('whole'), bad] })

  expect(await refused(line('gone'))).toMatchObject({ code: 'NOT_FOUND', message: 'property of line 2 not found' })
  expect(await refused(line('whole', { roomType: 'x' }))).toMatchObject({ message: 'room type of line 2 not found' })
  expect(await refused(line('whole', { nights: 4 }))).toMatchObject({
    message: `package not found, line 2, ${dateIn(6)}`,
  })
  expect((await leftOn('whole')).availability).toBe(5)
})

test('totals beyond 32 bits are exact, and one beyond 64 bits is no bound', async () => {
  await succeed(client, 'SETPROP', somewhere('dear'))
  const night = { propertyId: 'dear', roomType: 'double', date: dateIn(3) }
  await succeed(client, 'SETROOMPKG', { ...night, availability: 255, finalPrice: LIMITS.priceMax })
  const booking = { lines: [line('dear', { nights: 1, rooms: 255 })] }
  const total = LIMITS.priceMax * 255

  expect(await ask(client, 'BOOKSTAY', { stayId: 'dear-1', ...booking, maxTotal: total - 1 })).toMatchObject({
    code: 'PRICE_CHANGED',
    message: `total=${total}`,
  })
  expect(await succeed(client, 'BOOKSTAY', { stayId: 'dear-1', ...booking, maxTotal: 2n ** 64n - 1n })).toMatchObject({
    total,
  })
})

test('booking a held stay for less than its total used to be refused without the total', async () => {
  await hotel('rising', 9)
  const stay = { stayId: 'rising-1', lines: [line('rising')] }
  const { total } = await succeed(client, 'HOLDSTAY', stay)

  expect(await ask(client, 'BOOKSTAY', { ...stay, maxTotal: Number(total) - 1 })).toMatchObject({
    code: 'PRICE_CHANGED',
    message: `total=${total}`,
  })
  expect(await succeed(client, 'BOOKSTAY', { ...stay, maxTotal: total })).toMatchObject({ state: 'booked', total })
})

test('the same id from two clients with other content: one gets the stay, the other a conflict', async () => {
  await hotel('twice', 9)
  const other = await openClient(node)
  const answers = await Promise.all([
    ask(client, 'BOOKSTAY', { stayId: '0190A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B', lines: [line('twice')] }),
    ask(other, 'BOOKSTAY', { stayId: '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b', lines: [line('twice', { rooms: 2 })] }),
  ])

  expect(answers.filter(({ ok }) => ok)).toHaveLength(1)
  expect(answers.find(({ ok }) => !ok)).toMatchObject({ code: 'CONFLICT', message: 'state=booked' })
  closeClient(other)
})

async function allowHolds(value: number): Promise<void> {
  expect(await post(node, '/admin/settings', { name: 'holds_max', value })).toBe(202)
  await until('the setting is applied', async () => {
    return (await statusOf(node)).stays?.settings.holds_max === value || undefined
  })
}

test('holds beyond the setting are refused before they are logged; repeats are not', async () => {
  await hotel('busy', 9)
  // No test before leaves a hold.
  await allowHolds(1)
  const hold = (stayId: string) => ask(client, 'HOLDSTAY', { stayId, lines: [line('busy')] })

  expect(await hold('busy-1')).toMatchObject({ ok: true })
  expect(await Promise.all([hold('busy-2'), hold('busy-1'), hold('busy-3')])).toMatchObject([
    { ok: false, code: '429' },
    { ok: true },
    { ok: false, code: '429' },
  ])
  expect(await ask(client, 'BOOKSTAY', { stayId: 'busy-4', lines: [line('busy')] })).toMatchObject({ ok: true })
  expect((await leftOn('busy')).availability).toBe(7)
  await until('the metric counts the hold', async () => (await metric(node, 'vacancy_stays_held')) === 1 || undefined)
  await allowHolds(200_000)
})

test('stays are still there after the node ended by force', async () => {
  await hotel('durable', 5)
  const held = await succeed(client, 'HOLDSTAY', { stayId: 'durable-1', lines: [line('durable')] })
  await succeed(client, 'BOOKSTAY', { stayId: 'durable-2', lines: [line('durable')] })
  closeClient(client)
  await node.kill()

  await connect()

  expect(await succeed(client, 'GETSTAY', { stayId: 'durable-1' })).toMatchObject({ ...held, lines: [line('durable')] })
  expect(await succeed(client, 'CONFIRMSTAY', { stayId: 'durable-1' })).toMatchObject({ state: 'booked' })
  expect((await leftOn('durable')).availability).toBe(3)
})
