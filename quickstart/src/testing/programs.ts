/** Starts the quick starts like a user for tests. */

import { fileURLToPath } from 'node:url'
import { type Program, startProgram } from '@vacancy/testkit/program'

const START = fileURLToPath(new URL('../start.ts', import.meta.url))
const SHARD = fileURLToPath(new URL('../shard.ts', import.meta.url))

export type Started = Omit<Program, 'ended'> & {
  readonly ended: Promise<{ readonly code: number | null } & Program['streams']>
}

export function npmStart(...args: string[]): Started {
  return started([START, ...args])
}

export function npmRunStartShard(...args: string[]): Started {
  return started([SHARD, '--no-console', ...args])
}

function started(args: readonly string[]): Started {
  const program = startProgram(args)
  return { ...program, ended: program.ended.then((code) => ({ code, ...program.streams })) }
}
