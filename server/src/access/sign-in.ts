/** Signing in and out, and the profile of signed-in principals. */

import { type Argon2Parameters, argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { tooManyTries } from '@vacancy/shared/api/admission'
import { problem } from '@vacancy/shared/api/errors'
import { ProblemError, type RouteRequest, type Session } from '@vacancy/shared/api/route'
import {
  type Me,
  type PersonRole,
  type PersonView,
  type Preferences,
  preferences as preferencesSchema,
  type TokenRole,
} from '@vacancy/shared/contract'
import { VERSION } from '@vacancy/shared/node'
import type { Transaction } from 'kysely'
import { notifyEnded, sessionEndMs, type Token } from './access.ts'
import { type Accounts, type AnyRequest, change, noteOf } from './accounts.ts'
import { addPerson, countPeople, type Person, personOf, personOfProvider, viewOf } from './people.ts'
import { newSecret, sessionCookie } from './secrets.ts'
import { beginSession, beginTokenSession, endSession, endSessions, useLink } from './sessions.ts'
import { beginCookie, begunIn, CALLBACK_PATH, ownPath, type SingleSignOn } from './single-sign-on.ts'
import type { AccessDatabase, AccessTables } from './tables.ts'

const MEMORY_KIB = 19_456
const PASSES = 2
const LANES = 1
const SALT_BYTES = 16
const HASH_BYTES = 32

const derive = promisify(argon2) as (algorithm: 'argon2id', parameters: Argon2Parameters) => Promise<Buffer>

/** Normalized, so that the same text typed on different keyboards is the same password. */
function bytesOf(password: string): Buffer {
  return Buffer.from(password.normalize('NFKC'))
}

/** Passwords as Argon2id (RFC 9106) in PHC strings, with the parameters that OWASP names: 19 MiB, 2 passes. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const hash = await derive('argon2id', {
    message: bytesOf(password),
    nonce: salt,
    parallelism: LANES,
    tagLength: HASH_BYTES,
    memory: MEMORY_KIB,
    passes: PASSES,
  })
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${LANES}$${base64(salt)}$${base64(hash)}`
}

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
/** Verified for unknown names, so that they take the same time as a wrong password. */
const DUMMY_HASH = `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${LANES}$${base64(Buffer.alloc(SALT_BYTES))}$${base64(Buffer.alloc(HASH_BYTES))}`

/** Whether a password matches a PHC string. Without one the result is false, after the same time. */
export async function isPassword(password: string, phc: string | null): Promise<boolean> {
  const known = phc === null ? null : PHC.exec(phc)
  const [, memory, passes, parallelism, salt = '', hash = ''] = known ?? PHC.exec(DUMMY_HASH) ?? []
  const wanted = Buffer.from(hash, 'base64')
  const found = await derive('argon2id', {
    message: bytesOf(password),
    nonce: Buffer.from(salt, 'base64'),
    parallelism: Number(parallelism),
    tagLength: wanted.length,
    memory: Number(memory),
    passes: Number(passes),
  })
  return timingSafeEqual(found, wanted) && known !== null
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}

/** Roles of tokens that begin sessions. Those of producers and consumers are for the job queue alone. */
type ConsoleRole = Exclude<TokenRole, 'producer' | 'consumer'>

/** The role whose pages a token session shows. Its permissions are those of the token itself. */
const TOKEN_PAGES: { readonly [role in ConsoleRole]: PersonRole } = {
  monitoring: 'viewer',
  client: 'viewer',
  admin: 'admin',
}

/** Begins a session for the person that `who` returns, in the same transaction, and sets the cookie of the browser. */
async function beginFor(
  accounts: Accounts,
  request: AnyRequest,
  signedInBy: Exclude<Me['signedInBy'], 'token'>,
  who: (within: Transaction<AccessTables>) => Promise<Person>,
): Promise<Me> {
  const { person, secret, session } = await change(accounts, async (within) => {
    const person = await who(within)
    const principal = { kind: 'person', id: person.id, name: person.name, role: person.role } as const
    await accounts.audit.write(
      { ...noteOf(request, 'session.start', person.name, `by ${signedInBy}`), principal },
      within,
    )
    if (request.session !== undefined) await endSession(within, request.session.key)
    const begun = await beginSession(accounts.access, within, {
      personId: person.id,
      signedInBy,
      address: request.address,
    })
    return { person: { ...person, last_seen_at: begun.session.lastSeenAt }, ...begun }
  })
  welcome(accounts, request, secret)
  return meOf(accounts, person, session)
}

/** Sets the cookie of the browser; its previous session has ended. */
function welcome(accounts: Accounts, request: AnyRequest, secret: string): void {
  if (request.session !== undefined) notifyEnded(accounts.access, [request.session.key])
  accounts.onSignIn('done')
  request.reply.header('set-cookie', sessionCookie(secret, request.isSecure))
}

function meOf(accounts: Accounts, person: Person, session: Session): Me {
  return { person: viewOf(person), ...sessionView(accounts, session, preferencesOf(person)) }
}

function tokenMeOf(accounts: Accounts, token: Token, session: Session): Me {
  const person: PersonView = {
    id: token.id,
    name: token.name,
    role: TOKEN_PAGES[token.role as ConsoleRole],
    createdAt: new Date(token.created_at).toISOString(),
    lastSeenAt: new Date(session.lastSeenAt).toISOString(),
    disabled: false,
    singleSignOn: false,
  }
  return { person, ...sessionView(accounts, session, preferencesOf(token)) }
}

function sessionView(accounts: Accounts, session: Session, preferences: Preferences): Omit<Me, 'person'> {
  return {
    csrf: session.csrf,
    signedInBy: session.signedInBy,
    endsAt: new Date(sessionEndMs(accounts.access, session)).toISOString(),
    environment: accounts.settings.environment(),
    preferences,
    version: VERSION,
  }
}

/** Codes cannot be guessed; this limits the cost of attempts to do so. */
function guardLinks(accounts: Accounts, address: string): void {
  const wait = accounts.addressTries.waitSeconds(address)
  if (wait > 0) throw tooManyTries(wait, 'sign-in attempts')
  accounts.addressTries.failed(address)
}

export async function readSignIn(accounts: Accounts) {
  return {
    setUp: (await countPeople(accounts.database)) === 0,
    singleSignOn: accounts.singleSignOn?.label ?? null,
    environment: accounts.settings.environment(),
  }
}

export async function signIn(accounts: Accounts, request: RouteRequest<'POST /api/v1/session'>) {
  const { name, password } = request.body
  const key = name.toLowerCase()
  const wait = Math.max(accounts.nameTries.waitSeconds(key), accounts.addressTries.waitSeconds(request.address))
  if (wait > 0) throw tooManyTries(wait, 'sign-in attempts')
  // Counted before the outcome is known: a hundred concurrent attempts are a hundred attempts.
  accounts.nameTries.failed(key)
  accounts.addressTries.failed(request.address)
  const person = await accounts.database.selectFrom('people').selectAll().where('name_key', '=', key).executeTakeFirst()
  const isRight = await isPassword(password, person?.password ?? null)
  if (person === undefined || person.disabled === 1 || !isRight) {
    accounts.onSignIn('refused')
    await accounts.audit.write({
      ...noteOf(request, 'session.start', name),
      result: 'refused',
      detail: 'name or password',
    })
    throw problem('sign-in-failed')
  }
  accounts.nameTries.forgive(key)
  accounts.addressTries.forgive(request.address)
  return await beginFor(accounts, request, 'password', async () => person)
}

export async function signInByToken(accounts: Accounts, request: RouteRequest<'POST /api/v1/session/token'>) {
  guardLinks(accounts, request.address)
  const me = await change(accounts, async (within) => {
    const begun = await beginTokenSession(accounts.access, within, {
      value: request.body.token,
      address: request.address,
    })
    if (begun === undefined) return undefined
    const { token, secret, session } = begun
    const principal = { kind: 'token', id: token.id, name: token.name, role: token.role } as const
    await accounts.audit.write({ ...noteOf(request, 'session.start', token.name, 'by token'), principal }, within)
    if (request.session !== undefined) await endSession(within, request.session.key)
    return { secret, me: tokenMeOf(accounts, token, session) }
  })
  if (me === undefined) {
    accounts.onSignIn('refused')
    await accounts.audit.write({ ...noteOf(request, 'session.start', 'a token'), result: 'refused', detail: 'token' })
    throw problem('sign-in-failed', {
      detail: 'The token is unknown, revoked or expired.',
      hint: 'Check that you pasted the whole token, and that it is not for the job queue alone. An admin can create a new one under Settings, API tokens.',
    })
  }
  accounts.addressTries.forgive(request.address)
  welcome(accounts, request, me.secret)
  return me.me
}

export async function signInByLink(accounts: Accounts, request: RouteRequest<'POST /api/v1/session/link'>) {
  guardLinks(accounts, request.address)
  const me = await beginFor(accounts, request, 'link', async (within) => {
    const used = await useLink(accounts.access, within, request.body.code)
    if (used === undefined) throw badLink()
    if (used.personId === null) throw problem('set-up-needed')
    const person = await within
      .selectFrom('people')
      .selectAll()
      .where('id', '=', used.personId)
      .where('disabled', '=', 0)
      .executeTakeFirst()
    if (person === undefined) throw badLink()
    return person
  })
  accounts.addressTries.forgive(request.address)
  return me
}

export async function beginSingleSignOn(
  accounts: Accounts,
  request: RouteRequest<'GET /api/v1/session/oidc'>,
): Promise<undefined> {
  await toSignInPage(accounts, request, async () => {
    const secret = newSecret()
    const location = await providerOf(accounts).begin(secret, `${originOf(accounts, request)}${CALLBACK_PATH}`)
    request.reply.header('set-cookie', beginCookie(secret, request.query.next, request.isSecure))
    return location.href
  })
}

/** The browser comes back from the provider, with an answer in the address. */
export async function endSingleSignOn(
  accounts: Accounts,
  request: RouteRequest<'GET /api/v1/session/oidc/callback'>,
): Promise<undefined> {
  await toSignInPage(accounts, request, async () => {
    const provider = providerOf(accounts)
    const begun = begunIn(request.headers)
    request.reply.header('set-cookie', beginCookie('', '', request.isSecure))
    if (begun === undefined) throw problem('sso-expired')
    guardLinks(accounts, request.address)
    const origin = originOf(accounts, request)
    const answer = new URL(
      `${origin}${CALLBACK_PATH}?${new URLSearchParams(request.query as { [name: string]: string })}`,
    )
    const identity = await provider.finish(begun.secret, answer)
    await beginFor(accounts, request, 'single sign-on', (within) =>
      personOfProvider(accounts, within, request, identity),
    )
    accounts.addressTries.forgive(request.address)
    return ownPath(begun.next, origin)
  })
}

/** A browser follows these paths: it is sent on, and reads why not on the sign-in page. */
async function toSignInPage(accounts: Accounts, request: AnyRequest, work: () => Promise<string>): Promise<void> {
  request.reply.status(303)
  try {
    request.reply.header('location', await work())
  } catch (error) {
    if (!(error instanceof ProblemError) || error.code === 'sso-off') throw error
    accounts.onSignIn('refused')
    const detail = `${error.code}: ${error.message}`
    await accounts.audit.write({ ...noteOf(request, 'session.start', 'single sign-on', detail), result: 'refused' })
    request.reply.header('location', `/sign-in#problem=${error.code}`)
  }
}

function providerOf({ singleSignOn }: Accounts): SingleSignOn {
  if (singleSignOn === undefined) throw problem('sso-off')
  return singleSignOn
}

function originOf(accounts: Accounts, request: AnyRequest): string {
  return accounts.settings.baseUrl() || request.origin
}

export async function setUp(accounts: Accounts, request: RouteRequest<'POST /api/v1/set-up'>) {
  guardLinks(accounts, request.address)
  const { code, name, password } = request.body
  const hash = await hashPassword(password)
  const me = await beginFor(accounts, request, 'set-up', async (within) => {
    const used = await useLink(accounts.access, within, code)
    if (used === undefined || used.personId !== null || (await countPeople(within)) > 0) throw badLink()
    const person = await addPerson(accounts, within, name, 'admin', { password: hash, subject: null })
    await accounts.audit.write(noteOf(request, 'person.add', person.name, 'admin, by set-up'), within)
    return person
  })
  accounts.addressTries.forgive(request.address)
  request.reply.status(201)
  return me
}

export async function signOut(accounts: Accounts, request: RouteRequest<'DELETE /api/v1/session'>): Promise<undefined> {
  const { key } = sessionOf(request)
  await change(accounts, async (within) => {
    await accounts.audit.write(noteOf(request, 'session.end', request.principal.name), within)
    await endSession(within, key)
  })
  notifyEnded(accounts.access, [key])
  request.reply.header('set-cookie', sessionCookie(undefined, request.isSecure))
}

export async function readMe(accounts: Accounts, request: RouteRequest<'GET /api/v1/me'>) {
  const session = sessionOf(request)
  return session.owner.kind === 'token'
    ? tokenMeOf(accounts, await tokenOf(accounts.database, session.owner.id), session)
    : meOf(accounts, await personOf(accounts.database, session.owner.id), session)
}

export async function changePassword(
  accounts: Accounts,
  request: RouteRequest<'PUT /api/v1/me/password'>,
): Promise<undefined> {
  const { current, next } = request.body
  const session = sessionOf(request)
  if (session.owner.kind === 'token') throw problem('no-password')
  const person = await personOf(accounts.database, session.owner.id)
  if (person.subject !== null)
    throw problem('no-password', { detail: 'You enter by single sign-on.', hint: 'Change the password there.' })
  if (session.signedInBy !== 'link') {
    const key = person.name_key
    const wait = accounts.nameTries.waitSeconds(key)
    if (wait > 0) throw tooManyTries(wait, 'tries')
    accounts.nameTries.failed(key)
    if (!(await isPassword(current, person.password))) {
      await accounts.audit.write({ ...noteOf(request, 'person.password', person.name), result: 'refused' })
      throw problem('wrong-password', { field: 'current' })
    }
    accounts.nameTries.forgive(key)
  }
  const password = await hashPassword(next)
  const ended = await change(accounts, async (within) => {
    await accounts.audit.write(noteOf(request, 'person.password', person.name), within)
    await within.updateTable('people').set({ password }).where('id', '=', person.id).execute()
    // From now on this session counts as one that began with the new password.
    await within.updateTable('sessions').set({ signed_in_by: 'password' }).where('hash', '=', session.key).execute()
    await within.deleteFrom('sign_in_links').where('person_id', '=', person.id).execute()
    return await endSessions(within, person.id, session.key)
  })
  notifyEnded(accounts.access, ended)
}

// Display preferences affect only the person itself, so they have no audit entry.
export async function changePreferences(accounts: Accounts, request: RouteRequest<'PUT /api/v1/me/preferences'>) {
  const { kind, id } = sessionOf(request).owner
  const table = kind === 'token' ? 'tokens' : 'people'
  return await change(accounts, async (within) => {
    const row = await within.selectFrom(table).select('preferences').where('id', '=', id).executeTakeFirstOrThrow()
    const before = preferencesOf(row)
    const next = preferencesSchema.parse({
      ...before,
      ...request.body,
      shards: { ...before.shards, ...request.body.shards },
      queue: { ...before.queue, ...request.body.queue },
      jobs: { ...before.jobs, ...request.body.jobs },
    })
    await within
      .updateTable(table)
      .set({ preferences: JSON.stringify(next) })
      .where('id', '=', id)
      .execute()
    return next
  })
}

function badLink(): ProblemError {
  return problem('link-not-good')
}

function sessionOf({ session }: AnyRequest): Session {
  if (session === undefined) throw problem('not-signed-in')
  return session
}

async function tokenOf(database: AccessDatabase, id: string): Promise<Token> {
  return await database.selectFrom('tokens').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
}

function preferencesOf(row: { readonly preferences: string }): Preferences {
  return preferencesSchema.parse(JSON.parse(row.preferences))
}
