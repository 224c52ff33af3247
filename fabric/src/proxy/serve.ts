/** Opens what a proxy reads from files (tokens, certificates) and starts it: in the main thread, or in each worker. */

import { systemClock } from '@vacancy/shared'
import { createLogger, type LOG_FORMATS, type LOG_LEVELS, openTls, openTracing, VERSION } from '@vacancy/shared/node'
import { openUpstreamTls } from '../forward/upstream-tls.ts'
import { openShardFinder } from './cluster.ts'
import type { ProxyConfig } from './config.ts'
import { type RunningProxy, startProxy, type Team } from './proxy.ts'
import { openApiTokens } from './tokens.ts'

/** What the command line gives, as plain data. */
export type ServeOptions = {
  readonly config: ProxyConfig
  readonly logLevel: (typeof LOG_LEVELS)[number]
  readonly logFormat: (typeof LOG_FORMATS)[number]
  readonly drainMs: number
}

export type Serving = {
  /** @throws VacancyError port_taken */
  readonly start: (team?: Team) => Promise<RunningProxy>
  readonly stop: () => Promise<void>
  /** Reads tokens and certificates again. */
  readonly reload: () => void
}

const orNone = (text: string): string | undefined => (text === '' ? undefined : text)

export const proxyLog = ({ logLevel, logFormat }: ServeOptions) =>
  createLogger({ level: logLevel, format: logFormat, component: 'proxy' })

/** @throws VacancyError invalid_tokens, invalid_tls, usage_error */
export function openServing(options: ServeOptions): Serving {
  const { config, drainMs } = options
  const log = proxyLog(options)
  let running: RunningProxy | undefined
  const tokens =
    config.tokensFile === undefined
      ? undefined
      : openApiTokens({ file: config.tokensFile, log, onReload: (current) => running?.tokensChanged(current) })
  const tls = config.httpsEnabled
    ? openTls({
        files: { cert: config.tlsCertPath, key: config.tlsKeyPath, clientCa: orNone(config.tlsClientCa) },
        log,
        onReload: (material) => running?.setTls(material),
      })
    : undefined
  const upstreamTls = openUpstreamTls(
    {
      upstreamTls: config.upstreamTls,
      upstreamCa: orNone(config.upstreamCa),
      upstreamCert: orNone(config.upstreamCert),
      upstreamKey: orNone(config.upstreamKey),
      upstreamServerName: orNone(config.upstreamServerName),
    },
    log,
  )
  return {
    async start(team) {
      running = await startProxy({
        config,
        tokens: tokens?.current,
        tls: tls?.material(),
        upstreamTls: upstreamTls.options,
        tracing: await openTracing(config, 'vacancy-proxy', log),
        discovery: config.mode === 'cluster' ? openShardFinder(config, log) : undefined,
        version: VERSION,
        clock: systemClock,
        log,
        drainMs,
        team,
      })
      return running
    },
    async stop() {
      await running?.stop()
      tokens?.close()
      tls?.close()
      upstreamTls.close()
    },
    reload() {
      tokens?.reload()
      tls?.reload()
      upstreamTls.reload()
    },
  }
}
