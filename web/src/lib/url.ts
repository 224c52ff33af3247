'use client'
/**
 * What can be linked lives in the URL: filters, sort, tab, selection (docs/design/control-plane.md#pages-and-state).
 * Unknown parameters stay.
 */
import { useCallback, useEffect, useRef, useState } from 'react'
import { setAddress, usePath, useSearch } from './address.tsx'

export type SetOptions = {
  /** A choice makes an entry in the history; typing replaces the last one. */
  readonly push?: boolean
}

/** One query parameter; '' when it is not there, and setting '' or null takes it away. */
export function useUrlParam(name: string): readonly [string, (value: string | null, options?: SetOptions) => void] {
  const search = useSearch()
  const set = useSetUrl()
  const setOne = useCallback(
    (value: string | null, options?: SetOptions) => set({ [name]: value }, options),
    [name, set],
  )
  return [search.get(name) ?? '', setOne]
}

const TYPED_MS = 250

/** A query parameter that is typed: there at once, and in the address a moment after the last key. */
export function useUrlTyped(name: string): readonly [string, (value: string) => void] {
  const [inUrl, setUrl] = useUrlParam(name)
  const [typed, setTyped] = useState<string>()
  const written = useRef<string>(undefined)
  useEffect(() => {
    if (typed === undefined) return
    const timer = setTimeout(() => {
      written.current = typed
      setUrl(typed)
    }, TYPED_MS)
    return () => clearTimeout(timer)
  }, [typed, setUrl])
  // Somebody went back, or followed a link: what was typed gives way to what the address says.
  useEffect(() => {
    if (inUrl !== written.current) setTyped(undefined)
  }, [inUrl])
  // A page that is kept is left, too: when it is seen again the address says what holds.
  useEffect(() => () => setTyped(undefined), [])
  return [typed ?? inUrl, setTyped]
}

/** One of several values; anything else counts as the first, and the first is not written down. */
export function useUrlChoice<V extends string>(
  name: string,
  choices: readonly [V, ...V[]],
): readonly [V, (value: V, options?: SetOptions) => void] {
  const [value, set] = useUrlParam(name)
  const setChoice = useCallback(
    (next: V, options?: SetOptions) => set(next === choices[0] ? '' : next, options),
    [choices, set],
  )
  return [choices.find((choice) => choice === value) ?? choices[0], setChoice]
}

/** Sets several parameters in one step of the history. */
export function useSetUrl(): (values: { readonly [name: string]: string | null }, options?: SetOptions) => void {
  const path = usePath()
  return useCallback(
    (values, { push = false } = {}) => {
      // From the window, not from the last render: two settings in one event must not undo each other.
      const search = new URLSearchParams(location.search)
      for (const [name, value] of Object.entries(values)) {
        if (value) search.set(name, value)
        else search.delete(name)
      }
      const url = search.size === 0 ? path : `${path}?${search}`
      setAddress(url, { push })
    },
    [path],
  )
}
