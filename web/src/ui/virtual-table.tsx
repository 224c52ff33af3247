'use client'
import clsx from 'clsx'
import { useEffect, useRef, useState } from 'react'
import { useScrollHint } from './scroll-hint.ts'
import { BodyRow, Columns, HeadRow, MovedChip, type TableProps, tableStyle, useRows } from './table-rows.tsx'
import { Spacer, useVirtualRows } from './virtual-rows.tsx'

type VirtualTableProps<R> = Omit<TableProps<R>, 'card'> & {
  /** CSS height of the scrolling part; by default a share of the window. */
  readonly height?: string
  /** Pixels; by default from the density. Rows do not wrap. */
  readonly rowHeight?: number
}

const OVERSCAN = 6
const ROW_HEIGHT = 32
const HEAD_HEIGHT = 32
const FIRST_HEIGHT = 560

/** A table of any length: only visible rows are rendered, while `aria-rowcount` counts all of them. */
export function VirtualTable<R>(props: VirtualTableProps<R>) {
  const { label, rowKey, rowHeight, height = 'min(70vh, 60rem)', focus, total, className } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [size, setSize] = useState(rowHeight ?? ROW_HEIGHT)
  useEffect(() => {
    if (rowHeight !== undefined) return
    const byDensity = Number.parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--row'))
    if (byDensity > 0) setSize(byDensity)
  }, [rowHeight])
  const table = useRows(props, (index) => rows.scrollTo(index))
  const rows = useVirtualRows({
    scroller,
    count: table.shown.length,
    height: size,
    headHeight: HEAD_HEIGHT,
    firstHeight: FIRST_HEIGHT,
    overscan: OVERSCAN,
  })
  useScrollHint(scroller)
  const focusAt = focus ? table.keys.indexOf(focus) : -1
  // Scrolls to the row once, not again when rows change.
  useEffect(() => {
    if (focusAt >= 0) rows.scrollTo(focusAt, 'center')
  }, [focus])
  return (
    <>
      <MovedChip table={table} />
      <div className="more-edge min-w-0">
        <div
          ref={scroller}
          className={clsx('overflow-auto overscroll-contain contain-content', className)}
          style={{ maxHeight: height }}
        >
          <table
            aria-label={label}
            aria-rowcount={(total ?? table.shown.length) + 1}
            onKeyDown={table.onKeyDown}
            className="w-full border-separate border-spacing-0 whitespace-nowrap text-table"
            style={tableStyle(props)}
          >
            <Columns {...props} />
            <thead>
              <HeadRow table={table} props={props} />
            </thead>
            <Spacer height={rows.before} />
            <tbody>
              {rows.items.map((item) => {
                const row = table.shown[item.index]
                return row === undefined ? null : (
                  <BodyRow key={rowKey(row)} table={table} props={props} row={row} index={item.index} />
                )
              })}
            </tbody>
            <Spacer height={rows.after} />
          </table>
        </div>
      </div>
    </>
  )
}
