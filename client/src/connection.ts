/**
 * One socket, from connecting to its end: login, the codec list, then pipelined requests whose replies are matched by
 * correlation id (docs/design/protocol.md#connection). A connection retries nothing. It ends once, and reports its
 * requests without a reply.
 *
 *   connecting → login (with a token) → codecs → open → closed
 *
 * A misbehaving peer can at worst end the connection.
 */

import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { type CodecList, createCodecList, followAttempts } from '@vacancy/shared'
import {
  CODECS_SEGMENT,
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

/** Largest accepted reply: 32,767 properties with a stay of 366 nights are 133 MB. */
const REPLY_BYTES_MAX = 256 * 1024 * 1024
const CORRELATION_IDS = 2 ** 32
/** Correlation id of the request for the codec list. */
const CODECS_ID = 1
/** What a socket takes from the system at once. */
const READ_BYTES = 65_536
/** Bytes of a turn that are written before its end. */
const WRITE_BYTES = 65_536
/** If a cancelled request has no reply after this time, the peer loses requests. */
const LATE_ANSWER_MS_MAX = 30_000
const TCP_KEEPALIVE_MS = 30_000
const ATTEMPT_MS_MIN = 1_000
/** Routers and bridges close connections that are silent for 90 s. */
const KEEPALIVE_MS = 15_000

export type Address = { readonly host: string; readonly port: number }

export type ConnectionSettings = {
  readonly address: Address
  readonly tls: ConnectionOptions | undefined
  readonly token: string | undefined
  /** The peer is a router: frames are sent in envelopes, and keepalives are needed. */
  readonly isRouter: boolean
  /** From the first packet to the codec list. */
  readonly handshakeMs: number
  /** With requests waiting and no byte from the peer for this long, the peer is considered dead. */
  readonly silenceMs: number
}

/** What the owner of the connection wants a reply for. */
type Owned = object

/** A request in flight: one attempt of a call. */
export type InFlight = {
  readonly connection: Connection
  readonly id: number
  readonly sentMs: number
  /** Undefined: the call was cancelled, and the reply is dropped. */
  call: Owned | undefined
}

export type Connection = {
  readonly world: World
  readonly settings: ConnectionSettings
  readonly listener: ConnectionListener
  readonly socket: Socket
  readonly splitter: FrameSplitter
  readonly sink: FrameSink
  state: 'connecting' | 'login' | 'codecs' | 'open' | 'closed'
  /** Frames that `flush` writes. */
  unwritten: Uint8Array[]
  unwrittenBytes: number
  /** The socket's buffer is full: nothing is written until it drains. */
  isFull: boolean
  codecs: CodecList | undefined
  loginAnswer: Uint8Array
  nextId: number
  /** By correlation id, in sending order. */
  readonly onTheirWay: Map<number, InFlight>
  openedMs: number
  heardMs: number
  stopTimer: () => void
  /** A reason why it is not open, with the addresses that were tried. */
  reasonOf: (reason: string) => string
}

export type ConnectionListener = {
  opened(connection: Connection): void
  /** The socket accepts writes again, or a cancelled request has left it. */
  drained(connection: Connection): void
  /** The reply to a call. Its bytes are valid during this call only. */
  answered(call: Owned, payload: Uint8Array, sent: InFlight): void
  /** There will be no reply to a call. */
  lost(call: Owned, error: VacancyCallError): void
  /** Called once, as the last event. The requests in flight have been reported before. */
  closed(connection: Connection, error: VacancyCallError): void
}

export function openConnection(world: World, settings: ConnectionSettings, listener: ConnectionListener): Connection {
  const { host, port } = settings.address
  const transport = {
    ...{ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEPALIVE_MS },
    // Of a name with several addresses; three of them get their turn.
    autoSelectFamilyAttemptTimeout: Math.max(ATTEMPT_MS_MIN, Math.floor(settings.handshakeMs / 3)),
  }
  const socket = settings.tls
    ? connectTls({ ...transport, ...(isIP(host) ? {} : { servername: host }), ...settings.tls })
    : connectTcp({ ...transport, onread: readInto(() => connection) })
  const connection: Connection = {
    world,
    settings,
    listener,
    socket,
    splitter: createFrameSplitter({ payloadBytesMax: REPLY_BYTES_MAX, skipBytesMax: REPLY_BYTES_MAX }),
    sink: {
      frame: (bytes, start, end, id, inEnvelope) => {
        if (inEnvelope) lose(connection, 'the reply is in an envelope')
        else receive(connection, bytes.subarray(start, end), id)
      },
      refuse: () => lose(connection, 'the reply is in a malformed envelope'),
      fatal: (reason) => lose(connection, reason),
    },
    state: 'connecting',
    unwritten: [],
    unwrittenBytes: 0,
    isFull: false,
    codecs: undefined,
    loginAnswer: new Uint8Array(0),
    nextId: CODECS_ID + 1,
    onTheirWay: new Map(),
    openedMs: 0,
    heardMs: world.clock.monotonicMs(),
    stopTimer: () => {},
    reasonOf: followAttempts(socket),
  }
  const { reasonOf } = connection
  connection.stopTimer = world.after(settings.handshakeMs, () => {
    lose(connection, reasonOf(`not ready within ${settings.handshakeMs} ms`))
  })
  socket.once(settings.tls ? 'secureConnect' : 'connect', () => greet(connection))
  if (settings.tls) socket.on('data', (chunk: Uint8Array) => hear(connection, chunk))
  socket.on('drain', () => {
    connection.isFull = false
    if (connection.state === 'open') listener.drained(connection)
  })
  socket.on('error', (error) => lose(connection, reasonOf(error.message), error))
  socket.once('close', () => lose(connection, 'the peer closed the connection'))
  return connection
}

/** All chunks of a socket arrive in one buffer: a new one for each costs more than a small reply. */
function readInto(connection: () => Connection): OnReadOpts {
  return {
    buffer: new Uint8Array(READ_BYTES),
    callback: (bytes, buffer) => {
      hear(connection(), buffer.subarray(0, bytes))
      return true
    },
  }
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

/** The reply to LOGIN is bare text, and may arrive in pieces. */
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
      return end(connection, errorOfClient('login_failed', UNSENT, { address: addressOf(connection) }))
    case 'malformed':
      return lose(connection, 'invalid reply to LOGIN')
    case 'ok':
      askCodecs(connection)
      if (bytes < received.length) splitFrames(connection.splitter, received.subarray(bytes), connection.sink)
  }
}

const UNSENT = { command: undefined, inDoubt: false }

/** Masks of rate features are decoded with the list of their connection. */
function askCodecs(connection: Connection): void {
  connection.state = 'codecs'
  const envelope = connection.settings.isRouter ? { segment: CODECS_SEGMENT, write: false } : undefined
  connection.socket.write(encodeRequest({ command: 'GETCODECS', correlationId: CODECS_ID, fields: {}, envelope }))
}

function takeCodecs(connection: Connection, payload: Uint8Array): void {
  try {
    const reply = decodeReply('GETCODECS', payload, { codecs: undefined })
    if (!reply.ok) {
      const call = { command: 'GETCODECS', inDoubt: false, isWrite: false } as const
      return end(connection, errorOfAnswer(call, reply.code, reply.message))
    }
    connection.codecs = createCodecList(reply.result.rateFeatures)
  } catch (error) {
    return lose(connection, 'invalid codec list', error)
  }
  connection.stopTimer()
  connection.state = 'open'
  connection.openedMs = connection.world.clock.monotonicMs()
  if (connection.settings.isRouter) keepAlive(connection)
  connection.listener.opened(connection)
}

function keepAlive(connection: Connection): void {
  connection.stopTimer = connection.world.after(KEEPALIVE_MS, () => {
    connection.socket.write(encodeKeepalive())
    keepAlive(connection)
  })
}

function receive(connection: Connection, payload: Uint8Array, id: number): void {
  if (connection.state === 'closed') return
  if (connection.state === 'codecs' && id === CODECS_ID) return takeCodecs(connection, payload)
  const sent = connection.onTheirWay.get(id)
  if (!sent) return lose(connection, `received a reply to request ${id}, which was never sent`)
  connection.onTheirWay.delete(id)
  if (sent.call) connection.listener.answered(sent.call, payload, sent)
  else connection.listener.drained(connection)
}

/**
 * Takes a frame, which `flush` writes to the socket, and puts its correlation id into it. The caller gives up ownership
 * of the frame.
 */
export function send(connection: Connection, frame: Uint8Array, call: Owned, nowMs: number): InFlight {
  while (connection.onTheirWay.has(connection.nextId)) connection.nextId = (connection.nextId + 1) % CORRELATION_IDS
  const id = connection.nextId
  connection.nextId = (id + 1) % CORRELATION_IDS
  const idAt = correlationIdAt(frame)
  for (let i = 0; i < 4; i++) frame[idAt + i] = id >>> (8 * i)
  const sent: InFlight = { connection, id, sentMs: nowMs, call }
  connection.onTheirWay.set(id, sent)
  connection.unwritten.push(frame)
  connection.unwrittenBytes += frame.length
  if (connection.unwrittenBytes >= WRITE_BYTES) flush(connection)
  return sent
}

/** Writes the frames that were handed over: one call and one buffer for all of a turn. */
export function flush(connection: Connection): void {
  const { unwritten, unwrittenBytes, socket } = connection
  const [first] = unwritten
  if (!first || connection.state === 'closed') return
  connection.isFull = !socket.write(unwritten.length === 1 ? first : Buffer.concat(unwritten, unwrittenBytes))
  connection.unwritten = []
  connection.unwrittenBytes = 0
}

/** Offset of the correlation id of a bare frame, or of an envelope's inner frame. */
function correlationIdAt(frame: Uint8Array): number {
  const frameStart = frame[0] === MAGIC_ENVELOPE ? decodeEnvelope(frame).frameStart : 0
  return frameStart + 1
}

/** Ends a connection whose peer is silent while requests wait, or never replies to some of them. */
export function checkHealth(connection: Connection): void {
  const [oldest] = connection.onTheirWay.values()
  if (connection.state !== 'open' || !oldest) return
  const nowMs = connection.world.clock.monotonicMs()
  const { silenceMs } = connection.settings
  if (nowMs - Math.max(connection.heardMs, oldest.sentMs) >= silenceMs) {
    lose(connection, `no reply to any request for ${silenceMs} ms`)
  } else if (nowMs - oldest.sentMs >= LATE_ANSWER_MS_MAX) {
    lose(connection, `no reply to a request for ${LATE_ANSWER_MS_MAX} ms`)
  }
}

/** Closes a connection gracefully: bytes handed to the socket are still sent. Resolves when it is closed. */
export function hangUp(connection: Connection): Promise<void> {
  const { socket } = connection
  if (socket.closed) return Promise.resolve()
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
    // A peer that does not read would otherwise keep the unsent bytes and the socket forever.
    if (connection.state === 'open' && socket.writableLength === 0) socket.destroySoon()
    else socket.destroy()
    finish(connection, errorOfClient('client_closed', UNSENT, {}))
  })
}

/** The connection is unusable. */
function lose(connection: Connection, reason: string, cause?: unknown): void {
  if (connection.state === 'closed') return
  const code = connection.state === 'open' ? 'connection_lost' : 'connection_failed'
  end(connection, errorOfClient(code, UNSENT, { address: addressOf(connection), reason }, cause))
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
  for (const { call } of left) if (call) connection.listener.lost(call, error)
  connection.listener.closed(connection, error)
}

function addressOf({ settings: { address } }: Connection): string {
  return textOfAddress(address)
}

export function textOfAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
