/** The lists of a router as JSON, for its cache. Pure. */

import { z } from 'zod'
import { type Datasets, type DatasetValue, union } from './datasets.ts'

const value = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('ids'), ids: z.array(z.string()) }),
  z.object({ kind: z.literal('shards'), shards: z.array(z.tuple([z.string(), z.array(z.string())])) }),
  z.object({ kind: z.literal('segments'), zone: z.string().optional(), segments: z.array(z.string()) }),
])

export const storedTables = z.object({
  format: z.literal(1),
  mode: z.enum(['edge', 'zone']),
  zone: z.string(),
  /** Wall clock. */
  saved_at_ms: z.number(),
  epoch: z.string().optional(),
  global_version: z.number().optional(),
  lists: z.array(z.object({ key: z.string(), version: z.number().optional(), value })),
  codecs: z.array(z.string()).optional(),
})
export type StoredTables = z.infer<typeof storedTables>

/** A list of which parts are kept is stored with them, without its version: it must be read again. */
export function storeTables(datasets: Datasets, codecs: readonly string[] | undefined, wallMs: number): StoredTables {
  const { mode, zone, epoch, globalVersion, lists } = datasets
  return {
    format: 1,
    mode,
    zone,
    saved_at_ms: wallMs,
    ...(epoch !== undefined && { epoch }),
    ...(globalVersion !== undefined && { global_version: globalVersion }),
    lists: [...lists].map(([key, { version, value: listed, kept }]) => ({
      key,
      ...(version !== undefined && kept === undefined && { version }),
      value: toStored(union(listed, kept)),
    })),
    ...(codecs && { codecs: [...codecs] }),
  }
}

/** Fills empty datasets. Mode and zone must be the same. */
export function restoreTables(datasets: Datasets, stored: StoredTables): void {
  datasets.epoch = stored.epoch
  datasets.globalVersion = stored.global_version
  for (const { key, version, value: listed } of stored.lists) {
    datasets.lists.set(key, { version, value: fromStored(listed), kept: undefined })
  }
}

function toStored(listed: DatasetValue): z.infer<typeof value> {
  switch (listed.kind) {
    case 'ids':
      return { kind: 'ids', ids: [...listed.ids] }
    case 'shards':
      return { kind: 'shards', shards: [...listed.shards].map(([shard, ids]) => [shard, [...ids]]) }
    case 'segments':
      return {
        kind: 'segments',
        ...(listed.zone !== undefined && { zone: listed.zone }),
        segments: [...listed.segments],
      }
  }
}

function fromStored(stored: z.infer<typeof value>): DatasetValue {
  switch (stored.kind) {
    case 'ids':
      return stored
    case 'shards':
      return { kind: 'shards', shards: new Map(stored.shards) }
    case 'segments':
      return { kind: 'segments', zone: stored.zone, segments: stored.segments }
  }
}
