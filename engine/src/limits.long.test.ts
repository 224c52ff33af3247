/** Limits are reported as limits, with a sentence and both numbers, not as a bug in the program. */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dayOf, formatDay } from '@vacancy/shared'
import { runNodeToEnd, runVacancy } from '@vacancy/testkit/node'
import { expect, test, vi } from 'vitest'
import { loadEngineConfig, memoryBytes } from './config.ts'
import { READERS_MAX } from './store/layout.ts'
import { nodesOfTest } from './testing/nodes-of-test.ts'
import { planThreads } from './thread-plan.ts'

// Many threads, and files of many rows.
vi.setConfig({ testTimeout: 180_000 })

const { folderOfTest, start } = nodesOfTest()

/** Makes a process report this many cores. */
const withCores = (cores: number) => {
  const code = `import os from 'node:os';import { syncBuiltinESMExports } from 'node:module';os.availableParallelism=()=>${cores};syncBuiltinESMExports()`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
}

test.each([1, 2, 8, 94, 95, 96, 128, 256, 1024])(
  '%i cores need no more readers than there are (they used to)',
  (cores) => {
    const folder = folderOfTest()
    const file = join(folder, 'vacancy.yml')
    writeFileSync(file, 'tcp_port: 0\n')
    const { values } = loadEngineConfig({ file, cores })

    const { readers, loadThreads, scratchBytes } = planThreads(values, cores)

    expect(readers).toBeLessThanOrEqual(READERS_MAX)
    expect(loadThreads).toBeGreaterThanOrEqual(1)
    expect(loadThreads).toBeLessThanOrEqual(cores)
    expect(readers * scratchBytes).toBeLessThan(memoryBytes(values) / 2)
  },
)

test.each([96, 256])('a node with defaults starts on %i cores (it used to end with exit code 72)', async (cores) => {
  const node = await start({ folder: folderOfTest(), config: { serving_threads: 0 }, environment: withCores(cores) })

  expect(node.output()).toContain(`"servingThreads":${Math.min(64, cores / 2)}`)
  expect(await node.stop()).toEqual({ code: 0, signal: null })
})

test('too little memory for the threads of many cores is refused with both numbers', async () => {
  const { code, output } = await runNodeToEnd({
    folder: folderOfTest(),
    config: { serving_threads: 0, memory_max_bytes: 256 << 20 },
    environment: withCores(256),
  })

  expect(code).toBe(64)
  expect(output).toMatch(
    /memory_max_bytes: 268435456 is too little for 66 threads that need \d+ each: give \d+ or more/,
  )
})

test('a seed larger than the memory is refused (it used to end with exit code 72)', async () => {
  const folder = folderOfTest()
  const input = join(folder, 'input')
  const dataDir = join(folder, 'data')
  mkdirSync(input)
  const count = 300_000
  const night = formatDay(dayOf(Date.now()) + 3)
  const lines = (line: (i: number) => string) => Array.from({ length: count }, (_, i) => line(i)).join('')
  writeFileSync(join(input, 'codecs.yml'), 'rate_features:\n  - breakfast\n  - refundable\n  - sea_view\n')
  writeFileSync(
    join(input, 'properties.csv'),
    lines((i) => `hotel_${i},segment_${i % 7},A,hotel,luxury,4,1,2,wifi\n`),
  )
  writeFileSync(
    join(input, 'packages.csv'),
    lines((i) => `hotel_${i},double,${night},3,120,\n`),
  )
  const shard = ['--shard-id', 's1']
  const built = await runVacancy(['build-snapshot', ...shard, '--input-path', input, '--output-path', dataDir])
  expect(built.code, built.output).toBe(0)

  const { code, output } = await runNodeToEnd({
    folder,
    dataDir,
    config: { memory_max_bytes: 64 << 20 },
    flags: [...shard, '--node-id', 'n1'],
  })

  expect(code, output).toBe(64)
  expect(output).toMatch(
    /with 300000 packages needs about \d+ bytes of memory, and memory_max_bytes: 67108864 leaves \d+/,
  )
  rmSync(input, { recursive: true })
})
