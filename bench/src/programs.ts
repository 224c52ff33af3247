/** Programs of this repository, started by path as an operator would, and ended by their own process id. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { failure } from './failure.ts'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** How much of a program's stderr is kept for the message about its failure. */
const STDERR_KEPT = 2000
const STOP_MS = 15_000

export type Program = {
  process: ChildProcess
  /** Everything it printed on stdout so far. */
  output(): string
  /** The last it printed on stderr. */
  complaints(): string
  /** Exit code; null when a signal ended it. */
  ended: Promise<number | null>
}

/**
 * @param args the program's path relative to the repository, then its arguments
 * @param root another copy of the repository than this one
 */
export function startProgram(args: readonly string[], root: string = ROOT): Program {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  // A program that outlives the one that measures it would disturb the next measurement.
  const end = () => child.kill('SIGKILL')
  process.once('exit', end)
  child.once('close', () => process.off('exit', end))
  let output = ''
  let complaints = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-STDERR_KEPT)
  })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code))
  })
  // Callers that wait for the end see it again; a program that fails to start must not end this one.
  ended.catch(() => {})
  return { process: child, output: () => output, complaints: () => complaints, ended }
}

/** Runs a program to its end and answers with what it printed. Throws with its last words when it failed. */
export async function runProgram(args: readonly string[], root: string = ROOT): Promise<string> {
  const program = startProgram(args, root)
  const code = await program.ended
  if (code !== 0) throw failure(`${args[0]} ended with exit code ${code}: ${lastLine(program)}`)
  return program.output()
}

/** The last output of a program; for a stack trace the line with the error. */
export function lastLine(program: Program): string {
  const lines = (program.complaints().trim() || program.output().trim()).split('\n')
  return lines.findLast((line) => /\w*Error\b.*: /.test(line))?.trim() || lines.at(-1) || 'no output'
}

/** Stops a program gracefully, and kills it when it does not end. */
export async function stopProgram(program: Program, { withinMs = STOP_MS } = {}): Promise<number | null> {
  program.process.kill('SIGTERM')
  const timer = setTimeout(() => program.process.kill('SIGKILL'), withinMs)
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
