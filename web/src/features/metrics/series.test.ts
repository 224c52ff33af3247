import type { SeriesBody } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { combined, linesOf } from './series.ts'

function bodyOf(series: readonly [name: string, node: string | null, values: (number | null)[]][]): SeriesBody {
  return {
    from: '2026-11-20T18:00:00.000Z',
    to: '2026-11-20T18:00:20.000Z',
    stepSeconds: 10,
    series: series.map(([name, node, values]) => ({ name, node, unit: '1/s', values })),
  }
}

test('lines are by node id, and only those of the metric', () => {
  const body = bodyOf([
    ['queries', 'n2', [1, 2]],
    ['writes', 'n1', [9, 9]],
    ['queries', 'n1', [3, null]],
  ])

  expect(linesOf(body, ['queries'])).toEqual({
    lines: [
      { label: 'n1', values: [3, null] },
      { label: 'n2', values: [1, 2] },
    ],
    hidden: 0,
  })
})

test('of many lines the highest are drawn and the others counted', () => {
  const body = bodyOf(Array.from({ length: 9 }, (_, at) => ['queries', `n${at}`, [at, null]]))
  const { lines, hidden } = linesOf(body, ['queries'])

  expect(lines.map((line) => line.label)).toEqual(['n3', 'n4', 'n5', 'n6', 'n7', 'n8'])
  expect(hidden).toBe(3)
})

test('a chart of several metrics has a line of each, named by it', () => {
  const body = bodyOf([
    ['p99', null, [9]],
    ['p50', null, [2]],
    ['p50', 'n1', [1]],
  ])

  expect(linesOf(body, ['p50', 'p99']).lines.map(({ label }) => label)).toEqual(['n1 read p50', 'read p50', 'read p99'])
})

test('the cluster combines reported values; a moment without any is a gap', () => {
  const body = bodyOf([
    ['queries', 'n1', [1, null, 4]],
    ['queries', 'n2', [2, null, null]],
  ])

  expect(combined(body, 'queries', (values) => values.reduce((sum, value) => sum + value, 0))).toEqual([3, null, 4])
  expect(combined(body, 'writes', (values) => Math.max(...values))).toEqual([])
})
