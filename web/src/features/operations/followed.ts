/**
 * Operations that somebody in this tab follows: those that run, those that ended and were not seen yet, and the last one
 * started on each shard. Kept beside the pages, so that going from one to another forgets none.
 */

import type { Operation } from '@vacancy/shared/contract'
import { useSyncExternalStore } from 'react'

export type Followed = {
  /** In the tray, the newest first. */
  readonly ids: readonly string[]
  readonly isOpen: boolean
  /** By shard: an operation that is refused at once is over before the shard ever tells of it. */
  readonly startedOn: { readonly [shard: string]: string }
}

const FOLLOWED_MAX = 20
const SEEN_MAX = 1_000
/** Ends that were seen. The list of what runs may still name one of them for a moment: it does not come back by that. */
const seen = new Set<string>()
const NOTHING: Followed = { ids: [], isOpen: false, startedOn: {} }
let followed = NOTHING
const listeners = new Set<() => void>()

/** Puts operations into the tray; new ones open it. */
export function followOperations(ids: readonly string[]): void {
  const fresh = ids.filter((id) => !followed.ids.includes(id) && !seen.has(id))
  if (fresh.length === 0) return
  set({ ...followed, ids: [...fresh, ...followed.ids].slice(0, FOLLOWED_MAX), isOpen: true })
}

/** One that was started in this tab. */
export function followStarted({ id, shard }: Pick<Operation, 'id' | 'shard'>): void {
  set({ ...followed, startedOn: { ...followed.startedOn, [shard]: id } })
  followOperations([id])
}

/** It was seen how it ended. */
export function dismissOperation(id: string): void {
  if (seen.size >= SEEN_MAX) seen.clear()
  seen.add(id)
  if (followed.ids.includes(id)) set({ ...followed, ids: followed.ids.filter((other) => other !== id) })
}

export function openTray(isOpen: boolean): void {
  if (isOpen !== followed.isOpen) set({ ...followed, isOpen })
}

export function useFollowed(): Followed {
  return useSyncExternalStore(subscribe, readFollowed, () => NOTHING)
}

export function readFollowed(): Followed {
  return followed
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function set(next: Followed): void {
  followed = next
  for (const listener of listeners) listener()
}
