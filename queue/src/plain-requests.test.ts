import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { createRandom, pick, type Random } from '@vacancy/testkit/random'
import { until } from '@vacancy/testkit/until'
import { afterEach, describe, expect, it } from 'vitest'
import { readPlain } from './plain-requests.ts'
import { base64, startTestQueue, type TestQueue, TOKENS } from './testing/queue.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const CASES = 1_500

type Parts = { readonly line: string; readonly headers: readonly string[]; readonly body: string }

const plain = (body: string, more: readonly string[] = []): Parts => ({
  line: 'POST /producer/jobs HTTP/1.1',
  headers: [
    'Host: queue',
    `Authorization: Bearer ${TOKENS.producer}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...more,
  ],
  body,
})
const bytesOf = ({ line, headers, body }: Parts) => [line, ...headers, '', body].join('\r\n')
const submission = (id: string) => JSON.stringify({ job: { id, topic: 'orders', data: base64({ id }) } })

describe('a request', () => {
  it('is plain in its usual forms', () => {
    const headers = ['Content-Type: application/json', 'User-Agent: Go-http-client/1.1', 'Accept-Encoding: gzip']
    for (const path of ['/producer/jobs', '/producer/job'])
      for (const [connection, isLast] of [
        [[], false],
        [['connection: Keep-Alive'], false],
        [['Connection: close'], true],
      ] as const) {
        const line = `POST ${path} HTTP/1.1`
        const read = readPlain(Buffer.from(bytesOf({ ...plain('{"ü":1}', [...headers, ...connection]), line })))
        expect(read).toEqual({ authorization: `Bearer ${TOKENS.producer}`, isLast, body: Buffer.from('{"ü":1}') })
      }
  })

  it.each([
    ['another method', { line: 'GET /producer/jobs HTTP/1.1' }],
    ['another path', { line: 'POST /producer/jobs/a HTTP/1.1' }],
    ['a query', { line: 'POST /producer/jobs?token=a HTTP/1.1' }],
    ['HTTP/1.0', { line: 'POST /producer/jobs HTTP/1.0' }],
    ['no host', { headers: ['Content-Length: 2'] }],
    ['no length', { headers: ['Host: queue'] }],
    ['two lengths', { headers: ['Host: queue', 'Content-Length: 2', 'Content-Length: 2'] }],
    ['a length with a sign', { headers: ['Host: queue', 'Content-Length: +2'] }],
    ['a length that is too long', { headers: ['Host: queue', 'Content-Length: 0000000002'] }],
    ['a body that is too short', { headers: ['Host: queue', 'Content-Length: 3'] }],
    ['more than its body', { headers: ['Host: queue', 'Content-Length: 1'] }],
    ['chunks', { headers: ['Host: queue', 'Content-Length: 2', 'Transfer-Encoding: chunked'] }],
    ['an expectation', { headers: ['Host: queue', 'Content-Length: 2', 'Expect: 100-continue'] }],
    ['another protocol', { headers: ['Host: queue', 'Content-Length: 2', 'Connection: upgrade', 'Upgrade: h2c'] }],
    ['two tokens', { headers: ['Host: queue', 'Content-Length: 2', 'Authorization: a', 'Authorization: b'] }],
    ['a space before the colon', { headers: ['Host: queue', 'Content-Length : 2', 'Content-Length: 2'] }],
    ['a folded line', { headers: ['Host: queue', 'Content-Length: 2', ' Transfer-Encoding: chunked'] }],
    ['a line feed alone', { headers: ['Host: queue', 'Content-Length: 2', 'A: b\nTransfer-Encoding: chunked'] }],
    ['a carriage return alone', { headers: ['Host: queue', 'Content-Length: 2', 'A: b\rc'] }],
    ['a NUL', { headers: ['Host: queue', 'Content-Length: 2', 'A: \0'] }],
    ['a packed body', { headers: ['Host: queue', 'Content-Length: 2', 'Content-Encoding: gzip'] }],
    ['a large head', { headers: ['Host: queue', 'Content-Length: 2', `A: ${'a'.repeat(4_096)}`] }],
  ])('is not plain with %s', (_, parts) => {
    expect(readPlain(Buffer.from(bytesOf({ ...plain('{}'), ...parts })))).toBeUndefined()
  })

  it(`that is plain is understood by Node's HTTP server in the same way, seed ${SEED}`, {
    timeout: 240_000,
  }, async () => {
    const random = createRandom(SEED)
    const seen: { readonly authorization: string | undefined; readonly body: Buffer }[] = []
    const server = createServer(async (request: IncomingMessage, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      seen.push({ authorization: request.headers.authorization, body: Buffer.concat(chunks) })
      response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    let plains = 0
    try {
      for (let n = 0; n < CASES; n++) {
        const bytes = Buffer.from(anyRequest(random), 'latin1')
        const read = readPlain(bytes)
        if (read === undefined) continue
        plains++
        const reply = await exchange((server.address() as AddressInfo).port, bytes)
        expect(reply, bytes.toString('latin1')).toMatch(/^HTTP\/1.1 200 /)
        expect(seen.splice(0)).toEqual([{ authorization: read.authorization, body: read.body }])
        expect(/\r\nConnection: close\r\n/.test(reply)).toBe(read.isLast)
      }
    } finally {
      server.close()
    }
    expect(plains).toBeGreaterThan(CASES / 50)
    expect(plains).toBeLessThan(CASES)
  })
})

/** A request with a few mistakes, or none. */
function anyRequest(random: Random): string {
  const body = pick(random, ['', '{}', '{"job":1}', 'x'.repeat(3_000), '\r\n\r\n', 'POST / HTTP/1.1\r\n\r\n'])
  const length = pick(random, [body.length, body.length, body.length, body.length, 0, body.length + 1, '0x1', '1,1'])
  const headers = [
    'Host: queue',
    `content-length:${pick(random, ['', ' ', '  ', '\t'])}${length}${pick(random, ['', ' ', '\t'])}`,
    pick(random, ['Authorization: Bearer a b', 'authorization:x', 'X-A: ~!"', 'X_B: 1', 'X-Empty:']),
    pick(random, ['Connection: close', 'connection: KEEP-ALIVE', 'Accept: */*', 'Accept: */*', 'Connection: x']),
    random.below(2) === 0
      ? 'A: b'
      : pick(random, ['Te: trailers', 'Host: other', 'A : b', ' a: b', 'A: \x80', 'A: b\n', ': b']),
  ]
  if (random.below(10) === 0) headers.splice(random.below(headers.length), 1)
  const line = pick(random, [
    'POST /producer/jobs HTTP/1.1',
    'POST /producer/job HTTP/1.1',
    'POST /producer/jobs  HTTP/1.1',
  ])
  return [line, ...headers, '', body].join('\r\n')
}

/** What a server sends for some bytes, until one response is complete. */
async function exchange(port: number, bytes: Buffer): Promise<string> {
  const client = open(port)
  client.socket.write(bytes)
  const isComplete = () => {
    const [head = '', body] = client.received().split('\r\n\r\n')
    return body !== undefined && body.length >= Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
  }
  await until('a response', () => isComplete() || client.isClosed())
  client.socket.destroy()
  return client.received()
}

type Client = { readonly socket: Socket; readonly received: () => string; readonly isClosed: () => boolean }

function open(port: number): Client {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let received = ''
  let isClosed = false
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    received += text
  })
  socket.on('close', () => {
    isClosed = true
  })
  return { socket, received: () => received, isClosed: () => isClosed }
}

describe('a connection', () => {
  let queue: TestQueue
  afterEach(() => queue.stop())

  async function start(): Promise<Client> {
    queue = await startTestQueue()
    expect((await queue.call('POST', '/producer/topic', { topic: 'orders' })).status).toBe(200)
    return open(Number(new URL(queue.url).port))
  }
  const statuses = ({ received }: Client) => [...received().matchAll(/HTTP\/1.1 (\d+) /g)].map(([, status]) => status)
  const write = (client: Client, id: string, more: readonly string[] = []) =>
    client.socket.write(bytesOf(plain(submission(id), more)))
  const stored = async () => (await queue.call('GET', '/api/v1/queue/topics/orders/stats')).body.ready

  it('serves every kind of request after plain ones', async () => {
    const client = await start()
    write(client, 'a')
    await until('1 responses', () => statuses(client).length === 1)
    write(client, 'b')
    await until('2 responses', () => statuses(client).length === 2)
    // A body in two reads: from now on the connection is that of Node's HTTP server.
    const [head = '', body = ''] = bytesOf(plain(submission('c'))).split('\r\n\r\n')
    client.socket.write(`${head}\r\n\r\n${body.slice(0, 5)}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
    client.socket.write(body.slice(5))
    await until('3 responses', () => statuses(client).length === 3)
    client.socket.write(bytesOf({ ...plain(''), line: 'GET /producer/jobs/orders/a HTTP/1.1' }))
    await until('the state of a job', () => client.received().includes('"state":"ready"'))
    write(client, 'd')
    await until('5 responses', () => statuses(client).length === 5)
    client.socket.destroy()
    expect(statuses(client)).toEqual(['200', '200', '200', '200', '200'])
    expect(await stored()).toBe(4)
  })

  it('answers requests in order when they come before the response of the last one', async () => {
    const client = await start()
    const both = bytesOf(plain(submission('a'))) + bytesOf({ ...plain('no JSON') })
    client.socket.write(both)
    await until('2 responses', () => statuses(client).length === 2)
    expect(statuses(client)).toEqual(['200', '400'])

    const other = open(Number(new URL(queue.url).port))
    await until('the connection', () => other.socket.readyState === 'open')
    // Each in a segment of its own: the second arrives while the first is being stored.
    for (let n = 0; n < 20; n++) write(other, `job-${n}`)
    await until('20 responses', () => statuses(other).length === 20)
    expect(new Set(statuses(other))).toEqual(new Set(['200']))
    expect(await stored()).toBe(21)
    other.socket.destroy()
    client.socket.destroy()
  })

  it('is closed after the response when the client asks for it, or has ended its side', async () => {
    const client = await start()
    write(client, 'a', ['Connection: close'])
    await until('the connection is closed', client.isClosed)
    expect(client.received()).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*Connection: close\r\n[\s\S]*"accepted":1/)

    const other = open(Number(new URL(queue.url).port))
    other.socket.end(bytesOf(plain(submission('b'))))
    await until('the connection is closed', other.isClosed)
    expect(other.received()).toMatch(/^HTTP\/1.1 200 OK\r\n/)
    expect(await stored()).toBe(2)
  })

  it('is closed after its last response even if the client keeps its side open', async () => {
    const { socket } = await start()
    socket.destroy()
    const port = Number(new URL(queue.url).port)
    for (const more of ['', 'more']) {
      const client = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
      const ended = Promise.withResolvers<void>()
      const closed = Promise.withResolvers<void>()
      client.resume().once('end', ended.resolve).once('error', ended.resolve).once('close', closed.resolve)
      client.write(bytesOf(plain(submission('a'), ['Connection: close'])))
      if (more !== '') client.once('connect', () => setImmediate(() => client.write(more)))
      await ended.promise
      // A socket that is closed as a whole refuses what is sent to it.
      const writing = setInterval(() => client.write('x'), 10)
      await closed.promise
      clearInterval(writing)
    }
  })

  it('of a client that sends nothing for a while is served all the same', async () => {
    const client = await start()
    await until('the connection', () => client.socket.readyState === 'open')
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    write(client, 'a')
    await until('1 responses', () => statuses(client).length === 1)
    expect(statuses(client)).toEqual(['200'])
    client.socket.destroy()
  })

  it('gets the same responses to plain and to other requests', async () => {
    const client = await start()
    write(client, 'a')
    await until('a response', () => statuses(client).length === 1)
    client.socket.destroy()
    const port = Number(new URL(queue.url).port)
    const token =
      (text: string) =>
      (parts: Parts): Parts => ({
        ...parts,
        headers: parts.headers.map((line) => (line.startsWith('Authorization') ? `Authorization: ${text}` : line)),
      })
    const cases: Parts[] = [
      plain(submission('a')),
      plain('{'),
      plain('{"job":{"id":"","topic":"orders"}}'),
      plain('{"job":{"id":"a","topic":"unknown"}}'),
      token('Bearer wrong')(plain(submission('a'))),
      token('')(plain(submission('a'))),
      token(`Bearer ${TOKENS.consumer}`)(plain(submission('a'))),
      token(`Bearer ${TOKENS.orders}`)(plain('{"job":{"id":"a","topic":"mails"}}')),
      { ...plain(''), headers: ['Host: queue', 'Content-Length: 0'] },
    ]
    const shownOf = (reply: string) =>
      reply
        .toLowerCase()
        .replace(/\r\ndate: [^\r]*/, '')
        .split('\r\n')
        .sort()
    for (const parts of cases) {
      const [fast, other] = [
        await exchange(port, Buffer.from(bytesOf(parts))),
        await exchange(port, Buffer.from(bytesOf({ ...parts, headers: [...parts.headers, 'TE: trailers'] }))),
      ]
      expect(fast).toMatch(/^HTTP\/1.1 \d{3} /)
      expect(shownOf(fast)).toEqual(shownOf(other))
    }
  })
})
