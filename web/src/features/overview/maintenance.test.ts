import { expect, test } from 'vitest'
import { daysLeft, nextMaintenance } from './maintenance.ts'

const NOW = Date.parse('2026-11-20T18:30:00Z')

test('maintenance is later today or tomorrow', () => {
  expect(nextMaintenance('19', NOW)).toBe(Date.parse('2026-11-20T19:00:00Z'))
  expect(nextMaintenance('23', NOW)).toBe(Date.parse('2026-11-20T23:00:00Z'))
  expect(nextMaintenance('18', Date.parse('2026-11-20T17:59:59.999Z'))).toBe(Date.parse('2026-11-20T18:00:00Z'))
  expect(nextMaintenance('18', Date.parse('2026-11-20T18:00:00Z'))).toBe(Date.parse('2026-11-21T18:00:00Z'))
  expect(nextMaintenance('3', NOW)).toBe(Date.parse('2026-11-21T03:00:00Z'))
  expect(nextMaintenance('0', Date.parse('2026-11-20T00:00:00Z'))).toBe(Date.parse('2026-11-21T00:00:00Z'))
})

test('without a valid hour nothing is promised', () => {
  for (const hour of [undefined, '', '24', '-1', 'noon', '3.5']) expect(nextMaintenance(hour, NOW)).toBeUndefined()
})

test('days left are whole, and none on the last day', () => {
  expect(daysLeft('2026-11-20', NOW)).toBe(0)
  expect(daysLeft('2026-11-21', Date.parse('2026-11-20T23:59:59Z'))).toBe(1)
  expect(daysLeft('2026-11-27', NOW)).toBe(7)
  expect(daysLeft('2026-11-01', NOW)).toBe(0)
})
