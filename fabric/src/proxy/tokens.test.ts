import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { hashToken } from '@vacancy/shared/node'
import { COMMAND_LIST, encodeReply } from '@vacancy/shared/wire'
import { afterEach, expect, test, vi } from 'vitest'
import { JSON_COMMANDS, type JsonCommand } from './commands.ts'
import { CONTEXT, openStandIn } from './testing/stand-in.ts'
import { startTestProxy } from './testing/start.ts'
import {
  type ApiToken,
  admitToken,
  createTokenLimits,
  findApiToken,
  forgetTokens,
  openApiTokens,
  parseApiTokens,
  refusalOfCommand,
  refusalOfSegment,
} from './tokens.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

function clockAt(ms: number) {
  const clock = { ms, monotonicMs: () => clock.ms, wallMs: () => clock.ms }
  return clock
}

const sha256 = (token: string) => `sha256:${Buffer.from(hashToken(token)).toString('hex')}`
const commandOf = (name: string) => JSON_COMMANDS.get(name) as JsonCommand
const only = (entry: string) => parseApiTokens(`full_access_tokens:\n  - ${entry}\n`, 'auth.yml').tokens[0] as ApiToken

test('a file with tokens in clear text, as hashes, with limits, and one for nodes', () => {
  const { tokens, nodeToken } = parseApiTokens(
    [
      'full_access_tokens:',
      '  - plain-token',
      `  - "${sha256('hashed')}"`,
      '  - { token: limited, name: shop, expires: "2027-01-31T00:00:00Z", commands: [SEARCHPROP], segments: [paris], rate: 2.5, max_inflight: 3 }',
      'read_only_tokens: [reader]',
      'node_token: for-nodes',
    ].join('\n'),
    'auth.yml',
  )

  expect(nodeToken).toBe('for-nodes')
  expect(findApiToken(tokens, 'plain-token', 0)).toMatchObject({ role: 'full', rate: undefined })
  expect(findApiToken(tokens, 'hashed', 0)).toMatchObject({ role: 'full' })
  expect(findApiToken(tokens, 'reader', 0)).toMatchObject({ role: 'read' })
  expect(findApiToken(tokens, 'other', 0)).toBeUndefined()
  expect(findApiToken(tokens, 'limited', 0)).toMatchObject({
    name: 'shop',
    commands: new Set(['SEARCHPROP']),
    segments: new Set(['paris']),
    rate: 2.5,
    maxInflight: 3,
  })
  expect(findApiToken(tokens, 'limited', Date.parse('2027-02-01'))).toBeUndefined()
})

test('an empty file has no tokens', () => {
  expect(parseApiTokens('', 'auth.yml')).toEqual({ tokens: [], nodeToken: undefined })
  expect(parseApiTokens('full_access_tokens:\nread_only_tokens: []\n', 'auth.yml').tokens).toEqual([])
})

test.each([
  ['tokens: [a]', 'tokens: the file has full_access_tokens, read_only_tokens and node_token'],
  ['full_access_tokens: secret', 'full_access_tokens: must be a list'],
  ['full_access_tokens: [secret, secret]', 'entry 2: is the same token as an earlier one'],
  ['full_access_tokens: [secret]\nread_only_tokens: [secret]', 'entry 1: is the same token as an earlier one'],
  ['full_access_tokens: [12]', 'entry 1: token: must be'],
  ['full_access_tokens: ["with blank"]', 'entry 1: token: must be'],
  ['full_access_tokens: ["sha256:12"]', 'after sha256: come 64 hexadecimal digits'],
  ['full_access_tokens: [{ name: x }]', 'entry 1: token: is missing'],
  ['full_access_tokens: [{ token: secret, role: admin }]', 'role: is not one of'],
  ['full_access_tokens: [{ token: secret, expires: soon }]', 'expires: must be a time'],
  ['full_access_tokens: [{ token: secret, expires: "2027-02-31T00:00:00Z" }]', 'expires: must be a time'],
  ['full_access_tokens: [{ token: secret, rate: 0 }]', 'rate: must be'],
  ['full_access_tokens: [{ token: secret, max_inflight: 1.5 }]', 'max_inflight: must be'],
  ['full_access_tokens: [{ token: secret, commands: [NOPE] }]', 'commands: NOPE is not a command'],
  ['full_access_tokens: [{ token: secret, commands: [LOGIN] }]', 'commands: LOGIN is not a command'],
  ['full_access_tokens: [{ token: secret, segments: paris }]', 'segments: must be a list'],
  ['node_token: [secret]', 'node_token: must be'],
  ['full_access_tokens: [secret', 'auth.yml:1'],
])('%j is refused without showing a token', (text, message) => {
  const parse = () => parseApiTokens(text, 'auth.yml')

  expect(parse).toThrow(message)
  try {
    parse()
  } catch (error) {
    expect((error as Error).message).not.toContain('secret')
  }
})

test('a read-only token runs the reads of the table, and none of the writes', () => {
  const reader = parseApiTokens('read_only_tokens: [r]', 'a').tokens[0] as ApiToken
  const allowed = [...JSON_COMMANDS.values()]
    .filter((command) => !refusalOfCommand(reader, command))
    .map(({ name }) => name)

  const reads = COMMAND_LIST.filter(({ access }) => access === 'read').map(({ name }) => name)
  expect(allowed).toEqual(reads)
  expect(refusalOfCommand(reader, commandOf('SETPROP'))).toEqual({
    status: 403,
    code: 'FORBIDDEN',
    message: 'Command not allowed with read-only token',
  })
})

test('allow lists of commands and segments', () => {
  const shop = only('{ token: t, commands: [SEARCHPROP, PROPEXIST, GETCODECS, GETSEGMENTS], segments: [paris] }')
  const check = (name: string, segment: string | undefined, inBody: string) =>
    refusalOfSegment(shop, commandOf(name), segment, inBody)

  expect(refusalOfCommand(shop, commandOf('SEARCHPROP'))).toBeUndefined()
  expect(refusalOfCommand(shop, commandOf('SEARCHAVAIL'))?.status).toBe(403)
  expect(check('SEARCHPROP', undefined, 'paris')).toBeUndefined()
  expect(check('SEARCHPROP', undefined, 'rome')?.status).toBe(403)
  expect(check('PROPEXIST', 'paris', '')).toBeUndefined()
  expect(check('PROPEXIST', undefined, '')?.status).toBe(403)
  expect(check('GETSEGMENTS', undefined, '')?.status).toBe(403)
  expect(check('GETCODECS', undefined, '')).toBeUndefined()
})

test('rate: as many at once as a second has, then one by one', () => {
  const clock = clockAt(0)
  const limits = createTokenLimits(clock, 1)
  const token = only('{ token: t, rate: 2 }')
  const admit = () => typeof admitToken(limits, token) === 'function'

  expect([admit(), admit(), admit()]).toEqual([true, true, false])
  expect(admitToken(limits, token)).toMatchObject({ status: 429, code: '429', retryAfter: 1 })
  clock.ms += 500
  expect([admit(), admit()]).toEqual([true, false])
  clock.ms += 60_000
  expect([admit(), admit(), admit()]).toEqual([true, true, false])
})

test('a rate below one a second admits one, and Retry-After is the wait', () => {
  const clock = clockAt(0)
  const limits = createTokenLimits(clock, 1)
  const token = only('{ token: t, rate: 0.1 }')

  expect(typeof admitToken(limits, token)).toBe('function')
  expect(admitToken(limits, token)).toMatchObject({ status: 429, retryAfter: 10 })
})

test('each of several workers admits its share, and at least one request', () => {
  const limits = createTokenLimits(clockAt(0), 4)
  const { tokens } = parseApiTokens(
    'full_access_tokens: [{token: a, rate: 8}, {token: b, max_inflight: 8}, {token: c, rate: 1, max_inflight: 1}]',
    'auth.yml',
  )
  const admitted = tokens.map((token) => {
    let count = 0
    while (count < 100 && typeof admitToken(limits, token) === 'function') count++
    return count
  })

  expect(admitted).toEqual([2, 2, 1])
})

test('max_inflight: counted until the end of the request, also over a reload', () => {
  const limits = createTokenLimits(clockAt(0), 1)
  const end = admitToken(limits, only('{ token: t, max_inflight: 1 }'))

  expect(admitToken(limits, only('{ token: t, max_inflight: 1 }'))).toMatchObject({ status: 429 })
  forgetTokens(limits, [only('{ token: t, max_inflight: 1 }')])
  expect(admitToken(limits, only('{ token: t, max_inflight: 1 }'))).toMatchObject({ status: 429 })
  if (typeof end === 'function') end()
  expect(typeof admitToken(limits, only('{ token: t, max_inflight: 1 }'))).toBe('function')
  forgetTokens(limits, [])
  expect(limits.usage.size).toBe(0)
})

test('the file is followed: replaced only if it parses, kept if it vanishes', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-proxy-'))
  closing.push(() => rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'auth.yml')
  writeFileSync(file, 'full_access_tokens: [first]')
  const log = { debug() {}, info() {}, warn() {}, error: vi.fn() }
  const onReload = vi.fn()
  const store = openApiTokens({ file, log, onReload, lookMs: 10 })
  closing.push(store.close)
  const knows = (token: string) => findApiToken(store.current().tokens, token, 0) !== undefined

  writeFileSync(file, 'full_access_tokens: [first')
  await expect.poll(() => log.error.mock.calls.length).toBe(1)
  expect(knows('first')).toBe(true)
  expect(() => store.reload()).toThrow('auth.yml:1')
  rmSync(file)
  await expect.poll(() => log.error.mock.calls.length).toBe(2)
  expect(knows('first')).toBe(true)
  writeFileSync(`${file}.new`, 'full_access_tokens: [second]')
  renameSync(`${file}.new`, file)
  await expect.poll(() => knows('second')).toBe(true)
  expect(knows('first')).toBe(false)
  expect(onReload).toHaveBeenCalled()
})

const AUTH = [
  'full_access_tokens: [full, { token: shop, name: shop, max_inflight: 1, segments: [paris] }]',
  'read_only_tokens: [reader]',
].join('\n')
const READ = { command: 'SEARCHPROP', body: { segment: 'paris' } }
const WRITE = { command: 'DELSEGMENT', body: { segment: 'paris' } }
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` })

async function start() {
  const behind = await openStandIn('node')
  closing.push(behind.close)
  const proxy = await startTestProxy(
    { mode: 'standalone', upstream_port: behind.port, auth_enabled: true },
    { auth: AUTH },
  )
  closing.push(proxy.stop)
  await expect.poll(async () => (await proxy.get('/ready')).status).toBe(200)
  return { behind, proxy }
}

test('over HTTP: texts, statuses and roles', async () => {
  const { proxy } = await start()

  expect(await proxy.post(READ)).toMatchObject({
    status: 401,
    headers: { 'www-authenticate': 'Bearer' },
    json: { status: 'error', message: 'Missing Authorization header', code: 'AUTH_ERROR' },
  })
  expect(await proxy.post(READ, { Authorization: 'Basic eA==' })).toMatchObject({
    status: 401,
    json: { message: 'Invalid Authorization header scheme' },
  })
  expect(await proxy.post(READ, bearer('nope'))).toMatchObject({
    status: 401,
    json: { message: 'Invalid or unauthorized token' },
  })
  expect((await proxy.post(READ, bearer('reader'))).status).toBe(200)
  expect(await proxy.post(WRITE, bearer('reader'))).toMatchObject({
    status: 403,
    json: { message: 'Command not allowed with read-only token', code: 'FORBIDDEN' },
  })
  expect((await proxy.post(WRITE, bearer('full'))).status).toBe(200)
  expect((await proxy.post({ command: 'SEARCHPROP', body: { segment: 'rome' } }, bearer('shop'))).status).toBe(403)
})

test('pages: health and readiness are open, metrics need a token, configuration and slow requests one with full access', async () => {
  const { proxy } = await start()
  await proxy.post(READ, bearer('shop'))
  const status = async (where: string, token?: string) => (await proxy.get(where, token ? bearer(token) : {})).status

  expect(await status('/health')).toBe(200)
  expect(await status('/ready')).toBe(200)
  expect(await status('/openapi.json')).toBe(200)
  expect(await status('/metrics')).toBe(401)
  expect(await status('/metrics', 'reader')).toBe(200)
  expect(await status('/debug/slow', 'reader')).toBe(403)
  expect(await status('/debug/slow', 'full')).toBe(200)
  expect(await status('/config', 'reader')).toBe(403)
  const config = await proxy.get('/config', bearer('full'))
  expect(JSON.parse(config.text)).toMatchObject({
    mode: { value: 'standalone', origin: 'flag' },
    slow_ms: { value: 100, origin: 'default' },
  })
  expect((await proxy.get('/metrics', bearer('full'))).text).toContain('api_token_requests_total{token="shop"} 1')
  const preflight = await fetch(`${proxy.url}/api`, { method: 'OPTIONS' })
  expect(preflight.status).toBe(204)
})

test('after 20 failed tries an address waits, but a valid token passes', async () => {
  const { proxy } = await start()
  for (let i = 0; i < 20; i++) expect((await proxy.post(READ, bearer(`guess${i}`))).status).toBe(401)

  const refused = await proxy.post(READ, bearer('guess'))

  expect(refused).toMatchObject({ status: 429, json: { code: '429' } })
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  expect((await proxy.post(READ, bearer('full'))).status).toBe(200)
})

test('a token that vanishes while its request is in flight: the answer comes, the next request is refused', async () => {
  const { behind, proxy } = await start()
  const held: (() => void)[] = []
  behind.answer = ({ id, socket }) => {
    held.push(() => socket.write(encodeReply('SEARCHPROP', id, { propertyIds: [] }, CONTEXT)))
    return undefined
  }
  const first = proxy.post(READ, bearer('shop'))
  await expect.poll(() => held.length).toBe(1)
  expect((await proxy.post(READ, bearer('shop'))).status).toBe(429)
  proxy.setAuth('full_access_tokens: [full]')
  held[0]?.()

  expect((await first).status).toBe(200)
  expect((await proxy.post(READ, bearer('shop'))).status).toBe(401)
})

test('max_inflight is given back by a client that goes away', async () => {
  const { behind, proxy } = await start()
  behind.answer = () => undefined
  const gone = new AbortController()
  const first = fetch(`${proxy.url}/api`, {
    method: 'POST',
    body: JSON.stringify(READ),
    headers: bearer('shop'),
    signal: gone.signal,
  })
  await expect.poll(() => behind.received.length).toBe(1)
  gone.abort()
  await expect(first).rejects.toThrow()

  behind.answer = ({ id }) => encodeReply('SEARCHPROP', id, { propertyIds: [] }, CONTEXT)
  await expect.poll(async () => (await proxy.post(READ, bearer('shop'))).status).toBe(200)
})
