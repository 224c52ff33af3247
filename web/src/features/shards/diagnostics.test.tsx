// @vitest-environment happy-dom
import { act, renderHook } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'
import '../../ui/testing/dom.ts'
import { useDownloadDiagnostics } from './diagnostics.ts'
import { shardOf } from './testing/shards.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

test('state, events and configuration are one file; a part that cannot be read is noted in it', async () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 20, 18, 30, 5), toFake: ['Date'] })
  const sent: string[] = []
  vi.stubGlobal('fetch', async (path: string) => {
    sent.push(path)
    if (path.endsWith('/config')) throw new TypeError('no network')
    return Response.json({ events: [] })
  })
  const saved: { name: string; href: string }[] = []
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
    saved.push({ name: this.download, href: this.href })
  })
  let blob: Blob | undefined
  vi.spyOn(URL, 'createObjectURL').mockImplementation((value) => {
    blob = value as Blob
    return 'blob:file'
  })
  const revoked = vi.spyOn(URL, 'revokeObjectURL')
  const shard = shardOf({ id: 's1' })
  const { result } = renderHook(() => useDownloadDiagnostics(shard))

  await act(() => result.current())

  expect(sent).toEqual(['/api/v1/shards/s1/events?limit=500', '/api/v1/shards/s1/config'])
  expect(saved).toEqual([{ name: 'vacancy-s1-2026-11-20T183005.json', href: 'blob:file' }])
  expect(revoked).toHaveBeenCalledWith('blob:file')
  expect(JSON.parse((await blob?.text()) ?? '')).toEqual({
    at: '2026-11-20T18:30:05.000Z',
    shard: JSON.parse(JSON.stringify(shard)),
    events: { events: [] },
    config: { notRead: expect.stringContaining('did not respond') },
  })
})
