/**
 * A relay between two nodes that can be cut: it then silently stops forwarding, like an unplugged cable. Bytes in
 * flight arrive when the link is restored, as if TCP had retransmitted them.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'

export type Link = {
  /** Connecting here leads to the target. */
  readonly port: number
  readonly connections: Set<Carried>
  readonly server: Server
  isCut: boolean
}

/** One connection through a link: both its sockets, and what is still to be done once the link carries again. */
type Carried = { readonly sockets: Socket[]; readonly held: (() => void)[] }

export function openLink(targetPort: number): Promise<Link> {
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = address && typeof address === 'object' ? address.port : 0
      const link: Link = { port, connections: new Set(), server, isCut: false }
      server.on('connection', (socket) => carry(link, socket, targetPort))
      resolve(link)
    })
  })
}

function carry(link: Link, caller: Socket, targetPort: number): void {
  const carried: Carried = { sockets: [caller], held: [] }
  link.connections.add(carried)
  caller.on('error', () => {}) // 'close' follows and is handled.
  act(link, carried, () => {
    const target = connect({ host: '127.0.0.1', port: targetPort, allowHalfOpen: true, noDelay: true })
    carried.sockets.push(target)
    target.on('error', () => {})
    relay(link, carried, caller, target)
    relay(link, carried, target, caller)
    caller.resume()
  })
}

function relay(link: Link, carried: Carried, from: Socket, to: Socket): void {
  from.on('data', (chunk) =>
    act(link, carried, () => {
      if (!to.destroyed && !to.write(chunk)) from.pause()
    }),
  )
  to.on('drain', () => act(link, carried, () => from.resume()))
  from.on('end', () => act(link, carried, () => to.end()))
  from.on('close', () =>
    act(link, carried, () => {
      to.destroySoon()
      link.connections.delete(carried)
    }),
  )
}

/** Does it, or does it in its turn when the link is mended. */
function act({ isCut }: Link, { held }: Carried, action: () => void): void {
  if (isCut) held.push(action)
  else action()
}

export function cutLink(link: Link): void {
  link.isCut = true
  for (const { sockets } of link.connections) for (const socket of sockets) socket.pause()
}

export function mendLink(link: Link): void {
  link.isCut = false
  for (const { sockets, held } of [...link.connections]) {
    for (const action of held.splice(0)) action()
    for (const socket of sockets) socket.resume()
  }
}

export function closeLink({ server, connections }: Link): void {
  server.close()
  for (const { sockets } of connections) for (const socket of sockets) socket.destroy()
}
