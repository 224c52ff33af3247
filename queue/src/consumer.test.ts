import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { CLOSE_CODES, JOB_LIMITS, type TopicConfig, topicConfig } from '@vacancy/shared/contract'
import type { Logger } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { WebSocket } from 'ws'
import {
  acceptConsumer,
  type Consumers,
  close,
  closeAll,
  createConsumers,
  flushDeliveries,
  sendDelivery,
} from './consumer.ts'
import type { Topic } from './job.ts'
import type { Journal, JournalEvents } from './journal.ts'
import { createQueueMetrics } from './metrics.ts'
import {
  createPartition,
  momentOf,
  type Partition,
  type PartitionOptions,
  runSoon,
  startPartition,
} from './partition.ts'
import { createTopic, submit } from './queue.ts'
import type { QueueServer, QueueSettings } from './queue-server.ts'
import type { Queue } from './state.ts'
import { LIMITS, START } from './testing/engine.ts'
import { createQueueAccess, type QueueToken } from './tokens.ts'

const TICK_MS = 250

type Frame = { readonly action: string; readonly seqId: number; readonly jobId: string; readonly data: unknown }

/** A socket of `ws` with the stream below it, as far as the queue uses them. */
type FakeSocket = EventEmitter & {
  readyState: number
  bufferedAmount: number
  readonly OPEN: 1
  /** What was sent, deliveries included. */
  readonly frames: Frame[]
  /** How it was closed, and its pings. */
  readonly ended: string[]
  readonly stream: EventEmitter
  readonly tell: (message: object | string) => void
}

type Service = {
  readonly consumers: Consumers
  readonly partition: Partition
  readonly events: JournalEvents[]
  /** Group writes that wait; written at once while undefined. */
  held: (() => void)[] | undefined
  isTokenGood: boolean
}

const SETTINGS = {
  ...{ wsReadBytesMax: 1_000, wsWriteTimeoutMs: 2_000, wsInitTimeoutMs: 3_000, wsPingMs: 20_000, wsDeadMs: 45_000 },
  ...{ wsBufferedBytesMax: 5_000, wsErrorsMax: 2, heartbeatMs: 10_000, consumersMax: 3 },
  topicDefaults: topicConfig.parse({ ack_deadline_ms: 7_000 }),
} as QueueSettings

const ROLES = { consumer: {}, producer: { role: 'producer' }, admin: { role: 'admin' }, mail: { topics: ['mail*'] } }

async function startService(settings: Partial<QueueSettings> = {}): Promise<Service> {
  const clock = { wallMs: () => Date.now(), monotonicMs: () => 1_000 + performance.now() }
  const log = { info: () => undefined, error: () => undefined, debug: () => undefined } as unknown as Logger
  const others = (text: string) => {
    const known = ROLES[text as keyof typeof ROLES]
    const token = {
      hash: new Uint8Array(32),
      role: 'consumer',
      name: `the ${text}`,
      expiresMs: Number.POSITIVE_INFINITY,
    }
    return known === undefined ? undefined : ({ ...token, ...known } as QueueToken)
  }
  const isOtherGood = () => service.isTokenGood
  const access = createQueueAccess({ clock, others, isOtherGood, allowQueryToken: false }, [])
  const partitions: Partition[] = []
  const all = { ...SETTINGS, ...settings }
  const server: QueueServer = { settings: all, log, access, metrics: createQueueMetrics('memory'), partitions }
  const consumers = createConsumers(server)
  consumers.sockets.handleUpgrade = (_request, stream, _head, opened) =>
    opened((stream as unknown as { socket: WebSocket }).socket, {} as IncomingMessage)
  const events: JournalEvents[] = []
  const options: PartitionOptions = {
    ...{ clock, log, partitions: 1, ackFlushMs: 5, random: () => 0.5, leasePrefix: () => 'p' },
    limits: LIMITS,
    open: async (given) => {
      events.push(given)
      return {
        load: async function* () {},
        write: () =>
          new Promise<void>((resolve) => (service.held === undefined ? resolve() : service.held.push(resolve))),
        close: async () => undefined,
      } as unknown as Journal
    },
    send: (delivery) => sendDelivery(consumers, delivery),
    sent: () => flushDeliveries(consumers),
    onLost: (lost) => closeAll(consumers, lost, CLOSE_CODES.overloaded, 'lost'),
    ...{ onLoading: () => undefined, onLoaded: () => undefined, onGroup: () => undefined, onError: () => undefined },
  }
  const partition = createPartition(0, options)
  partitions.push(partition)
  const service: Service = { consumers, partition, events, held: undefined, isTokenGood: true }
  await startPartition(partition)
  return service
}

async function addTopic({ partition }: Service, name = 'orders', config: Partial<TopicConfig> = {}): Promise<Topic> {
  const queue = partition.queue as Queue
  createTopic(queue, name, topicConfig.parse(config), momentOf(partition))
  runSoon(partition)
  await pass()
  return queue.topics.get(name) as Topic
}

async function addJobs({ partition }: Service, ...ids: readonly string[]): Promise<void> {
  const queue = partition.queue as Queue
  const usual = { priority: 0, flags: 1, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: '{"n":1}', bytes: 7 }
  const jobs = ids.map((id) => ({ ...usual, id }))
  submit(queue, queue.topics.get('orders') as Topic, jobs, momentOf(partition))
  runSoon(partition)
  await pass()
}

/** Lets time pass, with all that is due; 0 for a few turns of the event loop. */
async function pass(ms = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms)
  // To write a group, to deliver its jobs, and to flush what that changed.
  for (let n = 0; n < 4; n++) await new Promise((resolve) => setImmediate(resolve))
}

function createSocket(): FakeSocket {
  const [frames, ended]: [Frame[], string[]] = [[], []]
  const stream = Object.assign(new EventEmitter(), {
    write: (bytes: Buffer) => void frames.push(...framesOf(bytes)),
  })
  const socket: FakeSocket = Object.assign(new EventEmitter(), {
    ...{ readyState: 1, bufferedAmount: 0, OPEN: 1 as const, frames, ended, stream },
    send: (text: string, options = { binary: false }) => {
      if (options.binary) ended.push('sent bytes')
      frames.push(JSON.parse(text) as Frame)
    },
    close: (code: number, reason: string) => {
      socket.readyState = 2
      ended.push(`${code} ${reason}`)
    },
    terminate: () => void ended.push('terminated'),
    ping: () => void ended.push('ping'),
    tell: (message: object | string) => {
      const text = typeof message === 'string' ? message : JSON.stringify(message)
      socket.emit('message', Buffer.from(text), false)
    },
  })
  Object.assign(stream, { socket })
  return socket
}

/** The texts of frames with headers of two or four bytes. */
function framesOf(bytes: Buffer): Frame[] {
  const found: Frame[] = []
  for (let at = 0; at < bytes.length; ) {
    const isLong = bytes[at + 1] === 126
    const size = isLong ? bytes.readUInt16BE(at + 2) : (bytes[at + 1] as number)
    at += (isLong ? 4 : 2) + size
    found.push(JSON.parse(bytes.toString('utf8', at - size, at)) as Frame)
  }
  return found
}

/** Opens a connection. @throws QueueError when it is refused */
async function open({ consumers }: Service, query: string, token = 'consumer'): Promise<FakeSocket> {
  const socket = createSocket()
  const url = `/ws?${new URLSearchParams(query)}${token === '' ? '' : `&token=${token}`}`
  const request = { url, headers: {}, socket: { remoteAddress: '10.0.0.1', remotePort: 99 } }
  await acceptConsumer(consumers, request as unknown as IncomingMessage, socket.stream as Duplex, Buffer.alloc(0))
  return socket
}

const refusal = (service: Service, query: string, token?: string) =>
  open(service, query, token).then(
    () => 'accepted',
    (error: { code: string; message: string }) => `${error.code}: ${error.message}`,
  )

/** A service with the topic `orders`, and a consumer of it. */
async function startConsumer(query = '', settings: Partial<QueueSettings> = {}, config: Partial<TopicConfig> = {}) {
  const service = await startService(settings)
  const topic = await addTopic(service, 'orders', config)
  const socket = await open(service, `topic=orders&consumer=w${query}`)
  await pass()
  return { service, socket, topic, queue: service.partition.queue as Queue }
}

/** What was sent since, without the first frame. */
const later = ({ frames }: FakeSocket) =>
  frames.slice(1).map(({ action, jobId, seqId, data }) => ({ action, jobId, seqId, data }))
const actions = ({ frames }: FakeSocket) => frames.map(({ action }) => action)

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] })
  vi.setSystemTime(START)
})

afterEach(() => {
  vi.clearAllTimers()
  vi.useRealTimers()
})

describe('a connection', () => {
  const TOPIC = 'topic must be 1 to 200 letters, digits or . _ : -'
  const NAME = 'consumer must be 1 to 200 characters'
  const PREFETCH = 'prefetch must be a number from 1 to 1000'

  it.each([
    ['topic=or%2Fders&consumer=w', TOPIC],
    ['topic=&consumer=w', TOPIC],
    ['topic=orders', 'topic requires consumer, a name'],
    ['topic=orders&consumer=', NAME],
    [`topic=orders&consumer=${'c'.repeat(JOB_LIMITS.consumerNameMax + 1)}`, NAME],
    ['topic=orders&consumer=w&prefetch=0', PREFETCH],
    ['topic=orders&consumer=w&prefetch=', PREFETCH],
    ['topic=orders&consumer=w&prefetch=10000', PREFETCH],
    ['topic=orders&consumer=w&prefetch=1001', PREFETCH],
    ['topic=orders&consumer=w&prefetch=-1', PREFETCH],
    ['topic=orders&consumer=w&prefetch=5a', PREFETCH],
    ['topic=orders&consumer=w&confirm=2', 'confirm must be 0 or 1'],
    ['confirm=true', 'confirm must be 0 or 1'],
  ])('with %s is refused', async (query, message) => {
    expect(await refusal(await startService(), query)).toBe(`invalid_request: ${message}`)
  })

  it.each([
    [{ action: 'ping' }, 'the first message is init', 'bad_init'],
    [{ action: 'init', uuid: 'x' }, 'init needs uuid and topic', 'bad_init'],
    [{ action: 'init', uuid: 'x', topic: 'orders' }, 'the token is not for topic "orders"', 'forbidden'],
  ])('with the first message %j is closed', async (message, error, code) => {
    const { service } = await startConsumer()
    const socket = await open(service, '', 'mail')
    socket.tell(message)
    expect(socket.frames).toEqual([{ action: 'rejected', topic: '', jobId: '', seqId: 0, data: { error, code } }])
    expect(socket.ended).toEqual([`${CLOSE_CODES.badMessages} ${code}`])
  })

  it('replaces those of its name where a topic wants that', async () => {
    const { service, socket } = await startConsumer('', {}, { exclusive_consumer_name: true })
    const other = await open(service, 'topic=orders&consumer=other')
    const same = await open(service, 'topic=orders&consumer=w')
    expect([socket.ended, other.ended, same.ended]).toEqual([['4409 replaced by a newer connection'], [], []])
    expect(service.partition.queue?.consumers.size).toBe(2)
    const { service: usual, socket: first } = await startConsumer()
    await open(usual, 'topic=orders&consumer=w')
    expect(first.ended).toEqual([])
  })
})

describe('messages of a consumer', () => {
  it('are not confirmed when the journal is lost', async () => {
    const { service, socket } = await startConsumer('&confirm=1')
    await addJobs(service, 'a')
    service.held = []
    socket.tell({ action: 'ack', jobId: 'a' })
    service.events[0]?.onLost(new Error('gone'))
    socket.readyState = 1
    await pass(5)
    expect(actions(socket)).toEqual(['accepted', 'job'])
    expect(socket.ended).toEqual(['1013 lost'])
    socket.tell({ action: 'ping' })
    expect(actions(socket)).toEqual(['accepted', 'job', 'rejected'])
  })

  it('about jobs that are not its own report why', async () => {
    const { service, socket } = await startConsumer('&confirm=1&prefetch=1')
    await addJobs(service, 'a', 'b')
    socket.frames.length = 1
    socket.tell({ action: 'ack', jobId: 'x' })
    socket.tell({ action: 'release', jobId: 'b' })
    await pass()
    expect(later(socket)).toEqual([
      {
        action: 'error',
        jobId: 'x',
        seqId: 0,
        data: { code: 'unknown_job', error: 'the job is not known: it was finished or cancelled' },
      },
      { action: 'confirm', jobId: 'x', seqId: 0, data: { of: 'ack', result: 'unknown' } },
      {
        action: 'error',
        jobId: 'b',
        seqId: 0,
        data: { code: 'stale_lease', error: 'the job has been delivered again' },
      },
      { action: 'confirm', jobId: 'b', seqId: 0, data: { of: 'release', result: 'stale' } },
    ])
  })

  it.each([
    [0, ['4400 too many faulty messages']],
    [60_000, ['4400 too many faulty messages']],
    [60_001, []],
  ])('that are faulty close the connection: two are allowed, and a third after %d ms', async (ms, ended) => {
    const { socket } = await startConsumer('', { wsDeadMs: 1e9, wsPingMs: 1e9 })
    for (let n = 0; n < 2; n++) socket.tell({ action: 'ack' })
    expect(socket.ended).toEqual([])
    await vi.advanceTimersByTimeAsync(ms)
    socket.tell({ action: 'ack' })
    expect(socket.ended).toEqual(ended)
  })

  it('close the connection when nothing is in flight', async () => {
    const { service, socket, topic } = await startConsumer()
    await addJobs(service, 'a')
    socket.tell({ action: 'close' })
    await addJobs(service, 'b')
    expect([socket.ended, topic.counts.ready]).toEqual([[], 1])
    socket.tell({ action: 'ack', jobId: 'a' })
    expect(socket.ended).toEqual(['1000 nothing is in flight'])
    const idle = await open(service, 'topic=mail&consumer=w')
    idle.tell({ action: 'close' })
    expect(idle.ended).toEqual(['1000 nothing is in flight'])
  })
})

describe('a socket that takes no more', () => {
  const startBlocked = async () => {
    const started = await startConsumer('', { wsErrorsMax: 9 })
    started.socket.bufferedAmount = 5_001
    await addJobs(started.service, 'a')
    await addJobs(started.service, 'b')
    return started
  }

  it('gets no more jobs until it has taken them', async () => {
    const { service, socket, topic } = await startBlocked()
    expect([actions(socket), topic.counts.leased]).toEqual([['accepted', 'job'], 1])
    socket.bufferedAmount = 5_000
    socket.stream.emit('drain')
    await pass()
    expect(topic.counts.leased).toBe(2)
    await addJobs(service, 'c', 'd')
    await addJobs(service, 'e')
    expect(topic.counts.leased).toBe(5)
  })

  it('is ended when it takes nothing for long', async () => {
    const { socket, topic } = await startBlocked()
    await pass(2_000)
    expect(socket.ended).toEqual([])
    await pass(TICK_MS)
    expect([socket.ended, topic.counts.leased, topic.counts.ready]).toEqual([['terminated'], 1, 1])
    await pass(LIMITS.resumeGraceMs)
    expect([topic.counts.leased, topic.counts.ready]).toEqual([0, 2])
  })

  it('before it was to take a job is not ended', async () => {
    const { socket } = await startConsumer()
    socket.bufferedAmount = 5_001
    await pass(5_000)
    expect(socket.ended).toEqual([])
  })
})

describe('the time of a connection', () => {
  it('has a ping when nothing came for ws_ping_ms, and again after an answer', async () => {
    const { socket } = await startConsumer()
    await pass(19_750)
    expect(socket.ended).toEqual([])
    await pass(250)
    expect(socket.ended).toEqual(['ping'])
    socket.emit('pong')
    await pass(19_750)
    expect(socket.ended).toEqual(['ping'])
    await pass(250)
    expect(socket.ended).toEqual(['ping', 'ping'])
  })

  it('ends when nothing came for long, and its jobs go back', async () => {
    const { service, socket, topic, queue } = await startConsumer('', { wsPingMs: 1e9 }, { ack_deadline_ms: 60_000 })
    await addJobs(service, 'a')
    await pass(45_000)
    expect([socket.ended, queue.consumers.size]).toEqual([[], 1])
    await pass(250)
    expect([socket.ended, queue.consumers.size, topic.counts.ready]).toEqual([['terminated'], 0, 0])
    await pass(LIMITS.resumeGraceMs)
    expect(topic.counts.ready).toBe(1)
  })

  it.each([
    ['breaks just after its consumer is back', 400, 'close'],
    ['was cut off long before that is noticed', 44_000, 'tick'],
  ])('that %s leaves its jobs to the new one', async (_, backMs, noticed) => {
    const { service, socket } = await startConsumer('', { wsPingMs: 1e9 }, { ack_deadline_ms: 60_000 })
    await addJobs(service, 'a')
    if (noticed === 'tick') await pass(45_250 - backMs - 250)
    const other = await open(service, 'topic=orders&consumer=w')
    if (noticed === 'tick') await pass(backMs + 250)
    else {
      await pass(backMs)
      socket.emit('close', 1006)
    }
    await pass()
    expect(later(other).filter(({ action }) => action === 'job')).toMatchObject([{ jobId: 'a', seqId: 1 }])
  })

  it('ends within a second when its token is revoked', async () => {
    const { service, socket } = await startConsumer()
    await pass(1_000)
    service.isTokenGood = false
    await pass(1_000)
    expect(socket.ended).toEqual(['4401 the token is no longer valid'])
  })
})

describe('the end of the service', () => {
  it('sends no deliveries to a connection that was closed in the same turn', async () => {
    const { service, socket, queue } = await startConsumer()
    const [connection] = service.consumers.connections
    const [consumer] = queue.consumers.values()
    await addJobs(service, 'a')
    const [delivery] = consumer?.deliveries.values() ?? []
    socket.frames.length = 0
    if (delivery === undefined || connection === undefined) throw new Error('there is a delivery')
    sendDelivery(service.consumers, delivery)
    close(service.consumers, connection, 1000, 'over')
    flushDeliveries(service.consumers)
    sendDelivery(service.consumers, delivery)
    flushDeliveries(service.consumers)
    expect(socket.frames).toEqual([])
  })
})
