'use client'
/** One clock for all ages on the page. It ticks each second while the tab is visible. */
import { use, useSyncExternalStore } from 'react'
import { useMoment } from '../lib/address.tsx'
import { serverNow } from '../lib/server-time.ts'
import { FirstPaintContext } from './first-paint.ts'

const TICK_MS = 1_000
const readers = new Set<() => void>()
let now = 0
let timer: ReturnType<typeof setInterval> | undefined

/**
 * Milliseconds since 1970 by the control plane's clock, updated each second; in a view of the past its moment. The first render uses the time at which
 * the server wrote the page.
 */
export function useNow(): number {
  const moment = useMoment()
  const now = useWallNow()
  return moment === undefined ? now : Date.parse(moment)
}

/** The time now, also in a view of the past. */
export function useWallNow(): number {
  const { at } = use(FirstPaintContext)
  return useSyncExternalStore(
    follow,
    () => now || serverNow(),
    () => at,
  )
}

function follow(reader: () => void): () => void {
  readers.add(reader)
  if (readers.size === 1) {
    tick()
    timer = setInterval(tick, TICK_MS)
    document.addEventListener('visibilitychange', tick)
  }
  return () => {
    readers.delete(reader)
    if (readers.size > 0) return
    clearInterval(timer)
    document.removeEventListener('visibilitychange', tick)
  }
}

function tick(): void {
  if (document.hidden) return
  now = serverNow()
  for (const reader of readers) reader()
}
