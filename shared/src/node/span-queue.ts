/** Spans that wait to be exported: bounded, one batch at a time, and never waited for by what they are of. */

export const SPAN_LIMITS = {
  /** Further ones are dropped. */
  queued: 2_048,
  batch: 512,
  /** A span waits so long for others. */
  gatherMs: 1_000,
  /** One export, retries included. */
  exportMs: 5_000,
  /** For what is left at the end. */
  closeMs: 2_000,
} as const

export type SpanCounts = { readonly exported: number; readonly dropped: number }

type SpanQueue<Span> = {
  readonly add: (span: Span) => void
  readonly counts: () => SpanCounts
  /** Exports what is left. Resolves at the latest after SPAN_LIMITS.closeMs; what is left then is dropped. */
  readonly close: () => Promise<void>
}

/** @param send exports a batch; `done` has the reason of a failure, '' for success */
export function createSpanQueue<Span>(
  send: (batch: Span[], done: (fault: string) => void) => void,
  onFault: (reason: string, spans: number) => void,
): SpanQueue<Span> {
  let queue: Span[] = []
  let exported = 0
  let dropped = 0
  let isSending = false
  let isClosed = false
  let gathering: NodeJS.Timeout | undefined
  let whenEmpty = (): void => {}

  const settle = (): void => {
    if (queue.length >= SPAN_LIMITS.batch || (isClosed && queue.length > 0)) return flush()
    if (queue.length > 0) gathering ??= setTimeout(flush, SPAN_LIMITS.gatherMs).unref()
    else whenEmpty()
  }

  const flush = (): void => {
    clearTimeout(gathering)
    gathering = undefined
    if (isSending || queue.length === 0) return
    isSending = true
    const batch = queue.splice(0, SPAN_LIMITS.batch)
    let isOver = false
    const end = (fault: string): void => {
      if (isOver) return
      isOver = true
      clearTimeout(late)
      isSending = false
      if (fault === '') exported += batch.length
      else {
        dropped += batch.length
        onFault(fault, batch.length)
      }
      settle()
    }
    // The exporter has a time limit of its own. Should it not keep it, the next batch goes out all the same.
    const late = setTimeout(() => end('no answer'), SPAN_LIMITS.exportMs * 2).unref()
    try {
      send(batch, end)
    } catch (error) {
      end((error as Error).message)
    }
  }

  return {
    add(span) {
      if (isClosed || queue.length >= SPAN_LIMITS.queued) {
        dropped++
        return
      }
      queue.push(span)
      if (!isSending) settle()
    },
    counts: () => ({ exported, dropped }),
    close: () =>
      new Promise((resolve) => {
        isClosed = true
        const timer = setTimeout(() => {
          dropped += queue.length
          queue = []
          resolve()
        }, SPAN_LIMITS.closeMs)
        whenEmpty = () => {
          clearTimeout(timer)
          resolve()
        }
        if (!isSending) settle()
      }),
  }
}
