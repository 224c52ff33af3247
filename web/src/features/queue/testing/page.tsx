/** Renders a page of the queue as the shell does: signed in, at an address, with a cache of its own. */
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { render } from '@testing-library/react'
import { type Me, preferences } from '@vacancy/shared/contract'
import type { ReactNode } from 'react'
import { vi } from 'vitest'
import { AddressProvider, usePath } from '../../../lib/address.tsx'
import { listenForKeys } from '../../../lib/keys.ts'
import { listenForLinks } from '../../../lib/navigate.ts'
import { pageAt } from '../../../lib/pages.ts'
import { MeContext } from '../../../lib/session.ts'
import { ToastHost } from '../../../ui/toast.tsx'
import { CODE } from '../../shell/pages.ts'
import '../../../ui/testing/dom.ts'

// The framework has no address outside of its own pages.
vi.mock('next/navigation', () => ({
  usePathname: () => location.pathname,
  useSearchParams: () => new URLSearchParams(location.search),
  useSelectedLayoutSegments: () => [],
}))

export function meOf(role: Me['person']['role'] = 'admin', kind: Me['environment']['kind'] = 'production'): Me {
  return {
    person: { id: 'p1', name: 'ana', role },
    csrf: 'secret',
    environment: { label: kind.toUpperCase(), kind },
    preferences: preferences.parse({}),
  } as unknown as Me
}

/** Shows the page of the current address, and follows links. */
function Outlet(): ReactNode {
  const path = usePath()
  const page = pageAt(path)
  const Drawn = page && CODE[page.name].Drawn
  return Drawn && <Drawn {...page.params} />
}

export function renderPage(address: string, me: Me = meOf()) {
  history.replaceState(null, '', address)
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  listenForKeys()
  listenForLinks(() => {})
  return render(
    <QueryClientProvider client={queries}>
      <AddressProvider isDrawn={() => true}>
        <MeContext value={me}>
          <Outlet />
          <ToastHost />
        </MeContext>
      </AddressProvider>
    </QueryClientProvider>,
  )
}
