// @vitest-environment happy-dom
import './testing/dom.ts'
import { act, fireEvent, render, screen, waitFor, within } from '@testing-library/react'
import { type ComponentProps, type ReactNode, useState } from 'react'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Dialog } from './dialog.tsx'
import { Menu } from './menu.tsx'
import { Popover } from './popover.tsx'
import { user } from './testing/dom.ts'
import { type Toast, ToastHost, toast } from './toast.tsx'
import { TooltipHost } from './tooltip.tsx'

const button = () => screen.getByRole('button', { name: 'Columns' })
const isClosed = () => waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())

async function open(children: ReactNode | ((close: () => void) => ReactNode)) {
  render(
    <Popover
      label="Choose columns"
      trigger={(wire) => (
        <button type="button" {...wire}>
          Columns
        </button>
      )}
    >
      {children}
    </Popover>,
  )
  const person = user()
  await person.click(button())
  await screen.findByRole('dialog', { name: 'Choose columns' })
  return person
}

describe('popover', () => {
  test('is a named dialog that its button reports as open', async () => {
    await open(<input aria-label="Lag" />)
    expect(button().getAttribute('aria-haspopup')).toBe('dialog')
    expect(button().getAttribute('aria-expanded')).toBe('true')
  })

  test('its first control gets the focus', async () => {
    await open(<input aria-label="Lag" />)
    await waitFor(() => expect(document.activeElement).toBe(screen.getByRole('textbox', { name: 'Lag' })))
  })

  test('a second click on the button closes it', async () => {
    const person = await open('content')
    await person.click(button())
    await isClosed()
    expect(button().getAttribute('aria-expanded')).toBe('false')
  })

  test('Escape closes it, and the focus returns to its button', async () => {
    const person = await open(<input aria-label="Lag" />)
    await person.keyboard('{Escape}')
    await isClosed()
    expect(document.activeElement).toBe(button())
  })

  test('its content can close it', async () => {
    const person = await open((close) => (
      <button type="button" onClick={close}>
        Apply
      </button>
    ))
    await person.click(screen.getByRole('button', { name: 'Apply' }))
    await isClosed()
  })
})

describe('tooltip', () => {
  const tooltip = () => screen.queryByRole('tooltip')
  const hover = (element: Element) => fireEvent.pointerOver(element)
  const after = (milliseconds: number) => act(() => vi.advanceTimersByTime(milliseconds))

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    render(
      <>
        <button type="button" data-tip="Lag behind the leader">
          Lag
        </button>
        <button type="button" data-tip="Close" aria-label="Close">
          ×
        </button>
        <p>text</p>
        <TooltipHost />
      </>,
    )
  })
  afterEach(() => vi.useRealTimers())

  describe('tooltip', () => {
    test('shows after a moment of hovering, not at once', () => {
      hover(screen.getByText('Lag'))
      after(399)
      expect(tooltip()).toBeNull()
      after(1)
      expect(tooltip()?.textContent).toBe('Lag behind the leader')
    })

    test('describes its element while it is shown', () => {
      const lag = screen.getByRole('button', { name: 'Lag' })
      hover(lag)
      after(400)
      expect(lag.getAttribute('aria-describedby')).toBe(tooltip()?.id)
      fireEvent.keyDown(document.body, { key: 'Escape' })
      after(0)
      expect(lag.getAttribute('aria-describedby')).toBeNull()
    })

    test('does not repeat the accessible name', () => {
      const close = screen.getByRole('button', { name: 'Close' })
      hover(close)
      after(400)
      expect(tooltip()?.textContent).toBe('Close')
      expect(close.getAttribute('aria-describedby')).toBeNull()
    })

    test('shows on focus by keyboard and hides when the focus leaves', () => {
      const lag = screen.getByRole('button', { name: 'Lag' })
      lag.focus()
      after(400)
      expect(tooltip()?.textContent).toBe('Lag behind the leader')
      lag.blur()
      after(0)
      expect(tooltip()).toBeNull()
    })

    test('hides on Escape', () => {
      hover(screen.getByText('Lag'))
      after(400)
      fireEvent.keyDown(document.body, { key: 'Escape' })
      after(0)
      expect(tooltip()).toBeNull()
    })

    test('stays while it is hovered itself, and hides when the pointer leaves', () => {
      hover(screen.getByText('Lag'))
      after(400)
      hover(tooltip() as HTMLElement)
      after(1_000)
      expect(tooltip()).not.toBeNull()
      hover(screen.getByText('text'))
      after(120)
      expect(tooltip()).toBeNull()
    })

    test('elements without a text show nothing', () => {
      hover(screen.getByText('text'))
      after(1_000)
      expect(tooltip()).toBeNull()
    })
  })
})

describe('menu', () => {
  type Items = ComponentProps<typeof Menu>['items']

  const button = () => screen.getByRole('button', { name: 'More actions for n3' })
  const items = () => screen.queryAllByRole('menuitem').map(({ textContent }) => textContent)
  const isClosed = () => waitFor(() => expect(screen.queryByRole('menu')).toBeNull())

  async function open(items: Items) {
    render(<Menu label="More actions for n3" items={items} />)
    const person = user()
    await person.click(button())
    await screen.findByRole('menu', { name: 'More actions for n3' })
    return person
  }

  describe('menu', () => {
    test('its button reports that it opens a menu, and whether it is open', async () => {
      render(<Menu label="More actions for n3" items={[{ label: 'Restart' }]} />)
      expect(button().getAttribute('aria-haspopup')).toBe('menu')
      expect(button().getAttribute('aria-expanded')).toBe('false')
      await user().click(button())
      await screen.findByRole('menu')
      expect(button().getAttribute('aria-expanded')).toBe('true')
    })

    test('shows its items and the lines between them in order', async () => {
      await open([{ label: 'Restart' }, 'line', { label: 'Remove', danger: true }])
      expect(items()).toEqual(['Restart', 'Remove'])
      expect(screen.getAllByRole('separator')).toHaveLength(1)
    })

    test('a click runs the action and closes the menu', async () => {
      const onSelect = vi.fn()
      const person = await open([{ label: 'Restart', onSelect }])
      await person.click(screen.getByRole('menuitem', { name: 'Restart' }))
      expect(onSelect).toHaveBeenCalledOnce()
      await isClosed()
    })

    test('opens with Arrow Down; arrows move and Enter runs the action', async () => {
      const onSelect = vi.fn()
      render(<Menu label="More actions for n3" items={[{ label: 'Restart' }, { label: 'Drain', onSelect }]} />)
      const person = user()
      await person.tab()
      await person.keyboard('{ArrowDown}')
      await screen.findByRole('menu')
      await person.keyboard('{ArrowDown}')
      await waitFor(() => expect(document.activeElement?.textContent).toBe('Restart'))
      await person.keyboard('{ArrowDown}')
      await waitFor(() => expect(document.activeElement?.textContent).toBe('Drain'))
      await person.keyboard('{Enter}')
      expect(onSelect).toHaveBeenCalledOnce()
    })

    test('Escape closes it, and the focus returns to its button', async () => {
      const person = await open([{ label: 'Restart' }])
      await person.keyboard('{Escape}')
      await isClosed()
      expect(document.activeElement).toBe(button())
    })

    test('a disabled item shows why, can be reached, and does nothing', async () => {
      const onSelect = vi.fn()
      const person = await open([{ label: 'Remove', why: 'It leads s3', onSelect }])
      const item = screen.getByRole('menuitem', { name: /Remove/ })
      expect(item.textContent).toBe('RemoveIt leads s3')
      expect(item.getAttribute('aria-disabled')).toBe('true')
      await person.click(item)
      expect(onSelect).not.toHaveBeenCalled()
      expect(screen.getByRole('menu')).toBeTruthy()
    })

    test('a dialog opened from it gives the focus back to its button', async () => {
      function Node() {
        const [isOpen, setOpen] = useState(false)
        return (
          <>
            <Menu label="More actions for n3" items={[{ label: 'Remove', onSelect: () => setOpen(true) }]} />
            <Dialog open={isOpen} onClose={() => setOpen(false)} title="Remove n3">
              Sure?
            </Dialog>
          </>
        )
      }
      render(<Node />)
      const person = user()
      await person.click(button())
      await person.click(await screen.findByRole('menuitem', { name: 'Remove' }))
      await screen.findByRole('dialog', { name: 'Remove n3' })
      await person.keyboard('{Escape}')
      await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())
      expect(document.activeElement).toBe(button())
    })

    test('has a text button where it is given a text', () => {
      render(<Menu label="More actions for n3" button="Export" items={[]} />)
      expect(screen.getByRole('button', { name: 'Export' }).getAttribute('aria-haspopup')).toBe('menu')
    })
  })
})

describe('toast', () => {
  const host = () => screen.getByRole('region', { name: 'Notifications' })
  const messages = () =>
    within(host())
      .queryAllByRole('listitem')
      .map((item) => item.querySelector('span')?.textContent)
  const show = (one: Toast) => act(() => toast(one))

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    render(
      <>
        <ToastHost />
        <output data-announce="polite" />
      </>,
    )
  })
  afterEach(() => {
    act(() => vi.runAllTimers())
    vi.useRealTimers()
  })

  describe('notifications', () => {
    test('show the newest one, and how many of the last three are behind it', () => {
      expect(messages()).toEqual([])
      for (const message of ['one', 'two', 'three', 'four']) show({ message })
      expect(messages()).toEqual(['four'])
      expect(host().textContent).toContain('2 earlier')
    })

    test('leave after ten seconds', () => {
      show({ message: 'Leadership transferred' })
      act(() => vi.advanceTimersByTime(9_999))
      expect(messages()).toEqual(['Leadership transferred'])
      act(() => vi.advanceTimersByTime(1))
      expect(messages()).toEqual([])
    })

    test('are announced to screen readers', async () => {
      show({ message: 'Leadership transferred' })
      await new Promise(requestAnimationFrame)
      expect(screen.getByRole('status').textContent).toBe('Leadership transferred')
    })

    test('can be dismissed one by one; the earlier one returns', () => {
      show({ message: 'one' })
      show({ message: 'two' })
      fireEvent.click(screen.getByRole('button', { name: 'Dismiss' }))
      expect(messages()).toEqual(['one'])
    })

    test('undo the action once and leave', () => {
      const undone = vi.fn()
      show({ message: 'View deleted', undo: { label: 'Undo', act: undone } })
      fireEvent.click(screen.getByRole('button', { name: 'Undo' }))
      expect(undone).toHaveBeenCalledOnce()
      expect(messages()).toEqual([])
    })

    test('link to more', () => {
      show({ message: 'Import started', href: { to: '/imports/7', label: 'Open import' } })
      expect(screen.getByRole('link', { name: 'Open import' }).getAttribute('href')).toBe('/imports/7')
    })
  })
})
