/**
 * A TCP server on real sockets that replies what the test decides, when it decides. It implements only the handshake.
 */

import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { createCodecList } from '@vacancy/shared'
import {
  type CommandName,
  createFrameSplitter,
  type DecodedRequest,
  decodeRequest,
  encodeError,
  encodeReply,
  type FrameSink,
  type Result,
  splitFrames,
} from '@vacancy/shared/wire'
import { listen } from '@vacancy/testkit/listen'

export const CODECS = createCodecList(['breakfast', 'late_checkout', 'sea_view'])
const BASE_YEAR = 2026

export type ReceivedRequest = {
  readonly command: CommandName
  readonly fields: { readonly [name: string]: unknown }
  readonly id: number
  /** The payload as received. */
  readonly payload: Buffer
  readonly peer: Peer
  answer(result: object): void
  refuse(text: string): void
}

type Peer = {
  readonly socket: Socket
  /** All bytes received. */
  readonly received: Buffer
  readonly chunks: Uint8Array[]
}

export type ScriptedNode = {
  readonly port: number
  readonly peers: Peer[]
  /** The next request that was not taken yet, without the GETCODECS of handshakes. */
  next(): Promise<ReceivedRequest>
  /** Received requests that were not taken. */
  untaken(): readonly ReceivedRequest[]
  /** The next connection. */
  nextPeer(): Promise<Peer>
  close(): Promise<void>
}

export type Script = {
  readonly port?: number
  readonly tls?: TlsOptions
  /** The reply bytes to the first frame of a connection: LOGIN. */
  readonly login?: readonly Uint8Array[]
  /** The reply to the GETCODECS of a handshake; undefined sends none. */
  readonly codecs?: (received: ReceivedRequest, peers: number) => void
}

export async function startScriptedNode(script: Script = {}): Promise<ScriptedNode> {
  const received = createMailbox<ReceivedRequest>()
  const arrivals = createMailbox<Peer>()
  const peers: Peer[] = []
  const listener = (socket: Socket) => {
    socket.setNoDelay(true)
    const chunks: Uint8Array[] = []
    const peer: Peer = {
      socket,
      chunks,
      get received() {
        return Buffer.concat(chunks)
      },
    }
    peers.push(peer)
    attend(script, peer, peers.length, received.put)
    arrivals.put(peer)
  }
  const server = script.tls ? createTlsServer(script.tls, listener) : createServer(listener)
  const { port, close } = await listen(server, script.port)
  return {
    port,
    close,
    peers,
    next: received.take,
    untaken: () => received.items,
    nextPeer: arrivals.take,
  }
}

function attend(script: Script, peer: Peer, peers: number, put: (received: ReceivedRequest) => void): void {
  const splitter = createFrameSplitter({ payloadBytesMax: 65_536, skipBytesMax: 65_536 })
  let hasCodecs = false
  let isLoginDue = script.login !== undefined
  const sink: FrameSink = {
    frame(bytes, start, end, id) {
      const payload = Buffer.from(bytes.subarray(start, end))
      if (isLoginDue) {
        isLoginDue = false
        for (const piece of script.login ?? []) peer.socket.write(piece)
        return
      }
      const received = toReceived(peer, id, payload)
      if (received.command !== 'GETCODECS' || hasCodecs) return put(received)
      hasCodecs = true
      if (script.codecs) script.codecs(received, peers)
      else received.answer({ rateFeatures: CODECS.names })
    },
    refuse() {},
    fatal() {},
  }
  peer.socket.on('error', () => {})
  peer.socket.on('data', (chunk: Uint8Array) => {
    peer.chunks.push(chunk)
    splitFrames(splitter, chunk, sink)
  })
}

function toReceived(peer: Peer, id: number, payload: Buffer): ReceivedRequest {
  const { command, fields }: DecodedRequest = decodeRequest(payload)
  return {
    command,
    fields,
    id,
    payload,
    peer,
    answer: (result) => peer.socket.write(replyFrame(command, id, result)),
    refuse: (text) => peer.socket.write(encodeError(id, text)),
  }
}

export function replyFrame(command: CommandName, id: number, result: object): Uint8Array {
  return encodeReply(command, id, result as Result, { baseYear: BASE_YEAR, codecs: CODECS })
}

function createMailbox<Item>() {
  const items: Item[] = []
  const waiting: ((item: Item) => void)[] = []
  return {
    items,
    put: (item: Item) => {
      const taker = waiting.shift()
      if (taker) taker(item)
      else items.push(item)
    },
    take: (): Promise<Item> => {
      const item = items.shift()
      return item === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(item)
    },
  }
}
