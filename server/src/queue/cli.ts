/** Command lines of the job queue: `vacancy queue serve`. */
import { systemClock } from '@vacancy/shared'
import { createLogger, defineCommand, runCommands, runProgram } from '@vacancy/shared/node'
import { loadServeConfig, SERVE_SCHEMA } from './config.ts'
import { type QueueProgram, serveQueue } from './serve.ts'

export const serveCommand = defineCommand({
  name: 'vacancy queue serve',
  component: 'QUEUE',
  summary: 'Starts the job queue alone: producers over HTTP, consumers over WebSocket.',
  flags: {
    config: { type: 'text', value: 'FILE', summary: 'Configuration; else ./queue.yml, then /etc/vacancy/queue.yml.' },
  },
  settings: SERVE_SCHEMA,
  run: async ({ flags, given, warnings }) => {
    const config = loadServeConfig({ file: flags.config, given, databaseUrl: process.env['DATABASE_URL'] })
    const log = createLogger({ level: config.logLevel, format: config.logFormat, component: 'queue' })
    for (const warning of warnings) log.warn({}, warning)
    let running: QueueProgram | undefined
    await runProgram(
      {
        start: async () => {
          running = await serveQueue({ config, clock: systemClock, log })
          process.stdout.write(`serving: ${running.url}\n`)
        },
        stop: async () => await running?.stop(),
        reload: () => running?.reload(),
      },
      { log, drainMs: config.shutdownGraceMs + 10_000 },
    )
    return undefined
  },
})

/** Runs one subcommand; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  const [, ...rest] = args
  if (rest[0] === '--help' || rest[0] === '-h')
    process.stdout.write(`usage: vacancy queue <command> [flags]\n\n  serve   ${serveCommand.summary}\n`)
  else await runCommands([serveCommand], rest)
}
