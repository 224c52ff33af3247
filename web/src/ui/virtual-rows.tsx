'use client'
/** The rows of a table that are in sight, under a head that stays; the others are room before and after them. */
import { useVirtualizer, type VirtualItem } from '@tanstack/react-virtual'
import { type RefObject, useLayoutEffect, useRef } from 'react'

type VirtualRowsOptions = {
  readonly scroller: RefObject<HTMLElement | null>
  readonly count: number
  /** Pixels of one row, of the head, and of what the server draws: the rows that fit into a usual window. */
  readonly height: number
  readonly headHeight: number
  readonly firstHeight: number
  /** Rows drawn out of sight, before and after. */
  readonly overscan: number
  /** All rows are laid out anew when this is another function. */
  readonly getItemKey: (index: number) => string | number
}

type VirtualRows = {
  readonly items: readonly VirtualItem[]
  /** Pixels that stand for the rows out of sight. */
  readonly before: number
  readonly after: number
  readonly scrollTo: (index: number, align?: 'auto' | 'center') => void
}

export function useVirtualRows(options: VirtualRowsOptions): VirtualRows {
  const { scroller, count, height, headHeight, firstHeight, overscan, getItemKey } = options
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan,
    getItemKey,
    // The head lies before the rows, and on them once they are scrolled.
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

/** Stands for the rows that are not in sight. */
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
