import { createHash } from 'node:crypto'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { turnableClock } from '../clock.ts'
import { findToken, ROLES, roleMay, type TokenHash } from './token-check.ts'
import { openTokenFile, readTokenFile } from './token-file.ts'
import { bearerToken, createFailureLimiter, openTokens, parseTokens } from './tokens.ts'

const NOW_MS = Date.parse('2026-11-20T12:00:00Z')
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

let folder: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-tokens-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

function faults(text: string): string[] {
  try {
    parseTokens(text, 'auth.yml')
  } catch (error) {
    return (error as Error).message.split('\n')
  }
  throw new Error('no fault was found')
}

const roleOf = (...given: Parameters<typeof findToken>) => findToken(...given)?.role

test('a token has the role of its entry, given in plain text or as its hash', () => {
  const tokens = parseTokens(
    `tokens:\n  - token: abc123\n    role: admin\n  - token: "sha256:${sha256('def456')}"\n    role: client\n    name: bridge\n`,
    'auth.yml',
  )

  expect(roleOf(tokens, 'abc123', NOW_MS)).toBe('admin')
  expect(roleOf(tokens, new TextEncoder().encode('def456'), NOW_MS)).toBe('client')
  expect(roleOf(tokens, `sha256:${sha256('def456')}`, NOW_MS)).toBeUndefined()
  expect(roleOf(tokens, 'abc1234', NOW_MS)).toBeUndefined()
  expect(roleOf(tokens, '', NOW_MS)).toBeUndefined()
  expect(findToken(tokens, 'def456', NOW_MS)?.name).toBe('bridge')
})

test('a token is unknown from the moment it expires', () => {
  const tokens = parseTokens('tokens:\n  - {token: abc, role: admin, expires: "2026-11-20T13:00:00+01:00"}', 'auth.yml')

  expect(roleOf(tokens, 'abc', NOW_MS - 1)).toBe('admin')
  expect(roleOf(tokens, 'abc', NOW_MS)).toBeUndefined()
})

test('entries can be sent to other threads and reveal no token', () => {
  const tokens = parseTokens('tokens:\n  - {token: abc, role: monitoring}', 'auth.yml')

  const copy = structuredClone(tokens)

  expect(roleOf(copy, 'abc', NOW_MS)).toBe('monitoring')
  expect(JSON.stringify(tokens)).not.toContain('abc')
})

test.each([
  ['', 'auth.yml: tokens: is missing'],
  ['tokens: admin', 'auth.yml: tokens: must be a list'],
  ['users: []\ntokens: []', 'auth.yml:1: users: the file has one key, tokens'],
  ['tokens:\n  - abc', 'auth.yml:2: must be a mapping'],
  ['tokens:\n  - role: admin', 'auth.yml:2: token: is missing'],
  ['tokens:\n  - token: 123456\n    role: admin', 'auth.yml:2: token: must be text; put it in quotes'],
  [
    'tokens:\n  - token: "a b"\n    role: admin',
    'auth.yml:2: token: must be 1 to 255 visible ASCII characters without spaces',
  ],
  [
    'tokens:\n  - token: ""\n    role: admin',
    'auth.yml:2: token: must be 1 to 255 visible ASCII characters without spaces',
  ],
  ['tokens:\n  - token: sha256:1234\n    role: admin', 'auth.yml:2: token: after sha256: come 64 hexadecimal digits'],
  ['tokens:\n  - token: secret\n    role: root', 'auth.yml:2: role: must be one of admin, client, monitoring'],
  ['tokens:\n  - token: secret', 'auth.yml:2: role: must be one of admin, client, monitoring'],
  ['tokens:\n  - {token: secret, role: admin, name: 5}', 'auth.yml:2: name: must be text'],
  [
    'tokens:\n  - {token: secret, role: admin, expires: tomorrow}',
    'auth.yml:2: expires: must be a time like 2027-01-31T00:00:00Z',
  ],
  [
    'tokens:\n  - {token: secret, role: admin, rights: all}',
    'auth.yml:2: rights: an entry has token, role, name and expires',
  ],
  ['tokens:\n  - {token: a, role: admin}\n  - {token: a, role: client}', 'auth.yml:3: is the same token as in line 2'],
  ['tokens: [', expect.stringMatching(/^auth.yml:1:\d+: /)],
])('%j is refused', (text, line) => {
  expect(faults(text)).toEqual([line])
})

test('errors name the line and never the token', () => {
  const lines = faults('tokens:\n  - token: hunter2\n    role: root\n  - token: "hunter 3"\n    role: admin')

  expect(lines).toHaveLength(2)
  expect(lines.join()).not.toMatch(/hunter/)
})

test('an empty list admits no token', () => {
  expect(parseTokens('tokens: []', 'auth.yml')).toEqual([])
})

test('only a Bearer header has a token', () => {
  expect(bearerToken('Bearer abc123')).toBe('abc123')
  expect(bearerToken('bearer  abc123 ')).toBe('abc123')
  for (const header of [undefined, '', 'Bearer', 'Bearer ', 'Basic abc123', 'abc123', 'Bearer a b']) {
    expect(bearerToken(header)).toBeUndefined()
  }
})

test('an admin may do everything, a client also what monitoring may', () => {
  const may = ROLES.map((role) => ROLES.map((needed) => roleMay(role, needed)))

  expect(may).toEqual([
    [true, true, true],
    [false, true, true],
    [false, false, true],
  ])
})

test('a changed file is reloaded, a broken one keeps the old tokens, a repaired one applies', async () => {
  const file = path.join(folder, 'auth.yml')
  const put = (text: string) => {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  put('tokens:\n  - {token: first, role: admin}')
  const errors: string[] = []
  const reloaded: (readonly TokenHash[])[] = []
  const log = {
    debug() {},
    info() {},
    warn() {},
    error: (_fields: object, message: string) => void errors.push(message),
  }
  const store = openTokens({ file, log, lookMs: 5, onReload: (tokens) => reloaded.push(tokens) })

  put('tokens:\n  - {token: second, role: client}')
  await vi.waitUntil(() => roleOf(store.tokens(), 'second', NOW_MS) === 'client')
  expect(roleOf(store.tokens(), 'first', NOW_MS)).toBeUndefined()
  expect(reloaded).toEqual([store.tokens()])

  put('tokens: [')
  await vi.waitUntil(() => errors.length > 0)
  expect(roleOf(store.tokens(), 'second', NOW_MS)).toBe('client')
  expect(() => store.reload()).toThrow(/auth.yml:1/)

  put('tokens:\n  - {token: third, role: admin}\n  - {token: fourth, role: admin}')
  expect(store.reload()).toBe(2)
  expect(roleOf(store.tokens(), 'third', NOW_MS)).toBe('admin')
  store.close()
})

test('a file that is missing at the start is refused', () => {
  const log = { debug() {}, info() {}, warn() {}, error() {} }

  expect(() => openTokens({ file: path.join(folder, 'none.yml'), log })).toThrow(/none.yml: cannot be read/)
})

test('an address is blocked for the rest of a minute after 20 refused tokens', () => {
  const clock = turnableClock(NOW_MS)
  const limiter = createFailureLimiter(clock)

  for (let i = 0; i < 19; i++) limiter.failed('10.0.0.1')
  expect(limiter.waitSeconds('10.0.0.1')).toBe(0)
  clock.advance(15_000)
  limiter.failed('10.0.0.1')

  expect(limiter.waitSeconds('10.0.0.1')).toBe(45)
  expect(limiter.waitSeconds('10.0.0.2')).toBe(0)
  clock.advance(45_000)
  expect(limiter.waitSeconds('10.0.0.1')).toBe(0)
  limiter.failed('10.0.0.1')
  expect(limiter.waitSeconds('10.0.0.1')).toBe(0)
})

test('an attacker with many addresses costs bounded memory; the oldest are evicted first', () => {
  const clock = turnableClock(NOW_MS)
  const limiter = createFailureLimiter(clock)
  for (let i = 0; i < 20; i++) limiter.failed('old')
  for (let i = 0; i < 9_999; i++) limiter.failed(`address ${i}`)
  expect(limiter.waitSeconds('old')).toBe(60)

  limiter.failed('one more')

  expect(limiter.waitSeconds('old')).toBe(0)
})

test('a program may define roles, some bound to a shard and a zone', () => {
  const rules = { roles: ['admin', 'component'], scoped: ['component'] } as const
  const hash = (text: string) => `"sha256:${sha256(text)}"`
  const text = `tokens:
  - { token: ${hash('a')}, role: admin }
  - { token: ${hash('b')}, role: component, shard: s1, zone: z1 }
  - { token: ${hash('c')}, role: component }
`
  const tokens = parseTokens(text, 'auth.yml', rules)

  expect(findToken(tokens, 'a', NOW_MS)).toMatchObject({ role: 'admin' })
  expect(findToken(tokens, 'b', NOW_MS)).toMatchObject({ role: 'component', shard: 's1', zone: 'z1' })
  expect(findToken(tokens, 'c', NOW_MS)).not.toHaveProperty('shard')
})

test.each([
  ['{ token: a, role: client }', 'auth.yml:2: role: must be one of admin, component'],
  ['{ token: a, role: admin, shard: s1 }', 'auth.yml:2: shard: is for the role component'],
  ['{ token: a, role: component, zone: a/b }', 'auth.yml:2: zone: must be'],
  ['{ token: a, role: component, shard: 7 }', 'auth.yml:2: shard: must be'],
])('an entry %s is refused: %s', (entry, fault) => {
  const rules = { roles: ['admin', 'component'], scoped: ['component'] } as const

  expect(() => parseTokens(`tokens:\n  - ${entry}\n`, 'auth.yml', rules)).toThrow(fault)
})

const QUEUE_RULES = { roles: ['admin', 'producer', 'consumer'], withTopics: ['producer', 'consumer'] } as const
const topicsOf = (topics: unknown, role = 'producer') =>
  parseTokens(JSON.stringify({ tokens: [{ token: 'a', role, topics }] }), 'auth.yml', QUEUE_RULES)[0]?.topics

test('a token may be limited to topics, and to those that begin with a text', () => {
  const thousand = Array.from({ length: 1_000 }, (_, n) => `t${n}`)

  expect(topicsOf(['mail', 'sms.*', '*'])).toEqual(['mail', 'sms.*', '*'])
  expect(topicsOf(thousand, 'consumer')).toEqual(thousand)
  expect(topicsOf(undefined)).toBeUndefined()
})

test('a token has 255 characters at most', () => {
  const entry = (length: number) => `tokens:\n  - { token: ${'a'.repeat(length)}, role: admin }`

  expect(parseTokens(entry(255), 'auth.yml')).toHaveLength(1)
  expect(faults(entry(256))).toEqual(['auth.yml:2: token: must be 1 to 255 visible ASCII characters without spaces'])
})

test('tokens of a node have no shard or zone', () => {
  expect(faults('tokens:\n  - { token: a, role: client, shard: s1 }\n')).toEqual([
    'auth.yml:2: shard: an entry has token, role, name and expires',
  ])
})

test('a successful attempt is uncounted, and the limit is configurable', () => {
  const clock = turnableClock(NOW_MS)
  const limiter = createFailureLimiter(clock, 2)

  limiter.failed('name')
  limiter.failed('name')
  expect(limiter.waitSeconds('name')).toBe(60)
  limiter.forgive('name')
  expect(limiter.waitSeconds('name')).toBe(0)
  limiter.forgive('unknown')
  limiter.failed('name')
  expect(limiter.waitSeconds('name')).toBe(60)
})

describe('the file of one token', () => {
  const WAIT = { timeout: 30_000, interval: 2 }

  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'vacancy-token-'))
  })

  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  function put(text: string): string {
    const file = path.join(folder, 'token')
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
    return file
  }

  test.each(['', '\nsecret', 'two words', 'ümlaut', '\u007f', 'x'.repeat(256)])('%j holds no token', (text) => {
    const file = put(text)

    expect(() => readTokenFile(file)).toThrow(
      expect.objectContaining({ code: 'invalid_tokens', message: `${file} holds no token in its first line` }),
    )
  })

  test('a changed token is used, a broken file keeps the previous one, and a closed file is not read', async () => {
    const lines: string[] = []
    const keep = (_fields: object, message: string) => void lines.push(message)
    const log = { debug: keep, info: keep, warn: keep, error: keep }
    const file = put('first')
    const opened = openTokenFile({ file, log, lookMs: 2 })
    expect(opened.token()).toBe('first')

    put('second')
    await vi.waitUntil(() => opened.token() === 'second', WAIT)
    put('two words')
    await vi.waitUntil(() => lines.length === 2, WAIT)
    expect(() => opened.reload()).toThrow('holds no token')
    expect(opened.token()).toBe('second')
    expect(lines).toEqual(['token reloaded', 'the token file changed but cannot be used; keeping the previous token'])

    opened.close()
    put('third')
    opened.reload()
    opened.reload()
    expect(opened.token()).toBe('third')
    // The same token again is no change.
    expect(lines).toEqual([expect.any(String), expect.any(String), 'token reloaded'])
  })
})
