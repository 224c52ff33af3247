import { expect, test } from 'vitest'
import { rowsOf, type StartRun } from './starts.ts'

const run = (activeMs: number, cpuSeconds: number): StartRun => ({ activeMs, cpuSeconds, residentMb: 100, helpMs: 300 })

test('medians of starts from bundles are judged by those from sources', () => {
  const [node, command] = rowsOf({
    bundle: [run(900, 1.1), run(5_000, 1.9), run(800, 1.8)],
    sources: [run(1_500, 1.7), run(1_400, 1.6), run(9_000, 2)],
  })

  expect(node?.verdict).toBe('missed')
  expect(node?.measures).toMatchObject([
    { name: 'active after', value: 900, baseline: { value: 1_500 }, verdict: 'met' },
    { name: 'processor time', value: 1.8, baseline: { value: 1.7 }, verdict: 'missed' },
    { name: 'resident', value: 100, verdict: 'met' },
  ])
  expect(command).toMatchObject({ id: 2, verdict: 'met', measures: [{ name: 'ended after', value: 300 }] })
})
