/** What a thread searches with. */

import type { CodecList } from '@vacancy/shared'
import { createReplyWriter, type ReplyWriter } from '../protocol/reply.ts'
import { createValues, type Values } from '../protocol/values.ts'
import type { Memory } from '../store/store.ts'
import { createMerge, type Merge } from './merge.ts'
import type { PageKernel, SearchKernel } from './parameters.ts'
import { createProgress, type Progress } from './progress.ts'
import { createSearch, type Search, type SearchLimits } from './query.ts'

/** Stages of a search. One that writes each hit as it finds it writes while it examines. */
export const STAGE = { planning: 0, examining: 1, writing: 2 } as const
const STAGES = Object.keys(STAGE).length

/** The search state of one thread, reused from search to search. */
export type Searcher = {
  readonly memory: Memory
  /** This thread's reader slot (version.ts). */
  readonly reader: number
  /** Address of its parameter block. */
  readonly parameters: number
  readonly kernel: SearchKernel
  readonly pages: PageKernel
  readonly limits: SearchLimits
  readonly values: Values
  readonly search: Search
  /** Of a page that is found in one turn. */
  readonly progress: Progress
  merge: Merge
  readonly writer: ReplyWriter
  readonly monotonicMs: () => number
  /** Milliseconds of the search by STAGE, if they are explained, and when the present stage began. */
  readonly stageMs: Float64Array
  stageSince: number
  /** Work of one slice; infinite when searches are not split. */
  readonly sliceWork: number
  /** Work that split searches may still do in this turn. Without any they wait for the next one. */
  workLeft: number
  /** Facts of the last search, for metrics. */
  hits: number
  examined: number
  retries: number
}

export function createSearcher(options: {
  memory: Memory
  reader: number
  parameters: number
  /** The kernels of the thread. */
  kernels: PageKernel & { readonly search: SearchKernel }
  limits: SearchLimits
  codecs: CodecList
  monotonicMs: () => number
  /** Infinite when absent: searches are not split. */
  sliceWork?: number
}): Searcher {
  const { codecs, kernels, sliceWork = Number.POSITIVE_INFINITY, ...rest } = options
  return {
    ...rest,
    kernel: kernels.search,
    pages: kernels,
    values: createValues(codecs),
    search: createSearch(),
    progress: createProgress(),
    merge: createMerge(),
    writer: createReplyWriter(),
    stageMs: new Float64Array(STAGES),
    stageSince: 0,
    sliceWork,
    workLeft: sliceWork,
    hits: 0,
    examined: 0,
    retries: 0,
  }
}

/** The present stage has ended, and another one begins. */
export function endStage(searcher: Searcher, stage: (typeof STAGE)[keyof typeof STAGE]): void {
  if (!searcher.search.explainStages) return
  const { stageMs, stageSince } = searcher
  searcher.stageSince = searcher.monotonicMs()
  stageMs[stage] = (stageMs[stage] as number) + searcher.stageSince - stageSince
}
