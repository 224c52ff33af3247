/**
 * Live topics: values that browsers follow over `/api/v1/live` (console.md §4.4). Each topic has a number that grows with
 * every change; who comes back with the last one gets what is missing, or the whole value when that is gone.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Clock, systemClock } from '@vacancy/shared'
import { clientFrame, diffValues, LIVE, type LiveOp, type ServerFrame, TOPIC } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { type WebSocket, WebSocketServer } from 'ws'
import { type Handler, ProblemError } from './route.ts'

export type Live = {
  /** The whole new value of a topic; what changed is found and sent. Cheap when nobody follows. */
  publish(topic: string, value: unknown): void
  /** A topic whose value is only computed while somebody follows it. Undefined: there is no such thing. */
  offer(pattern: RegExp, read: (topic: string) => unknown): void
  /** Says that an offered topic may have changed. */
  touch(topic: string): void
}

/** Who follows. `key` is of the session or token; `check` is asked again and again whether it still holds. */
export type Viewer = { readonly key: string; readonly check: () => Promise<boolean> }

export type LiveChannel = Live & {
  readonly webSockets: WebSocketServer
  /** Takes over a request that asks for a WebSocket, once it is known who asks. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, viewer: Viewer): void
  /** Ends the connections of a session or token. */
  end(key: string): void
  readonly poll: Handler<'GET /api/v1/poll'>
  counts(): { readonly clients: number; readonly frames: number; readonly bytes: number }
  stop(): Promise<void>
}

export const LIVE_LIMITS = {
  clientsMax: 1_000,
  clientsPerViewerMax: 32,
  checkMs: 5_000,
  /** A client pings each 5 s; one that is silent this long is gone. */
  silentMs: 30_000,
  /** Values that nobody follows are kept this long for who comes back. */
  idleMs: 60_000,
  /** Changes kept a topic, as they are sent: who lacks more is better off with the whole value. */
  keptBytesMax: 512 << 10,
  /** Frames of a client at once, and each second from then on: two pages that open, and then a human being. */
  framesAtOnce: 256,
  framesPerSecond: 32,
  /** Who asks and does not read the answers is let go, too. */
  unreadBytesMax: 32 << 20,
  /** Until the connection of who was let go is cut. */
  farewellMs: 1_000,
  flushMs: 25,
} as const

type Topic = {
  readonly name: string
  value: unknown
  seq: number
  at: number
  hasValue: boolean
  /** Ops from `seq - kept.length` to `seq`, oldest first; as JSON, without the brackets around them. */
  kept: { readonly seq: number; readonly ops: string }[]
  keptBytes: number
  readonly followers: Map<Client, { /** The last number that was sent to it. */ seq: number }>
  isTouched: boolean
  /** Of an offered topic, while its value is being read. */
  reading: Promise<void> | undefined
  sentAt: number
  emptySince: number
}

type Client = {
  readonly socket: WebSocket
  readonly viewer: Viewer
  readonly topics: Map<string, number>
  heardAt: number
  /** Frames that it may send, at `heardAt`. */
  allowance: number
}

export function createLive(options: {
  readonly server: string
  readonly log: Log
  readonly clock?: Clock
}): LiveChannel {
  const { server, log, clock = systemClock } = options
  const webSockets = new WebSocketServer({ noServer: true, maxPayload: LIVE.frameBytesMax, perMessageDeflate: false })
  const topics = new Map<string, Topic>()
  const offers: { readonly pattern: RegExp; readonly read: (topic: string) => unknown }[] = []
  const clients = new Set<Client>()
  /** The frame that was made last: all who follow a topic mostly lack the same. */
  let made: { topic: string; from: number; to: number; frame: Buffer } | undefined
  let frames = 0
  let bytes = 0

  const time = (ms: number) => new Date(ms).toISOString()

  function topicOf(name: string): Topic {
    const known = topics.get(name)
    if (known) return known
    const made: Topic = {
      name,
      value: undefined,
      // Numbers of a process before this one, or of a topic that was let go, are below all that come now.
      seq: clock.wallMs(),
      at: clock.wallMs(),
      hasValue: false,
      kept: [],
      keptBytes: 0,
      followers: new Map(),
      isTouched: false,
      reading: undefined,
      sentAt: 0,
      emptySince: clock.monotonicMs(),
    }
    topics.set(name, made)
    return made
  }

  function take(topic: Topic, value: unknown): void {
    const isIdle = topic.followers.size === 0 && clock.monotonicMs() - topic.emptySince > LIVE_LIMITS.idleMs
    const ops = topic.hasValue && !isIdle ? diffValues(topic.value, value) : []
    if (topic.hasValue && !isIdle && ops.length === 0) return
    topic.value = value
    topic.seq++
    topic.at = clock.wallMs()
    if (isIdle || !topic.hasValue) forgetChanges(topic)
    else keepChange(topic, ops)
    topic.hasValue = true
  }

  function keepChange(topic: Topic, ops: readonly LiveOp[]): void {
    const text = JSON.stringify(ops).slice(1, -1)
    topic.kept.push({ seq: topic.seq, ops: text })
    topic.keptBytes += text.length
    while (topic.kept.length > LIVE.keptMax || topic.keptBytes > LIVE_LIMITS.keptBytesMax) {
      topic.keptBytes -= (topic.kept.shift() as { ops: string }).ops.length
    }
  }

  function forgetChanges(topic: Topic): void {
    topic.kept = []
    topic.keptBytes = 0
  }

  const isOffered = (name: string) => offers.some(({ pattern }) => pattern.test(name))

  function refresh(topic: Topic): Promise<void> {
    const offer = offers.find(({ pattern }) => pattern.test(topic.name))
    if (!offer) return Promise.resolve()
    topic.isTouched = false
    topic.reading ??= read(topic, offer.read).finally(() => {
      topic.reading = undefined
    })
    return topic.reading
  }

  async function read(topic: Topic, offered: (topic: string) => unknown): Promise<void> {
    const value = await offered(topic.name)
    if (value !== undefined) take(topic, value)
  }

  function send(client: Client, frame: ServerFrame): void {
    sendBytes(client, Buffer.from(JSON.stringify(frame)))
  }

  function sendBytes(client: Client, frame: Buffer): void {
    frames++
    bytes += frame.length
    client.socket.send(frame, { binary: false })
  }

  /** What a follower lacks: the changes since, or the whole when they are too many or it is too slow for them. */
  function bring(topic: Topic, client: Client, follower: { seq: number }): void {
    if (follower.seq === topic.seq || !topic.hasValue) return
    // Its queue is full: it gets the newest value once there is room, and nothing in between.
    if (client.socket.bufferedAmount > LIVE.unsentBytesMax) {
      follower.seq = -1
      return
    }
    if (made?.topic !== topic.name || made.from !== follower.seq || made.to !== topic.seq) {
      made = { topic: topic.name, from: follower.seq, to: topic.seq, frame: frameOf(topic, follower.seq) }
    }
    sendBytes(client, made.frame)
    follower.seq = topic.seq
  }

  function frameOf(topic: Topic, from: number): Buffer {
    const { name, seq, value } = topic
    const at = time(topic.at)
    const first = topic.kept[0]
    if (from < 0 || first === undefined || first.seq > from + 1) {
      return Buffer.from(JSON.stringify({ t: 'snap', topic: name, seq, at, data: value } satisfies ServerFrame))
    }
    const head = JSON.stringify({ t: 'delta', topic: name, seq, at, ops: [] } satisfies ServerFrame)
    const ops = topic.kept.slice(from + 1 - first.seq).map((change) => change.ops)
    return Buffer.from(`${head.slice(0, -2)}${ops.join(',')}]}`)
  }

  function flush(): void {
    const now = clock.monotonicMs()
    for (const topic of topics.values()) {
      if (topic.followers.size === 0) {
        // What is published and not offered could not be had again.
        if (now - topic.emptySince > LIVE_LIMITS.idleMs && isOffered(topic.name)) topics.delete(topic.name)
        continue
      }
      const perSecond = /^(?:op|import):/.test(topic.name) ? LIVE.framesPerSecondFast : LIVE.framesPerSecond
      if (now - topic.sentAt < 1000 / perSecond) continue
      if (topic.isTouched && !topic.reading)
        refresh(topic).catch((error) => log.error({ err: error, topic: topic.name }, 'a live topic failed'))
      let isSent = false
      for (const [client, follower] of topic.followers) {
        if (follower.seq === topic.seq) continue
        bring(topic, client, follower)
        isSent = true
      }
      if (isSent) topic.sentAt = now
    }
  }

  async function subscribe(client: Client, id: number, name: string, since: number | undefined): Promise<void> {
    if (!client.topics.has(name) && client.topics.size >= LIVE.topicsMax) {
      send(client, {
        t: 'err',
        id,
        code: 'too-many-topics',
        message: `one connection follows at most ${LIVE.topicsMax} topics`,
      })
      return
    }
    // Its place is taken before anything is waited for: many that come at once count as many.
    client.topics.set(name, id)
    const topic = topicOf(name)
    if (!topic.hasValue || topic.isTouched || topic.followers.size === 0) await refresh(topic)
    // It may have been left meanwhile, or asked for once more.
    if (!clients.has(client) || client.topics.get(name) !== id) return
    if (!topic.hasValue) {
      // Nobody published it yet: it comes with the first value, unless it is one that is read and there is none.
      if (isOffered(name)) {
        send(client, { t: 'err', id, code: 'not-found', message: `${name} is not known` })
        client.topics.delete(name)
        if (topic.followers.size === 0) topics.delete(name)
        return
      }
    }
    const follower = { seq: since !== undefined && since <= topic.seq ? since : -1 }
    topic.followers.set(client, follower)
    bring(topic, client, follower)
  }

  function leave(client: Client, name: string): void {
    client.topics.delete(name)
    const topic = topics.get(name)
    topic?.followers.delete(client)
    if (topic?.followers.size === 0) topic.emptySince = clock.monotonicMs()
  }

  /** Whether it may send one more now. Who floods is let go: each frame costs more to answer than to send. */
  function mayHear(client: Client): boolean {
    const now = clock.monotonicMs()
    const gained = ((now - client.heardAt) / 1000) * LIVE_LIMITS.framesPerSecond
    client.allowance = Math.min(LIVE_LIMITS.framesAtOnce, client.allowance + gained) - 1
    client.heardAt = now
    if (client.allowance >= 0 && client.socket.bufferedAmount <= LIVE_LIMITS.unreadBytesMax) return true
    if (clients.has(client)) bye(client, 'too-many-frames', LIVE_LIMITS.silentMs)
    setTimeout(() => client.socket.terminate(), LIVE_LIMITS.farewellMs).unref()
    return false
  }

  function hear(client: Client, text: string): void {
    const frame = clientFrame.safeParse(jsonOf(text)).data
    if (!frame) {
      send(client, {
        t: 'err',
        code: 'bad-frame',
        message: 'a frame is sub, unsub or ping, as JSON (shared/src/contract/live.ts)',
      })
      return
    }
    switch (frame.t) {
      case 'ping':
        return send(client, { t: 'pong', n: frame.n })
      case 'unsub': {
        for (const [name, id] of client.topics) if (id === frame.id) leave(client, name)
        return
      }
      case 'sub':
        subscribe(client, frame.id, frame.topic, frame.since).catch((error) => {
          log.error({ err: error, topic: frame.topic }, 'a live topic failed')
          send(client, { t: 'err', id: frame.id, code: 'failed', message: `${frame.topic} could not be read` })
        })
    }
  }

  function bye(client: Client, code: string, retryMs: number): void {
    send(client, { t: 'bye', code, retryMs })
    client.socket.close(1000, code)
    drop(client)
  }

  function drop(client: Client): void {
    for (const name of [...client.topics.keys()]) leave(client, name)
    clients.delete(client)
  }

  webSockets.on('connection', (socket: WebSocket, _request: IncomingMessage, viewer: Viewer) => {
    const client: Client = {
      ...{ socket, viewer, topics: new Map(), heardAt: clock.monotonicMs() },
      allowance: LIVE_LIMITS.framesAtOnce,
    }
    const own = [...clients].filter((each) => each.viewer.key === viewer.key).length
    clients.add(client)
    socket.on('close', () => drop(client))
    // The close that follows tells; what broke is the other side's matter.
    socket.on('error', (error) => log.debug({ err: error }, 'a live connection broke'))
    // Answered by the library; no browser sends them, and so they count as any other frame.
    socket.on('ping', () => clients.has(client) && mayHear(client))
    socket.on('message', (data, isBinary) => {
      if (!clients.has(client) || !mayHear(client)) return
      if (isBinary) bye(client, 'bad-frame', LIVE.pingMs)
      else hear(client, data.toString())
    })
    if (own >= LIVE_LIMITS.clientsPerViewerMax || clients.size > LIVE_LIMITS.clientsMax) {
      bye(client, 'too-many-connections', LIVE_LIMITS.silentMs)
      return
    }
    send(client, { t: 'hello', server, now: time(clock.wallMs()) })
  })

  async function checkViewers(): Promise<void> {
    const now = clock.monotonicMs()
    const answers = new Map<string, Promise<boolean>>()
    for (const client of [...clients]) {
      if (now - client.heardAt > LIVE_LIMITS.silentMs) {
        client.socket.terminate()
        drop(client)
        continue
      }
      const { key, check } = client.viewer
      const answer = answers.get(key) ?? check()
      answers.set(key, answer)
      if (!(await answer)) bye(client, 'signed-out', 0)
    }
  }

  const timers = [
    setInterval(flush, LIVE_LIMITS.flushMs),
    setInterval(() => {
      checkViewers().catch((error) => log.error({ err: error }, 'checking who follows failed'))
    }, LIVE_LIMITS.checkMs),
  ]

  return {
    webSockets,
    publish(name, value) {
      // Nobody follows it, and whoever will is given what is offered then.
      if (!topics.has(name) && isOffered(name)) return
      take(topicOf(name), value)
    },
    offer: (pattern, read) => void offers.push({ pattern, read }),
    touch(name) {
      const topic = topics.get(name)
      if (topic) topic.isTouched = true
    },
    accept(request, socket, head, viewer) {
      webSockets.handleUpgrade(request, socket, head, (webSocket) => {
        webSockets.emit('connection', webSocket, request, viewer)
      })
    },
    end(key) {
      for (const client of [...clients]) if (client.viewer.key === key) bye(client, 'signed-out', 0)
    },
    async poll({ query }) {
      const names = [...new Set(query.topics.split(',').filter((name) => name !== ''))]
      if (names.length > LIVE.topicsMax || !names.every((name) => TOPIC.test(name))) {
        throw new ProblemError(400, 'bad-topics', `topics are at most ${LIVE.topicsMax} names, separated by commas`, {
          hint: 'Such as topics=summary,shard:s1',
          field: 'topics',
        })
      }
      const found = await Promise.all(
        names.map(async (name) => {
          const topic = topicOf(name)
          if (!topic.hasValue || topic.isTouched || topic.followers.size === 0) await refresh(topic)
          return topic.hasValue ? [{ topic: name, seq: topic.seq, at: time(topic.at), data: topic.value }] : []
        }),
      )
      return { topics: found.flat() }
    },
    counts: () => ({ clients: clients.size, frames, bytes }),
    async stop() {
      for (const timer of timers) clearInterval(timer)
      for (const client of [...clients]) bye(client, 'stopping', 1_000)
      await new Promise<void>((resolve) => webSockets.close(() => resolve()))
    },
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Told by whoever knows what should have come.
    return undefined
  }
}
