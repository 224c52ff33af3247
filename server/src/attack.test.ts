import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { turnableClock } from '@vacancy/shared'
import { CONTROL_BODY_BYTES_MAX, LIVE } from '@vacancy/shared/contract'
import { LISTENER_LIMITS } from '@vacancy/shared/node'
import { until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Caller,
  callerOf,
  sendBytes,
  startTestControlPlane,
  type TestControlPlane,
} from './testing/control-plane.ts'
import { beginUpload, sendChunk, sendRest } from './testing/import-files.ts'

let plane: TestControlPlane
let admin: Caller

beforeAll(async () => {
  plane = await startTestControlPlane()
  admin = await plane.signIn('admin')
})
afterAll(async () => await plane.stop())

const PERSON = '{"name":"eve","role":"viewer"}'
const JSON_TYPE = { 'content-type': 'application/json' }

type Attack = {
  readonly what: string
  readonly method?: string
  readonly path: string
  readonly headers?: { readonly [name: string]: string }
  readonly body?: string | Uint8Array<ArrayBuffer>
  readonly status: number
}

/** Malformed requests of a signed-in person. */
const ATTACKS: readonly Attack[] = [
  { what: 'half of a JSON value', path: '/api/v1/people', body: '{"name":', status: 400 },
  { what: 'two JSON values', path: '/api/v1/people', body: `${PERSON}${PERSON}`, status: 400 },
  { what: 'JSON in another encoding', path: '/api/v1/people', body: Buffer.from(PERSON, 'utf16le'), status: 400 },
  { what: 'invalid UTF-8', path: '/api/v1/people', body: Buffer.from([0xff, 0xfe, 0x00, 0x80]), status: 400 },
  { what: 'JSON with ten thousand levels', path: '/api/v1/people', body: '['.repeat(10_000), status: 400 },
  { what: 'a number instead of a name', path: '/api/v1/people', body: '{"name":1e999,"role":"viewer"}', status: 400 },
  { what: 'a name of a million letters', path: '/api/v1/people', body: `"${'x'.repeat(1 << 20)}"`, status: 413 },
  {
    what: 'compressed JSON',
    path: '/api/v1/people',
    headers: { ...JSON_TYPE, 'content-encoding': 'gzip' },
    body: gzipSync(PERSON),
    status: 415,
  },
  { what: 'XML', path: '/api/v1/people', headers: { 'content-type': 'text/xml' }, body: '<a/>', status: 415 },
  { what: 'no content type', path: '/api/v1/people', headers: {}, body: Buffer.from(PERSON), status: 415 },
  {
    what: 'a content type of a thousand letters',
    path: '/api/v1/people',
    headers: { 'content-type': `application/${'x'.repeat(1_000)}` },
    body: PERSON,
    status: 415,
  },
  { what: 'a method that the path does not have', method: 'PUT', path: '/api/v1/people', body: PERSON, status: 404 },
  {
    what: 'a path traversal',
    method: 'GET',
    path: '/api/v1/uploads/..%2f..%2fcontrol-plane.sqlite',
    status: 404,
  },
  { what: 'a NUL in a path', method: 'GET', path: '/api/v1/uploads/%00', status: 404 },
  { what: 'a broken escape in a path', method: 'GET', path: '/api/v1/uploads/%f', status: 400 },
  { what: 'an id of a thousand letters', method: 'GET', path: `/api/v1/uploads/${'x'.repeat(1_000)}`, status: 414 },
  { what: 'an address of 17 KB', method: 'GET', path: `/api/v1/audit?after=${'x'.repeat(17_000)}`, status: 414 },
  {
    what: 'a file that does not belong to an import',
    method: 'GET',
    path: '/api/v1/imports/x/files/..%2fx',
    status: 400,
  },
  { what: 'a snapshot by a path', method: 'GET', path: '/api/v1/snapshots/..%2f..%2flock/download', status: 400 },
  { what: 'a side that is a path', method: 'GET', path: '/api/v1/snapshots/compare?a=../x&b=../y', status: 400 },
  {
    what: 'a file that is a path',
    method: 'GET',
    path: '/api/v1/snapshots/compare/properties?a=../x&b=../y',
    status: 400,
  },
  { what: 'a shard with markup', method: 'GET', path: '/api/v1/shards/%3Cscript%3E', status: 404 },
  { what: 'an invalid number', method: 'GET', path: '/api/v1/audit?limit=1e9', status: 400 },
  { what: 'a repeated parameter', method: 'GET', path: '/api/v1/audit?limit=1&limit=2', status: 400 },
  {
    what: 'an invalid time',
    method: 'GET',
    path: '/api/v1/series?names=queries&from=2026-99-99T00:00:00Z',
    status: 400,
  },
  { what: 'invalid topics', method: 'GET', path: '/api/v1/poll?topics=../x', status: 400 },
  {
    what: 'a chunk without an offset',
    method: 'PATCH',
    path: '/api/v1/uploads/x',
    headers: { 'content-type': 'application/octet-stream' },
    body: 'abc',
    status: 404,
  },
  {
    what: 'a plan of an unknown kind',
    path: '/api/v1/plans',
    body: '{"kind":"shutdown","shard":"s1"}',
    status: 400,
  },
  {
    what: 'the key __proto__',
    path: '/api/v1/plans',
    body: '{"kind":"__proto__","shard":"constructor"}',
    status: 400,
  },
]

test.each(ATTACKS)('$what is refused with a hint', async ({ method = 'POST', path, headers, body, status }) => {
  const answer = await fetch(`${plane.url}${path}`, {
    method,
    headers: { ...admin.headers, ...(headers ?? (body === undefined ? {} : JSON_TYPE)) },
    ...(body !== undefined && { body }),
  })

  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
  const problem = (await answer.json()) as { [name: string]: string }
  expect(problem).toMatchObject({ status, requestId: answer.headers.get('x-request-id') })
  for (const part of ['code', 'title', 'detail', 'hint']) expect(problem[part]?.length).toBeGreaterThan(3)
  expect(JSON.stringify(problem).length).toBeLessThan(1_500)
})

test('none of these requests caused an internal error or added a person', async () => {
  expect(plane.log.filter((line) => JSON.parse(line).level === 'error')).toEqual([])
  expect((await admin.call('GET', '/api/v1/people')).text).not.toContain('eve')
})

describe('connections', () => {
  test.each([
    ['a different protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n', 400, 'no-http'],
    [
      'headers that are too large',
      `GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ${'y'.repeat(LISTENER_LIMITS.headerBytesMax)}\r\n\r\n`,
      431,
      'headers-too-large',
    ],
    ['an address of 40 KB', `GET /${'y'.repeat(40_000)} HTTP/1.1\r\n\r\n`, 414, 'address-too-long'],
    ['two content-length headers', 'POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n', 400, 'no-http'],
    [
      'content-length and chunked encoding',
      'POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
      400,
      'no-http',
    ],
  ])('%s gets a problem response, and the connection is closed', async (_what, bytes, status, code) => {
    const answer = await sendBytes(plane.url, bytes)

    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    const problem = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))
    expect(problem).toMatchObject({ status, code, hint: expect.stringMatching(/.{10}/) })
  })

  test('an endless body is refused at the limit', async () => {
    const socket = await opened()
    let answer = ''
    socket.on('data', (data) => {
      answer += data.toString('latin1')
    })
    const head = Object.entries({ ...admin.headers, ...JSON_TYPE, host: '127.0.0.1', 'transfer-encoding': 'chunked' })
    socket.write(`POST /api/v1/people HTTP/1.1\r\n${head.map((pair) => pair.join(': ')).join('\r\n')}\r\n\r\n`)
    const chunk = `1000\r\n${'x'.repeat(4_096)}\r\n`
    let sent = 0
    socket.on('error', () => undefined)
    await until('it is refused', () => {
      if (!answer.includes('413') && sent++ < 10_000) socket.write(chunk)
      return answer.includes(' 413 ')
    })

    expect(sent * 4_096).toBeLessThan(100 * CONTROL_BODY_BYTES_MAX)
    socket.destroy()
  })

  test('WebSockets are refused with a problem, and repeated attempts with retry-after', async () => {
    const other = await startTestControlPlane()
    try {
      const upgrade = (path: string, headers = '') =>
        sendBytes(
          other.url,
          `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n${headers}\r\n`,
        )
      const problemOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))

      expect(problemOf(await upgrade('/nowhere'))).toMatchObject({
        status: 404,
        hint: expect.stringContaining(LIVE.path),
      })
      expect(problemOf(await upgrade(LIVE.path, 'Origin: https://evil.example\r\n'))).toMatchObject({ status: 403 })
      const last = await until('it is too many', async () => {
        const answers = await Promise.all(Array.from({ length: 20 }, () => upgrade(LIVE.path)))
        return answers.find((answer) => answer.startsWith('HTTP/1.1 429 '))
      })

      expect(problemOf(last)).toMatchObject({ code: 'too-many-tries', hint: expect.stringContaining('Try again') })
      expect(last).toMatch(/\r\nretry-after: \d+\r\n/)
      expect((await other.anonymous().call('GET', '/health')).status).toBe(200)
    } finally {
      await other.stop()
    }
  }, 240_000)
})

describe('uploads', () => {
  const bytes = randomBytes(300_000)

  test('an interrupted upload keeps its verified bytes, is not an internal error, and can be resumed', async () => {
    const upload = await beginUpload(admin, 'packages', bytes, '../../../etc/cron.d/evil')
    expect(upload.name).toBe('evil')
    const socket = await opened()
    const head = Object.entries({
      ...admin.headers,
      host: '127.0.0.1',
      'content-length': bytes.length,
      'upload-offset': 0,
      'x-chunk-sha256': 'a'.repeat(64),
    })
    socket.write(
      `PATCH /api/v1/uploads/${upload.id} HTTP/1.1\r\n${head.map((pair) => pair.join(': ')).join('\r\n')}\r\n\r\n`,
    )
    socket.write(bytes.subarray(0, 100_000))
    await until('it arrives', () => existsSync(join(plane.dataDir, 'imports', 'uploads', upload.id)))
    socket.destroy()

    const busy = await until('the interruption is noticed', async () => {
      const { status, body } = await sendChunk(plane.url, admin, upload.id, 0, bytes.subarray(0, 10))
      return body.code !== 'upload-busy' && { status, offset: body.offset }
    })
    expect(busy).toEqual({ status: 200, offset: 10 })
    await sendRest(plane.url, admin, { ...upload, offset: 10 }, bytes)
    const { body } = await admin.call('GET', `/api/v1/uploads/${upload.id}`)
    expect(body).toMatchObject({ complete: true, offset: bytes.length })
    expect(plane.log.filter((line) => JSON.parse(line).level === 'error')).toEqual([])
    expect(readdirSync(join(plane.dataDir, 'imports', 'uploads'))).toEqual([upload.id])
    await admin.call('DELETE', `/api/v1/uploads/${upload.id}`)
  })

  test('an upload that is larger than the disk is refused before any byte is sent', async () => {
    const body = { name: 'x.csv', kind: 'packages', bytes: 64 * 2 ** 30, fingerprint: 'a'.repeat(64) }
    const answers = [await admin.call('POST', '/api/v1/uploads', body)]
    // A disk with space for one upload has none for all that may be open.
    while (answers.at(-1)?.status === 201 && answers.length < 40)
      answers.push(await admin.call('POST', '/api/v1/uploads', body))

    expect(answers.at(-1)?.body.code).toMatch(/^(?:disk-full|too-many-uploads)$/)
    expect(answers.at(-1)?.body.hint).not.toBe('')
    for (const { status, body: view } of answers)
      if (status === 201) await admin.call('DELETE', `/api/v1/uploads/${view.id}`)
  })
})

test('no failure writes a secret to the log', async () => {
  const other = await startTestControlPlane({
    config: { nodeAdminToken: 'node-admin-secret', registryToken: 'registry-secret' },
  })
  try {
    const ada = await other.signIn('admin', 'ada')
    const [password, wrong] = ['a-password-of-ada', 'a-wrong-password']
    const link = (await other.people.signInCode('bob', 'viewer')) as string
    const forged = `vct_${'F'.repeat(43)}`
    await ada.call('PUT', '/api/v1/me/password', { next: password })
    const { body: made } = await ada.call('POST', '/api/v1/tokens', { name: 'ci', role: 'admin', expiresAt: null })
    const program = callerOf(other.url, { authorization: `Bearer ${made.value}` })
    await other.anonymous().call('POST', '/api/v1/session', { name: 'ada', password: wrong })
    await other.anonymous().call('POST', '/api/v1/session', { name: 'ada', password })
    await callerOf(other.url, { authorization: `Bearer ${forged}` }).call('GET', `/api/v1/summary?token=${forged}`)
    await program.call('POST', '/cluster/transfer-leader', { target_node_id: made.value })
    await program.call('POST', '/api/v1/people', `{"name":"${made.value}`)
    await other.anonymous().call('POST', '/api/v1/session/link', { code: link, more: password })
    // An internal error in a request that carries the secrets.
    await other.spoil(ada.me?.person.id as string)
    expect((await ada.call('GET', '/api/v1/me')).status).toBe(500)

    const log = other.log.join('\n')
    const cookie = (ada.headers['cookie'] as string).split('=')[1] as string
    const secrets = [password, wrong, link, forged, made.value, cookie, ada.me?.csrf as string]
    for (const secret of [...secrets, 'node-admin-secret', 'registry-secret']) expect(log).not.toContain(secret)
    expect(log).toContain('a request failed')
  } finally {
    await other.stop()
  }
})

test('an expired session is refused by requests and WebSockets, with the reason', async () => {
  const clock = turnableClock(Date.now())
  const other = await startTestControlPlane({ clock })
  try {
    const ada = await other.signIn('admin', 'ada')
    clock.advance(13 * 3_600_000)

    const read = await ada.call('GET', '/api/v1/summary')
    const change = await ada.call('POST', '/api/v1/tokens', { name: 'late', role: 'admin', expiresAt: null })
    const upload = await ada.call('POST', '/api/v1/uploads', {})
    const live = await sendBytes(
      other.url,
      `GET ${LIVE.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: ${ada.headers['cookie']}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    )

    for (const answer of [read, change, upload])
      expect(answer).toMatchObject({ status: 401, body: { code: 'session-ended' } })
    expect(live).toMatch(/^HTTP\/1.1 401 /)
  } finally {
    await other.stop()
  }
})

function opened(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(plane.url)
    const socket = connect(Number(port), hostname, () => resolve(socket))
    socket.once('error', reject)
  })
}
