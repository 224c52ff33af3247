import { afterEach, expect, onTestFinished, test } from 'vitest'
import { connectIn } from './client.ts'
import { startScriptedNode } from './testing/scripted-node.ts'
import { turnedWorld } from './testing/turned-world.ts'

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

async function start(options = {}) {
  const node = await startScriptedNode()
  cleanUp.push(() => node.close())
  const world = turnedWorld()
  const client = await connectIn(world, { port: node.port, ...options })
  cleanUp.push(() => client.close())
  return { node, client, world }
}

const line = { propertyId: 'hotel_123', roomType: 'double', arrival: '2026-12-24', nights: 3, rooms: 2 }
const booked = { state: 'booked', total: 600, index: 7, lines: [{ ...line, days: [] }] } as const

test('a stay is held, confirmed, released and read, without request keys', async () => {
  const { node, client } = await start()
  const calls = [
    client.holdStay({ stayId: 'order', seconds: 60, lines: [line] }),
    client.bookStay({ stayId: 'order', reinstate: true, releasedAt: 9, lines: [line] }),
    client.confirmStay('order', { retake: true, maxTotal: 700 }),
    client.releaseStay('order', { void: true }),
    client.releaseStay('order', { unrecorded: true, bookedAt: 9, lines: [line] }),
    client.stay('order'),
    client.stays({ propertyId: 'hotel_123' }),
  ]

  const requests = []
  for (const _ of calls) requests.push(await node.next())

  const sent = requests.map(({ command, fields }) => [command, fields])
  expect(sent).toHaveLength(7)
  expect(sent).toEqual(
    expect.arrayContaining([
      ['HOLDSTAY', { stayId: 'order', seconds: 60, lines: [line] }],
      ['CONFIRMSTAY', { stayId: 'order', maxTotal: 700, retake: 1 }],
      ['BOOKSTAY', { stayId: 'order', reinstate: 1, releasedAt: 9, lines: [line] }],
      ['RELEASESTAY', { stayId: 'order', void: 1 }],
      ['RELEASESTAY', { stayId: 'order', unrecorded: 1, bookedAt: 9, lines: [line] }],
      ['GETSTAY', { stayId: 'order' }],
      ['LISTSTAYS', { propertyId: 'hotel_123' }],
    ]),
  )
  for (const request of requests) request.answer(request.command === 'LISTSTAYS' ? { stays: [], cursor: '' } : booked)
  const list = { stays: [], cursor: '' }
  expect(await Promise.all(calls)).toEqual([booked, booked, booked, booked, booked, booked, list])
})

test('a booking whose connection is lost is sent again: its id makes it count once', async () => {
  const { node, client, world } = await start({ requestKeys: false })
  const call = client.bookStay({ stayId: 'order', lines: [line] })
  const first = await node.next()

  first.peer.socket.destroy()
  const again = await Promise.race([node.next(), turning(world)])
  again.answer(booked)

  expect(again.fields).toEqual(first.fields)
  expect(await call).toEqual(booked)
})

/** The pauses between attempts pass as soon as they begin. */
async function turning(world: ReturnType<typeof turnedWorld>): Promise<never> {
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve))
    world.advance(50)
  }
}

test('a refusal names the night', async () => {
  const { node, client } = await start()
  const call = client.bookStay({ stayId: 'order', lines: [line] }).catch((error: unknown) => error)
  const request = await node.next()

  request.refuse('SOLD_OUT: line=0 date=2026-12-24 left=1 wanted=2')

  expect(await call).toMatchObject({
    name: 'VacancyRequestError',
    code: 'SOLD_OUT',
    details: { line: 0, date: '2026-12-24', left: 1, wanted: 2 },
  })
})

test('a request key has its place before the index up to which a source knows bookings', async () => {
  const { node, client } = await start()
  const night = { propertyId: 'p', roomType: 'double', date: '2026-12-24', amount: 3, asOf: 2 ** 40 }

  for (const [more, requestNumber] of [[{}, 1] as const, [{ wantIndex: 1 } as const, 2] as const]) {
    const call = client.send('SETROOMAVL', { ...night, ...more })
    const request = await node.next()
    request.answer({ availability: 3 })
    await call
    expect(request.fields).toMatchObject({ ...night, ...more, requestNumber })
  }
})

test('reads after a booking wait for its index', async () => {
  const { node, client } = await start({ readYourWrites: true })
  const call = client.bookStay({ stayId: 'order', lines: [line] })
  const request = await node.next()
  expect(request.fields).toMatchObject({ wantIndex: 1 })
  request.answer({ ...booked, appliedIndex: 9 })
  await call

  const read = client.stay('order')
  const received = await node.next()
  received.answer(booked)
  await read

  expect(received.fields).toMatchObject({ minIndex: 9 })
})

test('a peer that replies to all requests but one is given up after 30 s, not before', async () => {
  const node = await startScriptedNode()
  onTestFinished(() => node.close())
  const world = turnedWorld()
  const client = await connectIn(world, { port: node.port })
  const exchange = async () => {
    const call = client.propertyExists({ propertyId: 'p' })
    const received = await node.next()
    received.answer({ exists: true })
    expect(await call).toBe(true)
  }
  const leaveUnanswered = async (deadlineMs: number) => {
    const call = expect(client.propertyExists({ propertyId: 'q' }, { deadlineMs })).rejects.toThrow()
    await node.next()
    return call
  }
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      world.advance(1_000)
      await exchange()
    }
  }
  world.advance(20_000)

  const first = leaveUnanswered(1_500)
  await exchange()
  await pass(28)
  await first
  const second = leaveUnanswered(500)
  await exchange()
  await pass(1)
  await second
  expect(node.peers).toHaveLength(1)

  const third = leaveUnanswered(1_500)
  await exchange()
  world.advance(1_000)
  await exchange()
  world.advance(500)
  await third
  world.advance(200)
  await exchange()
  expect(node.peers).toHaveLength(2)
})

test.each([
  ['behind', Date.UTC(2025, 11, 31, 23, 59, 59)],
  ['ahead', Date.UTC(2027, 0, 1)],
])('around New Year nights are those of the request or of the stay, with a clock %s', async (_, now) => {
  const { client, node, world } = await start()
  const dates = ['2026-12-31', '2027-01-01']
  const days = dates.map((date) => ({ date, availability: 1, finalPrice: 9, rateFeatures: [] }))
  const line = { propertyId: 'p', roomType: 'r', arrival: '2026-12-31', nights: 2, rooms: 1 }
  const stay = { state: 'booked' as const, total: 18, index: 5, lines: [{ ...line, days }] }
  world.setWall(now)

  const found = client.searchAvailability({ segment: 's', roomType: 'r', dates })
  ;(await node.next()).answer({ numDays: 2, properties: [{ propertyId: 'p', days }] })
  const booked = client.bookStay({ stayId: 'x', lines: [line] })
  ;(await node.next()).answer(stay)

  expect(await found).toEqual([{ propertyId: 'p', days }])
  expect(await booked).toEqual(stay)
})
