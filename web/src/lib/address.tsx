'use client'
/**
 * The current path and query of the console. The framework tracks the URL as well, but updates as if each page had to be
 * fetched first. Pages that are already in the document are shown on the click.
 */
import { usePathname, useSearchParams } from 'next/navigation'
import {
  createContext,
  type ReactNode,
  startTransition,
  type TransitionStartFunction,
  useContext,
  useEffect,
  useState,
  useTransition,
} from 'react'

import { momentOf } from './past.ts'

type Address = { readonly path: string; readonly search: URLSearchParams }
type Follower = {
  readonly follow: (address: Address) => void
  /** To a page that has to be loaded first. */
  readonly arrive: TransitionStartFunction
  /** Whether a page is rendered and can be shown at once. */
  readonly isDrawn: (path: string) => boolean
}

let follower: Follower | undefined
/** The previous path. */
let pathBefore = ''

/** Several contexts, so that a change of the query renders only the components that read it. */
const PathContext = createContext('')
const SearchContext = createContext(new URLSearchParams())
const MomentContext = createContext<string | undefined>(undefined)
const ArrivingContext = createContext(false)

type AddressProviderProps = {
  readonly isDrawn: (path: string) => boolean
  readonly children: ReactNode
}

/** Wraps everything that reads the URL. */
export function AddressProvider({ isDrawn, children }: AddressProviderProps) {
  // The URL that the server rendered; from then on the browser's own.
  const path = usePathname()
  const search = useSearchParams()
  const [address, follow] = useState<Address>(() => ({ path, search: new URLSearchParams(search) }))
  const [isArriving, arrive] = useTransition()
  useEffect(() => {
    follower = { follow, arrive, isDrawn }
    pathBefore = location.pathname
    addEventListener('popstate', followAddress)
    return () => {
      follower = undefined
      removeEventListener('popstate', followAddress)
    }
  }, [isDrawn])
  return (
    <PathContext value={address.path}>
      <MomentContext value={momentOf(address.search)}>
        <ArrivingContext value={isArriving}>
          <SearchContext value={address.search}>{children}</SearchContext>
        </ArrivingContext>
      </MomentContext>
    </PathContext>
  )
}

export const usePath = (): string => useContext(PathContext)
export const useSearch = (): URLSearchParams => useContext(SearchContext)
/** Whether another page was asked for and is not shown yet. */
export const useIsArriving = (): boolean => useContext(ArrivingContext)
/** The moment of a past view; undefined while the page shows now. */
export const useMoment = (): string | undefined => useContext(MomentContext)

/** Changes the URL of the window, which the framework tracks as well. */
export function setAddress(to: string, { push }: { readonly push: boolean }): void {
  if (push) history.pushState(null, '', to)
  else history.replaceState(null, '', to)
  followAddress()
}

function followAddress(): void {
  if (!follower) return
  const { follow, arrive, isDrawn } = follower
  const { pathname: path } = location
  const address = { path, search: new URLSearchParams(location.search) }
  const isOtherPage = path !== pathBefore
  pathBefore = path
  // A change of the query alone is not urgent: the click has already been acknowledged.
  if (!isOtherPage) startTransition(() => follow(address))
  else if (isDrawn(path)) follow(address)
  else arrive(() => follow(address))
}
