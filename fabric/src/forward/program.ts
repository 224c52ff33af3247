/** The life of a router or bridge: what its command line opens before the service, and closes after it. */

import { randomBytes } from 'node:crypto'
import { ID_RULE, parseId, systemClock, VacancyError } from '@vacancy/shared'
import { warnOfDescriptors } from '@vacancy/shared/descriptors'
import {
  type ConfigView,
  createLogger,
  type FlagValues,
  type Log,
  listenHost,
  openTls,
  openTokenFile,
  openTokens,
  openTracing,
  runProgram,
  type TlsFiles,
  type Tracing,
  traceEndpointOf,
  VERSION,
} from '@vacancy/shared/node'
import { systemSchedule } from '@vacancy/shared/schedule'
import { type Registration, startRegistration } from '../register.ts'
import { openRegistryClient, type RegistryClient } from '../registry-client.ts'
import { openResolver, type Resolver } from '../resolve.ts'
import type { API_FLAGS, LIMIT_FLAGS, PROCESS_FLAGS, SECURITY_FLAGS, UPWARD_FLAGS } from './flags.ts'
import { limitsOf, type Service, type ServiceOptions } from './service.ts'
import { openUpstreamTls } from './upstream-tls.ts'
import { systemWorld } from './world.ts'

const CONNECT_MS = 2_000

type CommonFlags = FlagValues<
  typeof UPWARD_FLAGS & typeof API_FLAGS & typeof LIMIT_FLAGS & typeof SECURITY_FLAGS & typeof PROCESS_FLAGS
>

export type ProgramOptions = {
  readonly component: 'router' | 'bridge'
  readonly flags: CommonFlags
  readonly view: ConfigView
  readonly warnings: readonly string[]
  readonly listenHost: string | undefined
  readonly listenPort: number
  readonly deadlineMs: number
  /** Registered with the registry; undefined for an edge router. */
  readonly identity: { readonly id: string; readonly zone: string; readonly shard?: string } | undefined
  readonly heartbeatMs: number
  /** Of a bridge: the token for LOGIN to nodes. */
  readonly hopTokenFile?: string | undefined
}

/** What the component's start gets. */
export type Opened = {
  readonly service: ServiceOptions
  readonly registry: RegistryClient
  readonly resolver: Resolver
  readonly registration: Registration | undefined
  readonly hopToken: () => string | undefined
  readonly log: Log
}

/**
 * The parts of `--tls-cert`, `--tls-key` and `--tls-client-ca`.
 *
 * @throws VacancyError usage_error
 */
export function tlsFilesOf(
  cert: string | undefined,
  key: string | undefined,
  clientCa: string | undefined,
): TlsFiles | undefined {
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined
  if (cert !== undefined && key !== undefined) return { cert, key, clientCa }
  throw new VacancyError('usage_error', {
    reason: '--tls-cert and --tls-key must be set together; --tls-client-ca needs both',
  })
}

/** @throws VacancyError usage_error naming the flag */
export function checkedId(flag: string, id: string): string {
  if (parseId(id) !== undefined) return id
  throw new VacancyError('usage_error', { reason: `--${flag}: ${id} must be ${ID_RULE}` })
}

/** The configuration, with the defaults that depend on other flags. */
function viewOf(view: ConfigView, effective: { readonly [flag: string]: string | number }): ConfigView {
  const rows = Object.entries(view).map(([flag, row]) => [flag, { ...row, value: effective[flag] ?? row.value }])
  return Object.fromEntries(rows)
}

/** Runs the service to the end of the process. */
export async function runService(options: ProgramOptions, start: (opened: Opened) => Promise<Service>): Promise<void> {
  const { component, flags, identity } = options
  const tlsFiles = tlsFilesOf(flags.tlsCert, flags.tlsKey, flags.tlsClientCa)
  if (flags.requireLogin && flags.authFile === undefined) {
    throw new VacancyError('usage_error', { reason: '--require-login needs --auth-file' })
  }
  const guard = {
    isOpen: !flags.requireLogin && flags.tlsClientCa === undefined,
    allowsAnonymous: flags.allowAnonymous,
    ways: '--require-login with --auth-file, or --tls-client-ca',
  }
  const host = listenHost(options.listenHost, { ...guard, name: '--listen-host' })
  const apiHost = listenHost(flags.apiHost, { ...guard, name: '--api-host' })
  const log = createLogger({ level: flags.logLevel, format: flags.logFormat, component, ...identity })
  warnOfDescriptors(log, flags.maxConnections)
  for (const warning of options.warnings) log.warn({}, warning)
  const tokens = flags.authFile === undefined ? undefined : openTokens({ file: flags.authFile, log })
  const upstream = openUpstreamTls(flags, log)
  const { hopTokenFile } = options
  const hopToken = hopTokenFile === undefined ? undefined : openTokenFile({ file: hopTokenFile, log })
  const traceEndpoint = traceEndpointOf(flags.traceEndpoint)
  let tracing: Tracing | undefined
  let running: Service | undefined
  const tls = tlsFiles && openTls({ files: tlsFiles, log, onReload: (material) => running?.setTls(material) })
  const registry = openRegistryClient({
    addr: flags.registryAddr,
    tokenFile: flags.registryTokenFile,
    caFile: flags.registryCa,
    clock: systemClock,
    log,
  })
  const resolver = openResolver({
    addr: flags.resolverAddr,
    tokenFile: flags.resolverTokenFile,
    caFile: flags.resolverCa,
    clock: systemClock,
    schedule: systemSchedule,
    log,
  })
  const startedAt = new Date(systemClock.wallMs()).toISOString()
  await runProgram(
    {
      start: async () => {
        const registration =
          identity &&
          startRegistration({
            registry,
            kind: component,
            ...identity,
            intervalMs: options.heartbeatMs,
            instance: randomBytes(8).toString('hex'),
            version: VERSION,
            startedAt,
            apiUrl: flags.apiUrl,
            health: () => (running?.isReady() === true ? 'ready' : 'not ready'),
            clock: systemClock,
            schedule: systemSchedule,
            random: Math.random,
            log,
          })
        tracing = await openTracing({ traceEndpoint, tracePerThousand: 0 }, `vacancy-${component}`, log)
        running = await start({
          service: {
            component,
            world: systemWorld({ connectMs: CONNECT_MS, tls: upstream.options }),
            limits: limitsOf(flags, options.deadlineMs),
            connectionsMax: flags.maxConnections,
            listenHost: host,
            listenPort: options.listenPort,
            apiHost,
            apiPort: flags.apiPort,
            tls: tls?.material(),
            upstreamEndsMs: upstream.notAfterMs,
            isUpstreamTls: flags.upstreamTls,
            tokens: tokens && (() => tokens.tokens()),
            requireLogin: flags.requireLogin,
            slowMs: flags.slowMs,
            tracing,
            drainMs: flags.drainSecs * 1000,
            version: VERSION,
            config: viewOf(options.view, {
              'request-timeout-ms': options.deadlineMs,
              'listen-host': host,
              'api-host': apiHost,
            }),
            clock: systemClock,
            log,
          },
          registry,
          resolver,
          registration,
          hopToken: () => hopToken?.token(),
          log,
        })
        const scheme = tls ? 'https' : 'http'
        process.stdout.write(`serving: tcp ${host}:${running.tcpPort}, ${scheme} ${apiHost}:${running.apiPort}\n`)
      },
      stop: async () => {
        await running?.stop()
        await tracing?.close()
        tokens?.close()
        tls?.close()
        upstream.close()
        hopToken?.close()
      },
      reload: () => {
        tokens?.reload()
        tls?.reload()
        upstream.reload()
        hopToken?.reload()
      },
    },
    { log, drainMs: (flags.drainSecs + 5) * 1000 },
  )
}
