import { dayOf } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { crash, createSimulatedDisk, fillDisk, type SimulatedDisk } from '../testing/disk.ts'
import { give, startToy, type ToyReplica } from '../testing/toy-replica.ts'
import { clockStatus, shardTime } from './keep-time.ts'
import { startMaintenance } from './maintenance.ts'
import { statusOf } from './replica.ts'
import { type SetTimeAnswer, setShardTime } from './set-shard-time.ts'
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

test.each([
  [CLOCK_LIMITS.agreeMs, 409],
  [CLOCK_LIMITS.agreeMs + 1, 202],
])('a log that is %i ms ahead of the clock is answered with %i', (aheadMs, status) => {
  const before = begin(NOON + aheadMs)
  write(before)

  const { status: answered, text } = set(restart(before, NOON), false)

  expect(answered).toBe(status)
  if (status === 409) expect(text).toBe('Shard time is 2026-01-15T12:01:00.000Z and agrees with the clock.')
  else expect(JSON.parse(text)).toMatchObject({ shard_time: '2026-01-15T12:01:00.001Z', missed_nights: null })
})

test('set-time needs feature level 1', () => {
  const toy = startToy(createSimulatedDisk(), { wallMs: NOON, featureLevel: 0 })
  toy.simulation.settle()
  expect(set(toy)).toEqual({
    status: 409,
    text: 'The shard runs at feature level 0. Set the time once all members run this version.',
  })
})

test('set-time needs a clock that a majority of the voters shares', () => {
  const toy = begin()
  const { configuration } = toy.replica.raft
  Object.assign(toy.replica.raft, { configuration: { ...configuration, voters: [1, 2, 3] } })
  expect(set(toy)).toEqual({
    status: 409,
    text: 'No majority of the 3 voters agrees on the time within 60 s: 2026-01-15T12:00:00.000Z. Correct the clocks first.',
  })
})

test('set-time on a leader that accepts no writes changes nothing', () => {
  const before = begin(NOON + 2 * DAY)
  write(before)
  const toy = restart(before, NOON)
  toy.replica.isStopping = true
  expect(set(toy)).toEqual({
    status: 503,
    text: 'The leader accepts no writes at the moment. Nothing was changed.',
  })
  expect(shardTime(toy.replica)).toBe(NOON + 2 * DAY)
})

test.each([
  ['after 4 s', 3_900, 200, (_toy: ToyReplica) => undefined],
  ['at once when the node stops', 100, 20, (toy: ToyReplica) => Object.assign(toy.replica, { isStopping: true })],
])('a set-time that is not applied is answered %s', (_, waitMs, moreMs, happens) => {
  const before = begin(NOON + 2 * DAY)
  write(before)
  const toy = restart(before, NOON)
  fillDisk(toy.disk)
  give(toy, [{ token: nextToken++, value: 1, bytes: 3_000 }])
  const answers: SetTimeAnswer[] = []
  setShardTime(toy.replica, true, (answer) => answers.push(answer))
  toy.simulation.advance(waitMs)
  expect(answers).toEqual([])
  happens(toy)

  toy.simulation.advance(moreMs)

  const text = 'It is not known whether the time was set. `/status` shows shard time.'
  expect(answers).toEqual([{ status: 503, text }])
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
