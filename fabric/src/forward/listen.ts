/** The TCP listener of routers and bridges. */

import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { VacancyError } from '@vacancy/shared'
import { DECIDES_ITSELF, refuseClient } from '@vacancy/shared/client-certificate'
import { lacksDescriptors } from '@vacancy/shared/descriptors'
import { type Log, secureContextOf, type TlsMaterial, tlsOptionsOf } from '@vacancy/shared/node'
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
}

/**
 * Listens for clients.
 *
 * @throws VacancyError port_taken
 */
export function listenForClients(forwarder: Forwarder, options: ListenOptions): Promise<Listener> {
  const { host, port, connectionsMax, tls, log } = options
  const { counters } = forwarder
  let open = 0
  // A connection counts from its first moment, with TLS before its handshake.
  const admit = (socket: Socket): boolean => {
    if (open >= connectionsMax || forwarder.isDraining || lacksDescriptors(socket)) {
      counters.connectionsRefused++
      if (!forwarder.isDraining) log.warn({ connections: open }, 'connection refused: the limit is reached')
      socket.destroy()
      return false
    }
    open++
    socket.once('close', () => open--)
    socket.setNoDelay(true)
    return true
  }
  const accept = (socket: Socket): void => {
    const events = acceptClient(forwarder, socket, socket.remoteAddress ?? '')
    socket.on('data', (chunk: Buffer) => events.data(chunk))
    socket.on('drain', () => events.drained())
    socket.on('end', () => events.ended())
    // Its `close` follows.
    socket.on('error', () => {})
    socket.once('close', () => events.closed())
  }
  const server: Server = tls
    ? createTlsServer({ ...tlsOptionsOf(tls), ...DECIDES_ITSELF, allowHalfOpen: true }, (socket) => {
        const reason = tls.clientCa === undefined ? '' : refuseClient(socket)
        if (reason === '') accept(socket)
        else noteRefusal(socket, reason)
      })
    : createServer({ allowHalfOpen: true })
  server.on('connection', (socket: Socket) => {
    if (admit(socket) && !tls) accept(socket)
  })
  const noteRefusal = (socket: Socket, reason: string): void => {
    counters.handshakesFailed++
    log.warn({ remote: socket.remoteAddress, reason }, 'TLS handshake with a client failed')
  }
  server.on('tlsClientError', (error: Error, socket: Socket) => {
    noteRefusal(socket, error.message)
    // Node reports a failed or slow handshake, but leaves the connection open.
    socket.destroy()
  })
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
      })
    })
  })
}
