// @vitest-environment happy-dom
import { renderHook } from '@testing-library/react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import '../../ui/testing/dom.ts'
import type { Edits } from './unsaved.ts'

const EDITS: Edits = {
  draft: { shard: 's1', node: '', command: 'SEARCHPROP', fields: { segment: 'v' } },
  text: undefined,
}
const withText = (text: string): Edits => ({ ...EDITS, text })

type Saved = { readonly id: string; readonly body: { readonly text: string | null } }
let saved: Saved[] = []
/** Statuses in place of a success. */
let statuses: number[] = []
let kept: object | null = null
/** Names that another tab holds. */
let held: Set<string>

/** Stands in for the locks of a browser: those of this tab and of others. */
const locks = {
  request: async (name: string, _: object, run: (lock: object | null) => unknown) => {
    if (held.has(name)) return run(null)
    held.add(name)
    return run({ name })
  },
}

/** The module as a tab that was just opened has it. */
async function openTab() {
  vi.resetModules()
  return await import('./unsaved.ts')
}

beforeEach(() => {
  vi.useFakeTimers()
  saved = []
  statuses = []
  kept = null
  held = new Set()
  sessionStorage.clear()
  Object.defineProperty(navigator, 'locks', { value: locks, configurable: true })
  vi.stubGlobal('fetch', async (path: string, { method, body }: { method: string; body: string }) => {
    const id = path.split('/').at(-1) ?? ''
    if (method === 'GET') return Response.json({ request: kept && { id, ...kept } })
    saved.push({ id, body: JSON.parse(body) })
    const status = statuses.shift() ?? 204
    if (status === 204) return new Response(null, { status })
    const problem = { status, code: 'x', title: 'x', detail: `status ${status}`, hint: '', requestId: '' }
    return Response.json(problem, { status, headers: { 'content-type': 'application/problem+json' } })
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const wait = (ms: number) => vi.advanceTimersByTimeAsync(ms)

/** Shows the page in a new tab. */
async function page() {
  const { useKeptEdits, keptEdits } = await openTab()
  const hook = renderHook((edits: Edits) => useKeptEdits(edits), { initialProps: EDITS })
  return { ...hook, keptEdits }
}

test('a change is saved within two seconds, once, under the id of the tab', async () => {
  const { rerender } = await page()
  await wait(4_000)
  expect(saved).toEqual([])

  rerender(withText('a'))
  rerender(withText('ab'))
  await wait(2_000)
  await wait(4_000)

  const id = sessionStorage.getItem('vacancy-tab')
  expect(id).toMatch(/^[0-9a-f]{24}$/)
  const body = { shard: 's1', node: null, command: 'SEARCHPROP', fields: { segment: 'v' }, text: 'ab' }
  expect(saved).toEqual([{ id, body }])
})

test('a reloaded tab finds its draft, under the same id', async () => {
  sessionStorage.setItem('vacancy-tab', 'mine')
  kept = { shard: '', node: null, command: 'GETSEGMENTS', fields: {}, text: null, at: '2026-11-20' }
  const { keptEdits, rerender } = await page()

  expect(await keptEdits()).toEqual({
    ...{ draft: { shard: '', node: '', command: 'GETSEGMENTS', fields: {} }, text: undefined, at: '2026-11-20' },
  })
  rerender(withText('a'))
  await wait(2_000)
  expect(saved.map(({ id }) => id)).toEqual(['mine'])
})

test('a duplicated tab finds the draft of its original, and saves under an id of its own', async () => {
  sessionStorage.setItem('vacancy-tab', 'mine')
  held.add('vacancy-tab mine')
  kept = { shard: '', node: null, command: 'GETSEGMENTS', fields: {}, text: null, at: '2026-11-20' }
  const { keptEdits, rerender } = await page()

  expect(await keptEdits()).toBeDefined()
  rerender(withText('a'))
  await wait(2_000)
  const own = sessionStorage.getItem('vacancy-tab')
  expect(own).not.toBe('mine')
  expect(saved.map(({ id }) => id)).toEqual([own])
  expect(held.has(`vacancy-tab ${own}`)).toBe(true)
})
