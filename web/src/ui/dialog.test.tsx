// @vitest-environment happy-dom
import { cleanup, render, screen, waitFor } from '@testing-library/react'
import { useEffect, useState } from 'react'
import { describe, expect, test } from 'vitest'
import { Combobox } from './combobox.tsx'
import { Dialog, Drawer } from './dialog.tsx'
import type { DialogProps } from './dialog-layer.tsx'
import { Input } from './field.tsx'
import { user } from './testing/dom.ts'

type Some = Partial<DialogProps> & { readonly as?: typeof Dialog }

function Page({ as: Layer = Dialog, ...props }: Some) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Transfer
      </button>
      <Layer open={isOpen} onClose={() => setOpen(false)} title="Transfer leadership of s3" {...props}>
        {props.children ?? <Input aria-label="Reason" />}
      </Layer>
    </>
  )
}

const opener = () => screen.getByText('Transfer')
const dialog = () => screen.findByRole('dialog', { name: 'Transfer leadership of s3' })
const isClosed = () => waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())

async function open(props: Some = {}) {
  render(<Page {...props} />)
  const person = user()
  await person.click(opener())
  await dialog()
  return person
}

describe.each([
  ['dialog', Dialog],
  ['drawer', Drawer],
])('%s', (_, as) => {
  test('renders nothing while closed', () => {
    render(<Page as={as} />)
    expect(screen.queryByRole('dialog')).toBeNull()
    expect(screen.queryByText('Transfer leadership of s3')).toBeNull()
  })

  test('is named by its title, which gets the focus where there is no field', async () => {
    await open({ as, children: <p>Nothing to type</p> })
    expect(document.activeElement?.textContent).toBe('Transfer leadership of s3')
  })

  test('hides the page behind it from screen readers', async () => {
    await open({ as })
    expect(screen.queryByRole('button', { name: 'Transfer' })).toBeNull()
  })

  test('Escape closes it, and the focus returns to the button that opened it', async () => {
    const person = await open({ as })
    await person.keyboard('{Escape}')
    await isClosed()
    expect(document.activeElement).toBe(opener())
  })

  test('the close button closes it', async () => {
    const person = await open({ as })
    await person.click(screen.getByRole('button', { name: 'Close' }))
    await isClosed()
  })
})

describe('dialog', () => {
  test('keeps the focus inside when tabbing past its last control', async () => {
    const person = await open({ footer: <button type="button">Confirm</button> })
    const visited: (string | null)[] = []
    for (let n = 0; n < 4; n++) {
      await person.tab()
      const { activeElement: at } = document
      visited.push(at?.getAttribute('aria-label') ?? at?.textContent ?? null)
    }
    expect(visited).toEqual(['Confirm', 'Close', 'Reason', 'Confirm'])
  })

  test('starts in its first field, also when that is loaded later', async () => {
    await open()
    expect(document.activeElement).toBe(screen.getByRole('textbox', { name: 'Reason' }))
    cleanup()
    function Late() {
      const [isLoaded, setLoaded] = useState(false)
      useEffect(() => {
        const timer = setTimeout(() => setLoaded(true))
        return () => clearTimeout(timer)
      }, [])
      return isLoaded ? <Input aria-label="Reason" /> : <p>Loading</p>
    }
    await open({ children: <Late /> })
    await waitFor(() => expect(document.activeElement).toBe(screen.getByRole('textbox', { name: 'Reason' })))
  })

  test('the page gets the focus when the button that opened it is gone', async () => {
    function Replaced() {
      const [isOpen, setOpen] = useState(false)
      return (
        <main id="content" tabIndex={-1}>
          <button key={String(isOpen)} type="button" onClick={() => setOpen(true)}>
            Transfer
          </button>
          <Dialog open={isOpen} onClose={() => setOpen(false)} title="Transfer leadership of s3">
            <Input aria-label="Reason" />
          </Dialog>
        </main>
      )
    }
    render(<Replaced />)
    const person = user()
    await person.click(opener())
    await dialog()
    await person.keyboard('{Escape}')
    await isClosed()
    await waitFor(() => expect(document.activeElement?.id).toBe('content'))
  })

  test('Ctrl Enter confirms from any of its fields', async () => {
    let confirmed = 0
    const person = await open({ onConfirm: () => confirmed++ })
    await person.keyboard('{Control>}{Enter}{/Control}')
    expect(confirmed).toBe(1)
  })

  test('the first Escape closes an open list of suggestions, the next one the dialog', async () => {
    const zone = <Combobox label="Zone" value="" onChange={() => {}} options={[{ value: 'bern' }]} />
    const person = await open({ children: zone })
    await person.click(screen.getByRole('combobox', { name: 'Zone' }))
    await person.keyboard('{Escape}')
    expect(await dialog()).toBeTruthy()
    expect(screen.queryByRole('listbox')).toBeNull()
    await person.keyboard('{Escape}')
    await isClosed()
  })
})
