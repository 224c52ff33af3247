/** Clients of the live channel: frames, subscriptions, limits and disconnection. Sockets and clock are simulated. */

import { EventEmitter } from 'node:events'
import { turnableClock } from '@vacancy/shared'
import type { ServerFrame } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { WebSocket } from 'ws'
import { addClient, checkViewers } from './clients.ts'
import { type Client, LIVE_LIMITS, type Live, type Viewer } from './state.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

const settled = () => new Promise(setImmediate)

function channel() {
  const clock = turnableClock(NOW)
  clock.advance(1_000_000)
  const errors: unknown[] = []
  const log = { error: (fields: unknown) => errors.push(fields), debug: () => undefined } as unknown as Log
  const live: Live = {
    ...{ server: 'test', log, clock, webSockets: {} as Live['webSockets'], topics: new Map(), offers: [] },
    ...{ clients: new Set(), lastFrame: undefined, framesSent: 0, bytesSent: 0, timers: [] },
  }
  return { live, clock, errors }
}

/** Connects a browser. */
function connect(live: Live, viewer: Partial<Viewer> = {}) {
  const frames: ServerFrame[] = []
  const ends: string[] = []
  const socket = Object.assign(new EventEmitter(), {
    bufferedAmount: 0,
    send: (bytes: Buffer) => void frames.push(JSON.parse(bytes.toString()) as ServerFrame),
    close: (code: number, reason: string) => void ends.push(`${code} ${reason}`),
    terminate: () => void ends.push('terminated'),
  })
  addClient(live, socket as unknown as WebSocket, { key: 'v1', check: async () => true, ...viewer })
  const text = (frame: unknown) => Buffer.from(typeof frame === 'string' ? frame : JSON.stringify(frame))
  return {
    ...{ frames, ends, socket },
    /** Sends a frame. @returns the frames that arrived since */
    async send(frame: unknown, isBinary = false): Promise<ServerFrame[]> {
      socket.emit('message', text(frame), isBinary)
      await settled()
      return frames.splice(0)
    },
    ping: (n: number) => socket.emit('message', text({ t: 'ping', n }), false),
  }
}

test('there are at most 1,000 clients', () => {
  const { live } = channel()
  for (let count = 1; count < LIVE_LIMITS.clientsMax; count++)
    live.clients.add({ viewer: { key: `v${count}` } } as unknown as Client)
  expect(connect(live, { key: 'last' }).ends).toEqual([])
  expect(connect(live, { key: 'more' }).ends).toEqual(['1000 too-many-connections'])
  expect(live.clients.size).toBe(1_000)
})

test('a client may send 256 frames at once and 32 a second; a flooding one is disconnected', () => {
  const { live, clock } = channel()
  const { ping, frames, ends } = connect(live)
  frames.length = 0
  for (let n = 0; n < 256; n++) ping(n)
  expect(frames.length).toBe(256)
  clock.advance(1_000)
  for (let n = 0; n < 32; n++) ping(n)
  expect([frames.length, ends]).toEqual([288, []])
  ping(0)
  expect([frames.at(-1), ends]).toEqual([
    { t: 'bye', code: 'too-many-frames', retryMs: 30_000 },
    ['1000 too-many-frames'],
  ])
  vi.advanceTimersByTime(LIVE_LIMITS.farewellMs - 1)
  expect(ends.length).toBe(1)
  vi.advanceTimersByTime(1)
  expect(ends).toEqual(['1000 too-many-frames', 'terminated'])
})

test('a client that sent nothing for more than 30 s is disconnected', async () => {
  const { live, clock } = channel()
  const silent = connect(live)
  const alive = connect(live)
  clock.advance(1_000)
  alive.ping(1)
  clock.advance(LIVE_LIMITS.silentMs - 1_000)
  await checkViewers(live)
  expect(silent.ends).toEqual([])
  clock.advance(1)
  await checkViewers(live)
  expect([silent.ends, alive.ends, live.clients.size]).toEqual([['terminated'], [], 1])
})
