/** Runs a hook as a page does: with an address, a cache of its own and a control plane that answers what the test decides. */
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { act, renderHook } from '@testing-library/react'
import type { ReactNode } from 'react'
import { vi } from 'vitest'
import { AddressProvider } from '../address.tsx'
import '../../ui/testing/dom.ts'

// The framework has no address outside of its own pages.
vi.mock('next/navigation', () => ({
  usePathname: () => location.pathname,
  useSearchParams: () => new URLSearchParams(location.search),
}))

type Answer = (path: string) => unknown

/**
 * The time must be faked.
 *
 * @param answer the body of each response, or a Response; empty by default
 */
export async function runHook<R>(
  hook: () => R,
  { address = '/', answer = () => ({}) }: { readonly address?: string; readonly answer?: Answer } = {},
) {
  const sent: string[] = []
  vi.stubGlobal('fetch', async (path: string, { method = 'GET', body }: RequestInit) => {
    sent.push(`${method} ${path}${typeof body === 'string' ? ` ${body}` : ''}`)
    const found = answer(path)
    return found instanceof Response ? found : Response.json(found)
  })
  history.replaceState(null, '', address)
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false }, mutations: { retry: false } } })
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={queries}>
      <AddressProvider isDrawn={() => true}>{children}</AddressProvider>
    </QueryClientProvider>
  )
  const rendered = renderHook(hook, { wrapper })
  const wait = (ms = 0) => act(() => vi.advanceTimersByTimeAsync(ms))
  await wait()
  return { ...rendered, queries, sent, wait }
}

export const problemOf = (status: number): Response =>
  Response.json(
    { status, code: 'x', title: 'x', detail: 'x', hint: '', requestId: '' },
    { status, headers: { 'content-type': 'application/problem+json' } },
  )
