'use client'
/** Says that shards changed their state, for who does not see it: one sentence for all of them, and not too often. */

import type { ShardBrief } from '@vacancy/shared/contract'
import { useEffect, useRef } from 'react'
import { counted } from '../../lib/format.ts'
import { announceLive } from '../../ui/announce.ts'

/** The sentence for what changed from one look to the next; '' when nothing did. */
export function stateNews(before: ReadonlyMap<string, string>, shards: readonly ShardBrief[]): string {
  const changed = shards.filter((shard) => before.has(shard.id) && before.get(shard.id) !== shard.state)
  const [one] = changed
  if (!one) return ''
  return changed.length === 1 ? `${one.id}: ${one.message}` : `${counted(changed.length, 'shard')} changed state`
}

export function useStateNews(shards: readonly ShardBrief[] | undefined): void {
  const before = useRef<ReadonlyMap<string, string>>(new Map())
  useEffect(() => {
    if (!shards) return
    const says = stateNews(before.current, shards)
    before.current = new Map(shards.map((shard) => [shard.id, shard.state]))
    if (says !== '') announceLive(says)
  }, [shards])
}
