import { expect, test } from 'vitest'
import { pages, runsTable, withBlock } from './pages.ts'
import { measureOf, readResults, refusePartialWrite } from './results.ts'

test('the README quotes five figures as recorded, and the page of benchmarks every missed target', () => {
  const { 'README.md': readme = '', 'docs/benchmarks.md': page = '' } = pages()
  const { report, failover, queue, fabric, stays, whyNot } = readResults()

  for (const commit of [whyNot.machine.commit, failover.machine.commit]) expect(readme).toContain(`commit ${commit}`)
  const rows = [report, failover, queue, fabric, stays].flatMap(({ rows }) => rows)
  const missed = rows.filter(({ verdict }) => verdict === 'missed')
  expect(missed.length).toBeGreaterThan(0)
  for (const { what } of missed) expect(page).toContain(`- ${what}: `)
})

test('a block takes the place of the one before it and changes nothing else', () => {
  const page = 'Above.\n\n<!-- figures: made from x -->\nold\n<!-- end of figures -->\n\nBelow.\n'

  const written = withBlock(page, 'figures', 'new')

  expect(written).toBe('Above.\n\n<!-- figures: made from x -->\n\nnew\n\n<!-- end of figures -->\n\nBelow.\n')
  expect(withBlock(written, 'figures', 'new')).toBe(written)
  expect(() => withBlock(page, 'runs', 'new')).toThrow('the page has no block "runs"')
})

test('the newest run of each kind is shown', () => {
  const run = {
    title: 'a',
    command: 'npm run proofs -- chaos',
    date: '2026-11-23',
    lines: ['Nothing lost.', 'All agreed.'],
  }
  const table = runsTable([
    {
      kind: 'Chaos',
      runs: [
        { ...run, commit: 'abc' },
        { ...run, lines: ['older'] },
      ],
    },
  ])

  expect(table).toContain('| Chaos | Nothing lost. All agreed. | `npm run proofs -- chaos` | 2026-11-23 | abc |')
  expect(table).not.toContain('older')
})

test('a figure that no run has is an error, one of a failed row has no value', () => {
  const { report } = readResults()
  const failed = { id: 4, what: 'searches', verdict: 'missed' as const, measures: [], why: 'the node stopped' }

  expect(() => measureOf(report, 4, 'p98')).toThrow('must have "p98" in row 4')
  expect(measureOf({ rows: [failed] }, 4, 'p50')).toMatchObject({ value: Number.NaN, verdict: 'missed' })
})

test('figures of some rows do not replace those of a whole run', () => {
  expect(() => refusePartialWrite({ write: true, only: ['4'] })).toThrow('leave out --only')
  refusePartialWrite({ write: true, only: undefined })
  refusePartialWrite({ write: false, only: ['4'] })
})
