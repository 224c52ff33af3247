/**
 * One connection to the live channel (docs/design/control-plane.md#live-channel): follows topics, keeps their values,
 * and reconnects.
 *
 *   connecting → live → offline → connecting …     a broken socket reconnects after 0.25 s, doubling up to 8 s
 *   connecting → polling                           no socket but HTTP works: whole values every 2 s
 *   any → ended                                    the session ended: nothing is sent until `restart`
 *
 * It runs in a SharedWorker for all tabs of a browser, or in the tab where there is none.
 */
import type { RouteAnswer } from '@vacancy/shared/contract'
import { applyOps, LIVE, type LiveOp, type ServerFrame } from '@vacancy/shared/live'

/** In durations, since a tab and its worker may disagree about the time. */
export type LinkStatus =
  | { readonly state: 'connecting' | 'ended' }
  /** `seenMs`: since the last frame from the control plane. */
  | { readonly state: 'live' | 'polling'; readonly seenMs: number }
  | { readonly state: 'offline'; readonly retryMs: number; readonly sinceMs: number }

export type LinkEvent =
  | { readonly t: 'status'; readonly status: LinkStatus }
  /** The control plane's time. */
  | { readonly t: 'clock'; readonly now: number }
  | { readonly t: 'snap'; readonly topic: string; readonly at: string; readonly data: unknown }
  | { readonly t: 'delta'; readonly topic: string; readonly at: string; readonly ops: readonly LiveOp[] }

export type Link = {
  follow(topic: string): void
  unfollow(topic: string): void
  /** After a minute hidden all topics but the summary are suspended. */
  setVisible(isVisible: boolean): void
  /** Reconnects now. */
  retry(): void
  /** Drops all values and reconnects, since another person may have signed in. */
  restart(): void
  close(): void
  /** The last known value of a topic. */
  valueOf(topic: string): { readonly at: string; readonly data: unknown } | undefined
  status(): LinkStatus
}

export type LinkOptions = {
  /** `wss://host`. */
  readonly socketUrl: string
  readonly pollUrl: string
  readonly emit: (event: LinkEvent) => void
  readonly random: () => number
  /** The platform's own, replaced in tests. */
  readonly openSocket: (url: string) => WebSocket
  readonly fetch: (url: string) => Promise<Response>
}

export const LINK_LIMITS = {
  retryMsMin: 250,
  retryMsMax: 8_000,
  pollMs: 2_000,
  /** Interval of attempts to open a socket while polling. */
  socketAgainMs: 30_000,
  unansweredPingsMax: 2,
  /** How long a tab that becomes visible waits for a pong. */
  wakeMs: 2_000,
  hiddenMs: 60_000,
  openMs: 5_000,
  seenMs: 400,
} as const

type Topic = { id: number; followers: number; seq?: number; at: string; data: unknown; hasValue: boolean }
type Send = (frame: object) => void
type Emit = LinkOptions['emit']

const ALWAYS_ACTIVE = 'summary'

/** One timer per name: setting it again replaces it. */
function createTimers() {
  const timers = new Map<string, ReturnType<typeof setTimeout>>()
  return {
    after(name: string, milliseconds: number, act: () => void) {
      clearTimeout(timers.get(name))
      timers.set(name, setTimeout(act, milliseconds))
    },
    /** Without names: all of them. */
    cancel(...names: string[]) {
      for (const name of names.length > 0 ? names : timers.keys()) clearTimeout(timers.get(name))
    },
  }
}

/** State of the link, by the browser's clock: what leaves it are durations. */
function createStatus(emit: Emit) {
  let state: LinkStatus['state'] = 'connecting'
  let seenAt = 0
  let emittedAt = 0
  let retryAt = 0
  let offlineSince: number | undefined
  function now(): LinkStatus {
    const at = Date.now()
    if (state === 'live' || state === 'polling') return { state, seenMs: at - seenAt }
    if (state === 'offline') return { state, retryMs: retryAt - at, sinceMs: at - (offlineSince ?? at) }
    return { state }
  }
  function set(next: LinkStatus['state']): void {
    state = next
    emit({ t: 'status', status: now() })
  }
  return {
    state: () => state,
    now,
    set,
    markSeen(next: 'live' | 'polling') {
      seenAt = Date.now()
      offlineSince = undefined
      // Tabs show an age in seconds and do not need an event for each frame.
      if (state === next && seenAt - emittedAt < LINK_LIMITS.seenMs) return
      emittedAt = seenAt
      set(next)
    },
    retryIn(milliseconds: number) {
      offlineSince ??= Date.now()
      retryAt = Date.now() + milliseconds
      set('offline')
    },
  }
}

/** The followed topics with their values. */
function createTopics(send: Send, emit: Emit) {
  const topics = new Map<string, Topic>()
  let lastId = 0
  let isSuspended = false
  const isWanted = (name: string) => !isSuspended || name === ALWAYS_ACTIVE
  const subscribe = (name: string, { id, seq }: Topic) =>
    send({ t: 'sub', id, topic: name, ...(seq === undefined ? {} : { since: seq }) })
  return {
    /** @returns whether it is a new topic */
    follow(name: string): boolean {
      const topic = topics.get(name)
      if (topic) {
        topic.followers += 1
        return false
      }
      lastId += 1
      const added: Topic = { id: lastId, followers: 1, at: '', data: undefined, hasValue: false }
      topics.set(name, added)
      if (isWanted(name)) subscribe(name, added)
      return true
    },
    unfollow(name: string): void {
      const topic = topics.get(name)
      if (!topic) return
      topic.followers -= 1
      if (topic.followers > 0) return
      topics.delete(name)
      send({ t: 'unsub', id: topic.id })
    },
    wanted: () => [...topics.keys()].filter(isWanted),
    subscribeAll(): void {
      for (const [name, topic] of topics) if (isWanted(name)) subscribe(name, topic)
    },
    take(name: string, seq: number, at: string, data: unknown): void {
      const topic = topics.get(name)
      if (!topic) return
      const isNew = !topic.hasValue || topic.seq !== seq
      Object.assign(topic, { seq, at, data, hasValue: true })
      if (isNew) emit({ t: 'snap', topic: name, at, data })
    },
    change({ topic: name, seq, at, ops }: Extract<ServerFrame, { t: 'delta' }>): void {
      const topic = topics.get(name)
      if (!topic) return
      // A delta without a value: subscribes again without `since`, which returns a snapshot.
      if (!topic.hasValue) return void subscribe(name, topic)
      Object.assign(topic, { seq, at, data: applyOps(topic.data, ops) })
      emit({ t: 'delta', topic: name, at, ops })
    },
    suspend(shouldSuspend: boolean): void {
      if (isSuspended === shouldSuspend) return
      isSuspended = shouldSuspend
      for (const [name, topic] of topics) {
        if (name === ALWAYS_ACTIVE) continue
        if (shouldSuspend) send({ t: 'unsub', id: topic.id })
        else subscribe(name, topic)
      }
    },
    dropValues(): void {
      for (const topic of topics.values()) {
        delete topic.seq
        Object.assign(topic, { data: undefined, hasValue: false })
      }
    },
    valueOf(name: string) {
      const topic = topics.get(name)
      return topic?.hasValue ? { at: topic.at, data: topic.data } : undefined
    },
  }
}

export function createLink({ socketUrl, pollUrl, emit, random, openSocket, fetch }: LinkOptions): Link {
  const send: Send = (frame) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame))
  }
  const topics = createTopics(send, emit)
  const { after, cancel } = createTimers()
  let socket: WebSocket | undefined
  const status = createStatus(emit)
  let tries = 0
  let pings = 0
  let lastPing = 0
  let isClosed = false

  function markSeen(state: 'live' | 'polling'): void {
    tries = 0
    status.markSeen(state)
  }

  /** Does not wait for the close event, which may never come after a network loss. Cancels these timers, or all. */
  function leaveSocket(...names: string[]): void {
    cancel(...names)
    const closing = socket
    socket = undefined
    closing?.close()
  }

  function connect(): void {
    if (isClosed) return
    cancel('retry', 'open')
    const opened = openSocket(socketUrl)
    // An attempt that is still under way.
    const replaced = socket
    socket = opened
    replaced?.close()
    let wasOpen = false
    after('open', LINK_LIMITS.openMs, () => opened.close())
    opened.onopen = () => {
      wasOpen = true
      cancel('open', 'poll')
      pings = 0
      topics.subscribeAll()
      after('ping', LIVE.pingMs, ping)
      markSeen('live')
    }
    opened.onmessage = ({ data }) => receive(JSON.parse(String(data)) as ServerFrame)
    opened.onclose = () => {
      if (socket !== opened) return
      socket = undefined
      cancel('ping', 'wake', 'open')
      if (isClosed || status.state() === 'ended') return
      // A socket that never opens may be blocked by a proxy or an ended session; an HTTP request tells which.
      if (wasOpen) goOffline()
      else pollNow()
    }
  }

  function goOffline(retryMs = 0): void {
    if (isClosed || status.state() === 'ended') return
    const waitMax = Math.min(LINK_LIMITS.retryMsMax, LINK_LIMITS.retryMsMin * 2 ** tries)
    const wait = Math.max(retryMs, waitMax * (0.5 + random() / 2))
    tries += 1
    cancel('poll')
    status.retryIn(wait)
    after('retry', wait, connect)
  }

  function sendPing(): void {
    lastPing += 1
    send({ t: 'ping', n: lastPing })
  }

  function ping(): void {
    if (pings >= LINK_LIMITS.unansweredPingsMax) return drop()
    pings += 1
    sendPing()
    after('ping', LIVE.pingMs, ping)
  }

  function drop(retryMs = 0): void {
    leaveSocket('ping', 'wake', 'open')
    goOffline(retryMs)
  }

  function receive(frame: ServerFrame): void {
    if (frame.t === 'bye') return frame.code === 'signed-out' ? end() : drop(frame.retryMs)
    if (frame.t === 'hello' || frame.t === 'pong') emit({ t: 'clock', now: Date.parse(frame.now) })
    if (frame.t === 'pong') {
      pings = 0
      cancel('wake')
    } else if (frame.t === 'snap') {
      topics.take(frame.topic, frame.seq, frame.at, frame.data)
    } else if (frame.t === 'delta') {
      topics.change(frame)
    }
    markSeen('live')
  }

  function end(): void {
    leaveSocket()
    status.set('ended')
  }

  const pollNow = () => void poll().catch(() => goOffline())

  async function poll(): Promise<void> {
    const names = topics.wanted().join(',') || ALWAYS_ACTIVE
    const response = await fetch(`${pollUrl}?topics=${encodeURIComponent(names)}`)
    if (isClosed || socket?.readyState === WebSocket.OPEN) return
    if (response.status === 401) return end()
    if (!response.ok) return goOffline()
    const body = (await response.json()) as RouteAnswer<'GET /api/v1/poll'>
    emit({ t: 'clock', now: Date.parse(body.now) })
    for (const { topic, seq, at, data } of body.topics) topics.take(topic, seq, at, data)
    if (status.state() !== 'polling') after('retry', LINK_LIMITS.socketAgainMs, connect)
    markSeen('polling')
    after('poll', LINK_LIMITS.pollMs, pollNow)
  }

  connect()
  return {
    follow(name) {
      if (topics.follow(name) && status.state() === 'polling') after('poll', 0, pollNow)
    },
    unfollow: topics.unfollow,
    setVisible(isVisible) {
      if (!isVisible) return after('hidden', LINK_LIMITS.hiddenMs, () => topics.suspend(true))
      cancel('hidden')
      topics.suspend(false)
      if (status.state() === 'offline') return connect()
      if (status.state() !== 'live') return
      // After sleep a dead socket still looks open.
      sendPing()
      after('wake', LINK_LIMITS.wakeMs, drop)
    },
    retry() {
      tries = 0
      if (['offline', 'polling'].includes(status.state())) connect()
    },
    restart() {
      topics.dropValues()
      leaveSocket()
      tries = 0
      status.set('connecting')
      connect()
    },
    close() {
      isClosed = true
      leaveSocket()
    },
    valueOf: topics.valueOf,
    status: status.now,
  }
}
