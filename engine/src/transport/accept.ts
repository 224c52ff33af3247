/** Connections that other nodes open: TLS and the handshake, bounded in number and time. */

import type { X509Certificate } from 'node:crypto'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { VacancyError } from '@vacancy/shared'
import { DESCRIPTORS_KEPT, lacksDescriptors } from '@vacancy/shared/descriptors'
import type { TlsMaterial } from '@vacancy/shared/node'
import { addPeer, lose, open, read, receive, redial } from './dial.ts'
import { FRAME_BYTES_MAX } from './frame-fields.ts'
import type { Framing, FramingFault } from './framing.ts'
import { decodeHello, encodeRefusal, encodeWelcome, type Hello, type Refusal } from './handshake.ts'
import { peerContextOptions } from './peer-tls.ts'
import {
  ALPN,
  type CloseReason,
  distrustText,
  failureOf,
  hostsOfNode,
  isGoodForAny,
  type Link,
  mismatchText,
  namedOf,
  type Pending,
  type State,
  sealed,
  warn,
  warnUnnamed,
} from './transport-state.ts'

type Listener = { readonly server: Server; readonly port: number; readonly reload: (material: TlsMaterial) => void }

export async function listen(state: State): Promise<Listener> {
  const { options, limits } = state
  const tls = options.tls && createTls(state, options.tls)
  const server = createServer({ noDelay: true }, (socket) => {
    const pending = admit(state, socket)
    if (!pending) return
    // The gate limits and times connections; TLS gets those it admits.
    if (tls) tls.emit('connection', socket)
    else awaitHello(state, pending, socket, undefined)
  })
  await new Promise<void>((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException): void => {
      const address = `${options.host}:${options.port}`
      reject(new VacancyError('port_taken', { address, reason: cause.message }, { cause }))
    }
    server.once('error', fail)
    server.listen({ host: options.host, port: options.port, backlog: limits.peers }, () => {
      server.off('error', fail)
      // After listening, errors concern single connections, for instance no free file descriptor.
      server.on('error', (err) => warn(state, 'accept', { err }, 'accepting a peer connection failed'))
      resolve()
    })
  })
  const { port } = server.address() as AddressInfo
  return { server, port, reload: (material) => tls?.setSecureContext(peerContextOptions(material)) }
}

function createTls(state: State, material: TlsMaterial) {
  const server = createTlsServer({
    ...peerContextOptions(material),
    requestCert: true,
    // Checked below: with this option TLS would close the connection without a reason in the log.
    rejectUnauthorized: false,
    ALPNProtocols: [ALPN],
    // The gate has a deadline for the whole handshake. This timeout only must not expire first.
    handshakeTimeout: 2 * state.limits.handshakeMs,
  })
  server.on('secureConnection', (socket) => {
    const pending = state.pending.get(placeOf(socket))
    const named = namedOf(state, socket)
    if (!pending) socket.destroy()
    // A resumed session stands for a certificate that was not checked this time. Peers never resume one.
    else if (!socket.authorized || socket.isSessionReused()) pending.refuse(socket, 'certificate', distrustText(socket))
    else if (named === 'none')
      pending.refuse(socket, 'identity', mismatchText(state, 'ID', [], socket.getPeerX509Certificate()))
    else if (named === 'any') awaitHello(state, pending, socket, undefined)
    else if (named === 'hosts') awaitHello(state, pending, socket, socket.getPeerX509Certificate())
    else awaitHello(state, pending, socket, named.node)
  })
  server.on('tlsClientError', (error, socket) => {
    const failure = failureOf(socket, error)
    state.pending.get(placeOf(socket))?.end(failure === 'network' ? 'peerClosed' : failure)
    socket.destroy()
  })
  return server
}

const placeOf = (socket: Socket): string => `${socket.remoteAddress}:${socket.remotePort}`

/** Gives a new connection a place and a deadline. */
function admit(state: State, socket: Socket): Pending | undefined {
  const { env } = state.options
  const place = placeOf(socket)
  socket.on('error', () => {}) // 'close' follows and handles it.
  if (socket.remotePort === undefined || state.isClosed || lacksDescriptors(socket, DESCRIPTORS_KEPT.health)) {
    socket.destroy()
    return undefined
  }
  const [oldest] = state.pending.size >= state.limits.unauthenticated ? state.pending.values() : []
  oldest?.end('crowded')
  let isCounted = false
  const count = (reason: CloseReason, cause: string): void => {
    if (isCounted) return
    isCounted = true
    state.refused[reason]++
    const fields = { from: place, reason, ...(cause === '' ? {} : { cause }) }
    warn(state, `refused ${reason}`, fields, 'connection to the cluster port refused')
  }
  const settle = (): void => {
    cancel()
    if (state.pending.get(place) === pending) state.pending.delete(place)
  }
  const end = (reason: CloseReason): void => {
    if (state.pending.get(place) !== pending) return
    count(reason, '')
    settle()
    socket.destroy()
  }
  const refuse = (talker: Socket, refusal: Refusal, cause = ''): void => {
    count(refusal, cause)
    talker.end(sealed(encodeRefusal(refusal)))
  }
  const cancel = env.schedule.after(state.limits.handshakeMs, () => end('timeout'))
  const pending: Pending = { end, refuse, settle }
  state.pending.set(place, pending)
  socket.on('close', () => end('peerClosed'))
  return pending
}

/**
 * Waits for the hello of a connection.
 *
 * @param certified the node that its certificate names, or a certificate that names hosts; undefined without TLS
 */
function awaitHello(
  state: State,
  pending: Pending,
  socket: Socket,
  certified: string | X509Certificate | undefined,
): void {
  const { node: own } = state.options
  let link: Link | undefined
  let isOver = false
  const onBody = (framing: Framing, body: Uint8Array): boolean => {
    if (link) return receive(state, link, body)
    if (isOver) return false
    const hello = decodeHello(body)
    isOver = true
    if (hello === undefined) pending.end('hello')
    else if (typeof certified === 'string' && hello.from !== certified)
      pending.refuse(socket, 'identity', `${hello.from} has the certificate of ${certified}`)
    else if (hello.to !== own) pending.refuse(socket, 'addressee')
    else if (hello.from === own) pending.refuse(socket, 'self')
    else if (certified === undefined || typeof certified === 'string') return take(framing, hello)
    else void takeIfThere(framing, hello, certified)
    return false
  }
  // A dialler sends no data between its hello and the reply.
  const takeIfThere = async (framing: Framing, hello: Hello, certificate: X509Certificate): Promise<void> => {
    const hosts = await hostsOfNode(state, hello.from)
    if (state.isClosed || socket.destroyed) return
    if (!isGoodForAny(certificate, hosts))
      return pending.refuse(socket, 'identity', mismatchText(state, hello.from, hosts, certificate))
    warnUnnamed(state, hello.from)
    take(framing, hello)
  }
  const take = (framing: Framing, hello: Hello): boolean => {
    const peer = state.peers.get(hello.from)
    if (!peer && state.peers.size >= state.limits.peers) pending.refuse(socket, 'crowded')
    else if (peer && peer.instance !== '' && peer.instance !== hello.instance) pending.refuse(socket, 'duplicate')
    else {
      pending.settle()
      framing.bodyBytesMax = FRAME_BYTES_MAX
      socket.write(sealed(encodeWelcome({ instance: state.instance, node: own })))
      const slot = (peer ?? addPeer(state, hello.from)).slots[hello.stream]
      link = open(state, slot, socket, false, hello.instance)
      // The peer is back: dial it now.
      if (slot.isWaiting) redial(state, slot)
      return link.isOpen
    }
    return false
  }
  const onFault = (fault: FramingFault): void => (link ? lose(state, link, fault) : pending.end(fault))
  read(state, socket, () => link, onBody, onFault)
}
