'use client'
import { use, useEffect, useState, useSyncExternalStore } from 'react'
import { FirstPaintContext } from './first-paint.ts'

/** Below this width short tables become cards. */
export const NARROW = '(max-width: 599.98px)'
/** Below this width there is no room for a second column. */
export const NO_SECOND_COLUMN = '(max-width: 899.98px)'
/** Below this width there is no room for a third column. */
export const NO_THIRD_COLUMN = '(max-width: 1279.98px)'
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

/** Changes with the theme, for canvases. */
export function useColourScheme(): string {
  const [scheme, setScheme] = useState('')
  useEffect(() => {
    const media = matchMedia('(prefers-color-scheme: dark)')
    const update = () => setScheme(`${media.matches} ${document.documentElement.dataset['theme'] ?? ''}`)
    const observer = new MutationObserver(update)
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })
    media.addEventListener('change', update)
    update()
    return () => {
      observer.disconnect()
      media.removeEventListener('change', update)
    }
  }, [])
  return scheme
}
