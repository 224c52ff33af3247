/** A control plane with its console, without nodes or with nodes that run elsewhere. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProgram } from '@vacancy/testkit/program'

const VACANCY = join(import.meta.dirname, '../../bin/vacancy.mjs')

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
  const program = startProgram([VACANCY, ...args])
  const [, link = ''] = await program.printed(/^sign-in: (.*)\n/m)
  return {
    url: new URL(link).origin,
    link,
    async stop() {
      await program.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
