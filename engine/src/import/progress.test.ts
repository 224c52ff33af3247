import { expect, test } from 'vitest'
import { type ImportProgress, inMillions, type Phase, progressLine } from './progress.ts'

const progress: ImportProgress = {
  phase: 'packages',
  done: 1,
  total: 2,
  packages: 1_234_567,
  seconds: 10,
  recordsPerSecond: 2_000_000,
  etaSeconds: 5,
}

const lineOf = (changes: Partial<ImportProgress>) => progressLine({ ...progress, ...changes }, 200)

test('a line shows phase, bar, share, packages, rate and remaining time', () => {
  expect(lineOf({})).toBe('reading packages     ████████████░░░░░░░░░░░░  50 %  1,234,567  2.0 M records/s  ETA 5 s')
})

test.each<[Phase, string]>([
  ['properties', 'reading properties   █'],
  ['packages', 'reading packages     █'],
  ['errors', 'looking for errors   █'],
  ['tables', 'arranging tables     █'],
  ['write', 'writing the snapshot █'],
])('the bar of the phase %s begins in the same column', (phase, start) => {
  expect(lineOf({ phase }).slice(0, start.length)).toBe(start)
})

test.each([
  [0, 100, 0, '  0 %'],
  [2, 100, 0, '  2 %'],
  [3, 100, 1, '  3 %'],
  [50, 100, 12, ' 50 %'],
  [999, 1000, 24, ' 99 %'],
  [1000, 1000, 24, '100 %'],
  // Nothing to do is done.
  [0, 0, 24, '100 %'],
])('%i of %i fills %i of 24 cells and shows %s', (done, total, full, percent) => {
  const line = lineOf({ done, total })

  expect(line).toContain(` ${'█'.repeat(full)}${'░'.repeat(24 - full)} ${percent} `)
})

test('without a rate or an estimate the line ends with the packages', () => {
  const { etaSeconds: _, ...rest } = progress

  expect(progressLine({ ...rest, recordsPerSecond: 0 }, 200)).toMatch(/ 50 % {2}1,234,567$/)
  expect(progressLine({ ...rest, recordsPerSecond: 1 }, 200)).toMatch(/ {2}1 records\/s$/)
})

test.each([
  [0, '0 s'],
  [0.1, '1 s'],
  [59, '59 s'],
  [59.5, '60 s'],
  [60, '1 min 0 s'],
  [61.9, '1 min 1 s'],
  [119.9, '1 min 59 s'],
  [3600, '60 min 0 s'],
])('%f seconds remain as %s', (etaSeconds, text) => {
  expect(lineOf({ etaSeconds })).toMatch(new RegExp(`  ETA ${text}$`))
})

test('a line is cut at the width of the terminal', () => {
  expect(progressLine(progress, 20)).toBe('reading packages    ')
  expect(progressLine(progress, 0)).toBe('')
})

test.each([
  [0, '0'],
  [99_999, '99,999'],
  [100_000, '0.1 M'],
  [1_250_000, '1.3 M'],
])('%i reads %s', (count, text) => {
  expect(inMillions(count)).toBe(text)
})
