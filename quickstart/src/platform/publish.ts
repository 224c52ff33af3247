/** Published ports: connections to ports of 127.0.0.1 are passed on to a component. */

import { connect, createServer, type Server, type Socket } from 'node:net'
import { VacancyError } from '@vacancy/shared'
import type { Published } from './plan.ts'

const HOST = '127.0.0.1'

/** The open listeners and their connections. */
export type Forwards = { readonly servers: Set<Server>; readonly sockets: Set<Socket> }

export function createForwards(): Forwards {
  return { servers: new Set(), sockets: new Set() }
}

/** @throws VacancyError port_taken */
export async function publish(forwards: Forwards, { port, to }: Published): Promise<void> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => passOn(forwards, client, to))
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', (cause) =>
    reject(new VacancyError('port_taken', { address: `${HOST}:${port}`, reason: cause.message }, { cause })),
  )
  server.listen({ host: HOST, port, exclusive: true }, resolve)
  await promise
  forwards.servers.add(server)
}

/** Both directions, each with its own end; when one side fails, so does the other. */
function passOn({ sockets }: Forwards, client: Socket, to: Published['to']): void {
  const upstream = connect({ ...to, allowHalfOpen: true, noDelay: true })
  for (const [from, into] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    sockets.add(from)
    from.once('close', () => sockets.delete(from))
    // The component is down, or the client left: the other side sees a reset, as without a forwarder.
    from.on('error', () => into.resetAndDestroy())
    from.pipe(into)
  }
}

export function closeForwards({ servers, sockets }: Forwards): void {
  for (const server of servers) server.close()
  for (const socket of sockets) socket.destroy()
  servers.clear()
}
