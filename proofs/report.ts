/** Reports of runs under faults. */
import { writeFileSync } from 'node:fs'
import { EXIT } from '@vacancy/shared'

type Report = { readonly violations: readonly string[]; readonly faults: { readonly [name: string]: number } }

const SHOWN = 20

export function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Writes and prints a report; with violations also the command that repeats the run. @returns the exit code */
export function tellReport(report: Report, file: string | undefined, command: string): number {
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`)
  const { violations, faults, ...figures } = report
  say('faults')
  for (const [name, count] of Object.entries(faults)) say(`  ${String(count).padStart(6)} ${name}`)
  say('figures')
  for (const [name, value] of Object.entries(figures))
    say(`  ${name.padEnd(20)} ${typeof value === 'object' ? JSON.stringify(value) : value}`)
  say(violations.length === 0 ? 'no violations' : `${violations.length} violations:`)
  for (const violation of violations.slice(0, SHOWN)) say(violation)
  if (violations.length === 0) return EXIT.ok
  say(`again: npm run proofs -- ${command}`)
  return EXIT.failure
}
