/** Behavior of a node when its environment fails: disk, clock, and callers. */

import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readdirSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { VacancyError } from '@vacancy/shared'
import { encodeRequest } from '@vacancy/shared/wire'
import {
  answerTo,
  ask,
  dateIn,
  digestOf,
  getText,
  type NodeProcess,
  readAnswer,
  removeFolder,
  runNodeToEnd,
  somewhere,
  statusOf,
  succeed,
  temporaryFolder,
  type WireClient,
} from '@vacancy/testkit/node'
import { createRandom } from '@vacancy/testkit/random'
import { until } from '@vacancy/testkit/until'
import { expect, test } from 'vitest'
import { nodesOfTest } from './testing/nodes-of-test.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

const { cleanUp, folderOfTest, start, connectTo } = nodesOfTest()

const place = (day: number) => ({ propertyId: 'hotel_1', roomType: 'double', date: dateIn(day) })

// Disks

/** Mounts a separate file system at `data`. @returns whether that is permitted here */
function mountDisk(folder: string, megabytes: number): boolean {
  const target = join(folder, 'data')
  mkdirSync(target)
  const made = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', target])
  if (made.status === 0) cleanUp.push(() => execFileSync('umount', ['-l', target]))
  return made.status === 0
}

function canMount(): boolean {
  const folder = temporaryFolder()
  const isPermitted =
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]).status === 0 &&
    spawnSync('umount', [folder]).status === 0
  removeFolder(folder)
  return isPermitted
}

const mayMount = canMount()

/** Writes until the disk is full. */
function fillUp(path: string): void {
  const file = openSync(path, 'w')
  for (let bytes = 1 << 20; bytes >= 1; ) {
    try {
      if (writeSync(file, new Uint8Array(bytes)) < bytes) bytes >>>= 1
    } catch {
      // No room for this much: try smaller writes.
      bytes >>>= 1
    }
  }
  closeSync(file)
}

/** Writes of a few kilobytes each, so that a log file fills quickly. */
const AMENITIES = Array.from({ length: 64 }, (_, i) => `amenity_${i}_`.padEnd(64, 'x'))
const AT_ONCE = 128
/** 64 MiB of log, on a machine that has other work. */
const FILLING_MS = 180_000

/** Adds properties until one is refused, or `most` exist. @returns how many were acknowledged, and the refusal */
async function addProperties(client: WireClient, most: number): Promise<[number, string]> {
  let acknowledged = 0
  while (acknowledged < most) {
    const answers = Array.from({ length: Math.min(AT_ONCE, most - acknowledged) }, async (_, i) => {
      const fields = { ...somewhere(`p_${acknowledged + i}`), amenities: AMENITIES }
      const correlationId = client.nextId++
      const answer = answerTo(client, correlationId)
      client.socket.write(encodeRequest({ command: 'SETPROP', correlationId, fields }))
      return readAnswer(client, 'SETPROP', await answer)
    })
    const replies = await Promise.all(answers)
    acknowledged += replies.filter(({ ok }) => ok).length
    const refused = replies.find((reply) => !reply.ok)
    if (refused && !refused.ok) return [acknowledged, JSON.stringify(refused)]
  }
  return [acknowledged, '']
}

test.skipIf(!mayMount)(
  'a full disk refuses only writes, and recovers when there is room again',
  async () => {
    const folder = folderOfTest()
    // Room for the first file of the log and, while the ballast is there, not for the next one.
    mountDisk(folder, 170)
    const ballast = join(folder, 'data', 'ballast')
    writeFileSync(ballast, new Uint8Array(90 << 20))
    const node = await start({ folder, config: { snapshot_interval_sec: 0 } })
    const client = await connectTo(node)
    await succeed(client, 'SETPROP', somewhere('hotel_1'))
    await succeed(client, 'SETROOMPKG', { ...place(3), availability: 4 })

    const [acknowledged, refusal] = await addProperties(client, 40_000)

    expect(refusal).toContain('503')
    expect((await succeed(client, 'GETPROPROOMDAY', place(3))).availability).toBe(4)
    await until('it reports that', async () => (await getText(node, '/ready'))[1].includes('disk_full') || undefined)
    expect((await getText(node, '/ready'))[0]).toBe(503)
    expect((await getText(node, '/healthz'))[0]).toBe(200)

    rmSync(ballast)
    await until('writes are accepted again', async () => {
      return (await ask(client, 'SETROOMAVL', { ...place(3), amount: 9 })).ok || undefined
    })
    await until('it is ready', async () => (await getText(node, '/ready'))[0] === 200 || undefined)
    const digest = await digestOf(node)
    await node.kill()

    const again = await start({ folder })
    expect(await digestOf(again)).toBe(digest)
    expect((await statusOf(again)).properties).toBe(acknowledged + 1)
    expect((await succeed(await connectTo(again), 'GETPROPROOMDAY', place(3))).availability).toBe(9)
  },
  FILLING_MS,
)

test.skipIf(!mayMount)(
  'after a crash a start on a full disk serves all acknowledged data, and writes continue',
  async () => {
    const folder = folderOfTest()
    mountDisk(folder, 100)
    const first = await start({ folder, config: { snapshot_interval_sec: 0 } })
    const client = await connectTo(first)
    await succeed(client, 'SETPROP', somewhere('hotel_1'))
    await succeed(client, 'SETROOMPKG', { ...place(3), availability: 4 })
    await first.kill()
    const ballast = join(folder, 'data', 'ballast')
    fillUp(ballast)

    const node = await start({ folder, config: { snapshot_interval_sec: 0 } })

    const again = await connectTo(node)
    expect((await succeed(again, 'GETPROPROOMDAY', place(3))).availability).toBe(4)
    rmSync(ballast)
    await until('writes are accepted', async () => {
      return (await ask(again, 'SETROOMAVL', { ...place(3), amount: 9 })).ok || undefined
    })
  },
)

/** For requests under way when a node is killed. */
function unlessLost(error: unknown): undefined {
  if (!(error instanceof VacancyError && error.code === 'connection_lost')) throw error
}

test('a node that is killed loses no acknowledged write, whether one client writes or many', async () => {
  const seed = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)
  const random = createRandom(seed)
  const folder = folderOfTest()
  const run = { folder, config: { wal_file_bytes: 4 << 20 } }
  const acknowledged: string[] = []
  let next = 0
  for (let life = 0; life < 6; life++) {
    const node = await start(run)
    const clients = await Promise.all(Array.from({ length: 24 }, () => connectTo(node)))
    // Replica and log thread take turns with the log as the number of writers changes.
    let writers = 1
    const write = async (client: WireClient, place: number) => {
      while (writers > 0) {
        if (place >= writers) {
          await setTimeout(2)
          continue
        }
        const propertyId = `hotel_${next++}`
        const reply = await ask(client, 'SETPROP', somewhere(propertyId)).catch(unlessLost)
        if (!reply) return
        if (reply.ok) acknowledged.push(propertyId)
      }
    }
    const all = Promise.all(clients.map(write))
    for (let turn = 2 + random.below(20); turn > 0; turn--) {
      writers = [1, 4, 24][random.below(3)] ?? 1
      const enough = acknowledged.length + 1 + random.below(150)
      while (acknowledged.length < enough) await setTimeout(1)
    }
    await node.kill()
    writers = 0
    await all
  }
  const client = await connectTo(await start(run))
  const lost: string[] = []
  for (const propertyId of acknowledged) {
    const { exists } = await succeed(client, 'PROPEXIST', { propertyId })
    if (!exists) lost.push(propertyId)
  }
  expect(lost, `seed ${seed}`).toEqual([])
}, 240_000)

test.skipIf(!mayMount)('a data folder that became read-only ends the start with 64, without any change', async () => {
  const folder = folderOfTest()
  mountDisk(folder, 200)
  const dataDir = join(folder, 'data')
  const first = await start({ folder })
  await succeed(await connectTo(first), 'SETPROP', somewhere('hotel_1'))
  const digest = await digestOf(first)
  await first.stop()
  const namesOf = () => readdirSync(dataDir, { recursive: true }).sort()
  const before = namesOf()
  execFileSync('mount', ['-o', 'remount,ro', dataDir])

  const { code, output } = await runNodeToEnd({ folder })

  expect(code).toBe(64)
  expect(output).toContain(dataDir)
  expect(output).toContain('read-only')
  expect(output).not.toContain('    at ')
  expect(namesOf()).toEqual(before)
  execFileSync('mount', ['-o', 'remount,rw', dataDir])
  expect(await digestOf(await start({ folder }))).toBe(digest)
})

// The clock

test('at maintenance_hour past nights are dropped, and not before', async () => {
  const folder = folderOfTest()
  const config = { maintenance_hour: 4, snapshot_interval_sec: 0 }
  /** Sets the clock to `hour` o'clock on the day `days` from now. */
  const at = (days: number, hour: number) =>
    Math.floor(Date.now() / DAY_MS) * DAY_MS + days * DAY_MS + hour * HOUR_MS - Date.now()
  const lastDay = async (node: NodeProcess) => (await statusOf(node)).maintenance?.last_day ?? 0

  const day1 = await start({ folder, config, clockOffsetMs: at(1, 10) })
  const client = await connectTo(day1)
  await until('the first day is done', async () => (await lastDay(day1)) || undefined)
  const done = await lastDay(day1)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  for (const day of [1, 2, 3]) await succeed(client, 'SETROOMPKG', { ...place(day), availability: 2 })
  await day1.stop()

  const early = await start({ folder, config, clockOffsetMs: at(2, 1) })
  await until('it has looked', async () => (await statusOf(early)).uptime_seconds >= 3 || undefined)
  expect((await statusOf(early)).packages).toBe(3)
  expect(await lastDay(early)).toBe(done)
  await early.stop()

  const due = await start({ folder, config, clockOffsetMs: at(2, 4) })
  await until('the night is gone', async () => (await statusOf(due)).packages === 2 || undefined)
  await until('the day is noted', async () => (await lastDay(due)) !== done || undefined)
})

// Callers

test('headers sent byte by byte are cut off in time, and other requests are served meanwhile', async () => {
  const node = await start({ folder: folderOfTest() })
  const socket = connect(node.apiPort, '127.0.0.1')
  cleanUp.push(() => socket.destroy())
  let answer = ''
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString()
  })
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const begun = performance.now()
  socket.write('GET /status HTTP/1.1\r\nHost: a\r\nX-Slow: ')
  const dripping = setInterval(() => socket.writable && socket.write('x'), 200)
  cleanUp.push(() => clearInterval(dripping))

  expect((await getText(node, '/healthz'))[0]).toBe(200)
  await closed

  expect(answer).toMatch(/^HTTP\/1\.1 408 /)
  expect(answer).toContain('the request took too long to arrive')
  expect(performance.now() - begun).toBeGreaterThan(9_000)
  expect((await getText(node, '/healthz'))[0]).toBe(200)
})
