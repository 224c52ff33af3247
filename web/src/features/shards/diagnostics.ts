/** Downloads state, events and configuration of a shard as one file. The control plane masks secrets. */

import type { ShardView } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { serverNow } from '../../lib/server-time.ts'
import { toast } from '../../ui/toast.tsx'
import * as copy from './shard-copy.ts'

const EVENTS = 500

export function useDownloadDiagnostics(shard: ShardView): () => Promise<void> {
  return async () => {
    const params = { shard: shard.id }
    const [events, config] = await Promise.allSettled([
      call('GET /api/v1/shards/{shard}/events', { params, query: { limit: EVENTS } }),
      call('GET /api/v1/shards/{shard}/config', { params }),
    ])
    const at = new Date(serverNow()).toISOString()
    save(`vacancy-${shard.id}-${at.slice(0, 19).replaceAll(':', '')}.json`, {
      at,
      shard,
      events: readOf(events),
      config: readOf(config),
    })
    toast({ message: copy.shard.diagnosticsSaved(shard.id), level: 'ok' })
  }
}

/** A part that could not be read is noted in the file; the rest is saved. */
function readOf(result: PromiseSettledResult<unknown>): unknown {
  return result.status === 'fulfilled' ? result.value : { notRead: String(result.reason) }
}

function save(name: string, value: unknown): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2)], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
