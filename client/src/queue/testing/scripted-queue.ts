/** A queue on real sockets whose responses and messages the test decides. Without a script it behaves well. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { listen } from '@vacancy/testkit/listen'
import { type WebSocket, WebSocketServer } from 'ws'

export type SubmittedBody = {
  readonly topic: string
  readonly jobs: readonly { readonly id: string; readonly data: string | null; readonly [more: string]: unknown }[]
}
type Scripted<Body> = {
  readonly status: number
  readonly body?: Body
  readonly headers?: { readonly [name: string]: string }
}
type ScriptedResponse =
  | Scripted<object | string>
  /** The connection is cut. */
  | 'cut'
  /** Nothing is sent. */
  | 'silence'

export type Script = {
  /** The response to the nth request, from 0; undefined stores all jobs. */
  readonly respond?: (body: SubmittedBody, n: number) => ScriptedResponse | undefined
  /** The response to the nth upgrade; undefined accepts it. */
  readonly upgrade?: (n: number) => Scripted<object> | undefined
  /** What the nth consumer gets instead of `accepted` and a job. */
  readonly consume?: (peer: ScriptedPeer, n: number) => void
  readonly port?: number
}

type ScriptedPeer = {
  readonly socket: WebSocket
  /** Messages of the consumer, as far as they are received. */
  readonly received: { readonly [name: string]: unknown }[]
  readonly query: URLSearchParams
  readonly authorization: string | undefined
  readonly send: (action: string, more?: object) => void
}

export type ScriptedQueue = {
  readonly url: string
  readonly port: number
  /** Bodies of submissions. */
  readonly bodies: SubmittedBody[]
  readonly peers: ScriptedPeer[]
  readonly close: () => Promise<void>
}

export async function startScriptedQueue(script: Script = {}): Promise<ScriptedQueue> {
  const bodies: SubmittedBody[] = []
  const peers: ScriptedPeer[] = []
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })
  const stored: SubmittedBody['jobs'][number][] = []
  let upgrades = 0
  const server = createServer((request, response) => {
    void readAll(request).then((text) => {
      const body = JSON.parse(text) as SubmittedBody
      bodies.push(body)
      const scripted = script.respond?.(body, bodies.length - 1)
      if (scripted === undefined) stored.push(...body.jobs)
      respond(response, scripted ?? { status: 200, body: success(body) })
    })
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const refused = script.upgrade?.(upgrades++)
    if (refused !== undefined) return refuse(socket, refused)
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const peer = peerOf(webSocket, request)
      peers.push(peer)
      if (script.consume !== undefined) return script.consume(peer, peers.length - 1)
      peer.send('accepted')
      for (const [n, { id, data }] of stored.entries()) peer.send('job', jobFields(id, n + 1, data))
    })
  })
  const { port, close } = await listen(server, script.port)
  return { url: `http://127.0.0.1:${port}`, port, bodies, peers, close }
}

/** Fields of a delivery. */
export function jobFields(jobId: string, seqId: number, data: string | null, more: object = {}): object {
  const value: unknown = data === null ? null : JSON.parse(Buffer.from(data, 'base64').toString('utf8'))
  return { jobId, seqId, data: value, attempt: 1, deliveries: 1, lease: `l.${seqId}`, ackDeadlineMs: 30_000, ...more }
}

function success({ topic, jobs }: SubmittedBody): object {
  return { status: 'success', topic, accepted: jobs.length, duplicates: 0 }
}

function peerOf(socket: WebSocket, request: IncomingMessage): ScriptedPeer {
  const received: { readonly [name: string]: unknown }[] = []
  const query = new URL(request.url ?? '', 'http://local').searchParams
  const topic = query.get('topic')
  const send = (action: string, more: object = {}) =>
    socket.send(JSON.stringify({ action, topic, jobId: '', seqId: 0, data: null, ...more }))
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString('utf8')) as { readonly [name: string]: unknown }
    received.push(message)
    const jobs = (message['jobs'] ?? []) as { readonly jobId: string; readonly seqId?: number }[]
    if (message['action'] === 'ack')
      for (const { jobId, seqId = 0 } of jobs) send('confirm', { jobId, seqId, data: { of: 'ack', result: 'done' } })
  })
  return { socket, received, query, authorization: request.headers.authorization, send }
}

function respond(response: ServerResponse, scripted: ScriptedResponse): void {
  if (scripted === 'silence') return
  if (scripted === 'cut') return void response.destroy()
  const { status, body = '', headers = {} } = scripted
  response.writeHead(status, headers)
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

function refuse(socket: Duplex, { status, body = {}, headers = {} }: Scripted<object>): void {
  // A consumer may cut the connection as soon as it has the refusal.
  socket.on('error', () => undefined)
  const text = JSON.stringify(body)
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(
    `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n${more.join('')}\r\n${text}`,
  )
}

async function readAll(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
