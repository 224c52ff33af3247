/** Requests to the check worker, matched to replies by number. The worker starts with the first request. */

import * as copy from './check-copy.ts'
import type { CheckReply, CheckReport, CheckRequest, Classified } from './check-worker.ts'

type Waiting = {
  readonly resolve: (reply: CheckReply) => void
  readonly reject: (error: Error) => void
  readonly onProgress: ((share: number) => void) | undefined
}

let worker: Worker | undefined
let next = 1
const waiting = new Map<number, Waiting>()

type Unnumbered<T> = T extends { readonly id: number } ? Omit<T, 'id'> : never

function request(
  body: Unnumbered<Exclude<CheckRequest, { t: 'stop' }>>,
  options: { readonly onProgress?: (share: number) => void; readonly signal?: AbortSignal } = {},
): Promise<CheckReply> {
  worker ??= start()
  const id = next++
  const { signal, onProgress } = options
  signal?.addEventListener('abort', () => worker?.postMessage({ t: 'stop', id } satisfies CheckRequest), { once: true })
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject, onProgress })
    worker?.postMessage({ ...body, id })
  })
}

function start(): Worker {
  const made = new Worker(new URL('./check-worker.ts', import.meta.url), { type: 'module' })
  made.onmessage = ({ data }: MessageEvent<CheckReply>) => {
    const one = waiting.get(data.id)
    if ('progress' in data) return one?.onProgress?.(data.progress)
    waiting.delete(data.id)
    if ('error' in data) one?.reject(new Error(data.error))
    else one?.resolve(data)
    return undefined
  }
  made.onerror = (event) => {
    for (const one of waiting.values()) one.reject(new Error(event.message || copy.check.workerFailed))
    waiting.clear()
    worker = undefined
  }
  return made
}

export async function checkFiles(
  body: Omit<Extract<CheckRequest, { t: 'check' }>, 't' | 'id'>,
  options: { readonly onProgress?: (share: number) => void; readonly signal?: AbortSignal },
): Promise<CheckReport> {
  const reply = await request({ t: 'check', ...body }, options)
  if ('report' in reply) return reply.report
  throw new Error('unexpected reply of the check worker')
}

export async function classifyFiles(files: readonly File[]): Promise<readonly Classified[]> {
  const reply = await request({ t: 'classify', files })
  if ('classified' in reply) return reply.classified
  throw new Error('unexpected reply of the check worker')
}

export const fingerprintOf = (file: File): Promise<string> => digest({ t: 'fingerprint', file })
export const digestOf = (blob: Blob): Promise<string> => digest({ t: 'digest', blob })

async function digest(body: Unnumbered<Extract<CheckRequest, { t: 'fingerprint' | 'digest' }>>): Promise<string> {
  const reply = await request(body)
  if ('digest' in reply) return reply.digest
  throw new Error('unexpected reply of the check worker')
}
