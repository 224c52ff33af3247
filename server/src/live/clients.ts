/** Clients of the live channel: their frames, subscriptions and disconnection. */
import { clientFrame, LIVE } from '@vacancy/shared/contract'
import type { WebSocket } from 'ws'
import { type Client, LIVE_LIMITS, type Live, send, time, type Viewer } from './state.ts'
import { bringUpToDate, flushSoon, isOffered, refresh, topicOf } from './topics.ts'

export function addClient(live: Live, socket: WebSocket, viewer: Viewer): void {
  const { clients, log, clock } = live
  const client: Client = {
    socket,
    viewer,
    topics: new Map(),
    lastFrameAt: clock.monotonicMs(),
    allowance: LIVE_LIMITS.framesAtOnce,
  }
  const own = [...clients].filter((each) => each.viewer.key === viewer.key).length
  clients.add(client)
  socket.on('close', () => removeClient(live, client))
  // The close event follows.
  socket.on('error', (error) => log.debug({ err: error }, 'live connection failed'))
  // The library responds to pings. Browsers send none, so they count like other frames.
  socket.on('ping', () => clients.has(client) && mayReceive(live, client))
  socket.on('message', (data, isBinary) => {
    if (!clients.has(client) || !mayReceive(live, client)) return
    if (isBinary) dismiss(live, client, 'bad-frame', LIVE.pingMs)
    else handleFrame(live, client, data.toString())
  })
  if (own >= LIVE_LIMITS.clientsPerViewerMax || clients.size > LIVE_LIMITS.clientsMax) {
    dismiss(live, client, 'too-many-connections', LIVE_LIMITS.silentMs)
    return
  }
  send(live, client, { t: 'hello', server: live.server, now: time(clock.wallMs()) })
}

async function follow(live: Live, client: Client, id: number, name: string, since: number | undefined): Promise<void> {
  if (!client.topics.has(name) && client.topics.size >= LIVE.topicsMax) {
    send(live, client, {
      t: 'err',
      id,
      code: 'too-many-topics',
      message: `a connection can subscribe to at most ${LIVE.topicsMax} topics`,
    })
    return
  }
  // Counted before any await, so that concurrent subscriptions respect the limit.
  client.topics.set(name, id)
  const topic = topicOf(live, name)
  if (!topic.hasValue || topic.isTouched || topic.followers.size === 0) await refresh(live, topic)
  // The client may have unsubscribed, or subscribed again, in the meantime.
  if (!live.clients.has(client) || client.topics.get(name) !== id) return
  if (!topic.hasValue) {
    // Not published yet: its first value will be sent. An offered topic without a value does not exist.
    if (isOffered(live, name)) {
      send(live, client, { t: 'err', id, code: 'not-found', message: `unknown topic ${name}` })
      client.topics.delete(name)
      if (topic.followers.size === 0) live.topics.delete(name)
      return
    }
  }
  const follower = { seq: since !== undefined && since <= topic.seq ? since : -1 }
  topic.followers.set(client, follower)
  bringUpToDate(live, topic, client, follower)
  flushSoon(live, topic)
}

function unfollow(live: Live, client: Client, name: string): void {
  client.topics.delete(name)
  const topic = live.topics.get(name)
  topic?.followers.delete(client)
  if (topic?.followers.size === 0) topic.emptySince = live.clock.monotonicMs()
}

/** Whether it may send another frame now. Flooding clients are disconnected, because responses cost more than requests. */
function mayReceive(live: Live, client: Client): boolean {
  const now = live.clock.monotonicMs()
  const gained = ((now - client.lastFrameAt) / 1000) * LIVE_LIMITS.framesPerSecond
  client.allowance = Math.min(LIVE_LIMITS.framesAtOnce, client.allowance + gained) - 1
  client.lastFrameAt = now
  if (client.allowance >= 0 && client.socket.bufferedAmount <= LIVE_LIMITS.unreadBytesMax) return true
  if (live.clients.has(client)) dismiss(live, client, 'too-many-frames', LIVE_LIMITS.silentMs)
  setTimeout(() => client.socket.terminate(), LIVE_LIMITS.farewellMs).unref()
  return false
}

function handleFrame(live: Live, client: Client, text: string): void {
  const frame = clientFrame.safeParse(jsonOf(text)).data
  if (!frame) {
    send(live, client, {
      t: 'err',
      code: 'bad-frame',
      message: 'a frame is sub, unsub or ping, as JSON (shared/src/contract/live.ts)',
    })
    return
  }
  switch (frame.t) {
    case 'ping':
      return send(live, client, { t: 'pong', n: frame.n, now: time(live.clock.wallMs()) })
    case 'unsub': {
      for (const [name, id] of client.topics) if (id === frame.id) unfollow(live, client, name)
      return
    }
    case 'sub':
      follow(live, client, frame.id, frame.topic, frame.since).catch((error) => {
        live.log.error({ err: error, topic: frame.topic }, 'a live topic failed')
        send(live, client, { t: 'err', id: frame.id, code: 'failed', message: `${frame.topic} could not be read` })
      })
  }
}

export function dismiss(live: Live, client: Client, code: string, retryMs: number): void {
  send(live, client, { t: 'bye', code, retryMs })
  client.socket.close(1000, code)
  removeClient(live, client)
}

function removeClient(live: Live, client: Client): void {
  for (const name of [...client.topics.keys()]) unfollow(live, client, name)
  live.clients.delete(client)
}

export async function checkViewers(live: Live): Promise<void> {
  const now = live.clock.monotonicMs()
  const answers = new Map<string, Promise<boolean>>()
  for (const client of [...live.clients]) {
    if (now - client.lastFrameAt > LIVE_LIMITS.silentMs) {
      client.socket.terminate()
      removeClient(live, client)
      continue
    }
    const { key, check } = client.viewer
    const answer = answers.get(key) ?? check()
    answers.set(key, answer)
    if (!(await answer)) dismiss(live, client, 'signed-out', 0)
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The caller reports the error.
    return undefined
  }
}
