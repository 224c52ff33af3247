/** A control plane with its console, without nodes or with nodes that run elsewhere. */

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const VACANCY = join(import.meta.dirname, '../../bin/vacancy.mjs')
const START_MS_MAX = 120_000

export type ControlPlane = {
  /** Of the console, without a path. */
  readonly url: string
  /** Signs in once, as an admin. */
  readonly link: string
  stop(): Promise<void>
}

export async function startControlPlane(flags: readonly string[] = []): Promise<ControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-control-plane-'))
  const args = ['control-plane', '--data-dir', folder, '--listen-port', '0', '--sign-in', 'admin', ...flags]
  const child = spawn(process.execPath, [VACANCY, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  let printed = ''
  const link = await new Promise<string>((resolve, reject) => {
    const fail = (how: string) => reject(new Error(`the control plane ${how}:\n${printed}`))
    const late = setTimeout(() => fail('did not start'), START_MS_MAX)
    void ended.then(() => fail('ended immediately'))
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text
      const [, found] = /^sign-in: (.*)\n/m.exec(printed) ?? []
      if (found === undefined) return
      clearTimeout(late)
      resolve(found)
    })
  })
  return {
    url: new URL(link).origin,
    link,
    async stop() {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
