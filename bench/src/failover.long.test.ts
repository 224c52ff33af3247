import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { closeBench, createBench, SIZES } from './bench.ts'
import { measureFailover } from './failover.ts'

test('real nodes survive the isolation of their leader, and the observations are reported', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'vacancy-failover-'))
  const bench = createBench({ size: { ...SIZES.quick, packages: 2_000 }, dir, say: () => {} })
  try {
    const { section, rounds } = await measureFailover(bench, ['cut'], 1)

    expect(rounds.map(({ kind }) => kind)).toEqual(['cut'])
    expect(rounds[0]?.pauseMs).toBeGreaterThan(0)
    expect(rounds[0]?.reads).toBeGreaterThan(0)
    expect(section.rows.map(({ id }) => id)).toEqual([2])
  } finally {
    await closeBench(bench, { keep: false })
    rmSync(dir, { recursive: true, force: true })
  }
}, 300_000)
