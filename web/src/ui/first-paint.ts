'use client'
/**
 * What the server knew when it wrote the page. The first drawing in the browser repeats what the server drew, from the
 * same values; right after it each component takes the browser's own.
 */
import { createContext, useSyncExternalStore } from 'react'

export type FirstPaint = {
  /** Milliseconds since 1970; 0 when nothing was drawn on the server. */
  readonly at: number
  readonly isNarrow: boolean
}

export const FirstPaintContext = createContext<FirstPaint>({ at: 0, isNarrow: false })

const never = () => () => {}

/** False on the server and in the first drawing: nothing can be clicked yet. */
export function useIsAlive(): boolean {
  return useSyncExternalStore(
    never,
    () => true,
    () => false,
  )
}
