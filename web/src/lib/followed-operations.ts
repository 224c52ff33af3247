/**
 * Operations shown in the tray of this tab: running ones, ended ones that were not seen yet, and the last one started on
 * each shard. Kept outside the pages, so that navigation keeps them.
 */

import type { Operation } from '@vacancy/shared/contract'
import { useSyncExternalStore } from 'react'

export type Followed = {
  /** Operations in the tray, newest first. */
  readonly ids: readonly string[]
  readonly isOpen: boolean
  /** By shard. An operation that is refused at once ends before the shard reports it. */
  readonly startedOn: { readonly [shard: string]: string }
}

const FOLLOWED_MAX = 20
const SEEN_MAX = 1_000
/** Dismissed operations. The list of running ones may still contain one for a moment, which must not show it again. */
const seen = new Set<string>()
const NOTHING: Followed = { ids: [], isOpen: false, startedOn: {} }
let followed = NOTHING
const listeners = new Set<() => void>()

/** Adds operations to the tray; new ones open it. */
export function followOperations(ids: readonly string[]): void {
  const fresh = ids.filter((id) => !followed.ids.includes(id) && !seen.has(id))
  if (fresh.length === 0) return
  set({ ...followed, ids: [...fresh, ...followed.ids].slice(0, FOLLOWED_MAX), isOpen: true })
}

/** Adds an operation started in this tab. */
export function followStarted({ id, shard }: Pick<Operation, 'id' | 'shard'>): void {
  set({ ...followed, startedOn: { ...followed.startedOn, [shard]: id } })
  followOperations([id])
}

/** Removes an operation whose outcome was seen. */
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
