import { expect, test } from 'vitest'
import { groupDigits, utcText } from './numbers.ts'

test.each([
  [0, '0'],
  [999, '999'],
  [1_000, '1,000'],
  [12_400, '12,400'],
  [1_234_567, '1,234,567'],
  [-12_400, '-12,400'],
  [-100, '-100'],
  [1_234.5678, '1,234.5678'],
])('%d is written %s', (value, text) => expect(groupDigits(value)).toBe(text))

test.each([
  ['2026-11-20T18:27:33.999Z', '20 Nov 2026, 18:27:33 UTC'],
  ['2026-01-05T00:00:00Z', '5 Jan 2026, 00:00:00 UTC'],
])('%s is written %s', (time, text) => expect(utcText(new Date(time))).toBe(text))
