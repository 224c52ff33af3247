import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, test } from 'vitest'
import { createEnv, type Log } from '../env.ts'
import { createBell, createPipes, createSender, type PipeEnd } from '../pipe.ts'
import type { EntryBatch } from '../raft/entry.ts'
import { batchTexts, entries, IDENTITY, replayTexts } from '../testing/log-fixture.ts'
import { atRest, listen } from '../threads/attend.ts'
import { createInlineLog } from './inline-log.ts'
import { createWal, openWal } from './open.ts'
import { PIECE_BYTES, prepareNext } from './wal.ts'
import { FROM_WAL, TO_WAL } from './wal-pipe.ts'
import { type FromWal, packWal, type ToWal, unpackWal } from './wal-thread.ts'
import type { LogOfThread } from './wal-worker.ts'

const OPTIONS = { fileBytes: 256 * 1024, reserveBytes: 1024 }
const silent = () => undefined
const log: Log = { debug: silent, info: silent, warn: silent, error: silent }
const env = createEnv(log)
const folders: string[] = []

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

function start(change: (state: ReturnType<typeof packWal>) => void = silent) {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-wal-'))
  folders.push(folder)
  const wal = createWal(env, folder, IDENTITY, { index: 0, term: 0 }, OPTIONS)
  while (prepareNext(wal, PIECE_BYTES));
  const state = packWal(wal)
  change(state)
  const [end, replica] = createPipes(createBell(), createBell())
  const worker = new Worker(new URL('./wal-worker.ts', import.meta.url), { trackUnmanagedFds: false })
  worker.postMessage({ state, flushThreshold: 1000, lends: true, replica } satisfies LogOfThread, [replica.port])
  return { folder, worker, end, send: createSender(end, TO_WAL) }
}

/** Messages up to the first one that is looked for. */
function until(end: PipeEnd, isLast: (message: FromWal) => boolean): Promise<FromWal[]> {
  return new Promise((resolve) => {
    const seen: FromWal[] = []
    listen(atRest(end.bell), end, FROM_WAL, (message) => {
      seen.push(message)
      if (isLast(message)) resolve(seen)
    })
  })
}

function append(token: number, batches: EntryBatch[], commit: number): ToWal {
  return { type: 'append', token, hardState: { term: 1, vote: 1, commit }, entries: batches, refusals: 0 }
}

test('the thread stores its messages, reports up to which token, and closes the files', async () => {
  const { folder, worker, end, send } = start()
  const batches = Array.from({ length: 300 }, (_, i) => entries(1 + i * 20, 20, 1, 48))
  const ended = new Promise((resolve) => worker.on('exit', resolve))
  const messages = until(end, ({ type }) => type === 'closed')

  for (const [i, batch] of batches.entries()) send(append(i + 1, [batch], 0))
  send({ type: 'mark', mark: { index: 6000, term: 1 } })
  send({ type: 'compact', floor: 6000 })
  send({ type: 'close' })

  const seen = await messages
  await ended
  const tokens = seen.flatMap((message) => (message.type === 'stored' ? [message.token] : []))
  expect(tokens).toEqual(tokens.toSorted((a, b) => a - b))
  expect(tokens.at(-1)).toBe(300)
  expect(seen.slice(-3).map(({ type }) => type)).toEqual(['marked', 'compacted', 'closed'])
  const { recovered } = openWal(env, folder, IDENTITY, { ...OPTIONS, isClean: true })
  const texts = batchTexts(batches)
  expect(recovered.firstIndex).toBeGreaterThan(1)
  expect(replayTexts(env.disk, recovered.scan)).toEqual(texts.slice(recovered.firstIndex - 1))
  expect(recovered.hardState.commit).toBe(6000)
})

test('the thread continues behind what its sender has written itself', async () => {
  const { folder, end, send } = start()
  const batches = [entries(1, 1, 1), entries(2, 3, 1), entries(5, 2, 1), entries(7, 40, 1)]
  const state = packWal(openWal(env, folder, IDENTITY, { ...OPTIONS, isClean: true }).wal)
  const stored: string[] = []
  const inline = createInlineLog({
    wal: unpackWal(state),
    toThread: (message) => send(message),
    onStored: ({ token }) => stored.push(`sender ${token}`),
    onWaiting: () => undefined,
    monotonicMs: () => 0,
  })
  let token = 0
  const next = () => {
    const batch = batches[token++]
    if (batch) inline.send(append(token, [batch], 0))
    inline.settle()
    if (token === batches.length) inline.send({ type: 'close' })
  }
  await new Promise<void>((resolve) => {
    listen(atRest(end.bell), end, FROM_WAL, (message) => {
      // As from a fast disk.
      inline.onAnswer(message.type === 'stored' ? { ...message, syncMs: 0 } : message)
      if (message.type === 'closed') return resolve()
      if (message.type === 'stored') stored.push(`thread ${message.token}`)
      while (token < batches.length) next()
    })
    next()
  })
  expect(stored).toEqual(['thread 1', 'sender 2', 'sender 3', 'thread 4'])
  const { recovered } = openWal(env, folder, IDENTITY, { ...OPTIONS, isClean: true })
  expect(replayTexts(env.disk, recovered.scan)).toEqual(batchTexts(batches))
})

test('a failed write ends the conversation with disk_failed, and nothing is confirmed', async () => {
  const { end, send, worker } = start((state) => {
    state.descriptor = 987_654
  })
  const ended = new Promise((resolve) => worker.on('exit', resolve))
  const messages = until(end, ({ type }) => type === 'failed')

  send(append(1, [entries(1, 5, 1)], 0))
  send(append(2, [entries(6, 5, 1)], 0))

  const seen = await messages
  await ended
  expect(seen).toEqual([
    expect.objectContaining({ type: 'failed', failure: expect.objectContaining({ code: 'disk_failed' }) }),
  ])
})
