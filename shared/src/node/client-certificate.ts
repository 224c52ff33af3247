/**
 * Client certificates of TCP listeners. Node would close such a connection without a word to either side, so that the
 * listener accepts it, and refuses it with a frame.
 */

import type { TLSSocket } from 'node:tls'
import { encodeError } from '../wire/index.ts'

/** For the options of a listener that calls `refuseClient`. */
export const DECIDES_ITSELF = { rejectUnauthorized: false } as const

/**
 * Closes the connection of a client without a certificate of the required authorities, before anything is read from it.
 *
 * @returns why; '' when its certificate is valid
 */
export function refuseClient(socket: TLSSocket): string {
  if (socket.authorized) return ''
  const hasShown = Object.keys(socket.getPeerCertificate()).length > 0
  // A code such as SELF_SIGNED_CERT_IN_CHAIN, where types have an error.
  const code = String(socket.authorizationError ?? 'unknown')
  const fault = hasShown ? `the client certificate is refused (${code})` : 'a client certificate is required'
  // Its `close` follows.
  socket.on('error', () => {})
  socket.end(Buffer.from(encodeError(0, `AUTH_ERROR: ${fault}`)))
  return fault
}
