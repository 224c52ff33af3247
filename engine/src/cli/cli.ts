/**
 * Commands of the engine for `bin/vacancy.mjs`. Each is loaded on demand, so that a long-running node does not hold the
 * code of the others.
 */

import { assert } from '@vacancy/shared'
import { type Command, runCommand } from '@vacancy/shared/node'

const of = (load: () => Promise<Command>) => ({
  load: async () => [await load()],
  start: async (args: readonly string[]) => runCommand(await load(), args),
})

type Entry = {
  readonly load: () => Promise<readonly Command[]>
  readonly start: (args: readonly string[]) => Promise<void>
}

const ENTRIES = new Map<string, Entry>([
  ['run', of(async () => (await import('./run.ts')).runCommand)],
  ['run-clustered', of(async () => (await import('./run.ts')).runClusteredCommand)],
  ['build-snapshot', of(async () => (await import('../import/command.ts')).buildSnapshotCommand)],
  ['import-source', of(async () => (await import('../import-source/command.ts')).importSourceCommand)],
  ['inspect', of(async () => (await import('./data-commands.ts')).inspectCommand)],
  ['backup', of(async () => (await import('./backup.ts')).backupCommand)],
  ['export', of(async () => (await import('./data-commands.ts')).exportCommand)],
  ['quarantine', of(async () => (await import('./data-commands.ts')).quarantineCommand)],
  [
    'certs',
    {
      load: async () => (await import('./certificates.ts')).CERTS_COMMANDS,
      start: async (args) => (await import('./certificates.ts')).certsMain(args),
    },
  ],
])

/** The tables of all commands, for what is made from them. */
export async function commands(): Promise<readonly Command[]> {
  return (await Promise.all([...ENTRIES.values()].map(({ load }) => load()))).flat()
}

/** Runs one subcommand; sets the exit code. */
export async function main([name, ...args]: readonly string[]): Promise<void> {
  const entry = ENTRIES.get(name ?? '')
  assert(entry !== undefined, 'the command line passes known commands only')
  await entry.start(args)
}
