'use client'
import { useSyncExternalStore } from 'react'

/** Whether a media query holds; false on the server. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (changed) => {
      const list = matchMedia(query)
      list.addEventListener('change', changed)
      return () => list.removeEventListener('change', changed)
    },
    () => matchMedia(query).matches,
    () => false,
  )
}

/** Below it tables of few rows become cards. */
export const NARROW = '(max-width: 599.98px)'
export const REDUCED_MOTION = '(prefers-reduced-motion: reduce)'
