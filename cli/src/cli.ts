/** Commands that talk to running programs, for `bin/vacancy.mjs`. */

import { assert } from '@vacancy/shared'

/** Runs one subcommand; sets the exit code. */
export async function main([name, ...args]: readonly string[]): Promise<void> {
  switch (name) {
    case 'cluster':
      return await (await import('./cluster-commands.ts')).clusterMain(args)
    case 'query':
      return await (await import('./query.ts')).queryMain(args)
    default:
      assert(false, 'the command line passes known commands only')
  }
}
