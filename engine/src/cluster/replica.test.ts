import { dayOf } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { RAFT_LIMITS } from '../raft/raft.ts'
import { crash, createSimulatedDisk, fillDisk, fork, restart, type SimulatedDisk } from '../testing/disk.ts'
import { type Command, give, startToy, type ToyOptions, type ToyReplica, UNLUCKY } from '../testing/toy-replica.ts'
import { REFUSED } from '../threads/writes.ts'
import { listLogFiles } from '../wal/scan.ts'
import { onLogMessage } from './log-answers.ts'
import { startSnapshot } from './maintenance.ts'
import { drainReplica, statusOf } from './replica.ts'
import type { Replica } from './replica-state.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)
const FULL = process.env['VACANCY_STORAGE_FULL'] === '1'

function begin(options: ToyOptions = {}, disk = createSimulatedDisk()): ToyReplica {
  const toy = startToy(disk, options)
  toy.simulation.settle()
  return toy
}

const commands = (from: number, count: number): Command[] =>
  Array.from({ length: count }, (_, i) => ({ token: from + i, value: from + i }))

test('a single voter leads once its vote and the empty entry of its term are durable', () => {
  const { replica, wal } = begin()
  expect(statusOf(replica)).toMatchObject({ role: 'leader', term: 1, lastIndex: 1, commitIndex: 1, appliedIndex: 1 })
  expect(wal.hardState).toMatchObject({ term: 1, vote: 1 })
})

test('a write is answered with its result, after it is durable and applied', () => {
  const toy = begin()
  give(toy, [
    { token: 7, value: 300 },
    { token: 8, value: UNLUCKY },
  ])
  expect(toy.answers.size).toBe(0)

  toy.simulation.settle()

  expect(toy.answers.get(7)).toEqual({ code: 0, value: 44, index: 2 })
  expect(toy.answers.get(8)).toMatchObject({ code: 6, index: 3 })
  expect(toy.published.at(-1)).toBe(3)
  const after = startToy(crash(toy.disk, () => false))
  expect(after.values).toEqual([300])
})

test('nothing is answered while the disk has not confirmed', () => {
  const toy = begin()
  toy.disk.fault = ({ call }) => (call === 'syncData' ? { kind: 'crash' } : undefined)
  give(toy, commands(1, 5))

  expect(() => toy.simulation.settle()).toThrow('the machine stops')

  expect(toy.answers.size).toBe(0)
})

test('a node whose sync does not return is stuck after 2.5 s: no more writes, no campaign, until it returns', () => {
  let isHung = false
  const toy = begin({ isHung: () => isHung })
  isHung = true
  give(toy, commands(1, 2))
  toy.simulation.advance(2_400)
  expect([statusOf(toy.replica).isStuck, toy.replica.raft.standsBack]).toEqual([false, false])

  toy.simulation.advance(400)
  give(toy, commands(9, 1))
  expect([statusOf(toy.replica).isStuck, toy.replica.raft.standsBack]).toEqual([true, true])
  expect([1, 2, 9].map((token) => toy.answers.get(token)?.code)).toEqual([
    REFUSED.outcomeUnknown,
    REFUSED.outcomeUnknown,
    REFUSED.overloaded,
  ])

  isHung = false
  toy.simulation.advance(200)
  expect([statusOf(toy.replica).isStuck, toy.replica.raft.standsBack]).toEqual([false, false])
  expect(toy.values).toEqual([1, 2])
})

test('proposals that arrive while the disk is busy become one group', () => {
  const toy = begin({ wal: { fileBytes: 65_536, reserveBytes: 512 } })
  const before = toy.disk.operations.length
  for (let i = 0; i < 20; i++) give(toy, commands(i * 10, 10), i % 2)

  toy.simulation.settle()

  expect(toy.answers.size).toBe(200)
  expect(toy.values).toEqual(Array.from({ length: 200 }, (_, i) => i))
  const syncs = toy.disk.operations
    .slice(before)
    .filter(({ call, path }) => call === 'syncData' && path.endsWith('.log'))
  expect(syncs).toHaveLength(1)
})

test('a group holds at most wal_flush_threshold entries', () => {
  const toy = begin({ flushThreshold: 7, wal: { fileBytes: 65_536, reserveBytes: 512 } })
  const groups = statusOf(toy.replica).groups
  give(toy, commands(0, 50))
  toy.simulation.settle()

  expect(statusOf(toy.replica).groups - groups).toBe(8)
  expect(toy.values).toHaveLength(50)
})

test('proposals of many megabytes in one turn are cut into groups of at most 1 MiB', () => {
  const toy = begin({ wal: { fileBytes: 8 << 20, reserveBytes: 65_536 } })
  let largest = 0
  toy.disk.fault = ({ call, bytes, path }) => {
    if (call === 'write' && path.endsWith('.log')) largest = Math.max(largest, bytes)
    return undefined
  }
  give(
    toy,
    commands(0, 80).map((command) => ({ ...command, bytes: 60_000 })),
  )
  toy.simulation.settle()

  expect(toy.values).toHaveLength(80)
  expect(largest).toBeLessThan(1.1 * 1024 * 1024)
})

test('applying yields after 1,024 commands, and readers see whole turns', () => {
  const toy = begin({ wal: { fileBytes: 1 << 20, reserveBytes: 512 } })
  give(toy, commands(0, 3000))
  toy.simulation.settle()

  expect(Math.max(...toy.turns)).toBe(1024)
  expect(toy.values).toHaveLength(3000)
})

test('proposals over the limit are refused at once and are certainly in no log', () => {
  const toy = begin({ wal: { fileBytes: 8 << 20, reserveBytes: 512 } })
  for (let i = 0; i < 6; i++) give(toy, commands(i * 10_000, 10_000))

  const refused = [...toy.answers.values()]

  expect(refused).toHaveLength(60_000 - RAFT_LIMITS.uncommittedEntries)
  expect(new Set(refused.map(({ code }) => code))).toEqual(new Set([REFUSED.overloaded]))
  toy.simulation.settle()
  expect(toy.answers.size).toBe(60_000)
  expect(toy.values).toHaveLength(RAFT_LIMITS.uncommittedEntries)
})

test('the time of the log never goes back, whatever the wall clock does', () => {
  const toy = begin()
  const write = (token: number) => {
    give(toy, [{ token, value: token }])
    toy.simulation.settle()
  }
  write(1)
  toy.simulation.advance(3_600_000)
  write(2)
  toy.simulation.setWall(0)
  write(3)
  const again = startToy(
    crash(toy.disk, () => true),
    { wallMs: 1_000 },
  )
  again.simulation.settle()
  give(again, [{ token: 4, value: 4 }])
  again.simulation.settle()

  const times = [...toy.times, again.times.at(-1)].map((time) => time?.timeMs ?? 0)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBe(3_600_000)
  expect(toy.times[1]?.day).toBe(dayOf(times[1] ?? 0))
})

test('a full disk refuses entries not in the log, keeps the others, and accepts writes once there is room', () => {
  const toy = begin()
  fillDisk(toy.disk)
  for (let token = 10; ![...toy.answers.values()].some(({ code }) => code === REFUSED.diskFull); token += 10) {
    give(toy, commands(token, 10))
    toy.simulation.settle()
  }
  expect(statusOf(toy.replica).diskFull).toBe(true)
  const stored = [...toy.answers].filter(([, { code }]) => code === 0).map(([name]) => name)
  expect(toy.values).toEqual(stored.toSorted((a, b) => a - b))
  give(toy, [{ token: 5, value: 5 }])
  expect(toy.answers.get(5)?.code).toBe(REFUSED.diskFull)
  expect(startToy(restart(fork(toy.disk))).values).toEqual(toy.values)

  toy.disk.capacityBytes += 100_000
  toy.simulation.advance(6_000)

  give(toy, [{ token: 6, value: 6 }])
  toy.simulation.settle()
  expect(toy.answers.get(6)?.code).toBe(0)
  expect(statusOf(toy.replica).diskFull).toBe(false)
})

test('when only part of a turn fits, exactly the stored proposals succeed', () => {
  const toy = begin({ flushThreshold: 5 })
  fillDisk(toy.disk)
  give(toy, commands(100, 200))
  toy.simulation.settle()

  const done = [...toy.answers].filter(([, { code }]) => code === 0).map(([token]) => token)
  expect(toy.answers.size).toBe(200)
  expect(done.length).toBeGreaterThan(5)
  expect(done.length).toBeLessThan(200)
  expect(toy.values).toEqual(done)
  expect(startToy(crash(toy.disk, () => true)).values).toEqual(done)
})

test('a node starts on a full disk: it leads, serves what it has, refuses writes, and snapshots carry the right term', () => {
  const first = begin()
  give(first, commands(1, 60))
  first.simulation.settle()
  const disk = fillDisk(crash(first.disk, () => true))
  // No room for anything but a vote.
  const again = startToy(disk, { snapshots: [] })
  const [file] = again.wal.files.slice(-1)
  if (file) file.bytes = again.wal.offset + again.wal.reserveBytes
  again.simulation.settle()

  expect(statusOf(again.replica)).toMatchObject({ role: 'leader', term: 2, diskFull: true, lastIndex: 61 })
  expect(startSnapshot(again.replica, 'requested')).toBe(true)
  again.simulation.advance(100)
  expect(again.snapshots).toMatchObject([{ index: 61, term: 1 }])

  const third = startToy(
    crash(disk, () => true),
    { snapshots: again.snapshots },
  )
  expect(third.values).toEqual(first.values)
})

test('a failed sync ends the process, and its writes get no reply', () => {
  const toy = begin()
  toy.disk.fault = ({ call }) => (call === 'syncData' ? { kind: 'fail', code: 'EIO' } : undefined)
  give(toy, commands(1, 1))

  expect(() => toy.simulation.settle()).toThrow(expect.objectContaining({ code: 'disk_failed' }))
  expect(toy.answers.size).toBe(0)
})

test('a snapshot is taken by count and by time, one at a time, and older log is deleted', () => {
  const toy = begin({ snapshotTriggerCount: 50, snapshotIntervalMs: 1_000 })
  give(toy, commands(0, 60))
  toy.simulation.settle()
  expect(toy.replica.snapshotRunning).toBe(true)
  expect(startSnapshot(toy.replica, 'requested')).toBe(false)
  toy.simulation.advance(60)
  expect(toy.snapshots.map(({ index }) => index)).toEqual([61])

  // No sooner than ten times the duration of the last one.
  give(toy, commands(100, 60))
  toy.simulation.advance(400)
  expect(toy.snapshots).toHaveLength(1)
  toy.simulation.advance(700)
  expect(toy.snapshots.length).toBe(2)
  expect(toy.wal.mark.index).toBe(toy.snapshots.at(-1)?.index)

  // Without new entries no snapshot is taken.
  const before = toy.snapshots.at(-1)?.index
  toy.simulation.advance(10_000)
  expect(toy.snapshots.at(-1)?.index).toBe(before)
})

test('writes wait for a snapshot that has few spare pages left, and it hurries', () => {
  const spare = 5
  const lacksSparePages = () => toy.replica.snapshotRunning && toy.values.length >= spare
  const toy: ToyReplica = begin({ snapshotTakesMs: 50, lacksSparePages })
  give(toy, commands(0, 1))
  toy.simulation.settle()
  expect(startSnapshot(toy.replica, 'requested')).toBe(true)
  give(toy, commands(1, 20))
  toy.simulation.advance(20)

  expect(toy.values).toHaveLength(spare)
  expect(toy.answers.size).toBe(spare)
  expect(toy.hurries).toBeGreaterThan(0)

  toy.simulation.advance(60)
  expect(toy.snapshots).toHaveLength(1)
  expect(toy.values).toHaveLength(21)
  expect(toy.answers.size).toBe(21)
})

test('the log is cut behind the older of two snapshots and 10,000 entries', () => {
  const toy = begin({ snapshotTriggerCount: 4_000, wal: { fileBytes: 65_536, reserveBytes: 512 } })
  for (let i = 0; i < 30; i++) {
    give(toy, commands(i * 1000, 1000))
    toy.simulation.advance(2_000)
  }
  const files = listLogFiles(toy.disk, '/wal')
  const newest = toy.snapshots.at(-1)?.index ?? 0
  expect(files[0]?.firstIndex).toBeGreaterThan(1_000)
  expect(files[0]?.firstIndex).toBeLessThanOrEqual(newest - 10_000 + 1)
  const again = startToy(
    crash(toy.disk, () => false),
    { snapshots: toy.snapshots },
  )
  expect(again.values).toEqual(toy.values)
})

test('the digest of the state goes into the log every 4,096 entries', () => {
  const toy = begin({ wal: { fileBytes: 1 << 20, reserveBytes: 512 } })
  for (let i = 0; i < 11; i++) {
    give(toy, commands(i * 1000, 1000))
    toy.simulation.settle()
  }
  expect(statusOf(toy.replica).digestChecks).toBe(2)
})

test('a commit index without a following write is stored within a heartbeat', () => {
  const toy = begin()
  give(toy, commands(1, 3))
  toy.simulation.settle()
  expect(toy.wal.hardState.commit).toBeLessThan(4)

  toy.simulation.advance(450)

  expect(toy.wal.hardState.commit).toBe(4)
  const syncs = toy.disk.operations.length
  toy.simulation.advance(5_000)
  expect(toy.disk.operations.length).toBe(syncs)
})

test('stopping answers all accepted writes, accepts no more, and stores the commit index', async () => {
  const toy = begin()
  give(toy, commands(1, 30))

  const stopped = drainReplica(toy.replica)
  give(toy, [{ token: 99, value: 99 }])
  toy.simulation.settle()
  await stopped

  expect(toy.answers.size).toBe(31)
  expect(toy.answers.get(99)?.code).toBe(REFUSED.notServing)
  expect(toy.values).toHaveLength(30)
  expect(toy.wal.hardState.commit).toBe(31)
})

test('under crashes acknowledged writes stay, refused ones never show, and each takes effect once', () => {
  const rounds = FULL ? 400 : 25
  for (let round = 0; round < rounds; round++) {
    const seed = SEED + round
    const { outcomes, values, trace } = runOfCrashes(seed)
    const why = `seed ${seed}: ${trace.join(', ')}`
    const seen = new Set(values)
    expect(seen.size, why).toBe(values.length)
    for (const [token, outcome] of outcomes) {
      if (outcome === 'done') expect(seen.has(token), `${why}: ${token} was acknowledged`).toBe(true)
      if (outcome === 'refused') expect(seen.has(token), `${why}: ${token} was refused`).toBe(false)
    }
  }
})

/** A node that is repeatedly killed, loses power and fills its disk, during writes. */
function runOfCrashes(seed: number) {
  const random = createRandom(seed)
  const outcomes = new Map<number, 'done' | 'refused'>()
  const trace: string[] = []
  const options = {
    seed,
    flushThreshold: 1 + random.below(40),
    snapshotTriggerCount: 20 + random.below(200),
    snapshotTakesMs: random.below(40),
    writesInline: random.below(2) === 0,
    wal: { fileBytes: 8192 << random.below(3), reserveBytes: 512, prepareSyncBytes: 2048 },
  }
  let snapshots: ToyReplica['snapshots'] = []
  let disk: SimulatedDisk = createSimulatedDisk()
  let token = 1
  let toy = startToy(disk, { ...options, snapshots })
  const lives = 2 + random.below(5)
  for (let life = 0; life < lives; life++) {
    const stopAt = disk.operations.length + random.below(250)
    const isKill = random.below(2) === 0
    disk.fault = ({ number }) => (number >= stopAt ? { kind: 'crash' } : undefined)
    if (random.below(3) === 0) fillDisk(disk).capacityBytes += random.below(20_000)
    try {
      toy.simulation.settle()
      while (true) {
        const batch = commands(token, 1 + random.below(random.below(2) === 0 ? 4 : 30))
        token += batch.length
        give(toy, batch, random.below(2))
        if (random.below(2) === 0) toy.simulation.advance(random.below(200))
        if (random.below(40) === 0) disk.capacityBytes = 2 ** 40
        if (random.below(60) === 0) toy.simulation.advance(6_000)
        if (token > 5_000 * (life + 1)) break
      }
    } catch (error) {
      if (!disk.crashed) throw error
    }
    for (const [name, { code }] of toy.answers) outcomes.set(name, code === 0 ? 'done' : 'refused')
    trace.push(`${isKill ? 'killed' : 'power lost'} at ${disk.operations.length} with ${toy.values.length} applied`)
    snapshots = [...toy.snapshots]
    disk = isKill ? restart(disk) : crash(disk, () => random.below(3) === 0)
    disk.capacityBytes = 2 ** 40
    toy = startToy(disk, { ...options, snapshots })
  }
  toy.simulation.settle()
  return { outcomes, values: toy.values, trace }
}

test('low space is reported before the disk is full: below a twentieth, or two log files', () => {
  const toy = begin()
  const used = 2 ** 40 - toy.disk.space('/').freeBytes
  const isLowAt = (freeBytes: number, totalBytes = used + freeBytes) => {
    toy.disk.space = () => ({ freeBytes, totalBytes })
    return statusOf(toy.replica).diskLow
  }

  expect(isLowAt(128 * 2 ** 20 - 1)).toBe(true)
  expect(isLowAt(128 * 2 ** 20)).toBe(false)
  expect(isLowAt(4.9e9, 1e11)).toBe(true)
  expect(isLowAt(5.1e9, 1e11)).toBe(false)
})

test('the disk reserve is released when there is no room to restart the log after a snapshot (it used to be kept)', () => {
  const toy = startToy(createSimulatedDisk())
  toy.simulation.settle()
  let givenUp = 0
  const installing = { index: 100, snapshotTerm: 1 } as Replica['installing']
  Object.assign(toy.replica, { installing, onReserve: () => givenUp++ })

  onLogMessage(toy.replica, { type: 'installed', mark: { index: 100, term: 1 }, isDone: false })

  expect(givenUp).toBe(1)
  expect(toy.replica.isDiskFull).toBe(true)
  expect(toy.failures).toEqual([])
})

test('replicas note digests at one common entry 5 s after a write (it used to be at different ones, 4,096 entries apart)', () => {
  const toy = begin({ featureLevel: 1 })
  const { simulation, replica } = toy
  simulation.advance(20_000)
  expect(statusOf(replica).newestMark).toBeUndefined()

  give(toy, commands(1, 3))
  simulation.settle()
  const written = replica.raft.lastIndex
  simulation.advance(5_200)
  expect(statusOf(replica).newestMark).toMatchObject({ index: written + 1, lo: toy.values.length })
  const { lastIndex } = replica.raft
  simulation.advance(60_000)
  expect(replica.raft.lastIndex).toBe(lastIndex)

  const older = begin({ featureLevel: 0 })
  give(older, commands(1, 3))
  older.simulation.advance(20_000)
  expect(statusOf(older.replica).newestMark).toBeUndefined()
})
