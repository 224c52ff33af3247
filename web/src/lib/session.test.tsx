// @vitest-environment happy-dom
import './testing/hook.tsx'
import { QueryClient } from '@tanstack/react-query'
import { act, renderHook } from '@testing-library/react'
import type { Me, PersonRole } from '@vacancy/shared/contract'
import type { ReactNode } from 'react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { AddressProvider } from './address.tsx'
import { pauseLive, resumeLive, startLive } from './live.ts'
import { MeContext, may, useWhyNot } from './session.ts'

const meOf = (role: PersonRole) => ({ person: { role } }) as Me

beforeEach(() => {
  vi.useFakeTimers()
  history.replaceState(null, '', '/')
})
afterEach(() => {
  act(() => resumeLive())
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test.each<[PersonRole, readonly PersonRole[]]>([
  ['viewer', ['viewer']],
  ['operator', ['viewer', 'operator']],
  ['admin', ['viewer', 'operator', 'admin']],
])('the rights of a person with the role %s', (role, rights) => {
  expect((['viewer', 'operator', 'admin'] as const).filter((right) => may(meOf(role), right))).toEqual(rights)
})

const whyNot = (role: PersonRole, needed: PersonRole) => {
  const wrapper = ({ children }: { children: ReactNode }) => (
    <AddressProvider isDrawn={() => true}>
      <MeContext value={meOf(role)}>{children}</MeContext>
    </AddressProvider>
  )
  return renderHook(() => useWhyNot(needed), { wrapper }).result
}

test('an action is available to its role, now, while connected and not paused', () => {
  expect(whyNot('operator', 'operator').current).toBeUndefined()
  expect(whyNot('viewer', 'operator').current).toBe('Needs the operator role')

  const shown = whyNot('admin', 'operator')
  act(() => pauseLive())
  expect(shown.current).toBe('Live updates are paused. Resume them first')
  act(() => resumeLive())
  expect(shown.current).toBeUndefined()

  history.replaceState(null, '', '/?at=2026-11-20T18:30:00Z')
  expect(whyNot('admin', 'operator').current).toBe('Viewing the past. Go back to now first')
})

test('without a connection no action is available', async () => {
  vi.stubGlobal('SharedWorker', undefined)
  class Socket {
    readyState = 0
    onclose = () => {}
    close() {}
    constructor() {
      opened.push(this)
    }
  }
  const opened: Socket[] = []
  vi.stubGlobal('WebSocket', Socket)
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('no network')))
  const shown = whyNot('admin', 'operator')
  const stop = startLive(new QueryClient())

  await act(async () => {
    opened[0]?.onclose()
    await vi.advanceTimersByTimeAsync(0)
  })
  expect(shown.current).toBe('Disconnected from the control plane')
  act(() => stop())
  expect(shown.current).toBeUndefined()
})
