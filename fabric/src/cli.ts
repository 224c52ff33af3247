/**
 * Command lines of the fabric: `vacancy registry`, `resolver`, `bridge`, `router` and `proxy` (docs/design/http.md#process-rules,
 * docs/design/http.md#resolver).
 */

import { randomBytes } from 'node:crypto'
import { systemClock, VacancyError } from '@vacancy/shared'
import {
  type Command,
  createLogger,
  defineCommand,
  listenHost,
  loadCodecFile,
  openTls,
  openTokens,
  runCommands,
  runProgram,
  VERSION,
} from '@vacancy/shared/node'
import { FABRIC_TOKENS } from './access.ts'
import { bridgeCommand } from './bridge/cli.ts'
import { COMPONENTS, REGISTRY_FLAGS, RESOLVER_FLAGS } from './config.ts'
import { tlsFilesOf } from './forward/program.ts'
import { proxyCommand } from './proxy/cli.ts'
import { joinBooleans } from './proxy/config.ts'
import { storeOf } from './registry/open-store.ts'
import { type RunningRegistry, startRegistry } from './registry/registry.ts'
import { parseMap, type RunningResolver, startResolver } from './resolver.ts'
import { routerCommand } from './router/cli.ts'

const registryCommand = defineCommand({
  name: 'vacancy registry',
  component: COMPONENTS.registry,
  logsWarnings: true,
  summary: 'Starts the registry of components, segments and the codec list.',
  flags: REGISTRY_FLAGS,
  run: async ({ flags, view, warnings }) => {
    const codecs = loadCodecFile(flags.codecsPath, 'codecs-path')
    const tlsFiles = tlsFilesOf(flags.tlsCert, flags.tlsKey, flags.tlsClientCa)
    const host = listenHost(flags.addr, {
      isOpen: flags.authFile === undefined && flags.tlsClientCa === undefined,
      allowsAnonymous: flags.allowAnonymous,
      name: '--addr',
      ways: '--auth-file or --tls-client-ca',
    })
    const log = createLogger({ level: flags.logLevel, format: flags.logFormat, component: 'registry' })
    for (const warning of warnings) log.warn({}, warning)
    const tokens =
      flags.authFile === undefined ? undefined : openTokens({ file: flags.authFile, log, rules: FABRIC_TOKENS })
    if (tokens === undefined) log.warn({}, 'no auth file: any client may register and publish segments (--auth-file)')
    const newName = () => randomBytes(8).toString('hex')
    const store = storeOf(flags, log, newName)
    let running: RunningRegistry | undefined
    const tls = tlsFiles && openTls({ files: tlsFiles, log, onReload: (material) => running?.setTls(material) })
    await runProgram(
      {
        start: async () => {
          running = await startRegistry({
            host,
            port: flags.port,
            store,
            codecs,
            heartbeatTimeoutMs: flags.heartbeatTimeoutSecs * 1000,
            rejectsConflicts: flags.segmentConflict === 'reject',
            tokens: () => tokens?.tokens(),
            publicRead: flags.publicRead === 'true',
            tls: tls?.material(),
            version: VERSION,
            config: { ...view, addr: { origin: 'default', at: '', ...view['addr'], value: host } },
            clock: systemClock,
            log,
            drainMs: flags.drainSecs * 1000,
            newEpoch: newName,
          })
          process.stdout.write(`serving: ${tls ? 'https' : 'http'} ${host}:${running.port}\n`)
        },
        stop: async () => {
          await running?.stop()
          tokens?.close()
          tls?.close()
        },
        reload: () => {
          tokens?.reload()
          tls?.reload()
        },
      },
      { log, drainMs: (flags.drainSecs + 5) * 1000 },
    )
    return undefined
  },
})

const resolverCommand = defineCommand({
  name: 'vacancy resolver',
  component: COMPONENTS.resolver,
  logsWarnings: true,
  summary: 'Starts a resolver: hosts of nodes, bridges and routers from a table, or from patterns of their names.',
  flags: RESOLVER_FLAGS,
  run: async ({ flags, view, warnings }) => {
    if (flags.file === undefined && flags.map === undefined && !flags.echo)
      throw new VacancyError('usage_error', { reason: 'one of --file, --map and --echo is needed (see --help)' })
    const map = parseMap(flags.map ?? [])
    const log = createLogger({ level: flags.logLevel, format: flags.logFormat, component: 'resolver' })
    for (const warning of warnings) log.warn({}, warning)
    let running: RunningResolver | undefined
    await runProgram(
      {
        start: async () => {
          running = await startResolver({
            host: flags.host,
            port: flags.port,
            file: flags.file,
            map,
            echoes: flags.echo,
            format: flags.format,
            version: VERSION,
            config: view,
            clock: systemClock,
            log,
            drainMs: flags.drainSecs * 1000,
          })
          process.stdout.write(`serving: http ${flags.host}:${running.port}\n`)
        },
        stop: async () => await running?.stop(),
        reload: () => running?.reload(),
      },
      { log, drainMs: (flags.drainSecs + 5) * 1000 },
    )
    return undefined
  },
})

const COMMANDS: readonly Command[] = [registryCommand, resolverCommand, bridgeCommand, routerCommand, proxyCommand]

/** Short flags, because existing components are started with them. */
const SHORT: { readonly [command: string]: { readonly [flag: string]: string } } = {
  registry: { '-p': '--port' },
  bridge: { '-z': '--zone-id', '-s': '--shard-id', '-b': '--bridge-id' },
}

/** The tables of all commands, for what is made from them. */
export const commands = async (): Promise<readonly Command[]> => COMMANDS

/** Runs one subcommand; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  const short = SHORT[args[0] ?? ''] ?? {}
  await runCommands(COMMANDS, args[0] === 'proxy' ? joinBooleans(args) : args.map((arg) => short[arg] ?? arg))
}
