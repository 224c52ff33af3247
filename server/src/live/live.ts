/**
 * Live topics: values that browsers follow over `/api/v1/live`. Each topic has a sequence number that grows with every
 * change. A client that reconnects with its last number gets the missing changes, or the whole value when they are no
 * longer kept.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Clock, systemClock } from '@vacancy/shared'
import { LIVE } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { type WebSocket, WebSocketServer } from 'ws'
import { createAlarm } from '../http/alarm.ts'
import { addClient, checkViewers, dismiss } from './clients.ts'
import { LIVE_LIMITS, type Live, type Viewer } from './state.ts'
import { flushTopics, forgetIdle } from './topics.ts'

export function createLive(options: { readonly server: string; readonly log: Log; readonly clock?: Clock }): Live {
  const { server, log, clock = systemClock } = options
  const live: Live = {
    server,
    log,
    clock,
    webSockets: new WebSocketServer({ noServer: true, maxPayload: LIVE.frameBytesMax, perMessageDeflate: false }),
    topics: new Map(),
    offers: [],
    clients: new Set(),
    lastFrame: undefined,
    framesSent: 0,
    bytesSent: 0,
    alarm: createAlarm(clock, LIVE_LIMITS.flushMs, () => flushTopics(live)),
    checking: undefined,
  }
  live.webSockets.on('connection', (socket: WebSocket, _request: IncomingMessage, viewer: Viewer) =>
    addClient(live, socket, viewer),
  )
  live.alarm.start()
  live.checking = setInterval(() => {
    checkViewers(live).catch((error) => log.error({ err: error }, 'checking live viewers failed'))
    forgetIdle(live)
  }, LIVE_LIMITS.checkMs)
  return live
}

/** Accepts the WebSocket of an authenticated viewer. */
export function acceptClient(live: Live, request: IncomingMessage, socket: Duplex, head: Buffer, viewer: Viewer): void {
  live.webSockets.handleUpgrade(request, socket, head, (webSocket) => {
    live.webSockets.emit('connection', webSocket, request, viewer)
  })
}

/** Ends the connections of a session or token. */
export function endClients(live: Live, key: string): void {
  for (const client of [...live.clients]) if (client.viewer.key === key) dismiss(live, client, 'signed-out', 0)
}

export function liveCounts(live: Live): { readonly clients: number; readonly frames: number; readonly bytes: number } {
  return { clients: live.clients.size, frames: live.framesSent, bytes: live.bytesSent }
}

export async function stopLive(live: Live): Promise<void> {
  live.alarm.stop()
  clearInterval(live.checking)
  for (const client of [...live.clients]) dismiss(live, client, 'stopping', 1_000)
  // Does not wait for browsers that do not respond.
  const late = setTimeout(() => {
    for (const socket of live.webSockets.clients) socket.terminate()
  }, LIVE_LIMITS.stopMs)
  await new Promise<void>((resolve) => live.webSockets.close(() => resolve()))
  clearTimeout(late)
}
