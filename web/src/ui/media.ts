'use client'
import { use, useSyncExternalStore } from 'react'
import { FirstPaintContext } from './first-paint.ts'

/** Below this width short tables become cards. */
export const NARROW = '(max-width: 599.98px)'
/** Whether a media query matches. The server only guesses whether the window is narrow; other queries are false there. */
export function useMedia(query: string): boolean {
  const { isNarrow } = use(FirstPaintContext)
  return useSyncExternalStore(
    (changed) => {
      const list = matchMedia(query)
      list.addEventListener('change', changed)
      return () => list.removeEventListener('change', changed)
    },
    () => matchMedia(query).matches,
    () => query === NARROW && isNarrow,
  )
}
