/** Command lines of the job queue: `vacancy queue serve`, and those that work with a running queue. */
import { systemClock } from '@vacancy/shared'
import {
  type Command,
  collectSooner,
  createLogger,
  defineCommand,
  hostNote,
  runCommands,
  runProgram,
  withTraceEndpoint,
} from '@vacancy/shared/node'
import { loadServeConfig, SERVE_SCHEMA } from './config.ts'
import type { QueueProgram } from './serve.ts'

/** Variables that the other commands know. */
const OF_OTHER_COMMANDS = /^VACANCY_QUEUE_(URL|TOKEN|TOKEN_FILE|TLS_CA) /

export const serveCommand = defineCommand({
  name: 'vacancy queue serve',
  component: 'QUEUE',
  logsWarnings: true,
  summary: 'Starts the job queue alone: producers over HTTP, consumers over WebSocket.',
  flags: {
    config: { type: 'text', value: 'FILE', summary: 'Configuration; else ./queue.yml, then /etc/vacancy/queue.yml.' },
  },
  settings: SERVE_SCHEMA,
  run: async ({ flags, given, warnings }) => {
    const config = loadServeConfig({
      file: flags.config,
      given: withTraceEndpoint(given),
      databaseUrl: process.env['DATABASE_URL'],
    })
    const log = createLogger({ level: config.logLevel, format: config.logFormat, component: 'queue' })
    for (const warning of warnings) if (!OF_OTHER_COMMANDS.test(warning)) log.warn({}, warning)
    collectSooner('queue')
    // The other commands start faster without it.
    const { serveQueue } = await import('./serve.ts')
    let running: QueueProgram | undefined
    await runProgram(
      {
        start: async () => {
          running = await serveQueue({ config, clock: systemClock, log })
          process.stdout.write(`serving: ${running.url}\n${hostNote(config)}`)
        },
        stop: async () => await running?.stop(),
        reload: () => running?.reload(),
      },
      { log, drainMs: config.shutdownGraceMs + 10_000 },
    )
    return undefined
  },
})

/** The tables of all commands, for what is made from them. */
export const commands = async (): Promise<readonly Command[]> => [
  serveCommand,
  ...(await import('./commands.ts')).QUEUE_COMMANDS,
]

/** Runs one subcommand; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  const [, ...rest] = args
  // The queue starts faster without what the other commands need.
  if (rest[0] === 'serve') return await runCommands([serveCommand], rest)
  const all = await commands()
  if (rest[0] !== '--help' && rest[0] !== '-h') return await runCommands(all, rest)
  const rows = all.map(({ name, summary }) => `  ${(name.split(' ').at(-1) ?? '').padEnd(8)} ${summary}`)
  process.stdout.write(`usage: vacancy queue <command> [flags]\n\n${rows.join('\n')}\n\nEach has --help.\n`)
}
