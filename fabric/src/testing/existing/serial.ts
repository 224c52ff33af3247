/**
 * How existing routers and bridges use connections: inbound, one frame at a time per connection, bytes up to the next
 * envelope are skipped; outbound, replies are matched by correlation id, counted from 1 per connection.
 */

import { connect, createServer, type Socket } from 'node:net'
import { listen } from '@vacancy/testkit/listen'

export type SerialRequest = {
  readonly segment: string
  /** The byte 01; anything else reads. */
  readonly isWrite: boolean
  readonly id: number
  /** The whole envelope; the bare frame begins at `inner`. */
  readonly bytes: Buffer
  readonly inner: number
}

/** Undefined: no reply. */
export type SerialReply = { readonly frame: Buffer; readonly closes?: boolean } | undefined

const FRAME_BYTES_MAX = 16_384

export async function serveSerial(
  host: string,
  port: number,
  handle: (request: SerialRequest) => Promise<SerialReply>,
) {
  const server = createServer((socket) => {
    socket.setNoDelay(true)
    socket.on('error', () => {})
    serveOne(socket, handle)
  })
  return await listen(server, port, host)
}

function serveOne(socket: Socket, handle: (request: SerialRequest) => Promise<SerialReply>): void {
  let bytes = Buffer.alloc(0)
  let isBusy = false
  const work = async (): Promise<void> => {
    if (isBusy) return
    isBusy = true
    for (let request = next(); request !== undefined && !socket.destroyed; request = next()) {
      const reply = await handle(request)
      if (reply === undefined) continue
      socket.write(reply.frame)
      if (reply.closes) socket.destroySoon()
    }
    isBusy = false
  }
  const next = (): SerialRequest | undefined => {
    const start = bytes.indexOf(0xfe)
    if (start < 0) {
      bytes = Buffer.alloc(0)
      return undefined
    }
    bytes = bytes.subarray(start)
    if (bytes.length < 5) return undefined
    const end = 5 + bytes.readUInt32LE(1)
    if (end > FRAME_BYTES_MAX) {
      socket.destroy()
      return undefined
    }
    if (bytes.length < end) return undefined
    const inner = 6 + (bytes[5] as number) + 1
    const frame = Buffer.from(bytes.subarray(0, end))
    bytes = bytes.subarray(end)
    if (inner + 9 > end || frame[inner] !== 0xff) return next()
    return {
      segment: frame.toString('utf8', 6, inner - 1),
      isWrite: frame[inner - 1] === 1,
      id: frame.readUInt32LE(inner + 1),
      bytes: frame,
      inner,
    }
  }
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    void work()
  })
}

/** The error frame of existing routers and bridges: its field claims 4 bytes, then come a u32 with 3 and the digits. */
export function malformedError(id: number, code: string): Buffer {
  const frame = Buffer.from(
    'ff00000000160000000545 52524f52 0100 0100 01 04000000 03000000 303030'.replaceAll(' ', ''),
    'hex',
  )
  frame.writeUInt32LE(id, 1)
  frame.write(code, frame.length - 3, 'latin1')
  return frame
}

export function bareFrame(id: number, payload: Buffer): Buffer {
  const header = Buffer.alloc(9)
  header[0] = 0xff
  header.writeUInt32LE(id, 1)
  header.writeUInt32LE(payload.length, 5)
  return Buffer.concat([header, payload])
}

/** A SUCCESS with these fields, ids counted from 1. */
export function successFrame(id: number, fields: readonly (readonly [type: number, data: Buffer])[]): Buffer {
  const parts = [Buffer.from('\x07SUCCESS', 'latin1'), u16(fields.length)]
  fields.forEach(([type, data], i) => {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(data.length)
    parts.push(u16(i + 1), Buffer.from([type]), length, data)
  })
  return bareFrame(id, Buffer.concat(parts))
}

function u16(value: number): Buffer {
  return Buffer.from([value & 0xff, value >> 8])
}

// Outbound.

export type Upstream = {
  readonly socket: Socket
  readonly pending: Map<number, (outcome: Buffer | 'closed') => void>
  state: 'connecting' | 'open' | 'closed'
  nextId: number
}

export function openUpstream(host: string, port: number): Upstream {
  const upstream: Upstream = { socket: connect({ host, port }), pending: new Map(), state: 'connecting', nextId: 1 }
  const { socket, pending } = upstream
  socket.setNoDelay(true)
  let bytes = Buffer.alloc(0)
  socket.once('connect', () => {
    upstream.state = 'open'
  })
  socket.on('error', () => {})
  socket.once('close', () => {
    upstream.state = 'closed'
    const left = [...pending.values()]
    pending.clear()
    for (const settle of left) settle('closed')
  })
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    while (bytes.length >= 9) {
      const end = 9 + bytes.readUInt32LE(5)
      if (bytes.length < end) return
      const settle = pending.get(bytes.readUInt32LE(1))
      // An unknown correlation id ends the connection.
      if (bytes[0] !== 0xff || settle === undefined) return void socket.destroy()
      pending.delete(bytes.readUInt32LE(1))
      settle(Buffer.from(bytes.subarray(0, end)))
      bytes = bytes.subarray(end)
    }
  })
  return upstream
}

/** Sends [from, …) of a request under an id of the connection. @returns the reply, with that id */
export function sendUpstream(
  upstream: Upstream,
  { bytes, inner }: SerialRequest,
  from: number,
  timeoutMs: number,
): Promise<Buffer | 'closed' | 'timeout'> {
  const id = upstream.nextId
  upstream.nextId = id === 0xffff_ffff ? 1 : id + 1
  const frame = Buffer.from(bytes.subarray(from))
  frame.writeUInt32LE(id, inner - from + 1)
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      upstream.pending.delete(id)
      resolve('timeout')
    }, timeoutMs)
    upstream.pending.set(id, (outcome) => {
      clearTimeout(timer)
      resolve(outcome)
    })
    upstream.socket.write(frame)
  })
}

export function withId(frame: Buffer, id: number): Buffer {
  frame.writeUInt32LE(id, 1)
  return frame
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
