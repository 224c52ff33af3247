/**
 * The handshake of a connection (wire-protocol.md §4). The request is an ordinary frame, the answer bare text: no
 * frame, no newline, one write of its own, because clients compare what one read gives them with the whole text.
 */

import { encodeRequest } from './request.ts'

const encoder = new TextEncoder()

/** Sent when the token is accepted. Not to be written to. */
export const LOGIN_OK = encoder.encode('LOGIN OK')
/** Sent when it is not, before the connection is closed. Not to be written to. */
export const LOGIN_FAILED = encoder.encode('LOGIN FAILED')

/** The frame a client sends first, with correlation id 0. */
export function encodeLogin(token: string): Uint8Array {
  return encodeRequest({ command: 'LOGIN', correlationId: 0, fields: { token } })
}

/**
 * Reads the answer from what has come so far.
 *
 * @returns `pending` while it may still become an answer, `malformed` when it cannot; `bytes` are those of the answer,
 *   frames follow them
 */
export function readLoginAnswer(received: Uint8Array): {
  readonly answer: 'ok' | 'failed' | 'pending' | 'malformed'
  readonly bytes: number
} {
  if (startsWith(received, LOGIN_OK)) return { answer: 'ok', bytes: LOGIN_OK.length }
  if (startsWith(received, LOGIN_FAILED)) return { answer: 'failed', bytes: LOGIN_FAILED.length }
  const mayBecome = startsWith(LOGIN_OK, received) || startsWith(LOGIN_FAILED, received)
  return { answer: mayBecome ? 'pending' : 'malformed', bytes: 0 }
}

function startsWith(bytes: Uint8Array, beginning: Uint8Array): boolean {
  return bytes.length >= beginning.length && beginning.every((byte, i) => bytes[i] === byte)
}
