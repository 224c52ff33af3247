/** Signing in and out, and the own profile, against a database in memory. Passwords are hashed by a quick stand-in. */

import cookies from '@fastify/cookie'
import { turnableClock } from '@vacancy/shared'
import type { Me, PersonRole } from '@vacancy/shared/contract'
import { fastify } from 'fastify'
import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { openDatabase } from '../database/database.ts'
import type { Session } from '../http/route.ts'
import type { Tables } from '../parts.ts'
import { addToken } from '../testing/access-rows.ts'
import { createAccess, onEnd, tokenSessionOf } from './access.ts'
import { createAccounts } from './accounts.ts'
import { createAudit } from './audit.ts'
import { setUpCode, signInCode } from './people.ts'
import { accessHandlers } from './routes.ts'
import { csrfOf, hashSecret } from './secrets.ts'
import { openSettings } from './settings.ts'

vi.mock('./passwords.ts', () => ({
  hashPassword: async (password: string) => `hash of ${password}`,
  isPassword: async (password: string, hash: string | null) => hash === `hash of ${password}`,
}))

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const IDLE_MS = 43_200_000
const TEST_PASSWORD = 'correct horse battery'

let database: Kysely<Tables>
let world: Awaited<ReturnType<typeof openWorld>>

beforeAll(async () => {
  // The cookie library loads its parser when it is registered, as at the start of a control plane.
  await fastify().register(cookies).ready()
  database = await openDatabase<Tables>(':memory:')
})
afterAll(async () => await database.destroy())
beforeEach(async () => {
  for (const table of ['sessions', 'token_sessions', 'sign_in_links', 'people', 'tokens'] as const)
    await database.deleteFrom(table).execute()
  world = await openWorld()
})

async function openWorld() {
  const clock = turnableClock(NOW)
  const access = createAccess({ database, clock, sessionIdleMs: IDLE_MS })
  const ended: string[] = []
  onEnd(access, (key) => ended.push(key))
  const results: string[] = []
  const settings = await openSettings(database, { environment: 'TEST', environmentKind: 'production', baseUrl: '' })
  const accounts = createAccounts({
    ...{ database, clock, access, settings, audit: createAudit(database, clock, () => undefined) },
    facts: () => ({ database: 'sqlite', registry: null, resolver: null, nodes: 0, startedAt: '' }),
    onSignIn: (result) => results.push(result),
  })
  const { seq } = await database.selectFrom('audit_chain').select('seq').executeTakeFirstOrThrow()
  return { clock, access, accounts, ended, results, handlers: accessHandlers(accounts), lastEntry: seq }
}

type From = { readonly address?: string; readonly session?: Session; readonly isSecure?: boolean }

/** Calls a handler as a route does. */
async function call(route: keyof (typeof world)['handlers'], body: unknown = {}, from: From = {}) {
  const headers: string[] = []
  let status = 200
  const handler = world.handlers[route] as (request: unknown) => Promise<unknown>
  const answer = (await handler({
    ...{ body, address: '10.0.0.1', requestId: 'r1', isSecure: false, session: undefined, origin: 'http://console' },
    principal: { kind: 'person', id: 'caller', name: 'caller', role: 'viewer' },
    reply: {
      header: (name: string, value: string) => headers.push(`${name}: ${value}`),
      status: (code: number) => {
        status = code
      },
    },
    ...from,
  })) as Me
  const secret = /^set-cookie: vacancy_session=([\w-]{43});/.exec(headers[0] ?? '')?.[1] ?? ''
  return { answer, headers, status, secret }
}

/** Adds a person with a password. */
async function person(name: string, role: PersonRole = 'viewer', change: { password?: null; disabled?: 1 } = {}) {
  const row = {
    ...{ id: `id-${name}`, name, name_key: name.toLowerCase(), role, disabled: 0, preferences: '{}' },
    ...{ password: `hash of ${TEST_PASSWORD}`, created_at: NOW - 1_000, last_seen_at: null },
    ...change,
  }
  await database.insertInto('people').values(row).execute()
  return row
}

const token = (change: Partial<Tables['tokens']> = {}) => addToken(database, NOW, change)

const signIn = (name: string, password = TEST_PASSWORD, from: From = {}) =>
  call('POST /api/v1/session', { name, password }, from)

/** The session as the next request of the browser has it. */
function sessionOf({ secret, answer }: { secret: string; answer: Me }): Session {
  const owner = { kind: 'person', id: answer.person.id } as const
  const { csrf, signedInBy } = answer
  return { key: hashSecret(secret), owner, csrf, signedInBy, lastSeenAt: NOW, expiresAt: null }
}

/** Action, actor, target, result and detail of the new entries of the audit log. */
async function entries() {
  const rows = await database
    .selectFrom('audit')
    .selectAll()
    .where('seq', '>', world.lastEntry)
    .orderBy('seq')
    .execute()
  return rows.map(({ action, actor, target, result, detail }) => [action, actor, target, result, detail])
}

/** Earlier failed attempts. */
const tried = (limiter: 'nameTries' | 'addressTries', key: string, count: number) => {
  for (let i = 0; i < count; i++) world.accounts[limiter].failed(key)
}

const sessions = async () => (await database.selectFrom('sessions').selectAll().execute()).map(({ hash }) => hash)

// Sign-in by password

test('name and password begin a session, with the cookie of the browser and an audit entry', async () => {
  await person('Grace', 'operator')

  const signedIn = await signIn('gRACE')

  expect(signedIn.headers).toEqual([
    `set-cookie: vacancy_session=${signedIn.secret}; Path=/; HttpOnly; SameSite=Strict`,
  ])
  expect(signedIn.answer).toMatchObject({
    person: {
      id: 'id-Grace',
      name: 'Grace',
      role: 'operator',
      disabled: false,
      lastSeenAt: '2026-11-22T12:00:00.000Z',
    },
    ...{ csrf: csrfOf(signedIn.secret), signedInBy: 'password', endsAt: '2026-11-23T00:00:00.000Z' },
    ...{ environment: { label: 'TEST', kind: 'production' }, preferences: { theme: 'system', keys: true } },
  })
  expect(signedIn.answer.version).not.toBe('')
  expect(await sessions()).toEqual([hashSecret(signedIn.secret)])
  expect(await entries()).toEqual([['session.start', 'Grace', 'Grace', 'done', 'by password']])
  expect([world.results, world.ended]).toEqual([['done'], []])
})

test('the cookie is secure when the request came by https', async () => {
  await person('ada')
  expect((await signIn('ada', TEST_PASSWORD, { isSecure: true })).headers[0]).toMatch(/; Secure; SameSite=Strict$/)
})

test.each([
  ['an unknown name', 'unknown', TEST_PASSWORD],
  ['a wrong password', 'ada', 'not the password'],
  ['a person without password', 'linked', TEST_PASSWORD],
  ['a person who may not sign in', 'barred', TEST_PASSWORD],
])('%s is refused with the same response', async (_, name, password) => {
  await person('ada')
  await person('linked', 'viewer', { password: null })
  await person('barred', 'viewer', { disabled: 1 })

  await expect(signIn(name, password)).rejects.toMatchObject({ status: 401, code: 'sign-in-failed' })

  expect(await entries()).toEqual([['session.start', 'caller', name, 'refused', 'name or password']])
  expect([world.results, await sessions()]).toEqual([['refused'], []])
})

test('after five wrong passwords in a minute a name waits, from every address and in any case', async () => {
  await person('ada')
  tried('nameTries', 'ada', 4)
  await expect(signIn('Ada', 'wrong')).rejects.toMatchObject({ status: 401 })

  const locked = { status: 429, message: 'Too many sign-in attempts.', hint: 'Try again in 60 s.' }
  await expect(signIn('ADA', TEST_PASSWORD, { address: '10.2.0.1' })).rejects.toMatchObject(locked)
  world.clock.advance(59_999)
  await expect(signIn('ada')).rejects.toMatchObject({ status: 429, hint: 'Try again in 1 s.' })
  world.clock.advance(1)
  expect((await signIn('ada')).status).toBe(200)
})

test('after twenty wrong passwords an address waits, whatever the name is', async () => {
  await person('ada')
  tried('addressTries', '10.0.0.1', 19)
  await expect(signIn('grace')).rejects.toMatchObject({ status: 401 })
  await expect(signIn('ada')).rejects.toMatchObject({ status: 429 })
  expect((await signIn('ada', TEST_PASSWORD, { address: '10.0.0.2' })).status).toBe(200)
})

test('successful attempts count neither for the name nor for the address', async () => {
  await person('ada')
  tried('nameTries', 'ada', 4)
  tried('addressTries', '10.0.0.1', 19)
  for (let i = 0; i < 2; i++) expect((await signIn('ada')).status).toBe(200)
})

test('signing in again ends the previous session of the browser', async () => {
  await person('ada')
  const before = sessionOf(await signIn('ada'))
  const after = await signIn('ada', TEST_PASSWORD, { session: before })
  expect([await sessions(), world.ended]).toEqual([[hashSecret(after.secret)], [before.key]])
})

// By token

test.each([
  ['monitoring', 'viewer'],
  ['client', 'viewer'],
  ['admin', 'admin'],
] as const)('a token with the role %s shows the pages of %s', async (role, shown) => {
  await token({ role })

  const { answer, secret } = await call('POST /api/v1/session/token', { token: 'vct_1' })

  expect(answer).toMatchObject({
    person: { id: 't1', name: 'ci', role: shown, disabled: false },
    ...{ signedInBy: 'token', csrf: csrfOf(secret), endsAt: '2026-11-23T00:00:00.000Z' },
  })
  expect(answer.person.createdAt).toBe('2026-11-22T11:59:55.000Z')
  expect(answer.person.lastSeenAt).toBe('2026-11-22T12:00:00.000Z')
  expect(await entries()).toEqual([['session.start', 'ci', 'ci', 'done', 'by token']])
  expect(world.results).toEqual(['done'])
  const used = await database.selectFrom('tokens').selectAll().executeTakeFirstOrThrow()
  expect([used.last_used_at, used.last_used_from]).toEqual([NOW, '10.0.0.1'])
})

test('the session ends with its token', async () => {
  await token({ expires_at: NOW + 60_000 })
  const { answer } = await call('POST /api/v1/session/token', { token: 'vct_1' })
  expect(answer.endsAt).toBe('2026-11-22T12:01:00.000Z')
})

test.each([
  ['unknown', 'vct_2', {}],
  ['revoked', 'vct_1', { revoked_at: NOW }],
  ['expired', 'vct_1', { expires_at: NOW }],
  ['for producers of the queue', 'vct_1', { role: 'producer' }],
  ['for consumers of the queue', 'vct_1', { role: 'consumer' }],
] as const)('a token that is %s is refused', async (_, value, change) => {
  await token(change)

  await expect(call('POST /api/v1/session/token', { token: value })).rejects.toMatchObject({
    ...{ status: 401, code: 'sign-in-failed', message: 'The token is unknown, revoked or expired.' },
    hint: expect.stringMatching(/^Check that you pasted the whole token/),
  })

  expect(await entries()).toEqual([['session.start', 'caller', 'a token', 'refused', 'token']])
  expect(world.results).toEqual(['refused'])
})

test('a token session replaces the session of the browser', async () => {
  await person('ada')
  await token()
  const before = sessionOf(await signIn('ada'))
  await call('POST /api/v1/session/token', { token: 'vct_1' }, { session: before })
  expect([await sessions(), world.ended]).toEqual([[], [before.key]])
})

test.each(['POST /api/v1/session/token', 'POST /api/v1/session/link', 'POST /api/v1/set-up'] as const)(
  'after twenty wrong values %s waits for a minute',
  async (route) => {
    const body = { token: 'vct_9', code: 'wrong', name: 'ada', password: TEST_PASSWORD }
    tried('addressTries', '10.0.0.1', 19)
    await expect(call(route, body)).rejects.toMatchObject({ status: 401 })
    world.clock.advance(59_999)
    await expect(call(route, body)).rejects.toMatchObject({ status: 429, message: 'Too many sign-in attempts.' })
    world.clock.advance(1)
    await expect(call(route, body)).rejects.toMatchObject({ status: 401 })
  },
)

test('valid tokens and links do not count as attempts', async () => {
  await token()
  await person('ada')
  tried('addressTries', '10.0.0.1', 19)
  for (let i = 0; i < 2; i++) {
    await call('POST /api/v1/session/token', { token: 'vct_1' })
    await call('POST /api/v1/session/link', { code: await signInCode(world.accounts, 'ada') })
  }
  expect(world.results.length).toBe(4)
})

// By link and set-up

test('a link begins a session once, within a day', async () => {
  await person('ada', 'operator')
  const code = await signInCode(world.accounts, 'ADA')
  world.clock.advance(86_399_999)

  const { answer } = await call('POST /api/v1/session/link', { code })

  expect(answer).toMatchObject({ person: { name: 'ada', role: 'operator' }, signedInBy: 'link' })
  expect((await entries()).at(-1)).toEqual(['session.start', 'ada', 'ada', 'done', 'by link'])
  await expect(call('POST /api/v1/session/link', { code })).rejects.toMatchObject({
    status: 401,
    code: 'link-not-good',
  })
})

test('a link is not valid after a day, nor for a person who may not sign in', async () => {
  const ada = await person('ada')
  const code = await signInCode(world.accounts, 'ada')
  world.clock.advance(86_400_000)
  await expect(call('POST /api/v1/session/link', { code })).rejects.toMatchObject({ code: 'link-not-good' })

  const next = await signInCode(world.accounts, 'ada')
  await database.updateTable('people').set({ disabled: 1 }).where('id', '=', ada.id).execute()
  await expect(call('POST /api/v1/session/link', { code: next })).rejects.toMatchObject({ code: 'link-not-good' })
  expect([await sessions(), world.results]).toEqual([[], []])
})

test('the set-up code creates the first admin and is no sign-in link', async () => {
  expect(await call('GET /api/v1/sign-in')).toMatchObject({ answer: { setUp: true, environment: { label: 'TEST' } } })
  const code = await setUpCode(world.accounts)
  await expect(call('POST /api/v1/session/link', { code })).rejects.toMatchObject({ code: 'set-up-needed' })

  const { answer, status } = await call('POST /api/v1/set-up', { code, name: 'Ada', password: TEST_PASSWORD })

  expect(status).toBe(201)
  expect(answer).toMatchObject({ person: { name: 'Ada', role: 'admin' }, signedInBy: 'set-up' })
  expect(await entries()).toEqual([
    ['person.add', 'caller', 'Ada', 'done', 'admin, by set-up'],
    ['session.start', 'Ada', 'Ada', 'done', 'by set-up'],
  ])
  expect(await call('GET /api/v1/sign-in')).toMatchObject({ answer: { setUp: false } })
  expect(await setUpCode(world.accounts)).toBeUndefined()
  expect((await signIn('ada')).status).toBe(200)
})

test('a set-up that succeeds does not count as an attempt', async () => {
  tried('addressTries', '10.0.0.1', 19)
  const code = await setUpCode(world.accounts)
  await call('POST /api/v1/set-up', { code, name: 'Ada', password: TEST_PASSWORD })
  expect((await signIn('ada')).status).toBe(200)
})

test.each([
  ['the sign-in code of a person', async () => await signInCode(world.accounts, 'Ada', 'admin')],
  [
    'a set-up code after the first person was added',
    async () => {
      const code = await setUpCode(world.accounts)
      await person('grace')
      return code
    },
  ],
])('%s sets nothing up', async (_, codeOf) => {
  const body = { code: await codeOf(), name: 'Eve', password: TEST_PASSWORD }
  await expect(call('POST /api/v1/set-up', body)).rejects.toMatchObject({ status: 401, code: 'link-not-good' })
  expect(await database.selectFrom('people').select('name').where('name', '=', 'Eve').execute()).toEqual([])
})

// The own session and profile

test('signing out ends the session and deletes the cookie', async () => {
  await person('ada')
  const session = sessionOf(await signIn('ada'))

  const { headers, answer } = await call('DELETE /api/v1/session', undefined, { session })

  expect(answer).toBeUndefined()
  expect(headers).toEqual(['set-cookie: vacancy_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict'])
  expect([await sessions(), world.ended]).toEqual([[], [session.key]])
  expect((await entries()).at(-1)).toEqual(['session.end', 'caller', 'caller', 'done', ''])
})

test.each([
  'DELETE /api/v1/session',
  'GET /api/v1/me',
  'PUT /api/v1/me/password',
  'PUT /api/v1/me/preferences',
] as const)('%s needs a session', async (route) => {
  await expect(call(route)).rejects.toMatchObject({ status: 401, code: 'not-signed-in' })
})

test('the profile is that of the person or token behind the session', async () => {
  await person('ada')
  await token({ role: 'admin', preferences: '{"theme":"dark"}' })
  const signedIn = await signIn('ada')
  const { answer } = await call('GET /api/v1/me', undefined, { session: sessionOf(signedIn) })
  expect(answer).toEqual(signedIn.answer)

  const session = tokenSessionOf('secret', { id: 't1', expires_at: null }, NOW - 60_000)
  const ofToken = await call('GET /api/v1/me', undefined, { session })
  expect(ofToken.answer).toMatchObject({
    person: { id: 't1', name: 'ci', role: 'admin', lastSeenAt: '2026-11-22T11:59:00.000Z' },
    ...{ signedInBy: 'token', csrf: csrfOf('secret'), preferences: { theme: 'dark' } },
  })
})

test('the own password changes with the current one, and ends the other sessions and open links', async () => {
  const ada = await person('ada')
  const other = sessionOf(await signIn('ada'))
  const session = sessionOf(await signIn('ada'))
  const code = await signInCode(world.accounts, 'ada')

  await call('PUT /api/v1/me/password', { current: TEST_PASSWORD, next: 'another password' }, { session })

  expect((await entries()).at(-1)).toEqual(['person.password', 'caller', 'ada', 'done', ''])
  expect([await sessions(), world.ended]).toEqual([[session.key], [other.key]])
  await expect(call('POST /api/v1/session/link', { code })).rejects.toMatchObject({ code: 'link-not-good' })
  await expect(signIn('ada')).rejects.toMatchObject({ status: 401 })
  expect((await signIn('ada', 'another password')).answer.person.id).toBe(ada.id)
})

test('one who signed in by link chooses a password without a current one, once', async () => {
  await person('ada', 'viewer', { password: null })
  const session = sessionOf(await call('POST /api/v1/session/link', { code: await signInCode(world.accounts, 'ada') }))

  await call('PUT /api/v1/me/password', { next: 'chosen password' }, { session })

  const row = await database.selectFrom('sessions').selectAll().executeTakeFirstOrThrow()
  expect([row.hash, row.signed_in_by]).toEqual([session.key, 'password'])
  expect((await signIn('ada', 'chosen password')).status).toBe(200)
})

test('a wrong current password is refused, and five of them lock the name', async () => {
  await person('ada')
  const session = sessionOf(await signIn('ada'))
  const body = { current: 'wrong', next: 'another password' }
  tried('nameTries', 'ada', 4)
  await expect(call('PUT /api/v1/me/password', body, { session })).rejects.toMatchObject({
    ...{ status: 403, code: 'wrong-password', field: 'current' },
  })
  expect((await entries()).at(-1)).toEqual(['person.password', 'caller', 'ada', 'refused', ''])
  world.clock.advance(59_999)
  await expect(call('PUT /api/v1/me/password', { ...body, current: TEST_PASSWORD }, { session })).rejects.toMatchObject(
    { status: 429, message: 'Too many tries.' },
  )
  expect(await sessions()).toEqual([session.key])
})

test('changes with the correct password do not count as attempts', async () => {
  await person('ada')
  const session = sessionOf(await signIn('ada'))
  tried('nameTries', 'ada', 4)
  for (let i = 0; i < 2; i++)
    await call('PUT /api/v1/me/password', { current: TEST_PASSWORD, next: TEST_PASSWORD }, { session })
  expect(await sessions()).toEqual([session.key])
})

test('a token session has no password', async () => {
  await token()
  const session = tokenSessionOf('secret', { id: 't1', expires_at: null }, NOW)
  await expect(call('PUT /api/v1/me/password', { next: 'x' }, { session })).rejects.toMatchObject({
    code: 'no-password',
  })
})

test('changed preferences are merged, for people and for tokens', async () => {
  await person('ada')
  await person('grace')
  await token()
  const own = sessionOf(await signIn('ada'))
  const ofToken = tokenSessionOf('secret', { id: 't1', expires_at: null }, NOW)
  for (const session of [own, ofToken]) {
    await call('PUT /api/v1/me/preferences', { theme: 'dark', shards: { columns: ['id'] } }, { session })
    await call('PUT /api/v1/me/preferences', { queue: { widths: { id: 90 } } }, { session })
    const change = { jobs: { columns: ['topic'] }, shards: { widths: { id: 80 } }, queue: { columns: ['name'] } }
    const { answer } = await call('PUT /api/v1/me/preferences', change, { session })

    expect(answer).toMatchObject({
      theme: 'dark',
      shards: { columns: ['id'], widths: { id: 80 }, views: [] },
      queue: { columns: ['name'], widths: { id: 90 }, views: [] },
      jobs: { columns: ['topic'], widths: {}, views: [] },
    })
    expect((await call('GET /api/v1/me', undefined, { session })).answer.preferences).toEqual(answer)
  }
  const grace = await database.selectFrom('people').selectAll().where('name', '=', 'grace').executeTakeFirstOrThrow()
  expect(grace.preferences).toBe('{}')
})
