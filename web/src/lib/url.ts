'use client'
/**
 * State that can be linked is in the URL: filters, sort, tab, selection (docs/design/console.md#pages-and-state).
 * Unknown parameters are kept.
 */
import { useCallback, useEffect, useRef, useState } from 'react'
import { setAddress, usePath, useSearch } from './address.tsx'

export type SetOptions = {
  /** Adds a history entry instead of replacing the current one. */
  readonly push?: boolean
}

/** One query parameter; '' when absent. Setting '' or null removes it. */
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

/** A query parameter of a text field: the value changes at once, the URL after a pause in typing. */
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
  // After back, forward or a link the URL replaces the typed text.
  useEffect(() => {
    if (inUrl !== written.current) setTyped(undefined)
  }, [inUrl])
  // A kept page that is shown again takes its value from the URL.
  useEffect(() => () => setTyped(undefined), [])
  return [typed ?? inUrl, setTyped]
}

/** One of several values. Unknown values count as the first one, which is left out of the URL. */
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

/** Sets several parameters in one history entry. */
export function useSetUrl(): (values: { readonly [name: string]: string | null }, options?: SetOptions) => void {
  const path = usePath()
  return useCallback(
    (values, { push = false } = {}) => {
      // From the window, not the last render: two updates in one event must not undo each other.
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
