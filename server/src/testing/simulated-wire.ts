/** The wire protocol of simulated nodes and edge routers, as far as probes use it: searches find nothing, and no stay exists. */
import { createServer, type Server, type Socket } from 'node:net'
import { createCodecList } from '@vacancy/shared'
import {
  createFrameSplitter,
  type DecodedRequest,
  decodeEnvelope,
  decodeRequest,
  ENVELOPE_HEADER_BYTES,
  encodeError,
  encodeReply,
  FRAME_HEADER_BYTES,
  LOGIN_OK,
  MAGIC_ENVELOPE,
  type Result,
  readU32,
  splitFrames,
} from '@vacancy/shared/wire'

const FRAME_BYTES_MAX = 65_536

export type SimWire = {
  readonly codecs: readonly string[]
  /** Milliseconds until a request is answered; undefined: it never is. */
  readonly delayMs: () => number | undefined
  /** Code and text of a refusal; '' when the request is accepted. Nodes ignore the segment. */
  readonly refusal: (isWrite: boolean, segment: string) => string
}

export function createSimWire(wire: SimWire): Server {
  return createServer((socket) => {
    socket.setNoDelay(true)
    // A client that goes away in the middle is no fault of the simulation.
    socket.on('error', () => socket.destroy())
    attend(wire, socket)
  })
}

function attend(wire: SimWire, socket: Socket): void {
  let segment = ''
  let rest: Uint8Array = new Uint8Array(0)
  const splitter = createFrameSplitter({ payloadBytesMax: FRAME_BYTES_MAX, skipBytesMax: FRAME_BYTES_MAX })
  const sink = {
    frame(bytes: Uint8Array, start: number, end: number, id: number) {
      answer(wire, socket, decodeRequest(bytes.slice(start, end)), id, segment)
    },
    refuse() {},
    fatal: () => void socket.destroy(),
  }
  // The splitter does not tell the segment of an envelope: whole frames are passed to it one by one.
  socket.on('data', (chunk: Uint8Array) => {
    rest = Buffer.concat([rest, chunk])
    for (let size = sizeOf(rest); size > 0 && size <= rest.length; size = sizeOf(rest)) {
      const frame = rest.subarray(0, size)
      rest = rest.subarray(size)
      segment = frame[0] === MAGIC_ENVELOPE ? decodeEnvelope(frame).segment : ''
      splitFrames(splitter, frame, sink)
    }
  })
}

/** Bytes of the first frame or envelope; 0 while its header is not whole. */
function sizeOf(bytes: Uint8Array): number {
  const isEnvelope = bytes[0] === MAGIC_ENVELOPE
  const header = isEnvelope ? ENVELOPE_HEADER_BYTES : FRAME_HEADER_BYTES
  return bytes.length < header ? 0 : header + readU32(bytes, isEnvelope ? 1 : 5)
}

function answer(wire: SimWire, socket: Socket, { command }: DecodedRequest, id: number, segment: string): void {
  const ms = wire.delayMs()
  if (ms === undefined) return
  const send = (bytes: Uint8Array) => {
    if (ms === 0) socket.write(bytes)
    else setTimeout(() => socket.writable && socket.write(bytes), ms)
  }
  if (command === 'LOGIN') return send(LOGIN_OK)
  const reply = (result: object) => send(encodeReply(command, id, result as Result, CONTEXT))
  if (command === 'GETCODECS') return reply({ rateFeatures: wire.codecs })
  const isWrite = command === 'HOLDSTAY' || command === 'RELEASESTAY'
  const refusal = wire.refusal(isWrite, segment)
  if (refusal !== '') return send(encodeError(id, refusal))
  if (isWrite) return send(encodeError(id, 'NOT_FOUND: property of line 0 not found'))
  if (command === 'SEARCHAVAIL') return reply({ properties: [] })
  return send(encodeError(id, 'VALIDATION_ERROR: the simulation answers probes only'))
}

/** Of dates and features in replies, which have none: a simulated shard may have no codec list. */
const CONTEXT = { baseYear: 2026, codecs: createCodecList(['unused']) }
