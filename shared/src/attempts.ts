/**
 * Attempts to connect to a name with several addresses. Node tries them one after another and gives each 250 ms, which a
 * distant one does not meet, and its error says nothing of them. Pure: a socket is what it reports.
 */

/** What one attempt gets, by default. */
export const ATTEMPT_MS = 2_000

type Socket = {
  on(event: 'connect', listener: () => void): unknown
  on(event: 'connectionAttempt', listener: (ip: string, port: number) => void): unknown
  on(
    event: 'connectionAttemptFailed',
    listener: (ip: string, port: number, family: number, error: Error) => void,
  ): unknown
  on(event: 'connectionAttemptTimeout', listener: (ip: string, port: number) => void): unknown
}

/**
 * Follows the attempts of a socket.
 *
 * @param began called with each attempt
 * @returns gives the reason of a failure with address and cause of each attempt, if there were several and none succeeded
 */
export function followAttempts(socket: Socket, began: () => void = () => {}): (reason: string) => string {
  const causes = new Map<string, string>()
  const addressOf = (ip: string, port: number) => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`)
  socket.on('connectionAttempt', (ip, port) => {
    causes.set(addressOf(ip, port), 'no answer')
    began()
  })
  socket.on('connectionAttemptFailed', (ip, port, _family, error) => {
    const { code = error.message } = error as Error & { readonly code?: string }
    causes.set(addressOf(ip, port), code)
  })
  socket.on('connectionAttemptTimeout', (ip, port) => causes.set(addressOf(ip, port), 'no answer in time'))
  socket.on('connect', () => causes.clear())
  return (reason) => {
    if (causes.size < 2) return reason
    const all = [...causes].map(([address, cause]) => `${address} ${cause}`).join(', ')
    return reason === '' ? all : `${reason}: ${all}`
  }
}
