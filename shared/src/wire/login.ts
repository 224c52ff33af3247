/** The handshake of a connection: answers are bare text, not frames (wire-protocol.md §4). */

export const LOGIN_OK: Uint8Array = new TextEncoder().encode('LOGIN OK')
export const LOGIN_FAILED: Uint8Array = new TextEncoder().encode('LOGIN FAILED')
