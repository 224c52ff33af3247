import { expect, test } from 'vitest'
import { withPart } from './page.ts'

test('each part of the page is replaced by itself, and what stands around it stays', () => {
  let page = withPart('', 'report', '# Benchmarks\n\nold figures')
  page = withPart(page, 'compare', 'old comparison')
  page = `${page}\nWritten by hand.\n`
  page = withPart(page, 'failover', 'pauses')

  page = withPart(page, 'report', '# Benchmarks\n\nnew figures')
  page = withPart(page, 'compare', 'new comparison')

  expect(page).toBe(`<!-- report: made by a benchmark, not by hand -->

# Benchmarks

new figures

<!-- end of report -->

## A shard

What several nodes add to these figures, and what they cost.

<!-- failover: made by a benchmark, not by hand -->

pauses

<!-- end of failover -->

<!-- compare: made by a benchmark, not by hand -->

new comparison

<!-- end of compare -->

Written by hand.
`)
})

test('writing the same again changes nothing', () => {
  const once = withPart(withPart('', 'report', 'a'), 'replicated', 'b')

  expect(withPart(withPart(once, 'report', 'a'), 'replicated', 'b')).toBe(once)
})
