/** Pages as a reader follows them: their commands run in a shell, on any date, against what the pages start. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@vacancy/testkit/free-port'
import { startProgram } from '@vacancy/testkit/program'
import { afterAll, expect } from 'vitest'
import { ROOT } from './blocks.ts'

/** Where the commands of a test file run. */
export const folder = mkdtempSync(join(tmpdir(), 'vacancy-guides-'))
symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The clock of a program and of all that it starts. */
const shifted = (offsetMs: number) =>
  `--import=data:text/javascript,${encodeURIComponent(`const now=Date.now;Date.now=()=>now()+(${offsetMs})`)}`

/** `npx` is that of this clone, and `date` that of the reader. */
const PRELUDE = `set -e
npx() { if [ "$1" = vacancy ]; then shift; "$NODE" "$ROOT/bin/vacancy.mjs" "$@"; else shift; "$NODE" "$@"; fi; }
date() {
  local relative= rest=()
  while [ $# -gt 0 ]; do if [ "$1" = -d ]; then relative=$2; shift 2; else rest+=("$1"); shift; fi; done
  command date -d "$(command date -u -d "@$(($(command date +%s) + OFFSET))" '+%F %T UTC') $relative" "\${rest[@]}"
}
`

function shell(script: string, env: NodeJS.ProcessEnv): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn('bash', ['-c', PRELUDE + script], {
      cwd: folder,
      detached: true,
      env: { ...process.env, ...env },
    })
    let output = ''
    // What runs in the background ends with the script.
    child.on('exit', () => {
      try {
        process.kill(-(child.pid as number), 'SIGTERM')
      } catch {
        // Nothing does.
      }
    })
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)))
    child.on('close', (code) => resolve({ code, output }))
  })
}

/** Nine o'clock of a day. Today it is the time of the machine, by which OpenSSL and PostgreSQL check dates. */
function offsetOf(day: string): number {
  const nowMs = Date.now()
  return day === new Date(nowMs).toISOString().slice(0, 10) ? 0 : Date.parse(`${day}T09:00:00Z`) - nowMs
}

export async function follow(day: string, script: string, more: NodeJS.ProcessEnv): Promise<string> {
  const offsetMs = offsetOf(day)
  const port = String(await freePort())
  const { code, output } = await shell(
    script.replaceAll('localhost:8777', `127.0.0.1:${port}`).replaceAll('curl ', 'curl -sS '),
    {
      ...{ ROOT, NODE: process.execPath, OFFSET: String(Math.round(offsetMs / 1000)), NODE_OPTIONS: shifted(offsetMs) },
      VACANCY_PROXY_HTTP_PORT: port,
      ...more,
    },
  )
  expect(code, `${script}\n${output}`).toBe(0)
  expect(output).not.toMatch(/^0 properties|"properties":\[\]|\bno properties/m)
  return output
}

export const startOn = (day: string, args: readonly string[]) =>
  startProgram([...args], {
    env: { NODE_OPTIONS: shifted(offsetOf(day)) },
    isBound: true,
  })
