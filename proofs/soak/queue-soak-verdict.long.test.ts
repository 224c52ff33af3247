import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { soakQueue } from './queue-soak.ts'
import { type QueueSoak, queueSoakVerdict } from './queue-soak-verdict.ts'

const counts = { submitted: 1_000, deliveries: 1_010, failed: 10, reconnects: 5, repeated: 0, refused: 0, left: 0 }
const sizes = (of: (minute: number) => number) =>
  Array.from({ length: 21 }, (_, minute) => ({ seconds: minute * 60, bytes: of(minute) * 1e6 }))
const good: QueueSoak = {
  perSecond: 10,
  seconds: 100,
  counts,
  delayP99: 0.012,
  memory: sizes((minute) => 300 + (minute % 3)),
  files: sizes((minute) => Math.min(minute, 3) * 20),
}
const failed = (soak: QueueSoak) =>
  queueSoakVerdict(soak)
    .filter(({ passed }) => !passed)
    .map(({ name }) => name)

test('flat sizes, a quick event loop, the whole rate and an empty queue pass', () => {
  expect(failed(good)).toEqual([])
})

test.each([
  [{ memory: sizes((minute) => 300 + 2 * minute) }, 'memory is flat'],
  [{ files: sizes((minute) => 60 + 2 * minute) }, 'the size of the journal is flat'],
  [{ delayP99: 0.021 }, 'event loop delay, p99, is at most 20 ms'],
  [{ delayP99: Number.NaN }, 'event loop delay, p99, is at most 20 ms'],
  [{ counts: { ...counts, submitted: 900 } }, 'the rate is kept'],
  [{ counts: { ...counts, refused: 1 } }, 'the rate is kept'],
  [{ counts: { ...counts, left: 1 } }, 'nothing is left after draining'],
])('anything else fails (case %#)', (change, name) => {
  expect(failed({ ...good, ...change })).toEqual([name])
})

test('a short soak of the real queue fails jobs, reconnects, and leaves nothing', { timeout: 180_000 }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'vacancy-soak-queue-'))
  try {
    const soak = await soakQueue({ dir, seconds: 6, topJobs: 5_000 }, () => {})
    expect(soak.counts.left).toBe(0)
    expect(soak.counts.refused).toBe(0)
    expect(soak.counts.failed).toBeGreaterThan(0)
    expect(soak.counts.reconnects).toBeGreaterThan(0)
    expect(soak.counts.deliveries).toBeGreaterThan(soak.counts.submitted)
    expect(Number.isFinite(soak.delayP99)).toBe(true)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
