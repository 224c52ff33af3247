/**
 * One client of a router or bridge: bytes → requests → replies, with a bound on everything that it can make this
 * process keep (docs/design/fabric.md#clients).
 */

import type { Role } from '@vacancy/shared/node'
import { createFrameReader, type FrameReader, isMidFrame } from './frames.ts'
import { createOutbox, type Outbox, queuedBytes } from './outbox.ts'
import type { WriteLane } from './request.ts'
import type { Wire } from './world.ts'

export type InboundLimits = {
  readonly frameBytesMax: number
  /** Larger frames up to this size are skipped and refused. */
  readonly skipBytesMax: number
  readonly rubbishBytesMax: number
  /** Requests in flight beyond which the connection is not read. */
  readonly inFlightMax: number
  /** Replies that wait for the client, beyond which its connection is not read. */
  readonly queuedBytesMax: number
  /** How long a client may leave more than that unread. */
  readonly stalledMsMax: number
  /** From the first byte of a frame to its last. */
  readonly frameMsMax: number
  /** Since the last byte. */
  readonly idleMsMax: number
}

export type Inbound = {
  readonly wire: Wire
  readonly remote: string
  readonly outbox: Outbox
  readonly reader: FrameReader
  readonly lanes: Map<string, WriteLane>
  /** Undefined until LOGIN, where that is required. */
  role: Role | undefined
  inFlight: number
  isPaused: boolean
  isClosed: boolean
  /** The client sends no more; the connection closes with the last reply. */
  isLast: boolean
  heardMs: number
  /** When the unfinished frame began; 0 = there is none. */
  partialMs: number
  /** Since when replies are not read; 0 = they are. */
  stalledMs: number
}

export function createInbound(
  wire: Wire,
  remote: string,
  role: Role | undefined,
  limits: InboundLimits,
  nowMs: number,
): Inbound {
  return {
    wire,
    remote,
    outbox: createOutbox(wire),
    reader: createFrameReader({ ...limits, requests: true }),
    lanes: new Map(),
    role,
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
