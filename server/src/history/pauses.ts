/** Write pauses of confirmed transfers, from which the next one is estimated. */
import type { ShardView } from '@vacancy/shared/contract'
import type { HistoryDatabase } from './tables.ts'

const KEPT_PER_SHARD = 20
const KEPT = 2_000

type Pause = { readonly operation: string; readonly shard: string; readonly at: number; readonly milliseconds: number }

export type Pauses = {
  of(shard: string): ShardView['writePause']
  /** Of the last transfers of all shards. */
  ofAll(): ShardView['writePause']
  add(pause: Pause): Promise<void>
  load(): Promise<void>
}

export function createPauses(database: HistoryDatabase): Pauses {
  let kept: readonly Pause[] = []
  return {
    of: (shard) => summaryOf(kept.filter((pause) => pause.shard === shard)),
    ofAll: () => summaryOf(kept),
    async add(pause) {
      kept = [pause, ...kept].slice(0, KEPT)
      await database
        .insertInto('write_pauses')
        .values(pause)
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    },
    async load() {
      const rows = await database.selectFrom('write_pauses').selectAll().orderBy('at', 'desc').limit(KEPT).execute()
      kept = rows.map((row) => ({ ...row, at: Number(row.at) }))
    },
  }
}

function summaryOf(pauses: readonly Pause[]): ShardView['writePause'] {
  const sorted = pauses
    .slice(0, KEPT_PER_SHARD)
    .map(({ milliseconds }) => milliseconds)
    .sort((a, b) => a - b)
  if (sorted.length === 0) return null
  const middle = Math.floor((sorted.length - 1) / 2)
  return { median: sorted[middle] as number, worst: sorted.at(-1) as number, count: sorted.length }
}
