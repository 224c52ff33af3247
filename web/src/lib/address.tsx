'use client'
/**
 * Where the console is: the path and what stands behind it. The framework follows the address, too, but always in its own
 * time, as for a page that must be fetched first. What stands in the document already is shown with the click.
 */
import { usePathname, useSearchParams } from 'next/navigation'
import { createContext, type ReactNode, startTransition, useContext, useEffect, useState } from 'react'

type Address = { readonly path: string; readonly search: URLSearchParams }
type Follower = {
  readonly follow: (address: Address) => void
  /** Whether a page can be shown at once. */
  readonly isDrawn: (path: string) => boolean
}

let follower: Follower | undefined
/** The path that was followed last. */
let pathBefore = ''

/** Two, so that a filter or a tab draws only those anew that read what stands behind the path. */
const PathContext = createContext('')
const SearchContext = createContext(new URLSearchParams())

type AddressProviderProps = {
  readonly isDrawn: (path: string) => boolean
  readonly children: ReactNode
}

/** Once, around everything that asks for the address. */
export function AddressProvider({ isDrawn, children }: AddressProviderProps) {
  // What the server wrote the page for; from then on the browser's own.
  const path = usePathname()
  const search = useSearchParams()
  const [address, follow] = useState<Address>(() => ({ path, search: new URLSearchParams(search) }))
  useEffect(() => {
    follower = { follow, isDrawn }
    pathBefore = location.pathname
    addEventListener('popstate', followAddress)
    return () => {
      follower = undefined
      removeEventListener('popstate', followAddress)
    }
  }, [isDrawn])
  return (
    <PathContext value={address.path}>
      <SearchContext value={address.search}>{children}</SearchContext>
    </PathContext>
  )
}

export const usePath = (): string => useContext(PathContext)
export const useSearch = (): URLSearchParams => useContext(SearchContext)

/** Puts another address into the window; in step with it for what the framework keeps. */
export function setAddress(to: string, { push }: { readonly push: boolean }): void {
  if (push) history.pushState(null, '', to)
  else history.replaceState(null, '', to)
  followAddress()
}

function followAddress(): void {
  if (!follower) return
  const { follow, isDrawn } = follower
  const { pathname: path } = location
  const address = { path, search: new URLSearchParams(location.search) }
  const isOtherPage = path !== pathBefore
  pathBefore = path
  // A part of the address that only a page reads may take its time: the click that set it has been answered.
  if (isOtherPage && isDrawn(path)) follow(address)
  else startTransition(() => follow(address))
}
