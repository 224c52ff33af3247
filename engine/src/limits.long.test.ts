/** Limits are reported as limits, with a sentence and both numbers, not as a bug in the program. */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { dayOf, formatDay } from '@vacancy/shared'
import { getText, runNodeToEnd, runVacancy, somewhere, statusOf, succeed } from '@vacancy/testkit/node'
import { happens } from '@vacancy/testkit/until'
import { expect, test, vi } from 'vitest'
import { loadEngineConfig, memoryBytes } from './config.ts'
import { READERS_MAX } from './store/layout.ts'
import { nodesOfTest } from './testing/nodes-of-test.ts'
import { planThreads } from './thread-plan.ts'

// Many threads, and files of many rows.
vi.setConfig({ testTimeout: 180_000 })

const { cleanUp, connectTo, folderOfTest, start } = nodesOfTest()

/** Makes a process believe that it may use this many cores. */
const withCores = (cores: number) => {
  const code = `import fs from 'node:fs';import { syncBuiltinESMExports } from 'node:module';
const { readFileSync } = fs;
fs.readFileSync = (file, ...rest) =>
  file === '/proc/self/status' ? 'Cpus_allowed_list:\\t0-${cores - 1}\\n'
  : file === '/proc/self/cgroup' ? '' : readFileSync(file, ...rest);
syncBuiltinESMExports()`
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

test.each([96, 256])(
  'a node with defaults starts on %i cores (it used to end with exit code 72)',
  async (cores) => {
    const config = { serving_threads: 0 }
    const node = await start({ folder: folderOfTest(), config, environment: withCores(cores), stuckMs: 240_000 })

    expect(node.output()).toContain(`"servingThreads":${Math.min(64, cores / 2)}`)
    expect(await node.stop()).toEqual({ code: 0, signal: null })
  },
  300_000,
)

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

test('idle connections leave descriptors for log, snapshots and health (256 of them used to end a node)', async () => {
  const wrapper = ['sh', '-c', 'ulimit -n 256; exec "$@"', 'sh']
  const node = await start({ folder: folderOfTest(), wrapper, config: { cpu_watch: true } })
  const client = await connectTo(node)
  const idle = Array.from({ length: 400 }, () => connect(node.tcpPort, '127.0.0.1').on('error', () => undefined))
  cleanUp.push(() => idle.map((socket) => socket.destroy()))
  await happens('further connections are closed', [node], async () => {
    const [, text] = await getText(node, '/metrics')
    return Number(/^tcp_rejected_connections_total (\d+)$/m.exec(text)?.[1]) > 100
  })

  expect(node.output()).toContain('10000 connections are configured, but the process may open 256 files')
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  const saved = await fetch(`http://127.0.0.1:${node.apiPort}/save-snapshot`, { method: 'POST' })
  expect(saved.status).toBeLessThan(300)
  await happens('the snapshot is written', [node], async () => (await statusOf(node)).snapshot?.origin === 'requested')
  // The number of processors was read meanwhile.
  await happens('two looks at the cores', [node], async () => (await getText(node, '/health'))[0] === 200)
  expect((await node.stop()).code).toBe(0)
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
