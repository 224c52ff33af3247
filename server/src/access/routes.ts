/** Handlers of sign-in, people, tokens, settings and the audit log. */

import type { Handlers, RouteRequest } from '@vacancy/shared/api/route'
import type { ACCESS_ROUTES } from '@vacancy/shared/contract'
import { VERSION } from '@vacancy/shared/node'
import { type Accounts, change, noteOf } from './accounts.ts'
import { changePerson, createPerson, listPeople, renewLink } from './people.ts'
import {
  beginSingleSignOn,
  changePassword,
  changePreferences,
  endSingleSignOn,
  readMe,
  readSignIn,
  setUp,
  signIn,
  signInByLink,
  signInByToken,
  signOut,
} from './sign-in.ts'
import { createToken, listTokens, revokeToken, type TokensOfFile } from './tokens.ts'

/** @param queueFile the tokens in the auth file of the job queue */
export function accessHandlers(
  accounts: Accounts,
  queueFile: () => TokensOfFile | undefined,
): Handlers<typeof ACCESS_ROUTES> {
  return {
    'GET /api/v1/sign-in': () => readSignIn(accounts),
    'POST /api/v1/session': (request) => signIn(accounts, request),
    'POST /api/v1/session/token': (request) => signInByToken(accounts, request),
    'POST /api/v1/session/link': (request) => signInByLink(accounts, request),
    'GET /api/v1/session/oidc': (request) => beginSingleSignOn(accounts, request),
    'GET /api/v1/session/oidc/callback': (request) => endSingleSignOn(accounts, request),
    'POST /api/v1/set-up': (request) => setUp(accounts, request),
    'DELETE /api/v1/session': (request) => signOut(accounts, request),
    'GET /api/v1/me': (request) => readMe(accounts, request),
    'PUT /api/v1/me/password': (request) => changePassword(accounts, request),
    'PUT /api/v1/me/preferences': (request) => changePreferences(accounts, request),
    'GET /api/v1/people': () => listPeople(accounts),
    'POST /api/v1/people': (request) => createPerson(accounts, request),
    'PUT /api/v1/people/{id}': (request) => changePerson(accounts, request),
    'POST /api/v1/people/{id}/link': (request) => renewLink(accounts, request),
    'GET /api/v1/tokens': () => listTokens(accounts, queueFile()),
    'POST /api/v1/tokens': (request) => createToken(accounts, request),
    'DELETE /api/v1/tokens/{id}': (request) => revokeToken(accounts, request),
    'GET /api/v1/settings': () => readSettings(accounts),
    'PUT /api/v1/settings': (request) => changeSettings(accounts, request),
    ...accounts.audit.handlers,
  }
}

async function readSettings(accounts: Accounts) {
  return {
    environment: accounts.settings.environment(),
    baseUrl: accounts.settings.baseUrl(),
    version: VERSION,
    ...accounts.facts(),
  }
}

async function changeSettings(accounts: Accounts, request: RouteRequest<'PUT /api/v1/settings'>): Promise<undefined> {
  const next = { environment: request.body.environment, baseUrl: request.body.baseUrl.replace(/\/$/, '') }
  await change(accounts, async (within) => {
    await accounts.audit.write(noteOf(request, 'settings.change', 'settings', JSON.stringify(next)), within)
    await accounts.settings.write(within, next)
  })
  accounts.settings.keep(next)
}
