import { expect, test } from 'vitest'
import { type Held, lossChecks } from './loss.ts'

const window = (from: string, to: string) => ({ from, to })
const LIVE: Held = {
  ...{ packages: 300_000, properties: 1_040, segments: ['alps', 'coast', 'city', 'lakes'] },
  window: window('2026-11-20', '2027-03-19'),
}
const of = (next: Partial<Held>, recorded = { stays: 0, held: 0 }) => lossChecks(LIVE, { ...LIVE, ...next }, recorded)

test.each<[string, Partial<Held>, string, RegExp, boolean]>([
  [
    'with more data',
    { packages: 310_000 },
    'info',
    /^has no less data: .* 310,000 of 1,040 .* is not compared$/,
    false,
  ],
  ['with a little less', { packages: 299_000 }, 'info', /^removes 1,000 of 300,000 packages \(under 1 %\)/, false],
  ['with a tenth less', { packages: 270_000 }, 'warn', /30,000 of 300,000 packages \(10 %\)/, false],
  ['without a segment', { segments: ['alps', 'coast', 'city'] }, 'warn', /1 of 4 segments \(lakes\)/, false],
  ['with fewer nights', { window: window('2026-11-20', '2026-12-29') }, 'warn', /the last 80 nights/, false],
  [
    'of another shard by mistake',
    { packages: 320, properties: 4, segments: ['x'], window: window('2026-11-20', '2026-12-29') },
    'warn',
    /299,680 of 300,000 packages \(99 %\), 1,036 of 1,040 properties .*, 4 of 4 segments .*, the last 80 nights/,
    true,
  ],
  ['that is empty', { packages: 0, properties: 0, segments: [], window: null }, 'warn', /\(all\)/, true],
])('a snapshot %s', (_, next, level, text, isHeavy) => {
  const found = of(next)
  expect(found.checks).toMatchObject([{ id: 'loss', level, text: expect.stringMatching(text) }])
  expect(found.isHeavy).toBe(isHeavy)
})

test('stays are named when properties go', () => {
  expect(of({ packages: 310_000 }, { stays: 12, held: 3 }).checks).toHaveLength(1)
  expect(of({ properties: 900 }, { stays: 12, held: 3 }).checks[1]).toMatchObject({
    ...{ id: 'stays', level: 'warn', text: expect.stringContaining('12 stays are recorded, 3 of them on hold') },
  })
})
