import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { measurePause } from '../testing/snapshot-pause.ts'

test('a snapshot finishes when writes change more pages than there are spare ones (the benchmark used to fail)', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'vacancy-pause-'))
  try {
    // 2 MiB of spare pages for 8 MB of words.
    const pause = await measurePause(1_000_000, dataDir, { memoryBytes: 2 ** 25, rounds: 1 })

    expect(pause.snapshots).toBe(1)
    expect(pause.delayedSnapshots).toBe(1)
    expect(pause.longestDelayMs).toBeGreaterThan(0)
  } finally {
    rmSync(dataDir, { recursive: true })
  }
}, 240_000)
