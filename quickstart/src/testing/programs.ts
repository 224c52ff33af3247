/** Starts programs like a user for tests, and waits for their output. */

import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { VACANCY } from '../launch.ts'

const START = fileURLToPath(new URL('../start.ts', import.meta.url))
const SHARD = fileURLToPath(new URL('../shard.ts', import.meta.url))

export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string }
export type Started = {
  /** Resolves with the first match in the output; rejects when the program ends without one. */
  readonly printed: (pattern: RegExp) => Promise<RegExpExecArray>
  readonly signal: (signal: NodeJS.Signals) => void
  readonly ended: Promise<Ended>
}

export function vacancy(...args: string[]): Promise<Ended> {
  return program([VACANCY, ...args]).ended
}

export function npmStart(...args: string[]): Started {
  return program([START, ...args])
}

export function npmRunStartShard(...args: string[]): Started {
  return program([SHARD, '--no-console', ...args])
}

function program(args: string[]): Started {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const waiting = new Set<() => void>()
  let stdout = ''
  let stderr = ''
  let isOver = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    for (const look of waiting) look()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code) => {
      isOver = true
      for (const look of waiting) look()
      resolve({ code, stdout, stderr })
    })
  })
  const printed = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const match = pattern.exec(stdout)
        if (match) resolve(match)
        else if (isOver) reject(new Error(`ended without ${pattern}:\n${stdout}\n${stderr}`))
        else return
        waiting.delete(look)
      }
      waiting.add(look)
      look()
    })
  return { printed, signal: (signal) => child.kill(signal), ended }
}

/** Holds a port until it is closed; by default any free one. */
export function takePort(wanted = 0): Promise<{ port: number; close: () => void }> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(wanted, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' ? (address?.port ?? 0) : 0
      resolve({ port, close: () => server.close() })
    })
  })
}
