// @vitest-environment happy-dom
import { act, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import './testing/dom.ts'
import { TooltipHost } from './tooltip.tsx'

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
