// @vitest-environment happy-dom
import { render, screen } from '@testing-library/react'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { Column } from './table.tsx'
import { user } from './testing/dom.ts'
import { VirtualTable } from './virtual-table.tsx'

type Shard = { readonly id: string; readonly rows: number }

const COLUMNS: readonly Column<Shard>[] = [
  { id: 'shard', header: 'Shard', cell: ({ id }) => id, rowHeader: true },
  { id: 'rows', header: 'Rows', cell: ({ rows }) => rows, end: true, compare: (a, b) => a.rows - b.rows },
]
const shards = (count: number) => Array.from({ length: count }, (_, at) => ({ id: `s${at}`, rows: at }))

function table(rows: readonly Shard[]) {
  return <VirtualTable label="Shards" rows={rows} columns={COLUMNS} rowKey={({ id }) => id} rowHeight={32} />
}
const names = () => screen.queryAllByRole('rowheader').map(({ textContent }) => textContent)

// happy-dom has no layout: each element is as high as the visible part of the table.
beforeEach(() => {
  const height = vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(560)
  return () => height.mockRestore()
})

describe('virtual table', () => {
  test('renders few of ten thousand rows, and counts all of them', () => {
    render(table(shards(10_000)))
    expect(screen.getByRole('table', { name: 'Shards' }).getAttribute('aria-rowcount')).toBe('10001')
    expect(names().length).toBeGreaterThan(10)
    expect(names().length).toBeLessThan(60)
    expect(names()[0]).toBe('s0')
  })

  test('numbers its rows by their place among all', () => {
    render(table(shards(10_000)))
    const places = screen.getAllByRole('row').map((row) => row.getAttribute('aria-rowindex'))
    expect(places.slice(0, 3)).toEqual(['1', '2', '3'])
  })

  test('keeps the height of the rows that it does not render', () => {
    render(table(shards(10_000)))
    const rendered = names().length
    const spacers = [...document.querySelectorAll<HTMLElement>('tbody[aria-hidden] td')]
    expect(spacers.map(({ style }) => style.height)).toEqual([`${(10_000 - rendered) * 32}px`])
  })

  test('renders all of a few rows and no spacer', () => {
    render(table(shards(3)))
    expect(names()).toEqual(['s0', 's1', 's2'])
    expect(document.querySelector('tbody[aria-hidden]')).toBeNull()
  })

  test('without rows keeps its head', () => {
    render(table([]))
    expect(screen.getByRole('table').getAttribute('aria-rowcount')).toBe('1')
    expect(screen.getAllByRole('columnheader').map(({ textContent }) => textContent)).toEqual(['Shard', 'Rows'])
  })

  test('sorts all rows, not only the rendered ones', async () => {
    render(table(shards(10_000)))
    await user().click(screen.getByRole('button', { name: 'Rows' }))
    expect(names().slice(0, 3)).toEqual(['s9999', 's9998', 's9997'])
  })

  test('arrows move the focus to the next row', async () => {
    render(table(shards(10_000)))
    screen.getByRole('row', { name: /^s0 / }).focus()
    await user().keyboard('{ArrowDown}')
    await new Promise(requestAnimationFrame)
    expect(document.activeElement?.getAttribute('data-key')).toBe('s1')
  })
})
