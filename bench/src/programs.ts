/** Programs of this repository, started by path as an operator would, and ended by their own process id. */
import { fileURLToPath } from 'node:url'
import { type Program, startProgram as start } from '@vacancy/testkit/program'
import { failure } from './failure.ts'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const STOP_MS = 15_000

/**
 * @param args the program's path relative to the repository, then its arguments
 * @param root another copy of the repository than this one
 */
export function startProgram(args: readonly string[], root: string = ROOT): Program {
  // A program that outlives the one that measures it would disturb the next measurement.
  return start(args, { cwd: root, isBound: true })
}

/** Runs a program to its end and answers with what it printed. Throws with its last words when it failed. */
export async function runProgram(args: readonly string[], root: string = ROOT): Promise<string> {
  const program = startProgram(args, root)
  const code = await program.ended
  if (code !== 0) throw failure(`${args[0]} ended with exit code ${code}: ${lastLine(program)}`)
  return program.streams.stdout
}

/** The last output of a program; for a stack trace the line with the error. */
export function lastLine({ streams }: Program): string {
  const lines = (streams.stderr.trim() || streams.stdout.trim()).split('\n')
  return lines.findLast((line) => /\w*Error\b.*: /.test(line))?.trim() || lines.at(-1) || 'no output'
}

/** Stops a program gracefully, and kills it when it does not end. */
export async function stopProgram(program: Program, { withinMs = STOP_MS } = {}): Promise<number | null> {
  program.signal('SIGTERM')
  const timer = setTimeout(() => program.signal('SIGKILL'), withinMs)
  const code = await program.ended
  clearTimeout(timer)
  return code
}

/** The last JSON line a program printed. */
export function lastJson(text: string): unknown {
  const line = text.trim().split('\n').at(-1) ?? ''
  try {
    return JSON.parse(line)
  } catch (error) {
    throw failure(`expected a line of JSON, got ${line.slice(0, 100) || 'nothing'}`, error)
  }
}
