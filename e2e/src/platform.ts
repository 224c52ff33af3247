/** The platform of two shards as `vacancy quickstart up` starts it, with console, for tests in a browser. */

import { quickstartTest, UP } from '@vacancy/quickstart/testing/command'

export type Platform = {
  /** Of the console, without a path. */
  readonly url: string
  /** Signs in once, as an admin. */
  readonly link: string
  readonly dir: string
  /** A subcommand of `vacancy quickstart`. @throws with its output unless it succeeds */
  run(...args: string[]): Promise<void>
  stop(): Promise<void>
}

/** @param args more flags of `up` */
export async function startPlatform(...args: string[]): Promise<Platform> {
  const { dir, up, run, remove } = await quickstartTest()
  const program = up(...args, '--console', '--console-port', '0')
  await program.printed(UP)
  const [, link = ''] = await program.printed(/^Open +(\S+)$/m)
  return {
    ...{ url: new URL(link).origin, link, dir },
    async run(...command) {
      const { code, output } = await run(...command)
      if (code !== 0) throw new Error(`vacancy quickstart ${command.join(' ')} ended with ${code}: ${output}`)
    },
    async stop() {
      await program.stop()
      remove()
    },
  }
}
