/**
 * Command lines of the engine: `vacancy run`, `build-snapshot`, `inspect`, `export`, `quarantine` and `cluster` (platform.md
 * §7.9).
 */

import { join } from 'node:path'
import { EXIT, parseDay, VacancyError } from '@vacancy/shared'
import {
  type Command,
  createLogger,
  defineCommand,
  LOG_FORMATS,
  runCommands,
  runProgram,
  type TlsFiles,
  VERSION,
} from '@vacancy/shared/node'
import { clusterMain } from './cluster-commands.ts'
import { codecsFileOf, ENGINE_SCHEMA, loadCodecs, loadEngineConfig } from './config.ts'
import { buildSnapshotCommand } from './import/command.ts'
import { type RunningNode, startNode } from './node.ts'
import { exportDirectory, inspectDirectory, quarantine } from './operations.ts'

const TLS_FLAGS = {
  'tcp-cert-path': {
    type: 'text',
    value: 'FILE',
    summary: 'Certificate of the TCP listener, PEM; with --tcp-key-path.',
  },
  'tcp-key-path': { type: 'text', value: 'FILE', summary: 'Its key.' },
  'api-cert-path': {
    type: 'text',
    value: 'FILE',
    summary: 'Certificate of the HTTP listener, PEM; with --api-key-path.',
  },
  'api-key-path': { type: 'text', value: 'FILE', summary: 'Its key.' },
} as const

const runCommand = defineCommand({
  name: 'vacancy run',
  component: 'RUN',
  summary: 'Starts a standalone node: TCP protocol and HTTP API over the data in its folder.',
  flags: {
    config: {
      type: 'text',
      value: 'FILE',
      summary: 'Configuration; else ./vacancy.yml, then /etc/vacancy/vacancy.yml.',
    },
    codecs: { type: 'text', value: 'FILE', summary: 'Codec list; else codecs.yml beside the configuration.' },
    'shard-id': { type: 'text', value: 'ID', summary: 'Shard that the data must be of; else whatever it is of.' },
    'node-id': { type: 'text', value: 'ID', default: 'node-1', summary: 'Id of this node, kept in its folder.' },
    'auth-file': { type: 'text', value: 'FILE', summary: 'Tokens and roles; read again when it changes.' },
    'tcp-listen-addr': { type: 'text', value: 'HOST', default: '127.0.0.1', summary: 'Address of the TCP listener.' },
    'api-listen-addr': { type: 'text', value: 'HOST', default: '127.0.0.1', summary: 'Address of the HTTP listener.' },
    ...TLS_FLAGS,
    'accept-loss': {
      type: 'boolean',
      summary: 'Sets damaged data aside, starts from what verifies, and prints what is lost.',
    },
    'accept-date': {
      type: 'text',
      value: 'YYYY-MM-DD',
      summary: 'Lets maintenance go up to this date however long ago the last one was.',
    },
    'drain-secs': {
      type: 'integer',
      default: 10,
      min: 0,
      max: 600,
      unit: 'seconds',
      summary: 'Time to finish what is in flight when stopping.',
    },
    'log-format': { type: 'choice', choices: LOG_FORMATS, default: 'json', summary: 'Log lines as JSON or as text.' },
  },
  settings: ENGINE_SCHEMA,
  run: async ({ flags, given, warnings }) => {
    const config = loadEngineConfig({ file: flags.config, given })
    const codecs = loadCodecs(flags.codecs ?? codecsFileOf(config))
    const log = createLogger({
      level: config.values.logLevel,
      format: flags.logFormat,
      component: 'node',
      id: flags.nodeId,
      ...(flags.shardId === undefined ? {} : { shard: flags.shardId }),
    })
    for (const warning of warnings) log.warn({}, warning)
    let node: RunningNode | undefined
    await runProgram(
      {
        start: async (life) => {
          node = await startNode({
            config,
            codecs,
            dataDir: config.values.dataDir,
            shardId: flags.shardId,
            nodeId: flags.nodeId,
            version: VERSION,
            tcpHost: flags.tcpListenAddr,
            apiHost: flags.apiListenAddr,
            authFile: flags.authFile,
            tcpTls: tlsFiles('tcp', flags.tcpCertPath, flags.tcpKeyPath),
            apiTls: tlsFiles('api', flags.apiCertPath, flags.apiKeyPath),
            acceptLoss: flags.acceptLoss,
            acceptDay: acceptDay(flags.acceptDate),
            drainSeconds: flags.drainSecs,
            logFormat: flags.logFormat,
            clockOffsetMs: 0,
            log,
            onEnd: (code) => life.stop({ code, reason: 'the node ends by itself' }),
          })
          process.stdout.write(
            `serving: tcp ${flags.tcpListenAddr}:${node.tcpPort}, http ${flags.apiListenAddr}:${node.apiPort}\n`,
          )
        },
        stop: async () => await node?.stop(),
        reload: () => node?.reload(),
      },
      { log, drainMs: (flags.drainSecs + 5) * 1000 },
    )
    return undefined
  },
})

function tlsFiles(what: string, cert: string | undefined, key: string | undefined): TlsFiles | undefined {
  if (cert === undefined && key === undefined) return undefined
  if (cert !== undefined && key !== undefined) return { cert, key }
  throw new VacancyError('usage_error', { reason: `--${what}-cert-path and --${what}-key-path come together` })
}

function acceptDay(text: string | undefined): number {
  if (text === undefined) return 0
  const day = parseDay(text)
  if (day === undefined)
    throw new VacancyError('usage_error', { reason: `--accept-date: ${text} is no date YYYY-MM-DD` })
  return day
}

const DIRECTORY = { name: 'DIR', min: 1, max: 1, summary: 'The data directory.' } as const

const inspectCommand = defineCommand({
  name: 'vacancy inspect',
  component: 'INSPECT',
  summary: 'Says what lies in a data directory and what of it is damaged. Changes nothing.',
  flags: { json: { type: 'boolean', summary: 'One JSON document instead of text.' } },
  operands: DIRECTORY,
  run: async ({ flags, operands }) => {
    const { lines, document, isDamaged } = inspectDirectory(operands[0] as string)
    process.stdout.write(flags.json ? `${JSON.stringify(document, undefined, 2)}\n` : `${lines.join('\n')}\n`)
    return isDamaged ? EXIT.corruption : EXIT.ok
  },
})

const exportCommand = defineCommand({
  name: 'vacancy export',
  component: 'EXPORT',
  summary: 'Makes one snapshot file of a data directory: the backup. The node must be stopped.',
  flags: {
    'output-path': { type: 'text', value: 'DIR', default: '.', summary: 'Folder that seed.snapshot is written into.' },
    'accept-loss': {
      type: 'boolean',
      summary: 'Exports what verifies of damaged data, sets the rest aside as run does, and prints what is lost.',
    },
  },
  operands: DIRECTORY,
  run: async ({ flags, operands }) => {
    const exported = await exportDirectory(operands[0] as string, flags.outputPath, flags.acceptLoss)
    for (const line of exported.lost) process.stderr.write(`vacancy export: ${line}\n`)
    process.stdout.write(
      `${join(flags.outputPath, 'seed.snapshot')}: snapshot ${exported.snapshotId} of shard ${exported.shardId}, ` +
        `${exported.packages} packages of ${exported.properties} properties, ${exported.bytes} bytes\n`,
    )
    return EXIT.ok
  },
})

const quarantineCommand = defineCommand({
  name: 'vacancy quarantine',
  component: 'QUARANTINE',
  summary: 'Data that was set aside: list, restore NAME or remove NAME. The node must be stopped for the last two.',
  flags: { 'data-dir': { type: 'text', value: 'DIR', default: './data', summary: 'The data directory.' } },
  operands: { name: 'list|restore NAME|remove NAME', min: 1, max: 2, summary: 'What to do, and with which.' },
  run: async ({ flags, operands }) => {
    const lines = quarantine(flags.dataDir, operands[0] as string, operands[1])
    process.stdout.write(lines.length === 0 ? 'nothing was set aside\n' : `${lines.join('\n')}\n`)
    return EXIT.ok
  },
})

const COMMANDS: readonly Command[] = [
  runCommand,
  buildSnapshotCommand,
  inspectCommand,
  exportCommand,
  quarantineCommand,
]

/** Runs one subcommand; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  if (args[0] === 'cluster') return await clusterMain(args.slice(1))
  await runCommands(COMMANDS, args)
}
