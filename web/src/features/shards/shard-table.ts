'use client'
import * as copy from './list-copy.ts'
import { SHARD_TABLE } from './shard-columns.tsx'
import { type TableLayout, useTableLayout } from './table-layout.ts'

/** Accessible name of the table. */
export const SHARDS_TABLE = copy.list.title

export const useShardTable = (): TableLayout => useTableLayout('shards', SHARD_TABLE)
