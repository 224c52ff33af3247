'use client'
/** One clock for everything that shows an age: a second hand that stands still while nobody looks. */
import { useSyncExternalStore } from 'react'

const TICK_MS = 1_000
const readers = new Set<() => void>()
let now = 0
let timer: ReturnType<typeof setInterval> | undefined

/** Milliseconds since 1970, a new value each second; 0 on the server, where no age is ever drawn. */
export function useNow(): number {
  return useSyncExternalStore(
    follow,
    () => now || Date.now(),
    () => 0,
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
  now = Date.now()
  for (const reader of readers) reader()
}
