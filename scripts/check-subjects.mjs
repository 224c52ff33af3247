// Checks the subjects of commits: one idea in at most 60 characters, from the first commit for which this holds.
import { spawnSync } from 'node:child_process'
import path from 'node:path'

/** The last commit of earlier habits. */
const BEFORE = 'be58c3a766f640b17f626204a8d2b612d4f7f80c'
const CHARACTERS_MAX = 60

if (process.argv[1] === import.meta.filename) process.exitCode = main(path.resolve(import.meta.dirname, '..'))

function main(root) {
  const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  // A clone without its history has only newer commits, and a copy without git has none.
  const hasBefore = git('cat-file', '-e', BEFORE).status === 0
  const { status, stdout } = git('log', '--no-merges', '--format=%h %s', hasBefore ? `${BEFORE}..HEAD` : 'HEAD')
  if (status !== 0) return console.log('subjects: not a git repository') ?? 0
  const lines = stdout.split('\n').filter(Boolean)
  const faults = lines.map(faultOf).filter((fault) => fault !== undefined)
  for (const fault of faults) console.error(fault)
  console.log(`subjects: ${lines.length} commits, ${faults.length} faults`)
  return faults.length === 0 ? 0 : 1
}

/** @param line abbreviated hash and subject */
export function faultOf(line) {
  const subject = line.slice(line.indexOf(' ') + 1)
  if ([...subject].length > CHARACTERS_MAX) return `${line}: more than ${CHARACTERS_MAX} characters`
  if (subject.includes(';')) return `${line}: more than one idea`
  return undefined
}
