/** A stand-in for what is behind a proxy, for tests: it reads frames as a node or a router does, and answers as the test decides. */

import { createServer, type Socket } from 'node:net'
import { createCodecList } from '@vacancy/shared'
import {
  CODECS_SEGMENT,
  decodeRequest,
  encodeError,
  encodeReply,
  FRAME_HEADER_BYTES,
  type RequestFields,
} from '@vacancy/shared/wire'
import { listen } from '@vacancy/testkit/listen'
import { commandOf, createFrameReader, flagOf, readFrames, segmentOf } from '../../forward/frames.ts'
import { STATUS_SEGMENT, statusFrame } from '../../forward/status.ts'

const STAND_IN_CODECS = ['breakfast', 'refundable', 'sea_view']

export type Received = {
  readonly command: string
  readonly fields: RequestFields
  /** Of the envelope; undefined for a bare frame. */
  readonly segment: string | undefined
  readonly flag: boolean
  readonly id: number
  readonly socket: Socket
}

export type StandIn = {
  readonly port: number
  /** Requests in the order of arrival, without the codec lists. */
  readonly received: Received[]
  /** Answers requests; undefined = no answer. A frame's correlation id is that of the request. */
  answer: (request: Received) => Uint8Array | undefined
  /** Undefined: GETCODECS gets no answer. */
  codecs: readonly string[] | undefined
  /** Tokens of LOGIN, in the order of arrival. */
  readonly logins: string[]
  readonly sockets: Set<Socket>
  readonly close: () => Promise<void>
}

/** @param kind `router` answers `__status__`; `existing` answers 404 there, as older routers do */
export async function openStandIn(kind: 'node' | 'router' | 'existing', port = 0): Promise<StandIn> {
  const server = await listen(
    createServer((socket) => accept(standIn, kind, socket)),
    port,
  )
  const standIn: StandIn = {
    ...server,
    received: [],
    answer: ({ id }) => encodeReply('SETPROP', id, {}, CONTEXT),
    codecs: STAND_IN_CODECS,
    logins: [],
    sockets: new Set(),
  }
  return standIn
}

export const CONTEXT = { baseYear: new Date().getUTCFullYear(), codecs: createCodecList(STAND_IN_CODECS) }

function accept(standIn: StandIn, kind: 'node' | 'router' | 'existing', socket: Socket): void {
  standIn.sockets.add(socket)
  socket.on('close', () => standIn.sockets.delete(socket))
  socket.on('error', () => {})
  const reader = createFrameReader({
    frameBytesMax: 1 << 20,
    skipBytesMax: 1 << 20,
    requests: true,
    rubbishBytesMax: 0,
  })
  const sink = {
    frame(bytes: Buffer, start: number, inner: number, end: number) {
      const id = bytes.readUInt32LE(inner + 1)
      const segment = inner > start ? segmentOf(bytes, start) : undefined
      const payload = bytes.subarray(inner + FRAME_HEADER_BYTES, end)
      if (payload.length === 0) return
      const command = commandOf(bytes, inner, end)
      if (segment === STATUS_SEGMENT) return void socket.write(statusOf(kind, id))
      if (command === 'LOGIN') {
        const token = String(decodeRequest(payload).fields['token'])
        standIn.logins.push(token)
        return void (token === 'wrong' ? socket.end('LOGIN FAILED') : socket.write('LOGIN OK'))
      }
      if (command === 'GETCODECS' && (segment === undefined || segment === CODECS_SEGMENT)) {
        const { codecs } = standIn
        if (codecs) socket.write(encodeReply('GETCODECS', id, { rateFeatures: [...codecs] }, CONTEXT))
        return
      }
      const { fields } = decodeRequest(payload)
      const request = { command, fields, segment, flag: segment !== undefined && flagOf(bytes, inner), id, socket }
      standIn.received.push(request)
      const reply = standIn.answer(request)
      if (!reply) return
      const frame = Buffer.from(reply)
      frame.writeUInt32LE(id, 1)
      socket.write(frame)
    },
    refuse() {},
    skipped() {},
    fatal: () => socket.destroy(),
  }
  socket.on('data', (chunk: Buffer) => readFrames(reader, chunk, sink))
}

function statusOf(kind: 'node' | 'router' | 'existing', id: number): Uint8Array {
  if (kind === 'existing') return encodeError(id, '404')
  return statusFrame(id, { component: 'router', id: 'edge', zone: '', mode: 'edge', version: '0' })
}
