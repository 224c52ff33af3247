/** Blocks of shell commands in pages. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'

export const ROOT = join(import.meta.dirname, '../../..')

/** How many blocks a page has, which operations.long.test.ts runs whole, but for what is installed. A new one needs its place there. */
export const WHOLE_PAGES = { 'docs/operators.md': 15, 'docs/clusters.md': 14, 'docs/control-plane.md': 13 } as const
export type WholePage = keyof typeof WHOLE_PAGES

export const read = (page: string) => readFileSync(join(ROOT, page), 'utf8')
const blocksOf = (text: string): string[] => [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block)
/** Blocks between two headings. */
export const commandsOf = (page: string, from: string, to: string): string[] =>
  blocksOf(read(page).split(`\n## ${from}\n`)[1]?.split(`\n## ${to}\n`)[0] ?? '')
/** All blocks of a page. */
export function allCommandsOf(page: WholePage): string[] {
  const blocks = blocksOf(read(page))
  expect(blocks, page).toHaveLength(WHOLE_PAGES[page])
  return blocks
}
