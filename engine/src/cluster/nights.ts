/**
 * Reads the history of a night (docs/design/storage.md#history-of-a-night): the replica thread has the state and the
 * ledger, the bulk thread reads the log.
 */

import type { ToBulk } from '../snapshot/bulk-worker.ts'
import { type NightNow, nightNow } from '../store/night-now.ts'
import { findStay } from '../store/stays.ts'
import type { Store } from '../store/store.ts'
import { isClosed } from '../store/version.ts'
import type { NightAsk, NightPart, SearchFrom } from '../wal/night-log.ts'
import type { Replica } from './replica-state.ts'

/** The night as it is now, and what a part of the log has of it. */
export type NightRead = {
  readonly now: NightNow
  readonly part: NightPart
  /** Stays of the part that the ledger has with lines of other nights only: their id is used for something else now. */
  readonly others: readonly string[]
}

export function nightRead(store: Store, now: NightNow, part: NightPart): NightRead {
  const known = new Set(now.stays.map(({ stay }) => stay))
  const named = new Set(part.mentions.flatMap((mention) => ('stay' in mention ? mention.stay : [])))
  const others = [...named].filter((id) => !known.has(id) && findStay(store, Buffer.from(id, 'hex'), 0) !== 0)
  return { now, part, others }
}

type NightRequest = { readonly id: number; readonly ask: NightAsk; readonly from: SearchFrom | undefined }

/** @param send gets what was read, or why nothing was */
export function createNightReads(
  toBulk: (message: ToBulk) => void,
  send: (id: number, read: NightRead | string) => void,
) {
  const waiting = new Map<number, { readonly store: Store; readonly now: NightNow }>()
  return {
    read({ raft }: Replica, store: Store, { id, ask, from }: NightRequest): void {
      if (isClosed(store.memory)) return send(id, 'the data of the node are being replaced')
      const now = nightNow(store, raft.applied, ask.property, ask.day)
      waiting.set(id, { store, now })
      const stays = now.stays.map(({ stay }) => stay)
      toBulk({ type: 'night', id, ask, from: from ?? { below: now.index + 1 }, stays })
    },
    onPart(id: number, part: NightPart | string): void {
      const asked = waiting.get(id)
      waiting.delete(id)
      if (!asked) return
      send(id, typeof part === 'string' ? part : nightRead(asked.store, asked.now, part))
    },
  }
}
