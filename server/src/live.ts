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
  flushMs: 25,
} as const

type Topic = {
  readonly name: string
  value: unknown
  seq: number
  at: number
  hasValue: boolean
  /** Ops from `seq - kept.length` to `seq`, oldest first. */
  kept: { readonly seq: number; readonly at: number; readonly ops: readonly LiveOp[] }[]
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
    if (isIdle || !topic.hasValue) topic.kept = []
    else topic.kept.push({ seq: topic.seq, at: topic.at, ops })
    if (topic.kept.length > LIVE.keptMax) topic.kept.splice(0, topic.kept.length - LIVE.keptMax)
    topic.hasValue = true
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
    const text = JSON.stringify(frame)
    frames++
    bytes += text.length
    client.socket.send(text)
  }

  /** What a follower lacks: the changes since, or the whole when they are too many or it is too slow for them. */
  function bring(topic: Topic, client: Client, follower: { seq: number }): void {
    if (follower.seq === topic.seq || !topic.hasValue) return
    // Its queue is full: it gets the newest value once there is room, and nothing in between.
    if (client.socket.bufferedAmount > LIVE.unsentBytesMax) {
      follower.seq = -1
      return
    }
    const first = topic.kept[0]
    if (follower.seq >= 0 && first && first.seq <= follower.seq + 1) {
      const ops = topic.kept.flatMap((delta) => (delta.seq > follower.seq ? delta.ops : []))
      send(client, { t: 'delta', topic: topic.name, seq: topic.seq, at: time(topic.at), ops })
    } else {
      send(client, { t: 'snap', topic: topic.name, seq: topic.seq, at: time(topic.at), data: topic.value })
    }
    follower.seq = topic.seq
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

  function hear(client: Client, text: string): void {
    client.heardAt = clock.monotonicMs()
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
    const client: Client = { socket, viewer, topics: new Map(), heardAt: clock.monotonicMs() }
    const own = [...clients].filter((each) => each.viewer.key === viewer.key).length
    clients.add(client)
    socket.on('close', () => drop(client))
    // The close that follows tells; what broke is the other side's matter.
    socket.on('error', (error) => log.debug({ err: error }, 'a live connection broke'))
    socket.on('message', (data, isBinary) => {
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
