'use client'
import { use, useSyncExternalStore } from 'react'
import { FirstPaintContext } from './first-paint.ts'

/** Below it tables of few rows become cards. */
export const NARROW = '(max-width: 599.98px)'
/** Whether a media query holds. The server can only guess whether the window is narrow; others are false on it. */
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
