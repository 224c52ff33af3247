/** The command line of `vacancy proxy`. */

import { systemClock } from '@vacancy/shared'
import { createLogger, defineCommand, openTls, runProgram, VERSION } from '@vacancy/shared/node'
import { openUpstreamTls } from '../forward/upstream-tls.ts'
import { loadProxyConfig, PROXY_FLAGS, PROXY_SCHEMA } from './config.ts'
import { type RunningProxy, startProxy } from './proxy.ts'
import { openApiTokens } from './tokens.ts'

const orNone = (text: string): string | undefined => (text === '' ? undefined : text)

export const proxyCommand = defineCommand({
  name: 'vacancy proxy',
  component: 'PROXY',
  summary: 'Starts the HTTP proxy: commands as JSON over HTTP, sent to a node or an edge router.',
  flags: PROXY_FLAGS,
  settings: PROXY_SCHEMA,
  run: async ({ flags, given, warnings }) => {
    const config = loadProxyConfig({ file: flags.config, given })
    const log = createLogger({ level: flags.logLevel, format: flags.logFormat, component: 'proxy' })
    for (const warning of warnings) log.warn({}, warning)
    let running: RunningProxy | undefined
    const tokens =
      config.tokensFile === undefined
        ? undefined
        : openApiTokens({ file: config.tokensFile, log, onReload: (current) => running?.tokensChanged(current) })
    if (!config.authEnabled) log.warn({}, 'no tokens are required: every client has full access (auth_enabled)')
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
    await runProgram(
      {
        start: async () => {
          running = await startProxy({
            config,
            tokens: tokens?.current,
            tls: tls?.material(),
            upstreamTls: upstreamTls.options,
            version: VERSION,
            clock: systemClock,
            log,
            drainMs: flags.drainSecs * 1000,
          })
          const { httpPort, httpsPort } = running
          const places = [
            ...(httpPort === undefined ? [] : [`http ${config.listeningAddr}:${httpPort}`]),
            ...(httpsPort === undefined ? [] : [`https ${config.listeningAddr}:${httpsPort}`]),
          ]
          process.stdout.write(`serving: ${places.join(', ')}\n`)
        },
        stop: async () => {
          await running?.stop()
          tokens?.close()
          tls?.close()
          upstreamTls.close()
        },
        reload: () => {
          tokens?.reload()
          tls?.reload()
          upstreamTls.reload()
        },
      },
      { log, drainMs: (flags.drainSecs + 5) * 1000 },
    )
    return undefined
  },
})
