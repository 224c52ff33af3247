/** Graceful shutdown of an HTTP listener: it waits for requests in flight, but not for idle connections. */

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { DESCRIPTORS_KEPT, lacksDescriptors } from './descriptors.ts'

/**
 * Tracks the connections of a listener, including those in their TLS handshake, and closes those that take one of the
 * last `kept` descriptors of the process. Node's own `closeIdleConnections`
 * does not close connections that never sent a request.
 *
 * @returns closes idle connections at once, the others after their response, and the remaining ones after `drainMs`
 */
export function followConnections(
  server: Server | TlsServer,
  kept: number = DESCRIPTORS_KEPT.client,
): (drainMs: number) => void {
  const open = new Map<string, { readonly socket: Socket; requests: number }>()
  let isEnding = false
  server.on('connection', (socket: Socket) => {
    if (isEnding || lacksDescriptors(socket, kept)) {
      socket.destroy()
      return
    }
    const key = peerOf(socket)
    const connection = { socket, requests: 0 }
    open.set(key, connection)
    socket.once('close', () => {
      if (open.get(key) === connection) open.delete(key)
    })
  })
  // Node reports a failed or timed-out handshake, but leaves the socket open.
  server.on('tlsClientError', (_error: Error, socket: Socket) => socket.destroy())
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const connection = open.get(peerOf(request.socket))
    if (connection === undefined) return
    connection.requests++
    response.once('close', () => {
      connection.requests--
      if (isEnding && connection.requests === 0) request.socket.destroySoon()
    })
  })
  return (drainMs) => {
    isEnding = true
    for (const { socket, requests } of open.values()) if (requests === 0) socket.destroy()
    setTimeout(() => {
      for (const { socket } of open.values()) socket.destroy()
    }, drainMs).unref()
  }
}

/** Identifies a connection of a listener. With TLS, the socket of a request differs from that of its connection. */
function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
