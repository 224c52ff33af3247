import { setTimeout as sleep } from 'node:timers/promises'
import { encodeError, encodeReply } from '@vacancy/shared/wire'
import { afterEach, expect, test } from 'vitest'
import { CONTEXT, openStandIn, type StandIn } from './testing/stand-in.ts'
import { startTestProxy, type TestProxy } from './testing/start.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(
  kind: 'node' | 'router' | 'existing',
  keys: { readonly [key: string]: string | number | boolean } = {},
  auth?: string,
): Promise<{ readonly behind: StandIn; readonly proxy: TestProxy }> {
  const behind = await openStandIn(kind)
  closing.push(behind.close)
  const mode = kind === 'node' ? 'standalone' : 'router'
  const proxy = await startTestProxy(
    { mode, upstream_port: behind.port, timeout_sec: 1, ...keys },
    { ...(auth !== undefined && { auth }) },
  )
  closing.push(proxy.stop)
  return { behind, proxy }
}

const ready = (proxy: TestProxy) =>
  expect.poll(async () => (await proxy.get('/ready')).status, { timeout: 5_000 }).toBe(200)

const ROOM = { property_id: 'p1', room_type: 'double', date: '2026-12-24' }
const WRITE = { command: 'DECROOMAVL', segment: 'paris', body: { ...ROOM, amount: 1 } }
const READ = { command: 'PROPEXIST', segment: 'paris', body: { property_id: 'p1' } }

test.each([
  ['VALIDATION_ERROR: the "date" is\\ wrong', 400, 'VALIDATION_ERROR', 'VALIDATION_ERROR: the ?date? is? wrong'],
  ['NOT_FOUND: property not found', 400, 'NOT_FOUND', 'NOT_FOUND: property not found'],
  ['OVERFLOW: it is 255', 400, 'OVERFLOW', 'OVERFLOW: it is 255'],
  ['UNDERFLOW: 2 left', 400, 'UNDERFLOW', 'UNDERFLOW: 2 left'],
  ['FORBIDDEN: role monitoring', 403, 'FORBIDDEN', 'FORBIDDEN: role monitoring'],
  ['AUTH_ERROR: login required', 502, 'AUTH_ERROR', 'AUTH_ERROR: login required'],
  ['PARSE_ERROR: bad', 502, 'PARSE_ERROR', 'PARSE_ERROR: bad'],
  ['404', 404, '404', 'unknown segment'],
  ['408', 504, '408', 'No reply in time. The outcome of the write is unknown: read the state before you repeat it.'],
  ['429', 429, '429', 'Too many requests are in flight. Nothing was done. Retry.'],
  [
    '500',
    502,
    '500',
    'The reply cannot be used. The outcome of the write is unknown: read the state before you repeat it.',
  ],
  [
    'NEW_CODE: text',
    502,
    '500',
    'The reply cannot be used. The outcome of the write is unknown: read the state before you repeat it.',
  ],
])('a reply of %s becomes status %i', async (text, status, code, message) => {
  const { behind, proxy } = await start('node')
  await ready(proxy)
  behind.answer = () => encodeError(0, text)

  const answer = await proxy.post(WRITE)

  expect(answer).toMatchObject({ status, json: { status: 'error', code, message } })
  expect(answer.headers['retry-after']).toBe(status === 429 ? '1' : undefined)
  expect(behind.received.length).toBe(1)
})

test.each(['308', '405', '503'])(
  'a node that answers %s until the deadline becomes 503, to be retried',
  async (text) => {
    const { behind, proxy } = await start('node')
    await ready(proxy)
    behind.answer = () => encodeError(0, text)

    const answer = await proxy.post(WRITE)

    expect(answer).toMatchObject({ status: 503, json: { code: '503' }, headers: { 'retry-after': '1' } })
  },
)

test('quotes and control characters of a reply are escaped', async () => {
  const { behind, proxy } = await start('node')
  await ready(proxy)
  behind.answer = () => {
    const frame = Buffer.from(encodeError(0, 'NOT_FOUND: aXbXc'))
    frame[frame.indexOf('X')] = 0x22
    frame[frame.lastIndexOf('X')] = 0x0a
    return frame
  }

  expect((await proxy.post(READ)).json.message).toBe('NOT_FOUND: a"b\nc')
})

test('no reply: 504 at the deadline, and a write is reported as of unknown outcome', async () => {
  const { behind, proxy } = await start('node')
  await ready(proxy)
  behind.answer = () => undefined

  const [write, read] = await Promise.all([proxy.post(WRITE), proxy.post(READ)])

  expect(write).toMatchObject({ status: 504, json: { code: '408' } })
  expect(write.json.message).toContain('outcome of the write is unknown')
  expect(read).toMatchObject({ status: 504, json: { code: '408', message: 'No reply in time.' } })
  expect(behind.received.filter(({ command }) => command === 'DECROOMAVL').length).toBe(1)
})

test('DELSEGMENT has ten times the deadline', async () => {
  const { behind, proxy } = await start('node')
  await ready(proxy)
  behind.answer = ({ id, socket }) => {
    setTimeout(() => socket.write(encodeReply('DELSEGMENT', id, {}, CONTEXT)), 1_500)
    return undefined
  }

  expect((await proxy.post({ command: 'DELSEGMENT', body: { segment: 'paris' } })).status).toBe(200)
})

test('a connection that ends after a write was sent: 504, and the write is not sent again', async () => {
  const { behind, proxy } = await start('node')
  await ready(proxy)
  behind.answer = ({ socket }) => {
    socket.destroy()
    return undefined
  }

  expect(await proxy.post(WRITE)).toMatchObject({ status: 504, json: { code: '408' } })
  await ready(proxy)
  expect(behind.received.length).toBe(1)
})

test('a connection that ends after a read was sent: the read is repeated', async () => {
  const { behind, proxy } = await start('node')
  await ready(proxy)
  behind.answer = ({ socket, id }) => {
    if (behind.received.length > 1) return encodeReply('PROPEXIST', id, { exists: true }, CONTEXT)
    socket.destroy()
    return undefined
  }

  expect(await proxy.post(READ)).toMatchObject({ status: 200, json: { exists: true } })
})

test('a reply of another shape: 502', async () => {
  const { behind, proxy } = await start('node')
  await ready(proxy)
  behind.answer = () => encodeReply('PROPROOMLIST', 0, { roomTypes: ['a', 'b'] }, CONTEXT)

  expect(await proxy.post(READ)).toMatchObject({
    status: 502,
    json: { code: '500', message: 'The reply cannot be used.' },
  })
})

test('before the upstream is there: 503 and the reason; then it serves, and again after a restart', async () => {
  const first = await openStandIn('node')
  await first.close()
  const proxy = await startTestProxy({ mode: 'standalone', upstream_port: first.port })
  closing.push(proxy.stop)

  const early = await proxy.post(READ)
  expect(early).toMatchObject({ status: 503, json: { status: 'error', code: '503' }, headers: { 'retry-after': '1' } })
  expect((await proxy.get('/health')).status).toBe(200)
  expect(JSON.parse((await proxy.get('/ready')).text)).toMatchObject({ ready: false, reasons: expect.anything() })
  // Mistakes of the request are answered as ever.
  expect((await proxy.post({ command: 'PROPEXIST' })).status).toBe(400)

  const second = await openStandIn('node', first.port)
  await ready(proxy)
  second.answer = () => encodeReply('PROPEXIST', 0, { exists: true }, CONTEXT)
  expect((await proxy.post(READ)).status).toBe(200)
  await second.close()
  await expect.poll(async () => (await proxy.post(READ)).status).toBe(503)
  const third = await openStandIn('node', first.port)
  closing.push(third.close)
  third.answer = second.answer
  await expect.poll(async () => (await proxy.post(READ)).status).toBe(200)
})

test('an upstream without a codec list yet: 503 until it has one', async () => {
  const { behind, proxy } = await start('node')
  behind.codecs = undefined
  for (const socket of behind.sockets) socket.destroy()
  const other = await startTestProxy({ mode: 'standalone', upstream_port: behind.port, timeout_sec: 1 })
  closing.push(other.stop)
  await sleep(50)

  expect(await other.post(READ)).toMatchObject({ status: 503 })
  behind.codecs = ['breakfast']
  await ready(other)
  expect(proxy.httpPort).not.toBe(other.httpPort)
})

const DAY = { date: `${new Date().getUTCFullYear()}-12-31`, availability: 1, finalPrice: 2 }
const STAY = {
  command: 'SEARCHAVAIL',
  segment: 'paris',
  body: { segment: 'paris', room_type: 'double', date: DAY.date },
}

test('after a restart with another list, masks are read with the new one', async () => {
  const { behind, proxy } = await start('node')
  await ready(proxy)
  const days = [{ ...DAY, rateFeatures: ['refundable'] }]
  behind.answer = ({ command }) =>
    command === 'GETCODECS'
      ? undefined
      : encodeReply('SEARCHAVAIL', 0, { numDays: 1, properties: [{ propertyId: 'p', days }] }, CONTEXT)
  expect((await proxy.post(STAY)).json.properties[0].days[0].rate_feature).toEqual(['refundable'])

  behind.codecs = ['one', 'two']
  for (const socket of behind.sockets) socket.destroy()
  await expect.poll(async () => (await proxy.post(STAY)).json.properties?.[0].days[0].rate_feature).toEqual(['two'])
})

test('LOGIN with node_token, also where clients need no token', async () => {
  const behind = await openStandIn('node')
  closing.push(behind.close)
  const proxy = await startTestProxy({ mode: 'standalone', upstream_port: behind.port }, { auth: 'node_token: secret' })
  closing.push(proxy.stop)
  await ready(proxy)

  expect(behind.logins[0]).toBe('secret')
  expect((await proxy.post({ command: 'SETPROP', body: {} })).status).toBe(400)
})

test('a refused node_token is a reason of /ready', async () => {
  const { proxy } = await start('node', {}, 'node_token: wrong')

  await expect.poll(async () => (await proxy.get('/ready')).text).toContain('token was refused')
  await expect.poll(async () => (await proxy.get('/metrics')).text).toMatch(/backend_login_fail_total [1-9]/)
})

test.each(['router', 'existing'] as const)('a router (%s) gets envelopes with segment and write flag', async (kind) => {
  const { behind, proxy } = await start(kind)
  await ready(proxy)
  behind.answer = ({ command, id }) => {
    if (command === 'PROPEXIST') return encodeReply('PROPEXIST', id, { exists: true }, CONTEXT)
    if (command === 'GETSEGMENTS')
      return encodeReply('GETSEGMENTS', id, { segments: [{ segment: 'paris', propertyCount: 0 }] }, CONTEXT)
    return encodeReply('DECROOMAVL', id, { availability: 3 }, CONTEXT)
  }

  expect((await proxy.post(WRITE)).json).toEqual({ status: 'success', availability: 3 })
  expect((await proxy.post(READ)).json).toEqual({ status: 'success', exists: true })
  expect((await proxy.post({ command: 'GETSEGMENTS', segment: '', body: {} })).json).toEqual({
    status: 'success',
    segments: [{ segment: 'paris', prop_count: 0, propCount: 0 }],
  })
  expect((await proxy.post({ command: 'GETCODECS' })).json).toMatchObject({
    rate_features: ['breakfast', 'refundable', 'sea_view'],
  })
  expect(behind.received.map(({ segment, flag }) => [segment, flag])).toEqual([
    ['paris', true],
    ['paris', false],
    ['GETSEGMENTS', false],
  ])
})

test('an existing router gets one request at a time on a connection', async () => {
  const { behind, proxy } = await start('existing')
  await ready(proxy)
  const busy = new Set<unknown>()
  let atOnce = 0
  behind.answer = ({ socket, id }) => {
    if (busy.has(socket)) atOnce++
    busy.add(socket)
    setTimeout(() => {
      busy.delete(socket)
      socket.write(encodeReply('PROPEXIST', id, { exists: true }, CONTEXT))
    }, 5)
    return undefined
  }

  const answers = await Promise.all(Array.from({ length: 40 }, () => proxy.post(READ)))

  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => 200))
  expect(atOnce).toBe(0)
})

test('the malformed error frame of existing routers', async () => {
  const { behind, proxy } = await start('existing')
  await ready(proxy)
  behind.answer = () =>
    Buffer.from('ff00000000160000000545525 24f5201000100010400000003000000343034'.replace(' ', ''), 'hex')

  expect(await proxy.post(READ)).toMatchObject({ status: 404, json: { code: '404', message: 'unknown segment' } })
})

test('keepalives go to an idle router', async () => {
  const { behind, proxy } = await start('router', { keep_alive_sec: 1 })
  await ready(proxy)
  const [socket] = behind.sockets
  const keepalive = new Promise<void>((resolve) => {
    socket?.on('data', (chunk: Buffer) => {
      if (chunk.includes('__keepalive__')) resolve()
    })
  })

  await keepalive
})
