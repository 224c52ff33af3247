'use client'
import clsx from 'clsx'
import { Fragment, type ReactNode, useEffect, useRef } from 'react'
import { NARROW, useMedia } from './media.ts'
import { useScrollHint } from './scroll-hint.ts'
import { BodyRow, Columns, HeadRow, MovedChip, type TableProps, tableStyle, useRows } from './table-rows.tsx'

export type { Column, Sort, TableProps } from './table-rows.tsx'

/** A table of up to a few hundred rows; VirtualTable is for more. Arrows or j and k move, Enter opens, Space selects. */
export function Table<R>(props: TableProps<R>) {
  const { label, rowKey, focus, total, className } = props
  const card = props.card ?? cardOf(props)
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

/** Columns that fit side by side on a phone. */
const FITTING = 3

/** On a phone a row of a wide table is a card: its name, and below it each value with the header of its column. */
function cardOf<R>({ columns, onSelect }: TableProps<R>): ((row: R) => ReactNode) | undefined {
  if (onSelect || columns.filter(({ rank = 1 }) => rank === 1).length <= FITTING) return undefined
  const name = columns.find(({ rowHeader }) => rowHeader) ?? columns[0]
  const others = columns.filter((column) => column !== name && (column.rank ?? 1) <= 2)
  return (row) => (
    <div className="grid gap-1">
      <div className="min-w-0 break-words font-medium">{name?.cell(row)}</div>
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] items-baseline gap-x-4 gap-y-0.5 text-table">
        {others.map(({ id, header, end, cell }) => (
          <Fragment key={id}>
            <dt className="text-text-2">{header}</dt>
            <dd className={end ? 'num' : 'min-w-0 break-words'}>{cell(row)}</dd>
          </Fragment>
        ))}
      </dl>
    </div>
  )
}
