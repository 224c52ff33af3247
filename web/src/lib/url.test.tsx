// @vitest-environment happy-dom
import './testing/hook.tsx'
import { QueryClient } from '@tanstack/react-query'
import { act, renderHook } from '@testing-library/react'
import type { Me, PersonRole } from '@vacancy/shared/contract'
import type { ReactNode } from 'react'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { AddressProvider } from './address.tsx'
import { pauseLive, resumeLive, startLive } from './live.ts'
import { MeContext, may, useWhyNot } from './session.ts'
import { runHook } from './testing/hook.tsx'
import { useUrlParam, useUrlTyped } from './url.ts'
import { useWriteMode } from './write-mode.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const address = () => location.pathname + location.search
/** Waits for what is not urgent. */
const settled = (run: { wait: (ms: number) => Promise<unknown> }) => run.wait(100)

test('a parameter is read from the URL and written to it, beside others', async () => {
  const run = await runHook(() => useUrlParam('sort'), { address: '/shards?a=1&sort=lag' })
  expect(run.result.current[0]).toBe('lag')
  const entries = history.length

  act(() => run.result.current[1]('zone'))
  await settled(run)
  expect(run.result.current[0]).toBe('zone')
  expect([address(), history.length]).toEqual(['/shards?a=1&sort=zone', entries])

  act(() => run.result.current[1]('', { push: true }))
  await settled(run)
  expect(run.result.current[0]).toBe('')
  expect([address(), history.length]).toEqual(['/shards?a=1', entries + 1])
})

test('typed text counts at once, and is in the URL after a quarter of a second without a key', async () => {
  const run = await runHook(() => useUrlTyped('q'), { address: '/?q=a' })
  const typed = () => run.result.current[0]

  act(() => run.result.current[1]('ab'))
  await run.wait(249)
  act(() => run.result.current[1]('abc'))
  await run.wait(249)
  expect([typed(), address()]).toEqual(['abc', '/?q=a'])
  await run.wait(1)
  expect([typed(), address()]).toEqual(['abc', '/?q=abc'])
  await settled(run)
  expect(typed()).toBe('abc')

  // Back or a link: the URL counts.
  history.replaceState(null, '', '/?q=other')
  act(() => void dispatchEvent(new PopStateEvent('popstate')))
  await settled(run)
  expect(typed()).toBe('other')
})

test('write mode is off until it is turned on, and again after 15 minutes', async () => {
  const run = await runHook(() => useWriteMode())
  const isOn = () => run.result.current[0]
  expect(isOn()).toBe(false)

  act(() => run.result.current[1](true))
  await run.wait(15 * 60_000 - 1)
  expect(isOn()).toBe(true)
  await run.wait(1)
  expect(isOn()).toBe(false)

  act(() => run.result.current[1](true))
  act(() => run.result.current[1](false))
  expect(isOn()).toBe(false)
  // Turned on again, it has the whole time again.
  act(() => run.result.current[1](true))
  await run.wait(10 * 60_000)
  act(() => run.result.current[1](true))
  await run.wait(10 * 60_000)
  expect(isOn()).toBe(true)
})

describe('session', () => {
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
})
