import { expect, test } from 'vitest'
import { stripOf } from './coverage-strip.ts'

test.each<[string, readonly number[], string, string]>([
  ['no nights', [], 'none', 'Packages on 0 of 0 nights'],
  [
    'nights without packages',
    [0, 0],
    'linear-gradient(to right, transparent 0.000% 100.000%)',
    'Packages on 0 of 2 nights',
  ],
  [
    'neighbours of the same colour as one stop',
    [6, 6, 0, 1],
    'linear-gradient(to right, var(--color-avail-6) 0.000% 50.000%, transparent 50.000% 75.000%, var(--color-avail-1) 75.000% 100.000%)',
    'Packages on 3 of 4 nights, fewest: 0 on 22 Nov',
  ],
  [
    // A sixth of 12 is 2: up to 2 is the first step, up to 4 the second.
    'six steps up to the fullest night',
    [12, 10, 3, 2],
    'linear-gradient(to right, var(--color-avail-6) 0.000% 25.000%, var(--color-avail-5) 25.000% 50.000%, var(--color-avail-2) 50.000% 75.000%, var(--color-avail-1) 75.000% 100.000%)',
    'Packages on 4 of 4 nights, fewest: 2 on 23 Nov',
  ],
  [
    'few packages among very many',
    [1, 1_000],
    'linear-gradient(to right, var(--color-avail-1) 0.000% 50.000%, var(--color-avail-6) 50.000% 100.000%)',
    'Packages on 2 of 2 nights, fewest: 1 on 20 Nov',
  ],
])('a strip shows %s', (_, nights, background, text) => {
  expect(stripOf(nights, '2026-11-20')).toEqual({ background, text })
})

test('without a first night the strip does not name one', () => {
  expect(stripOf([1], '').text).toBe('Packages on 1 of 1 night')
})
