import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { addSummaries, createSummary, type Figures, rowsOf, withRows } from './report.ts'

const page = readFileSync(new URL('../../docs/reliability.md', import.meta.url), 'utf8')
const recorded = new URL('../../docs/results/simulation.json', import.meta.url)

const summary = { ...createSummary(), runs: 334, events: 4_200_000, failed: [17], programs: { core: 300, driver: 34 } }
const figures: Figures = {
  commit: 'abc',
  command: 'npm run proofs -- sim',
  from: 1,
  seeds: 334,
  profiles: { crash: summary },
}

test('a recorded run gives one row per profile, with failed seeds', () => {
  expect(rowsOf(figures)).toContain('| `crash` | 334 | 34 | 4,200,000 | 0 | 0 | 1 | 0 |')
})

test('rows replace the previous ones and change nothing else on the page', () => {
  const written = withRows(page, rowsOf(figures))
  expect(written).toContain('| `crash` | 334 |')
  expect(withRows(written, 'other rows')).toBe(withRows(page, 'other rows'))
})

test('the documentation has the rows of the recorded run', () => {
  const rows = existsSync(recorded) ? rowsOf(JSON.parse(readFileSync(recorded, 'utf8')) as Figures) : 'Not recorded yet'
  expect(page).toContain(rows)
})

test('runs of two threads are added up', () => {
  const both = addSummaries([summary, { ...createSummary(), runs: 2, failed: [30], programs: { core: 2 } }])
  expect([both.runs, both.failed, both.programs]).toEqual([336, [17, 30], { core: 302, driver: 34 }])
})
