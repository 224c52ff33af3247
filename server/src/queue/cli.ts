/** Command lines of the job queue: `vacancy queue serve`. */
import { systemClock } from '@vacancy/shared'
import { createLogger, defineCommand, loadConfig, runCommands, runProgram } from '@vacancy/shared/node'
import { checkQueue, SERVE_SCHEMA, type ServeConfig } from './config.ts'
import { type QueueProgram, serveQueue } from './serve.ts'

const SEARCHED = ['./queue.yml', '/etc/vacancy/queue.yml']

export const serveCommand = defineCommand({
  name: 'vacancy queue serve',
  component: 'QUEUE',
  summary: 'Starts the job queue alone: producers over HTTP, consumers over WebSocket.',
  flags: {
    config: { type: 'text', value: 'FILE', summary: 'Configuration; else ./queue.yml, then /etc/vacancy/queue.yml.' },
  },
  settings: SERVE_SCHEMA,
  run: async ({ flags, given, warnings }) => {
    const { values } = loadConfig({ schema: SERVE_SCHEMA, file: flags.config, searched: SEARCHED, given, check })
    const config: ServeConfig = values
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

function check(values: ServeConfig): string[] {
  const faults: string[] = []
  if ((values.tlsCert === '') !== (values.tlsKey === '')) faults.push('tls_cert and tls_key must be set together')
  return [...faults, ...checkQueue(values, '')]
}

/** Runs one subcommand; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  const [, ...rest] = args
  if (rest[0] === '--help' || rest[0] === '-h')
    process.stdout.write(`usage: vacancy queue <command> [flags]\n\n  serve   ${serveCommand.summary}\n`)
  else await runCommands([serveCommand], rest)
}
