'use client'
/**
 * Virtual rows of equal height below a sticky head: only visible rows are rendered, spacers stand for the others. Rows
 * are known by their index alone, so another order is no reason to lay all of them out again.
 */
import { useVirtualizer, type VirtualItem } from '@tanstack/react-virtual'
import { type RefObject, useLayoutEffect, useRef } from 'react'

type VirtualRowsOptions = {
  readonly scroller: RefObject<HTMLElement | null>
  readonly count: number
  /** Pixels of one row, of the head, and of the part that the server renders. */
  readonly height: number
  readonly headHeight: number
  readonly firstHeight: number
  /** Hidden rows rendered before and after the visible ones. */
  readonly overscan: number
}

type VirtualRows = {
  readonly items: readonly VirtualItem[]
  /** Pixels of the rows before and after. */
  readonly before: number
  readonly after: number
  readonly scrollTo: (index: number, align?: 'auto' | 'center') => void
}

export function useVirtualRows(options: VirtualRowsOptions): VirtualRows {
  const { scroller, count, height, headHeight, firstHeight, overscan } = options
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan,
    // The head is above the rows, and covers them once they are scrolled.
    scrollMargin: headHeight,
    scrollPaddingStart: headHeight,
    initialRect: { width: 1_000, height: firstHeight },
  })
  const measured = useRef(height)
  useLayoutEffect(() => {
    if (measured.current === height) return
    measured.current = height
    rows.measure()
  }, [rows, height])
  const items = rows.getVirtualItems()
  return {
    items,
    before: (items[0]?.start ?? headHeight) - headHeight,
    after: rows.getTotalSize() - ((items.at(-1)?.end ?? headHeight) - headHeight),
    scrollTo: (index, align = 'auto') => rows.scrollToIndex(index, { align }),
  }
}

/** Takes the place of rows that are not rendered. */
export function Spacer({ height }: { readonly height: number }) {
  if (height <= 0) return null
  return (
    <tbody aria-hidden="true">
      <tr>
        <td style={{ height }} />
      </tr>
    </tbody>
  )
}
