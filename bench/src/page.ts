/**
 * docs/benchmarks.md: several commands write it, each its own part, between two marks. What stands outside the marks
 * stays.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatSection, type Section } from './format.ts'
import { ROOT } from './programs.ts'

const PAGE = join(ROOT, 'docs/benchmarks.md')
export const SECTIONS = ['failover', 'replicated', 'compare'] as const satisfies readonly Section['name'][]
type Part = 'report' | Section['name']

const SHARD_HEAD = `## A shard

What several nodes add to these figures, and what they cost.
`

export function writeReportPage(text: string): void {
  writePart('report', text)
}

export function writeSection(section: Section): void {
  writePart(section.name, formatSection(section))
}

function writePart(part: Part, text: string): void {
  writeFileSync(PAGE, withPart(existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '', part, text))
}

/** The page with this text as its part: in the place of the one before, or where it belongs. */
export function withPart(page: string, part: Part, text: string): string {
  const marked = `${beginOf(part)}\n\n${text.trim()}\n\n${endOf(part)}\n`
  const start = page.indexOf(beginOf(part))
  const end = page.indexOf(endOf(part))
  if (start >= 0 && end > start) {
    const rest = page.slice(end + endOf(part).length).replace(/^\n/, '')
    return page.slice(0, start) + marked + rest
  }
  if (part === 'report') return page.trim() === '' ? marked : `${marked}\n${page}`
  const before = page.includes(SHARD_HEAD) ? page : joined(page, SHARD_HEAD)
  const later = SECTIONS.slice(SECTIONS.indexOf(part) + 1).map((name) => before.indexOf(beginOf(name)))
  const at = Math.min(...later.filter((place) => place >= 0), before.length)
  return joined(joined(before.slice(0, at), marked), before.slice(at))
}

const beginOf = (part: Part): string => `<!-- ${part}: made by a benchmark, not by hand -->`
const endOf = (part: Part): string => `<!-- end of ${part} -->`

/** Two pieces with an empty line between them. */
function joined(first: string, second: string): string {
  if (first.trim() === '' || second.trim() === '') return first + second
  return `${first.trimEnd()}\n\n${second}`
}
