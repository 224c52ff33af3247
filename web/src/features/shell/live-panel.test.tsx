// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { render, screen } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'
import { AddressProvider } from '../../lib/address.tsx'
import type { LiveStatus } from '../../lib/live.ts'
import { user } from '../../ui/testing/dom.ts'
import LivePanel from './live-panel.tsx'

vi.mock('next/navigation', () => ({
  usePathname: () => location.pathname,
  useSearchParams: () => new URLSearchParams(location.search),
}))
afterEach(() => vi.unstubAllGlobals())

const FROM = '2026-11-20T18:25:00.000Z'
const STATUS = { paused: false, link: { state: 'live' } } as unknown as LiveStatus

/** @param recordedFrom as the control plane reports it for the last minutes */
async function past(recordedFrom: string | null): Promise<HTMLElement> {
  vi.stubGlobal('fetch', async (input: string) => {
    const isTimeline = new URL(input, location.href).pathname === '/api/v1/past/timeline'
    return Response.json({ from: FROM, recordedFrom }, { status: isTimeline ? 200 : 404 })
  })
  history.replaceState(null, '', '/shards/s1')
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <AddressProvider isDrawn={() => true}>
        <LivePanel status={STATUS} title="Live" onClose={() => {}} />
      </AddressProvider>
    </QueryClientProvider>,
  )
  const button = screen.getByRole('button', { name: 'View the past' })
  await vi.waitFor(() => expect(button.dataset['tip'] ?? '').not.toMatch(/^Loading/), { timeout: 20_000 })
  await user().click(button)
  return button
}

const moment = () => new URLSearchParams(location.search).get('at')

test('the past starts five minutes ago', async () => {
  await past(FROM)

  expect(moment()).toBe(FROM)
  expect(screen.queryByText(/^The past can be viewed/)).toBeNull()
})

test('when the recording began later, the past starts there and the panel shows when', async () => {
  await past('2026-11-20T18:28:40.000Z')

  expect(moment()).toBe('2026-11-20T18:28:40.000Z')
  expect(screen.getByText(/^The past can be viewed from 18:28:40 UTC/)).toBeTruthy()
})

test('without anything recorded the past cannot be viewed', async () => {
  const button = await past(null)

  expect(moment()).toBeNull()
  expect(button.getAttribute('aria-disabled')).toBe('true')
  expect(button.dataset['tip']).toMatch(/^Nothing is recorded yet/)
})
