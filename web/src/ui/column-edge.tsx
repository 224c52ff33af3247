'use client'
/**
 * The edge of a column's head: drawn along, it makes the column wider or narrower. Whoever shows it offers the same by
 * buttons: this is for a mouse alone, and nothing that stops the tab key.
 */
import type { PointerEvent as ReactPointerEvent } from 'react'

/** Pixels by column. Once one is set, all that are shown are. */
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
      // While it moves only the columns change: no row is drawn anew until it is let go.
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

/** As wide as they are now. */
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
