/** People: who they are, their roles and their sign-in links. Every change has its entry in the audit log. */
import { randomUUID } from 'node:crypto'
import { problem } from '@vacancy/shared/api/errors'
import { type RouteRequest, SYSTEM_CALLER } from '@vacancy/shared/api/route'
import { ACCESS_LIMITS, type PersonRole, type PersonView } from '@vacancy/shared/contract'
import type { Selectable, Transaction } from 'kysely'
import { notifyEnded } from './access.ts'
import { type Accounts, type AnyRequest, change, linkOf, noteOf, timeOf, tooMany } from './accounts.ts'
import { createLink, endSessions } from './sessions.ts'
import type { Identity } from './single-sign-on.ts'
import type { AccessDatabase, AccessTables } from './tables.ts'

export type Person = Selectable<AccessTables['people']>

export async function addPerson(
  accounts: Accounts,
  within: Transaction<AccessTables>,
  name: string,
  role: PersonRole,
  by: Pick<Person, 'password' | 'subject'> = { password: null, subject: null },
): Promise<Person> {
  if ((await countPeople(within)) >= ACCESS_LIMITS.peopleMax) throw tooMany('people', ACCESS_LIMITS.peopleMax)
  const person: Person = {
    id: randomUUID(),
    name,
    name_key: name.toLowerCase(),
    role,
    ...by,
    disabled: 0,
    preferences: '{}',
    created_at: accounts.clock.wallMs(),
    last_seen_at: null,
  }
  const added = await within
    .insertInto('people')
    .values(person)
    .onConflict((conflict) => conflict.column('name_key').doNothing())
    .returning('id')
    .executeTakeFirst()
  if (added === undefined)
    throw problem('name-taken', { detail: `A person named ${name} already exists.`, field: 'name' })
  return person
}

export async function listPeople(accounts: Accounts) {
  const people = await accounts.database.selectFrom('people').selectAll().orderBy('name_key').execute()
  return { people: people.map(viewOf) }
}

export async function createPerson(accounts: Accounts, request: RouteRequest<'POST /api/v1/people'>) {
  const { name, role } = request.body
  const { person, code } = await change(accounts, async (within) => {
    await accounts.audit.write(noteOf(request, 'person.add', name, role), within)
    const person = await addPerson(accounts, within, name, role)
    return { person, code: await createLink(accounts.access, within, person.id) }
  })
  return { person: viewOf(person), link: linkOf(accounts, request, code) }
}

export async function changePerson(accounts: Accounts, request: RouteRequest<'PUT /api/v1/people/{id}'>) {
  const { role, disabled } = request.body
  const { person, ended } = await change(accounts, async (within) => {
    const before = await personOf(within, request.params.id)
    const next = { role: role ?? before.role, disabled: Number(disabled ?? before.disabled === 1) }
    const changes = [
      ...(next.role === before.role ? [] : [`${before.role} → ${next.role}`]),
      ...(next.disabled === before.disabled ? [] : [next.disabled === 1 ? 'may not sign in' : 'may sign in']),
    ]
    if (before.subject !== null && next.role !== before.role) throw problem('role-of-provider')
    if (changes.length === 0) return { person: before, ended: [] }
    await accounts.audit.write(noteOf(request, 'person.change', before.name, changes.join(', ')), within)
    await within.updateTable('people').set(next).where('id', '=', before.id).execute()
    const { admins } = await within
      .selectFrom('people')
      .select((column) => column.fn.countAll<number>().as('admins'))
      .where('role', '=', 'admin')
      .where('disabled', '=', 0)
      .executeTakeFirstOrThrow()
    if (Number(admins) === 0)
      throw problem('last-admin', { detail: `${before.name} is the last admin who may sign in.` })
    const ended = next.disabled === 1 ? await endSessions(within, before.id) : []
    if (next.disabled === 1) await within.deleteFrom('sign_in_links').where('person_id', '=', before.id).execute()
    return { person: { ...before, ...next }, ended }
  })
  notifyEnded(accounts.access, ended)
  return viewOf(person)
}

export async function renewLink(accounts: Accounts, request: RouteRequest<'POST /api/v1/people/{id}/link'>) {
  const code = await change(accounts, async (within) => {
    const person = await personOf(within, request.params.id)
    if (person.disabled === 1) throw problem('person-disabled', { detail: `${person.name} may not sign in.` })
    if (person.subject !== null)
      throw problem('role-of-provider', { detail: `${person.name} enters by single sign-on.` })
    await accounts.audit.write(noteOf(request, 'person.link', person.name), within)
    return await createLink(accounts.access, within, person.id)
  })
  return { link: linkOf(accounts, request, code) }
}

/**
 * The person of a sign-in at the provider, with the role that it gives now. A new one is added under the name there,
 * unless somebody else has it: who may enter must never follow from a name.
 */
export async function personOfProvider(
  accounts: Accounts,
  within: Transaction<AccessTables>,
  request: AnyRequest,
  { subject, name, role }: Identity,
): Promise<Person> {
  const known = await within.selectFrom('people').selectAll().where('subject', '=', subject).executeTakeFirst()
  if (known === undefined) {
    await accounts.audit.write(noteOf(request, 'person.add', name, `${role}, by single sign-on`), within)
    return await addPerson(accounts, within, name, role, { password: null, subject })
  }
  if (known.disabled === 1) throw problem('person-disabled', { detail: `${known.name} may not sign in.` })
  if (known.role === role) return known
  const detail = `${known.role} → ${role}, by single sign-on`
  await accounts.audit.write(noteOf(request, 'person.change', known.name, detail), within)
  await within.updateTable('people').set({ role }).where('id', '=', known.id).execute()
  return { ...known, role }
}

/** The code of a new set-up link, while there is no person. */
export function setUpCode(accounts: Accounts): Promise<string | undefined> {
  return change(accounts, async (within) =>
    (await countPeople(within)) === 0 ? await createLink(accounts.access, within, null) : undefined,
  )
}

/**
 * A one-time sign-in code, made from the command line.
 *
 * @param create the role of a new person if there is none with that name; without it, an unknown name is an error
 */
export function signInCode(accounts: Accounts, name: string, create?: PersonRole): Promise<string> {
  return change(accounts, async (within) => {
    const by = { ...SYSTEM_CALLER, target: name, result: 'done' }
    let person = await within
      .selectFrom('people')
      .selectAll()
      .where('name_key', '=', name.toLowerCase())
      .executeTakeFirst()
    if (person === undefined && create !== undefined) {
      person = await addPerson(accounts, within, name, create)
      await accounts.audit.write({ ...by, action: 'person.add', detail: create }, within)
    }
    if (person === undefined)
      throw problem('no-person', {
        detail: `There is no person named ${name}.`,
        hint: 'Give --create and a role to add the person.',
      })
    if (person.disabled === 1) throw problem('person-disabled', { detail: `${person.name} may not sign in.` })
    await accounts.audit.write({ ...by, action: 'person.link', detail: 'from the command line' }, within)
    return await createLink(accounts.access, within, person.id)
  })
}

export async function personOf(database: AccessDatabase | Transaction<AccessTables>, id: string): Promise<Person> {
  const person = await database.selectFrom('people').selectAll().where('id', '=', id).executeTakeFirst()
  if (person === undefined) throw problem('no-person')
  return person
}

export async function countPeople(database: AccessDatabase | Transaction<AccessTables>): Promise<number> {
  const { people } = await database
    .selectFrom('people')
    .select((column) => column.fn.countAll<number>().as('people'))
    .executeTakeFirstOrThrow()
  return Number(people)
}

export function viewOf(person: Person): PersonView {
  return {
    id: person.id,
    name: person.name,
    role: person.role,
    createdAt: new Date(person.created_at).toISOString(),
    lastSeenAt: timeOf(person.last_seen_at),
    disabled: person.disabled === 1,
    singleSignOn: person.subject !== null,
  }
}
