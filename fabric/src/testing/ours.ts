/** Registry, resolver, routers and bridges of this project, inside the test process, as their command lines start them. */

import { randomBytes } from 'node:crypto'
import { createCodecList, systemClock } from '@vacancy/shared'
import { parseAddress, type ResolvedAddress } from '@vacancy/shared/contract'
import { createLogger, openHttpCaller } from '@vacancy/shared/node'
import { systemSchedule } from '@vacancy/shared/schedule'
import { startBridge } from '../bridge/bridge.ts'
import { openDiscovery } from '../bridge/discovery.ts'
import { limitsOf, type Service, type ServiceOptions } from '../forward/service.ts'
import { systemWorld } from '../forward/world.ts'
import { startRegistration } from '../register.ts'
import { openRegistryClient } from '../registry-client.ts'
import { openResolver } from '../resolve.ts'
import { startResolver } from '../resolver.ts'
import { openTables } from '../router/refresh.ts'
import { startRouter } from '../router/router.ts'
import { onFile, startOn } from './registries.ts'

const log = createLogger({ level: 'error', format: 'text', component: 'test' })
const LIMITS = { maxInflight: 50_000, maxFrameSize: 16_384, frameTimeoutSecs: 20, idleTimeoutSecs: 90 }
const PORTS = { listen: 9000, api: 9100, nodeTcp: 7777, nodeApi: 8080 }
const RESPONSE_BYTES_MAX = 16 << 20
const QUEUED_BYTES_MAX = 256 << 10
const VERSION = '0.0.0'
const RESTART_MS = 60_000
/** Of heartbeats, and of reads from registries that cannot notify. */
const INTERVAL_MS = 300

/** Where a component listens, and whom it asks. */
export type Placement = { readonly host: string; readonly registry: string; readonly resolver: string }

function serviceOf(component: 'router' | 'bridge', host: string, deadlineMs: number): ServiceOptions {
  return {
    component,
    world: systemWorld({ connectMs: 1_000, tls: undefined }),
    limits: limitsOf(LIMITS, deadlineMs),
    connectionsMax: 1_000,
    listenHost: host,
    listenPort: PORTS.listen,
    apiHost: host,
    apiPort: PORTS.api,
    tls: undefined,
    upstreamEndsMs: () => undefined,
    isUpstreamTls: false,
    tokens: undefined,
    requireLogin: false,
    slowMs: 100,
    tracing: undefined,
    drainMs: 200,
    version: VERSION,
    config: {},
    clock: systemClock,
    log,
  }
}

function callers({ registry, resolver }: Placement) {
  const common = { clock: systemClock, log }
  return {
    registry: openRegistryClient({ addr: registry, ...common }),
    resolver: openResolver({ addr: resolver, schedule: systemSchedule, ...common }),
  }
}

type Identity = { readonly id: string; readonly zone: string; readonly shard?: string }

function register({ registry }: ReturnType<typeof callers>, kind: 'router' | 'bridge', identity: Identity) {
  return startRegistration({
    registry,
    kind,
    ...identity,
    intervalMs: INTERVAL_MS,
    instance: randomBytes(8).toString('hex'),
    version: VERSION,
    startedAt: new Date().toISOString(),
    clock: systemClock,
    schedule: systemSchedule,
    random: Math.random,
    log,
  })
}

export async function startOurRouter(
  options: Placement & {
    /** Of a zone router; an edge router has none. */
    readonly identity?: Identity
  },
): Promise<Service> {
  const { host, identity } = options
  const open = callers(options)
  const mode = identity === undefined ? 'edge' : 'zone'
  return await startRouter({
    ...serviceOf('router', host, mode === 'edge' ? 1_800 : 1_600),
    ...open,
    mode,
    zone: identity?.zone,
    id: identity?.id,
    tables: openTables({
      mode,
      zone: identity?.zone,
      registry: open.registry,
      refreshMs: INTERVAL_MS,
      cacheDir: undefined,
      clock: systemClock,
      schedule: systemSchedule,
      random: Math.random,
      log,
    }),
    registration: identity && register(open, 'router', identity),
    hopPort: PORTS.listen,
    linksPerHop: 4,
    keepaliveMs: 15_000,
    responseBytesMax: RESPONSE_BYTES_MAX,
    queuedBytesMax: QUEUED_BYTES_MAX,
  })
}

export async function startOurBridge(options: Placement & { readonly identity: Required<Identity> }): Promise<Service> {
  const { host, identity } = options
  const open = callers(options)
  return await startBridge({
    ...serviceOf('bridge', host, 1_400),
    ...open,
    ...identity,
    openDiscovery: (counts) =>
      openDiscovery({
        shard: identity.shard,
        zone: identity.zone,
        ...open,
        nodes: openHttpCaller({ name: 'node', log }),
        scheme: 'http',
        ports: { tcp: PORTS.nodeTcp, api: PORTS.nodeApi },
        intervalMs: 500,
        timeoutMs: 2_000,
        clock: systemClock,
        schedule: systemSchedule,
        log,
        ...counts,
      }),
    registration: register(open, 'bridge', identity),
    reads: 'followers',
    lagMax: 10_000,
    hedgeAfterMs: 0,
    linksPerNode: 2,
    token: () => undefined,
    responseBytesMax: RESPONSE_BYTES_MAX,
    queuedBytesMax: QUEUED_BYTES_MAX,
  })
}

type OurRegistry = { readonly host: string; readonly codecs: readonly string[]; readonly timeoutMs: number }

/** With its state in memory: `reset` forgets it, as a registry that lost its file does. */
export async function startOurRegistry({ host, codecs, timeoutMs }: OurRegistry) {
  let restarts = 0
  const start = () =>
    startOn(onFile(), {
      ...{ host, port: 8080, codecs: createCodecList(codecs), heartbeatTimeoutMs: timeoutMs, log, drainMs: 200 },
      // A state starts its versions at the time, in seconds: within seconds of each other they could meet.
      clock: { ...systemClock, wallMs: () => systemClock.wallMs() + restarts * RESTART_MS },
    })
  let running = await start()
  return {
    url: `http://${host}:8080`,
    async reset() {
      await running.stop()
      restarts++
      running = await start()
    },
    close: () => running.stop(),
  }
}

export async function startOurResolver(host: string, hosts: ReadonlyMap<string, string>) {
  const map = new Map([...hosts].map(([id, address]) => [id, parseAddress(address) as ResolvedAddress] as const))
  const running = await startResolver({
    host,
    port: 9090,
    file: undefined,
    map,
    echoes: false,
    format: 'text',
    version: VERSION,
    config: {},
    clock: systemClock,
    log,
    drainMs: 200,
  })
  return { url: `http://${host}:9090`, close: running.stop }
}
