import { connect, createServer, type Server, type Socket } from 'node:net'
import { createLogger } from '@vacancy/shared/node'
import { encodeError, encodeReply, encodeRequest, FRAME_HEADER_BYTES, readU32 } from '@vacancy/shared/wire'
import { afterEach, describe, expect, it, test } from 'vitest'
import { acceptClient, createForwarder, drain, type Forwarder, type Policy } from './forwarder.ts'
import { codeOfReply, createFrameReader, readFrames } from './frames.ts'
import { closePool, setHops } from './hops.ts'
import {
  addWrite,
  createLane,
  type LaneEntry,
  nextWrite,
  pinnedVia,
  writeInDoubt,
  writeOver,
  writeRefused,
  writeSent,
} from './lanes.ts'
import { listenForClients } from './service.ts'
import { ANYONE, type Hop, type PoolSettings } from './state.ts'
import { STATUS_SEGMENT } from './status.ts'
import { systemWorld, type Wire, type World } from './world.ts'

const LIMITS = {
  frameBytesMax: 16_384,
  skipBytesMax: 1 << 20,
  rubbishBytesMax: 65_536,
  inFlightMax: 1024,
  queuedBytesMax: 4 << 20,
  stalledMsMax: 10_000,
  frameMsMax: 20_000,
  idleMsMax: 90_000,
  deadlineMs: 600,
  totalInFlightMax: 50_000,
}

const closing: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** What a fake node does with one request. */
type Behaviour = (request: { id: number; command: string; socket: Socket }) => Buffer | undefined

const context = { baseYear: 2026, codecs: undefined }

async function startNode(behave: Behaviour): Promise<number> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    const reader = createFrameReader({
      frameBytesMax: 65_536,
      skipBytesMax: 65_536,
      requests: true,
      rubbishBytesMax: 0,
    })
    const sink = {
      frame: (bytes: Buffer, _start: number, inner: number) => {
        const command = bytes.toString('latin1', inner + 10, inner + 10 + (bytes[inner + 9] as number))
        const reply = behave({ id: readU32(bytes, inner + 1), command, socket })
        if (reply) socket.write(reply)
      },
      refuse: () => socket.destroy(),
      skipped: () => {},
      fatal: () => socket.destroy(),
    }
    socket.on('data', (chunk: Buffer) => readFrames(reader, chunk, sink))
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return (server.address() as { port: number }).port
}

const WRITES = new Set(['DECROOMAVL', 'INCROOMAVL'])

const POLICY: Omit<Policy, 'route'> = {
  forwardsEnvelopes: false,
  servesRouters: false,
  sendsRoutersBack: false,
  takesBareFrames: true,
  isWrite: (command) => WRITES.has(command),
  laneKey: () => '',
  localReply: () => undefined,
  noteFailure: () => {},
  login: () => () => ANYONE,
}

const POOL: PoolSettings = {
  peer: 'node',
  linksPerHop: 2,
  frameBytesMax: 16 << 20,
  queuedBytesMax: 1 << 20,
  keepaliveMs: 0,
  greetingMs: 1000,
  token: () => undefined,
  statusFault: () => '',
  resolve: () => Promise.reject(new Error('not used')),
  resolveAgain: () => {},
}

/** A forwarder before nodes: writes to the first, reads to the others. */
async function startBridge(
  ports: readonly number[],
  { hedgeAfterMs = 0, deadlineMs = LIMITS.deadlineMs } = {},
): Promise<{ port: number; forwarder: Forwarder }> {
  const hops = (): Hop[] => [...forwarder.pool.hops.values()]
  const route: Policy['route'] = (_segment, isWrite) => ({ hops: isWrite ? hops().slice(0, 1) : hops().slice(1) })
  const policy = { ...POLICY, route, hedgeAfterMs }
  const forwarder = createForwarder({
    world: systemWorld({ connectMs: 1000, tls: undefined }),
    policy,
    limits: { ...LIMITS, deadlineMs },
    pool: POOL,
    requireLogin: false,
    onEnd: () => {},
    onHopChange: () => {},
  })
  setHops(forwarder.pool, new Map(ports.map((port, i) => [`n${i}`, { host: '127.0.0.1', port }])))
  const log = createLogger({ level: 'error', format: 'text', component: 'test' })
  const listener = await listenForClients(forwarder, {
    host: '127.0.0.1',
    port: 0,
    connectionsMax: 100,
    tls: undefined,
    log,
  })
  closing.push(async () => {
    listener.stopAccepting()
    await drain(forwarder, 0)
    closePool(forwarder.pool)
  })
  return { port: listener.port, forwarder }
}

/** A raw client: sends frames, collects replies by correlation id. */
async function openClient(port: number) {
  const socket = connect(port, '127.0.0.1')
  closing.push(() => {
    socket.destroy()
  })
  const replies = new Map<number, Buffer>()
  const order: number[] = []
  const reader = createFrameReader({
    frameBytesMax: 16 << 20,
    skipBytesMax: 16 << 20,
    requests: false,
    rubbishBytesMax: 0,
  })
  socket.on('data', (chunk: Buffer) =>
    readFrames(reader, chunk, {
      frame: (bytes, start, _inner, end) => {
        const id = readU32(bytes, start + 1)
        expect(replies.has(id), `reply ${id} comes once`).toBe(false)
        replies.set(id, Buffer.from(bytes.subarray(start, end)))
        order.push(id)
      },
      refuse: () => {},
      skipped: () => {},
      fatal: () => {},
    }),
  )
  socket.on('error', () => {})
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()))
  const reply = (id: number) => expect.poll(() => replies.get(id), { interval: 5 }).toBeDefined()
  return { socket, replies, order, reply }
}

const day = { propertyId: 'p', roomType: 'r', date: '2026-12-01', amount: 1 }
const write = (id: number) =>
  encodeRequest({
    command: 'DECROOMAVL',
    correlationId: id,
    fields: day,
    envelope: { segment: 'paris', write: true },
  })
const read = (id: number) =>
  encodeRequest({
    command: 'PROPEXIST',
    correlationId: id,
    fields: { propertyId: 'p' },
    envelope: { segment: 'paris', write: false },
  })
const done = (id: number, left: number) => Buffer.from(encodeReply('DECROOMAVL', id, { availability: left }, context))
const exists = (id: number) => Buffer.from(encodeReply('PROPEXIST', id, { exists: true }, context))
const refusal = (id: number, text: string) => Buffer.from(encodeError(id, text))
const codeIn = (frame: Buffer | undefined) => (frame ? codeOfReply(frame, 0, frame.length) : -1)

/** Long before the second try at half of the deadline. */
const HEDGING = { hedgeAfterMs: 50, deadlineMs: 2_000 }

describe('forwarding to nodes', () => {
  it('sends writes to one node and reads to others, and gives each client its own correlation ids', async () => {
    const seen: string[] = []
    const leader = await startNode(({ id, command }) => {
      seen.push(`leader ${command}`)
      return done(id, 4)
    })
    const follower = await startNode(({ id, command }) => {
      seen.push(`follower ${command}`)
      return exists(id)
    })
    const { port } = await startBridge([leader, follower])
    const [a, b] = [await openClient(port), await openClient(port)]
    a.socket.write(Buffer.concat([write(7), read(8)]))
    b.socket.write(Buffer.concat([read(7), write(0xffff_ffff)]))
    await Promise.all([a.reply(7), a.reply(8), b.reply(7), b.reply(0xffff_ffff)])
    expect(a.replies.get(7)).toEqual(done(7, 4))
    expect(a.replies.get(8)).toEqual(exists(8))
    expect(b.replies.get(7)).toEqual(exists(7))
    expect(seen.sort()).toEqual(['follower PROPEXIST', 'follower PROPEXIST', 'leader DECROOMAVL', 'leader DECROOMAVL'])
  })

  it('answers 408 to a write whose connection ends, and does not send it again', async () => {
    let received = 0
    const leader = await startNode(({ id, socket, command }) => {
      if (command === 'PROPEXIST') return exists(id)
      received++
      socket.destroy()
      return undefined
    })
    const { port } = await startBridge([leader])
    const client = await openClient(port)
    client.socket.write(write(1))
    await client.reply(1)
    expect(codeIn(client.replies.get(1))).toBe(408)
    // Served over a new connection, on which a repeated write would be first.
    client.socket.write(read(2))
    await client.reply(2)
    expect(received).toBe(1)
  })

  it('sends a read again over another connection when one ends', async () => {
    let received = 0
    const leader = await startNode(() => undefined)
    const flaky = await startNode(({ id, socket }) => {
      if (received++ > 0) return exists(id)
      socket.destroy()
      return undefined
    })
    const { port } = await startBridge([leader, flaky])
    const client = await openClient(port)
    client.socket.write(read(5))
    await client.reply(5)
    expect(client.replies.get(5)).toEqual(exists(5))
    expect(received).toBe(2)
  })

  it('repeats refused writes in order, and answers 503 when the deadline passes first', async () => {
    let isLeader = false
    const got: number[] = []
    const leader = await startNode(({ id }) => {
      if (!isLeader) return refusal(id, '308')
      got.push(got.length + 1)
      return done(id, got.length)
    })
    const { port } = await startBridge([leader])
    const client = await openClient(port)
    client.socket.write(Buffer.concat([write(1), write(2), write(3)]))
    // On a busy machine the last one may be refused first, because no time is left for a further try.
    await Promise.all([1, 2, 3].map((id) => client.reply(id)))
    // 408 if the last try had no reply in time.
    for (const id of [1, 2, 3]) expect([408, 503]).toContain(codeIn(client.replies.get(id)))
    client.socket.write(Buffer.concat([write(4), write(5), write(6)]))
    await new Promise((resolve) => setTimeout(resolve, 100))
    isLeader = true
    await client.reply(6)
    expect(client.order.slice(3)).toEqual([4, 5, 6])
    expect([4, 5, 6].map((id) => client.replies.get(id))).toEqual([done(4, 1), done(5, 2), done(6, 3)])
  })

  it('sends a slow read to a second node as well, and passes on the first reply only', async () => {
    const isSlow = (id: number) => id % 2 === 0
    const late: (() => void)[] = []
    const leader = await startNode(() => undefined)
    // The node that gets a slow read first answers it only at the end of the test.
    const held = new Set<string>()
    const follower = () =>
      startNode(({ id, command, socket }) => {
        if (held.size > 0 || !isSlow(slow.next)) return exists(id)
        held.add(command)
        late.push(() => socket.write(exists(id)))
        return undefined
      })
    const slow = { next: 1 }
    const { port, forwarder } = await startBridge([leader, await follower(), await follower()], HEDGING)
    const client = await openClient(port)
    // The next one earns the first hedge.
    for (let id = 1; id <= 19; id++) client.socket.write(read(id))
    await Promise.all(Array.from({ length: 19 }, (_, i) => client.reply(i + 1)))
    expect(forwarder.counters.hedges).toBe(0)
    slow.next = 2
    client.socket.write(read(100))
    await client.reply(100)
    expect(client.replies.get(100)).toEqual(exists(100))
    // Not by the second try at half of the deadline.
    expect(forwarder.counters).toMatchObject({ hedges: 1, hedgesWon: 1, retries: 0, strayReplies: 0 })
    late[0]?.()
    await expect.poll(() => forwarder.counters.strayReplies, { interval: 5 }).toBe(1)
    expect([...forwarder.pool.hops.values()].map(({ inFlight }) => inFlight)).toEqual([0, 0, 0])
  })

  it('hedges one of twenty reads, and no write', async () => {
    let isSilent = false
    const node = () => startNode(({ id }) => (isSilent ? undefined : exists(id)))
    const { port, forwarder } = await startBridge([await node(), await node(), await node()], HEDGING)
    const client = await openClient(port)
    for (let id = 1; id <= 39; id++) client.socket.write(read(id))
    await Promise.all(Array.from({ length: 39 }, (_, i) => client.reply(i + 1)))
    isSilent = true
    client.socket.write(Buffer.concat([write(50), read(51), read(52), read(53)]))
    await Promise.all([50, 51, 52, 53].map((id) => client.reply(id)))
    // 39 reads and these three earned two.
    expect(forwarder.counters.hedges).toBe(2)
    expect([50, 51, 52, 53].map((id) => codeIn(client.replies.get(id)))).toEqual([408, 408, 408, 408])
  })

  it('answers 408 at the deadline when a node is silent', async () => {
    const silent = await startNode(() => undefined)
    const { port } = await startBridge([silent, silent])
    const client = await openClient(port)
    const begun = performance.now()
    client.socket.write(Buffer.concat([write(1), read(2)]))
    await Promise.all([client.reply(1), client.reply(2)])
    expect([1, 2].map((id) => codeIn(client.replies.get(id)))).toEqual([408, 408])
    expect(performance.now() - begun).toBeGreaterThan(550)
  })

  it('answers 503 to reads without a node', async () => {
    const { port } = await startBridge([await startNode(() => undefined)])
    const client = await openClient(port)
    client.socket.write(read(9))
    await client.reply(9)
    expect(codeIn(client.replies.get(9))).toBe(503)
  })

  it('refuses a frame that is too large and reads the next', async () => {
    const node = await startNode(({ id }) => exists(id))
    const { port } = await startBridge([node, node])
    const client = await openClient(port)
    const large = Buffer.alloc(9 + 20_000)
    large[0] = 0xff
    large.writeUInt32LE(77, 1)
    large.writeUInt32LE(20_000, 5)
    client.socket.write(Buffer.concat([large, read(3)]))
    await Promise.all([client.reply(77), client.reply(3)])
    expect(client.replies.get(77)?.toString('latin1')).toContain('VALIDATION_ERROR: frame of 20009 bytes exceeds 16384')
    expect(client.replies.get(3)).toEqual(exists(3))
  })
})

/** The whole frames of one write. */
function framesIn(bytes: Uint8Array): { readonly id: number; readonly frame: Buffer }[] {
  const frames = []
  for (let at = 0, next = 0; at < bytes.length; at = next) {
    next = at + FRAME_HEADER_BYTES + readU32(bytes, at + 5)
    frames.push({ id: readU32(bytes, at + 1), frame: Buffer.from(bytes.subarray(at, next)) })
  }
  return frames
}

/** A forwarder before one node, in simulated time. The node is away until `isUp`, and answers as `behave` says. */
function simulate({ sendsRoutersBack = false } = {}) {
  let nowMs = 0
  let timers: { readonly atMs: number; readonly run: () => void }[] = []
  const after = (ms: number, run: () => void) => {
    const timer = { atMs: nowMs + ms, run }
    timers.push(timer)
    return () => {
      timers = timers.filter((other) => other !== timer)
    }
  }
  const node = {
    isUp: false,
    received: 0,
    behave: (id: number): { frame: Buffer; afterMs: number } => ({ frame: exists(id), afterMs: 1 }),
  }
  const quiet = { pause() {}, resume() {}, destroy() {}, destroySoon() {}, writableLength: 0 }
  const world: World = {
    nowMs: () => nowMs,
    random: () => 0.5,
    after,
    atTurnEnd: (run) => after(0, run),
    connect(_address, events) {
      const { isUp } = node
      after(1, () => (isUp ? events.opened() : events.closed('refused')))
      return {
        ...quiet,
        write(bytes) {
          for (const { id } of framesIn(bytes)) {
            node.received++
            const { frame, afterMs } = node.behave(id)
            after(afterMs, () => events.data(frame))
          }
          return true
        },
      }
    },
  }
  const hops = () => ({ hops: [...forwarder.pool.hops.values()] })
  const forwarder = createForwarder({
    ...{ world, limits: { ...LIMITS, deadlineMs: DEADLINE_MS }, requireLogin: false },
    ...{ policy: { ...POLICY, sendsRoutersBack, route: hops }, pool: POOL, onEnd: () => {}, onHopChange: () => {} },
  })
  const wanted = new Map([['n1', { host: 'n1', port: 1 }]])
  setHops(forwarder.pool, wanted)
  const codes = new Map<number, string>()
  const wire: Wire = {
    ...quiet,
    write(bytes) {
      for (const { id, frame } of framesIn(bytes)) codes.set(id, `${codeIn(frame) || 'ok'} at ${Math.round(nowMs)}`)
      return true
    },
  }
  return {
    node,
    codes,
    forwarder,
    send: (frames: Uint8Array) => acceptClient(forwarder, wire, 'client').data(Buffer.from(frames)),
    /** The routes are read again, and name the same node. */
    news: () => setHops(forwarder.pool, wanted),
    run(ms: number) {
      const endMs = nowMs + ms
      for (;;) {
        const [next] = timers.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)
        if (next === undefined) break
        timers = timers.filter((other) => other !== next)
        nowMs = Math.max(nowMs, next.atMs)
        next.run()
      }
      nowMs = endMs
    },
  }
}

const DEADLINE_MS = 1_600
const AWAY_MS = 300_000
const STATUS = encodeRequest({
  command: 'GETCODECS',
  correlationId: 9,
  fields: {},
  envelope: { segment: STATUS_SEGMENT, write: false },
})

describe('a hop that is away', () => {
  it('is used within 0.6 s of its return, however long it was away, and requests wait for it', () => {
    const { node, codes, send, run } = simulate()
    run(AWAY_MS)
    send(Buffer.concat([read(1), write(2)]))
    run(900)
    node.isUp = true
    run(600)
    expect([codes.get(1), codes.get(2)]).toEqual([1, 2].map(() => expect.stringContaining('ok')))
  })

  it('is tried at once when the routes are read again', () => {
    const { node, codes, send, run, news } = simulate()
    run(AWAY_MS)
    node.isUp = true
    send(read(1))
    news()
    run(10)
    expect(codes.get(1)).toBe(`ok at ${AWAY_MS + 2}`)
  })

  it('leaves requests with 503, at their deadline and not before', () => {
    const { codes, send, run } = simulate()
    run(AWAY_MS)
    send(Buffer.concat([read(1), write(2)]))
    run(DEADLINE_MS - 1)
    expect(codes.size).toBe(0)
    run(20)
    expect([...codes.values()]).toEqual([1, 2].map(() => `503 at ${AWAY_MS + DEADLINE_MS}`))
  })

  it('has a zone router send a router of this project back at once, which may know another way', () => {
    const { codes, send, run } = simulate({ sendsRoutersBack: true })
    run(AWAY_MS)
    send(Buffer.concat([STATUS, write(1)]))
    run(1)
    expect(codes.get(1)).toBe(`503 at ${AWAY_MS}`)
  })
})

test('a write that a hop refuses after most of its time is answered 503 and not left in doubt', () => {
  const { node, codes, send, run } = simulate()
  node.isUp = true
  node.behave = (id) => ({ frame: refusal(id, '503'), afterMs: 1_400 })
  run(1_000)
  send(write(1))
  run(2 * DEADLINE_MS)
  expect([codes.get(1), node.received]).toEqual(['503 at 2400', 1])
})

test('a write that hops refuse at once is sent again until its deadline', () => {
  const { node, codes, send, run } = simulate()
  node.isUp = true
  node.behave = (id) => ({ frame: refusal(id, '503'), afterMs: 1 })
  run(1_000)
  send(write(1))
  run(DEADLINE_MS - 150)
  expect(codes.size).toBe(0)
  node.behave = (id) => ({ frame: done(id, 4), afterMs: 1 })
  run(150)
  expect(codes.get(1)).toContain('ok')
})

type Entry = LaneEntry<string, string>

/** A lane whose writes are all on their way over connection A. */
function sent(...names: string[]) {
  const lane = createLane<string, string>()
  const entries = names.map((name) => addWrite(lane, name))
  for (const entry of entries) writeSent(lane, entry, 'A')
  return { lane, entries: entries as [Entry, Entry, Entry] }
}

test('a refused write is sent again only when no later one is on its way', () => {
  const { lane, entries } = sent('one', 'two')
  const [one, two] = entries
  const three = addWrite(lane, 'three')

  writeRefused(lane, one)
  expect([nextWrite(lane), pinnedVia(lane)]).toEqual([undefined, 'A'])
  writeRefused(lane, two)

  expect(nextWrite(lane)).toBe(one)
  writeSent(lane, one, 'B')
  expect(nextWrite(lane)).toBe(two)
  writeSent(lane, two, 'B')
  expect(nextWrite(lane)).toBe(three)
})

test('a refused write before one that got through is overtaken and not sent again', () => {
  const { lane, entries } = sent('one', 'two')
  const [one, two] = entries
  writeRefused(lane, one)

  expect(writeOver(lane, two, true)).toEqual(['one'])
  expect(lane).toMatchObject({ entries: [], held: 0, refused: 0 })
})

test('a write that is refused after a later one got through is overtaken as well', () => {
  const { lane, entries } = sent('one', 'two')
  const [one, two] = entries

  expect(writeOver(lane, two, true)).toEqual([])
  expect(one.isOvertaken).toBe(true)
})

test('a write that was not executed lets those before it be sent again', () => {
  const { lane, entries } = sent('one', 'two')
  const [one, two] = entries
  writeRefused(lane, one)

  expect(writeOver(lane, two, false)).toEqual([])
  expect(nextWrite(lane)).toBe(one)
})

test('before a write in doubt is sent again, refused ones are overtaken, and others in doubt are not', () => {
  const { lane, entries } = sent('refused', 'in doubt', 'keyed')
  const [refused, inDoubt, keyed] = entries
  writeRefused(lane, refused)
  writeRefused(lane, inDoubt)

  expect(writeInDoubt(lane, keyed, (name) => name !== 'in doubt')).toEqual(['refused'])
  writeRefused(lane, keyed)

  expect(nextWrite(lane)).toBe(inDoubt)
  expect(lane.entries.map(({ item }) => item)).toEqual(['in doubt', 'keyed'])
})
