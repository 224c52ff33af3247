/** What the live chip says, of how the connection is and when it was heard. */
import { count, duration } from '../../lib/format.ts'
import type { LiveStatus } from '../../lib/live.ts'

export type LiveState = 'live' | 'delayed' | 'stale' | 'offline' | 'paused' | 'polling'

/** A quiet cluster is heard at each ping, every 5 s: only what is older is late. */
const LIVE_MS = 6_000
const DELAYED_MS = 15_000

export function chipOf(
  { link, paused, waiting }: LiveStatus,
  seenAt: number,
  now: number,
): { readonly state: LiveState; readonly says: string } {
  if (link.state === 'offline') {
    const left = Math.max(0, link.retryAt - now)
    return {
      state: 'offline',
      says: left > 0 ? `Disconnected, retrying in ${Math.ceil(left / 1_000)} s` : 'Disconnected, retrying',
    }
  }
  if (link.state === 'ended') return { state: 'offline', says: 'Signed out' }
  if (paused)
    return { state: 'paused', says: `Paused, ${waiting === 1 ? '1 change' : `${count(waiting)} changes`} waiting` }
  if (link.state === 'connecting') return { state: 'delayed', says: 'Connecting' }
  const age = Math.max(0, now - seenAt)
  if (link.state === 'polling') return { state: 'polling', says: `Polling ${duration(age)}` }
  if (age <= LIVE_MS) return { state: 'live', says: `Live ${(age / 1_000).toFixed(1)} s` }
  if (age <= DELAYED_MS) return { state: 'delayed', says: `Delayed ${Math.round(age / 1_000)} s` }
  return { state: 'stale', says: `Stale ${Math.round(age / 1_000)} s` }
}
