/** Servers in the process of a test: on a port of 127.0.0.1 by default, ended with all their connections. */
import type { AddressInfo, Server, Socket } from 'node:net'

/** @returns its port, and how to end it: also twice */
export async function listen(server: Server, port = 0, host = '127.0.0.1') {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      return closed
    },
  }
}
