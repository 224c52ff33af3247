/** State and text of the live chip. Pure. */
import { duration } from '../../lib/format.ts'
import type { LiveStatus } from '../../lib/live.ts'
import * as copy from './copy.ts'

export type LiveState = 'live' | 'delayed' | 'stale' | 'offline' | 'paused' | 'polling' | 'past'

/** An idle channel has a ping every 5 s; only older values are late. */
const LIVE_MS = 6_000
const DELAYED_MS = 15_000

export function chipOf(
  { link, paused, waiting }: LiveStatus,
  seenAt: number,
  now: number,
  /** When the control plane read the oldest of what pages show, if that is late. */
  oldestReadAt: string | null = null,
): { readonly state: LiveState; readonly text: string } {
  if (link.state === 'offline') {
    const left = Math.max(0, link.retryAt - now)
    return {
      state: 'offline',
      text: left > 0 ? copy.live.retryingIn(Math.ceil(left / 1_000)) : copy.live.retrying,
    }
  }
  if (link.state === 'ended') return { state: 'offline', text: copy.live.signedOut }
  if (paused) return { state: 'paused', text: copy.live.paused(waiting) }
  if (link.state === 'connecting') return { state: 'delayed', text: copy.live.connecting }
  const readAt = oldestReadAt === null ? seenAt : Math.min(seenAt, Date.parse(oldestReadAt))
  const age = Math.max(0, now - readAt)
  if (link.state === 'polling') return { state: 'polling', text: copy.live.polling(duration(age)) }
  if (age <= LIVE_MS) return { state: 'live', text: copy.live.live((age / 1_000).toFixed(1)) }
  if (age <= DELAYED_MS) return { state: 'delayed', text: copy.live.delayed(Math.round(age / 1_000)) }
  return { state: 'stale', text: copy.live.stale(Math.round(age / 1_000)) }
}
