import { expect, test } from 'vitest'
import type { Sample } from '../raft/messages.ts'
import { isClockSuspect, noteSample, sampleOf, voterClocks } from './clock-samples.ts'
import { type Member, SPOKEN_MAX } from './member-state.ts'
import { CLOCK_LIMITS } from './shard-time.ts'

const ELECTION_MS = 1000
const SAMPLE: Sample = { wallMs: 0, isDiskFull: false, digestIndex: 0, digestLo: 0, digestHi: 0, applied: 7 }

/** The parts of a member that samples use. Node 1 of the voters 1, 2 and 3. */
function memberOf() {
  const now = { wallMs: 1_000_000.75, monotonicMs: 5000 }
  const replica = {
    machine: { digestMarks: () => [] as { index: number; lo: number; hi: number }[] },
    raft: { id: 1, role: 'follower', applied: 42, configuration: { voters: [1, 2, 3] } },
    clock: { state: 'following' },
    isDiskFull: false,
  }
  const member = {
    env: { clock: { wallMs: () => now.wallMs, monotonicMs: () => now.monotonicMs } },
    ...{ samples: new Map(), electionTicks: 10, tickMs: ELECTION_MS / 10, replica },
  }
  return { now, replica, member: member as unknown as Member }
}

const note = (member: Member, from: number, wallMs: number) => noteSample(member, from, { ...SAMPLE, wallMs })

test('a sample has the clock in whole milliseconds and the newest digest', () => {
  const { member, now, replica } = memberOf()
  expect(sampleOf(member)).toEqual({ ...SAMPLE, wallMs: 1_000_000, applied: 42 })

  now.wallMs = -5
  replica.isDiskFull = true
  replica.machine.digestMarks = () => [
    { index: 100, lo: 1, hi: 2 },
    { index: 200, lo: 3, hi: 4 },
  ]

  expect(sampleOf(member)).toEqual({
    ...{ wallMs: 0, isDiskFull: true, applied: 42 },
    ...{ digestIndex: 200, digestLo: 3, digestHi: 4 },
  })
})

test('clocks of other voters are projected to now, until an election time-out after their report', () => {
  const { member, now } = memberOf()
  note(member, 2, 2_000_000)
  now.monotonicMs += 300
  note(member, 3, 3_000_000)
  note(member, 1, 9_000_000)
  note(member, 4, 9_000_000)
  noteSample(member, 2, undefined)

  expect(voterClocks(member, now.monotonicMs)).toEqual([2_000_300, 3_000_000])
  expect(voterClocks(member, now.monotonicMs + ELECTION_MS - 300)).toEqual([2_001_000, 3_000_700])
  expect(voterClocks(member, now.monotonicMs + ELECTION_MS - 299)).toEqual([3_000_701])
  expect(voterClocks(member, now.monotonicMs + ELECTION_MS + 1)).toEqual([])
})

test('samples of many nodes are bounded, and a known node replaces its own', () => {
  const { member } = memberOf()
  for (let node = 1; node <= SPOKEN_MAX; node++) note(member, node, node)
  note(member, 2, 1)
  expect(member.samples.size).toBe(SPOKEN_MAX)
  note(member, SPOKEN_MAX + 1, 1)
  expect([...member.samples.keys()]).toEqual([SPOKEN_MAX + 1])
})

test.each<[string, number, number, boolean]>([
  ['one of two others agrees', 10 * CLOCK_LIMITS.agreeMs, 0, false],
  ['it differs from the median by the limit', CLOCK_LIMITS.agreeMs, CLOCK_LIMITS.agreeMs + 1, false],
  ['it differs from the median by more', CLOCK_LIMITS.agreeMs + 1, CLOCK_LIMITS.agreeMs + 1, true],
  ['it is ahead by more', -CLOCK_LIMITS.agreeMs - 1, -10 * CLOCK_LIMITS.agreeMs, true],
])('a clock is judged by the median: %s', (_, second, third, isSuspect) => {
  const { member, now } = memberOf()
  now.wallMs = 1_000_000_000
  note(member, 2, now.wallMs + second)
  note(member, 3, now.wallMs + third)
  expect(isClockSuspect(member)).toBe(isSuspect)
})

test('the clock of a leader that shard time does not follow is suspect', () => {
  const { member, replica } = memberOf()
  replica.clock.state = 'holding'
  expect(isClockSuspect(member)).toBe(false)
  replica.raft.role = 'leader'
  expect(isClockSuspect(member)).toBe(true)
  replica.clock.state = 'following'
  expect(isClockSuspect(member)).toBe(false)
})
