import { expect, test } from 'vitest'
import { formatMarkdown, formatTable, formatValue, type Report } from './format.ts'

const report: Report = {
  size: 'quick',
  packages: 6_000_000,
  startedAt: '2026-03-01T10:00:00.000Z',
  seconds: 170.4,
  machine: {
    cpu: 'A processor',
    cores: 2,
    memoryGb: 8,
    system: 'Linux 6.1',
    node: '26.0.0',
    v8: '14.0',
    vacancy: '0.1.0',
    commit: 'abc1234',
    loadBefore: 0.1,
  },
  rows: [
    {
      id: 4,
      what: 'searches',
      verdict: 'missed',
      measures: [
        {
          name: 'p99',
          value: 1.5,
          unit: 'ms',
          target: { atMost: 1 },
          baseline: { name: 'echo', value: 0.4 },
          verdict: 'missed',
        },
        { name: 'requests', value: 20_000, unit: '/s', verdict: 'met', why: 'as planned' },
      ],
    },
    { id: 13, what: 'pause', verdict: 'not measured', measures: [], why: 'its benchmark does not exist' },
  ],
  notes: ['the node did not stop'],
}

test('the table shows value, target, baseline, ratio, verdict and every reason', () => {
  const text = formatTable(report)

  expect(text).toMatch(/p99 +1\.50 ms +≤ 1\.00 ms +echo 0\.40 ms +3\.75× +missed/)
  expect(text).toMatch(/requests +20,000\/s +met/)
  expect(text).toContain('4. searches: missed')
  expect(text).toContain('requests: as planned')
  expect(text).toContain('13. pause: not measured\n   its benchmark does not exist')
  expect(text).toContain('0 met, 1 missed, 0 not measurable here, 1 not measured.\nthe node did not stop')
})

test('the page shows the same, with the machine beside it', () => {
  const text = formatMarkdown(report)

  expect(text).toContain('| 4 | searches | p99 | 1.50 ms | ≤ 1.00 ms | echo 0.40 ms | 3.75× | **missed** |')
  expect(text).toContain('|  |  | requests | 20,000/s |')
  expect(text).toContain('| 13 | pause |  |  |  |  |  | **not measured** |')
  expect(text).toContain('- 13: its benchmark does not exist')
  expect(text).toContain('- A processor, 2 cores, 8 GB, Linux 6.1, load 0.10 before')
})

test.each([
  [0.0625, 'ms', '0.063 ms'],
  [12.345, 'µs', '12.3 µs'],
  [1234.5, 'MB', '1,235 MB'],
  [62_400, '/s', '62,400/s'],
  [1.8, '×', '1.80×'],
  [45, '%', '45.0 %'],
  [Number.NaN, 's', '–'],
] as const)('%f %s reads %s', (value, unit, text) => {
  expect(formatValue(value, unit)).toBe(text)
})
