import { expect, test } from 'vitest'
import { addSummaries, createSummary } from './report.ts'

test('runs of two threads are added up', () => {
  const summary = { ...createSummary(), runs: 334, failed: [17], programs: { core: 300, driver: 34 } }
  const both = addSummaries([summary, { ...createSummary(), runs: 2, failed: [30], programs: { core: 2 } }])
  expect([both.runs, both.failed, both.programs]).toEqual([336, [17, 30], { core: 302, driver: 34 }])
})
