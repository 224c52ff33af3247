/**
 * promtool of Prometheus for tests: found on this machine, or unpacked from the Debian package into a cache folder.
 * Without it the tests fail with instructions.
 */

import { spawnSync } from 'node:child_process'
import { findOrUnpack } from './installed.ts'

type Ended = { readonly code: number | null; readonly output: string }

/** Runs it to its end. */
export function promtool(args: readonly string[], cwd: string): Ended {
  const [program] = findOrUnpack(['promtool'], 'prometheus') ?? []
  if (program === undefined)
    throw new Error(
      'These tests need promtool: install Prometheus (Debian: apt-get install prometheus; macOS: brew install prometheus) so that it is on the PATH.',
    )
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' })
  return { code: status, output: `${stdout}${stderr}` }
}
