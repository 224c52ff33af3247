import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { statusBody } from '@vacancy/shared/contract'
import {
  ask,
  closeClient,
  dateIn,
  digestOf,
  getText,
  metric,
  type NodeProcess,
  type NodeRun,
  post,
  runNodeToEnd,
  runVacancy,
  somewhere,
  statusOf,
  succeed,
} from '@vacancy/testkit/node'
import { until } from '@vacancy/testkit/until'
import { expect, test, vi } from 'vitest'
import { realDisk } from './env.ts'
import { digestText } from './snapshot/format.ts'
import { readSeedFile } from './snapshot/load.ts'
import { nodesOfTest } from './testing/nodes-of-test.ts'
import { isDue, watchCores } from './timed-tasks.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

const { cleanUp, folderOfTest, start, connectTo } = nodesOfTest()

const place = (day = 3) => ({ propertyId: 'hotel_1', roomType: 'double', date: dateIn(day) })

/** Adds a property and this many packages of it. */
async function fill(node: NodeProcess, packages: number, availability = 5): Promise<void> {
  const client = await connectTo(node)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  const writes = Array.from({ length: packages }, (_, i) =>
    succeed(client, 'SETROOMPKG', { ...place(1 + (i % 300)), roomType: `room_${Math.floor(i / 300)}`, availability }),
  )
  await Promise.all(writes)
  closeClient(client)
}

/** A folder with data after a clean shutdown. */
async function dataFolder(packages = 50, config: NodeRun['config'] = {}): Promise<{ folder: string; digest: string }> {
  const folder = folderOfTest()
  const node = await start({ folder, config: { snapshot_interval_sec: 0, ...config } })
  await fill(node, packages)
  const digest = await digestOf(node)
  await node.stop()
  return { folder, digest }
}

const logFile = (folder: string): string => {
  const wal = join(folder, 'data', 'wal')
  const name = readdirSync(wal).find((file) => file.endsWith('.log'))
  return join(wal, name as string)
}

/** All files of a folder with their bytes. */
function contentsOf(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(
    files.map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name), 'latin1')]),
  )
}

/** Flips a bit in the middle of the log's records, or elsewhere. @returns name of the file */
function damageLog(folder: string, part = 0.5): string {
  const file = logFile(folder)
  const bytes = readFileSync(file)
  const end = bytes.findLastIndex((byte) => byte !== 0)
  const at = Math.floor(end * part)
  bytes[at] = bytes[at] ^ 0x10
  writeFileSync(file, bytes)
  return file
}

// Configuration

test.each([
  ['tcp_port', 70_000, '65535'],
  ['query_limit', 0, '32767'],
  ['api_port', 'eighty', '65535'],
  ['cpu_watch', 'perhaps', ''],
  ['log_level', 'loud', 'trace'],
  ['memory_max_bytes', 1_000_000, '67108864'],
  ['sys_cores_count', 1_000, 'cores'],
])('%s: %s ends the start with 64, naming file, key and range', async (key, value, range) => {
  const folder = folderOfTest()

  const { code, output } = await runNodeToEnd({ folder, config: { [key]: value } })

  expect(code).toBe(64)
  expect(output).toContain(key)
  if (!['memory_max_bytes', 'sys_cores_count'].includes(key)) expect(output).toContain(join(folder, 'vacancy.yml'))
  expect(output).toContain(range)
  expect(() => statSync(join(folder, 'data'))).toThrow()
})

test('wal_file_bytes is the size of log files and of the reserve, and may change from start to start', async () => {
  const sizes = () => [logFile(folder), join(folder, 'data', 'reserve.bin')].map((file) => statSync(file).size)
  const { folder, digest } = await dataFolder(50, { wal_file_bytes: 4 << 20 })
  expect(sizes()).toEqual([4 << 20, 4 << 20])

  const node = await start({ folder, config: { wal_file_bytes: 8 << 20 } })

  expect(sizes()).toEqual([8 << 20, 8 << 20])
  expect(await digestOf(node)).toBe(digest)
})

test('memory_max_bytes without room for the replies that are allowed is a wrong configuration', async () => {
  const folder = folderOfTest()
  const config = { memory_max_bytes: 67_108_864, query_limit: 32_767, session_table_bytes: 1_048_576 }

  const { code, output } = await runNodeToEnd({ folder, config })

  expect(code).toBe(64)
  expect(output).toContain('memory_max_bytes')
})

test('an unknown key ends the start with 64 and the nearest name', async () => {
  const { code, output } = await runNodeToEnd({ folder: folderOfTest(), config: { query_limt: 5 } })

  expect(code).toBe(64)
  expect(output).toContain('query_limit')
})

test('a port in use ends the start with 69', async () => {
  const taken = createServer()
  const port = await new Promise<number>((resolve) => {
    taken.listen(0, '127.0.0.1', () => resolve((taken.address() as { port: number }).port))
  })
  cleanUp.push(() => taken.close())

  for (const key of ['tcp_port', 'api_port']) {
    const { code, output } = await runNodeToEnd({ folder: folderOfTest(), config: { [key]: port } })
    expect(code).toBe(69)
    expect(output).toContain(`127.0.0.1:${port}`)
  }
})

test('a node whose threads share a port does not share it with another node (it used to)', async () => {
  const first = await start({ folder: folderOfTest(), config: { serving_threads: 2 } })
  const config = { serving_threads: 2, tcp_port: first.tcpPort }
  const { code, output } = await runNodeToEnd({ folder: folderOfTest(), config })

  expect(code).toBe(69)
  expect(output).toContain(`Cannot listen on 127.0.0.1:${first.tcpPort}`)
})

test('log_level and serving_threads take effect', async () => {
  const node = await start({ folder: folderOfTest(), config: { log_level: 'error', serving_threads: 2 } })

  expect((await statusOf(node)).serving_threads).toBe(2)
  expect(node.output()).not.toContain('"level":"info"')
})

test.runIf(process.platform === 'linux')('the threads that compile go behind those that answer', async () => {
  const { pid } = await start({ folder: folderOfTest() })
  const nice = (thread: string) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1')
    const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'))
    return { name, nice: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]) }
  }
  const threads = readdirSync(`/proc/${pid}/task`).map(nice)

  expect(threads.filter(({ name }) => name === 'node-V8Worker').map((thread) => thread.nice)).toContain(10)
  expect(threads).toEqual(expect.arrayContaining(['replica', 'log', 'serving'].map((name) => ({ name, nice: 0 }))))
  expect(threads.some(({ name, nice }) => nice > 0 !== (name === 'node-V8Worker'))).toBe(false)
})

test('wal_flush_threshold: entries of one group at most', async () => {
  const groups = async (threshold: number) => {
    const node = await start({ folder: folderOfTest(), config: { wal_flush_threshold: threshold } })
    await fill(node, 600)
    await digestOf(node)
    return await metric(node, 'vacancy_wal_groups_total')
  }

  expect(await groups(10)).toBeGreaterThanOrEqual(60)
  expect(await groups(100_000)).toBeLessThan(60)
})

test('session_table_bytes: the least recently used sessions are dropped when it is full', async () => {
  const node = await start({ folder: folderOfTest(), config: { session_table_bytes: 1_048_576 } })
  const client = await connectTo(node)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  await succeed(client, 'SETROOMPKG', { ...place(), availability: 0 })
  const session = (i: number) => ({ session: i.toString(16).padStart(32, '0'), requestNumber: 1 })
  const set = (i: number) => ask(client, 'SETROOMAVL', { ...place(), amount: i % 256, ...session(i) })

  for (let from = 1; from <= 10_000; from += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, i) => set(from + i)))
  }

  const { sessions } = await until('the figures are there', async () => {
    const status = await statusOf(node)
    return status.sessions > 0 ? status : undefined
  })
  expect(sessions).toBeGreaterThan(100)
  expect(sessions).toBeLessThan(10_000)
})

test.each([
  ['snapshot_trigger_count', { snapshot_trigger_count: 100, snapshot_interval_sec: 0 }],
  ['snapshot_interval_sec', { snapshot_interval_sec: 1 }],
])('%s: a snapshot is written automatically', async (_, config) => {
  const node = await start({ folder: folderOfTest(), config })
  await fill(node, 150)

  const snapshot = await until('there is a snapshot', async () => {
    const found = (await statusOf(node)).snapshot
    return found && found.packages > 0 ? found : undefined
  })
  expect(snapshot.origin).toBe('periodic')
})

test('api_public_read and admin_requires_auth close their paths', async () => {
  const open = await start({ folder: folderOfTest(), config: { admin_requires_auth: true } })
  expect((await getText(open, '/status'))[0]).toBe(200)
  expect(await post(open, '/save-snapshot')).toBe(401)
  await open.stop()

  const folder = folderOfTest()
  const auth = join(folder, 'auth.yml')
  writeFileSync(auth, 'tokens:\n  - {token: "watch-token", role: monitoring}\n')
  const closed = await start({ folder, config: { api_public_read: false }, flags: ['--auth-file', auth] })
  expect((await getText(closed, '/status'))[0]).toBe(401)
  expect((await getText(closed, '/status', 'watch-token'))[0]).toBe(200)
})

// Timed tasks

test('maintenance is due when its hour has come and today is not done, or when a day was missed', () => {
  const today = 20_000
  const at = (hour: number) => today * DAY_MS + hour * HOUR_MS

  expect(isDue(at(3), 4, today - 1)).toBe(false)
  expect(isDue(at(4), 4, today - 1)).toBe(true)
  expect(isDue(at(23), 4, today)).toBe(false)
  expect(isDue(at(3), 4, today - 2)).toBe(true)
  expect(isDue(at(0), 0, today - 1)).toBe(true)
  expect(isDue(at(0), 0, today + 1)).toBe(false)
})

test.each([true, false])(
  'a changed number of cores is reported once, and end the node when cpu_watch is %s',
  async (isActive) => {
    vi.useFakeTimers()
    const changes: string[] = []
    const warnings: string[] = []
    const samples = ['2/2', '4/4', '2/2', '4/4', '4/4', '4/4']
    const log = {
      debug: () => undefined,
      info: () => undefined,
      warn: (_: object, text: string) => warnings.push(text),
      error: () => undefined,
    }

    const stop = watchCores({
      sample: () => samples.shift() ?? '4/4',
      isActive,
      log,
      whyStay: async () => '',
      onChange: () => changes.push('changed'),
      lookMs: 10,
    })
    await vi.advanceTimersByTimeAsync(200)
    stop()
    vi.useRealTimers()

    expect(changes).toEqual(isActive ? ['changed'] : [])
    expect(warnings).toHaveLength(1)
  },
)

const hasTaskset = spawnSync('taskset', ['--version']).status === 0 && availableParallelism() > 1

test.skipIf(!hasTaskset).each([
  [true, 75],
  [false, 0],
])('when the cores of the process change, cpu_watch: %s ends it with %i', async (isWatched, exitCode) => {
  const node = await start({ folder: folderOfTest(), config: { cpu_watch: isWatched } })
  await fill(node, 5)

  // One of its cores, any of them.
  const own = spawnSync('taskset', ['-cp', String(node.pid)], { encoding: 'utf8' }).stdout
  const core = /: (\d+)/.exec(own)?.[1] as string
  spawnSync('taskset', ['-acp', core, String(node.pid)])
  await until('the change is logged', () => node.output().includes('the number of cores changed') || undefined)
  if (!isWatched) expect(await post(node, '/shutdown', { confirm: true })).toBe(202)

  expect((await node.ended).code).toBe(exitCode)
})

test('maintenance on request drops past nights, and writes a snapshot', async () => {
  const folder = folderOfTest()
  const before = await start({ folder, clockOffsetMs: -2 * DAY_MS })
  const client = await connectTo(before)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  for (const day of [-2, -1, 0, 1]) await succeed(client, 'SETROOMPKG', { ...place(day), availability: 1 })
  await before.stop()

  const node = await start({ folder, config: { maintenance_hour: 23 } })
  expect(await post(node, '/admin/maintenance')).toBe(202)

  const { maintenance } = await until('maintenance is done', async () => {
    const status = await statusOf(node)
    return status.snapshot?.origin === 'maintenance' && status.maintenance?.removed_packages ? status : undefined
  })
  expect(maintenance?.removed_packages).toBe(2)
  expect((await statusOf(node)).packages).toBe(2)
})

test('a data folder eight days old continues: past nights are dropped, new ones are accepted', async () => {
  const folder = folderOfTest()
  const old = await start({ folder, clockOffsetMs: -8 * DAY_MS })
  const client = await connectTo(old)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  for (const day of [-8, -1, 0, 5]) await succeed(client, 'SETROOMPKG', { ...place(day), availability: 4 })
  expect(await post(old, '/admin/maintenance')).toBe(202)
  await until('the day is known', async () => ((await statusOf(old)).maintenance?.last_day ?? 0) > 0 || undefined)
  await old.kill()

  const node = await start({ folder })
  const again = await connectTo(node)
  await until('maintenance is done', async () => (await statusOf(node)).packages === 2 || undefined)

  await succeed(again, 'SETROOMPKG', { ...place(360), availability: 1 })
  expect((await succeed(again, 'GETPROPROOMDAY', place(5))).availability).toBe(4)
  const dates = await succeed(again, 'PROPROOMDATELIST', { propertyId: 'hotel_1', roomType: 'double' })
  expect(dates.dates).toEqual([dateIn(0), dateIn(5), dateIn(360)])
})

test('a folder forty days old waits for --accept-date, and continues with it', async () => {
  const folder = folderOfTest()
  const old = await start({ folder, clockOffsetMs: -40 * DAY_MS })
  const client = await connectTo(old)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  for (const day of [-40, -39, 5]) await succeed(client, 'SETROOMPKG', { ...place(day), availability: 4 })
  expect(await post(old, '/admin/maintenance')).toBe(202)
  await until('the day is known', async () => ((await statusOf(old)).maintenance?.last_day ?? 0) > 0 || undefined)
  await old.stop()

  const waiting = await start({ folder })
  await until('it logs that', () => waiting.output().includes('--accept-date') || undefined)
  const reader = await connectTo(waiting)
  expect((await succeed(reader, 'GETPROPROOMDAY', place(5))).availability).toBe(4)
  expect((await statusOf(waiting)).packages).toBe(3)
  await waiting.stop()

  const node = await start({ folder, flags: ['--accept-date', dateIn(0)] })
  await until('maintenance is done', async () => (await statusOf(node)).packages === 1 || undefined)
})

// Data folders

test('another process on the folder ends with 65 and the number of the first', async () => {
  const folder = folderOfTest()
  const node = await start({ folder })

  const { code, output } = await runNodeToEnd({ folder })

  expect(code).toBe(65)
  expect(output).toContain(String(node.pid))
  expect((await statusOf(node)).health).toBe('active')
})

test('another shard id than that of the data ends with 65 and both ids', async () => {
  const folder = folderOfTest()
  await (await start({ folder, flags: ['--shard-id', 'north'] })).stop()

  const { code, output } = await runNodeToEnd({ folder, flags: ['--shard-id', 'south'] })

  expect(code).toBe(65)
  expect(output).toContain('north')
  expect(output).toContain('south')
})

test('a folder that cannot be written ends the start with an error that names it', async () => {
  const folder = folderOfTest()
  const parent = join(folder, 'locked')
  mkdirSync(parent)
  chmodSync(parent, 0o500)
  // Permissions do not stop root: there a file blocks the path.
  const dataDir = process.getuid?.() === 0 ? join(folder, 'vacancy.yml', 'data') : join(parent, 'data')

  const { code, output } = await runNodeToEnd({ folder, dataDir })

  expect(code).toBe(64)
  expect(output).toContain(dataDir)
  expect(output).not.toContain('    at ')
})

test.each([
  ['a graceful shutdown', 'stop'],
  ['kill -9', 'kill'],
] as const)('after %s all data is there, with and without a snapshot', async (_, end) => {
  const folder = folderOfTest()
  const config = { snapshot_interval_sec: 0 }
  const first = await start({ folder, config })
  await fill(first, 100)
  const digest = await digestOf(first)
  await first[end]()

  const second = await start({ folder, config })
  expect(await digestOf(second)).toBe(digest)
  expect((await statusOf(second)).snapshot).toBeNull()
  expect(await post(second, '/save-snapshot')).toBe(202)
  await until('the snapshot is there', async () => (await statusOf(second)).snapshot ?? undefined)
  await fill(second, 150, 7)
  const later = await digestOf(second)
  await second[end]()

  const third = await start({ folder, config })
  expect(await digestOf(third)).toBe(later)
  const status = await statusOf(third)
  expect([status.properties, status.packages]).toEqual([1, 150])
})

test('data of another codec list is set aside, reported, and can be restored', async () => {
  const { folder, digest } = await dataFolder()
  const codecs = ['refundable', 'breakfast', 'sea_view']

  const other = await start({ folder, codecs })
  const status = await statusOf(other)
  expect(status.packages).toBe(0)
  expect(status.codec_mismatch).toContain('breakfast')
  const client = await connectTo(other, codecs)
  await succeed(client, 'SETPROP', somewhere('hotel_2'))
  await other.stop()

  const dataDir = join(folder, 'data')
  const list = await runVacancy(['quarantine', 'list', '--data-dir', dataDir])
  const name = list.output.trim().split(/\s/)[0]
  expect(list.code).toBe(0)
  // It used to be forgotten by the next start.
  const again = await start({ folder, codecs })
  const reasons = async () => (await statusOf(again)).reasons.map(({ reason }) => reason)
  expect([(await statusOf(again)).codec_mismatch, await reasons()]).toEqual([status.codec_mismatch, ['codecs_changed']])
  expect((await runVacancy(['quarantine', 'accept', name ?? '', '--data-dir', dataDir])).code).toBe(0)
  await until('the reason ends', async () => (await reasons()).length === 0)
  await again.stop()
  const restored = await runVacancy(['quarantine', 'restore', name, '--data-dir', dataDir])
  expect(restored.output).toContain(`restored ${name}`)
  expect(restored.code).toBe(0)
  const back = await start({ folder })
  expect(await digestOf(back)).toBe(digest)
})

test('a damaged byte of the log ends with 71 and changes no file; inspect reports the position', async () => {
  const { folder } = await dataFolder()
  const dataDir = join(folder, 'data')
  const file = damageLog(folder)
  const before = contentsOf(join(dataDir, 'wal'))

  const run = await runNodeToEnd({ folder })
  const inspect = await runVacancy(['inspect', dataDir])
  const exported = await runVacancy(['export', dataDir, '--output-path', join(folder, 'refused')])

  expect(run.code).toBe(71)
  expect(run.output).toContain(file)
  expect(contentsOf(join(dataDir, 'wal'))).toEqual(before)
  expect(inspect.code).toBe(71)
  expect(inspect.output).toMatch(/log damaged: .+ at byte \d+/)
  expect(exported.code).toBe(71)
  expect(() => statSync(join(folder, 'refused', 'seed.snapshot'))).toThrow()
})

test('after a clean shutdown a damaged last group is damage, not an unfinished write', async () => {
  const { folder } = await dataFolder()
  damageLog(folder, 1)

  const { code, output } = await runNodeToEnd({ folder })

  expect(code).toBe(71)
  expect(output).toContain('the last shutdown was clean')
})

test('run --accept-loss serves the valid data, prints the loss, and keeps the original files', async () => {
  const { folder } = await dataFolder(200)
  damageLog(folder)

  const node = await start({ folder, flags: ['--accept-loss'] })

  const { packages, properties, snapshot } = statusBody.parse(await statusOf(node))
  expect(snapshot?.origin).toBe('recovery')
  expect(properties).toBe(1)
  expect(packages).toBeLessThan(200)
  expect(node.output()).toMatch(/damage: .+ is damaged at byte \d+/)
  expect(node.output()).toMatch(/kept: everything up to entry \d+/)
  expect(node.output()).toContain('quarantine')
  const client = await connectTo(node)
  await succeed(client, 'SETROOMPKG', { ...place(), availability: 3 })
  const digest = await digestOf(node)
  await node.kill()
  expect(await digestOf(await start({ folder }))).toBe(digest)
  expect(readdirSync(join(folder, 'data', 'quarantine'))).toHaveLength(1)
})

test('export creates a snapshot file that another node starts from; of damaged data only with --accept-loss', async () => {
  const { folder, digest } = await dataFolder()
  const dataDir = join(folder, 'data')
  const target = join(folder, 'copy')

  const exported = await runVacancy(['export', dataDir, '--output-path', target])
  expect(exported.output).toContain('50 packages')
  expect(exported.code).toBe(0)
  const { manifest } = readSeedFile(realDisk, join(target, 'seed.snapshot'))
  expect(digestText(manifest.digest)).toBe(digest)
  const copy = await start({ folder: folderOfTest(), dataDir: target })
  expect(await statusOf(copy)).toMatchObject({ packages: 50, properties: 1 })
  // A separate shard with its own random bits (docs/design/consensus.md#formation), and otherwise the same.
  expect(await digestOf(copy)).not.toBe(digest)
  await copy.stop()

  damageLog(folder)
  const part = await runVacancy(['export', dataDir, '--output-path', join(folder, 'part'), '--accept-loss'])
  expect(part.output).toContain('is damaged at byte')
  expect(part.code).toBe(0)
  expect(statSync(join(folder, 'part', 'seed.snapshot')).size).toBeGreaterThan(0)
})

test('a log whose last group was torn by a power loss is cut there without other effects', async () => {
  const { folder, digest } = await dataFolder()
  const file = logFile(folder)
  rmSync(join(folder, 'data', 'CLEAN'), { force: true })
  const bytes = readFileSync(file)
  const end = bytes.findLastIndex((byte) => byte !== 0) + 1
  writeFileSync(file, Buffer.concat([bytes.subarray(0, end), Buffer.alloc(bytes.length - end)]))

  const node = await start({ folder })

  expect(await digestOf(node)).toBe(digest)
})

test('POST /shutdown shuts the node down gracefully', async () => {
  const node = await start({ folder: folderOfTest() })

  expect(await post(node, '/shutdown', { confirm: true })).toBe(202)

  expect((await node.ended).code).toBe(0)
})

test('a refused request changes no data', async () => {
  const node = await start({ folder: folderOfTest() })
  await fill(node, 5)
  const client = await connectTo(node)
  const night = { ...place(1), roomType: 'room_0' }
  const before = await ask(client, 'GETPROPROOMDAY', night)
  const { packages, properties } = await statusOf(node)

  expect((await ask(client, 'DECROOMAVL', { ...night, amount: 200 })).ok).toBe(false)
  expect((await ask(client, 'SETROOMPKG', { ...night, date: '2020-02-30' })).ok).toBe(false)

  const after = await ask(client, 'GETPROPROOMDAY', night)
  expect(after.ok && after.result).toEqual(before.ok && before.result)
  expect(before.ok).toBe(true)
  expect(await statusOf(node)).toMatchObject({ packages, properties })
})
