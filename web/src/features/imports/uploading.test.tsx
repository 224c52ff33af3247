// @vitest-environment happy-dom
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import { act, renderHook } from '@testing-library/react'
import type { UploadView } from '@vacancy/shared/contract'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import '../../ui/testing/dom.ts'
import { dropUpload, pauseUpload, resumeUpload, startUpload, useUploads } from './uploading.ts'

type Chunk = { readonly offset: number; readonly text: string; readonly isRight: boolean }
type Sent = { readonly headers: Headers; readonly body: Blob; readonly signal: AbortSignal }
type Reply = { readonly status: number; readonly code?: string; readonly offset?: number } | 'no response'

const TEXT = 'abcdefghij'
const UPLOAD = { id: 'u1', name: 'packages.csv', bytes: TEXT.length, offset: 0, chunkBytes: 4 } as UploadView

let chunks: Chunk[] = []
/** Replies in place of the usual one, which accepts the chunk. */
let replies: Reply[] = []

beforeEach(() => {
  chunks = []
  replies = []
  vi.useFakeTimers()
  vi.stubGlobal('fetch', async (_: string, { headers, body, signal }: Sent) => {
    signal.throwIfAborted()
    const offset = Number(headers.get('upload-offset'))
    const bytes = new Uint8Array(await body.arrayBuffer())
    const isRight = headers.get('x-chunk-sha256') === bytesToHex(sha256(bytes))
    chunks.push({ offset, text: new TextDecoder().decode(bytes), isRight })
    const reply = replies.shift() ?? { status: 200, offset: offset + bytes.length }
    if (reply === 'no response') throw new TypeError('no network')
    const problem = { ...reply, detail: reply.code ?? '', hint: '', title: '', requestId: '' }
    const type = reply.status < 400 ? 'application/json' : 'application/problem+json'
    return new Response(JSON.stringify(problem), { status: reply.status, headers: { 'content-type': type } })
  })
})
afterEach(() => {
  act(() => dropUpload('u1'))
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const wait = (milliseconds: number) => act(() => vi.advanceTimersByTimeAsync(milliseconds))
const offsets = () => chunks.map(({ offset }) => offset)

/** Starts the upload; `task()` is its current state. */
function start(upload: Partial<UploadView> = {}) {
  const { result } = renderHook(() => useUploads())
  act(() => startUpload({ ...UPLOAD, ...upload }, new File([TEXT], 'packages.csv')))
  return () => result.current.get('u1')
}

test('a file is sent in chunks with offset and checksum', async () => {
  const task = start()
  expect(task()).toMatchObject({ state: 'running', offset: 0, bytes: 10 })
  await wait(0)

  expect(chunks).toEqual([
    { offset: 0, text: 'abcd', isRight: true },
    { offset: 4, text: 'efgh', isRight: true },
    { offset: 8, text: 'ij', isRight: true },
  ])
  expect(task()).toMatchObject({ state: 'done', offset: 10, message: '' })
})

test('an upload that was interrupted resumes at the offset of the control plane', async () => {
  const task = start({ offset: 8 })
  await wait(0)
  expect(offsets()).toEqual([8])
  expect(task()?.state).toBe('done')
})

test('a complete upload sends nothing', async () => {
  const task = start({ offset: 10 })
  await wait(0)
  expect(chunks).toEqual([])
  expect(task()?.state).toBe('done')
})

test('a wrong offset is corrected at once', async () => {
  replies = [{ status: 409, code: 'wrong-offset', offset: 6 }]
  const task = start()
  await wait(0)
  expect(offsets()).toEqual([0, 6])
  expect(task()?.state).toBe('done')
})

test('a chunk that arrived damaged is sent again at once, but not forever', async () => {
  replies = Array.from({ length: 5 }, () => ({ status: 460, code: 'wrong-checksum' }))
  const task = start()
  await wait(0)
  expect(offsets()).toEqual([0, 0, 0, 0, 0])
  expect(task()).toMatchObject({ state: 'waiting', message: 'wrong-checksum' })
  await wait(500)
  expect(task()?.state).toBe('done')
})

test('without a response it retries after growing pauses, which start again after a success', async () => {
  replies = ['no response', 'no response', { status: 200, offset: 4 }, 'no response']
  const task = start()
  await wait(0)
  expect(task()?.state).toBe('waiting')
  await wait(499)
  expect(offsets()).toEqual([0])
  await wait(1)
  expect(offsets()).toEqual([0, 0])
  await wait(1_000)
  expect(offsets()).toEqual([0, 0, 0, 4])
  await wait(500)
  expect(task()?.state).toBe('done')
})

test('a network that returns ends the pause', async () => {
  replies = ['no response']
  const task = start()
  await wait(0)
  dispatchEvent(new Event('online'))
  await wait(0)
  expect(task()?.state).toBe('done')
})

test.each([403, 404, 413])('status %d ends it, with the message', async (status) => {
  replies = [{ status, code: 'refused' }]
  const task = start()
  await wait(60_000)
  expect(offsets()).toEqual([0])
  expect(task()).toMatchObject({ state: 'failed', message: 'refused' })
})

test.each([401, 408, 429, 500, 503])('status %d is retried', async (status) => {
  replies = [{ status, code: 'later' }]
  const task = start()
  await wait(0)
  expect(task()).toMatchObject({ state: 'waiting', message: 'later' })
  await wait(500)
  expect(task()?.state).toBe('done')
})

test('a paused upload sends nothing until it is resumed', async () => {
  const task = start()
  act(() => pauseUpload('u1'))
  await wait(60_000)
  expect(task()).toMatchObject({ state: 'paused', rate: 0 })
  const sent = chunks.length
  expect(sent).toBeLessThanOrEqual(1)
  act(() => resumeUpload('u1'))
  await wait(0)
  expect(task()?.state).toBe('done')
  expect(
    chunks
      .slice(sent)
      .map(({ text }) => text)
      .join(''),
  ).toBe(TEXT)
})

test('resuming a waiting upload ends its pause', async () => {
  replies = ['no response']
  const task = start()
  await wait(0)
  act(() => resumeUpload('u1'))
  await wait(0)
  expect(task()?.state).toBe('done')
})

test('a dropped upload is gone and sends nothing more', async () => {
  const task = start()
  act(() => dropUpload('u1'))
  await wait(60_000)
  expect(task()).toBeUndefined()
  expect(chunks.length).toBeLessThanOrEqual(1)
})

test('another tab that uploads the same file moves the offset, and this one waits', async () => {
  replies = [{ status: 409, code: 'upload-busy', offset: 6 }]
  const task = start()
  await wait(0)
  expect(task()).toMatchObject({ state: 'waiting', offset: 6, message: 'upload-busy' })
  await wait(500)
  expect(offsets()).toEqual([0, 6])
  expect(task()?.state).toBe('done')
})
