/** Signing in and out, people, API tokens and settings: every change with its line in the audit log. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '@vacancy/shared'
import {
  ACCESS_LIMITS,
  type ACCESS_ROUTES,
  type Me,
  type PersonRole,
  type PersonView,
  type Preferences,
  preferences as preferencesSchema,
  type TokenRole,
  type TokenView,
} from '@vacancy/shared/contract'
import { createFailureLimiter, VERSION } from '@vacancy/shared/node'
import type { Selectable, Transaction } from 'kysely'
import { type Access, hashSecret, newToken, sessionCookie, type Token, tooManyTries } from './access.ts'
import type { AccessTables } from './access-tables.ts'
import type { Audit } from './audit.ts'
import type { Database } from './database.ts'
import { hashPassword, isPassword } from './passwords.ts'
import { type Asked, type Handlers, ProblemError, type Session } from './route.ts'
import type { Settings } from './settings.ts'
import type { Tables } from './tables.ts'

/** Tries to sign in a minute: of one name, and of one address, behind which there may be many people. */
const TRIES_A_NAME = 5
const TRIES_AN_ADDRESS = 20

/** Whose pages somebody sees who signed in with a token. What it may do is checked as that of the token itself. */
const TOKEN_PAGES: { readonly [role in TokenRole]: PersonRole } = {
  monitoring: 'viewer',
  client: 'viewer',
  admin: 'admin',
}

type Person = Selectable<AccessTables['people']>
type AnyAsked = Pick<
  Asked<'GET /api/v1/me'>,
  'asker' | 'address' | 'requestId' | 'session' | 'isSecure' | 'origin' | 'reply'
>

export type PeopleOptions = {
  readonly database: Database
  readonly clock: Clock
  readonly access: Access
  readonly audit: Audit
  readonly settings: Settings
  /** What the settings page shows of the process. */
  readonly facts: () => {
    readonly database: 'sqlite' | 'postgresql'
    readonly registry: string | null
    readonly resolver: string | null
    readonly nodes: number
    readonly startedAt: string
  }
  readonly onSignIn: (result: 'done' | 'refused') => void
}

export type People = {
  readonly handlers: Omit<Handlers<typeof ACCESS_ROUTES>, keyof Audit['handlers']>
  /** While nobody exists: the code of a new set-up link. */
  readonly setUpCode: () => Promise<string | undefined>
  /**
   * A one-time sign-in code for somebody, made by whoever runs the program.
   *
   * @param create the role of the person if there is none of that name; without it that is an error
   */
  readonly signInCode: (name: string, create?: PersonRole) => Promise<string>
}

export function createPeople(options: PeopleOptions): People {
  const { database, clock, access, audit, settings, facts, onSignIn } = options
  const nameTries = createFailureLimiter(clock, TRIES_A_NAME)
  const addressTries = createFailureLimiter(clock, TRIES_AN_ADDRESS)

  const note = (asked: AnyAsked, action: string, target: string, detail = '') => ({
    asker: asked.asker,
    address: asked.address,
    requestId: asked.requestId,
    action,
    target,
    result: 'done',
    detail,
  })
  // One after the other: two admins who take each other's role away at once must see what the other did.
  const change = <T>(work: (within: Transaction<Tables>) => Promise<T>): Promise<T> =>
    database.transaction().execute(async (within) => {
      await audit.lock(within)
      return await work(within)
    })

  return {
    handlers: {
      'GET /api/v1/sign-in': async () => ({
        setUp: (await countPeople(database)) === 0,
        environment: settings.environment(),
      }),

      'POST /api/v1/session': async (asked) => {
        const { name, password } = asked.body
        const key = name.toLowerCase()
        const wait = Math.max(nameTries.waitSeconds(key), addressTries.waitSeconds(asked.address))
        if (wait > 0) throw tooManyTries(wait, 'tries to sign in')
        // Counted before it is known how they end: a hundred at once are a hundred tries.
        nameTries.failed(key)
        addressTries.failed(asked.address)
        const person = await database.selectFrom('people').selectAll().where('name_key', '=', key).executeTakeFirst()
        const isRight = await isPassword(password, person?.password ?? null)
        if (person === undefined || person.disabled === 1 || !isRight) {
          onSignIn('refused')
          await audit.write({ ...note(asked, 'session.start', name), result: 'refused', detail: 'name or password' })
          throw new ProblemError(401, 'sign-in-failed', 'The name or the password is wrong.', {
            hint: 'Check both; an admin can give you a new sign-in link.',
          })
        }
        nameTries.forgive(key)
        addressTries.forgive(asked.address)
        return await begin(asked, 'password', async () => person)
      },

      'POST /api/v1/session/token': async (asked) => {
        guardLinks(asked.address)
        const me = await change(async (within) => {
          const begun = await access.beginTokenSession(within, { value: asked.body.token, address: asked.address })
          if (begun === undefined) return undefined
          const { token, secret, session } = begun
          const asker = { kind: 'token', id: token.id, name: token.name, role: token.role } as const
          await audit.write({ ...note(asked, 'session.start', token.name, 'by token'), asker }, within)
          if (asked.session !== undefined) await access.endSession(within, asked.session.key)
          return { secret, me: tokenMeOf(token, session) }
        })
        if (me === undefined) {
          onSignIn('refused')
          await audit.write({ ...note(asked, 'session.start', 'a token'), result: 'refused', detail: 'token' })
          throw new ProblemError(401, 'sign-in-failed', 'The token is unknown, revoked or expired.', {
            hint: 'Check that all of it was pasted; an admin can make a new one under Settings, API tokens.',
          })
        }
        addressTries.forgive(asked.address)
        welcome(asked, me.secret)
        return me.me
      },

      'POST /api/v1/session/link': async (asked) => {
        guardLinks(asked.address)
        const me = await begin(asked, 'link', async (within) => {
          const used = await access.useLink(within, asked.body.code)
          if (used === undefined) throw badLink()
          if (used.personId === null)
            throw new ProblemError(409, 'set-up-needed', 'This link makes the first admin.', {
              hint: 'Choose a name and a password on the sign-in page.',
            })
          const person = await within
            .selectFrom('people')
            .selectAll()
            .where('id', '=', used.personId)
            .where('disabled', '=', 0)
            .executeTakeFirst()
          if (person === undefined) throw badLink()
          return person
        })
        addressTries.forgive(asked.address)
        return me
      },

      'POST /api/v1/set-up': async (asked) => {
        guardLinks(asked.address)
        const { code, name, password } = asked.body
        const hash = await hashPassword(password)
        const me = await begin(asked, 'set-up', async (within) => {
          const used = await access.useLink(within, code)
          if (used === undefined || used.personId !== null || (await countPeople(within)) > 0) throw badLink()
          const person = await addPerson(within, name, 'admin', hash)
          await audit.write(note(asked, 'person.add', person.name, 'admin, by set-up'), within)
          return person
        })
        addressTries.forgive(asked.address)
        asked.reply.status(201)
        return me
      },

      'DELETE /api/v1/session': async (asked) => {
        const { key } = sessionOf(asked)
        await change(async (within) => {
          await audit.write(note(asked, 'session.end', asked.asker.name), within)
          await access.endSession(within, key)
        })
        access.ended([key])
        asked.reply.header('set-cookie', sessionCookie(undefined, asked.isSecure))
      },

      'GET /api/v1/me': async (asked) => {
        const session = sessionOf(asked)
        return session.owner.kind === 'token'
          ? tokenMeOf(await tokenOf(database, session.owner.id), session)
          : meOf(await personOf(database, session.owner.id), session)
      },

      'PUT /api/v1/me/password': async (asked) => {
        const { current, next } = asked.body
        const session = sessionOf(asked)
        if (session.owner.kind === 'token')
          throw new ProblemError(409, 'no-password', 'You signed in with a token, which has no password.', {
            hint: 'Sign in as a person to change a password.',
          })
        const person = await personOf(database, session.owner.id)
        if (session.signedInBy !== 'link') {
          const key = person.name_key
          const wait = nameTries.waitSeconds(key)
          if (wait > 0) throw tooManyTries(wait, 'tries')
          nameTries.failed(key)
          if (!(await isPassword(current, person.password))) {
            await audit.write({ ...note(asked, 'person.password', person.name), result: 'refused' })
            throw new ProblemError(403, 'wrong-password', 'The current password is wrong.', {
              hint: 'Type the password that you signed in with.',
              field: 'current',
            })
          }
          nameTries.forgive(key)
        }
        const password = await hashPassword(next)
        const ended = await change(async (within) => {
          await audit.write(note(asked, 'person.password', person.name), within)
          await within.updateTable('people').set({ password }).where('id', '=', person.id).execute()
          // From now on this session is as one that was begun with the new password.
          await within
            .updateTable('sessions')
            .set({ signed_in_by: 'password' })
            .where('hash', '=', session.key)
            .execute()
          await within.deleteFrom('sign_in_links').where('person_id', '=', person.id).execute()
          return await access.endSessions(within, person.id, session.key)
        })
        access.ended(ended)
      },

      // Nobody else is touched by how a person likes the pages to look: no line in the audit log.
      'PUT /api/v1/me/preferences': async (asked) => {
        const { kind, id } = sessionOf(asked).owner
        const table = kind === 'token' ? 'tokens' : 'people'
        return await change(async (within) => {
          const row = await within
            .selectFrom(table)
            .select('preferences')
            .where('id', '=', id)
            .executeTakeFirstOrThrow()
          const before = preferencesOf(row)
          const next = preferencesSchema.parse({
            ...before,
            ...asked.body,
            shards: { ...before.shards, ...asked.body.shards },
          })
          await within
            .updateTable(table)
            .set({ preferences: JSON.stringify(next) })
            .where('id', '=', id)
            .execute()
          return next
        })
      },

      'GET /api/v1/people': async () => {
        const people = await database.selectFrom('people').selectAll().orderBy('name_key').execute()
        return { people: people.map(viewOf) }
      },

      'POST /api/v1/people': async (asked) => {
        const { name, role } = asked.body
        const { person, code } = await change(async (within) => {
          await audit.write(note(asked, 'person.add', name, role), within)
          if ((await countPeople(within)) >= ACCESS_LIMITS.peopleMax) throw tooMany('people', ACCESS_LIMITS.peopleMax)
          const person = await addPerson(within, name, role, null)
          return { person, code: await access.createLink(within, person.id) }
        })
        return { person: viewOf(person), link: linkOf(asked, code) }
      },

      'PUT /api/v1/people/{id}': async (asked) => {
        const { role, disabled } = asked.body
        const { person, ended } = await change(async (within) => {
          const before = await personOf(within, asked.params.id)
          const next = { role: role ?? before.role, disabled: Number(disabled ?? before.disabled === 1) }
          const says = [
            ...(next.role === before.role ? [] : [`${before.role} → ${next.role}`]),
            ...(next.disabled === before.disabled ? [] : [next.disabled === 1 ? 'may not sign in' : 'may sign in']),
          ]
          if (says.length === 0) return { person: before, ended: [] }
          await audit.write(note(asked, 'person.change', before.name, says.join(', ')), within)
          await within.updateTable('people').set(next).where('id', '=', before.id).execute()
          const { admins } = await within
            .selectFrom('people')
            .select((column) => column.fn.countAll<number>().as('admins'))
            .where('role', '=', 'admin')
            .where('disabled', '=', 0)
            .executeTakeFirstOrThrow()
          if (Number(admins) === 0)
            throw new ProblemError(409, 'last-admin', `${before.name} is the last admin who may sign in.`, {
              hint: 'Make somebody else an admin first.',
            })
          const ended = next.disabled === 1 ? await access.endSessions(within, before.id) : []
          if (next.disabled === 1) await within.deleteFrom('sign_in_links').where('person_id', '=', before.id).execute()
          return { person: { ...before, ...next }, ended }
        })
        access.ended(ended)
        return viewOf(person)
      },

      'POST /api/v1/people/{id}/link': async (asked) => {
        const code = await change(async (within) => {
          const person = await personOf(within, asked.params.id)
          if (person.disabled === 1)
            throw new ProblemError(409, 'person-disabled', `${person.name} may not sign in.`, {
              hint: 'Let the person sign in again first.',
            })
          await audit.write(note(asked, 'person.link', person.name), within)
          return await access.createLink(within, person.id)
        })
        return { link: linkOf(asked, code) }
      },

      'GET /api/v1/tokens': async () => {
        const tokens = await database.selectFrom('tokens').selectAll().orderBy('created_at', 'desc').execute()
        return { tokens: tokens.map(tokenView) }
      },

      'POST /api/v1/tokens': async (asked) => {
        const { name, role } = asked.body
        const nowMs = clock.wallMs()
        const expiresMs = asked.body.expiresAt === null ? null : Date.parse(asked.body.expiresAt)
        if (expiresMs !== null && expiresMs <= nowMs)
          throw new ProblemError(400, 'invalid-request', 'expiresAt: is over already.', {
            hint: 'Choose a time to come, or none.',
            field: 'expiresAt',
          })
        const value = newToken()
        const row: Selectable<AccessTables['tokens']> = {
          id: randomUUID(),
          hash: hashSecret(value),
          name,
          role,
          created_by: asked.asker.name,
          created_at: nowMs,
          expires_at: expiresMs,
          last_used_at: null,
          last_used_from: null,
          revoked_at: null,
          preferences: '{}',
        }
        await change(async (within) => {
          await audit.write(note(asked, 'token.create', name, role), within)
          const { tokens } = await within
            .selectFrom('tokens')
            .select((column) => column.fn.countAll<number>().as('tokens'))
            .where('revoked_at', 'is', null)
            .executeTakeFirstOrThrow()
          if (Number(tokens) >= ACCESS_LIMITS.tokensMax) throw tooMany('tokens', ACCESS_LIMITS.tokensMax)
          await within.insertInto('tokens').values(row).execute()
        })
        return { token: tokenView(row), value }
      },

      'DELETE /api/v1/tokens/{id}': async (asked) => {
        const { id } = asked.params
        const ended = await change(async (within) => {
          const revoked = await within
            .updateTable('tokens')
            .set({ revoked_at: clock.wallMs() })
            .where('id', '=', id)
            .where('revoked_at', 'is', null)
            .returning('name')
            .executeTakeFirst()
          if (revoked === undefined)
            throw new ProblemError(404, 'no-token', 'There is no such token, or it was revoked before.', {
              hint: 'Look at the list of tokens.',
            })
          await audit.write(note(asked, 'token.revoke', revoked.name), within)
          return await access.endTokenSessions(within, id)
        })
        access.ended([id, ...ended])
      },

      'GET /api/v1/settings': async () => ({
        environment: settings.environment(),
        baseUrl: settings.baseUrl(),
        version: VERSION,
        ...facts(),
      }),

      'PUT /api/v1/settings': async (asked) => {
        const next = { environment: asked.body.environment, baseUrl: asked.body.baseUrl.replace(/\/$/, '') }
        await change(async (within) => {
          await audit.write(note(asked, 'settings.change', 'settings', JSON.stringify(next)), within)
          await settings.write(within, next)
        })
        settings.keep(next)
      },
    },

    setUpCode: () =>
      change(async (within) => ((await countPeople(within)) === 0 ? await access.createLink(within, null) : undefined)),

    signInCode: (name, create) =>
      change(async (within) => {
        const by = { asker: 'system', address: '', requestId: '', target: name, result: 'done' } as const
        let person = await within
          .selectFrom('people')
          .selectAll()
          .where('name_key', '=', name.toLowerCase())
          .executeTakeFirst()
        if (person === undefined && create !== undefined) {
          person = await addPerson(within, name, create, null)
          await audit.write({ ...by, action: 'person.add', detail: create }, within)
        }
        if (person === undefined)
          throw new ProblemError(404, 'no-person', `There is nobody named ${name}.`, {
            hint: 'Give --create and a role to add the person.',
          })
        if (person.disabled === 1) throw new ProblemError(409, 'person-disabled', `${person.name} may not sign in.`)
        await audit.write({ ...by, action: 'person.link', detail: 'from the command line' }, within)
        return await access.createLink(within, person.id)
      }),
  }

  /** Begins a session for whom `who` finds, in one transaction with it, and gives the browser its cookie. */
  async function begin(
    asked: AnyAsked,
    signedInBy: Exclude<Me['signedInBy'], 'token'>,
    who: (within: Transaction<Tables>) => Promise<Person>,
  ): Promise<Me> {
    const { person, secret, session } = await change(async (within) => {
      const person = await who(within)
      const asker = { kind: 'person', id: person.id, name: person.name, role: person.role } as const
      await audit.write({ ...note(asked, 'session.start', person.name, `by ${signedInBy}`), asker }, within)
      if (asked.session !== undefined) await access.endSession(within, asked.session.key)
      const begun = await access.beginSession(within, { personId: person.id, signedInBy, address: asked.address })
      return { person: { ...person, last_seen_at: begun.session.lastSeenAt }, ...begun }
    })
    welcome(asked, secret)
    return meOf(person, session)
  }

  /** Gives the browser its cookie; the session that it had before has ended. */
  function welcome(asked: AnyAsked, secret: string): void {
    if (asked.session !== undefined) access.ended([asked.session.key])
    onSignIn('done')
    asked.reply.header('set-cookie', sessionCookie(secret, asked.isSecure))
  }

  function meOf(person: Person, session: Session): Me {
    return { person: viewOf(person), ...sessionView(session, preferencesOf(person)) }
  }

  function tokenMeOf(token: Token, session: Session): Me {
    const person: PersonView = {
      id: token.id,
      name: token.name,
      role: TOKEN_PAGES[token.role],
      createdAt: new Date(token.created_at).toISOString(),
      lastSeenAt: new Date(session.lastSeenAt).toISOString(),
      disabled: false,
    }
    return { person, ...sessionView(session, preferencesOf(token)) }
  }

  function sessionView(session: Session, preferences: Preferences): Omit<Me, 'person'> {
    return {
      csrf: session.csrf,
      signedInBy: session.signedInBy,
      endsAt: new Date(access.endOf(session)).toISOString(),
      environment: settings.environment(),
      preferences,
      version: VERSION,
    }
  }

  /** Codes cannot be guessed; this keeps somebody who tries from costing anything. */
  function guardLinks(address: string): void {
    const wait = addressTries.waitSeconds(address)
    if (wait > 0) throw tooManyTries(wait, 'tries to sign in')
    addressTries.failed(address)
  }

  async function addPerson(
    within: Transaction<Tables>,
    name: string,
    role: PersonRole,
    password: string | null,
  ): Promise<Person> {
    const person: Person = {
      id: randomUUID(),
      name,
      name_key: name.toLowerCase(),
      role,
      password,
      disabled: 0,
      preferences: '{}',
      created_at: clock.wallMs(),
      last_seen_at: null,
    }
    const added = await within
      .insertInto('people')
      .values(person)
      .onConflict((conflict) => conflict.column('name_key').doNothing())
      .returning('id')
      .executeTakeFirst()
    if (added === undefined)
      throw new ProblemError(409, 'name-taken', `There is somebody named ${name} already.`, {
        hint: 'Choose another name.',
        field: 'name',
      })
    return person
  }

  function linkOf(asked: AnyAsked, code: string): string {
    return signInLink(settings.baseUrl() || asked.origin, code)
  }
}

/** The code stands behind the #: browsers send that to nobody, and no log of a proxy keeps it. */
export function signInLink(origin: string, code: string): string {
  return `${origin}/sign-in#code=${code}`
}

function badLink(): ProblemError {
  return new ProblemError(401, 'link-not-good', 'This sign-in link was used already, or is too old.', {
    hint: 'Ask an admin for a new one, or run `vacancy control-plane link` on the server.',
  })
}

function tooMany(what: string, most: number): ProblemError {
  return new ProblemError(409, 'too-many', `There are ${most} ${what} already, and no more can be added.`, {
    hint: 'Take away what is not needed.',
  })
}

function sessionOf({ session }: AnyAsked): Session {
  if (session === undefined)
    throw new ProblemError(401, 'not-signed-in', 'You are not signed in.', { hint: 'Sign in.' })
  return session
}

async function personOf(database: Database | Transaction<Tables>, id: string): Promise<Person> {
  const person = await database.selectFrom('people').selectAll().where('id', '=', id).executeTakeFirst()
  if (person === undefined)
    throw new ProblemError(404, 'no-person', 'There is no such person.', { hint: 'Look at the list of people.' })
  return person
}

async function tokenOf(database: Database, id: string): Promise<Token> {
  return await database.selectFrom('tokens').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
}

async function countPeople(database: Database | Transaction<Tables>): Promise<number> {
  const { people } = await database
    .selectFrom('people')
    .select((column) => column.fn.countAll<number>().as('people'))
    .executeTakeFirstOrThrow()
  return Number(people)
}

function preferencesOf(row: { readonly preferences: string }): Preferences {
  return preferencesSchema.parse(JSON.parse(row.preferences))
}

function viewOf(person: Person): PersonView {
  return {
    id: person.id,
    name: person.name,
    role: person.role,
    createdAt: new Date(person.created_at).toISOString(),
    lastSeenAt: timeOf(person.last_seen_at),
    disabled: person.disabled === 1,
  }
}

function tokenView(token: Selectable<AccessTables['tokens']>): TokenView {
  return {
    id: token.id,
    name: token.name,
    role: token.role,
    createdBy: token.created_by,
    createdAt: new Date(token.created_at).toISOString(),
    expiresAt: timeOf(token.expires_at),
    lastUsedAt: timeOf(token.last_used_at),
    lastUsedFrom: token.last_used_from,
    revokedAt: timeOf(token.revoked_at),
  }
}

function timeOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
