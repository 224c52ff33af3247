/**
 * Stand-ins for existing clients. Generation 1 logs in and sends bare frames; generation 2 asks a router for the codec
 * list, wraps its frames and sends keepalives. Both drop a connection that answers an unknown correlation id, and take
 * a reply whose fields do not add up for broken.
 */

import { connect, type Socket } from 'node:net'

type Field = { readonly id: number; readonly type: number; readonly data: Buffer }

export type ClientReply = { readonly status: string; readonly fields: readonly Field[]; readonly payload: Buffer }

export type ExistingClient = {
  /** The codec list of the handshake. */
  readonly codecs: readonly string[]
  /** Sends these bytes and waits for the reply to the correlation id in them. */
  readonly ask: (frame: Buffer) => Promise<ClientReply>
  /** Sends bytes that get no reply. */
  readonly send: (frame: Buffer) => void
  /** Why the client gave its connection up; '' while it did not. */
  readonly fault: () => string
  readonly close: () => void
}

type State = {
  readonly socket: Socket
  readonly pending: Map<number, { resolve: (reply: ClientReply) => void; reject: (error: Error) => void }>
  bytes: Buffer
  fault: string
}

/** Existing clients wait 2 s; on a busy machine, hops that serve one request at a time may need more for many. */
const TIMEOUT_MS = 20_000
const KEEPALIVE_MS = 5_000
const KEEPALIVE = Buffer.from('fe180000000d5f5f6b656570616c6976655f5f00ff0000000000000000', 'hex')
const ROUTER_CODECS = Buffer.from('fe210000000a5f5f636f646563735f5f00ff010000000c00000009474554434f444543530000', 'hex')
const NODE_CODECS = Buffer.from('ff010000000c00000009474554434f444543530000', 'hex')

export async function openGeneration2(host: string, port: number): Promise<ExistingClient> {
  const state = await open(host, port)
  state.socket.on('data', (chunk: Buffer) => hear(state, chunk))
  const timer = setInterval(() => state.socket.write(KEEPALIVE), KEEPALIVE_MS)
  state.socket.once('close', () => clearInterval(timer))
  return await handshake(state, ROUTER_CODECS)
}

/** @throws Error when one read does not hold the whole answer to LOGIN, and nothing else */
export async function openGeneration1(host: string, port: number, token = 'abc123'): Promise<ExistingClient> {
  const state = await open(host, port)
  const text = Buffer.from(token)
  const head = Buffer.from('ff0000000000000000054c4f47494e010001000100000000', 'hex')
  head.writeUInt32LE(15 + text.length, 5)
  head.writeUInt32LE(text.length, 20)
  state.socket.write(Buffer.concat([head, text]))
  const [answer] = await new Promise<[Buffer]>((resolve, reject) => {
    state.socket.once('data', (chunk: Buffer) => resolve([chunk]))
    state.socket.once('close', () => reject(new Error('closed instead of an answer to LOGIN')))
  })
  if (answer.toString() !== 'LOGIN OK') throw new Error(`LOGIN: ${answer.toString()}`)
  state.socket.on('data', (chunk: Buffer) => hear(state, chunk))
  return await handshake(state, NODE_CODECS)
}

async function open(host: string, port: number): Promise<State> {
  const socket = connect({ host, port })
  const state: State = { socket, pending: new Map(), bytes: Buffer.alloc(0), fault: '' }
  socket.setNoDelay(true)
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', () => resolve())
    socket.once('error', reject)
  })
  socket.on('error', () => {})
  socket.once('close', () => giveUp(state, 'the connection was closed'))
  return state
}

async function handshake(state: State, codecsRequest: Buffer): Promise<ExistingClient> {
  const { status, fields } = await ask(state, codecsRequest)
  const [list] = fields
  if (status !== 'SUCCESS' || list?.type !== 9) throw new Error('invalid codecs format')
  return {
    codecs: list.data.toString().split(','),
    ask: (frame) => ask(state, frame),
    send: (frame) => void state.socket.write(frame),
    fault: () => state.fault,
    close: () => {
      state.fault ||= 'closed by the test'
      state.socket.destroy()
    },
  }
}

function ask(state: State, frame: Buffer): Promise<ClientReply> {
  const id = idOf(frame)
  return new Promise((resolve, reject) => {
    if (state.fault !== '') return reject(new Error(state.fault))
    const timer = setTimeout(() => giveUp(state, `no reply to request ${id} within ${TIMEOUT_MS} ms`), TIMEOUT_MS)
    state.pending.set(id, {
      resolve: (reply) => {
        clearTimeout(timer)
        resolve(reply)
      },
      reject: (error) => {
        clearTimeout(timer)
        reject(error)
      },
    })
    state.socket.write(frame)
  })
}

/** Of a bare frame, or of the one in an envelope. */
function idOf(frame: Buffer): number {
  return frame.readUInt32LE(frame[0] === 0xfe ? 6 + (frame[5] as number) + 2 : 1)
}

function giveUp(state: State, reason: string): void {
  state.fault ||= reason
  state.socket.destroy()
  for (const { reject } of state.pending.values()) reject(new Error(state.fault))
  state.pending.clear()
}

function hear(state: State, chunk: Buffer): void {
  state.bytes = Buffer.concat([state.bytes, chunk])
  while (state.bytes.length >= 9) {
    const { bytes } = state
    const end = 9 + bytes.readUInt32LE(5)
    if (bytes[0] !== 0xff) return giveUp(state, `a reply begins with byte ${bytes[0]}`)
    if (bytes.length < end) return
    state.bytes = bytes.subarray(end)
    const id = bytes.readUInt32LE(1)
    const waiting = state.pending.get(id)
    if (waiting === undefined) return giveUp(state, `a reply to request ${id}, which does not wait`)
    state.pending.delete(id)
    const reply = readReply(Buffer.from(bytes.subarray(9, end)))
    if (typeof reply === 'string') waiting.reject(new Error(reply))
    else waiting.resolve(reply)
  }
}

function readReply(payload: Buffer): ClientReply | string {
  const statusEnd = 1 + (payload[0] ?? 0)
  const status = payload.toString('latin1', 1, statusEnd)
  if (status !== 'SUCCESS' && status !== 'ERROR') return `broken reply: status ${status}`
  const count = payload.readUInt16LE(statusEnd)
  const fields: Field[] = []
  let at = statusEnd + 2
  for (let i = 0; i < count; i++) {
    if (at + 7 > payload.length) return 'broken reply: a field is missing'
    const end = at + 7 + payload.readUInt32LE(at + 3)
    if (end > payload.length) return 'broken reply: a field ends after the payload'
    fields.push({ id: payload.readUInt16LE(at), type: payload[at + 2] as number, data: payload.subarray(at + 7, end) })
    at = end
  }
  return at === payload.length ? { status, fields, payload } : 'broken reply: bytes after the last field'
}

/** The text of an ERROR; undefined for a SUCCESS. */
export function errorText({ status, fields }: ClientReply): string | undefined {
  return status === 'ERROR' ? fields[0]?.data.toString() : undefined
}
