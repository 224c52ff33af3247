'use client'
/**
 * The edge of a column header: dragging it resizes the column. It is for the mouse alone and not a tab stop; tables that
 * use it offer the same by buttons.
 */
import type { PointerEvent as ReactPointerEvent } from 'react'

/** Pixels by column. Once one is set, all visible columns have a width. */
export type Widths = { readonly [column: string]: number }

export const COLUMN_PX = { min: 48, max: 800, usual: 112 } as const

type ColumnEdgeProps = { readonly column: string; readonly onWidths: (widths: Widths) => void }

export function ColumnEdge({ column, onWidths }: ColumnEdgeProps) {
  const onPointerDown = (event: ReactPointerEvent<HTMLElement>) => {
    const edge = event.currentTarget
    const table = edge.closest('table')
    if (!table || event.button !== 0) return
    event.preventDefault()
    edge.setPointerCapture(event.pointerId)
    const before = measuredWidths(table)
    const sign = getComputedStyle(table).direction === 'rtl' ? -1 : 1
    let widths = before
    const onMove = ({ clientX }: PointerEvent) => {
      widths = withWidth(before, column, (before[column] ?? COLUMN_PX.usual) + sign * (clientX - event.clientX))
      // During the drag only the columns change; rows render again on release.
      show(table, widths)
    }
    const onEnd = () => {
      edge.removeEventListener('pointermove', onMove)
      if (widths !== before) onWidths(widths)
    }
    edge.addEventListener('pointermove', onMove)
    edge.addEventListener('lostpointercapture', onEnd, { once: true })
  }
  return (
    <span
      aria-hidden="true"
      data-column-edge={column}
      onPointerDown={onPointerDown}
      className="absolute inset-y-1.5 end-0 w-2 cursor-col-resize touch-none border-line border-e hover:border-accent hover:border-e-2"
    />
  )
}

/** The current widths. */
export function measuredWidths(table: Element): Widths {
  const heads = [...table.querySelectorAll<HTMLElement>('thead th[data-column]')]
  return Object.fromEntries(
    heads.flatMap((head) => {
      const width = Math.round(head.getBoundingClientRect().width)
      return width > 0 ? [[head.dataset['column'] ?? '', clamped(width)]] : []
    }),
  )
}

export function withWidth(widths: Widths, column: string, width: number): Widths {
  return { ...widths, [column]: clamped(Math.round(width)) }
}

function clamped(width: number): number {
  return Math.min(COLUMN_PX.max, Math.max(COLUMN_PX.min, width))
}

function show(table: HTMLTableElement, widths: Widths): void {
  let whole = 0
  for (const column of table.querySelectorAll<HTMLElement>('col[data-column]')) {
    const width = widths[column.dataset['column'] ?? ''] ?? COLUMN_PX.usual
    column.style.width = `${width}px`
    whole += width
  }
  table.style.tableLayout = 'fixed'
  table.style.width = `${whole}px`
}
