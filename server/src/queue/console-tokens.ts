/**
 * API tokens of the console as tokens of the queue (docs/design/queue-delivery.md#access). A token is looked up once and then
 * followed, so that a submission waits for no database, and a revoked token is forgotten within a second.
 */

import type { QueueRole, QueueToken } from '@vacancy/queue'
import type { TokenRole } from '@vacancy/shared/contract'
import type { Logger } from 'pino'
import { type Access, isTokenGood, markTokenUsed, onEnd, SEEN_MS } from '../access/access.ts'
import { hashSecret } from '../access/secrets.ts'
import { topicsOf } from '../access/tokens.ts'

type Known = {
  readonly id: string
  readonly token: QueueToken
  /** Last use, and the last one that was stored. */
  usedAt: number
  markedAt: number
  address: string
}

export type ConsoleTokens = {
  readonly access: Access
  readonly log: Logger
  /** By hexadecimal SHA-256. Only tokens that exist come here. */
  readonly known: Map<string, Known>
  timer: NodeJS.Timeout | undefined
}

const FOLLOW_MS = 1_000
/** A token that is not used for this long is looked up again. */
const FORGET_MS = 600_000

/** A client token may read what a monitoring token reads. */
const ROLES: { readonly [role in TokenRole]: QueueRole } = {
  monitoring: 'monitoring',
  client: 'monitoring',
  producer: 'producer',
  consumer: 'consumer',
  admin: 'admin',
}

export function followConsoleTokens(access: Access, log: Logger): ConsoleTokens {
  const tokens: ConsoleTokens = { access, log, known: new Map(), timer: undefined }
  onEnd(access, (key) => forget(tokens, key))
  planFollow(tokens)
  return tokens
}

export function stopFollowing(tokens: ConsoleTokens): void {
  clearTimeout(tokens.timer)
  tokens.timer = undefined
}

/** A promise only the first time that a token is used. */
export function findConsoleToken(
  tokens: ConsoleTokens,
  text: string,
  address: string,
): QueueToken | undefined | Promise<QueueToken | undefined> {
  const hash = hashSecret(text)
  const known = tokens.known.get(hash)
  if (known === undefined) return lookUp(tokens, hash, address)
  const now = tokens.access.clock.wallMs()
  if (now >= known.token.expiresMs) return undefined
  known.usedAt = now
  known.address = address
  return known.token
}

async function lookUp(tokens: ConsoleTokens, hash: string, address: string): Promise<QueueToken | undefined> {
  const { access, known } = tokens
  // Looked up by its hash, so the time it takes reveals nothing about the value.
  const row = await access.database.selectFrom('tokens').selectAll().where('hash', '=', hash).executeTakeFirst()
  const now = access.clock.wallMs()
  if (row === undefined || !isTokenGood(row, now)) return undefined
  const topics = topicsOf(row)
  const token: QueueToken = {
    hash: Buffer.from(hash, 'hex'),
    role: ROLES[row.role],
    name: row.name,
    expiresMs: row.expires_at ?? Number.POSITIVE_INFINITY,
    ...(topics !== null && { topics }),
  }
  known.set(hash, { id: row.id, token, usedAt: now, markedAt: 0, address })
  return token
}

/** Whether the token of an open connection is still valid, as far as is known. Counts as use. */
export function isConsoleTokenGood({ known, access }: ConsoleTokens, { hash }: QueueToken): boolean {
  const found = known.get(Buffer.from(hash).toString('hex'))
  if (found !== undefined) found.usedAt = access.clock.wallMs()
  return found !== undefined
}

/** A token that was revoked here; another control plane on the same database may revoke tokens, too. */
function forget({ known }: ConsoleTokens, id: string): void {
  for (const [hash, each] of known) if (each.id === id) known.delete(hash)
}

function planFollow(tokens: ConsoleTokens): void {
  const timer = setTimeout(() => {
    follow(tokens)
      // What was known stays valid until the database responds again.
      .catch((error: unknown) => tokens.log.warn({ err: error }, 'checking the tokens of the queue failed'))
      .finally(() => {
        if (tokens.timer === timer) planFollow(tokens)
      })
  }, FOLLOW_MS)
  timer.unref()
  tokens.timer = timer
}

async function follow({ access, known }: ConsoleTokens): Promise<void> {
  const now = access.clock.wallMs()
  for (const [hash, { usedAt }] of known) if (now - usedAt > FORGET_MS) known.delete(hash)
  if (known.size === 0) return
  const rows = await access.database
    .selectFrom('tokens')
    .select(['id', 'expires_at', 'revoked_at'])
    .where(
      'id',
      'in',
      [...known.values()].map(({ id }) => id),
    )
    .execute()
  const good = new Set(rows.filter((row) => isTokenGood(row, now)).map(({ id }) => id))
  for (const [hash, each] of known) {
    if (!good.has(each.id)) known.delete(hash)
    else if (each.usedAt > each.markedAt && now - each.markedAt >= SEEN_MS) {
      each.markedAt = now
      await markTokenUsed(access.database, each.id, each.usedAt, each.address)
    }
  }
}
