import { expect, test } from 'vitest'
import { allCommandsOf, WHOLE_PAGES, type WholePage } from './testing/blocks.ts'

test.each(Object.keys(WHOLE_PAGES) as WholePage[])('every block of commands in %s has its place in a test', (page) => {
  expect(allCommandsOf(page)).not.toContain('')
})
