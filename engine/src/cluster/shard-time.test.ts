import { dayOf } from '@vacancy/shared'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  anchorClock,
  CLOCK_LIMITS,
  type ClockReading,
  createShardClock,
  judgeClock,
  type ShardClock,
  shardTimeAt,
  trustedClock,
} from './shard-time.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)
const NOON = Date.UTC(2026, 10, 23, 12)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const read = (clock: ShardClock, monotonicMs: number, wallMs: number, rest: Partial<ClockReading> = {}) =>
  judgeClock(clock, { monotonicMs, wallMs, others: [], voters: 1, isStart: false, acceptDay: 0, ...rest })

const timeOf = (clock: ShardClock, monotonicMs: number) => shardTimeAt(clock, monotonicMs)

test('a clock within a minute is followed at most a tenth faster, and met exactly', () => {
  const clock = createShardClock(NOON, 0)
  read(clock, 0, NOON + 30_000)

  expect(timeOf(clock, 10_000)).toBe(NOON + 11_000)
  expect(timeOf(clock, 300_000)).toBe(NOON + 330_000)
  expect(timeOf(clock, 400_000)).toBe(NOON + 430_000)
})

test('a time from the leader ends what was still to be worked off', () => {
  const clock = createShardClock(NOON, 0)
  read(clock, 0, NOON + 30_000)

  anchorClock(clock, NOON + HOUR, 1_000)

  expect(timeOf(clock, 101_000)).toBe(NOON + HOUR + 100_000)
})

test('a clock that is behind is met by running a tenth slower, never backwards', () => {
  const clock = createShardClock(NOON, 0)
  read(clock, 0, NOON - 5 * MINUTE)

  expect(clock.state).toBe('following')
  expect(timeOf(clock, 100_000)).toBe(NOON + 90_000)
  expect(timeOf(clock, 3_000_000)).toBe(NOON + 2_700_000)
})

test('a lone voter follows its clock at once after a rest of a month, and waits for a date after a longer one', () => {
  const rested = createShardClock(NOON, 0)
  expect(read(rested, 5, NOON + 30 * DAY, { isStart: true })).toBe('stepped')
  expect(timeOf(rested, 5)).toBe(NOON + 30 * DAY)

  const longer = createShardClock(NOON, 0)
  expect(read(longer, 5, NOON + 31 * DAY, { isStart: true })).toBe('none')
  expect(longer.state).toBe('holding')
  expect(timeOf(longer, 1_000)).toBe(NOON + 1_000)
  expect(read(longer, 1_000, NOON + 31 * DAY, { isStart: true, acceptDay: dayOf(NOON + 31 * DAY) })).toBe('stepped')
})

test('a lone voter that was suspended follows after ten seconds; a clock that jumps for a moment is ignored', () => {
  const clock = createShardClock(NOON, 0)
  for (let ms = 100; ms < CLOCK_LIMITS.settleMs; ms += 100) {
    expect(read(clock, ms, NOON + 2 * HOUR + ms)).toBe('none')
    expect([clock.state, timeOf(clock, ms)]).toEqual(['holding', NOON + ms])
  }
  read(clock, 10_000, NOON + 10_000)
  expect(clock.state).toBe('following')

  expect(read(clock, 20_000, NOON + 2 * HOUR)).toBe('none')
  expect(read(clock, 30_000, NOON + 2 * HOUR + 10_000)).toBe('stepped')
  expect(timeOf(clock, 30_000)).toBe(NOON + 2 * HOUR + 10_000)
})

test('shard time more than ten minutes ahead of the only clock is suspect and runs on', () => {
  const clock = createShardClock(NOON + 2 * DAY, 0)
  read(clock, 100, NOON, { isStart: true })

  expect([clock.state, clock.offsetMs]).toEqual(['suspect', -2 * DAY - 100])
  expect(timeOf(clock, 60_000)).toBe(NOON + 2 * DAY + 60_000)
  read(clock, 60_000, NOON + 2 * DAY + 60_000)
  expect(clock.state).toBe('following')
})

test('a leader with a wrong clock holds shard time, one whose clock a majority shares steps', () => {
  const wrong = createShardClock(NOON, 0)
  read(wrong, 0, NOON + DAY, { voters: 3, others: [NOON, NOON + 1_000] })
  // The two that agree count as the clock.
  expect([wrong.state, timeOf(wrong, 1_000)]).toEqual(['following', NOON + 1_100])

  const alone = createShardClock(NOON, 0)
  read(alone, 0, NOON + DAY, { voters: 3, others: [NOON] })
  expect([alone.state, timeOf(alone, 1_000)]).toEqual(['holding', NOON + 1_000])

  const shared = createShardClock(NOON, 0)
  expect(read(shared, 0, NOON + DAY, { voters: 3, others: [NOON + DAY + 50_000] })).toBe('stepped')
  expect(timeOf(shared, 0)).toBe(NOON + DAY)
})

test('clocks of which no majority agrees change nothing', () => {
  const clock = createShardClock(NOON, 0)
  read(clock, 0, NOON + DAY, { voters: 5, others: [NOON - DAY, NOON + HOUR, NOON - HOUR, NOON + 9 * DAY] })
  expect([clock.state, timeOf(clock, 1_000)]).toEqual(['holding', NOON + 1_000])
})

test('a new shard waits for a majority of its clocks, and then takes the median', () => {
  const clock = createShardClock(0, 0)
  expect(read(clock, 100, NOON + DAY, { voters: 3 })).toBe('none')
  expect(timeOf(clock, 100)).toBe(0)
  expect(read(clock, 200, NOON + DAY, { voters: 3, others: [NOON, NOON + 10] })).toBe('begun')
  expect([NOON, NOON + 10]).toContain(timeOf(clock, 200))

  const apart = createShardClock(0, 0)
  const others = [NOON - DAY, NOON + DAY]
  expect(read(apart, 100, NOON, { voters: 3, others })).toBe('none')
  expect(read(apart, 5_100, NOON, { voters: 3, others })).toBe('begun-without-agreement')
  expect(timeOf(apart, 5_100)).toBe(NOON)
})

const clockError = fc.oneof(
  fc.integer({ min: -70_000, max: 70_000 }),
  fc.integer({ min: -3 * DAY, max: 3 * DAY }),
  fc.integer({ min: -400 * DAY, max: 400 * DAY }),
)
const step = fc.record({
  elapsedMs: fc.oneof(fc.integer({ min: 0, max: 1_000 }), fc.integer({ min: 0, max: HOUR })),
  error: clockError,
  others: fc.array(clockError, { maxLength: 4 }),
})

test('under any clocks shard time never decreases and only a shared clock moves it faster than a tenth', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 5 }), fc.array(step, { maxLength: 30 }), (voters, steps) => {
      const clock = createShardClock(NOON, 0)
      let monotonicMs = 0
      let last = NOON
      for (const { elapsedMs, error, others } of steps) {
        const before = timeOf(clock, monotonicMs)
        monotonicMs += elapsedMs
        const ran = timeOf(clock, monotonicMs) - before
        expect(ran).toBeGreaterThanOrEqual(Math.floor(elapsedMs * 0.9) - 1)
        expect(ran).toBeLessThanOrEqual(Math.ceil(elapsedMs * 1.1) + 1)
        const reading = {
          ...{ monotonicMs, wallMs: NOON + monotonicMs + error, voters, isStart: false, acceptDay: 0 },
          others: others.slice(0, voters - 1).map((each) => NOON + monotonicMs + each),
        }
        const judgedFrom = timeOf(clock, monotonicMs)
        const change = judgeClock(clock, reading)
        const now = timeOf(clock, monotonicMs)
        expect(now).toBeGreaterThanOrEqual(last)
        const trusted = trustedClock(reading)
        if (change === 'stepped') expect(now).toBe(Math.floor(trusted as number))
        else expect(now).toBe(judgedFrom)
        if (trusted !== undefined && trusted - judgedFrom > CLOCK_LIMITS.agreeMs + 1) expect(change).toBe('stepped')
        last = now
      }
    }),
    { seed: SEED },
  )
})

test('a trusted clock is within a minute of a majority of all voters, and there is one whenever it can be', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 7 }),
      clockError,
      fc.array(clockError, { maxLength: 6 }),
      (voters, own, all) => {
        const others = all.slice(0, voters - 1)
        const clocks = [own, ...others]
        const agreeing = (at: number) => clocks.filter((each) => Math.abs(each - at) <= CLOCK_LIMITS.agreeMs).length
        const trusted = trustedClock({ wallMs: own, others, voters })
        if (trusted === undefined) expect(clocks.every((each) => agreeing(each) <= voters / 2)).toBe(true)
        else expect(agreeing(trusted)).toBeGreaterThan(voters / 2)
      },
    ),
    { seed: SEED },
  )
})
