/**
 * Request keys make retried writes idempotent (docs/design/consensus.md#request-keys). A key is a session, 128 random
 * bits, and a number that grows by one with every write of the session.
 *
 *   opening   number 1 is in flight; nothing else is sent in the session, or it could arrive first and be refused
 *   open      number 1 was executed: the node knows the session
 *   retired   no further number is taken; writes in flight keep theirs
 *
 * The node keeps the last 256 results of a session. Numbers therefore run at most 255 ahead of the oldest pending
 * one, which could otherwise no longer be retried.
 */

import { assert } from '@vacancy/shared'
import type { World } from './world.ts'

const SESSION_BYTES = 16
/** Results that a node keeps per session. */
export const SESSION_WINDOW = 256
/** Sessions in use at once. When all are full, writes wait. */
export const SESSIONS_MAX = 64
/**
 * A node forgets a session 24 h after its last use, earlier when many are in use. The client retires it well before.
 */
export const SESSION_IDLE_MS_MAX = 3_600_000

export type Session = {
  /** 32 lower-case hexadecimal digits. */
  readonly id: string
  state: 'opening' | 'open' | 'retired'
  nextNumber: number
  /** Pending numbers, ascending. */
  readonly unanswered: Set<number>
  lastUseMs: number
}

export type RequestKey = { readonly session: Session; readonly number: number }

export type RequestKeys = {
  readonly world: World
  /** Sessions that are not retired. */
  readonly sessions: Set<Session>
}

export function createRequestKeys(world: World): RequestKeys {
  return { world, sessions: new Set() }
}

/** The key of the next write; undefined when it has to wait for the reply to an earlier one. */
export function takeKey(keys: RequestKeys): RequestKey | undefined {
  const nowMs = keys.world.clock.monotonicMs()
  let isOneOpening = false
  for (const session of keys.sessions) {
    if (session.state === 'opening') isOneOpening = true
    else if (session.unanswered.size === 0 && nowMs - session.lastUseMs > SESSION_IDLE_MS_MAX) retire(keys, session)
    else if (hasRoom(session)) return takeNumber(session, nowMs)
  }
  if (isOneOpening || keys.sessions.size >= SESSIONS_MAX) return undefined
  const id = [...keys.world.randomBytes(SESSION_BYTES)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  const session: Session = { id, state: 'opening', nextNumber: 1, unanswered: new Set(), lastUseMs: nowMs }
  keys.sessions.add(session)
  return takeNumber(session, nowMs)
}

function hasRoom(session: Session): boolean {
  const [oldest] = session.unanswered
  return oldest === undefined || session.nextNumber - oldest < SESSION_WINDOW
}

function takeNumber(session: Session, nowMs: number): RequestKey {
  const number = session.nextNumber++
  session.unanswered.add(number)
  session.lastUseMs = nowMs
  return { session, number }
}

/**
 * The write is settled and will not be retried.
 *
 * @param isFateKnown the node executed it, or refused it while executing: it has an entry for the session
 */
export function releaseKey(keys: RequestKeys, { session, number }: RequestKey, isFateKnown: boolean): void {
  assert(session.unanswered.delete(number), 'a key is released once')
  if (session.state !== 'opening') return
  if (isFateKnown) session.state = 'open'
  else retire(keys, session)
}

/** Retires sessions that the node may have forgotten (docs/design/consensus.md#request-keys). */
export function retire(keys: RequestKeys, session: Session): void {
  session.state = 'retired'
  keys.sessions.delete(session)
}
