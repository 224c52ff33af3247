import { dayOf } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { crash, createSimulatedDisk, fillDisk, type SimulatedDisk } from '../testing/disk.ts'
import { give, startToy, type ToyReplica } from '../testing/toy-replica.ts'
import { clockStatus, shardTime } from './keep-time.ts'
import { startMaintenance } from './maintenance.ts'
import { statusOf } from './replica.ts'
import { type SetTimeAnswer, setShardTime } from './set-time.ts'
import { CLOCK_LIMITS } from './shard-time.ts'

const NOON = Date.UTC(2026, 0, 15, 12)
const HOUR = 3_600_000
const DAY = 24 * HOUR

function begin(wallMs = NOON, disk: SimulatedDisk = createSimulatedDisk()): ToyReplica {
  const toy = startToy(disk, { wallMs, featureLevel: 1 })
  toy.simulation.settle()
  return toy
}

let nextToken = 1

/** Writes once. @returns the time in the log */
function write(toy: ToyReplica): number {
  const token = nextToken++
  give(toy, [{ token, value: token }])
  toy.simulation.settle()
  return toy.times.at(-1)?.timeMs ?? 0
}

const restart = (toy: ToyReplica, wallMs: number) =>
  begin(
    wallMs,
    crash(toy.disk, () => true),
  )

/** Requests that the time be set and waits for the reply. */
function set(toy: ToyReplica, confirm = true): SetTimeAnswer {
  let answer: SetTimeAnswer | undefined
  setShardTime(toy.replica, confirm, (given) => {
    answer = given
  })
  for (let tries = 0; tries < 100 && !answer; tries++) toy.simulation.advance(100)
  return answer as SetTimeAnswer
}

const last = (toy: ToyReplica) => toy.replica.machine.time.lastSet()

test('a lone node follows a lasting step forward while it runs (it used to keep the clock of its start)', () => {
  const toy = begin()
  write(toy)
  toy.simulation.setWall(NOON + 6 * HOUR)
  expect(write(toy)).toBe(NOON)
  toy.simulation.advance(CLOCK_LIMITS.settleMs - 1_000)
  expect(statusOf(toy.replica).clock.state).toBe('holding')
  expect(write(toy)).toBe(NOON + CLOCK_LIMITS.settleMs - 1_000)

  toy.simulation.advance(2_000)

  expect(statusOf(toy.replica).clock.state).toBe('following')
  expect(write(toy)).toBe(NOON + 6 * HOUR + CLOCK_LIMITS.settleMs + 1_000)
  expect(toy.simulation.lines.map(({ message }) => message)).toContain('clock jumped forward, shard time follows')
})

test('readers get the day of shard time, even across midnight without a write', () => {
  const toy = begin(Date.UTC(2026, 0, 15, 23, 59, 59))
  const day = dayOf(NOON)
  expect(toy.days).toEqual([day])
  toy.simulation.advance(2_000)
  expect(toy.days).toEqual([day, day + 1])
})

test('a log ahead of the clock is suspect: writes continue and maintenance waits', () => {
  const before = begin(NOON + 2 * DAY)
  write(before)
  const toy = restart(before, NOON)

  expect(clockStatus(toy.replica).state).toBe('suspect')
  expect(write(toy)).toBe(NOON + 2 * DAY)
  expect(startMaintenance(toy.replica, 1)).toBe(false)
})

test('set-time shows what it would do, then sets the time back for good', () => {
  const before = begin(NOON + 2 * DAY)
  write(before)
  const toy = restart(before, NOON)
  const shown = set(toy, false)
  expect(shown.status).toBe(202)
  expect(JSON.parse(shown.text)).toMatchObject({
    applied: false,
    new_time: new Date(NOON).toISOString(),
    missed_nights: { from: '2026-01-15', to: '2026-01-16' },
  })
  expect(last(toy)).toBeUndefined()

  expect(JSON.parse(set(toy).text)).toMatchObject({ applied: true })

  expect(last(toy)).toMatchObject({ count: 1, toMs: NOON })
  toy.simulation.advance(200)
  expect(clockStatus(toy.replica)).toMatchObject({ state: 'following' })
  const time = write(toy)
  expect(time - NOON).toBeLessThan(2_000)
  const again = restart(toy, NOON + HOUR)
  expect(write(again)).toBe(NOON + HOUR)
})

test('a time that agrees with the clock is not set', () => {
  const toy = begin()
  write(toy)
  expect(set(toy)).toMatchObject({ status: 409, text: expect.stringContaining('agrees with the clock') })
})

test('a set-time that a full disk refuses leaves the time of the log as it was', () => {
  const before = begin(NOON + 2 * DAY)
  write(before)
  const toy = restart(before, NOON)
  fillDisk(toy.disk)
  // Larger than the space the log has reserved: the disk refuses it and the hand-overs after it.
  give(toy, [{ token: nextToken++, value: 1, bytes: 3_000 }])
  setShardTime(toy.replica, true, () => undefined)
  expect(shardTime(toy.replica)).toBe(NOON)
  toy.simulation.settle()

  expect(statusOf(toy.replica).diskFull).toBe(true)
  expect(last(toy)).toBeUndefined()
  expect(shardTime(toy.replica)).toBe(NOON + 2 * DAY)
})
