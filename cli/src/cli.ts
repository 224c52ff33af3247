/** Commands that talk to running programs, and completion, for `bin/vacancy.mjs`. */

import { assert } from '@vacancy/shared'
import type { Command } from '@vacancy/shared/node'
import type { Described } from './completion.ts'

/** The tables of all commands, for what is made from them. */
export async function commands(): Promise<readonly Command[]> {
  const [{ CLUSTER_COMMANDS }, { QUERY_COMMANDS }, { HEALTH_COMMAND }, { COMPLETION_COMMAND }] = await Promise.all([
    import('./cluster-commands.ts'),
    import('./query.ts'),
    import('./health.ts'),
    import('./completion.ts'),
  ])
  return [...CLUSTER_COMMANDS, ...QUERY_COMMANDS, HEALTH_COMMAND, COMPLETION_COMMAND]
}

/**
 * Runs one subcommand; sets the exit code.
 *
 * @param describe tables of all subcommands, those of other programs included
 */
export async function main([name, ...args]: readonly string[], describe: () => Promise<Described>): Promise<void> {
  switch (name) {
    case 'cluster':
      return await (await import('./cluster-commands.ts')).clusterMain(args)
    case 'query':
      return await (await import('./query.ts')).queryMain(args)
    case 'health':
      return await (await import('./health.ts')).healthMain(args)
    case 'completion':
      return await (await import('./completion.ts')).completionMain(args, describe)
    default:
      assert(false, 'the command line passes known commands only')
  }
}
