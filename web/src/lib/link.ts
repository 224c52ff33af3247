/**
 * One connection to the live channel (docs/design/control-plane.md#live-channel): follows topics, keeps their values,
 * comes back by itself.
 *
 *   connecting → live → offline → connecting …     a socket that breaks comes back after 0.25 s, doubling up to 8 s
 *   connecting → polling                           no socket passes but HTTP does: whole values each 2 s
 *   any → ended                                    the session is over: nothing is tried until `restart`
 *
 * It runs in a SharedWorker for all tabs of a browser, or in the tab where there are none, and knows neither.
 */
import { applyOps, LIVE, type LiveOp, type ServerFrame } from '@vacancy/shared/live'

export type LinkStatus =
  | { readonly state: 'connecting' }
  /** `heardAt`: when the control plane was heard last. */
  | { readonly state: 'live'; readonly heardAt: number }
  | { readonly state: 'polling'; readonly heardAt: number }
  | { readonly state: 'offline'; readonly retryAt: number; readonly since: number }
  | { readonly state: 'ended' }

export type LinkEvent =
  | { readonly t: 'status'; readonly status: LinkStatus }
  | { readonly t: 'snap'; readonly topic: string; readonly at: string; readonly data: unknown }
  | { readonly t: 'delta'; readonly topic: string; readonly at: string; readonly ops: readonly LiveOp[] }

export type Link = {
  follow(topic: string): void
  unfollow(topic: string): void
  /** Nobody looks: after a minute all topics but the summary rest. */
  setVisible(isVisible: boolean): void
  /** Tries now. */
  retry(): void
  /** Somebody else may be signed in: forgets all values and begins anew. */
  restart(): void
  close(): void
  /** What is known of a topic. */
  valueOf(topic: string): { readonly at: string; readonly data: unknown } | undefined
  status(): LinkStatus
}

export type LinkOptions = {
  /** `wss://host`. */
  readonly socketUrl: string
  readonly pollUrl: string
  readonly emit: (event: LinkEvent) => void
  readonly random: () => number
  /** Of the platform; tests give their own. */
  readonly openSocket: (url: string) => WebSocket
  readonly fetch: (url: string) => Promise<Response>
}

export const LINK_LIMITS = {
  retryMsMin: 250,
  retryMsMax: 8_000,
  pollMs: 2_000,
  /** While polling, a socket is tried that often. */
  socketAgainMs: 30_000,
  unansweredPingsMax: 2,
  /** A tab that is looked at again waits that long for a pong. */
  wakeMs: 2_000,
  hiddenMs: 60_000,
  openMs: 5_000,
  saidMs: 400,
} as const

type Topic = { id: number; followers: number; seq?: number; at: string; data: unknown; hasValue: boolean }

const RESTS_NEVER = 'summary'

export function createLink({ socketUrl, pollUrl, emit, random, openSocket, fetch }: LinkOptions): Link {
  const topics = new Map<string, Topic>()
  let socket: WebSocket | undefined
  let status: LinkStatus = { state: 'connecting' }
  let lastId = 0
  let tries = 0
  let pings = 0
  let lastPing = 0
  let isResting = false
  let isClosed = false
  let offlineSince: number | undefined
  const timers = new Map<string, ReturnType<typeof setTimeout>>()

  /** One timer a purpose: setting it again moves it. */
  function after(name: string, milliseconds: number, act: () => void): void {
    clearTimeout(timers.get(name))
    timers.set(name, setTimeout(act, milliseconds))
  }
  const cancel = (...names: string[]) => {
    for (const name of names) clearTimeout(timers.get(name))
  }

  function say(next: LinkStatus): void {
    status = next
    emit({ t: 'status', status })
  }

  function heard(state: 'live' | 'polling'): void {
    const now = Date.now()
    tries = 0
    offlineSince = undefined
    // Tabs show an age in seconds: they need not hear of each frame.
    if (status.state !== state || now - status.heardAt >= LINK_LIMITS.saidMs) say({ state, heardAt: now })
  }

  const isWanted = (name: string) => !isResting || name === RESTS_NEVER
  const send = (frame: object) => socket?.readyState === WebSocket.OPEN && socket.send(JSON.stringify(frame))
  const subscribe = (name: string, { id, seq }: Topic) =>
    send({ t: 'sub', id, topic: name, ...(seq === undefined ? {} : { since: seq }) })

  function connect(): void {
    if (isClosed) return
    cancel('retry', 'open')
    const opened = openSocket(socketUrl)
    socket = opened
    let wasOpen = false
    after('open', LINK_LIMITS.openMs, () => opened.close())
    opened.onopen = () => {
      wasOpen = true
      cancel('open', 'poll')
      pings = 0
      for (const [name, topic] of topics) if (isWanted(name)) subscribe(name, topic)
      after('ping', LIVE.pingMs, ping)
      heard('live')
    }
    opened.onmessage = ({ data }) => hear(JSON.parse(String(data)) as ServerFrame)
    opened.onclose = () => {
      if (socket !== opened) return
      socket = undefined
      cancel('ping', 'wake', 'open')
      if (isClosed || status.state === 'ended') return
      // A socket that never opens may be held back by something in between, or by a session that is over: HTTP tells.
      if (!wasOpen) poll().catch(() => goOffline())
      else goOffline()
    }
  }

  function goOffline(retryMs = 0): void {
    if (isClosed || status.state === 'ended') return
    const most = Math.min(LINK_LIMITS.retryMsMax, LINK_LIMITS.retryMsMin * 2 ** tries)
    const wait = Math.max(retryMs, most * (0.5 + random() / 2))
    tries += 1
    offlineSince ??= Date.now()
    cancel('poll')
    say({ state: 'offline', retryAt: Date.now() + wait, since: offlineSince })
    after('retry', wait, connect)
  }

  function ping(): void {
    if (pings >= LINK_LIMITS.unansweredPingsMax) return drop()
    pings += 1
    lastPing += 1
    send({ t: 'ping', n: lastPing })
    after('ping', LIVE.pingMs, ping)
  }

  /** Does not wait for a close that may never come from a network that is gone. */
  function drop(): void {
    const gone = socket
    socket = undefined
    cancel('ping', 'wake', 'open')
    gone?.close()
    goOffline()
  }

  function hear(frame: ServerFrame): void {
    if (frame.t === 'bye') {
      if (frame.code === 'signed-out') return end()
      const gone = socket
      socket = undefined
      cancel('ping', 'wake')
      gone?.close()
      return goOffline(frame.retryMs)
    }
    if (frame.t === 'pong') {
      pings = 0
      cancel('wake')
    } else if (frame.t === 'snap') {
      take(frame.topic, frame.seq, frame.at, frame.data)
    } else if (frame.t === 'delta') {
      change(frame)
    }
    heard('live')
  }

  function take(name: string, seq: number, at: string, data: unknown): void {
    const topic = topics.get(name)
    if (!topic) return
    const isNew = !topic.hasValue || topic.seq !== seq
    Object.assign(topic, { seq, at, data, hasValue: true })
    if (isNew) emit({ t: 'snap', topic: name, at, data })
  }

  function change({ topic: name, seq, at, ops }: Extract<ServerFrame, { t: 'delta' }>): void {
    const topic = topics.get(name)
    if (!topic) return
    // A change of something never seen whole: asked for anew, without a `since` it comes whole.
    if (!topic.hasValue) return void subscribe(name, topic)
    Object.assign(topic, { seq, at, data: applyOps(topic.data, ops) })
    emit({ t: 'delta', topic: name, at, ops })
  }

  function end(): void {
    const gone = socket
    socket = undefined
    cancel(...timers.keys())
    gone?.close()
    say({ state: 'ended' })
  }

  async function poll(): Promise<void> {
    const names = [...topics.keys()].filter(isWanted)
    const answer = await fetch(`${pollUrl}?topics=${encodeURIComponent(names.join(',') || RESTS_NEVER)}`)
    if (isClosed || socket?.readyState === WebSocket.OPEN) return
    if (answer.status === 401) return end()
    if (!answer.ok) return goOffline()
    const body = (await answer.json()) as { topics: { topic: string; seq: number; at: string; data: unknown }[] }
    for (const { topic, seq, at, data } of body.topics) take(topic, seq, at, data)
    if (status.state !== 'polling') after('retry', LINK_LIMITS.socketAgainMs, connect)
    heard('polling')
    after('poll', LINK_LIMITS.pollMs, () => poll().catch(() => goOffline()))
  }

  function rest(shouldRest: boolean): void {
    if (isResting === shouldRest) return
    isResting = shouldRest
    for (const [name, topic] of topics) {
      if (name === RESTS_NEVER) continue
      if (shouldRest) send({ t: 'unsub', id: topic.id })
      else subscribe(name, topic)
    }
  }

  connect()
  return {
    follow(name) {
      const topic = topics.get(name)
      if (topic) {
        topic.followers += 1
        return
      }
      lastId += 1
      const made: Topic = { id: lastId, followers: 1, at: '', data: undefined, hasValue: false }
      topics.set(name, made)
      if (isWanted(name)) subscribe(name, made)
      if (status.state === 'polling') after('poll', 0, () => poll().catch(() => goOffline()))
    },
    unfollow(name) {
      const topic = topics.get(name)
      if (!topic) return
      topic.followers -= 1
      if (topic.followers > 0) return
      topics.delete(name)
      send({ t: 'unsub', id: topic.id })
    },
    setVisible(isVisible) {
      if (!isVisible) return after('hidden', LINK_LIMITS.hiddenMs, () => rest(true))
      cancel('hidden')
      rest(false)
      if (status.state === 'offline') return connect()
      if (status.state !== 'live') return
      // A machine that slept finds a socket that looks open.
      lastPing += 1
      send({ t: 'ping', n: lastPing })
      after('wake', LINK_LIMITS.wakeMs, drop)
    },
    retry() {
      tries = 0
      if (status.state === 'offline' || status.state === 'polling') connect()
    },
    restart() {
      for (const topic of topics.values()) {
        delete topic.seq
        Object.assign(topic, { data: undefined, hasValue: false })
      }
      const gone = socket
      socket = undefined
      cancel(...timers.keys())
      gone?.close()
      tries = 0
      say({ state: 'connecting' })
      connect()
    },
    close() {
      isClosed = true
      cancel(...timers.keys())
      socket?.close()
      socket = undefined
    },
    valueOf(name) {
      const topic = topics.get(name)
      return topic?.hasValue ? { at: topic.at, data: topic.data } : undefined
    },
    status: () => status,
  }
}
