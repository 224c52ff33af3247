/** API tokens: listing, creating and revoking them. */
import { randomUUID } from 'node:crypto'
import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import { ACCESS_LIMITS, type FileTokenView, type TokenRole, type TokenView } from '@vacancy/shared/contract'
import type { TokenHash } from '@vacancy/shared/node'
import type { Selectable } from 'kysely'
import { notifyEnded } from './access.ts'
import { type Accounts, change, noteOf, timeOf, tooMany } from './accounts.ts'
import { hashSecret, newToken } from './secrets.ts'
import { endTokenSessions } from './sessions.ts'
import type { AccessTables } from './tables.ts'

/** Tokens of a program that a file lists. */
export type TokensOfFile = { readonly path: string; readonly tokens: readonly TokenHash<TokenRole>[] }

export async function listTokens(accounts: Accounts, file: TokensOfFile | undefined) {
  const tokens = await accounts.database.selectFrom('tokens').selectAll().orderBy('created_at', 'desc').execute()
  const queueFile = file ? { path: file.path, tokens: file.tokens.map(fileTokenView) } : null
  return { tokens: tokens.map(tokenView), queueFile }
}

export async function createToken(accounts: Accounts, request: RouteRequest<'POST /api/v1/tokens'>) {
  const { name, role, topics } = request.body
  const nowMs = accounts.clock.wallMs()
  const expiresMs = request.body.expiresAt === null ? null : Date.parse(request.body.expiresAt)
  if (expiresMs !== null && expiresMs <= nowMs)
    throw problem('invalid-request', {
      detail: 'expiresAt is in the past.',
      hint: 'Choose a time in the future, or none.',
      field: 'expiresAt',
    })
  const value = newToken()
  const row: Selectable<AccessTables['tokens']> = {
    id: randomUUID(),
    hash: hashSecret(value),
    name,
    role,
    topics: topics === null ? null : JSON.stringify(topics),
    created_by: request.principal.name,
    created_at: nowMs,
    expires_at: expiresMs,
    last_used_at: null,
    last_used_from: null,
    revoked_at: null,
    preferences: '{}',
  }
  await change(accounts, async (within) => {
    await accounts.audit.write(
      noteOf(request, 'token.create', name, topics === null ? role : `${role} of ${topics.join(', ')}`),
      within,
    )
    const { tokens } = await within
      .selectFrom('tokens')
      .select((column) => column.fn.countAll<number>().as('tokens'))
      .where('revoked_at', 'is', null)
      .executeTakeFirstOrThrow()
    if (Number(tokens) >= ACCESS_LIMITS.tokensMax) throw tooMany('tokens', ACCESS_LIMITS.tokensMax)
    await within.insertInto('tokens').values(row).execute()
  })
  return { token: tokenView(row), value }
}

export async function revokeToken(
  accounts: Accounts,
  request: RouteRequest<'DELETE /api/v1/tokens/{id}'>,
): Promise<undefined> {
  const { id } = request.params
  const ended = await change(accounts, async (within) => {
    const revoked = await within
      .updateTable('tokens')
      .set({ revoked_at: accounts.clock.wallMs() })
      .where('id', '=', id)
      .where('revoked_at', 'is', null)
      .returning('name')
      .executeTakeFirst()
    if (revoked === undefined) throw problem('no-token')
    await accounts.audit.write(noteOf(request, 'token.revoke', revoked.name), within)
    return await endTokenSessions(within, id)
  })
  notifyEnded(accounts.access, [id, ...ended])
}

/** The only topics that a token is valid for; null for all. */
export function topicsOf({ topics }: Pick<Selectable<AccessTables['tokens']>, 'topics'>): string[] | null {
  return topics === null ? null : (JSON.parse(topics) as string[])
}

function fileTokenView({ name, role, topics, expiresMs }: TokenHash<TokenRole>): FileTokenView {
  const expiresAt = Number.isFinite(expiresMs) ? new Date(expiresMs).toISOString() : null
  return { name, role, topics: topics ? [...topics] : null, expiresAt }
}

function tokenView(token: Selectable<AccessTables['tokens']>): TokenView {
  return {
    id: token.id,
    name: token.name,
    role: token.role,
    topics: topicsOf(token),
    createdBy: token.created_by,
    createdAt: new Date(token.created_at).toISOString(),
    expiresAt: timeOf(token.expires_at),
    lastUsedAt: timeOf(token.last_used_at),
    lastUsedFrom: token.last_used_from,
    revokedAt: timeOf(token.revoked_at),
  }
}
