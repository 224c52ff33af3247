// @vitest-environment happy-dom
import { act, fireEvent, render, screen } from '@testing-library/react'
import { type ComponentType, Suspense, useState } from 'react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { late } from './late.tsx'
import './testing/dom.ts'
import { ToastHost } from './toast.tsx'

beforeEach(() => {
  vi.useFakeTimers()
  vi.spyOn(console, 'warn').mockImplementation(() => undefined)
  vi.spyOn(console, 'error').mockImplementation(() => undefined)
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

/** A component whose code arrives at the attempt with this number. */
function arriving<P extends object>(
  at: number,
  Code: ComponentType<P>,
): { load: () => Promise<ComponentType<P>>; attempts: () => number } {
  let attempts = 0
  const load = async () => {
    attempts++
    if (attempts < at) throw new Error(`attempt ${attempts} failed`)
    return Code
  }
  return { load, attempts: () => attempts }
}

const later = (ms: number) => act(() => vi.advanceTimersByTimeAsync(ms))

const Chart = ({ title }: { readonly title: string }) => <p>chart of {title}</p>
const Layer = ({ onClose }: { readonly onClose: () => void }) => (
  <button type="button" onClick={onClose}>
    close the layer
  </button>
)

test('a failed download is repeated twice, and nothing is shown of it', async () => {
  const { load, attempts } = arriving(3, Chart)
  const Code = late(load)
  render(
    <Suspense fallback="loading">
      <Code title="reads" />
    </Suspense>,
  )
  await later(299)
  expect(attempts()).toBe(1)
  await later(1)
  expect(attempts()).toBe(2)
  expect(screen.getByText('loading')).toBeTruthy()
  await later(1_500)

  expect(attempts()).toBe(3)
  expect(screen.getByText('chart of reads')).toBeTruthy()
})

test('what is not a layer shows the error in its place, and loads on demand', async () => {
  const { load, attempts } = arriving(4, Chart)
  const Code = late(load)
  render(
    <>
      <h1>page</h1>
      <Suspense fallback="loading">
        <Code title="reads" />
      </Suspense>
    </>,
  )
  await later(1_800)
  expect(attempts()).toBe(3)
  expect(screen.getByRole('alert').textContent).toContain('its code could not be loaded')
  expect(screen.getByText('page')).toBeTruthy()

  fireEvent.click(screen.getByRole('button', { name: 'Retry' }))
  await later(0)

  expect(screen.getByText('chart of reads')).toBeTruthy()
})

test('a layer is closed with a message, and loads when it is opened again', async () => {
  const { load, attempts } = arriving(4, Layer)
  const Code = late(load)
  function Page() {
    const [isOpen, setOpen] = useState(false)
    return (
      <>
        <button type="button" onClick={() => setOpen(true)}>
          open {isOpen ? 'again' : ''}
        </button>
        <Suspense fallback={null}>{isOpen && <Code onClose={() => setOpen(false)} />}</Suspense>
        <ToastHost />
      </>
    )
  }
  render(<Page />)
  fireEvent.click(screen.getByRole('button', { name: 'open' }))
  await later(1_800)
  expect(attempts()).toBe(3)
  expect(document.body.textContent).toContain('could not be shown: its code could not be loaded, perhaps')

  fireEvent.click(screen.getByRole('button', { name: 'open' }))
  await later(0)

  expect(attempts()).toBe(4)
  fireEvent.click(screen.getByRole('button', { name: 'close the layer' }))
  expect(screen.queryByText('close the layer')).toBeNull()
})
