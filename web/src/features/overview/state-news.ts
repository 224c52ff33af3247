'use client'
/** Announces state changes of shards to screen readers: one sentence for all, rate limited. */

import type { ShardBrief } from '@vacancy/shared/contract'
import { useEffect, useRef } from 'react'
import { announceLive } from '../../ui/announce.ts'
import * as copy from './copy.ts'

/** The announcement of changed states; '' without changes. */
export function stateNews(before: ReadonlyMap<string, string>, shards: readonly ShardBrief[]): string {
  const changed = shards.filter((shard) => before.has(shard.id) && before.get(shard.id) !== shard.state)
  const [one] = changed
  if (!one) return ''
  return changed.length === 1 ? `${one.id}: ${one.message}` : copy.overview.shardsChanged(changed.length)
}

export function useStateNews(shards: readonly ShardBrief[] | undefined): void {
  const before = useRef<ReadonlyMap<string, string>>(new Map())
  useEffect(() => {
    if (!shards) return
    const text = stateNews(before.current, shards)
    before.current = new Map(shards.map((shard) => [shard.id, shard.state]))
    if (text !== '') announceLive(text)
  }, [shards])
}
