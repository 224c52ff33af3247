import { parseDay, weekdayOf } from '@vacancy/shared'
import { encodeRequest } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { CONFIG, SAMPLE_FLAGS } from './sample-flags.ts'
import { sampleSearches } from './searches.ts'

const MONDAY = 20_780

test('on any day, the weekend begins on a Friday at least a week ahead', () => {
  for (let today = MONDAY; today < MONDAY + 7; today++) {
    const [weekend] = sampleSearches(today)
    const first = parseDay(weekend?.fields.dates[0] ?? '') ?? 0

    expect(weekdayOf(first)).toBe(5)
    expect(first).toBeGreaterThanOrEqual(today + 7)
  }
})

test('all nights are in the window of the sample, and no stay exceeds the configured maximum', () => {
  const [, nightsMax] = /max_dates_in_query: (\d+)/.exec(CONFIG) ?? []

  for (const { fields } of sampleSearches(MONDAY)) {
    const last = parseDay(fields.dates.at(-1) ?? '') ?? 0
    expect(last).toBeLessThan(MONDAY + SAMPLE_FLAGS.days.default)
    expect(fields.dates.length).toBeLessThanOrEqual(Number(nightsMax))
  }
})

test('the searches are requests of the protocol', () => {
  for (const { fields } of sampleSearches(MONDAY)) {
    expect(() => encodeRequest({ command: 'SEARCHAVAIL', correlationId: 1, fields })).not.toThrow()
  }
})
