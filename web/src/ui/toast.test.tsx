// @vitest-environment happy-dom
import { act, fireEvent, render, screen, within } from '@testing-library/react'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import './testing/dom.ts'
import { type Toast, ToastHost, toast } from './toast.tsx'

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
