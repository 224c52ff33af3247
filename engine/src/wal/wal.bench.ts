/**
 * How close is a group commit to a bare write and fdatasync of the same size? (docs/design/storage.md#group-commit,
 * target 14)
 *
 * Data: groups of 1 to 20,000 entries of 48 bytes, appended by one thread to files of 64 MiB on a real disk, the next
 * file prepared between groups as the wal thread does it. Baseline: the same bytes at growing offsets of a file filled
 * with zeros, one write and one fdatasync each. Both take turns in one run, so that a noisy disk is noisy for both.
 *
 *   node engine/src/wal/wal.bench.ts [--dir DIR] [--full] [--json]
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { assert } from '@vacancy/shared'
import { createEnv, realDisk } from '../env.ts'
import { ENTRY_HEADER_BYTES } from '../raft/entry.ts'
import { entries, IDENTITY } from '../testing/log-fixture.ts'
import { createWal, openWal } from './open.ts'
import { appendGroup, closeWal, prepareNext, type Wal } from './wal.ts'

const ENTRY_BYTES = 48
const SIZES = [1, 10, 100, 1_000, 5_000, 20_000]
const RAW_FILE_BYTES = 64 * 1024 * 1024

const { values } = parseArgs({
  options: {
    dir: { type: 'string' },
    full: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const figures: Record<string, number> = {}
const directory = mkdtempSync(join(values.dir ?? tmpdir(), 'vacancy-wal-bench-'))
try {
  run(directory, values.full ? 10_000 : 1_000)
} finally {
  rmSync(directory, { recursive: true })
}
if (values.json) process.stdout.write(`${JSON.stringify(figures)}\n`)

function run(folder: string, millisecondsEach: number): void {
  const quiet = () => undefined
  const env = createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet })
  const wal = createWal(env, folder, IDENTITY, { index: 0, term: 0 })
  const raw = createRaw(join(folder, 'raw'))
  print('entries a group |  entries/s |     MB/s | commit p50 ms | p99 ms | raw p50 ms | p50 ratio')
  let appended = 0
  for (const size of SIZES) {
    const commits: number[] = []
    const syncs: number[] = []
    let busyMs = 0
    const started = performance.now()
    while (performance.now() - started < millisecondsEach * 2) {
      const { commitMs, prepareMs } = commit(wal, size)
      commits.push(commitMs)
      busyMs += commitMs + prepareMs
      appended += size
      syncs.push(raw.write(size * (ENTRY_BYTES + ENTRY_HEADER_BYTES)))
    }
    const perSecond = (size * commits.length * 1000) / busyMs
    const commitMs = percentile(commits, 0.5)
    const syncMs = percentile(syncs, 0.5)
    figures[`commit p50, ${size} a group`] = commitMs
    figures[`raw p50, ${size} a group`] = syncMs
    figures[`entries/s, ${size} a group`] = perSecond
    const columns = [
      String(size).padStart(15),
      Math.round(perSecond).toLocaleString('en').padStart(10),
      ((perSecond * ENTRY_BYTES) / 1e6).toFixed(1).padStart(8),
      commitMs.toFixed(3).padStart(13),
      percentile(commits, 0.99).toFixed(2).padStart(6),
      syncMs.toFixed(3).padStart(10),
      (commitMs / syncMs).toFixed(2).padStart(9),
    ]
    print(columns.join(' | '))
  }
  closeWal(wal)
  const started = performance.now()
  const { recovered } = openWal(env, folder, IDENTITY, { isClean: true })
  assert(recovered.lastIndex === appended, 'everything that was appended is found again')
  const seconds = (performance.now() - started) / 1000
  print(`read back and verified: ${appended.toLocaleString('en')} entries in ${seconds.toFixed(2)} s`)
}

/** One commit of `size` entries, then the share of preparing the next file that falls to it. */
function commit(wal: Wal, size: number): { commitMs: number; prepareMs: number } {
  const batch = entries(wal.lastIndex + 1, size, 1, ENTRY_BYTES)
  const batches = batch.bytes.length <= wal.groupBytesMax ? [batch] : halves(batch.firstIndex, size)
  const hardState = { term: 1, vote: 1, commit: wal.lastIndex }
  const started = performance.now()
  for (const part of batches) assert(appendGroup(wal, { hardState, batches: [part] }) === 'stored', 'the disk has room')
  const committed = performance.now()
  prepareNext(wal, 2 * batch.bytes.length)
  return { commitMs: committed - started, prepareMs: performance.now() - committed }
}

function halves(firstIndex: number, size: number) {
  const half = size / 2
  return [entries(firstIndex, half, 1, ENTRY_BYTES), entries(firstIndex + half, half, 1, ENTRY_BYTES)]
}

function createRaw(path: string) {
  const file = realDisk.open(path, 'create')
  const bytes = new Uint8Array(RAW_FILE_BYTES)
  realDisk.write(file, bytes, 0, bytes.length, 0)
  realDisk.syncData(file)
  let at = 0
  return {
    write(length: number): number {
      if (at + length > RAW_FILE_BYTES) at = 0
      bytes.fill(at, 0, length)
      const started = performance.now()
      realDisk.write(file, bytes, 0, length, at)
      realDisk.syncData(file)
      at += length
      return performance.now() - started
    },
  }
}

function percentile(samples: number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

function print(line: string): void {
  if (!values.json) process.stdout.write(`${line}\n`)
}
