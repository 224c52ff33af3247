/** `vacancy bridge`. */

import { systemClock, VacancyError } from '@vacancy/shared'
import { defineCommand, openHttpCaller } from '@vacancy/shared/node'
import { systemSchedule } from '@vacancy/shared/schedule'
import { COMPONENTS } from '../config.ts'
import { checkedId, runService } from '../forward/program.ts'
import { startBridge } from './bridge.ts'
import { BRIDGE_FLAGS } from './config.ts'
import { openDiscovery } from './discovery.ts'

export const bridgeCommand = defineCommand({
  name: 'vacancy bridge',
  component: COMPONENTS.bridge,
  logsWarnings: true,
  summary: 'Starts a bridge: the way from routers to the nodes of a shard.',
  flags: BRIDGE_FLAGS,
  run: async ({ flags, view, warnings }) => {
    const id = checkedId('bridge-id', flags.bridgeId)
    const zone = checkedId('zone-id', flags.zoneId)
    const shard = checkedId('shard-id', flags.shardId)
    if (flags.hedgeAfterMs * 2 >= flags.requestTimeoutMs) {
      throw new VacancyError('usage_error', {
        reason: '--hedge-after-ms must be below half of --request-timeout-ms, when a read goes to another node anyway',
      })
    }
    await runService(
      {
        component: 'bridge',
        flags,
        view,
        warnings,
        listenHost: flags.listenHost,
        listenPort: flags.listenPort,
        deadlineMs: flags.requestTimeoutMs,
        identity: { id, zone, shard },
        heartbeatMs: flags.registryHeartbeatIntervalSecs * 1000,
        hopTokenFile: flags.nodeTokenFile,
      },
      ({ service, registry, resolver, registration, hopToken, log }) =>
        startBridge({
          ...service,
          id,
          zone,
          shard,
          openDiscovery: (counts) =>
            openDiscovery({
              shard,
              zone,
              registry,
              resolver,
              nodes: openHttpCaller({
                tokenFile: flags.nodeTokenFile,
                caFile: flags.upstreamCa,
                certFile: flags.upstreamCert,
                keyFile: flags.upstreamKey,
                serverName: flags.upstreamServerName,
                name: 'node',
                log,
              }),
              scheme: flags.upstreamTls ? 'https' : 'http',
              ports: { tcp: flags.nodeTcpPort, api: flags.nodeApiPort },
              intervalMs: flags.nodeProbeIntervalSec * 1000,
              timeoutMs: flags.httpTimeoutMs,
              cacheDir: flags.cacheDir,
              clock: systemClock,
              schedule: systemSchedule,
              log,
              ...counts,
            }),
          registry,
          resolver,
          registration: registration as NonNullable<typeof registration>,
          reads: flags.reads,
          lagMax: flags.maxReadLag,
          hedgeAfterMs: flags.hedgeAfterMs,
          linksPerNode: flags.connPerNode,
          token: hopToken,
          responseBytesMax: flags.maxResponseSize,
          queuedBytesMax: flags.maxBufferSize,
        }),
    )
    return undefined
  },
})
