/**
 * The floor that the job queue is measured against: Fastify and `ws` with the same bodies, frames and credit, and no
 * rule besides. It stores nothing. Answers of one turn of the event loop are written together, as those of a commit
 * group are: on two cores a write that wakes the client costs more than the rest of the request. `bare` is `node:http`
 * that reads the body and answers 200.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import { type WebSocket, WebSocketServer } from 'ws'

type SubmittedJob = { readonly id: string; readonly topic?: string; readonly data: string }
type Body = { readonly topic?: string; readonly jobs?: readonly SubmittedJob[]; readonly job?: SubmittedJob }
type WaitingJob = { readonly id: string; readonly data: Buffer }
type Topic = {
  readonly ids: Set<string>
  readonly ready: WaitingJob[]
  next: number
  readonly consumers: Set<Consumer>
}
type Consumer = { readonly socket: WebSocket; credit: number; seq: number }

const BODY_MAX = 16_777_216
const BACKLOG = 4_096

let ending: Promise<void> | undefined

function turnEnd(): Promise<void> {
  ending ??= new Promise((resolve) =>
    setImmediate(() => {
      ending = undefined
      resolve()
    }),
  )
  return ending
}

function createFloor(): Promise<Server> {
  const topics = new Map<string, Topic>()
  const app = fastify({ bodyLimit: BODY_MAX, keepAliveTimeout: 120_000, forceCloseConnections: true })
  // Existing producers send whatever content type.
  app.addContentTypeParser('*', { parseAs: 'string' }, app.getDefaultJsonParser('ignore', 'ignore'))
  app.post('/producer/topic', async (request) => {
    const { topic } = request.body as { topic: string }
    topicOf(topics, topic)
    return { status: 'success', topic }
  })
  app.post('/producer/jobs', async (request) => {
    const { jobs, job, topic: given } = request.body as Body
    const name = given ?? job?.topic ?? ''
    const topic = topicOf(topics, name)
    let accepted = 0
    for (const { id, data } of jobs ?? (job === undefined ? [] : [job])) {
      if (topic.ids.has(id)) continue
      topic.ids.add(id)
      topic.ready.push({ id, data: Buffer.from(data, 'base64') })
      accepted++
    }
    setImmediate(deliver, topic, name)
    await turnEnd()
    return { status: 'success', topic: name, accepted, duplicates: 0 }
  })
  serveConsumers(app.server, topics)
  return app.listen({ host: '127.0.0.1', port: 0, backlog: BACKLOG }).then(() => app.server)
}

function topicOf(topics: Map<string, Topic>, name: string): Topic {
  let topic = topics.get(name)
  if (topic === undefined) {
    topic = { ids: new Set(), ready: [], next: 0, consumers: new Set() }
    topics.set(name, topic)
  }
  return topic
}

function serveConsumers(server: Server, topics: Map<string, Topic>): void {
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })
  server.on('upgrade', (request: IncomingMessage, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const query = new URL(request.url ?? '', 'http://local').searchParams
      const name = query.get('topic') ?? ''
      const topic = topicOf(topics, name)
      const consumer: Consumer = { socket: webSocket, credit: Number(query.get('prefetch')), seq: 0 }
      topic.consumers.add(consumer)
      webSocket.on('close', () => topic.consumers.delete(consumer))
      webSocket.on('message', (data: Buffer) => {
        const { JobID } = JSON.parse(data.toString('utf8')) as { JobID: string }
        topic.ids.delete(JobID)
        consumer.credit++
        setImmediate(deliver, topic, name)
      })
      webSocket.send(JSON.stringify({ action: 'accepted', topic: name, jobId: '', seqId: 0, data: {} }))
      deliver(topic, name)
    }),
  )
}

function deliver(topic: Topic, name: string): void {
  for (const consumer of topic.consumers) {
    while (consumer.credit > 0 && topic.next < topic.ready.length) {
      const { id, data } = topic.ready[topic.next] as WaitingJob
      topic.ready[topic.next++] = undefined as never
      consumer.credit--
      const head = `{"action":"job","topic":${JSON.stringify(name)},"jobId":${JSON.stringify(id)}`
      consumer.socket.send(`${head},"seqId":${++consumer.seq},"data":${data.toString('utf8')}}`)
    }
  }
  if (topic.next === topic.ready.length) {
    topic.ready.length = 0
    topic.next = 0
  }
}

function createBare(): Promise<Server> {
  const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
    request.on('data', () => undefined)
    request.on('end', () => response.end('{}'))
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', BACKLOG, () => resolve(server)))
}

const server = await (process.argv[2] === 'bare' ? createBare() : createFloor())
process.stdout.write(`serving: http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
process.once('SIGTERM', () => process.exit(0))
