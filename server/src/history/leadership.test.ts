import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SHARD_LEADERSHIP } from '@vacancy/shared/contract'
import { createLogger } from '@vacancy/shared/node'
import { onBothDatabases } from '@vacancy/testkit/databases'
import { expect, test } from 'vitest'
import { openDatabase } from '../database/database.ts'
import type { Tables } from '../parts.ts'
import {
  createLeadership,
  type LeaderSpan,
  leadershipOf,
  observeLeader,
  shardLeadership,
  stopLeadership,
} from './leadership.ts'

const HOUR = 3_600_000
const NOW = Date.parse('2026-11-22T12:00:00.000Z')
const FROM = NOW - SHARD_LEADERSHIP.hours * HOUR
const at = (ms: number) => new Date(ms).toISOString()

const span = (from: number, to: number, leader: string | null, term: number | null = null): LeaderSpan => ({
  ...{ from: NOW + from, to: NOW + to, leader, term },
})

test('a shard that was never observed has no spans, no elections and no gap', () => {
  expect(leadershipOf([], FROM, NOW)).toEqual({
    ...{ from: at(FROM), to: at(NOW), spans: [], elections: 0, longestGapMs: null, knownMs: 0, isCut: false },
  })
})

test('an election is a new leader, the same leader in a later term, or a leader after a time without one', () => {
  const summary = leadershipOf(
    [
      span(-10 * HOUR, -9 * HOUR, 'n1', 41),
      span(-9 * HOUR, -8 * HOUR, 'n3', 42),
      span(-8 * HOUR, -8 * HOUR + 1_900, null),
      span(-8 * HOUR + 1_900, -7 * HOUR, 'n1', 43),
      span(-7 * HOUR, -6 * HOUR, 'n1', 44),
    ],
    FROM,
    NOW,
  )

  expect(summary).toMatchObject({ elections: 3, longestGapMs: 1_900, knownMs: 4 * HOUR })
})

test('a leader that continued through an unobserved time was not elected again', () => {
  const summary = leadershipOf([span(-10 * HOUR, -9 * HOUR, 'n1', 41), span(-3 * HOUR, 0, 'n1', 41)], FROM, NOW)

  expect(summary).toMatchObject({ elections: 0, longestGapMs: null, knownMs: 4 * HOUR })
  expect(summary.spans).toHaveLength(2)
})

test('the term of a briefly observed leader may be the previous one: it counts as one election', () => {
  const summary = leadershipOf(
    [
      span(-10 * HOUR, -9 * HOUR, 'n2', 41),
      span(-9 * HOUR, -9 * HOUR + 900, 'n1', 41),
      span(-9 * HOUR + 8_000, 0, 'n1', 42),
    ],
    FROM,
    NOW,
  )

  expect(summary.elections).toBe(1)
})

test('spans that start before the range are cut, and spans that ended before are omitted', () => {
  const summary = leadershipOf([span(-40 * HOUR, -30 * HOUR, 'n2'), span(-30 * HOUR, 0, 'n1', 7)], FROM, NOW)

  expect(summary.spans).toEqual([{ from: at(FROM), to: at(NOW), leader: 'n1', term: 7 }])
  expect(summary.knownMs).toBe(24 * HOUR)
})

test('of too many changes the newest are returned, marked as cut', () => {
  const many = Array.from({ length: SHARD_LEADERSHIP.spansMax + 5 }, (_, turn) =>
    span(-20 * HOUR + turn * 1_000, -20 * HOUR + (turn + 1) * 1_000, turn % 2 === 0 ? 'n1' : 'n2'),
  )

  const summary = leadershipOf(many, FROM, NOW)

  expect(summary).toMatchObject({ isCut: true, elections: SHARD_LEADERSHIP.spansMax - 1 })
  expect(summary.spans.at(-1)?.to).toBe(at(many.at(-1)?.to as number))
})

onBothDatabases((newDatabase) => {
  async function open(where: string, clock: { now: number }) {
    const database = await openDatabase<Tables>(where)
    const lines: string[] = []
    const log = createLogger({ level: 'warn', format: 'json', component: 'test', write: (line) => lines.push(line) })
    const leadership = createLeadership(database, log, () => clock.now)
    const close = async () => {
      await stopLeadership(leadership)
      await database.destroy()
      expect(lines).toEqual([])
    }
    return { leadership, close }
  }
  const newWhere = async () =>
    (await newDatabase()) || join(mkdtempSync(join(tmpdir(), 'vacancy-leadership-')), 'x.sqlite')

  test('the history is available immediately and after a restart, without a span for the downtime', async () => {
    const clock = { now: NOW }
    const where = await newWhere()
    const before = await open(where, clock)
    observeLeader(before.leadership, { id: 's1', leader: 'n1', term: 4 }, true)
    clock.now += 30_000
    observeLeader(before.leadership, { id: 's1', leader: null, term: 4 }, true)
    clock.now += 2_000
    observeLeader(before.leadership, { id: 's1', leader: 'n2', term: 5 }, true)
    observeLeader(before.leadership, { id: 's2', leader: 'm1', term: 9 }, true)
    clock.now += 10_000
    const spans = [
      { from: at(NOW), to: at(NOW + 30_000), leader: 'n1', term: 4 },
      { from: at(NOW + 30_000), to: at(NOW + 32_000), leader: null, term: null },
      { from: at(NOW + 32_000), to: at(NOW + 42_000), leader: 'n2', term: 5 },
    ]
    expect(await shardLeadership(before.leadership, 's1')).toMatchObject({ spans, elections: 1, longestGapMs: 2_000 })
    await before.close()

    clock.now += 60_000
    const after = await open(where, clock)
    observeLeader(after.leadership, { id: 's1', leader: 'n2', term: 5 }, true)
    clock.now += 5_000

    expect(await shardLeadership(after.leadership, 's1')).toMatchObject({
      spans: [...spans, { from: at(NOW + 102_000), to: at(NOW + 107_000), leader: 'n2', term: 5 }],
      ...{ elections: 1, knownMs: 47_000, isCut: false },
    })
    // As it was known at a moment of the past.
    expect(await shardLeadership(after.leadership, 's1', NOW + 31_000)).toMatchObject({
      to: at(NOW + 31_000),
      spans: [spans[0], { from: at(NOW + 30_000), to: at(NOW + 31_000), leader: null }],
      elections: 0,
    })
    await after.close()
  })

  test('an unknown state ends the span, and so does a suspended machine', async () => {
    const clock = { now: NOW }
    const { leadership, close } = await open(await newWhere(), clock)
    observeLeader(leadership, { id: 's1', leader: 'n1', term: 4 }, true)
    clock.now += 10_000
    observeLeader(leadership, { id: 's1', leader: null, term: null }, false)
    clock.now += 10_000
    observeLeader(leadership, { id: 's1', leader: 'n1', term: 4 }, true)
    clock.now += 8 * HOUR

    const { spans, elections } = await shardLeadership(leadership, 's1')

    expect(spans).toEqual([
      { from: at(NOW), to: at(NOW + 10_000), leader: 'n1', term: 4 },
      { from: at(NOW + 20_000), to: at(NOW + 20_000), leader: 'n1', term: 4 },
      { from: at(clock.now), to: at(clock.now), leader: 'n1', term: 4 },
    ])
    expect(elections).toBe(0)
    await close()
  })

  test('a term that is reported late is not an election, one that rises later is', async () => {
    const clock = { now: NOW }
    const { leadership, close } = await open(await newWhere(), clock)
    for (const [afterMs, term] of [
      [0, null],
      [500, 4],
      [500, 5],
      [50_000, 6],
      [6_000, 6],
    ] as const) {
      clock.now += afterMs
      observeLeader(leadership, { id: 's1', leader: 'n1', term }, true)
    }

    expect(await shardLeadership(leadership, 's1')).toMatchObject({
      spans: [
        { leader: 'n1', term: 5 },
        { leader: 'n1', term: 6 },
      ],
      elections: 1,
    })
    await close()
  })

  test('a term that rises before its leader is known is not an election of the old leader, as it used to be', async () => {
    const clock = { now: NOW }
    const { leadership, close } = await open(await newWhere(), clock)
    for (const [afterMs, leader, term] of [
      [0, 'n1', 2],
      [60_000, 'n1', 3],
      [41, 'n2', 3],
      [60_000, 'n2', 4],
      [500, 'n2', 4],
      [300, 'n1', 5],
    ] as const) {
      clock.now += afterMs
      observeLeader(leadership, { id: 's1', leader, term }, true)
    }

    const { spans, elections } = await shardLeadership(leadership, 's1')

    // The second time, n2 continued in its new term, and n1 won a later one.
    expect(spans.map(({ leader, term }) => [leader, term])).toEqual([
      ['n1', 2],
      ['n2', 3],
      ['n2', 4],
      ['n1', 5],
    ])
    expect(elections).toBe(3)
    await close()
  })

  test('changes within one millisecond keep their order', async () => {
    const clock = { now: NOW }
    const { leadership, close } = await open(await newWhere(), clock)
    for (const leader of ['n1', 'n2', 'n3', 'n1']) observeLeader(leadership, { id: 's1', leader, term: null }, true)

    const { spans } = await shardLeadership(leadership, 's1')

    expect(spans.map(({ leader }) => leader)).toEqual(['n1', 'n2', 'n3', 'n1'])
    await close()
  })
})
