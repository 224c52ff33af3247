/** A request of a client and its response, whatever protocol it came by, and the limits of both (docs/proxy.md#http). */

import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { RefusedHead } from '@vacancy/shared/node'

export const API_LIMITS = {
  bodyBytesMax: 1024 * 1024,
  /** Bodies that are being received, in all. */
  bodiesBytesMax: 128 * 1024 * 1024,
  requestMs: 10_000,
  headersMax: 100,
  /** At once on one connection; of HTTP/2 also the number of streams. */
  requestsPerConnection: 100,
  /** Response bytes and frames that a session of HTTP/2 may hold, in megabytes. */
  sessionMegabytes: 64,
} as const

export type Proto = 'http1' | 'http2'

/** A body, or why there is none. `gone`: the client has disconnected. */
export type Body = Buffer | 'too_large' | 'slow' | 'busy' | 'gone'

/** One TCP connection of a client. */
export type Connection = {
  readonly socket: Socket
  readonly remote: string
  proto: Proto | 'unknown'
  session: ServerHttp2Session | undefined
  inFlight: number
  /** Called once when the connection has ended. */
  onEnd: (() => void) | undefined
}

/** Header fields of a response, in the forms that the protocols need. Most responses share one. */
export type ResponseHead = {
  /** As lines of HTTP/1.1. */
  readonly text: string
  readonly fields: readonly (readonly [name: string, value: string])[]
}

export function responseHead(headers: { readonly [name: string]: string }): ResponseHead {
  const fields = Object.entries(headers)
  return { text: fields.map(([name, value]) => `${name}: ${value}\r\n`).join(''), fields }
}

/** A response. */
export type Answer = {
  readonly status: number
  readonly head: ResponseHead
  /** `X-Request-Id`. */
  readonly id: string
  /** A buffer is valid during the call only, unless it is kept. */
  readonly body: Buffer | string
  /** Bytes in front of `body` in its memory that may be overwritten. */
  readonly room: number
}

/** A request and its response. */
export type Exchange = {
  readonly connection: Connection
  readonly proto: Proto
  readonly method: string
  /** Without the query. */
  readonly path: string
  /** Of the address, after the question mark. */
  readonly query: string
  /** Why the head alone is refused. */
  readonly refused: RefusedHead | undefined
  readonly header: (name: string) => string | undefined
  /** Reads the body; `done` is called once. */
  readonly readBody: (done: (body: Body) => void) => void
  /**
   * Sends the response; does nothing if the client is gone. Called once.
   *
   * @returns whether the memory of the body is kept, because the client does not read it at once
   */
  readonly respond: (answer: Answer) => boolean
}
