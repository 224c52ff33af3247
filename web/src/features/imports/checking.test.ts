import { beforeEach, expect, test, vi } from 'vitest'
import type { CheckReply, CheckRequest } from './check-worker.ts'

/** Stands in for the platform's worker: records what it is sent, and delivers replies. */
class FakeWorker {
  readonly sent: CheckRequest[] = []
  onmessage = (_event: { data: CheckReply }) => {}
  onerror = (_event: { message: string }) => {}

  constructor() {
    workers.push(this)
  }
  postMessage(request: CheckRequest) {
    this.sent.push(request)
  }
  reply(data: CheckReply) {
    this.onmessage({ data })
  }
}

let workers: FakeWorker[] = []
const worker = () => workers.at(-1) as FakeWorker
const idOf = (at: number) => worker().sent[at]?.id as number
const file = new File([], 'a.csv')
const REPORT = { files: [], full: true, stopped: false } as never

/** The module with no worker started. */
let checking: typeof import('./checking.ts')

beforeEach(async () => {
  workers = []
  vi.stubGlobal('Worker', FakeWorker)
  vi.resetModules()
  checking = await import('./checking.ts')
  return () => vi.unstubAllGlobals()
})

test('the worker starts with the first request and serves all', async () => {
  expect(workers).toHaveLength(0)
  const first = checking.fingerprintOf(file)
  const second = checking.digestOf(file)

  expect(workers).toHaveLength(1)
  expect(worker().sent.map(({ t }) => t)).toEqual(['fingerprint', 'digest'])
  worker().reply({ id: idOf(1), digest: 'second' })
  worker().reply({ id: idOf(0), digest: 'first' })
  expect(await Promise.all([first, second])).toEqual(['first', 'second'])
})

test('progress is reported until the reply', async () => {
  const shares: number[] = []
  const report = checking.checkFiles({ files: [] } as never, { onProgress: (share) => shares.push(share) })

  worker().reply({ id: idOf(0), progress: 0.25 })
  worker().reply({ id: idOf(0), progress: 0.5 })
  worker().reply({ id: idOf(0), report: REPORT })

  expect(await report).toBe(REPORT)
  expect(shares).toEqual([0.25, 0.5])
})

test('an error of one request leaves the others waiting', async () => {
  const failing = checking.fingerprintOf(file)
  const other = checking.classifyFiles([file])

  worker().reply({ id: idOf(0), error: 'The file was removed.' })
  await expect(failing).rejects.toThrow('The file was removed.')
  worker().reply({ id: idOf(1), classified: [] })
  expect(await other).toEqual([])
})

test('an aborted check tells the worker which one to stop', () => {
  const abort = new AbortController()
  void checking.checkFiles({ files: [] } as never, { signal: abort.signal })

  abort.abort()
  expect(worker().sent.at(-1)).toEqual({ t: 'stop', id: idOf(0) })
})

test('a worker that fails rejects all requests, and the next request starts another', async () => {
  const waiting = [checking.fingerprintOf(file), checking.digestOf(file)]

  worker().onerror({ message: '' })
  for (const one of waiting) await expect(one).rejects.toThrow('The check could not start.')

  const next = checking.digestOf(file)
  expect(workers).toHaveLength(2)
  worker().reply({ id: idOf(0), digest: 'abc' })
  expect(await next).toBe('abc')
})

test('a reply of another kind is an error', async () => {
  const digest = checking.digestOf(file)
  worker().reply({ id: idOf(0), classified: [] })
  await expect(digest).rejects.toThrow('unexpected reply')
})
