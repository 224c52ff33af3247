// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { render, screen } from '@testing-library/react'
import { useState } from 'react'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { user } from '../../ui/testing/dom.ts'
import { DatesField, type DatesProps } from './date-range.tsx'

const BOUNDS = { window: { from: '2026-11-10', to: '2026-12-20' }, datesMax: 5, shard: 's3' }
/** Packages by night from 10 November on: none on the 12th. */
const SOLD = { window: BOUNDS.window, packages: Array.from({ length: 41 }, (_, at) => (at === 2 ? 0 : 9)) }

beforeEach(() => {
  vi.stubGlobal('fetch', async () => Response.json(SOLD))
})
afterEach(() => vi.unstubAllGlobals())

function Stay({ start = [], ...rest }: Partial<DatesProps> & { start?: readonly string[] }) {
  const [value, setValue] = useState<readonly string[]>(start)
  return (
    <QueryClientProvider client={new QueryClient()}>
      <DatesField
        label="Stay"
        value={value}
        onChange={setValue}
        bounds={BOUNDS}
        segment={undefined}
        required={false}
        {...rest}
      />
      <output aria-label="value">{value.join(' ')}</output>
    </QueryClientProvider>
  )
}
const field = () => screen.getByRole<HTMLInputElement>('textbox', { name: 'Stay' })
const value = () => screen.getByRole('status', { name: 'value' }).textContent
const note = () =>
  (field().getAttribute('aria-describedby') ?? '')
    .split(' ')
    .map((id) => document.getElementById(id)?.textContent)
    .join(' ')

describe('typed dates', () => {
  test('are both ends of a range', async () => {
    render(<Stay />)
    await user().type(field(), '2026-11-20..2026-11-22')
    expect(value()).toBe('2026-11-20 2026-11-21 2026-11-22')
    expect(note()).toContain('3 nights')
  })

  test('that are invalid are an error, and stay as they were typed', async () => {
    render(<Stay start={['2026-11-20']} />)
    const person = user()
    await person.type(field(), 'x')
    expect(note()).toContain('2026-11-20x is not a date')
    expect(field().getAttribute('aria-invalid')).toBe('true')
    // The request has them too, so that it cannot run with the nights before.
    expect(value()).toBe('2026-11-20x')
    await person.tab()
    expect(field().value).toBe('2026-11-20x')
  })

  test('outside the data are counted', async () => {
    render(<Stay />)
    await user().type(field(), '2026-12-20+3')
    expect(note()).toContain('3 nights · 2 of them without data on s3')
  })

  test('have their limits as a hint', () => {
    render(<Stay />)
    expect(note()).toContain('max 5')
    expect(note()).toMatch(/data: 10 Nov – 20 Dec 2026/)
  })
})

describe('calendar of a stay', () => {
  const day = (name: RegExp) => screen.getByRole('button', { name })

  async function open(props: Parameters<typeof Stay>[0] = {}) {
    render(<Stay {...props} />)
    const person = user()
    await person.click(screen.getByRole('button', { name: 'Calendar' }))
    await screen.findByRole('grid')
    return person
  }

  test('opens at the first date with data, and closes', async () => {
    const person = await open()
    expect(screen.getByRole('grid', { name: /November 2026/ })).toBeTruthy()
    const toggle = screen.getByRole('button', { name: 'Close calendar' })
    expect(toggle.getAttribute('aria-expanded')).toBe('true')
    await person.click(toggle)
    expect(screen.queryByRole('grid')).toBeNull()
  })

  test('two clicks choose a range, in either order', async () => {
    const person = await open()
    expect(screen.getByText('Choose the first date')).toBeTruthy()
    await person.click(day(/^22 Nov 2026/))
    expect(value()).toBe('2026-11-22')
    expect(screen.getByText('From 22 Nov: choose the last date')).toBeTruthy()
    await person.click(day(/^20 Nov 2026/))
    expect(value()).toBe('2026-11-20 2026-11-21 2026-11-22')
    expect(screen.getByText('Choose the first date')).toBeTruthy()
  })

  test('a single date is one click', async () => {
    const person = await open({ single: true })
    await person.click(day(/^22 Nov 2026/))
    await person.click(day(/^24 Nov 2026/))
    expect(value()).toBe('2026-11-24')
  })

  test('a day without data cannot be chosen, and its name has the reason', async () => {
    const person = await open()
    const early = day(/^9 Nov 2026, before the first date of s3$/)
    expect(early.getAttribute('aria-disabled')).toBe('true')
    await person.click(early)
    expect(value()).toBe('')
  })

  test('a range cannot be longer than the shard allows', async () => {
    const person = await open()
    await person.click(day(/^20 Nov 2026/))
    await person.click(day(/^25 Nov 2026, at most 5 dates on s3$/))
    expect(value()).toBe('2026-11-20')
    await person.click(day(/^24 Nov 2026$/))
    expect(value().split(' ')).toHaveLength(5)
  })

  test('nights without packages are named as such and can be chosen', async () => {
    const person = await open({ segment: 'alpine' })
    const empty = await screen.findByRole('button', { name: '12 Nov 2026, no packages in alpine' })
    expect(day(/^13 Nov 2026$/)).toBeTruthy()
    await person.click(empty)
    expect(value()).toBe('2026-11-12')
  })

  test('arrows move between days, also into the next month', async () => {
    const person = await open({ start: ['2026-11-29'] })
    day(/^29 Nov 2026/).focus()
    await person.keyboard('{ArrowRight}{ArrowRight}')
    expect(document.activeElement?.getAttribute('aria-label')).toBe('1 Dec 2026')
    await person.keyboard('{Enter}')
    expect(value()).toBe('2026-12-01')
  })

  test('Escape gives up a range that was begun', async () => {
    const person = await open()
    await person.click(day(/^20 Nov 2026/))
    await person.keyboard('{Escape}')
    expect(screen.getByText('Choose the first date')).toBeTruthy()
  })

  test('months are turned by named buttons', async () => {
    const person = await open()
    await person.click(screen.getByRole('button', { name: 'Next month' }))
    expect(screen.getByRole('grid', { name: /December 2026/ })).toBeTruthy()
    await person.click(screen.getByRole('button', { name: 'Previous month' }))
    expect(screen.getByRole('grid', { name: /November 2026/ })).toBeTruthy()
  })
})
