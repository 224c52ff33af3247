import { makeCertificate } from '@vacancy/shared/testing/certificates'
import { decodeReply } from '@vacancy/shared/wire'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import type { AnswerSeen } from './calls.ts'
import { connect, connectIn, type VacancyClient } from './client.ts'
import { VacancyRetryError } from './errors.ts'
import type { ClientOptions } from './options.ts'
import {
  type ReceivedRequest,
  replyFrame,
  type Script,
  type ScriptedNode,
  startScriptedNode,
} from './testing/scripted-node.ts'
import { turnedWorld } from './testing/turned-world.ts'
import { until } from './testing/until.ts'

const NIGHT = { propertyId: 'hotel_123', roomType: 'suite', date: '2026-12-24' }
const DECREMENT = { ...NIGHT, amount: 1 }

const nodes: ScriptedNode[] = []
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close()
})

async function startNode(script?: Script): Promise<ScriptedNode> {
  const node = await startScriptedNode(script)
  nodes.push(node)
  return node
}

async function start(options: ClientOptions = {}, script?: Script) {
  const node = await startNode(script)
  const world = turnedWorld()
  const client = await connectIn(world, { port: node.port, ...options })
  return { node, world, client, peer: await node.nextPeer() }
}

/** The error of a call; fails the test if there is none. */
async function failureOf(call: Promise<unknown>) {
  const { name, code, command, message } = await call.then(
    (result) => Promise.reject(new Error(`it resolved to ${JSON.stringify(result)}`)),
    (error) => error,
  )
  return { name, code, command, message }
}

async function take(node: ScriptedNode, count: number): Promise<ReceivedRequest[]> {
  const received: ReceivedRequest[] = []
  while (received.length < count) received.push(await node.next())
  return received
}

/** From here on the session of request keys is open. */
async function openSession(client: VacancyClient, node: ScriptedNode): Promise<string> {
  const first = client.setAvailability(DECREMENT)
  const received = await node.next()
  received.answer({ availability: 1 })
  await first
  return String(received.fields['session'])
}

describe('answers', () => {
  test('can be observed byte for byte, refusals and retries included', async () => {
    const { client, node, peer } = await start()
    const seen: AnswerSeen[] = []
    const before = peer.received.length

    const call = client.send('PROPEXIST', { propertyId: 'h1' }, { watch: (each) => void seen.push(each) })
    const received = await node.next()
    received.answer({ exists: true })
    await call

    expect(seen).toHaveLength(1)
    const [{ address, request, answer, milliseconds }] = seen as [AnswerSeen]
    expect(address).toBe(`127.0.0.1:${node.port}`)
    expect(Buffer.from(request)).toEqual(peer.received.subarray(before))
    expect(decodeReply('PROPEXIST', answer, { baseYear: 2026, codecs: undefined })).toEqual({
      ok: true,
      result: { exists: true },
    })
    expect(milliseconds).toBeGreaterThanOrEqual(0)

    const refused = client.send('PROPROOMLIST', { propertyId: 'h2' }, { watch: (each) => void seen.push(each) })
    ;(await node.next()).refuse('NOT_FOUND: no such property')
    await expect(refused).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(seen).toHaveLength(2)
    expect(Buffer.from((seen[1] as AnswerSeen).answer).toString('latin1')).toContain('NOT_FOUND: no such property')
  })

  test('may arrive in any order and in any pieces', async () => {
    const { client, node, peer } = await start()
    const ids = ['a', 'b', 'c', 'd', 'e', 'f']

    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 }),
        async (order, pieces) => {
          const results = Promise.all(ids.map((propertyId) => client.listRoomTypes({ propertyId })))
          const received = await take(node, ids.length)
          const bytes = Buffer.concat(
            order.map((i) => replyFrame('PROPROOMLIST', received[i]?.id ?? 0, { roomTypes: [`room ${ids[i]}`] })),
          )
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const length = pieces[i % pieces.length] ?? 1
            peer.socket.write(bytes.subarray(at, at + length))
            at += length
          }

          expect(await results).toEqual(ids.map((id) => [`room ${id}`]))
        },
      ),
      { numRuns: 30 },
    )
  })

  test('requests are pipelined in call order', async () => {
    const { client, node } = await start({ requestKeys: false })

    const calls = [client.setPackage(NIGHT), client.propertyExists({ propertyId: 'p' }), client.deletePackage(NIGHT)]
    const received = await take(node, 3)
    for (const one of received) one.answer(one.command === 'PROPEXIST' ? { exists: true } : {})

    expect(received.map(({ command }) => command)).toEqual(['SETROOMPKG', 'PROPEXIST', 'DELROOMDAY'])
    expect(await Promise.all(calls)).toEqual([undefined, true, undefined])
  })

  test('every command has a method', async () => {
    const { client, node } = await start({ requestKeys: false })
    const days = [{ date: '2026-12-24', availability: 1, finalPrice: 9, rateFeatures: ['breakfast', 'sea_view'] }]
    const property = { segment: 's', area: 'a', propertyId: 'p', propertyType: 't', category: 'c', stars: 3 }
    const table: [Promise<unknown>, string, object, unknown][] = [
      [client.listRateFeatures(), 'GETCODECS', { rateFeatures: ['x'] }, ['x']],
      [client.listSegments(), 'GETSEGMENTS', { segments: [] }, []],
      [client.setProperty({ ...property, latitude: 1, longitude: 2, amenities: [] }), 'SETPROP', {}, undefined],
      [client.searchProperties({ segment: 's' }), 'SEARCHPROP', { propertyIds: ['p'] }, ['p']],
      [
        client.searchAvailability({ segment: 's', roomType: 'r', dates: ['2026-12-24'] }),
        'SEARCHAVAIL',
        { numDays: 1, properties: [{ propertyId: 'p', days }] },
        [{ propertyId: 'p', days }],
      ],
      [client.propertyExists({ propertyId: 'p' }), 'PROPEXIST', { exists: false }, false],
      [client.deleteProperty({ propertyId: 'p' }), 'DELPROP', {}, undefined],
      [client.deleteSegment({ segment: 's' }), 'DELSEGMENT', {}, undefined],
      [client.setPackage(NIGHT), 'SETROOMPKG', {}, undefined],
      [client.getPackage(NIGHT), 'GETPROPROOMDAY', { propertyId: 'p', ...days[0] }, { propertyId: 'p', ...days[0] }],
      [client.deletePackage(NIGHT), 'DELROOMDAY', {}, undefined],
      [client.deletePropertyDay({ propertyId: 'p', date: '2026-12-24' }), 'DELPROPDAY', {}, undefined],
      [client.setAvailability(DECREMENT), 'SETROOMAVL', { availability: 1 }, 1],
      [client.increaseAvailability(DECREMENT), 'INCROOMAVL', { availability: 2 }, 2],
      [client.decreaseAvailability(DECREMENT), 'DECROOMAVL', { availability: 0 }, 0],
      [client.roomTypeExists({ propertyId: 'p', roomType: 'r' }), 'PROPROOMEXIST', { exists: true }, true],
      [client.listRoomTypes({ propertyId: 'p' }), 'PROPROOMLIST', { roomTypes: ['r'] }, ['r']],
      [client.listDates({ propertyId: 'p', roomType: 'r' }), 'PROPROOMDATELIST', { dates: [] }, []],
      [client.deleteRoomType({ propertyId: 'p', roomType: 'r' }), 'DELPROPROOM', {}, undefined],
    ]

    const received = await take(node, table.length)
    for (const [i, one] of received.entries()) one.answer(table[i]?.[2] ?? {})

    expect(received.map(({ command }) => command)).toEqual(table.map(([, command]) => command))
    expect(await Promise.all(table.map(([result]) => result))).toEqual(table.map(([, , , expected]) => expected))
  })

  test('send returns the whole result, including extension fields', async () => {
    const { client, node } = await start()

    const result = client.send('DECROOMAVL', { ...DECREMENT, wantIndex: 1 })
    const received = await node.next()
    received.answer({ availability: 3, index: 77 })

    expect(received.fields).toMatchObject({ wantIndex: 1, requestNumber: 1, ...DECREMENT })
    expect(await result).toEqual({ availability: 3, index: 77 })
  })
})

describe('a call that fails validation', () => {
  test.each([
    ['a missing field', { propertyId: 'p', roomType: 'r' }],
    ['a field that does not fit', { ...NIGHT, amount: 256 }],
    ['an unknown field', { ...NIGHT, amount: 1, stars: 4 }],
    ['no fields', undefined],
  ])('is refused locally: %s', async (_, fields) => {
    const { client, node } = await start()

    const failure = await failureOf(client.decreaseAvailability(fields as never))

    expect(failure).toMatchObject({ name: 'VacancyRequestError', code: 'VALIDATION_ERROR', command: 'DECROOMAVL' })
    expect(node.untaken()).toEqual([])
  })

  test.each<[string, ClientOptions]>([
    ['port', { port: 0 }],
    ['deadlineMs', { deadlineMs: Number.NaN }],
    ['connections', { connections: 1.5 }],
    ['host', { host: '' }],
    ['token', { token: '' }],
    ['envelope', { envelope: 'bridge' as 'router' }],
  ])('connecting names the invalid option: %s', async (name, options) => {
    await expect(connect(options)).rejects.toThrow(name)
  })
})

describe('deadlines', () => {
  test('a read without a reply may be retried by its caller, and a late reply is dropped', async () => {
    const { client, node, world } = await start()
    const first = failureOf(client.propertyExists({ propertyId: 'p' }, { deadlineMs: 100 }))
    const received = await node.next()

    world.advance(100)
    expect(await first).toMatchObject({ name: 'VacancyRetryError', code: 'deadline_exceeded', command: 'PROPEXIST' })
    received.answer({ exists: true })
    const second = client.propertyExists({ propertyId: 'q' })
    const next = await node.next()
    next.answer({ exists: false })

    expect(await second).toBe(false)
    expect(node.peers).toHaveLength(1)
  })

  test('a read that was refused and is without a reply to its last attempt reports the refusal', async () => {
    const { client, node, world } = await start()
    const failure = failureOf(client.propertyExists({ propertyId: 'p' }, { deadlineMs: 1000 }))
    ;(await node.next()).refuse('503')
    await until(() => {
      world.advance(1)
      return node.untaken().length > 0
    })

    world.advance(1000)

    expect(await failure).toMatchObject({ name: 'VacancyRetryError', code: '503' })
  })

  test('a write that was sent has an unknown outcome, with or without a key', async () => {
    for (const requestKeys of [true, false]) {
      const { client, node, world } = await start({ requestKeys })
      const failure = failureOf(client.decreaseAvailability(DECREMENT))
      await node.next()

      world.advance(2000)

      expect(await failure).toMatchObject({ name: 'VacancyUnknownOutcomeError', code: 'deadline_exceeded' })
    }
  })

  test('a write that was never sent was certainly not executed', async () => {
    const { client, node, world } = await start()
    const first = failureOf(client.decreaseAvailability(DECREMENT))
    const second = failureOf(client.decreaseAvailability(DECREMENT, { deadlineMs: 500 }))
    await node.next()

    // It waits for the first write of the session.
    world.advance(500)

    expect(await second).toMatchObject({ name: 'VacancyRetryError', code: 'deadline_exceeded' })
    world.advance(1500)
    await first
    expect(node.untaken()).toEqual([])
  })

  test('a silent peer with a waiting call is considered dead', async () => {
    const { client, node, world } = await start()
    const silent = failureOf(client.propertyExists({ propertyId: 'p' }))
    await node.next()

    world.advance(2000)
    await silent
    const call = client.propertyExists({ propertyId: 'p' })
    world.advance(200)

    const received = await node.next()
    received.answer({ exists: true })
    expect(await call).toBe(true)
    expect(node.peers).toHaveLength(2)
  })
})

describe('a cancelled call', () => {
  test('sends nothing if it was cancelled before it began', async () => {
    const { client, node } = await start()

    const failure = await failureOf(client.decreaseAvailability(DECREMENT, { signal: AbortSignal.abort() }))

    expect(failure).toMatchObject({ name: 'VacancyClientError', code: 'cancelled', command: 'DECROOMAVL' })
    expect(node.untaken()).toEqual([])
  })

  test('in flight: a read has changed nothing, the outcome of a write is unknown', async () => {
    const { client, node } = await start()
    const controller = new AbortController()
    const { signal } = controller
    const read = failureOf(client.propertyExists({ propertyId: 'p' }, { signal }))
    const write = failureOf(client.decreaseAvailability(DECREMENT, { signal }))
    const unsent = failureOf(client.decreaseAvailability(DECREMENT, { signal }))
    await take(node, 2)

    controller.abort()

    expect(await read).toMatchObject({ name: 'VacancyClientError', code: 'cancelled' })
    expect(await write).toMatchObject({ name: 'VacancyUnknownOutcomeError', code: 'cancelled' })
    expect(await unsent).toMatchObject({ name: 'VacancyClientError', code: 'cancelled' })
    expect(client.status().unsettled).toBe(0)
  })
})

describe('request keys', () => {
  test('writes of a session wait for the reply to its first, and are numbered in order; reads do not wait', async () => {
    const { client, node } = await start()
    const writes = [1, 2, 3].map(() => client.decreaseAvailability(DECREMENT))
    const read = client.propertyExists({ propertyId: 'p' })
    const [first, other] = await take(node, 2)

    expect([first?.command, first?.fields['requestNumber']]).toEqual(['DECROOMAVL', 1])
    expect(other?.command).toBe('PROPEXIST')
    expect(first?.fields['session']).toMatch(/^[0-9a-f]{32}$/)
    expect(node.untaken()).toEqual([])

    other?.answer({ exists: true })
    first?.answer({ availability: 9 })
    const rest = await take(node, 2)
    for (const received of rest) received.answer({ availability: 8 })

    expect(rest.map(({ fields }) => fields['requestNumber'])).toEqual([2, 3])
    expect(rest.map(({ fields }) => fields['session'])).toEqual([first?.fields['session'], first?.fields['session']])
    expect(await Promise.all(writes)).toEqual([9, 8, 8])
    expect(await read).toBe(true)
  })

  test('a write whose connection was lost is retried with the same key and the same bytes', async () => {
    const { client, node, world } = await start()
    const call = client.decreaseAvailability(DECREMENT)
    const lost = await node.next()

    lost.peer.socket.destroy()
    await until(() => client.status().connections === 0)
    world.advance(100)
    const repeated = await node.next()
    repeated.answer({ availability: 4 })

    expect(repeated.payload).toEqual(lost.payload)
    expect(repeated.peer).not.toBe(lost.peer)
    expect(await call).toBe(4)
  })

  test('a write without a key is never retried once it was handed to a socket', async () => {
    const { client, node, world } = await start({ requestKeys: false })
    const failure = failureOf(client.decreaseAvailability(DECREMENT))
    const lost = await node.next()

    lost.peer.socket.destroy()

    expect(await failure).toMatchObject({ name: 'VacancyUnknownOutcomeError', code: 'connection_lost' })
    world.advance(100)
    await until(() => client.status().connections === 1)
    expect(node.untaken()).toEqual([])
  })

  test('a caller may provide its own key, and the client retries with it', async () => {
    const { client, node, world } = await start({ requestKeys: false })
    const key = { session: 'ab'.repeat(16), requestNumber: 7 }
    const call = client.decreaseAvailability({ ...DECREMENT, ...key })
    const lost = await node.next()

    lost.peer.socket.destroy()
    await until(() => client.status().connections === 0)
    world.advance(100)
    const repeated = await node.next()
    repeated.answer({ availability: 4 })

    expect(repeated.fields).toMatchObject(key)
    expect(await call).toBe(4)
  })

  test.each(['308', '405', '429', '503'])('%s is retried after a delay, with or without a key', async (code) => {
    for (const requestKeys of [true, false]) {
      const { client, node, world } = await start({ requestKeys })
      const call = client.decreaseAvailability(DECREMENT)
      const refused = await node.next()

      refused.refuse(code)
      await until(() => client.status().inFlight === 0)
      world.advance(20)
      const repeated = await node.next()
      repeated.answer({ availability: 4 })

      expect(repeated.payload).toEqual(refused.payload)
      expect(await call).toBe(4)
    }
  })

  test('an unknown outcome is retried with the same key, while later writes use a new session', async () => {
    const { client, node, world } = await start()
    const session = await openSession(client, node)
    const doubtful = client.decreaseAvailability(DECREMENT)
    const second = await node.next()

    second.refuse('408')
    await until(() => client.status().inFlight === 0)
    const later = client.decreaseAvailability(DECREMENT)
    const opening = await node.next()
    opening.answer({ availability: 3 })
    world.advance(20)
    const repeated = await node.next()
    repeated.answer({ availability: 4 })

    expect(opening.fields['requestNumber']).toBe(1)
    expect(opening.fields['session']).not.toBe(session)
    expect(repeated.payload).toEqual(second.payload)
    expect(await Promise.all([doubtful, later])).toEqual([4, 3])
  })

  test('a session that the node has forgotten ends as an unknown outcome at the deadline', async () => {
    const { client, node, world } = await start()
    await openSession(client, node)
    const failure = failureOf(client.decreaseAvailability(DECREMENT))

    for (let i = 0; i < 4; i++) {
      const received = await node.next()
      received.refuse('408')
      await until(() => client.status().inFlight === 0)
      world.advance(500)
    }

    expect(await failure).toMatchObject({ name: 'VacancyUnknownOutcomeError', code: '408' })
  })

  test('the outcome stays unknown when the retry is refused before the key is checked', async () => {
    const { client, node, world } = await start()
    const failure = failureOf(client.decreaseAvailability(DECREMENT))
    const lost = await node.next()
    lost.peer.socket.destroy()
    await until(() => client.status().connections === 0)
    world.advance(100)

    const repeated = await node.next()
    repeated.refuse('VALIDATION_ERROR: date lies before today')

    expect(await failure).toMatchObject({ name: 'VacancyUnknownOutcomeError', code: 'VALIDATION_ERROR' })
  })

  test('the outcome is known when the retry returns the result of the write', async () => {
    const { client, node, world } = await start()
    const failure = failureOf(client.decreaseAvailability(DECREMENT))
    const lost = await node.next()
    lost.peer.socket.destroy()
    await until(() => client.status().connections === 0)
    world.advance(100)

    const repeated = await node.next()
    repeated.refuse('UNDERFLOW: availability would drop below 0')

    expect(await failure).toMatchObject({ name: 'VacancyRequestError', code: 'UNDERFLOW' })
  })

  test('a session whose first write was not executed is not used for the next', async () => {
    const { client, node } = await start()
    const first = failureOf(client.decreaseAvailability(DECREMENT))
    const refused = await node.next()
    refused.refuse('VALIDATION_ERROR: no such date')
    await first

    const second = client.decreaseAvailability(DECREMENT)
    const received = await node.next()
    received.answer({ availability: 1 })

    expect(received.fields['requestNumber']).toBe(1)
    expect(received.fields['session']).not.toBe(refused.fields['session'])
    expect(await second).toBe(1)
  })
})

describe('connections', () => {
  test('connecting waits for a node that is not listening yet', async () => {
    const placeholder = await startScriptedNode()
    await placeholder.close()
    const world = turnedWorld()
    const connecting = connectIn(world, { port: placeholder.port })
    // One timer for the deadline, and one until the next attempt: the first attempt has failed.
    await until(() => world.waits().some((ms) => ms < 100))

    const node = await startNode({ port: placeholder.port })
    world.advance(100)

    const client = await connecting
    expect(client.rateFeatures).toEqual(['breakfast', 'late_checkout', 'sea_view'])
    expect(node.peers).toHaveLength(1)
  })

  test('connecting fails at its deadline, with the reason', async () => {
    const placeholder = await startScriptedNode()
    await placeholder.close()
    const world = turnedWorld()
    const failure = failureOf(connectIn(world, { port: placeholder.port, connectDeadlineMs: 1000 }))
    await until(() => world.waits().some((ms) => ms < 100))

    world.advance(1000)

    expect(await failure).toMatchObject({ name: 'VacancyRetryError', code: 'connection_failed', command: undefined })
    expect((await failure).message).toContain('ECONNREFUSED')
  })

  test('a node that is not serving yet is retried', async () => {
    const world = turnedWorld()
    const node = await startNode({
      codecs: (received, peers) => (peers < 3 ? received.refuse('503') : received.answer({ rateFeatures: ['a'] })),
    })
    const connecting = connectIn(world, { port: node.port })
    for (const delayMs of [100, 200]) {
      await until(() => world.waits().some((ms) => ms <= delayMs))
      world.advance(delayMs)
    }

    expect((await connecting).rateFeatures).toEqual(['a'])
  })

  test('a token without any rights fails connecting at once', async () => {
    const node = await startNode({ codecs: (received) => received.refuse('FORBIDDEN: role monitoring may not') })

    const failure = await failureOf(connectIn(turnedWorld(), { port: node.port }))

    expect(failure).toMatchObject({ name: 'VacancyRequestError', code: 'FORBIDDEN', command: 'GETCODECS' })
  })

  test('a lost connection is reopened after doubling delays, which reset after a successful connection', async () => {
    const { client, node, world, peer } = await start()
    let lost = peer

    for (const delayMs of [75, 150, 300]) {
      lost.socket.destroy()
      await until(() => client.status().connections === 0)
      expect(world.waits()).toEqual([delayMs])
      world.advance(delayMs)
      lost = await node.nextPeer()
      await until(() => client.status().connections === 1)
    }
    world.advance(5000)
    lost.socket.destroy()
    await until(() => client.status().connections === 0)

    expect(world.waits()).toEqual([75])
  })

  test('reads of a lost connection are retried on the next', async () => {
    const { client, node, world } = await start()
    const call = client.propertyExists({ propertyId: 'p' })
    const lost = await node.next()

    lost.peer.socket.end()
    await until(() => client.status().connections === 0)
    world.advance(100)
    const repeated = await node.next()
    repeated.answer({ exists: true })

    expect(await call).toBe(true)
  })

  test('calls wait for a connection until their deadline, and then fail with the reason', async () => {
    const { client, node, world, peer } = await start()
    await node.close()
    nodes.splice(0)
    peer.socket.destroy()
    await until(() => client.status().connections === 0)

    const failure = failureOf(client.decreaseAvailability(DECREMENT, { deadlineMs: 10 }))
    world.advance(10)

    expect(await failure).toMatchObject({ name: 'VacancyRetryError', code: 'connection_lost' })
  })

  test('a token refused on reconnecting fails the waiting calls', async () => {
    const login = [Buffer.from('LOGIN OK')]
    const { client, node, world, peer } = await start({ token: 'secret' }, { login })
    login[0] = Buffer.from('LOGIN FAILED')
    peer.socket.destroy()
    await until(() => client.status().connections === 0)

    const failure = await Promise.all([failureOf(client.listSegments()), world.advance(100), node.nextPeer()])

    expect(failure[0]).toMatchObject({ name: 'VacancyClientError', code: 'login_failed', command: 'GETSEGMENTS' })
    expect(failure[0].message).not.toContain('secret')
  })

  test('several are filled evenly', async () => {
    const { client, node } = await start({ connections: 3 })
    await until(() => client.status().connections === 3)

    const calls = Array.from({ length: 9 }, () => client.propertyExists({ propertyId: 'p' }))
    const received = await take(node, 9)
    for (const one of received) one.answer({ exists: true })
    await Promise.all(calls)

    expect(node.peers.map((peer) => received.filter((one) => one.peer === peer).length)).toEqual([3, 3, 3])
  })

  test('TLS works, and an untrusted certificate is refused', async () => {
    const pair = makeCertificate({ subject: 'localhost' })
    const node = await startNode({ tls: pair })
    const client = await connectIn(turnedWorld(), { port: node.port, tls: { ca: pair.cert } })
    const call = client.propertyExists({ propertyId: 'p' })
    const received = await node.next()
    received.answer({ exists: true })

    expect(await call).toBe(true)
    await client.close()
    const world = turnedWorld()
    const stranger = failureOf(connectIn(world, { port: node.port, tls: true, connectDeadlineMs: 1000 }))
    await until(() => world.waits().some((ms) => ms < 100))
    world.advance(1000)
    expect((await stranger).message).toContain('self-signed certificate')
  })

  test('through a router every frame is in an envelope that names its segment, and keepalives are sent', async () => {
    const { client, node, world, peer } = await start({ envelope: 'router' })
    const call = client.decreaseAvailability(DECREMENT, { segment: 'lisbon' })
    const received = await node.next()
    received.answer({ availability: 2 })
    expect(await call).toBe(2)

    expect(peer.received.subarray(0, 16).toString('latin1')).toContain('__codecs__')
    expect(peer.received.toString('latin1')).toContain('\u0006lisbon\u0001\u00ff')
    expect(await failureOf(client.propertyExists({ propertyId: 'p' }))).toMatchObject({ name: 'VacancyRequestError' })

    const before = peer.received.length
    world.advance(15_000)
    await until(() => peer.received.length > before)
    expect(peer.received.subarray(before).toString('hex')).toMatch(/^fe180000000d5f5f6b656570616c6976655f5f00ff/)
  })
})

describe('backpressure', () => {
  test('calls beyond the limit in flight wait, and calls beyond the queue limit are refused', async () => {
    const { client, node } = await start({ maxInFlight: 2, maxQueued: 3 })
    const calls = Array.from({ length: 5 }, () => client.propertyExists({ propertyId: 'p' }))

    const refused = await failureOf(client.propertyExists({ propertyId: 'q' }))
    expect(refused).toMatchObject({ name: 'VacancyRetryError', code: 'backpressure', command: 'PROPEXIST' })
    const first = await take(node, 2)
    expect(client.status()).toEqual({ connections: 1, unsettled: 5, inFlight: 2 })
    expect(node.untaken()).toEqual([])

    for (const received of first) received.answer({ exists: true })
    for (let i = 0; i < 3; i++) (await node.next()).answer({ exists: true })
    expect(await Promise.all(calls)).toEqual([true, true, true, true, true])
  })

  test('a peer that does not read is sent no more than its socket accepts', async () => {
    const { client, peer, node, world } = await start({ maxInFlight: 100_000, maxQueued: 1, requestKeys: false })
    peer.socket.pause()
    const amenities = Array.from({ length: 64 }, (_, i) => `${i}`.padEnd(64, 'x'))
    const filters = { segment: 's', amenities }
    const calls = Array.from({ length: 5000 }, () => client.searchProperties(filters))
    // 5,000 requests of 4 KiB exceed both kernel buffers.
    await until(() => client.status().inFlight > 0)
    let sent = 0
    while (sent !== client.status().inFlight) {
      sent = client.status().inFlight
      for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(sent).toBeLessThan(5000)

    peer.socket.resume()
    for (let i = 0; i < calls.length; i++) {
      const received = await node.next()
      received.answer({ propertyIds: [] })
    }
    expect(await Promise.all(calls)).toHaveLength(5000)
    await client.close()
    expect(world.waits()).toEqual([])
  })
})

describe('closing', () => {
  test('accepts no further calls, waits for pending ones, and closes the connection gracefully', async () => {
    const { client, node, peer } = await start()
    const call = client.propertyExists({ propertyId: 'p' })
    const received = await node.next()
    const ended = new Promise((resolve) => peer.socket.once('end', () => resolve('ended')))

    const closing = client.close()
    const refused = await failureOf(client.propertyExists({ propertyId: 'q' }))
    received.answer({ exists: true })

    expect(refused).toMatchObject({ name: 'VacancyClientError', code: 'client_closed', command: 'PROPEXIST' })
    expect(await call).toBe(true)
    await closing
    expect(await ended).toBe('ended')
    await client.close()
  })

  test('leaves no timer behind, even while reconnecting', async () => {
    const { client, world, peer } = await start()
    peer.socket.destroy()
    await until(() => client.status().connections === 0)

    await client.close()

    expect(world.waits()).toEqual([])
  })
})

describe('a hostile peer', () => {
  const hostile: [string, (received: ReceivedRequest) => Uint8Array][] = [
    ['a reply to a request that was never sent', () => replyFrame('PROPEXIST', 4_000_000_000, { exists: true })],
    ['an invalid first byte', () => Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['a frame of 4 GB', ({ id }) => frame(id, 0xffffffff)],
    ['an envelope', ({ id }) => inEnvelope(replyFrame('PROPEXIST', id, { exists: true }))],
    ['a malformed envelope', () => Buffer.from('fe0b00000005', 'hex')],
  ]

  function frame(id: number, payloadBytes: number): Buffer {
    const bytes = Buffer.alloc(9, 0xff)
    bytes.writeUInt32LE(id, 1)
    bytes.writeUInt32LE(payloadBytes, 5)
    return bytes
  }

  function inEnvelope(reply: Uint8Array): Buffer {
    const header = Buffer.from([0xfe, 0, 0, 0, 0, 1, 0x73, 0])
    header.writeUInt32LE(3 + reply.length, 1)
    return Buffer.concat([header, reply])
  }

  test.each(hostile)('loses the connection after %s, and reads continue on the next', async (_, bytes) => {
    const { client, node, world } = await start()
    const call = client.propertyExists({ propertyId: 'p' })
    const received = await node.next()

    received.peer.socket.write(bytes(received))
    await until(() => client.status().connections === 0)
    world.advance(100)
    const repeated = await node.next()
    repeated.answer({ exists: true })

    expect(await call).toBe(true)
  })

  test('fails only one call with a malformed reply', async () => {
    const { client, node } = await start()
    const read = failureOf(client.propertyExists({ propertyId: 'p' }))
    const write = failureOf(client.decreaseAvailability(DECREMENT))

    for (const received of await take(node, 2))
      received.peer.socket.write(replyFrame('PROPROOMLIST', received.id, { roomTypes: ['r'] }))

    expect(await read).toMatchObject({ name: 'VacancyClientError', code: 'malformed_reply' })
    expect(await write).toMatchObject({ name: 'VacancyUnknownOutcomeError', code: 'malformed_reply' })
    expect(client.status().connections).toBe(1)
  })

  test('random bytes cause only errors of this library', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 60 }), { minLength: 1, maxLength: 4 }),
        async (pieces) => {
          const { client, node, world, peer } = await start()
          const call = client.propertyExists({ propertyId: 'p' }).then(String, (error: unknown) => error)
          const received = await node.next()
          const [first, ...rest] = pieces
          // Use a valid header often enough.
          if (first && first.length > 12) first.set(frame(received.id, first.length - 9))
          for (const piece of [first ?? new Uint8Array(1), ...rest]) peer.socket.write(piece)
          peer.socket.end()
          await until(() => client.status().connections === 0)
          world.advance(10_000)

          const ended = await call
          if (ended !== 'true' && ended !== 'false') expect(ended).toHaveProperty('command', 'PROPEXIST')
          await client.close()
        },
      ),
      { numRuns: 40 },
    )
  })
})

test('connect works with the real environment', async () => {
  const node = await startNode()
  const client = await connect({ port: node.port })

  await expect(client.propertyExists({ propertyId: 'p' }, { deadlineMs: 1 })).rejects.toBeInstanceOf(VacancyRetryError)

  await client.close()
})
