'use client'
import { useVirtualizer } from '@tanstack/react-virtual'
import clsx from 'clsx'
import { useCallback, useEffect, useRef, useState } from 'react'
import { BodyRow, Columns, HeadRow, MovedChip, type TableProps, useRows } from './table-rows.tsx'

type VirtualTableProps<R> = Omit<TableProps<R>, 'card'> & {
  /** Of the part that scrolls, as CSS; otherwise what the window leaves. */
  readonly height?: string
  /** Pixels; by the density otherwise. Rows do not wrap. */
  readonly rowHeight?: number
}

const OVERSCAN = 6
const ROW_HEIGHT = 32
const HEAD_HEIGHT = 32
const FIRST_RECT = { width: 1_000, height: 560 }

/** A table of any length: only the rows in sight are in the page, and it stays a table with all of its count. */
export function VirtualTable<R>(props: VirtualTableProps<R>) {
  const { label, rowKey, rowHeight, height = 'min(70vh, 60rem)', focus, total, className } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [size, setSize] = useState(rowHeight ?? ROW_HEIGHT)
  useEffect(() => {
    if (rowHeight !== undefined) return
    const byDensity = Number.parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--row'))
    if (byDensity > 0) setSize(byDensity)
  }, [rowHeight])
  const table = useRows(props, (index) => rows.scrollToIndex(index))
  // All rows are laid out anew when this is another function.
  const getItemKey = useCallback((index: number) => table.keys[index] ?? index, [table.keys])
  const rows = useVirtualizer({
    count: table.shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => size,
    overscan: OVERSCAN,
    getItemKey,
    // The head lies before the rows, and on them once they are scrolled.
    scrollMargin: HEAD_HEIGHT,
    scrollPaddingStart: HEAD_HEIGHT,
    // The server draws the rows that fit into a usual window.
    initialRect: FIRST_RECT,
  })
  const measured = useRef(size)
  useEffect(() => {
    if (measured.current === size) return
    measured.current = size
    rows.measure()
  }, [rows, size])
  const focusAt = focus ? table.keys.indexOf(focus) : -1
  // Lands once on a row, and does not come back to it when rows change.
  useEffect(() => {
    if (focusAt >= 0) rows.scrollToIndex(focusAt, { align: 'center' })
  }, [focus])
  const items = rows.getVirtualItems()
  const before = (items[0]?.start ?? HEAD_HEIGHT) - HEAD_HEIGHT
  const after = rows.getTotalSize() - ((items.at(-1)?.end ?? HEAD_HEIGHT) - HEAD_HEIGHT)
  return (
    <>
      <MovedChip table={table} />
      <div
        ref={scroller}
        className={clsx('min-w-0 overflow-auto overscroll-contain', className)}
        style={{ maxHeight: height }}
      >
        <table
          aria-label={label}
          aria-rowcount={(total ?? table.shown.length) + 1}
          onKeyDown={table.onKeyDown}
          className="w-full border-separate border-spacing-0 whitespace-nowrap text-table"
        >
          <Columns {...props} />
          <thead>
            <HeadRow table={table} props={props} />
          </thead>
          <Spacer height={before} />
          <tbody>
            {items.map((item) => {
              const row = table.shown[item.index]
              return row === undefined ? null : (
                <BodyRow key={rowKey(row)} table={table} props={props} row={row} index={item.index} />
              )
            })}
          </tbody>
          <Spacer height={after} />
        </table>
      </div>
    </>
  )
}

/** Stands for the rows that are not in sight. */
export function Spacer({ height }: { height: number }) {
  if (height <= 0) return null
  return (
    <tbody aria-hidden="true">
      <tr>
        <td style={{ height }} />
      </tr>
    </tbody>
  )
}
