/**
 * When requests are to be sent, decided beforehand: an open loop. A generator that waits for replies before it
 * sends on measures a slow server as if no other client had arrived meanwhile ("coordinated omission", G. Tene).
 */

import { type Histogram, percentile } from './histogram.ts'

/** Requests at equal distances, each sending process taking every n-th. */
export type Regular = { kind: 'regular'; requestsPerSecond: number }
/** Everything at once, again and again; `requests` over all connections of all processes. */
export type Spike = { kind: 'spike'; requests: number; periodMs: number }
/** As fast as replies come, `pipelining` requests under way on each connection. Not a schedule: it measures a peak. */
type Closed = { kind: 'closed'; pipelining: number }
export type Pacing = Regular | Spike | Closed

/** Which of the sending processes it is, from 0. */
export type Place = { sender: number; senders: number }

/** The moment request `index` of a sender is intended to be sent, in milliseconds from the start. */
export function intendedMs(pacing: Regular | Spike, index: number, place: Place): number {
  if (pacing.kind === 'regular') return ((index * place.senders + place.sender) * 1000) / pacing.requestsPerSecond
  return Math.floor(index / shareOf(pacing.requests, place)) * pacing.periodMs
}

/** A sender's part of a whole number; the first senders take what does not divide. */
export function shareOf(whole: number, { sender, senders }: Place): number {
  return Math.floor(whole / senders) + (sender < whole % senders ? 1 : 0)
}

/**
 * A sender may be this much late in 99 of 100 sends; a run in which it was later is void. Latencies count from the
 * intended moment, so lateness within the bound makes a result worse, never better. A spike takes its time to write:
 * 100 connections at some 30 µs each.
 */
const LATE_MS_MAX = { regular: 2, spike: 10, closed: Number.POSITIVE_INFINITY } as const

/** Why a stream's run is void, or '' when it counts. */
export function voidReason(pacing: Pacing, { late, unsent }: { late: Histogram; unsent: number }): string {
  if (unsent > 0) return `the generator did not send ${unsent} requests that were due`
  const bound = LATE_MS_MAX[pacing.kind]
  const p99 = percentile(late, 0.99)
  if (p99 > bound) return `the generator was ${p99.toFixed(1)} ms late in 1 of 100 sends, allowed are ${bound} ms`
  return ''
}
