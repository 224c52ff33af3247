'use client'
/** Shared by plain and virtual tables: columns, order, selection, keys. */
import clsx from 'clsx'
import {
  type CSSProperties,
  type KeyboardEvent,
  type MouseEvent,
  memo,
  type ReactNode,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import { Icon } from '../icons/icon.tsx'
import { navigate } from '../lib/navigate.ts'
import { COLUMN_PX, ColumnEdge, type Widths } from './column-edge.tsx'
import * as copy from './data-copy.ts'
import { keptOrder } from './kept-order.ts'

export type Column<R> = {
  readonly id: string
  readonly header: string
  readonly cell: (row: R) => ReactNode
  /** Aligned to the end, for numbers. */
  readonly end?: boolean
  /** Makes the column sortable; ascending order. */
  readonly compare?: (a: R, b: R) => number
  /** Less important columns are hidden first: 2 below 600 px, 3 below 900, 4 below 1280. */
  readonly rank?: 1 | 2 | 3 | 4
  readonly width?: string
  readonly tip?: string
  /** Names the row for screen readers, and stays in view when the table scrolls sideways. */
  readonly rowHeader?: boolean
  /** Stays in view beside the one that names the row, which it follows. */
  readonly pinned?: boolean
  readonly className?: string
}

export type Sort = { readonly column: string; readonly down: boolean }
type RowData = { readonly [attribute: `data-${string}`]: string | number | undefined }

export type TableProps<R> = {
  /** Accessible name: "Members". */
  readonly label: string
  readonly rows: readonly R[]
  readonly columns: readonly Column<R>[]
  readonly rowKey: (row: R) => string
  /** Target of Enter or a click on the row. */
  readonly href?: (row: R) => string
  readonly onOpen?: (row: R) => void
  /** Set by pages that keep the sort in the URL; without it the table keeps its own. */
  readonly sort?: Sort | undefined
  readonly onSort?: (sort: Sort) => void
  /** Changes when the user changes the filter: then all rows are sorted again. */
  readonly orderKey?: string
  readonly rowProps?: (row: R) => RowData
  readonly selected?: ReadonlySet<string>
  readonly onSelect?: (selected: ReadonlySet<string>) => void
  /** Key of the row to scroll to and mark. */
  readonly focus?: string | null | undefined
  /** Below 600 px each row is a card. */
  readonly card?: (row: R) => ReactNode
  /** Number of all rows, if more exist than are given. */
  readonly total?: number
  readonly className?: string
  /** Set once the user resized a column: then every column has a width and content is clipped. */
  readonly widths?: Widths | undefined
  /** Makes columns resizable by their header edges. */
  readonly onWidths?: (widths: Widths) => void
}

const RANKS = { 1: '', 2: 'max-sm:hidden', 3: 'max-md:hidden', 4: 'max-lg:hidden' } as const

export type Rows<R> = ReturnType<typeof useRows<R>>

export function useRows<R>(props: TableProps<R>, scrollTo: (index: number) => void) {
  const { rows, columns, rowKey, href, onOpen, selected, onSelect, orderKey = '' } = props
  const [ownSort, setOwnSort] = useState<Sort>()
  const sort = props.onSort ? props.sort : (ownSort ?? props.sort)
  const sorted = useMemo(() => sortRows(rows, columns, sort), [rows, columns, sort])
  // Keys depend on the rows alone, although `rowKey` may be a new function on each render. Scrolling ten thousand rows
  // must not compute them again.
  const sortedKeys = useMemo(() => sorted.map(rowKey), [sorted])

  const sortId = `${sort?.column} ${sort?.down} ${orderKey}`
  const [kept, setKept] = useState({ sortId, keys: sortedKeys })
  if (kept.sortId !== sortId) setKept({ sortId, keys: sortedKeys })
  const isKept = sort !== undefined && kept.sortId === sortId
  const keys = useMemo(
    () => (isKept && kept.keys !== sortedKeys ? keptOrder(kept.keys, sortedKeys) : sortedKeys),
    [isKept, kept, sortedKeys],
  )
  const shown = useMemo(() => inOrderOf(keys, sorted, sortedKeys), [keys, sorted, sortedKeys])

  const [active, setActive] = useState<string>()
  const activeKey = active ?? props.focus ?? ''
  const activeAt = useMemo(() => (activeKey === '' ? 0 : Math.max(0, keys.indexOf(activeKey))), [keys, activeKey])
  const isMoved = useMemo(
    () => sort !== undefined && keys !== sortedKeys && keys.some((key, at) => key !== sortedKeys[at]),
    [sort, keys, sortedKeys],
  )

  const open = (row: R) => {
    if (onOpen) onOpen(row)
    else if (href) navigate(href(row))
  }
  const select = (key: string) => {
    const next = new Set(selected)
    if (!next.delete(key)) next.add(key)
    onSelect?.(next)
  }
  const goTo = (index: number, table: Element) => {
    const to = Math.min(Math.max(index, 0), keys.length - 1)
    const key = keys[to]
    if (key === undefined) return
    setActive(key)
    scrollTo(to)
    // A virtual row may be rendered only after the scroll.
    requestAnimationFrame(() => table.querySelector<HTMLElement>(`tr[data-key="${CSS.escape(key)}"]`)?.focus())
  }
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    const row = shown[activeAt]
    const isOnRow = event.target instanceof HTMLTableRowElement
    const act = {
      j: () => goTo(activeAt + 1, event.currentTarget),
      k: () => goTo(activeAt - 1, event.currentTarget),
      ArrowDown: () => goTo(activeAt + 1, event.currentTarget),
      ArrowUp: () => goTo(activeAt - 1, event.currentTarget),
      PageDown: () => goTo(activeAt + 10, event.currentTarget),
      PageUp: () => goTo(activeAt - 10, event.currentTarget),
      Home: () => goTo(0, event.currentTarget),
      End: () => goTo(keys.length - 1, event.currentTarget),
      ...(isOnRow && row !== undefined ? { Enter: () => open(row) } : {}),
      ...(isOnRow && row !== undefined && onSelect ? { ' ': () => select(rowKey(row)) } : {}),
    }[event.key]
    if (!act) return
    event.preventDefault()
    act()
  }

  return {
    shown,
    keys,
    sort,
    activeAt,
    actions: useActions<R>({ setSort: props.onSort ?? setOwnSort, setActive, open, select }),
    /** The current values would sort the rows differently. */
    isMoved,
    sortAgain: () => setKept({ sortId, keys: sortedKeys }),
    canOpen: href !== undefined || onOpen !== undefined,
    onKeyDown,
  }
}

type Actions<R> = {
  readonly setSort: (sort: Sort) => void
  readonly setActive: (key: string) => void
  readonly open: (row: R) => void
  readonly select: (key: string) => void
}

/** The same functions for the life of the table, so that head and rows are rendered only when they change themselves. */
function useActions<R>(latest: Actions<R>): Actions<R> {
  const ref = useRef(latest)
  useLayoutEffect(() => {
    ref.current = latest
  })
  return useMemo(
    () => ({
      setSort: (sort) => ref.current.setSort(sort),
      setActive: (key) => ref.current.setActive(key),
      open: (row) => ref.current.open(row),
      select: (key) => ref.current.select(key),
    }),
    [],
  )
}

/** Rows in the order of their keys. */
function inOrderOf<R>(keys: readonly string[], rows: readonly R[], rowKeys: readonly string[]): readonly R[] {
  if (keys === rowKeys) return rows
  const byKey = new Map(rowKeys.map((key, at) => [key, rows[at] as R]))
  return keys.flatMap((key) => byKey.get(key) ?? [])
}

function sortRows<R>(rows: readonly R[], columns: readonly Column<R>[], sort: Sort | undefined): readonly R[] {
  const compare = columns.find(({ id }) => id === sort?.column)?.compare
  if (!sort || !compare) return rows
  return rows.toSorted(sort.down ? (a, b) => compare(b, a) : compare)
}

function isTyping(target: EventTarget): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
}

const hasWidths = (widths: Widths | undefined): widths is Widths =>
  widths !== undefined && Object.keys(widths).length > 0

/** Style of the table: the sum of its column widths once the user resized one. */
export function tableStyle<R>({ columns, widths }: TableProps<R>): CSSProperties | undefined {
  if (!hasWidths(widths)) return undefined
  const whole = columns.reduce((sum, { id }) => sum + (widths[id] ?? COLUMN_PX.usual), 0)
  return { tableLayout: 'fixed', width: whole }
}

export function Columns<R>({ columns, onSelect, widths }: TableProps<R>) {
  const isFixed = hasWidths(widths)
  return (
    <colgroup>
      {onSelect && <col style={{ width: '2.5rem' }} />}
      {columns.map(({ id, width, rank }) => (
        <col
          key={id}
          data-column={id}
          style={{ width: isFixed ? (widths[id] ?? COLUMN_PX.usual) : width }}
          className={RANKS[rank ?? 1]}
        />
      ))}
    </colgroup>
  )
}

type HeadRowProps<R> = { readonly table: Rows<R>; readonly props: TableProps<R> }

export function HeadRow<R>({ table, props }: HeadRowProps<R>) {
  const { columns, selected, onSelect, label, onWidths, widths } = props
  return (
    <DrawnHead
      {...{ columns, selected, onSelect, label, onWidths, widths }}
      keys={table.keys}
      sort={table.sort}
      setSort={table.actions.setSort}
    />
  )
}

type DrawnHeadProps<R> = Pick<TableProps<R>, 'columns' | 'label' | 'widths'> & {
  readonly selected: TableProps<R>['selected']
  readonly onSelect: TableProps<R>['onSelect']
  readonly onWidths: TableProps<R>['onWidths']
  readonly keys: readonly string[]
  readonly sort: Sort | undefined
  readonly setSort: (sort: Sort) => void
}

/** Rendered again only when it changed: scrolling moves rows, not the head. */
const DrawnHead = memo(function DrawnHead<R>(props: DrawnHeadProps<R>) {
  const { columns, selected, onSelect, label, onWidths, widths, keys, sort, setSort } = props
  return (
    <tr aria-rowindex={1}>
      {onSelect && (
        <th scope="col" className="sticky top-0 z-10 border-line border-b bg-surface ps-4">
          <SelectAll label={label} keys={keys} selected={selected ?? new Set()} onSelect={onSelect} />
        </th>
      )}
      {columns.map((column) => {
        const isSorted = sort?.column === column.id
        const isDown = isSorted && sort?.down === true
        return (
          <th
            key={column.id}
            scope="col"
            data-column={column.id}
            aria-sort={column.compare ? (isSorted ? (isDown ? 'descending' : 'ascending') : 'none') : undefined}
            data-tip={column.tip}
            className={clsx(
              'sticky top-0 z-10 h-8 border-line border-b bg-surface px-3 font-medium text-small text-text-2 first:ps-4 last:pe-4',
              column.end ? 'text-end' : 'text-start',
              column.rowHeader && 'start-0 z-20',
              column.pinned && 'start-(--name-width) z-20',
              hasWidths(widths) && 'overflow-clip',
              RANKS[column.rank ?? 1],
            )}
          >
            {column.compare ? (
              <button
                type="button"
                onClick={() => setSort({ column: column.id, down: isSorted ? !isDown : Boolean(column.end) })}
                className={clsx(
                  'inline-flex min-h-6 items-center gap-1 rounded-control font-medium hover:text-text',
                  // Aligns the header text with the numbers, not the arrow.
                  column.end && 'flex-row-reverse',
                  isSorted && 'text-text',
                )}
              >
                {column.header}
                <Icon name={isDown ? 'chevron-down' : 'chevron-up'} size={12} className={isSorted ? '' : 'invisible'} />
              </button>
            ) : (
              column.header
            )}
            {onWidths && <ColumnEdge column={column.id} onWidths={onWidths} />}
          </th>
        )
      })}
    </tr>
  )
}) as <R>(props: DrawnHeadProps<R>) => ReactNode

type SelectAllProps = {
  readonly label: string
  readonly keys: readonly string[]
  readonly selected: ReadonlySet<string>
  readonly onSelect: (selected: ReadonlySet<string>) => void
}

function SelectAll({ label, keys, selected, onSelect }: SelectAllProps) {
  const isAll = keys.length > 0 && keys.every((key) => selected.has(key))
  return (
    <input
      type="checkbox"
      aria-label={copy.table.selectAll(label)}
      className="size-4 accent-accent"
      checked={isAll}
      ref={(box) => {
        if (box) box.indeterminate = !isAll && keys.some((key) => selected.has(key))
      }}
      onChange={() => onSelect(isAll ? new Set() : new Set(keys))}
    />
  )
}

type BodyRowProps<R> = {
  readonly table: Rows<R>
  readonly props: TableProps<R>
  readonly row: R
  readonly index: number
}

export function BodyRow<R>({ table, props, row, index }: BodyRowProps<R>) {
  const { columns, rowKey, rowProps, selected, onSelect, focus } = props
  const key = rowKey(row)
  return (
    <DrawnRow
      row={row}
      columns={columns}
      id={key}
      data={rowProps?.(row) ?? NO_DATA}
      index={index}
      isActive={index === table.activeAt}
      isSelected={onSelect && (selected?.has(key) ?? false)}
      isMarked={focus === key}
      canOpen={table.canOpen}
      actions={table.actions}
    />
  )
}

const NO_DATA: RowData = {}

type DrawnRowProps<R> = {
  readonly row: R
  readonly columns: readonly Column<R>[]
  readonly id: string
  readonly data: RowData
  readonly index: number
  readonly isActive: boolean
  /** Undefined in a table without selection. */
  readonly isSelected: boolean | undefined
  readonly isMarked: boolean
  readonly canOpen: boolean
  readonly actions: Actions<R>
}

/** Rendered again only when something of the row changed: scrolling moves other rows into the table. */
const DrawnRow = memo(function DrawnRow<R>(props: DrawnRowProps<R>) {
  const { row, columns, id, data, index, isActive, isSelected, isMarked, canOpen, actions } = props
  const onClick = (event: MouseEvent<HTMLElement>) => {
    if ((event.target as HTMLElement).closest('a, button, input, label, select, summary')) return
    if (getSelection()?.toString()) return
    actions.open(row)
  }
  return (
    <tr
      data-key={id}
      {...data}
      aria-rowindex={index + 2}
      tabIndex={isActive ? 0 : -1}
      onFocus={() => actions.setActive(id)}
      onClick={canOpen ? onClick : undefined}
      className={clsx(
        'h-row scroll-mt-10 -outline-offset-2',
        canOpen && 'cursor-pointer',
        isSelected || isMarked ? 'bg-info-bg' : 'bg-surface hover:bg-sunken',
      )}
    >
      {isSelected !== undefined && (
        <td className="border-line border-b ps-4 in-[tr:last-child]:border-b-0">
          <input
            type="checkbox"
            aria-label={copy.table.select(id)}
            className="size-4 accent-accent"
            checked={isSelected}
            onChange={() => actions.select(id)}
          />
        </td>
      )}
      <Cells row={row} columns={columns} />
    </tr>
  )
}, isSameRow) as <R>(props: DrawnRowProps<R>) => ReactNode

/** Attributes are made with each render, so they are compared by their values. */
function isSameRow({ data, ...before }: DrawnRowProps<unknown>, { data: newData, ...after }: DrawnRowProps<unknown>) {
  return isShallowEqual(before, after) && isShallowEqual(data, newData)
}

function isShallowEqual<T extends object>(a: T, b: T): boolean {
  const keys = Object.keys(a) as (keyof T)[]
  return keys.length === Object.keys(b).length && keys.every((key) => Object.is(a[key], b[key]))
}

/** Rendered again only when the row itself changed: typing in a filter moves rows but changes few of them. */
const Cells = memo(function Cells<R>({ row, columns }: { readonly row: R; readonly columns: readonly Column<R>[] }) {
  return (
    <>
      {columns.map((column) => {
        const styles = clsx(
          'border-line border-b px-3 py-1 font-normal first:ps-4 last:pe-4 in-[tr:last-child]:border-b-0',
          column.end ? 'num' : 'text-start',
          // A sticky cell covers others with the background of its row.
          column.rowHeader && 'sticky start-0 z-1 bg-inherit',
          column.pinned && 'sticky start-(--name-width) z-1 bg-inherit',
          RANKS[column.rank ?? 1],
          column.className,
        )
        if (column.rowHeader) {
          return (
            <th key={column.id} scope="row" className={styles}>
              {column.cell(row)}
            </th>
          )
        }
        return (
          <td key={column.id} className={styles}>
            {column.cell(row)}
          </td>
        )
      })}
    </>
  )
}) as <R>(props: { readonly row: R; readonly columns: readonly Column<R>[] }) => ReactNode

/** Shown when the sort order is out of date; the user decides when rows move. */
export function MovedChip<R>({ table }: { readonly table: Rows<R> }) {
  if (!table.isMoved) return null
  return (
    <button
      type="button"
      onClick={table.sortAgain}
      className="mx-3 my-1 inline-flex min-h-6 w-fit items-center gap-1 rounded-control border border-line-strong bg-surface px-2 text-small text-text-2 hover:bg-sunken"
    >
      <Icon name="refresh" size={12} />
      {copy.table.orderChanged}
    </button>
  )
}
