'use client'
import clsx from 'clsx'
import { useEffect, useRef } from 'react'
import { NARROW, useMedia } from './media.ts'
import { useScrollHint } from './scroll-hint.ts'
import { BodyRow, Columns, HeadRow, MovedChip, type TableProps, tableStyle, useRows } from './table-rows.tsx'

export type { Column, Sort, TableProps } from './table-rows.tsx'

/** A table of up to a few hundred rows; VirtualTable is for more. Arrows or j and k move, Enter opens, Space selects. */
export function Table<R>(props: TableProps<R>) {
  const { label, rowKey, card, focus, total, className } = props
  const body = useRef<HTMLTableSectionElement>(null)
  const table = useRows(props, () => {})
  const scroller = useRef<HTMLDivElement>(null)
  const isNarrow = useMedia(NARROW)
  useScrollHint(scroller)
  useEffect(() => {
    if (focus) body.current?.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.scrollIntoView({ block: 'center' })
  }, [focus])
  if (card && isNarrow) {
    return (
      <>
        <MovedChip table={table} />
        <ul aria-label={label} className="flex flex-col gap-2 p-3">
          {table.shown.map((row) => (
            <li
              key={rowKey(row)}
              data-key={rowKey(row)}
              {...props.rowProps?.(row)}
              className={clsx('rounded-panel border border-line p-3', focus === rowKey(row) && 'bg-info-bg')}
            >
              {card(row)}
            </li>
          ))}
        </ul>
      </>
    )
  }
  return (
    <>
      <MovedChip table={table} />
      <div className={clsx('more-edge min-w-0', className)}>
        <div ref={scroller} className="overflow-x-auto">
          <table
            aria-label={label}
            aria-rowcount={(total ?? table.shown.length) + 1}
            onKeyDown={table.onKeyDown}
            className="w-full border-separate border-spacing-0 text-table"
            style={tableStyle(props)}
          >
            <Columns {...props} />
            <thead>
              <HeadRow table={table} props={props} />
            </thead>
            <tbody ref={body}>
              {table.shown.map((row, index) => (
                <BodyRow key={rowKey(row)} table={table} props={props} row={row} index={index} />
              ))}
            </tbody>
          </table>
        </div>
      </div>
    </>
  )
}
