import { LIVE, type ServerFrame } from '@vacancy/shared/live'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createLink, LINK_LIMITS, type Link, type LinkEvent } from './link.ts'

/** Stands in for the platform's socket: records what the link sends, and delivers frames. */
class Socket {
  static readonly OPEN = 1
  readyState = 0
  readonly sent: { t: string; topic?: string; since?: number; id?: number; n?: number }[] = []
  onopen = () => {}
  onclose = () => {}
  onmessage = (_event: { data: string }) => {}

  open() {
    this.readyState = 1
    this.onopen()
    this.deliver({ t: 'hello', server: 'a', now: TIME })
  }
  deliver(frame: ServerFrame) {
    this.onmessage({ data: JSON.stringify(frame) })
  }
  send(text: string) {
    this.sent.push(JSON.parse(text))
  }
  close() {
    this.readyState = 3
    this.onclose()
  }
}

const TIME = '2026-11-20T18:27:33.000Z'
let sockets: Socket[] = []
let events: LinkEvent[] = []
let answer: () => Promise<Response>
let link: Link

const socket = () => sockets.at(-1) as Socket
const states = () => events.flatMap((event) => (event.t === 'status' ? event.status.state : []))
const subs = (of: Socket) => of.sent.filter(({ t }) => t === 'sub')

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('WebSocket', Socket)
  sockets = []
  events = []
  answer = () => Promise.reject(new TypeError('no network'))
  link = createLink({
    socketUrl: 'ws://here/api/v1/live',
    pollUrl: '/api/v1/poll',
    emit: (event) => events.push(event),
    random: () => 1,
    openSocket: () => {
      sockets.push(new Socket())
      return socket() as unknown as WebSocket
    },
    fetch: () => answer(),
  })
})

afterEach(() => {
  link.close()
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('a topic starts with a snapshot, followed by deltas', () => {
  link.follow('summary')
  socket().open()
  socket().deliver({ t: 'snap', topic: 'summary', seq: 7, at: TIME, data: { lag: 1, id: 's1' } })
  socket().deliver({ t: 'delta', topic: 'summary', seq: 9, at: TIME, ops: [[['lag'], 5]] })

  expect(subs(socket())).toEqual([{ t: 'sub', id: 1, topic: 'summary' }])
  expect(link.valueOf('summary')?.data).toEqual({ lag: 5, id: 's1' })
  expect(events.filter((event) => 'topic' in event).map(({ t }) => t)).toEqual(['snap', 'delta'])
})

test('a broken socket reconnects and requests only what it missed', async () => {
  link.follow('shard:s1')
  socket().open()
  socket().deliver({ t: 'snap', topic: 'shard:s1', seq: 7, at: TIME, data: {} })
  socket().close()
  expect(link.status().state).toBe('offline')

  await vi.advanceTimersByTimeAsync(LINK_LIMITS.retryMsMin)
  expect(sockets).toHaveLength(2)
  socket().open()

  expect(subs(socket())).toEqual([{ t: 'sub', id: 1, topic: 'shard:s1', since: 7 }])
  expect(link.status().state).toBe('live')
})

test('retries back off up to 8 s', async () => {
  socket().open()
  const waits: number[] = []
  for (let round = 0; round < 8; round++) {
    socket().close()
    await vi.advanceTimersByTimeAsync(0)
    const { status } = events.findLast((event) => event.t === 'status') as Extract<LinkEvent, { t: 'status' }>
    if (status.state === 'offline') waits.push(status.retryMs)
    await vi.advanceTimersByTimeAsync(waits.at(-1) ?? 0)
  }
  expect(waits).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000])
})

test('two unanswered pings end a dead connection', async () => {
  socket().open()
  await vi.advanceTimersByTimeAsync(2 * LIVE.pingMs)
  expect(socket().sent.filter(({ t }) => t === 'ping')).toHaveLength(2)
  expect(link.status().state).toBe('live')

  await vi.advanceTimersByTimeAsync(LIVE.pingMs)

  expect(link.status().state).toBe('offline')
})

test('pongs keep it alive', async () => {
  socket().open()
  for (let round = 0; round < 5; round++) {
    await vi.advanceTimersByTimeAsync(LIVE.pingMs)
    socket().deliver({ t: 'pong', n: round + 1, now: TIME })
  }
  expect(states()).not.toContain('offline')
})

test('the end of the session stops all requests until the next sign-in', async () => {
  link.follow('summary')
  socket().open()
  socket().deliver({ t: 'snap', topic: 'summary', seq: 7, at: TIME, data: { secret: 1 } })
  socket().deliver({ t: 'bye', code: 'signed-out', retryMs: 0 })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(link.status().state).toBe('ended')
  expect(sockets).toHaveLength(1)

  link.restart()
  socket().open()

  expect(subs(socket())).toEqual([{ t: 'sub', id: 1, topic: 'summary' }])
  expect(link.valueOf('summary')).toBeUndefined()
})

test('without a socket it polls, and keeps trying sockets', async () => {
  answer = async () => Response.json({ topics: [{ topic: 'summary', seq: 1, at: TIME, data: { lag: 3 } }] })
  link.follow('summary')
  socket().close()
  await vi.advanceTimersByTimeAsync(0)
  expect(link.status().state).toBe('polling')
  expect(link.valueOf('summary')?.data).toEqual({ lag: 3 })

  await vi.advanceTimersByTimeAsync(LINK_LIMITS.socketAgainMs)
  socket().open()

  expect(link.status().state).toBe('live')
})

test('while polling it fetches every two seconds', async () => {
  let polls = 0
  answer = async () => {
    polls += 1
    return Response.json({ topics: [] })
  }
  socket().close()
  await vi.advanceTimersByTimeAsync(0)
  expect([polls, link.status().state]).toEqual([1, 'polling'])
  await vi.advanceTimersByTimeAsync(3 * LINK_LIMITS.pollMs)

  expect(polls).toBe(4)
})

test('a socket refused for lack of a session ends the session', async () => {
  answer = async () => new Response('', { status: 401 })
  socket().close()
  await vi.advanceTimersByTimeAsync(0)

  expect(link.status().state).toBe('ended')
})

test('without socket and HTTP it is offline', async () => {
  socket().close()
  await vi.advanceTimersByTimeAsync(0)

  expect(link.status().state).toBe('offline')
})

test('a closed link stays closed when a request under way fails', async () => {
  let fail = () => {}
  answer = () =>
    new Promise((_, reject) => {
      fail = () => reject(new TypeError('no network'))
    })
  socket().close()
  await vi.advanceTimersByTimeAsync(0)
  link.close()
  const before = events.length
  fail()
  await vi.advanceTimersByTimeAsync(LINK_LIMITS.retryMsMax)

  expect(events).toHaveLength(before)
  expect(sockets).toHaveLength(1)
})

test('after a minute hidden all topics but the summary are suspended, and resume with what was missed', async () => {
  link.follow('summary')
  link.follow('shard:s1')
  socket().open()
  socket().deliver({ t: 'snap', topic: 'shard:s1', seq: 4, at: TIME, data: {} })

  link.setVisible(false)
  for (let round = 0; round < 13; round++) {
    await vi.advanceTimersByTimeAsync(LIVE.pingMs)
    socket().deliver({ t: 'pong', n: 0, now: TIME })
  }
  expect(socket().sent.filter(({ t }) => t === 'unsub')).toEqual([{ t: 'unsub', id: 2 }])

  link.setVisible(true)
  expect(subs(socket()).at(-1)).toEqual({ t: 'sub', id: 2, topic: 'shard:s1', since: 4 })
})

test('a dead connection is found within two seconds of becoming visible', async () => {
  socket().open()
  link.setVisible(false)
  link.setVisible(true)
  await vi.advanceTimersByTimeAsync(LINK_LIMITS.wakeMs)

  expect(link.status().state).toBe('offline')
})

test('a topic followed twice is unsubscribed once', () => {
  link.follow('summary')
  link.follow('summary')
  socket().open()
  link.unfollow('summary')
  expect(socket().sent.some(({ t }) => t === 'unsub')).toBe(false)
  link.unfollow('summary')
  expect(socket().sent.at(-1)).toEqual({ t: 'unsub', id: 1 })
})

test('while polling it asks for what is followed, tries a socket every 30 seconds, and stops when that opens', async () => {
  const urls: string[] = []
  link.close()
  link = createLink({
    socketUrl: 'ws://here',
    pollUrl: '/poll',
    emit: (event) => events.push(event),
    random: () => 0,
    openSocket: () => {
      sockets.push(new Socket())
      return socket() as unknown as WebSocket
    },
    fetch: async (url) => {
      urls.push(url)
      return Response.json({ topics: [] })
    },
  })
  sockets = [socket()]
  socket().close()
  await vi.advanceTimersByTimeAsync(0)
  expect(urls).toEqual(['/poll?topics=summary'])
  // A new topic is fetched at once.
  link.follow('shard:s1')
  link.follow('ops')
  await vi.advanceTimersByTimeAsync(0)
  expect(urls.at(-1)).toBe('/poll?topics=shard%3As1%2Cops')

  await vi.advanceTimersByTimeAsync(LINK_LIMITS.socketAgainMs - 1)
  expect(sockets).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(1)
  expect(sockets).toHaveLength(2)
  socket().open()
  const polls = urls.length
  await vi.advanceTimersByTimeAsync(4 * LINK_LIMITS.pollMs)
  expect(urls).toHaveLength(polls)
  expect(link.status().state).toBe('live')
})

test('a retry replaces an attempt that is under way, which used to stay open beside it', async () => {
  socket().close()
  await vi.advanceTimersByTimeAsync(0)
  link.retry()
  const replaced = socket()
  link.setVisible(true)

  expect(replaced.readyState).toBe(3)
  expect(sockets).toHaveLength(3)
  socket().open()
  expect(link.status().state).toBe('live')
})
