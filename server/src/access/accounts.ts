/** Accounts: the shared state of the handlers for sign-in, people, tokens and settings. */
import type { Clock } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { type AuditNote, type Caller, callerOf, type ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import { createFailureLimiter, type FailureLimiter } from '@vacancy/shared/node'
import type { Transaction } from 'kysely'
import type { Access } from './access.ts'
import type { Audit } from './audit.ts'
import type { Settings } from './settings.ts'
import type { SingleSignOn } from './single-sign-on.ts'
import type { AccessDatabase, AccessTables } from './tables.ts'

/** Sign-in attempts per minute: for one name, and from one address, which many people may share. */
const TRIES_A_NAME = 5
const TRIES_AN_ADDRESS = 20

export type AnyRequest = Pick<
  RouteRequest<'GET /api/v1/me'>,
  keyof Caller | 'session' | 'isSecure' | 'origin' | 'headers' | 'reply'
>

/** People, their sessions, API tokens and the console settings. */
export type Accounts = {
  readonly database: AccessDatabase
  readonly clock: Clock
  readonly access: Access
  readonly audit: Audit
  readonly settings: Settings
  /** Absent without a provider. */
  readonly singleSignOn: SingleSignOn | undefined
  /** What the settings page shows about the process. */
  readonly facts: () => ProcessFacts
  readonly onSignIn: (result: 'done' | 'refused') => void
  /** Sign-in attempts, by name and by address. */
  readonly nameTries: FailureLimiter
  readonly addressTries: FailureLimiter
}

type ProcessFacts = {
  readonly database: 'sqlite' | 'postgresql'
  readonly registry: string | null
  readonly resolver: string | null
  readonly nodes: number
  readonly startedAt: string
}

export function createAccounts(options: Omit<Accounts, 'nameTries' | 'addressTries'>): Accounts {
  return {
    ...options,
    nameTries: createFailureLimiter(options.clock, TRIES_A_NAME),
    addressTries: createFailureLimiter(options.clock, TRIES_AN_ADDRESS),
  }
}

/** The audit entry of a change. */
export function noteOf(request: AnyRequest, action: string, target: string, detail = ''): AuditNote {
  return {
    ...callerOf(request),
    action,
    target,
    result: 'done',
    detail,
  }
}

/** Changes run one after the other: two admins who remove each other's role at the same time must see each other's change. */
export function change<T>(accounts: Accounts, work: (within: Transaction<AccessTables>) => Promise<T>): Promise<T> {
  return accounts.database.transaction().execute(async (within) => {
    await accounts.audit.lock(within)
    return await work(within)
  })
}

export function linkOf(accounts: Accounts, request: AnyRequest, code: string): string {
  return signInLink(accounts.settings.baseUrl() || request.origin, code)
}

/** The code is in the URL fragment: browsers do not send it, so no proxy logs it. */
export function signInLink(origin: string, code: string): string {
  return `${origin}/sign-in#code=${code}`
}

export function tooMany(what: string, most: number): ProblemError {
  return problem('too-many', { detail: `The maximum of ${most} ${what} is reached.` })
}

export function timeOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
