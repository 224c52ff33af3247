'use client'
/** Runs of the page: one at a time; the last result stays until the next one arrives. */
import { useQueryClient } from '@tanstack/react-query'
import type { CommandAnswer, QueryAnswer } from '@vacancy/shared/contract'
import { useEffect, useRef, useState } from 'react'
import { call } from '../../lib/api.ts'
import { counted } from '../../lib/format.ts'
import { announce } from '../../ui/announce.ts'
import { isWrite } from './catalogue.ts'
import { HISTORY_KEY } from './keys.ts'
import type { Draft } from './request.ts'
import { type Repeats, timesText } from './timing.ts'

const MICROS = 1_000
/** Repeats measure times rather than create load: at most 50 per second. */
const REPEAT_MS = 20
/** Interval of rendering during repeats, so that rendering does not distort the times. */
const SHOW_MS = 100

export type Run =
  | { readonly state: 'none' }
  | { readonly state: 'running'; readonly before: Done | undefined }
  | Done
  | { readonly state: 'failed'; readonly error: unknown; readonly draft: Draft; readonly before: Done | undefined }

/** A result with its measurements, from a run or saved. */
export type Taken = {
  readonly answer: CommandAnswer
  /** The request of this result; the form may have changed since. */
  readonly draft: Draft
  readonly browserMicros: number
  readonly repeats: Repeats | undefined
}

export type Done = Taken & {
  readonly state: 'done'
  readonly answer: QueryAnswer
  readonly isRepeating: boolean
}

export function useRuns() {
  const [run, setRun] = useState<Run>({ state: 'none' })
  const queries = useQueryClient()
  const current = useRef<AbortController>(undefined)
  const before = run.state === 'done' ? run : run.state === 'none' ? undefined : run.before
  // The page was left. The control plane completes a write all the same.
  useEffect(() => () => current.current?.abort(), [])

  async function request(draft: Draft, shard: string | undefined, confirm: string, keep: boolean, signal: AbortSignal) {
    const startedMs = performance.now()
    const answer = await call('POST /api/v1/query', {
      body: {
        command: draft.command,
        fields: { ...draft.fields } as never,
        write: isWrite(draft.command),
        confirm,
        keep,
        ...(shard && { shard }),
        ...(draft.node && { node: draft.node }),
      },
      signal,
    })
    return { answer, browserMicros: (performance.now() - startedMs) * MICROS }
  }

  async function start(draft: Draft, shard: string | undefined, { times = 1, confirm = '' } = {}): Promise<void> {
    current.current?.abort()
    const own = new AbortController()
    current.current = own
    setRun({ state: 'running', before })
    try {
      const first = await request(draft, shard, confirm, true, own.signal)
      if (own.signal.aborted) return
      const done: Done = { state: 'done', draft, ...first, repeats: undefined, isRepeating: times > 1 }
      setRun(done)
      announce(`${counted(first.answer.count, 'result')}`)
      void queries.invalidateQueries({ queryKey: HISTORY_KEY })
      if (times > 1) await repeat(done, shard, times, own.signal)
    } catch (error) {
      if (own.signal.aborted) return
      setRun({ state: 'failed', error, draft, before })
      void queries.invalidateQueries({ queryKey: HISTORY_KEY })
    }
  }

  /** Repeats the request and keeps only times. Failures are counted. */
  async function repeat(done: Done, shard: string | undefined, wanted: number, signal: AbortSignal): Promise<void> {
    const runs = [done.answer.totalMicros]
    let failed = 0
    let shownMs = performance.now()
    const isOver = () => runs.length + failed >= wanted
    const show = () => {
      shownMs = performance.now()
      setRun({ ...done, repeats: { runs: [...runs], failed, wanted }, isRepeating: !isOver() })
    }
    show()
    while (!isOver()) {
      const startedMs = performance.now()
      try {
        runs.push((await request(done.draft, shard, '', false, signal)).answer.totalMicros)
      } catch {
        failed += 1
      }
      if (!isOver()) {
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, REPEAT_MS - (performance.now() - startedMs))))
      }
      if (signal.aborted) return
      if (isOver() || performance.now() - shownMs >= SHOW_MS) show()
    }
    announce(timesText({ runs, failed, wanted }))
  }

  /** Keeps the measurements made so far. */
  function stop(): void {
    current.current?.abort()
    if (run.state === 'done') setRun({ ...run, isRepeating: false })
    else setRun(before ? { ...before, isRepeating: false } : { state: 'none' })
  }

  return { run, before, start, stop }
}
