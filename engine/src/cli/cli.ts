/**
 * Commands of the engine for `bin/vacancy.mjs`. Each is loaded on demand, so that a long-running node does not hold the
 * code of the others.
 */

import { assert } from '@vacancy/shared'
import { type Command, runCommand } from '@vacancy/shared/node'

const of = (load: () => Promise<Command>) => async (args: readonly string[]) => runCommand(await load(), args)

const COMMANDS = new Map<string, (args: readonly string[]) => Promise<void>>([
  ['run', of(async () => (await import('./run.ts')).runCommand)],
  ['run-clustered', of(async () => (await import('./run.ts')).runClusteredCommand)],
  ['build-snapshot', of(async () => (await import('../import/command.ts')).buildSnapshotCommand)],
  ['inspect', of(async () => (await import('./data-commands.ts')).inspectCommand)],
  ['backup', of(async () => (await import('./backup.ts')).backupCommand)],
  ['export', of(async () => (await import('./data-commands.ts')).exportCommand)],
  ['quarantine', of(async () => (await import('./data-commands.ts')).quarantineCommand)],
  ['certs', async (args) => (await import('./certificates.ts')).certsMain(args)],
])

/** Runs one subcommand; sets the exit code. */
export async function main([name, ...args]: readonly string[]): Promise<void> {
  const command = COMMANDS.get(name ?? '')
  assert(command !== undefined, 'the command line passes known commands only')
  await command(args)
}
