/** People, API tokens and settings as admins change them, and requests identified by their credentials; a database in memory. */

import type { IncomingHttpHeaders } from 'node:http'
import cookies from '@fastify/cookie'
import { turnableClock } from '@vacancy/shared'
import { ACCESS_LIMITS, type PersonRole } from '@vacancy/shared/contract'
import { fastify } from 'fastify'
import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openDatabase } from '../database/database.ts'
import type { Tables } from '../parts.ts'
import { addToken } from '../testing/access-rows.ts'
import { createAccess, isAllowed, onEnd, SEEN_MS } from './access.ts'
import { createAccounts, signInLink } from './accounts.ts'
import { createAudit } from './audit.ts'
import { identify, isValidKey } from './identify.ts'
import { setUpCode, signInCode } from './people.ts'
import { accessHandlers } from './routes.ts'
import { csrfOf, hashSecret, newSecret } from './secrets.ts'
import { countSessions, deleteExpiredAccess, useLink } from './sessions.ts'
import { openSettings } from './settings.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const IDLE_MS = 43_200_000

let database: Kysely<Tables>
let world: Awaited<ReturnType<typeof openWorld>>

beforeAll(async () => {
  // The cookie library loads its parser when it is registered, as at the start of a control plane.
  await fastify().register(cookies).ready()
  database = await openDatabase<Tables>(':memory:')
})
afterAll(async () => await database.destroy())
beforeEach(async () => {
  for (const table of ['sessions', 'token_sessions', 'sign_in_links', 'people', 'tokens', 'settings'] as const)
    await database.deleteFrom(table).execute()
  world = await openWorld()
})

async function openWorld() {
  const clock = turnableClock(NOW)
  const access = createAccess({ database, clock, sessionIdleMs: IDLE_MS })
  const ended: string[] = []
  onEnd(access, (key) => ended.push(key))
  const settings = await openSettings(database, { environment: ' TEST ', environmentKind: 'production', baseUrl: '' })
  const accounts = createAccounts({
    ...{ database, clock, access, settings, audit: createAudit(database, clock, () => undefined) },
    facts: () => ({ database: 'sqlite', registry: 'http://r1', resolver: null, nodes: 3, startedAt: 'then' }),
    onSignIn: () => undefined,
  })
  const { seq } = await database.selectFrom('audit_chain').select('seq').executeTakeFirstOrThrow()
  return { clock, access, accounts, ended, handlers: accessHandlers(accounts), lastEntry: seq }
}

/** Calls a handler as a route does. */
async function call<T = unknown>(route: keyof (typeof world)['handlers'], body: unknown = {}, id = ''): Promise<T> {
  const handler = world.handlers[route] as (request: unknown) => Promise<unknown>
  const principal = { kind: 'person', id: 'caller', name: 'caller', role: 'admin' }
  const answer = await handler({
    ...{ body, params: { id }, principal, address: '10.0.0.1', requestId: 'r1', origin: 'http://console' },
  })
  return answer as T
}

async function person(name: string, role: PersonRole = 'viewer', change: Partial<Tables['people']> = {}) {
  const row = {
    ...{ id: `id-${name}`, name, name_key: name.toLowerCase(), role, disabled: 0, preferences: '{}', password: null },
    ...{ created_at: NOW - 1_000, last_seen_at: null, ...change },
  }
  await database.insertInto('people').values(row).execute()
  return row
}

/** A session of a person; its secret. */
async function session(id: string, lastSeenAt = NOW): Promise<string> {
  const secret = newSecret()
  const row = { hash: hashSecret(secret), person_id: id, signed_in_by: 'link', address: '', created_at: NOW } as const
  await database
    .insertInto('sessions')
    .values({ ...row, last_seen_at: lastSeenAt })
    .execute()
  return secret
}

const token = (change: Partial<Tables['tokens']> = {}) => addToken(database, NOW, change)

async function tokenSession(lastSeenAt = NOW, id = 't1'): Promise<string> {
  const secret = newSecret()
  const row = { hash: hashSecret(secret), token_id: id, address: '', created_at: NOW, last_seen_at: lastSeenAt }
  await database.insertInto('token_sessions').values(row).execute()
  return secret
}

/** Action, actor, target and detail of the new entries of the audit log. */
async function entries() {
  const rows = await database
    .selectFrom('audit')
    .selectAll()
    .where('seq', '>', world.lastEntry)
    .orderBy('seq')
    .execute()
  return rows.map(({ action, actor, target, detail }) => [action, actor, target, detail])
}

const names = async () => (await database.selectFrom('people').select('name').execute()).map(({ name }) => name)
const redeem = (code: string) => database.transaction().execute((within) => useLink(world.access, within, code))

type Added = { readonly person: { readonly id: string }; readonly link: string }

// People

test('an added person gets a link that signs in once', async () => {
  const { person: added, link } = await call<Added>('POST /api/v1/people', { name: 'Ada', role: 'operator' })

  expect(added).toEqual({
    ...{ id: added.id, name: 'Ada', role: 'operator', disabled: false },
    ...{ createdAt: '2026-11-22T12:00:00.000Z', lastSeenAt: null },
  })
  expect(await entries()).toEqual([['person.add', 'caller', 'Ada', 'operator']])
  const [, code = ''] = /^http:\/\/console\/sign-in#code=([\w-]{43})$/.exec(link) ?? []
  expect(await redeem(code)).toEqual({ personId: added.id })
  expect(await redeem(code)).toBeUndefined()
})

test('links begin with the base address when there is one', async () => {
  const environment = { label: 'X', kind: 'production' }
  await call('PUT /api/v1/settings', { environment, baseUrl: 'https://vacancy.example/' })
  const { link } = await call<Added>('POST /api/v1/people', { name: 'Ada', role: 'viewer' })
  expect(link.startsWith('https://vacancy.example/sign-in#code=')).toBe(true)
  expect(signInLink('http://h', 'c')).toBe('http://h/sign-in#code=c')
})

test('a name exists once, whatever its case, and a refused person leaves no entry', async () => {
  await person('Ada')
  await expect(call('POST /api/v1/people', { name: 'aDA', role: 'viewer' })).rejects.toMatchObject({
    ...{ status: 409, code: 'name-taken', message: 'A person named aDA already exists.', field: 'name' },
  })
  expect([await names(), await entries()]).toEqual([['Ada'], []])
})

test('there are at most 1,000 people', async () => {
  const rows = Array.from({ length: ACCESS_LIMITS.peopleMax - 1 }, (_, at) => ({
    ...{ id: `p${at}`, name: `n${at}`, name_key: `n${at}`, role: 'viewer' as const, password: null, disabled: 0 },
    ...{ preferences: '{}', created_at: NOW, last_seen_at: null },
  }))
  await database.insertInto('people').values(rows).execute()
  await call('POST /api/v1/people', { name: 'last', role: 'viewer' })
  await expect(call('POST /api/v1/people', { name: 'more', role: 'viewer' })).rejects.toMatchObject({
    ...{ code: 'too-many', message: 'The maximum of 1000 people is reached.' },
  })
})

test('people are listed by name', async () => {
  await person('bob', 'operator', { disabled: 1, last_seen_at: NOW })
  await person('Ada', 'admin')
  expect(await call('GET /api/v1/people')).toMatchObject({
    people: [
      { name: 'Ada', role: 'admin', disabled: false, lastSeenAt: null },
      { name: 'bob', role: 'operator', disabled: true, lastSeenAt: '2026-11-22T12:00:00.000Z' },
    ],
  })
})

test.each([
  [{ role: 'operator' }, 'viewer → operator', { role: 'operator', disabled: false }],
  [{ disabled: true }, 'may not sign in', { role: 'viewer', disabled: true }],
  [{ role: 'admin', disabled: true }, 'viewer → admin, may not sign in', { role: 'admin', disabled: true }],
])('the change %o is stored with its audit entry', async (body, detail, view) => {
  await person('root', 'admin')
  const { id } = await person('ada')

  expect(await call('PUT /api/v1/people/{id}', body, id)).toMatchObject({ name: 'ada', ...view })

  expect(await entries()).toEqual([['person.change', 'caller', 'ada', detail]])
  const { people } = await call<{ people: unknown[] }>('GET /api/v1/people')
  expect(people[0]).toMatchObject({ name: 'ada', ...view })
})

test('a person may sign in again', async () => {
  await person('root', 'admin')
  const { id } = await person('ada', 'viewer', { disabled: 1 })
  expect(await call('PUT /api/v1/people/{id}', { disabled: false }, id)).toMatchObject({ disabled: false })
  expect(await entries()).toEqual([['person.change', 'caller', 'ada', 'may sign in']])
})

test.each([{}, { role: 'viewer' }, { disabled: false }, { role: 'viewer', disabled: false }])(
  'the change %o changes nothing and has no entry',
  async (body) => {
    const { id } = await person('ada')
    expect(await call('PUT /api/v1/people/{id}', body, id)).toMatchObject({ role: 'viewer', disabled: false })
    expect(await entries()).toEqual([])
  },
)

test('who may not sign in loses sessions and links; another role loses neither', async () => {
  await person('root', 'admin')
  const ada = await person('ada')
  const bob = await person('bob')
  const own = await session(ada.id)
  const other = await session(bob.id)
  const code = await signInCode(world.accounts, 'ada')
  const ofBob = await signInCode(world.accounts, 'bob')

  await call('PUT /api/v1/people/{id}', { role: 'operator' }, ada.id)
  expect(world.ended).toEqual([])
  await call('PUT /api/v1/people/{id}', { disabled: true }, ada.id)

  expect(world.ended).toEqual([hashSecret(own)])
  expect(await isValidKey(world.access, hashSecret(other))).toBe(true)
  expect(await redeem(code)).toBeUndefined()
  expect(await redeem(ofBob)).toEqual({ personId: bob.id })
})

test.each([{ role: 'viewer' }, { disabled: true }])('the last admin cannot be changed to %o', async (body) => {
  const { id } = await person('ada', 'admin')
  await person('bob', 'admin', { disabled: 1 })
  await expect(call('PUT /api/v1/people/{id}', body, id)).rejects.toMatchObject({
    ...{ code: 'last-admin', message: 'ada is the last admin who may sign in.' },
  })
  expect((await call<{ people: unknown[] }>('GET /api/v1/people')).people[0]).toMatchObject({
    ...{ name: 'ada', role: 'admin', disabled: false },
  })
})

test('a new link replaces the earlier ones of the person', async () => {
  const { id } = await person('ada')
  const before = await signInCode(world.accounts, 'ada')
  const { link } = await call<Added>('POST /api/v1/people/{id}/link', {}, id)
  expect((await entries()).at(-1)).toEqual(['person.link', 'caller', 'ada', ''])
  expect(await redeem(before)).toBeUndefined()
  expect(await redeem(link.split('=')[1] as string)).toEqual({ personId: id })
})

test('there is no link for an unknown person, nor for one who may not sign in', async () => {
  const { id } = await person('ada', 'viewer', { disabled: 1 })
  const barred = { code: 'person-disabled', message: 'ada may not sign in.' }
  await expect(call('POST /api/v1/people/{id}/link', {}, id)).rejects.toMatchObject(barred)
  await expect(call('POST /api/v1/people/{id}/link', {}, 'id-eve')).rejects.toMatchObject({ code: 'no-person' })
  await expect(signInCode(world.accounts, 'ada')).rejects.toMatchObject(barred)
})

test('the command line adds a person with a role, and needs a known name without one', async () => {
  await expect(signInCode(world.accounts, 'Ada')).rejects.toMatchObject({
    ...{ code: 'no-person', message: 'There is no person named Ada.', hint: expect.stringContaining('--create') },
  })
  await signInCode(world.accounts, 'Ada', 'operator')
  const code = await signInCode(world.accounts, 'ADA', 'admin')
  expect(await names()).toEqual(['Ada'])
  expect((await call<{ people: unknown[] }>('GET /api/v1/people')).people).toMatchObject([{ role: 'operator' }])
  const link = ['person.link', 'system', 'Ada', 'from the command line']
  expect(await entries()).toEqual([
    ['person.add', 'system', 'Ada', 'operator'],
    link,
    [...link.slice(0, 2), 'ADA', link[3]],
  ])
  expect(await redeem(code)).toBeDefined()
})

test('there is a set-up code only while there is no person, and the last one counts', async () => {
  const first = (await setUpCode(world.accounts)) as string
  const second = (await setUpCode(world.accounts)) as string
  expect([await redeem(first), await redeem(second)]).toEqual([undefined, { personId: null }])
  await person('ada')
  expect(await setUpCode(world.accounts)).toBeUndefined()
})

// Tokens

type Made = { readonly token: { readonly id: string }; readonly value: string }

test('a new token is shown once, and stored as its hash', async () => {
  const body = { name: 'ci', role: 'producer', topics: ['a.*', 'b'], expiresAt: '2026-11-22T12:00:00.001Z' }
  const { token: view, value } = await call<Made>('POST /api/v1/tokens', body)

  expect(value).toMatch(/^vct_[\w-]{43}$/)
  expect(view).toEqual({
    ...{ id: view.id, name: 'ci', role: 'producer', topics: ['a.*', 'b'], createdBy: 'caller' },
    ...{ createdAt: '2026-11-22T12:00:00.000Z', expiresAt: '2026-11-22T12:00:00.001Z', lastUsedAt: null },
    ...{ lastUsedFrom: null, revokedAt: null },
  })
  expect(await entries()).toEqual([['token.create', 'caller', 'ci', 'producer of a.*, b']])
  expect(await call('GET /api/v1/tokens')).toEqual({ tokens: [view] })
  const { hash } = await database.selectFrom('tokens').select('hash').executeTakeFirstOrThrow()
  expect(hash).toBe(hashSecret(value))
})

test('tokens are listed newest first, without topics for all', async () => {
  await token()
  await call('POST /api/v1/tokens', { name: 'new', role: 'client', topics: null, expiresAt: null })
  expect(await call('GET /api/v1/tokens')).toMatchObject({
    tokens: [
      { name: 'new', topics: null, expiresAt: null },
      { name: 'ci', topics: null },
    ],
  })
  expect(await entries()).toEqual([['token.create', 'caller', 'new', 'client']])
})

test('a token cannot expire before it is created', async () => {
  const body = { name: 'ci', role: 'client', topics: null, expiresAt: '2026-11-22T12:00:00.000Z' }
  await expect(call('POST /api/v1/tokens', body)).rejects.toMatchObject({
    ...{ status: 400, message: 'expiresAt is in the past.', field: 'expiresAt' },
  })
})

test('there are at most 1,000 tokens that are not revoked', async () => {
  const rows = Array.from({ length: ACCESS_LIMITS.tokensMax }, (_, at) => ({
    ...{ id: `t${at}`, hash: `h${at}`, name: 'x', role: 'client' as const, topics: null, created_by: '' },
    ...{ created_at: NOW, expires_at: null, last_used_at: null, last_used_from: null, preferences: '{}' },
    revoked_at: at === 0 ? NOW : null,
  }))
  await database.insertInto('tokens').values(rows).execute()
  const body = { name: 'ci', role: 'client', topics: null, expiresAt: null }
  await call('POST /api/v1/tokens', body)
  await expect(call('POST /api/v1/tokens', body)).rejects.toMatchObject({
    ...{ code: 'too-many', message: 'The maximum of 1000 tokens is reached.' },
  })
})

test('a revoked token ends with its sessions, and is revoked once', async () => {
  await token()
  const secret = await tokenSession()
  expect(await call('DELETE /api/v1/tokens/{id}', {}, 't1')).toBeUndefined()
  expect(await entries()).toEqual([['token.revoke', 'caller', 'ci', '']])
  expect(world.ended).toEqual(['t1', hashSecret(secret)])
  await expect(call('DELETE /api/v1/tokens/{id}', {}, 't1')).rejects.toMatchObject({ code: 'no-token' })
  expect(await call('GET /api/v1/tokens')).toMatchObject({ tokens: [{ revokedAt: '2026-11-22T12:00:00.000Z' }] })
})

// Settings

test('settings override the configuration at once and after a restart', async () => {
  expect(await call('GET /api/v1/settings')).toMatchObject({
    ...{ environment: { label: 'TEST', kind: 'production' }, baseUrl: '', registry: 'http://r1', nodes: 3 },
  })
  const next = { environment: { label: 'EU', kind: 'development' }, baseUrl: 'https://vacancy.example' }
  await call('PUT /api/v1/settings', { ...next, baseUrl: 'https://vacancy.example/' })
  expect(await call('GET /api/v1/settings')).toMatchObject(next)
  expect(await entries()).toEqual([['settings.change', 'caller', 'settings', JSON.stringify(next)]])

  await call('PUT /api/v1/settings', { ...next, baseUrl: '' })
  const again = await openSettings(database, {
    environment: 'X',
    environmentKind: 'production',
    baseUrl: 'http://own/',
  })
  expect([again.environment(), again.baseUrl()]).toEqual([next.environment, 'http://own'])
})

// Credentials of a request

const cookie = (secret: string) => ({ cookie: `vacancy_session=${secret}` })
const bearer = (value: string) => ({ authorization: `Bearer ${value}` })
const who = (headers: IncomingHttpHeaders, address = '10.0.0.1') => identify(world.access, headers, address)
const ANONYMOUS = { principal: { kind: 'anonymous', id: '', name: '', role: undefined }, key: '', session: undefined }

test('a request without credentials, or with a malformed cookie, is anonymous', async () => {
  expect(await who({})).toEqual({ ...ANONYMOUS, fault: '' })
  expect(await who(cookie('short'))).toEqual({ ...ANONYMOUS, fault: '' })
  expect(await who({ cookie: 'other=1' })).toEqual({ ...ANONYMOUS, fault: '' })
  expect(await who(cookie(newSecret()))).toEqual({ ...ANONYMOUS, fault: 'session' })
})

test('a session cookie identifies its person, and its use is stored each minute', async () => {
  const { id } = await person('ada', 'operator')
  const secret = await session(id)
  const expected = {
    ...{ principal: { kind: 'person', id, name: 'ada', role: 'operator' }, key: hashSecret(secret), fault: '' },
    session: {
      ...{ key: hashSecret(secret), owner: { kind: 'person', id }, csrf: csrfOf(secret), signedInBy: 'link' },
      ...{ lastSeenAt: NOW, expiresAt: null },
    },
  }
  world.clock.advance(SEEN_MS - 1)
  expect(await who(cookie(secret))).toEqual(expected)
  world.clock.advance(1)
  const lastSeenAt = NOW + SEEN_MS
  expect(await who(cookie(secret))).toEqual({ ...expected, session: { ...expected.session, lastSeenAt } })
  world.clock.advance(SEEN_MS - 1)
  expect((await who(cookie(secret))).session?.lastSeenAt).toBe(lastSeenAt)
  expect(await call('GET /api/v1/people')).toMatchObject({ people: [{ lastSeenAt: '2026-11-22T12:01:00.000Z' }] })
})

test('a session ends after 12 hours without use, and with its person', async () => {
  await person('root', 'admin')
  const { id } = await person('ada')
  const secret = await session(id)
  const isValid = () => isValidKey(world.access, hashSecret(secret))
  world.clock.advance(IDLE_MS - 1)
  expect(await isValid()).toBe(true)
  world.clock.advance(1)
  expect([await isValid(), (await who(cookie(secret))).fault]).toEqual([false, 'session'])

  const late = await session(id, NOW + IDLE_MS)
  await database.updateTable('people').set({ disabled: 1 }).where('id', '=', id).execute()
  expect((await who(cookie(late))).fault).toBe('session')
  expect(await isValidKey(world.access, hashSecret(late))).toBe(false)
})

test('a token identifies itself; its use is stored each minute, and at once from another address', async () => {
  await token({ role: 'client' })
  const used = async () => {
    const row = await database.selectFrom('tokens').selectAll().executeTakeFirstOrThrow()
    return [row.last_used_at, row.last_used_from]
  }
  expect(await who(bearer('vct_1'))).toEqual({
    ...{ principal: { kind: 'token', id: 't1', name: 'ci', role: 'client' }, key: 't1', session: undefined, fault: '' },
  })
  expect(await used()).toEqual([NOW, '10.0.0.1'])
  world.clock.advance(SEEN_MS - 1)
  await who(bearer('vct_1'))
  expect(await used()).toEqual([NOW, '10.0.0.1'])
  await who(bearer('vct_1'), '10.0.0.2')
  expect(await used()).toEqual([NOW + SEEN_MS - 1, '10.0.0.2'])
  world.clock.advance(SEEN_MS)
  await who(bearer('vct_1'), '10.0.0.2')
  expect(await used()).toEqual([NOW + 2 * SEEN_MS - 1, '10.0.0.2'])
})

test.each([
  ['an unknown value', 'Bearer vct_2', {}],
  ['another scheme', 'Basic vct_1', {}],
  ['a revoked token', 'Bearer vct_1', { revoked_at: NOW }],
  ['a token that expires now', 'Bearer vct_1', { expires_at: NOW }],
])('%s is refused', async (_, authorization, change) => {
  await token(change)
  expect(await who({ authorization })).toEqual({ ...ANONYMOUS, fault: 'token' })
})

test('a token is valid until it expires', async () => {
  await token({ expires_at: NOW + 1 })
  expect((await who(bearer('vct_1'))).fault).toBe('')
  expect(await isValidKey(world.access, 't1')).toBe(true)
  world.clock.advance(1)
  expect(await isValidKey(world.access, 't1')).toBe(false)
  expect(await isValidKey(world.access, 't2')).toBe(false)
})

test('after many invalid tokens an address waits, but valid tokens do not', async () => {
  await token()
  let refused = 0
  while (world.access.failures.waitSeconds('10.0.0.1') === 0 && refused++ < 1_000)
    world.access.failures.failed('10.0.0.1')
  world.clock.advance(59_999)
  await expect(who(bearer('vct_2'))).rejects.toMatchObject({ status: 429, message: 'Too many invalid tokens.' })
  expect((await who(bearer('vct_1'))).fault).toBe('')
  world.clock.advance(1)
  expect((await who(bearer('vct_2'))).fault).toBe('token')
  expect((await who(bearer('vct_2'), '10.0.0.2')).fault).toBe('token')
})

test('a session of a token has its rights, ends with it, and counts as its use', async () => {
  await token({ role: 'admin', expires_at: NOW + 10 * SEEN_MS })
  const secret = await tokenSession()
  const expected = {
    ...{ principal: { kind: 'token', id: 't1', name: 'ci', role: 'admin' }, key: hashSecret(secret), fault: '' },
    session: {
      ...{ key: hashSecret(secret), owner: { kind: 'token', id: 't1' }, csrf: csrfOf(secret), signedInBy: 'token' },
      ...{ lastSeenAt: NOW, expiresAt: NOW + 10 * SEEN_MS },
    },
  }
  world.clock.advance(SEEN_MS - 1)
  expect(await who(cookie(secret))).toEqual(expected)
  expect(await call('GET /api/v1/tokens')).toMatchObject({ tokens: [{ lastUsedAt: null }] })
  world.clock.advance(1)
  expect((await who(cookie(secret))).session?.lastSeenAt).toBe(NOW + SEEN_MS)
  expect(await call('GET /api/v1/tokens')).toMatchObject({ tokens: [{ lastUsedAt: '2026-11-22T12:01:00.000Z' }] })
  world.clock.advance(1)
  expect((await who(cookie(secret))).session?.lastSeenAt).toBe(NOW + SEEN_MS)
  expect(await isValidKey(world.access, hashSecret(secret))).toBe(true)
  world.clock.advance(9 * SEEN_MS)
  expect([await isValidKey(world.access, hashSecret(secret)), (await who(cookie(secret))).fault]).toEqual([
    ...[false, 'session'],
  ])
})

test('expired sessions and links are deleted, and their end is announced', async () => {
  const { id } = await person('ada')
  await token()
  await token({ id: 't2', hash: 'h2', expires_at: NOW + IDLE_MS })
  await token({ id: 't3', hash: 'h3', revoked_at: NOW })
  const old = [
    await session(id, NOW),
    await tokenSession(NOW),
    await tokenSession(NOW + 1, 't2'),
    await tokenSession(NOW + 1, 't3'),
  ]
  const kept = [await session(id, NOW + 1), await tokenSession(NOW + 1)]
  expect(await countSessions(world.access)).toBe(6)
  world.clock.advance(IDLE_MS)
  expect(await countSessions(world.access)).toBe(4)
  const code = await signInCode(world.accounts, 'ada')

  await deleteExpiredAccess(world.access)

  expect(world.ended.sort()).toEqual(old.map(hashSecret).sort())
  for (const secret of kept) expect((await who(cookie(secret))).fault).toBe('')
  const links = async () => (await database.selectFrom('sign_in_links').selectAll().execute()).length
  world.clock.advance(86_399_999)
  await deleteExpiredAccess(world.access)
  expect(await links()).toBe(1)
  world.clock.advance(1)
  expect(await redeem(code)).toBeUndefined()
  await signInCode(world.accounts, 'ada')
  world.clock.advance(86_400_000)
  await deleteExpiredAccess(world.access)
  expect(await links()).toBe(0)
})

test.each([
  ['person', 'viewer', 'open viewer query'],
  ['person', 'operator', 'open viewer query operator'],
  ['person', 'admin', 'open viewer query operator admin'],
  ['token', 'producer', 'open'],
  ['token', 'consumer', 'open'],
  ['token', 'monitoring', 'open viewer'],
  ['token', 'client', 'open viewer query'],
  ['token', 'admin', 'open viewer query operator admin'],
  ['anonymous', undefined, 'open'],
] as const)('a %s with the role %s may call: %s', (kind, role, allowed) => {
  const all = ['open', 'session', 'viewer', 'query', 'operator', 'admin'] as const
  const principal = { kind, role, id: '', name: '' }
  expect(all.filter((access) => isAllowed(principal, access)).join(' ')).toBe(allowed)
})
