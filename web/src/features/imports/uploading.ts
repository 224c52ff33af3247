'use client'
/**
 * Uploads files to the control plane in chunks, outside of any page, so that leaving the page stops nothing. An
 * interrupted upload resumes at the offset of the control plane.
 */
import type { UploadView } from '@vacancy/shared/contract'
import { useSyncExternalStore } from 'react'
import { ApiProblem, call } from '../../lib/api.ts'
import * as copy from './copy.ts'
import { digestOf } from './digest.ts'

const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000]
/** A chunk that arrives damaged this often is not the fault of the network. */
const CHECKSUMS_MAX = 5
const RATE_MS = 5_000

export type UploadTask = {
  readonly id: string
  readonly name: string
  readonly bytes: number
  readonly offset: number
  readonly state: 'running' | 'paused' | 'waiting' | 'done' | 'failed'
  /** Why it waits or failed; '' while it runs. */
  readonly message: string
  /** Bytes per second over the last seconds. */
  readonly rate: number
}

type Work = {
  task: UploadTask
  readonly file: File
  readonly chunkBytes: number
  wake: () => void
  stop: AbortController
  samples: { at: number; offset: number }[]
}

const works = new Map<string, Work>()
const readers = new Set<() => void>()
let shown: ReadonlyMap<string, UploadTask> = new Map()

function change(work: Work, next: Partial<UploadTask>): void {
  work.task = { ...work.task, ...next }
  shown = new Map([...works].map(([id, { task }]) => [id, task]))
  for (const reader of readers) reader()
}

/** Uploads of this tab, by id. */
export function useUploads(): ReadonlyMap<string, UploadTask> {
  return useSyncExternalStore(
    (reader) => {
      readers.add(reader)
      return () => readers.delete(reader)
    },
    () => shown,
    () => EMPTY,
  )
}

const EMPTY: ReadonlyMap<string, UploadTask> = new Map()

/** Starts or resumes an upload. */
export function startUpload(upload: UploadView, file: File): void {
  works.get(upload.id)?.stop.abort()
  const { id, name, bytes, offset, chunkBytes } = upload
  const task: UploadTask = { id, name, bytes, offset, state: 'running', message: '', rate: 0 }
  const work: Work = { task, file, chunkBytes, wake: () => {}, stop: new AbortController(), samples: [] }
  works.set(id, work)
  change(work, {})
  void run(work)
}

export function pauseUpload(id: string): void {
  const work = works.get(id)
  if (!work || work.task.state === 'done') return
  work.stop.abort()
  change(work, { state: 'paused', message: copy.upload.paused, rate: 0 })
}

export function resumeUpload(id: string): void {
  const work = works.get(id)
  if (!work || work.task.state === 'running' || work.task.state === 'done') return
  if (work.task.state === 'waiting') return work.wake()
  work.stop = new AbortController()
  work.samples = []
  change(work, { state: 'running', message: '' })
  void run(work)
}

/** Drops the upload in this tab only; the caller deletes it on the control plane. */
export function dropUpload(id: string): void {
  works.get(id)?.stop.abort()
  works.delete(id)
  shown = new Map([...works].map(([key, { task }]) => [key, task]))
  for (const reader of readers) reader()
}

async function run(work: Work): Promise<void> {
  const { signal } = work.stop
  let tries = 0
  let checksums = 0
  while (work.task.offset < work.task.bytes) {
    try {
      const { offset } = await sendChunk(work, signal)
      tries = 0
      checksums = 0
      change(work, { offset, state: 'running', message: '', rate: rateOf(work, offset) })
    } catch (error) {
      if (signal.aborted) return
      const message = messageOf(error)
      if (error instanceof ApiProblem) {
        const { code, more } = error
        if (code === 'wrong-checksum' && ++checksums < CHECKSUMS_MAX) continue
        const received = more['offset']
        if ((code === 'wrong-offset' || code === 'upload-busy') && typeof received === 'number') {
          change(work, { offset: received })
          if (code === 'wrong-offset') continue
        } else if (isFinal(error)) return change(work, { state: 'failed', message, rate: 0 })
      }
      const delay = RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)] as number
      change(work, {
        state: 'waiting',
        message: navigator.onLine ? message : copy.upload.offline,
        rate: 0,
      })
      await pause(work, delay, signal)
      if (signal.aborted) return
      change(work, { state: 'running' })
    }
  }
  change(work, { state: 'done', message: '', rate: 0 })
}

async function sendChunk(work: Work, signal: AbortSignal): Promise<UploadView> {
  const { task, file, chunkBytes } = work
  const chunk = file.slice(task.offset, Math.min(task.offset + chunkBytes, task.bytes))
  const checksum = await digestOf(chunk)
  return await call('PATCH /api/v1/uploads/{id}', {
    params: { id: task.id },
    headers: { 'upload-offset': String(task.offset), 'x-chunk-sha256': checksum },
    bytes: chunk,
    signal,
  })
}

/** Errors that a retry does not change. Without a response, or after a server error, it retries forever. */
function isFinal({ status }: ApiProblem): boolean {
  return status >= 400 && status < 500 && ![401, 408, 409, 429, 460].includes(status)
}

function messageOf(error: unknown): string {
  if (error instanceof ApiProblem) return `${error.message} ${error.hint}`.trim()
  // The file was changed, moved or deleted since it was chosen.
  return error instanceof DOMException ? copy.upload.unreadable : String(error)
}

function pause(work: Work, milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, milliseconds)
    function end(): void {
      clearTimeout(timer)
      removeEventListener('online', end)
      signal.removeEventListener('abort', end)
      work.wake = () => {}
      resolve()
    }
    work.wake = end
    addEventListener('online', end)
    signal.addEventListener('abort', end)
  })
}

function rateOf(work: Work, offset: number): number {
  const at = performance.now()
  work.samples = [...work.samples.filter((sample) => at - sample.at < RATE_MS), { at, offset }]
  const [first] = work.samples
  const span = first ? at - first.at : 0
  return first && span > 0 ? ((offset - first.offset) / span) * 1_000 : 0
}
