/**
 * Operations that the tray shows: those that run, and those that ended and were not seen yet. Kept beside the pages, so
 * that going from one to another forgets none.
 */

import { useSyncExternalStore } from 'react'

type Followed = { readonly ids: readonly string[]; readonly isOpen: boolean }

const FOLLOWED_MAX = 20
let followed: Followed = { ids: [], isOpen: false }
const listeners = new Set<() => void>()
const NOTHING: Followed = { ids: [], isOpen: false }

/** Puts operations into the tray; new ones open it. */
export function followOperation(...ids: readonly string[]): void {
  const fresh = ids.filter((id) => !followed.ids.includes(id))
  if (fresh.length === 0) return
  set({ ids: [...fresh, ...followed.ids].slice(0, FOLLOWED_MAX), isOpen: true })
}

/** It was seen how it ended. */
export function dismissOperation(id: string): void {
  set({ ...followed, ids: followed.ids.filter((other) => other !== id) })
}

export function openTray(isOpen: boolean): void {
  if (isOpen !== followed.isOpen) set({ ...followed, isOpen })
}

export function useFollowed(): Followed {
  return useSyncExternalStore(
    subscribe,
    () => followed,
    () => NOTHING,
  )
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function set(next: Followed): void {
  followed = next
  for (const listener of listeners) listener()
}
