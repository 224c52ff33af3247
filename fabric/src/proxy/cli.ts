/** The command line of `vacancy proxy`. */

import { warnOfDescriptors } from '@vacancy/shared/descriptors'
import { defineCommand, runProgram, withTraceEndpoint } from '@vacancy/shared/node'
import { COMPONENTS } from '../config.ts'
import { loadProxyConfig, PROXY_FLAGS, PROXY_SCHEMA } from './config.ts'
import { openServing, proxyLog, type ServeOptions } from './serve.ts'
import { canSharePorts, startWorkers, type Workers } from './workers.ts'

export const proxyCommand = defineCommand({
  name: 'vacancy proxy',
  component: COMPONENTS.proxy,
  logsWarnings: true,
  summary: 'Starts the HTTP proxy: commands as JSON over HTTP, sent to a node, a shard or an edge router.',
  flags: PROXY_FLAGS,
  settings: PROXY_SCHEMA,
  run: async ({ flags, given, warnings }) => {
    const config = loadProxyConfig({ file: flags.config, given: withTraceEndpoint(given) })
    const { logLevel, logFormat, drainSecs } = flags
    const options: ServeOptions = { config, logLevel, logFormat, drainMs: drainSecs * 1000 }
    const log = proxyLog(options)
    for (const warning of warnings) log.warn({}, warning)
    warnOfDescriptors(log, config.maxActiveConns)
    if (!config.authEnabled) log.warn({}, 'no tokens are required: every client has full access (auth_enabled)')
    // Also with workers, so that an invalid file is reported once, before anything starts.
    const alone = openServing(options)
    let workers: Workers | undefined
    await runProgram(
      {
        start: async () => {
          const isShared = config.workers > 1 && (await canSharePorts(config.listeningAddr))
          if (config.workers > 1 && !isShared) {
            log.warn({ workers: config.workers }, 'threads cannot share a port on this system; one worker serves')
          }
          let ports: { readonly httpPort: number | undefined; readonly httpsPort: number | undefined }
          if (isShared) {
            await alone.stop()
            workers = await startWorkers(options, config.workers)
            ports = workers
          } else ports = await alone.start()
          const { httpPort, httpsPort } = ports
          const places = [
            ...(httpPort === undefined ? [] : [`http ${config.listeningAddr}:${httpPort}`]),
            ...(httpsPort === undefined ? [] : [`https ${config.listeningAddr}:${httpsPort}`]),
          ]
          process.stdout.write(`serving: ${places.join(', ')}\n`)
        },
        stop: () => workers?.stop() ?? alone.stop(),
        reload: () => {
          if (workers) workers.reload()
          else alone.reload()
        },
      },
      { log, drainMs: options.drainMs + 5_000 },
    )
    return undefined
  },
})
