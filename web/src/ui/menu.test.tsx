// @vitest-environment happy-dom
import { render, screen, waitFor } from '@testing-library/react'
import { type ComponentProps, useState } from 'react'
import { describe, expect, test, vi } from 'vitest'
import { Dialog } from './dialog.tsx'
import { Menu } from './menu.tsx'
import { user } from './testing/dom.ts'

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
