/**
 * One socket, from connecting to its end: login, the codec list, then pipelined requests whose answers are matched by
 * correlation id (wire-protocol.md §2–§4). Nothing is repeated here: a connection ends once, and says which requests
 * it leaves without an answer.
 *
 *   connecting → login (with a token) → codecs → open → closed
 *
 * Whatever a peer sends, the worst that happens is the end of the connection.
 */

import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { type CodecList, createCodecList } from '@vacancy/shared'
import {
  CODECS_SEGMENT,
  type CommandName,
  createFrameSplitter,
  decodeEnvelope,
  decodeReply,
  encodeKeepalive,
  encodeLogin,
  encodeRequest,
  type FrameSink,
  type FrameSplitter,
  MAGIC_ENVELOPE,
  readLoginAnswer,
  splitFrames,
} from '@vacancy/shared/wire'
import { errorOfAnswer, errorOfClient, type VacancyCallError } from './errors.ts'
import type { World } from './world.ts'

/** Largest reply that is read: 32,767 properties with a stay of 366 nights are 133 MB. */
const REPLY_BYTES_MAX = 256 * 1024 * 1024
const CORRELATION_IDS = 2 ** 32
/** A request that was given up and is not answered this long later: the peer loses requests. */
const LATE_ANSWER_MS_MAX = 30_000
const TCP_KEEPALIVE_MS = 30_000
/** Routers and bridges close what is silent for 90 s. */
const KEEPALIVE_MS = 15_000

export type Address = { readonly host: string; readonly port: number }

export type ConnectionSettings = {
  readonly address: Address
  readonly tls: ConnectionOptions | undefined
  readonly token: string | undefined
  /** The peer is a router: frames travel in envelopes, and it wants to hear something now and then. */
  readonly isRouter: boolean
  /** From the first packet to the codec list. */
  readonly handshakeMs: number
  /** With requests waiting and not a byte from the peer for this long, it is taken for dead. */
  readonly silenceMs: number
}

/** A request that is on its way. */
export type Awaited = {
  readonly command: CommandName
  /** The answer. Its bytes are the receiver's during this call only. */
  answered(payload: Uint8Array, connection: Connection): void
  /** There will be none. */
  lost(error: VacancyCallError): void
}

type OnItsWay = { awaited: Awaited | undefined; readonly sentMs: number }

export type Connection = {
  readonly world: World
  readonly settings: ConnectionSettings
  readonly listener: ConnectionListener
  readonly socket: Socket
  readonly splitter: FrameSplitter
  readonly sink: FrameSink
  state: 'connecting' | 'login' | 'codecs' | 'open' | 'closed'
  /** The socket has more than it can send: nothing is added until it says so. */
  isFull: boolean
  codecs: CodecList | undefined
  loginAnswer: Uint8Array
  nextId: number
  /** By correlation id, in the order sent. Without `awaited`: given up, its answer is dropped. */
  readonly onTheirWay: Map<number, OnItsWay>
  openedMs: number
  heardMs: number
  stopTimer: () => void
}

export type ConnectionListener = {
  opened(connection: Connection): void
  /** The socket takes more again. */
  drained(connection: Connection): void
  /** Comes once, last. What was on its way has been told already. */
  closed(connection: Connection, error: VacancyCallError): void
}

export function openConnection(world: World, settings: ConnectionSettings, listener: ConnectionListener): Connection {
  const { host, port } = settings.address
  const transport = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEPALIVE_MS }
  const socket = settings.tls
    ? connectTls({ ...transport, ...(isIP(host) ? {} : { servername: host }), ...settings.tls })
    : connectTcp(transport)
  const connection: Connection = {
    world,
    settings,
    listener,
    socket,
    splitter: createFrameSplitter({ payloadBytesMax: REPLY_BYTES_MAX, skipBytesMax: REPLY_BYTES_MAX }),
    sink: {
      frame: (bytes, start, end, id, inEnvelope) => {
        if (inEnvelope) lose(connection, 'the answer came in an envelope')
        else receive(connection, bytes.subarray(start, end), id)
      },
      refuse: () => lose(connection, 'the answer came in a broken envelope'),
      fatal: (reason) => lose(connection, reason),
    },
    state: 'connecting',
    isFull: false,
    codecs: undefined,
    loginAnswer: new Uint8Array(0),
    nextId: 1,
    onTheirWay: new Map(),
    openedMs: 0,
    heardMs: world.clock.monotonicMs(),
    stopTimer: () => {},
  }
  connection.stopTimer = world.after(settings.handshakeMs, () => {
    lose(connection, `not ready within ${settings.handshakeMs} ms`)
  })
  socket.once(settings.tls ? 'secureConnect' : 'connect', () => greet(connection))
  socket.on('data', (chunk: Uint8Array) => hear(connection, chunk))
  socket.on('drain', () => {
    connection.isFull = false
    if (connection.state === 'open') listener.drained(connection)
  })
  socket.on('error', (error) => lose(connection, error.message, error))
  socket.once('close', () => lose(connection, 'the other side closed it'))
  return connection
}

function greet(connection: Connection): void {
  if (connection.state !== 'connecting') return
  const { token } = connection.settings
  if (token === undefined) return askCodecs(connection)
  connection.state = 'login'
  connection.socket.write(encodeLogin(token))
}

function hear(connection: Connection, chunk: Uint8Array): void {
  if (connection.state === 'closed') return
  connection.heardMs = connection.world.clock.monotonicMs()
  if (connection.state === 'login') hearLogin(connection, chunk)
  else splitFrames(connection.splitter, chunk, connection.sink)
}

/** The answer to LOGIN is bare text, and may come in pieces like everything else. */
function hearLogin(connection: Connection, chunk: Uint8Array): void {
  const received = new Uint8Array(connection.loginAnswer.length + chunk.length)
  received.set(connection.loginAnswer)
  received.set(chunk, connection.loginAnswer.length)
  const { answer, bytes } = readLoginAnswer(received)
  switch (answer) {
    case 'pending':
      connection.loginAnswer = received
      return
    case 'failed':
      return end(connection, errorOfClient('login_failed', NOBODY, { address: addressOf(connection) }))
    case 'malformed':
      return lose(connection, 'the answer to LOGIN is none')
    case 'ok':
      askCodecs(connection)
      if (bytes < received.length) splitFrames(connection.splitter, received.subarray(bytes), connection.sink)
  }
}

const NOBODY = { command: undefined, inDoubt: false }

/** Masks of rate features are read by the list of the connection that they come from. */
function askCodecs(connection: Connection): void {
  connection.state = 'codecs'
  const envelope = connection.settings.isRouter ? { segment: CODECS_SEGMENT, write: false } : undefined
  const frame = encodeRequest({ command: 'GETCODECS', correlationId: 0, fields: {}, envelope })
  send(connection, frame, {
    command: 'GETCODECS',
    answered(payload) {
      try {
        const reply = decodeReply('GETCODECS', payload, { baseYear: 0, codecs: undefined })
        if (!reply.ok) {
          const call = { command: 'GETCODECS', inDoubt: false, isWrite: false } as const
          return end(connection, errorOfAnswer(call, reply.code, reply.message))
        }
        connection.codecs = createCodecList(reply.result.rateFeatures)
      } catch (error) {
        return lose(connection, 'the codec list cannot be read', error)
      }
      connection.stopTimer()
      connection.state = 'open'
      connection.openedMs = connection.world.clock.monotonicMs()
      if (connection.settings.isRouter) keepAlive(connection)
      connection.listener.opened(connection)
    },
    lost() {},
  })
}

function keepAlive(connection: Connection): void {
  connection.stopTimer = connection.world.after(KEEPALIVE_MS, () => {
    connection.socket.write(encodeKeepalive())
    keepAlive(connection)
  })
}

function receive(connection: Connection, payload: Uint8Array, id: number): void {
  if (connection.state === 'closed') return
  const onItsWay = connection.onTheirWay.get(id)
  if (!onItsWay) return lose(connection, `an answer came for request ${id}, which was never asked`)
  connection.onTheirWay.delete(id)
  onItsWay.awaited?.answered(payload, connection)
}

/**
 * Hands a frame to the socket. Its correlation id is written into it: the frame must be the caller's to give away.
 *
 * @returns the correlation id
 */
export function send(connection: Connection, frame: Uint8Array, awaited: Awaited): number {
  while (connection.onTheirWay.has(connection.nextId)) connection.nextId = (connection.nextId + 1) % CORRELATION_IDS
  const id = connection.nextId
  connection.nextId = (id + 1) % CORRELATION_IDS
  new DataView(frame.buffer, frame.byteOffset).setUint32(correlationIdAt(frame), id, true)
  connection.onTheirWay.set(id, { awaited, sentMs: connection.world.clock.monotonicMs() })
  connection.isFull = !connection.socket.write(frame)
  return id
}

/** Where the correlation id of a bare frame or of an envelope's inner frame lies. */
function correlationIdAt(frame: Uint8Array): number {
  const frameStart = frame[0] === MAGIC_ENVELOPE ? decodeEnvelope(frame).frameStart : 0
  return frameStart + 1
}

/** Nobody waits for the answer any more; when it comes it is dropped. */
export function giveUp(connection: Connection, id: number): void {
  const onItsWay = connection.onTheirWay.get(id)
  if (onItsWay) onItsWay.awaited = undefined
}

/** Ends a connection whose peer lets requests wait and says nothing, or never answers some of them. */
export function checkHealth(connection: Connection): void {
  const [oldest] = connection.onTheirWay.values()
  if (connection.state !== 'open' || !oldest) return
  const nowMs = connection.world.clock.monotonicMs()
  const { silenceMs } = connection.settings
  if (nowMs - Math.max(connection.heardMs, oldest.sentMs) >= silenceMs) {
    lose(connection, `no answer to anything for ${silenceMs} ms`)
  } else if (nowMs - oldest.sentMs >= LATE_ANSWER_MS_MAX) {
    lose(connection, `no answer to a request for ${LATE_ANSWER_MS_MAX} ms`)
  }
}

/** Ends a connection in good order: what was handed to the socket is still sent. Resolves when it is closed. */
export function hangUp(connection: Connection): Promise<void> {
  const { socket } = connection
  if (socket.closed) return Promise.resolve()
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
    // A peer that does not read would keep what is unsent, and the socket, for ever.
    if (connection.state === 'open' && socket.writableLength === 0) socket.destroySoon()
    else socket.destroy()
    finish(connection, errorOfClient('client_closed', NOBODY, {}))
  })
}

/** The connection is of no use any more. */
function lose(connection: Connection, reason: string, cause?: unknown): void {
  if (connection.state === 'closed') return
  const code = connection.state === 'open' ? 'connection_lost' : 'connection_failed'
  end(connection, errorOfClient(code, NOBODY, { address: addressOf(connection), reason }, cause))
}

function end(connection: Connection, error: VacancyCallError): void {
  connection.socket.destroy()
  finish(connection, error)
}

function finish(connection: Connection, error: VacancyCallError): void {
  if (connection.state === 'closed') return
  connection.state = 'closed'
  connection.stopTimer()
  connection.splitter.stopped = true
  const left = [...connection.onTheirWay.values()]
  connection.onTheirWay.clear()
  for (const { awaited } of left) awaited?.lost(error)
  connection.listener.closed(connection, error)
}

export function addressOf({ settings: { address } }: Connection): string {
  return textOfAddress(address)
}

export function textOfAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
