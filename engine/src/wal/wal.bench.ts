/**
 * How close is a group commit to a bare write and fdatasync of the same size? (docs/design/storage.md#group-commit,
 * target 14)
 *
 * Data: groups of 1 to 5,000 entries of 48 bytes, appended by one thread to files of 64 MiB on a real disk, the next
 * file prepared between groups as the wal thread does it. Baseline: the same bytes at growing offsets of a file filled
 * with zeros, one write and one fdatasync each. Both take turns in one run, so that a noisy disk is noisy for both.
 *
 *   node engine/src/wal/wal.bench.ts [--dir DIR] [--full]
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
const SIZES = [1, 100, 5_000]
const RAW_FILE_BYTES = 64 * 1024 * 1024

const { values } = parseArgs({
  options: {
    dir: { type: 'string' },
    full: { type: 'boolean', default: false },
    json: { type: 'boolean' },
  },
})
const figures: Record<string, number> = {}
const directory = mkdtempSync(join(values.dir ?? tmpdir(), 'vacancy-wal-bench-'))
try {
  run(directory, values.full ? 10_000 : 1_000)
} finally {
  rmSync(directory, { recursive: true })
}
process.stdout.write(`${JSON.stringify(figures)}\n`)

function run(folder: string, millisecondsEach: number): void {
  const quiet = () => undefined
  const env = createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet })
  const wal = createWal(env, folder, IDENTITY, { index: 0, term: 0 })
  const raw = createRaw(join(folder, 'raw'))
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
    figures[`commit p50, ${size} a group`] = median(commits)
    figures[`raw p50, ${size} a group`] = median(syncs)
    figures[`entries/s, ${size} a group`] = (size * commits.length * 1000) / busyMs
  }
  closeWal(wal)
  const { recovered } = openWal(env, folder, IDENTITY, { isClean: true })
  assert(recovered.lastIndex === appended, 'everything that was appended is found again')
}

/** One commit of `size` entries, then the share of preparing the next file that falls to it. */
function commit(wal: Wal, size: number): { commitMs: number; prepareMs: number } {
  const batch = entries(wal.lastIndex + 1, size, 1, ENTRY_BYTES)
  const hardState = { term: 1, vote: 1, commit: wal.lastIndex }
  const started = performance.now()
  assert(appendGroup(wal, { hardState, batches: [batch] }) === 'stored', 'the disk has room')
  const committed = performance.now()
  prepareNext(wal, 2 * batch.bytes.length)
  return { commitMs: committed - started, prepareMs: performance.now() - committed }
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

function median(samples: readonly number[]): number {
  return samples.toSorted((a, b) => a - b)[samples.length >>> 1] ?? 0
}
