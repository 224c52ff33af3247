// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { act, render, screen, waitFor } from '@testing-library/react'
import type { ServerFrame } from '@vacancy/shared/live'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import '../ui/testing/dom.ts'
import { chipOf } from '../features/shell/live-state.ts'
import { Age } from '../ui/age.tsx'
import { lastSeenAt, pauseLive, restartLive, resumeLive, startLive, useLive, useLiveStatus } from './live.ts'
import { serverNow } from './server-time.ts'

/** Stands in for the platform's socket: records what is sent, and delivers frames. */
class Socket {
  static readonly OPEN = 1
  readyState = 1
  readonly sent: { t: string; topic?: string }[] = []
  onopen = () => {}
  onclose = () => {}
  onmessage = (_event: { data: string }) => {}

  constructor() {
    sockets.push(this)
  }
  send(text: string) {
    this.sent.push(JSON.parse(text))
  }
  close() {}
}

const AT = '2026-11-20T18:27:33.000Z'
let sockets: Socket[] = []
let fetched: string[] = []
let queries: QueryClient
let stop: () => void

const deliver = (frame: ServerFrame) => sockets.at(-1)?.onmessage({ data: JSON.stringify(frame) })
const snap = (lag: number) => deliver({ t: 'snap', topic: 'shard:s3', seq: lag, at: AT, data: { lag } })
const delta = (lag: number) => deliver({ t: 'delta', topic: 'shard:s3', seq: lag, at: AT, ops: [[['lag'], lag]] })
/** Changes are applied once per frame. */
const frame = () => act(() => new Promise<void>((resolve) => requestAnimationFrame(() => resolve())))

beforeEach(() => {
  sockets = []
  fetched = []
  vi.stubGlobal('WebSocket', Socket)
  vi.stubGlobal('SharedWorker', undefined)
  vi.stubGlobal('fetch', async (path: string) => {
    fetched.push(path)
    return Response.json({ lag: 0 })
  })
  queries = new QueryClient()
  stop = startLive(queries)
  sockets.at(-1)?.onopen()
  deliver({ t: 'hello', server: 'a', now: AT })
})
afterEach(() => {
  act(() => stop())
  vi.unstubAllGlobals()
})

const lagOf = (value: unknown) => (value as { lag: number }).lag

function Lag({ isFollowing = true }) {
  const { data } = useLive<'shard:s3', number>(isFollowing ? 'shard:s3' : undefined, lagOf)
  const { paused, waiting } = useLiveStatus()
  return <output>{`lag ${data}${paused ? `, ${waiting} waiting` : ''}`}</output>
}
const show = (node = <Lag />) => render(<QueryClientProvider client={queries}>{node}</QueryClientProvider>)
const shows = (text: string) => waitFor(() => expect(screen.getByRole('status').textContent).toBe(text))

test('a value is fetched once and then kept up to date by the channel', async () => {
  show()
  await shows('lag 0')
  expect(fetched).toEqual(['/api/v1/shards/s3'])
  snap(1)
  await shows('lag 1')
  delta(2)
  await shows('lag 2')
  expect(fetched).toHaveLength(1)
})

test('pausing holds changes back and counts them, resuming applies all', async () => {
  show()
  snap(1)
  await frame()
  act(() => pauseLive())
  act(() => delta(2))
  act(() => delta(3))
  await shows('lag 1, 2 waiting')
  act(() => resumeLive())
  await shows('lag 3')
})

test('a topic shown twice is followed once, until the last one leaves', async () => {
  const { rerender } = show(
    <>
      <Lag />
      <Lag />
    </>,
  )
  const topics = (t: string) => sockets.at(-1)?.sent.flatMap((one) => (one.t === t ? [one] : []))
  expect(topics('sub')).toHaveLength(1)
  rerender(
    <QueryClientProvider client={queries}>
      <Lag />
    </QueryClientProvider>,
  )
  expect(topics('unsub')).toEqual([])
  rerender(<QueryClientProvider client={queries}>none</QueryClientProvider>)
  expect(topics('unsub')).toHaveLength(1)
})

test('a change that arrives after its topic was left is ignored', async () => {
  const { rerender } = show()
  snap(1)
  await frame()
  rerender(<QueryClientProvider client={queries}>none</QueryClientProvider>)
  delta(2)
  snap(3)
  await frame()
  expect(queries.getQueryData(['live', 'shard:s3'])).toEqual({ lag: 1 })
})

test('after a sign-in changes wait for a whole value: values of another person are gone', async () => {
  show()
  snap(1)
  await frame()
  act(() => restartLive())
  delta(9)
  await frame()
  await shows('lag 1')
  expect(queries.getQueryData(['live', 'shard:s3'])).toEqual({ lag: 1 })
})

test('where no socket opens, values are fetched by HTTP', async () => {
  show()
  await shows('lag 0')
  sockets.at(-1)?.onclose()
  await waitFor(() => expect(sockets).toHaveLength(2))
  sockets.at(-1)?.onclose()
  await waitFor(() => expect(fetched.at(-1)).toContain('/api/v1/poll'))
})

test('without a topic nothing is fetched or followed', async () => {
  show(<Lag isFollowing={false} />)
  await frame()
  expect(fetched).toEqual([])
  await shows('lag undefined')
})

test.each([-120, 120])('a browser whose clock is %d s off shows true ages and countdowns', async (offSeconds) => {
  const now = Date.parse(AT)
  vi.useFakeTimers({ toFake: ['Date'], now: now + offSeconds * 1_000 })
  try {
    deliver({ t: 'pong', n: 1, now: AT })
    render(
      <>
        <Age at={new Date(now - 180_000).toISOString()} />
        <Status />
      </>,
    )
    expect(screen.getByRole('time').textContent).toMatch(/^3 min ago/)
    expect(screen.getByRole('status').textContent).toBe('Live 0.0 s')

    act(() => sockets.at(-1)?.onclose())
    expect(screen.getByRole('status').textContent).toBe('Disconnected, retrying in 1 s')
    // The clock of the browser is set right: the channel tells the time again.
    vi.setSystemTime(now)
    deliver({ t: 'pong', n: 2, now: AT })
    expect(serverNow()).toBe(now)
  } finally {
    vi.useRealTimers()
  }
})

function Status() {
  return <output>{chipOf(useLiveStatus(), lastSeenAt(), serverNow()).text}</output>
}
