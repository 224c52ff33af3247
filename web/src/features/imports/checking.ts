/** The worker that looks at files, asked and answered by number; started with the first question. */
import type { CheckAnswer, CheckAsk, CheckReport, Sorted } from './check-worker.ts'

type Waiting = {
  readonly resolve: (answer: CheckAnswer) => void
  readonly reject: (error: Error) => void
  readonly onProgress: ((share: number) => void) | undefined
}

let worker: Worker | undefined
let next = 1
const waiting = new Map<number, Waiting>()

type Unnumbered<T> = T extends { readonly id: number } ? Omit<T, 'id'> : never

function ask(
  what: Unnumbered<Exclude<CheckAsk, { t: 'stop' }>>,
  options: { readonly onProgress?: (share: number) => void; readonly signal?: AbortSignal } = {},
): Promise<CheckAnswer> {
  worker ??= start()
  const id = next++
  const { signal, onProgress } = options
  signal?.addEventListener('abort', () => worker?.postMessage({ t: 'stop', id } satisfies CheckAsk), { once: true })
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject, onProgress })
    worker?.postMessage({ ...what, id })
  })
}

function start(): Worker {
  const made = new Worker(new URL('./check-worker.ts', import.meta.url), { type: 'module' })
  made.onmessage = ({ data }: MessageEvent<CheckAnswer>) => {
    const one = waiting.get(data.id)
    if ('progress' in data) return one?.onProgress?.(data.progress)
    waiting.delete(data.id)
    if ('error' in data) one?.reject(new Error(data.error))
    else one?.resolve(data)
    return undefined
  }
  made.onerror = (event) => {
    for (const one of waiting.values()) one.reject(new Error(event.message || 'The check could not be started.'))
    waiting.clear()
    worker = undefined
  }
  return made
}

export async function checkFiles(
  what: Omit<Extract<CheckAsk, { t: 'check' }>, 't' | 'id'>,
  options: { readonly onProgress?: (share: number) => void; readonly signal?: AbortSignal },
): Promise<CheckReport> {
  const answer = await ask({ t: 'check', ...what }, options)
  if ('report' in answer) return answer.report
  throw new Error('the check answered something else')
}

export async function sortFiles(files: readonly File[]): Promise<readonly Sorted[]> {
  const answer = await ask({ t: 'sort', files })
  if ('sorted' in answer) return answer.sorted
  throw new Error('the check answered something else')
}

export const fingerprintOf = (file: File): Promise<string> => digest({ t: 'fingerprint', file })
export const digestOf = (blob: Blob): Promise<string> => digest({ t: 'digest', blob })

async function digest(what: Unnumbered<Extract<CheckAsk, { t: 'fingerprint' | 'digest' }>>): Promise<string> {
  const answer = await ask(what)
  if ('digest' in answer) return answer.digest
  throw new Error('the check answered something else')
}
