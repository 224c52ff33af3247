/** Generated pages of docs/: whether they are current, and writing them. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { groupDigits } from '../numbers.ts'

/** File name → text, generated from the current tables. */
export type Pages = { readonly [file: string]: string }

/** Pages in `folder` whose text differs from the generated one. */
export function staleAmong(pages: Pages, folder: string): string[] {
  return Object.entries(pages).flatMap(([file, text]) => (readOrNothing(join(folder, file)) === text ? [] : [file]))
}

/**
 * A table of limits in Markdown.
 *
 * @param meanings what each of them bounds
 */
export function limitsTable<const T extends { readonly [name: string]: number | string }>(
  limits: T,
  meanings: { readonly [name in keyof T]: string },
): string {
  const rows = Object.entries(limits).map(([name, value]) => {
    const shown = typeof value === 'number' ? groupDigits(value) : value
    return `| \`${name}\` | ${shown} | ${meanings[name]} |`
  })
  return ['| Limit | Value | What it bounds |', '|---|---|---|', ...rows].join('\n')
}

function readOrNothing(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

/** The command around it: lists outdated pages, or writes them with `--write`. Sets the exit code. */
export function pagesMain(pages: Pages, folder: string): void {
  const stale = staleAmong(pages, folder)
  if (process.argv.includes('--write')) {
    for (const file of stale) writeFileSync(join(folder, file), pages[file] as string)
    process.stdout.write(stale.length === 0 ? 'All pages are current.\n' : `Wrote ${stale.join(', ')}.\n`)
  } else {
    process.stdout.write(stale.length === 0 ? 'All pages are current.\n' : `Not current: ${stale.join(', ')}.\n`)
    process.exitCode = stale.length === 0 ? 0 : 1
  }
}
