/** The consumer interface: WebSockets at `/ws` (docs/design/queue-delivery.md#consumers). */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { CLOSE_CODES, type ConfirmResult, JOB_LIMITS, type MessageFault } from '@vacancy/shared/contract'
import { type WebSocket, WebSocketServer } from 'ws'
import {
  type DeliveryParts,
  deliveryParts,
  encodeFrames,
  frame,
  type ParsedMessage,
  parseMessage,
} from './consumer-messages.ts'
import {
  acknowledge,
  connect,
  type DeliveryRef,
  disconnect,
  extend,
  heard,
  leaseOf,
  pauseConsumer,
  reject,
  release,
  releaseAll,
  resume,
  setPrefetch,
  suspend,
} from './delivery.ts'
import { findById } from './id-index.ts'
import type { Consumer, Delivery } from './job.ts'
import { momentOf, outcomeOf, type Partition, runSoon } from './partition.ts'
import { authorize, callerOf, refuseUnknown } from './producer.ts'
import { QueueError, type QueueServer, servingOf, servingPartition } from './queue-server.ts'
import { isTopicName } from './submission.ts'
import { isStillGood, mayUseTopic, type QueueToken } from './tokens.ts'

export type Connection = {
  readonly socket: WebSocket
  /** The stream below it, which takes the deliveries of a burst at once. */
  readonly stream: Duplex
  readonly token: QueueToken
  readonly remote: string
  readonly openedAt: number
  /** Undefined before `init`. */
  consumer: Consumer | undefined
  partition: Partition | undefined
  confirms: boolean
  /** Monotonic times: the last frame either way, and since when too much is unsent. */
  sentAt: number
  receivedAt: number
  pingedAt: number
  blockedSince: number
  /** Faulty messages in the current minute. */
  faults: number
  faultsSince: number
  /** Deliveries of the current burst. */
  burst: DeliveryParts[]
  /** It sent `close`: closed when nothing is in flight. */
  isClosing: boolean
}

export type Consumers = {
  readonly server: QueueServer
  readonly sockets: WebSocketServer
  readonly connections: Set<Connection>
  readonly byConsumer: Map<Consumer, Connection>
  /** Those with deliveries in the current burst. */
  bursting: Connection[]
  readonly timer: NodeJS.Timeout
  isDraining: boolean
}

/** How often silence, pings and unsent bytes are looked at. */
const TICK_MS = 250
/** Tokens of open connections are checked this often. */
const TOKEN_TICKS = 4
const FAULT_WINDOW_MS = 60_000

export function createConsumers(server: QueueServer): Consumers {
  const { wsReadBytesMax } = server.settings
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false, maxPayload: wsReadBytesMax })
  let ticks = 0
  const consumers: Consumers = {
    server,
    sockets,
    connections: new Set(),
    byConsumer: new Map(),
    bursting: [],
    timer: setInterval(() => tick(consumers, ticks++ % TOKEN_TICKS === 0), TICK_MS),
    isDraining: false,
  }
  consumers.timer.unref()
  return consumers
}

// --- Opening ---

type Parameters = {
  readonly topic: string | undefined
  readonly name: string | undefined
  readonly prefetch: number | undefined
  readonly confirms: boolean
}

/**
 * Accepts an upgrade to `/ws`.
 *
 * @throws QueueError, which the caller writes as the response
 */
export async function acceptConsumer(
  consumers: Consumers,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const { server } = consumers
  const query = new URL(request.url ?? '', 'http://local').searchParams
  const token = await authorize(server, callerOf(server, request, query), 'consumer')
  const parameters = readParameters(query)
  if (consumers.isDraining) throw new QueueError('service_unavailable', 'the server is shutting down')
  if (consumers.connections.size >= server.settings.consumersMax)
    throw new QueueError(
      'service_unavailable',
      `there are ${server.settings.consumersMax} consumers, the most that are allowed`,
    )
  if (parameters.topic !== undefined) {
    if (!mayUseTopic(token, parameters.topic))
      throw new QueueError('forbidden', `the token is not for topic "${parameters.topic}"`)
    servingOf(server, parameters.topic)
  } else for (const partition of server.partitions.length === 1 ? server.partitions : []) servingPartition(partition)
  consumers.sockets.handleUpgrade(request, socket, head, (webSocket) =>
    open(consumers, webSocket, socket, { token, request, parameters }),
  )
}

const PARAMETERS = ['token', 'topic', 'consumer', 'uuid', 'prefetch', 'confirm']

function readParameters(query: URLSearchParams): Parameters {
  refuseUnknown(query, PARAMETERS)
  const topic = query.get('topic') ?? undefined
  const name = query.get('consumer') ?? query.get('uuid') ?? undefined
  const prefetch = query.get('prefetch') ?? undefined
  const confirm = query.get('confirm') ?? '0'
  const bad = (message: string) => new QueueError('invalid_request', message)
  if (topic !== undefined && !isTopicName(topic)) throw bad('topic must be 1 to 200 letters, digits or . _ : -')
  if (topic !== undefined && name === undefined) throw bad('topic requires consumer, a name')
  if (name !== undefined && (name === '' || name.length > JOB_LIMITS.consumerNameMax))
    throw bad(`consumer must be 1 to ${JOB_LIMITS.consumerNameMax} characters`)
  if (prefetch !== undefined && !(/^[1-9]\d{0,3}$/.test(prefetch) && Number(prefetch) <= JOB_LIMITS.prefetchMax))
    throw bad(`prefetch must be a number from 1 to ${JOB_LIMITS.prefetchMax}`)
  if (confirm !== '0' && confirm !== '1') throw bad('confirm must be 0 or 1')
  return { topic, name, prefetch: prefetch === undefined ? undefined : Number(prefetch), confirms: confirm === '1' }
}

type Opening = { readonly token: QueueToken; readonly request: IncomingMessage; readonly parameters: Parameters }

function open(consumers: Consumers, socket: WebSocket, stream: Duplex, { token, request, parameters }: Opening): void {
  const { clock } = consumers.server.access
  const now = clock.monotonicMs()
  const { remoteAddress = '', remotePort = 0 } = request.socket
  const connection: Connection = {
    socket,
    stream,
    token,
    remote: `${remoteAddress}:${remotePort}`,
    openedAt: now,
    consumer: undefined,
    partition: undefined,
    confirms: parameters.confirms,
    sentAt: now,
    receivedAt: now,
    pingedAt: now,
    blockedSince: 0,
    faults: 0,
    faultsSince: now,
    burst: [],
    isClosing: false,
  }
  consumers.connections.add(connection)
  socket.on('close', (code: number) => {
    if (code === CLOSE_CODES.broken) cut(consumers, connection, CROSSING_MS)
    else end(consumers, connection, disconnect)
  })
  // The close event follows.
  socket.on('error', (error) => consumers.server.log.debug({ err: error }, 'consumer connection failed'))
  socket.on('pong', () => {
    connection.receivedAt = clock.monotonicMs()
  })
  socket.on('message', (data: Buffer, isBinary: boolean) => receive(consumers, connection, data, isBinary))
  // What was unsent has left: a consumer with a large window must not wait for the next tick.
  stream.on('drain', () => unblock(consumers, connection))
  const { topic, name, prefetch } = parameters
  if (topic !== undefined && name !== undefined) begin(consumers, connection, { name, topic, prefetch })
}

function begin(
  consumers: Consumers,
  connection: Connection,
  { name, topic, prefetch }: { name: string; topic: string; prefetch: number | undefined },
): void {
  const { server } = consumers
  if (!mayUseTopic(connection.token, topic))
    return refuse(connection, `the token is not for topic "${topic}"`, 'forbidden')
  let serving: ReturnType<typeof servingOf>
  try {
    serving = servingOf(server, topic)
  } catch (error) {
    if (!(error instanceof QueueError)) throw error
    return refuse(connection, error.message, error.code, error.more.owner, CLOSE_CODES.overloaded)
  }
  const { queue, partition, now } = serving
  const known = queue.topics.get(topic)
  if (known?.config.exclusive_consumer_name) replaceOthers(consumers, known.consumers, name)
  const { remote, confirms, token } = connection
  const fields = { name, topicName: topic, prefetch, confirms, tokenName: token.name, remote }
  const consumer = connect(queue, fields, now)
  connection.consumer = consumer
  connection.partition = partition
  consumers.byConsumer.set(consumer, connection)
  const data = {
    consumerId: `c-${consumer.id}`,
    prefetch: consumer.window,
    adaptive: consumer.isAdaptive,
    ackDeadlineMs: (known?.config ?? server.settings.topicDefaults).ack_deadline_ms,
    heartbeatMs: server.settings.heartbeatMs,
    topicExists: known !== undefined,
    protocol: 1,
  }
  write(consumers, connection, frame('accepted', topic, '', 0, data))
  takeBack(consumers, connection, consumer)
  runSoon(partition)
}

/** What the consumer had when its last connection broke is sent to it again, and counts as the same delivery. */
function takeBack(consumers: Consumers, { partition }: Connection, consumer: Consumer): void {
  if (partition?.queue === undefined) return
  for (const delivery of resume(partition.queue, consumer, momentOf(partition))) sendDelivery(consumers, delivery)
  flushDeliveries(consumers)
}

function replaceOthers(consumers: Consumers, others: Iterable<Consumer>, name: string): void {
  for (const other of [...others]) {
    const connection = other.name === name ? consumers.byConsumer.get(other) : undefined
    if (connection === undefined) continue
    connection.socket.close(CLOSE_CODES.replaced, 'replaced by a newer connection')
    end(consumers, connection, suspend)
  }
}

function refuse(
  { socket }: Connection,
  error: string,
  code: string,
  owner?: string,
  closeCode: number = CLOSE_CODES.badMessages,
): void {
  socket.send(frame('rejected', '', '', 0, { error, code, ...(owner !== undefined && { owner }) }))
  socket.close(closeCode, code)
}

// --- Messages of the consumer ---

function receive(consumers: Consumers, connection: Connection, data: Buffer, isBinary: boolean): void {
  const { socket } = connection
  if (socket.readyState !== socket.OPEN) return
  connection.receivedAt = consumers.server.access.clock.monotonicMs()
  if (isBinary) return close(consumers, connection, CLOSE_CODES.binary, 'send text')
  const message = parseMessage(data.toString('utf8'))
  if (message === undefined) return close(consumers, connection, CLOSE_CODES.notJson, 'not a JSON object')
  const { consumer, partition } = connection
  if (consumer === undefined || partition === undefined) return firstMessage(consumers, connection, message)
  const { queue } = partition
  // Lost a moment ago: the connection is being closed.
  if (queue === undefined || !queue.consumers.has(consumer.id)) return
  // Acknowledgements count while the server shuts down, too.
  const now = momentOf(partition)
  heard(queue, consumer, now)
  if ('fault' in message) fault(consumers, connection, message.fault, message.error)
  else handle(consumers, connection, consumer, message, { queue, partition, now })
  runSoon(partition)
}

function firstMessage(consumers: Consumers, connection: Connection, message: ParsedMessage): void {
  if ('fault' in message || message.action !== 'init')
    return refuse(connection, 'fault' in message ? message.error : 'the first message is init', 'bad_init')
  connection.confirms ||= message.confirm === true
  begin(consumers, connection, { name: message.uuid, topic: message.topic, prefetch: message.prefetch })
}

type Serving = ReturnType<typeof servingPartition>
type Message = Exclude<ParsedMessage, { readonly fault: MessageFault }>

function handle(
  consumers: Consumers,
  connection: Connection,
  consumer: Consumer,
  message: Message,
  { queue, now }: Serving,
): void {
  if ('topic' in message && message.topic !== undefined && message.topic !== consumer.topicName)
    return fault(consumers, connection, 'wrong_topic', `this connection has the topic "${consumer.topicName}"`)
  switch (message.action) {
    case 'ack': {
      for (const each of message.jobs ?? [message]) {
        const ref = refOf(each)
        if (isEmpty(ref)) return fault(consumers, connection, 'bad_message', 'ack needs jobId or seqId')
        const seqId = seqIdOf(consumer, ref)
        const jobId = ref.jobId || (consumer.deliveries.get(seqId)?.job.id ?? '')
        confirm(consumers, connection, 'ack', jobId, seqId, acknowledge(queue, consumer, ref, now))
      }
      break
    }
    case 'nack': {
      const { requeue = true, delayMs, error = '' } = message
      settle(consumers, connection, consumer, message, (ref) =>
        reject(queue, consumer, ref, { error, requeue, delayMs }, now),
      )
      break
    }
    case 'release':
      if (isEmpty(refOf(message))) releaseAll(queue, consumer, now)
      else settle(consumers, connection, consumer, message, (ref) => release(queue, consumer, ref, now))
      break
    case 'extend':
      settle(consumers, connection, consumer, message, (ref) => extend(queue, consumer, ref, message.ms, now))
      break
    case 'credit':
      setPrefetch(queue, consumer, message.prefetch)
      break
    case 'ping':
      heartbeat(consumers, connection)
      break
    case 'close':
      connection.isClosing = true
      pauseConsumer(queue, consumer, true)
      break
    case 'init':
      return fault(consumers, connection, 'bad_message', 'init is the first message only')
  }
  if (connection.isClosing && consumer.deliveries.size === 0)
    close(consumers, connection, CLOSE_CODES.normal, 'nothing is in flight')
}

function settle(
  consumers: Consumers,
  connection: Connection,
  consumer: Consumer,
  message: Extract<Message, { action: 'nack' | 'release' | 'extend' }>,
  apply: (ref: DeliveryRef) => ConfirmResult,
): void {
  const ref = refOf(message)
  if (isEmpty(ref)) return fault(consumers, connection, 'bad_message', `${message.action} needs jobId or seqId`)
  const seqId = seqIdOf(consumer, ref)
  const jobId = ref.jobId || (consumer.deliveries.get(seqId)?.job.id ?? '')
  confirm(consumers, connection, message.action, jobId, seqId, apply(ref))
}

type MessageRef = {
  readonly jobId?: string | undefined
  readonly seqId?: number | undefined
  readonly lease?: string | undefined
}

function refOf({ jobId, seqId, lease }: MessageRef): DeliveryRef {
  return { jobId: jobId === '' ? undefined : jobId, seqId, lease }
}

function isEmpty({ jobId, seqId }: DeliveryRef): boolean {
  return jobId === undefined && seqId === undefined
}

function seqIdOf(consumer: Consumer, { jobId, seqId }: DeliveryRef): number {
  if (seqId !== undefined) return seqId
  const delivery = jobId === undefined ? undefined : findById(consumer.topic?.jobs, jobId)?.delivery
  return delivery?.consumer === consumer ? delivery.seqId : 0
}

/** Reports a result once it is durable, to consumers that want it. */
function confirm(
  consumers: Consumers,
  connection: Connection,
  of: 'ack' | 'nack' | 'release' | 'extend',
  jobId: string,
  seqId: number,
  result: ConfirmResult,
): void {
  if (!connection.confirms) return
  const topic = connection.consumer?.topicName ?? ''
  if (result === 'stale' || result === 'unknown') {
    const code = result === 'stale' ? 'stale_lease' : 'unknown_job'
    write(consumers, connection, frame('error', topic, jobId, seqId, { code, error: REFUSED[result] }))
  }
  const text = frame('confirm', topic, jobId, seqId, { of, result })
  const queue = connection.partition?.queue
  const group = queue?.groups.at(-1) ?? queue?.writing
  if (group === undefined || result === 'extended') return write(consumers, connection, text)
  void outcomeOf(group, false).then((outcome) => {
    if (outcome === 'durable') write(consumers, connection, text)
  })
}

const REFUSED = {
  stale: 'the job has been delivered again',
  unknown: 'the job is not known: it was finished or cancelled',
} as const

/** Counts faulty messages: a client that keeps sending them is closed. */
function fault(consumers: Consumers, connection: Connection, code: MessageFault, error: string): void {
  const { access, settings } = consumers.server
  const now = access.clock.monotonicMs()
  if (now - connection.faultsSince > FAULT_WINDOW_MS) {
    connection.faultsSince = now
    connection.faults = 0
  }
  connection.faults++
  write(consumers, connection, frame('error', connection.consumer?.topicName ?? '', '', 0, { code, error }))
  if (connection.faults > settings.wsErrorsMax)
    close(consumers, connection, CLOSE_CODES.badMessages, 'too many faulty messages')
}

// --- Frames to the consumer ---

/** Sends a delivery. Those of a burst leave together: `flushDeliveries` ends it. */
export function sendDelivery(consumers: Consumers, delivery: Delivery): void {
  const connection = consumers.byConsumer.get(delivery.consumer)
  const queue = connection?.partition?.queue
  if (connection === undefined || queue === undefined) return
  if (connection.burst.length === 0) consumers.bursting.push(connection)
  connection.burst.push(deliveryParts(delivery, leaseOf(queue, delivery)))
}

export function flushDeliveries(consumers: Consumers): void {
  const { bursting } = consumers
  if (bursting.length === 0) return
  const { access, settings } = consumers.server
  const now = access.clock.monotonicMs()
  consumers.bursting = []
  for (const connection of bursting) {
    const { socket, stream, burst } = connection
    connection.burst = []
    if (socket.readyState !== socket.OPEN) continue
    connection.sentAt = now
    // In the place of `socket.send`, which writes two chunks for each frame.
    stream.write(encodeFrames(burst))
    if (socket.bufferedAmount > settings.wsBufferedBytesMax) block(consumers, connection)
  }
}

/** The socket takes no more: nothing is delivered to it until it does. */
function block(consumers: Consumers, connection: Connection): void {
  const { consumer, partition } = connection
  if (connection.blockedSince > 0 || consumer === undefined || partition?.queue === undefined) return
  connection.blockedSince = consumers.server.access.clock.monotonicMs()
  pauseConsumer(partition.queue, consumer, true)
}

function write(consumers: Consumers, connection: Connection, text: string): void {
  const { socket } = connection
  if (socket.readyState !== socket.OPEN) return
  connection.sentAt = consumers.server.access.clock.monotonicMs()
  socket.send(text, SEND_OPTIONS)
}
const SEND_OPTIONS = { binary: false, compress: false, fin: true } as const

function heartbeat(consumers: Consumers, connection: Connection): void {
  const ts = consumers.server.access.clock.wallMs()
  write(consumers, connection, frame('heartbeat', connection.consumer?.topicName ?? '', '', 0, { ts }))
}

// --- Closing ---

export function close(consumers: Consumers, connection: Connection, code: number, reason: string): void {
  connection.socket.close(code, reason)
  // Its jobs return at once; the peer may take long to answer.
  end(consumers, connection, disconnect)
}

function end(consumers: Consumers, connection: Connection, leave: typeof disconnect): void {
  consumers.connections.delete(connection)
  const { consumer, partition } = connection
  connection.consumer = undefined
  if (consumer === undefined) return
  consumers.byConsumer.delete(consumer)
  const queue = partition?.queue
  if (partition === undefined || queue === undefined || !queue.consumers.has(consumer.id)) return
  leave(queue, consumer, momentOf(partition))
  runSoon(partition)
}

/** A proxy that cuts a connection may tell the client first. */
const CROSSING_MS = 500

/** The connection broke. The consumer may have come back before that was noticed, at most `sinceMs` ago. */
function cut(consumers: Consumers, connection: Connection, sinceMs: number): void {
  const { consumer } = connection
  const { clock } = consumers.server.access
  end(consumers, connection, suspend)
  if (consumer === undefined) return
  for (const [other, its] of consumers.byConsumer) {
    const isSame = other.name === consumer.name && other.topicName === consumer.topicName && other.id > consumer.id
    if (isSame && clock.monotonicMs() - its.openedAt <= sinceMs) return takeBack(consumers, its, other)
  }
}

/** Tells the consumers that they are to finish and connect elsewhere. */
export function drain(consumers: Consumers, only: Iterable<Consumer>, reason: string, closeInMs: number): void {
  for (const consumer of only) {
    const connection = consumers.byConsumer.get(consumer)
    const queue = connection?.partition?.queue
    if (connection === undefined || queue === undefined) continue
    if (queue.consumers.has(consumer.id)) pauseConsumer(queue, consumer, true)
    write(consumers, connection, frame('drain', consumer.topicName, '', 0, { reason, closeInMs }))
  }
}

/** Closes the connections of these consumers. */
export function closeAll(consumers: Consumers, only: Iterable<Consumer>, code: number, reason: string): void {
  for (const consumer of [...only]) {
    const connection = consumers.byConsumer.get(consumer)
    if (connection !== undefined) close(consumers, connection, code, reason)
  }
}

// --- Time ---

function tick(consumers: Consumers, checksTokens: boolean): void {
  const { settings, access } = consumers.server
  const now = access.clock.monotonicMs()
  for (const connection of [...consumers.connections]) {
    const { socket, consumer } = connection
    if (checksTokens && !isStillGood(access, connection.token))
      close(consumers, connection, CLOSE_CODES.tokenRevoked, 'the token is no longer valid')
    else if (consumer === undefined) {
      if (now - connection.openedAt > settings.wsInitTimeoutMs)
        close(consumers, connection, CLOSE_CODES.noInit, 'no init in time')
    } else if (now - connection.receivedAt > settings.wsDeadMs || isBlockedTooLong(consumers, connection, now)) {
      socket.terminate()
      // Perhaps it was cut off long ago.
      cut(consumers, connection, Number.POSITIVE_INFINITY)
    } else {
      if (now - connection.sentAt >= settings.heartbeatMs) heartbeat(consumers, connection)
      if (now - Math.max(connection.receivedAt, connection.pingedAt) >= settings.wsPingMs) {
        connection.pingedAt = now
        socket.ping()
      }
    }
  }
}

function isBlockedTooLong(consumers: Consumers, connection: Connection, now: number): boolean {
  if (connection.blockedSince === 0) return false
  const { settings } = consumers.server
  if (connection.socket.bufferedAmount > settings.wsBufferedBytesMax)
    return now - connection.blockedSince > settings.wsWriteTimeoutMs
  unblock(consumers, connection)
  return false
}

/** The socket has taken what was unsent. */
function unblock(consumers: Consumers, connection: Connection): void {
  if (connection.blockedSince === 0) return
  connection.blockedSince = 0
  const { consumer, partition } = connection
  if (partition?.queue === undefined || consumer === undefined) return
  // Otherwise it is to finish what it has.
  const isServing = !connection.isClosing && !consumers.isDraining && partition.unavailable === undefined
  if (isServing) pauseConsumer(partition.queue, consumer, false)
  runSoon(partition)
}

export function stopConsumers(consumers: Consumers): void {
  clearInterval(consumers.timer)
  for (const connection of [...consumers.connections]) close(consumers, connection, CLOSE_CODES.goingAway, 'shutdown')
  consumers.sockets.close()
}
