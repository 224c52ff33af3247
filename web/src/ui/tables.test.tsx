// @vitest-environment happy-dom
import { render, screen, within } from '@testing-library/react'
import { useState } from 'react'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { listenForLinks } from '../lib/navigate.ts'
import { type Column, Table, type TableProps } from './table.tsx'
import { narrowWindow, user } from './testing/dom.ts'
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

describe('table on a phone', () => {
  type Node = { readonly id: string; readonly state: string }
  const columns: readonly Column<Node>[] = [
    { id: 'id', header: 'Node', cell: ({ id }) => id, rowHeader: true },
    { id: 'state', header: 'State', cell: ({ state }) => state },
    { id: 'zone', header: 'Zone', cell: () => 'eu-1', rank: 2 },
    { id: 'rate', header: 'Queries', cell: () => '12/s', end: true },
    { id: 'lag', header: 'Lag', cell: () => '0' },
    { id: 'version', header: 'Version', cell: () => '0.1.0', rank: 4 },
  ]
  const shown = (of: readonly Column<Node>[]) => {
    narrowWindow()
    render(<Table label="Nodes" rows={[{ id: 'n1', state: 'Healthy' }]} columns={of} rowKey={({ id }) => id} />)
  }

  test('shows each row of a wide table as a card, with the headers beside the values', () => {
    shown(columns)
    expect(screen.queryByRole('table')).toBeNull()
    const card = within(screen.getByRole('list', { name: 'Nodes' })).getByRole('listitem')
    expect(card.textContent).toBe('n1StateHealthyZoneeu-1Queries12/sLag0')
  })

  test('shows a table whose columns fit', () => {
    shown(columns.slice(0, 3))
    expect(screen.getByRole('table', { name: 'Nodes' })).toBeTruthy()
  })
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

describe('table', () => {
  type Member = { readonly id: string; readonly lag: number }

  const MEMBERS: readonly Member[] = [
    { id: 'n1', lag: 7 },
    { id: 'n2', lag: 0 },
    { id: 'n3', lag: 40 },
  ]
  const COLUMNS: readonly Column<Member>[] = [
    { id: 'node', header: 'Node', cell: ({ id }) => id, rowHeader: true, compare: (a, b) => a.id.localeCompare(b.id) },
    { id: 'lag', header: 'Lag', cell: ({ lag }) => lag, end: true, compare: (a, b) => a.lag - b.lag },
    { id: 'link', header: 'Page', cell: ({ id }) => <a href={`/nodes/${id}`}>Open</a> },
  ]

  type Some = Partial<TableProps<Member>>

  const table = (props: Some = {}) => (
    <Table label="Members" rows={MEMBERS} columns={COLUMNS} rowKey={({ id }) => id} {...props} />
  )
  const names = () => screen.queryAllByRole('rowheader').map(({ textContent }) => textContent)
  const head = (name: string) => screen.getByRole('columnheader', { name })
  const row = (name: string) => screen.getByRole('row', { name: new RegExp(`^${name}`) })
  const focused = () => document.activeElement?.getAttribute('data-key')
  const sortBy = (name: string) => user().click(screen.getByRole('button', { name }))

  describe('table', () => {
    test('has a name, counts its head as a row, and names each row by its row header', () => {
      render(table())
      expect(screen.getByRole('table', { name: 'Members' }).getAttribute('aria-rowcount')).toBe('4')
      expect(screen.getAllByRole('row').map((one) => one.getAttribute('aria-rowindex'))).toEqual(['1', '2', '3', '4'])
      expect(names()).toEqual(['n1', 'n2', 'n3'])
    })

    test('counts rows that exist but are not given', () => {
      render(table({ total: 12_000 }))
      expect(screen.getByRole('table').getAttribute('aria-rowcount')).toBe('12001')
    })

    test('without rows keeps its head', () => {
      render(table({ rows: [] }))
      expect(screen.getAllByRole('row')).toHaveLength(1)
      expect(screen.getAllByRole('columnheader').map(({ textContent }) => textContent)).toEqual(['Node', 'Lag', 'Page'])
    })
  })

  describe('rows that did not change', () => {
    test('call the newest handlers', async () => {
      const [before, after] = [vi.fn(), vi.fn()]
      const { rerender } = render(table({ onOpen: before }))
      rerender(table({ onOpen: after }))
      await user().click(row('n2'))
      expect([before.mock.calls, after.mock.calls]).toEqual([[], [[MEMBERS[1]]]])
    })

    test('still show what depends on more than the row', () => {
      const marked = (id: string) => ({ rowProps: (member: Member) => ({ 'data-new': String(member.id === id) }) })
      const { rerender } = render(table({ ...marked('n1'), focus: 'n1' }))
      rerender(table({ ...marked('n3'), focus: 'n3' }))
      expect(['n1', 'n3'].map((id) => row(id).dataset['new'])).toEqual(['false', 'true'])
      expect(['n1', 'n3'].map((id) => row(id).tabIndex)).toEqual([-1, 0])
      expect(row('n1').className).not.toBe(row('n3').className)
    })
  })

  describe('order', () => {
    test('starts as given; every sortable head reports that it is not sorted by it', () => {
      render(table())
      expect(head('Node').getAttribute('aria-sort')).toBe('none')
      expect(head('Lag').getAttribute('aria-sort')).toBe('none')
      expect(head('Page').getAttribute('aria-sort')).toBeNull()
      expect(within(head('Page')).queryByRole('button')).toBeNull()
    })

    test('numbers start with the largest, and turn around on the second click', async () => {
      render(table())
      await sortBy('Lag')
      expect(names()).toEqual(['n3', 'n1', 'n2'])
      expect(head('Lag').getAttribute('aria-sort')).toBe('descending')
      await sortBy('Lag')
      expect(names()).toEqual(['n2', 'n1', 'n3'])
      expect(head('Lag').getAttribute('aria-sort')).toBe('ascending')
    })

    test('text starts with the first letter', async () => {
      render(table({ rows: MEMBERS.toReversed() }))
      await sortBy('Node')
      expect(names()).toEqual(['n1', 'n2', 'n3'])
      expect(head('Node').getAttribute('aria-sort')).toBe('ascending')
    })

    test('a page that keeps the order in its URL decides about it', async () => {
      const onSort = vi.fn()
      render(table({ sort: { column: 'lag', down: false }, onSort }))
      expect(names()).toEqual(['n2', 'n1', 'n3'])
      await sortBy('Lag')
      expect(onSort.mock.calls).toEqual([[{ column: 'lag', down: true }]])
      expect(names()).toEqual(['n2', 'n1', 'n3'])
    })

    test('rows stay in place when their values change, until the user sorts again', async () => {
      const { rerender } = render(table())
      await sortBy('Lag')
      rerender(table({ rows: [...MEMBERS.slice(0, 2), { id: 'n3', lag: 1 }] }))
      expect(names()).toEqual(['n3', 'n1', 'n2'])
      await user().click(screen.getByRole('button', { name: 'Order changed, sort again' }))
      expect(names()).toEqual(['n1', 'n3', 'n2'])
      expect(screen.queryByRole('button', { name: 'Order changed, sort again' })).toBeNull()
    })

    test('new rows come last, and removed rows leave', async () => {
      const { rerender } = render(table())
      await sortBy('Lag')
      rerender(table({ rows: [{ id: 'n9', lag: 99 }, ...MEMBERS.slice(1)] }))
      expect(names()).toEqual(['n3', 'n2', 'n9'])
    })

    test('a change of the filter sorts again', async () => {
      const { rerender } = render(table({ orderKey: '' }))
      await sortBy('Lag')
      const rows = [...MEMBERS.slice(0, 2), { id: 'n3', lag: 1 }]
      rerender(table({ rows, orderKey: 'zone:a' }))
      expect(names()).toEqual(['n1', 'n3', 'n2'])
    })
  })

  describe('keys', () => {
    test('one row is a tab stop; arrows, j and k move between rows and stop at the ends', async () => {
      render(table())
      const person = user()
      row('n1').focus()
      const visited: unknown[] = []
      for (const key of ['{ArrowDown}', 'j', 'j', 'k', '{ArrowUp}', '{ArrowUp}', '{End}', '{Home}', '{PageDown}']) {
        await person.keyboard(key)
        await frame()
        visited.push(focused())
      }
      expect(visited).toEqual(['n2', 'n3', 'n3', 'n2', 'n1', 'n1', 'n3', 'n1', 'n3'])
      expect(screen.getAllByRole('row').filter(({ tabIndex }) => tabIndex === 0)).toEqual([row('n3')])
    })

    test('Page Up and Page Down move ten rows', async () => {
      render(table({ rows: Array.from({ length: 30 }, (_, at) => ({ id: `n${at}`, lag: 0 })) }))
      row('n0').focus()
      const person = user()
      await person.keyboard('{PageDown}')
      await frame()
      expect(focused()).toBe('n10')
      await person.keyboard('{PageDown}{PageUp}')
      await frame()
      expect(focused()).toBe('n10')
    })

    test('Enter opens the row', async () => {
      const onOpen = vi.fn()
      render(table({ onOpen }))
      row('n2').focus()
      await user().keyboard('{Enter}')
      expect(onOpen.mock.calls).toEqual([[MEMBERS[1]]])
    })

    test('Enter on a link in the row follows the link', async () => {
      const onOpen = vi.fn()
      render(table({ onOpen }))
      within(row('n2')).getByRole('link').focus()
      await user().keyboard('{Enter}')
      expect(onOpen).not.toHaveBeenCalled()
    })

    test('combinations with Ctrl or Alt are left to the browser', async () => {
      render(table())
      row('n1').focus()
      await user().keyboard('{Control>}j{/Control}{Alt>}{ArrowDown}{/Alt}')
      await frame()
      expect(focused()).toBe('n1')
    })
  })

  describe('opening a row', () => {
    test('by a click anywhere but on its controls', async () => {
      const onOpen = vi.fn()
      render(table({ onOpen, selected: new Set(), onSelect: () => {} }))
      const person = user()
      await person.click(within(row('Select n1')).getByRole('link'))
      await person.click(screen.getByRole('checkbox', { name: 'Select n1' }))
      expect(onOpen).not.toHaveBeenCalled()
      await person.click(screen.getByRole('rowheader', { name: 'n3' }))
      expect(onOpen.mock.calls).toEqual([[MEMBERS[2]]])
    })

    describe('with a URL', () => {
      let stop: (() => void) | undefined
      afterEach(() => stop?.())

      test('goes to it', async () => {
        stop = listenForLinks(() => {})
        render(table({ href: ({ id }) => `/snapshots/${id}` }))
        await user().click(screen.getByRole('rowheader', { name: 'n2' }))
        expect(location.pathname).toBe('/snapshots/n2')
      })
    })
  })

  describe('selection', () => {
    function Selectable(props: Some) {
      const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
      return (
        <>
          {table({ ...props, selected, onSelect: setSelected })}
          <output>{[...selected].join(' ')}</output>
        </>
      )
    }
    const selected = () => screen.getByRole('status').textContent
    const all = () => screen.getByRole<HTMLInputElement>('checkbox', { name: 'Select all: Members' })

    test('by checkbox and by Space on the row', async () => {
      render(<Selectable />)
      const person = user()
      await person.click(screen.getByRole('checkbox', { name: 'Select n2' }))
      row('Select n3').focus()
      await person.keyboard(' ')
      expect(selected()).toBe('n2 n3')
      await person.keyboard(' ')
      expect(selected()).toBe('n2')
    })

    test('the head selects all, or none if all are selected', async () => {
      render(<Selectable />)
      const person = user()
      await person.click(all())
      expect(selected()).toBe('n1 n2 n3')
      expect(all().checked).toBe(true)
      await person.click(all())
      expect(selected()).toBe('')
    })

    test('the head is mixed while only some are selected', async () => {
      render(<Selectable />)
      expect(all().indeterminate).toBe(false)
      await user().click(screen.getByRole('checkbox', { name: 'Select n2' }))
      expect(all().indeterminate).toBe(true)
      expect(all().checked).toBe(false)
    })

    test('the head of an empty table is not checked', () => {
      render(<Selectable rows={[]} />)
      expect(all().checked).toBe(false)
    })
  })

  describe('column widths', () => {
    test('an edge dragged to the right widens its column', () => {
      const onWidths = vi.fn()
      render(table({ onWidths }))
      drag('node', 300)
      expect(onWidths).toHaveBeenCalledOnce()
      expect(onWidths.mock.calls[0]?.[0]).toMatchObject({ node: 112 + 300 })
    })

    test('no column gets narrower than 48 pixels or wider than 800', () => {
      const onWidths = vi.fn()
      render(table({ onWidths }))
      drag('lag', -500)
      drag('lag', 5_000)
      expect(onWidths.mock.calls.map(([widths]) => widths.lag)).toEqual([48, 800])
    })

    test('an edge that did not move changes nothing', () => {
      const onWidths = vi.fn()
      render(table({ onWidths }))
      drag('node', undefined)
      expect(onWidths).not.toHaveBeenCalled()
    })

    test('once one is set, every column has a width', () => {
      render(table({ widths: { node: 300 }, onWidths: () => {} }))
      const columns = [...document.querySelectorAll<HTMLElement>('col')].map(({ style }) => style.width)
      expect(columns).toEqual(['300px', '112px', '112px'])
      expect(screen.getByRole('table').style.width).toBe('524px')
    })

    function drag(column: string, pixels: number | undefined): void {
      const edge = document.querySelector<HTMLElement>(`[data-column-edge="${column}"]`)
      if (!edge) throw new Error(`no edge of ${column}`)
      edge.setPointerCapture = () => {}
      const send = (type: string, clientX: number) =>
        edge.dispatchEvent(new PointerEvent(type, { bubbles: true, clientX, button: 0 }))
      send('pointerdown', 100)
      if (pixels !== undefined) send('pointermove', 100 + pixels)
      send('lostpointercapture', 100)
    }
  })

  describe('in a narrow window', () => {
    test('rows with a card form are a named list of cards', () => {
      narrowWindow()
      render(table({ card: ({ id, lag }) => `${id} lags ${lag}` }))
      expect(screen.queryByRole('table')).toBeNull()
      const items = within(screen.getByRole('list', { name: 'Members' })).getAllByRole('listitem')
      expect(items.map(({ textContent }) => textContent)).toEqual(['n1 lags 7', 'n2 lags 0', 'n3 lags 40'])
    })

    test('rows without a card form stay a table', () => {
      narrowWindow()
      render(table())
      expect(screen.getByRole('table', { name: 'Members' })).toBeTruthy()
    })
  })

  /** Focus moves in the next frame, once a virtual row may have been rendered. */
  const frame = () => new Promise(requestAnimationFrame)
})
