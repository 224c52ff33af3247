// @vitest-environment happy-dom
import { render, screen, waitFor } from '@testing-library/react'
import type { ReactNode } from 'react'
import { describe, expect, test } from 'vitest'
import { Popover } from './popover.tsx'
import { user } from './testing/dom.ts'

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
