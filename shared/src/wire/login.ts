/**
 * The handshake of a connection (docs/design/protocol.md#login). The request is an ordinary frame. The reply is bare
 * text in a single write, without frame or newline, because clients compare the result of one read with the whole
 * text.
 */

import { encodeRequest } from './request.ts'

const encoder = new TextEncoder()

/** Sent when the token is accepted. Read-only. */
export const LOGIN_OK = encoder.encode('LOGIN OK')
/** Sent when the token is refused, before the connection is closed. Read-only. */
export const LOGIN_FAILED = encoder.encode('LOGIN FAILED')

/** The first frame of a client, with correlation id 0. */
export function encodeLogin(token: string): Uint8Array {
  return encodeRequest({ command: 'LOGIN', correlationId: 0, fields: { token } })
}

/**
 * Parses the reply from the bytes received so far.
 *
 * @returns `pending` while it may still become a reply, `malformed` when it cannot; `bytes` is the length of the
 * reply, after which frames follow
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
