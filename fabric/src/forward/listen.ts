/** The TCP listener of routers and bridges. */

import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { VacancyError } from '@vacancy/shared'
import { type Log, secureContextOf, type TlsMaterial } from '@vacancy/shared/node'
import { acceptClient, type Forwarder } from './forwarder.ts'

export type ListenOptions = {
  readonly host: string
  readonly port: number
  /** Further connections are closed without a byte. */
  readonly connectionsMax: number
  readonly tls: TlsMaterial | undefined
  readonly log: Log
}

export type Listener = {
  readonly port: number
  /** Uses other certificates for new connections. */
  readonly setTls: (material: TlsMaterial) => void
  /** Accepts no more connections; the open ones stay. */
  readonly stopAccepting: () => void
  readonly refused: () => number
}

/**
 * Listens for clients.
 *
 * @throws VacancyError port_taken
 */
export function listenForClients(forwarder: Forwarder, options: ListenOptions): Promise<Listener> {
  const { host, port, connectionsMax, tls, log } = options
  let refused = 0
  const accept = (socket: Socket): void => {
    if (forwarder.inbounds.size >= connectionsMax || forwarder.isDraining) {
      refused++
      log.warn({ connections: forwarder.inbounds.size }, 'connection refused: the limit is reached')
      socket.destroy()
      return
    }
    socket.setNoDelay(true)
    const events = acceptClient(forwarder, socket, socket.remoteAddress ?? '')
    socket.on('data', (chunk: Buffer) => events.data(chunk))
    socket.on('drain', () => events.drained())
    socket.on('end', () => events.ended())
    // Its `close` follows.
    socket.on('error', () => {})
    socket.once('close', () => events.closed())
  }
  const server: Server = tls
    ? createTlsServer({ ...secureContextOf(tls), allowHalfOpen: true, pauseOnConnect: false }, accept)
    : createServer({ allowHalfOpen: true }, accept)
  if (tls) server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      reject(new VacancyError('port_taken', { address: `${host}:${port}`, reason: cause.message }, { cause }))
    })
    server.listen({ host, port, backlog: 4096 }, () => {
      const address = server.address()
      resolve({
        port: typeof address === 'object' && address !== null ? address.port : port,
        setTls: (material) => {
          if ('setSecureContext' in server)
            (server as ReturnType<typeof createTlsServer>).setSecureContext(secureContextOf(material))
        },
        stopAccepting: () => server.close(),
        refused: () => refused,
      })
    })
  })
}
