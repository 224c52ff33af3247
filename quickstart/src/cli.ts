/** The command line of `vacancy query`. */

import { EXIT } from '@vacancy/shared'
import { runCommands } from '@vacancy/shared/node'
import { QUERY_COMMANDS } from './query.ts'

/** @param args `query`, the word of a command and its flags */
export async function main([, ...args]: readonly string[]): Promise<void> {
  const [word] = args
  if (word === undefined || word === '--help') {
    process.stdout.write(`${help()}\n`)
    process.exitCode = word === undefined ? EXIT.usage : EXIT.ok
    return
  }
  await runCommands(QUERY_COMMANDS, args)
}

function help(): string {
  const rows = QUERY_COMMANDS.map(({ name, summary }) => `  ${(name.split(' ').at(-1) ?? '').padEnd(12)}${summary}`)
  const examples = [
    '  vacancy query segments',
    '  vacancy query search --segment tyrol --room-type double --from +7 --nights 2 --price 120',
    '  vacancy query send SETROOMAVL propertyId=alp_000001 roomType=double date=2026-12-04 amount=3',
  ]
  return [
    'usage: vacancy query <command> [flags]',
    '',
    'Queries a running node over TCP and prints the result as a table.',
    '',
    ...rows,
    '',
    'Each has --help. For example:',
    ...examples,
  ].join('\n')
}
