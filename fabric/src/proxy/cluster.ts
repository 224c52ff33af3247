/** Mode `cluster`: what the proxy needs besides its upstream to find the nodes of a shard (docs/proxy.md#cluster-mode). */

import { systemClock } from '@vacancy/shared'
import { type Log, openHttpCaller } from '@vacancy/shared/node'
import { systemSchedule } from '@vacancy/shared/schedule'
import { type Discovery, openDiscovery } from '../bridge/discovery.ts'
import { openRegistryClient } from '../registry-client.ts'
import { openResolver } from '../resolve.ts'
import type { ProxyConfig } from './config.ts'
import { type NodeSource, openNodeList } from './node-list.ts'

const orNone = (text: string): string | undefined => (text === '' ? undefined : text)

/** @throws VacancyError usage_error, invalid_tokens, invalid_tls */
export function openShardFinder(config: ProxyConfig, log: Log): Discovery {
  const caFile = orNone(config.upstreamCa)
  const nodes = openHttpCaller({ tokenFile: orNone(config.nodeTokenFile), caFile, name: 'node', log })
  const source = openSource(config, log)
  const discovery = openDiscovery({
    shard: config.shardId,
    zone: config.zoneId,
    registry: source.registry,
    resolver: source.resolver,
    nodes,
    scheme: config.upstreamTls ? 'https' : 'http',
    ports: { tcp: config.nodeTcpPort, api: config.nodeApiPort },
    intervalMs: config.nodeProbeIntervalSec * 1000,
    timeoutMs: config.httpTimeoutSec * 1000,
    cacheDir: orNone(config.cacheDir),
    clock: systemClock,
    schedule: systemSchedule,
    log,
  })
  return {
    ...discovery,
    async stop() {
      await discovery.stop()
      await source.close()
      nodes.close()
    },
  }
}

function openSource(config: ProxyConfig, log: Log): NodeSource {
  const timeoutMs = config.httpTimeoutSec * 1000
  if (config.seedIds.length > 0) {
    return openNodeList({
      seedIds: config.seedIds,
      from:
        config.discoveryKind === 'static'
          ? { kind: 'static', file: config.discoveryYmlPath }
          : { kind: 'http', url: config.discoveryAddr, caller: openHttpCaller({ name: 'node list', log }), timeoutMs },
      refreshMs: config.discoveryRefreshIntervalSec * 1000,
      schedule: systemSchedule,
      log,
    })
  }
  const registry = openRegistryClient({
    addr: config.registryAddr,
    tokenFile: orNone(config.registryTokenFile),
    caFile: orNone(config.registryCa),
    clock: systemClock,
    log,
  })
  const resolver = openResolver({
    addr: config.resolverAddr,
    tokenFile: orNone(config.resolverTokenFile),
    caFile: orNone(config.resolverCa),
    clock: systemClock,
    schedule: systemSchedule,
    log,
  })
  return {
    registry,
    resolver,
    async close() {
      resolver.stop()
      registry.close()
    },
  }
}
