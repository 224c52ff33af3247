import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { VacancyError } from '@vacancy/shared'
import {
  closeClient,
  dateIn,
  openClient,
  removeFolder,
  somewhere,
  startNodeProcess,
  succeed,
  TEST_CODECS,
  temporaryFolder,
} from '@vacancy/testkit/node'
import { afterEach, expect, test } from 'vitest'
import { createEnv, type Disk, type Env, type Log, realDisk } from '../env.ts'
import { CAPTURE_SCRATCH_BYTES } from '../snapshot/capture.ts'
import { WORDS_SCRATCH_BYTES } from '../snapshot/words.ts'
import { countsOf, stateDigest } from '../store/store.ts'
import { closeWal } from '../wal/wal.ts'
import { closeDataDirectory } from './data-directory.ts'
import { recoverNode } from './recovery.ts'
import type { ReplicaOptions } from './replica-options.ts'

// Each start has a decoding thread. The cache spares each of them stripping types again.
enableCompileCache()

const cleanUp: (() => unknown)[] = []

afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

/** A log with a damaged byte in the middle of its records. @returns the folder that holds `data` */
async function damagedFolder(packages: number): Promise<string> {
  const folder = temporaryFolder()
  cleanUp.push(() => removeFolder(folder))
  const node = await startNodeProcess({ folder, config: { snapshot_interval_sec: 0 } })
  cleanUp.push(() => node.kill())
  const client = await openClient(node)
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  for (let i = 0; i < packages; i++) {
    const place = { propertyId: 'hotel_1', roomType: 'double', date: dateIn(1 + i) }
    await succeed(client, 'SETROOMPKG', { ...place, availability: 5 })
  }
  closeClient(client)
  await node.stop()
  const wal = join(folder, 'data', 'wal')
  const file = join(wal, readdirSync(wal).find((name) => name.endsWith('.log')) ?? '')
  const bytes = readFileSync(file)
  const at = bytes.findLastIndex((byte) => byte !== 0) >>> 1
  bytes[at] = bytes[at] ^ 0x10
  writeFileSync(file, bytes)
  return folder
}

const options = (dataDir: string, acceptLoss: boolean): ReplicaOptions => ({
  dataDir,
  shardId: undefined,
  nodeId: 'node-1',
  codecs: TEST_CODECS,
  memoryBytes: 64 << 20,
  readers: 2,
  scratchBytes: CAPTURE_SCRATCH_BYTES + WORDS_SCRATCH_BYTES,
  sessionBytesMax: 1 << 20,
  roomsHint: 4,
  snapshotIntervalMs: 0,
  snapshotTriggerCount: 1,
  walFlushThreshold: 1,
  walFileBytes: 4 << 20,
  loadThreads: 1,
  acceptLoss,
  rejoin: false,
  cluster: undefined,
  acceptDay: 0,
})

const ROOM_BYTES_MIN = 4096
/** Some forty starts, on a machine with other work. */
const MANY_STARTS_MS = 240_000
const DIED = 'the process died here'

let processes = 1000

/** A process on the real disk that dies before its n-th name change. */
function processThatDies(before = Number.POSITIVE_INFINITY): Env {
  const processId = ++processes
  const env = createEnv(silent)
  let changes = 0
  const live = () => {
    if (changes >= before) throw new Error(DIED)
  }
  const change = () => {
    live()
    if (++changes >= before) throw new Error(DIED)
  }
  const disk: Disk = {
    ...realDisk,
    open(path, mode) {
      if (mode === 'create') change()
      live()
      return realDisk.open(path, mode)
    },
    write(file, bytes, start, length, position) {
      live()
      // Preallocated space: writing the last of its zeros is enough.
      const isRoom = length >= ROOM_BYTES_MIN && bytes.subarray(start, start + length).every((byte) => byte === 0)
      if (!isRoom) return realDisk.write(file, bytes, start, length, position)
      realDisk.write(file, bytes, start, 1, position + length - 1)
      return length
    },
    rename(from, to) {
      change()
      realDisk.rename(from, to)
    },
    unlink(path) {
      change()
      realDisk.unlink(path)
    },
    makeDirectory(path) {
      change()
      realDisk.makeDirectory(path)
    },
    removeDirectory(path) {
      change()
      realDisk.removeDirectory(path)
    },
    // No power loss in this test.
    syncData: live,
    syncDirectory: live,
    // Too little for the reserve, which takes time to write.
    space: () => ({ freeBytes: 0, totalBytes: 1 << 30 }),
    // The kernel would release the lock of a process that died here.
    lock: () => ({ isInPlace: () => true, release: () => undefined }),
  }
  const startOf = (id: number) => (id === processId ? 'now' : undefined)
  return { ...env, disk, host: { ...env.host, processId, startOf } }
}

type Outcome = { readonly packages: number; readonly digest: string }

/** Starts as `run` does and stops at once. */
async function recover(env: Env, dataDir: string, acceptLoss: boolean): Promise<Outcome> {
  const node = await recoverNode(env, options(dataDir, acceptLoss), () => undefined)
  const { packages } = countsOf(node.store.memory)
  const outcome = { packages, digest: JSON.stringify(stateDigest(node.store.memory)) }
  closeWal(node.wal)
  closeDataDirectory(node.directory)
  return outcome
}

test(
  'a start with --accept-loss may die repeatedly before any name change and loses no more data',
  async () => {
    const folder = await damagedFolder(60)
    const copyOf = (name: string): string => {
      const target = join(folder, name)
      mkdirSync(target)
      // The log is a file of mostly zeros.
      execFileSync('cp', ['-a', '--sparse=always', join(folder, 'data'), target])
      return join(target, 'data')
    }
    const whole = await recover(processThatDies(), copyOf('undisturbed'), true)
    const dataDir = copyOf('disturbed')

    let deaths = 0
    let last: Outcome | undefined
    while (!last) {
      // Each process gets one change further than the previous one.
      last = await recover(processThatDies(deaths + 1), dataDir, true).catch((error: unknown) => {
        expect(`${error}`).toContain(DIED)
        return undefined
      })
      if (!last) deaths++
    }

    expect(whole.packages).toBeGreaterThan(10)
    expect(whole.packages).toBeLessThan(60)
    expect(last).toEqual(whole)
    expect(deaths).toBeGreaterThan(15)
    expect(readdirSync(dataDir)).not.toContain('rescued.snapshot')
    expect(readdirSync(join(dataDir, 'quarantine')).length).toBeGreaterThan(0)
  },
  MANY_STARTS_MS,
)

test('a rescue continues even if the next start does not accept a loss, and is refused once it is damaged', async () => {
  const folder = await damagedFolder(40)
  const dataDir = join(folder, 'data')
  // Dies after everything has been set aside: only the rescued file is left.
  let before = 1
  for (; !readdirSync(dataDir).includes('rescued.snapshot'); before++) {
    await recover(processThatDies(before), dataDir, true).catch(() => undefined)
  }
  const file = join(dataDir, 'rescued.snapshot')
  const bytes = readFileSync(file)
  const damaged = Uint8Array.from(bytes)
  damaged[damaged.length >>> 1] = damaged[damaged.length >>> 1] ^ 1
  writeFileSync(file, damaged)

  const refused = await recover(processThatDies(), dataDir, true).catch((error: unknown) => error)
  writeFileSync(file, bytes)
  const { packages } = await recover(processThatDies(), dataDir, false)

  expect(refused).toBeInstanceOf(VacancyError)
  expect((refused as VacancyError).code).toBe('corrupt_data')
  expect(packages).toBeGreaterThan(0)
})

test('a damaged identity ends a start, unless it accepts losses: then it is set aside', async () => {
  const folder = temporaryFolder()
  cleanUp.push(() => removeFolder(folder))
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  await recover(createEnv(silent), dataDir, false)
  const file = join(dataDir, 'IDENTITY')
  const bytes = readFileSync(file)
  bytes[bytes.length - 2] = bytes.at(-2) === 0x41 ? 0x42 : 0x41
  writeFileSync(file, bytes)

  await expect(recover(createEnv(silent), dataDir, false)).rejects.toMatchObject({ code: 'corrupt_data' })
  expect(readdirSync(dataDir)).not.toContain('quarantine')

  await recover(createEnv(silent), dataDir, true)
  const aside = readdirSync(join(dataDir, 'quarantine')).find((name) => name.startsWith('damaged-')) ?? ''
  expect(readFileSync(join(dataDir, 'quarantine', aside, 'IDENTITY'))).toEqual(bytes)
})
