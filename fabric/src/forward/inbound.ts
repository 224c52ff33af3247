/**
 * One client of a router or bridge: bytes → requests → replies, with a bound on everything that it can make this
 * process keep (docs/design/fabric.md#clients).
 */

import { createFrameReader, isMidFrame } from './frames.ts'
import { createOutbox, queuedBytes } from './outbox.ts'
import type { Inbound, InboundLimits, Login } from './state.ts'
import type { Wire } from './world.ts'

export function createInbound(wire: Wire, remote: string, login: Login, limits: InboundLimits, nowMs: number): Inbound {
  return {
    wire,
    remote,
    outbox: createOutbox(wire),
    reader: createFrameReader({ ...limits, requests: true }),
    lanes: new Map(),
    isRouter: false,
    login,
    inFlight: 0,
    isPaused: false,
    isClosed: false,
    isLast: false,
    heardMs: nowMs,
    partialMs: 0,
    stalledMs: 0,
  }
}

/** After bytes, replies and drains: stops or resumes reading. */
export function adjustReading(inbound: Inbound, limits: InboundLimits, nowMs: number): void {
  const isStalled = queuedBytes(inbound.outbox) > limits.queuedBytesMax
  if (!isStalled) inbound.stalledMs = 0
  else if (inbound.stalledMs === 0) inbound.stalledMs = nowMs
  const shouldPause = isStalled || inbound.inFlight >= limits.inFlightMax
  if (shouldPause === inbound.isPaused) return
  inbound.isPaused = shouldPause
  if (shouldPause) inbound.wire.pause()
  else inbound.wire.resume()
}

/** After bytes: notes when an unfinished frame began. */
export function notePartial(inbound: Inbound, nowMs: number): void {
  if (!isMidFrame(inbound.reader)) inbound.partialMs = 0
  else if (inbound.partialMs === 0) inbound.partialMs = nowMs
}

/** Why the connection must be closed now; '' = it may stay. */
export function overdue(inbound: Inbound, limits: InboundLimits, nowMs: number): string {
  if (inbound.stalledMs > 0 && nowMs - inbound.stalledMs > limits.stalledMsMax) return 'replies are not read'
  if (inbound.isPaused) return ''
  if (inbound.partialMs > 0 && nowMs - inbound.partialMs > limits.frameMsMax) return 'a frame is not finished'
  if (inbound.inFlight === 0 && nowMs - inbound.heardMs > limits.idleMsMax) return 'idle'
  return ''
}
