'use client'
/**
 * What the server knew when it rendered the page. The first render in the browser repeats it with the same values; right
 * after hydration each component uses the browser's own.
 */
import { createContext, useSyncExternalStore } from 'react'

export type FirstPaint = {
  /** Milliseconds since 1970; 0 when the server rendered nothing. */
  readonly at: number
  readonly isNarrow: boolean
}

export const FirstPaintContext = createContext<FirstPaint>({ at: 0, isNarrow: false })

const never = () => () => {}

/** False on the server and in the first render: nothing can be clicked yet. */
export function useIsHydrated(): boolean {
  return useSyncExternalStore(
    never,
    () => true,
    () => false,
  )
}
