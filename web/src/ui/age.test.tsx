// @vitest-environment happy-dom
import { act, render, screen } from '@testing-library/react'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Age, Duration } from './age.tsx'
import './testing/dom.ts'

const NOW = '2026-11-23T10:00:00Z'

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse(NOW), toFake: ['setInterval', 'clearInterval', 'Date'] })
})
afterEach(() => vi.useRealTimers())

const after = (seconds: number) => act(() => vi.advanceTimersByTime(seconds * 1_000))
/** What is shown; thin spaces as spaces. */
const shown = (element: Element | null | undefined) => element?.textContent?.replaceAll(/\s/g, ' ')

describe('age', () => {
  test('is a time that screen readers read in full', () => {
    render(<Age at="2026-11-23T09:57:00Z" />)
    const time = document.querySelector('time')
    expect(time?.dateTime).toBe('2026-11-23T09:57:00Z')
    expect(shown(time)).toBe('3 min ago, 23 Nov 2026, 09:57:00 UTC')
  })

  test('gets older each second', () => {
    render(<Age at={NOW} />)
    expect(shown(document.querySelector('time'))).toMatch(/^now,/)
    after(1)
    expect(shown(document.querySelector('time'))).toMatch(/^1 s ago,/)
    after(41)
    expect(shown(document.querySelector('time'))).toMatch(/^42 s ago,/)
  })

  test.each([null, undefined, '', '1970-01-01T00:00:00Z'])('of %j is never', (at) => {
    render(<Age at={at} />)
    expect(screen.getByText('never')).toBeTruthy()
    expect(document.querySelector('time')).toBeNull()
  })
})

describe('duration', () => {
  test('runs until it has an end', () => {
    const { container, rerender } = render(<Duration from="2026-11-23T09:59:50Z" />)
    expect(shown(container)).toBe('10 s')
    after(5)
    expect(shown(container)).toBe('15 s')
    rerender(<Duration from="2026-11-23T09:59:50Z" to="2026-11-23T10:00:02Z" />)
    after(60)
    expect(shown(container)).toBe('12 s')
  })

  test('of a start in the future is zero, not negative', () => {
    const { container } = render(<Duration from="2026-11-23T10:00:30Z" />)
    expect(shown(container)).toBe('0 ms')
  })

  test('without a start is unknown', () => {
    const { container } = render(<Duration from={null} />)
    expect(shown(container)).toBe('–')
  })
})
