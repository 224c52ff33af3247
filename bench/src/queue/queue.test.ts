import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { measureWaiting } from './million.ts'
import { measureQueue } from './queue.ts'

test('each load runs on the real queue and the floor, and its figures are reported', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'vacancy-bench-queue-'))
  try {
    // The user that PostgreSQL runs as has to reach its folder.
    chmodSync(dir, 0o755)
    const options = { jobs: 1_000, rounds: 1, url: '', token: '', only: ['1', '2', '3', '6', '8', '9'], dir }
    const { rows } = await measureQueue(options, () => {})

    expect(rows.map(({ id }) => id)).toEqual([1, 2, 3, 6, 8, 9])
    const measures = rows.flatMap((row) => row.measures)
    expect(measures.filter(({ value }) => !(value > 0))).toEqual([])
    expect(rows[0]?.measures.map(({ name }) => name)).toContain('processor time over the floor')
    expect(rows[4]?.measures.map(({ name }) => name)).toContain('in the database over the floor')
    expect(rows[5]?.measures.map(({ name }) => name)).toContain('submitted: share of the queue alone')
  } finally {
    rmSync(dir, { recursive: true })
  }
}, 120_000)

test('a queue with many waiting jobs is started, weighed and drained', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'vacancy-bench-queue-'))
  try {
    const { measures } = await measureWaiting({ dir, jobs: 20_000, few: 1_000, starts: 1, rounds: 3 }, () => {})

    expect(measures.filter(({ value }) => !Number.isFinite(value))).toEqual([])
    expect(measures.map(({ target }) => target)).not.toContain(undefined)
  } finally {
    rmSync(dir, { recursive: true })
  }
}, 120_000)
