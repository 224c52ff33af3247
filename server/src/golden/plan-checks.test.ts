import type { GoldenCheck, GoldenResult } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { goldenPlan } from './plan-checks.ts'

const result = (id: string, verdict: GoldenResult['verdict'], message = 'finds 9 properties'): GoldenResult => ({
  ...{ id, name: `Search ${id}`, verdict, message, count: 9, p99Ms: null },
})
const checkOf = (change: Partial<GoldenCheck>): GoldenCheck => ({
  ...{ snapshot: 'd'.repeat(64), shard: 's1', state: 'done', message: '', done: 0, of: 2, at: null, results: [] },
  ...change,
})
const planOf = (change: Partial<GoldenCheck>, isElsewhere = false) => goldenPlan(checkOf(change), isElsewhere)
const lines = ({ checks }: ReturnType<typeof goldenPlan>) => checks.map(({ level, text }) => [level, text])

test('a shard without golden searches is planned as before', () => {
  expect(planOf({ state: 'none', of: 0 })).toEqual({ checks: [], isGrave: false, found: '' })
})

test('when all pass, the plan says so and asks for nothing more', () => {
  const plan = planOf({ results: [result('a', 'passed'), result('b', 'passed')] })

  expect([lines(plan), plan.isGrave]).toEqual([[['ok', 'all 2 golden searches pass']], false])
})

test('one that loses its results is named with what it finds, and the name of the shard must be typed', () => {
  const plan = planOf({
    results: [
      result('a', 'passed'),
      result('b', 'failed', 'finds 0 properties, at least 20 expected (145 on the shard now)'),
    ],
  })

  expect(lines(plan)).toEqual([
    ['warn', '1 of 2 golden searches lose their results'],
    ['warn', 'Search b: finds 0 properties, at least 20 expected (145 on the shard now)'],
  ])
  expect(plan.isGrave).toBe(true)
})

test('one that is slow warns, and nothing must be typed', () => {
  const plan = planOf({ results: [result('a', 'slow', 'finds 9 properties; p99 3 ms, at most 2 ms expected')] })

  expect([lines(plan), plan.isGrave]).toEqual([
    [
      ['warn', '1 of 1 golden searches are slower than expected'],
      ['warn', 'Search a: finds 9 properties; p99 3 ms, at most 2 ms expected'],
    ],
    false,
  ])
})

test('searches that could not be run never count as passed', () => {
  const plan = planOf({ state: 'not-run', message: 'this needs 900 MiB of memory, and 300 MiB are free' })

  expect(lines(plan)).toEqual([
    ['warn', 'golden searches were not run: this needs 900 MiB of memory, and 300 MiB are free'],
  ])
  expect(plan.isGrave).toBe(true)
  expect(planOf({ state: 'due' })).toMatchObject({ isGrave: true, checks: [{ level: 'warn' }] })
})

test('while they run, or wait for another snapshot, the plan is blocked', () => {
  expect(lines(planOf({ state: 'running', done: 1 }))).toEqual([
    ['block', 'golden searches are being run on this snapshot: 1 of 2'],
  ])
  expect(lines(planOf({ state: 'due' }, true))).toEqual([
    ['block', 'golden searches are being run on another snapshot first'],
  ])
})

test('a plan names ten that fail and counts the others, and depends on which ones fail', () => {
  const failing = (count: number) =>
    planOf({ results: Array.from({ length: count }, (_, n) => result(`${n}`, 'failed')) })

  expect(lines(failing(13)).slice(-2)).toEqual([
    ['warn', 'Search 9: finds 9 properties'],
    ['warn', '3 more golden searches do not pass'],
  ])
  expect(failing(13).checks).toHaveLength(12)
  expect(failing(2).found).not.toBe(failing(3).found)
})
