/**
 * What routers and bridges have in common as processes: the listeners, the HTTP API, metrics, login and the orderly
 * stop (docs/design/fabric.md#processes). The component gives its policy and its own pages.
 */

import type { Clock } from '@vacancy/shared'
import {
  createFailureLimiter,
  createReadiness,
  findToken,
  type HttpServer,
  type Log,
  METRICS_CONTENT_TYPE,
  type Metrics,
  type MetricsTable,
  type Role,
  type TlsMaterial,
  type TokenHash,
} from '@vacancy/shared/node'
import { COMMANDS, isCommandName } from '@vacancy/shared/wire'
import { createListener, json, type Route, text } from '../http.ts'
import { createForwarder, drain, type Ended, type Forwarder, type ForwardLimits, type Policy } from './forwarder.ts'
import { closePool } from './hops.ts'
import { type Listener, listenForClients } from './listen.ts'
import { collectForwarding, createObserved, observe } from './metrics.ts'
import { createSlowLog, noteSlow, slowEntries } from './slow.ts'
import type { PoolSettings } from './state.ts'
import type { World } from './world.ts'

/** Reasons why the component is not ready; ready without any. */
export type Reasons = readonly { readonly name: string; readonly message: string }[]

export type ServiceOptions = {
  readonly component: 'router' | 'bridge'
  readonly world: World
  readonly limits: ForwardLimits
  readonly connectionsMax: number
  readonly listenHost: string
  readonly listenPort: number
  readonly apiHost: string
  readonly apiPort: number
  readonly tls: TlsMaterial | undefined
  readonly tokens: (() => readonly TokenHash[]) | undefined
  readonly requireLogin: boolean
  readonly slowMs: number
  readonly drainMs: number
  readonly version: string
  readonly clock: Clock
  readonly log: Log
}

export type SlowEntries = ReturnType<typeof slowEntries>

export type Service = {
  readonly tcpPort: number
  readonly apiPort: number
  readonly setTls: (material: TlsMaterial) => void
  /** Answers 503, finishes what is in flight, and closes everything. */
  readonly stop: () => Promise<void>
}

/** What makes the service a router or a bridge. */
export type Component = {
  readonly forwarder: Forwarder
  readonly metrics: Metrics<MetricsTable>
  readonly reasons: () => Reasons
  /** Facts for `/ready`, besides the reasons. */
  readonly facts: () => { readonly [name: string]: unknown }
  readonly routes: readonly Route[]
  /** Ends registration first, so that no new connections come. */
  readonly leave: () => Promise<void>
}

/** Time in which every limit applies that a program has and a user cannot set. */
const FIXED_LIMITS = {
  skipBytesMax: 1024 * 1024,
  rubbishBytesMax: 64 * 1024,
  inFlightMax: 1024,
  queuedBytesMax: 4 * 1024 * 1024,
  stalledMsMax: 10_000,
} as const

export type LimitFlags = {
  readonly maxInflight: number
  readonly maxFrameSize: number
  readonly frameTimeoutSecs: number
  readonly idleTimeoutSecs: number
}

export function limitsOf(flags: LimitFlags, deadlineMs: number): ForwardLimits {
  return {
    ...FIXED_LIMITS,
    deadlineMs,
    totalInFlightMax: flags.maxInflight,
    frameBytesMax: flags.maxFrameSize,
    frameMsMax: flags.frameTimeoutSecs * 1000,
    idleMsMax: flags.idleTimeoutSecs * 1000,
  }
}

/** Whether a command writes: by its name where that is known, else by the flag of its envelope. */
export function isWriteCommand(command: string, flag: boolean): boolean {
  return isCommandName(command) ? COMMANDS[command].access === 'write' : flag
}

/** LOGIN as nodes answer it: without an auth file any token is right. */
export function loginRule(options: Pick<ServiceOptions, 'tokens' | 'clock'>): Policy['login'] {
  const failures = createFailureLimiter(options.clock)
  return (token, remote): Role | undefined => {
    if (options.tokens === undefined) return 'client'
    if (failures.waitSeconds(remote) > 0) return undefined
    const found = findToken(options.tokens(), token, options.clock.wallMs())
    if (found === undefined) failures.failed(remote)
    return found?.role
  }
}

/** A forwarder whose ended requests are observed. */
export function createObservedForwarder(
  options: ServiceOptions & {
    readonly policy: Policy
    readonly pool: PoolSettings
    readonly metrics: Metrics<MetricsTable>
    readonly onHopChange: () => void
  },
): { readonly forwarder: Forwarder; readonly slow: () => SlowEntries } {
  const observed = createObserved()
  const slow = createSlowLog(options.slowMs)
  const forwarder = createForwarder({
    world: options.world,
    policy: options.policy,
    limits: options.limits,
    pool: options.pool,
    requireLogin: options.requireLogin,
    onEnd: (ended: Ended) => {
      observe(observed, ended)
      noteSlow(slow, ended, options.clock)
    },
    onHopChange: options.onHopChange,
  })
  collectForwarding(options.metrics, options.component, forwarder, observed)
  return { forwarder, slow: () => slowEntries(slow) }
}

/**
 * Opens the listeners.
 *
 * @throws VacancyError port_taken
 */
export async function startService(
  options: ServiceOptions,
  component: Component,
  slow: () => SlowEntries,
): Promise<Service> {
  const { clock, log } = options
  const { forwarder, metrics } = component
  const readiness = createReadiness(clock)
  let known = new Set<string>()
  const refresh = () => {
    const reasons = component.reasons()
    for (const { name, message } of reasons) readiness.set(name, message)
    for (const name of known) if (!reasons.some((reason) => reason.name === name)) readiness.set(name, '')
    known = new Set(reasons.map(({ name }) => name))
  }
  refresh()
  let listener: Listener | undefined
  const open = (path: string, answer: Route['answer']): Route => ({ method: 'GET', path, admit: () => ({}), answer })
  const api: HttpServer = createListener({
    routes: [
      open('/health', () => text(200, 'OK')),
      open('/healthz', () => text(200, 'OK')),
      open('/ready', () => {
        refresh()
        const ready = readiness.read()
        const tcpPort = listener?.port
        return json(ready.ready ? 200 : 503, { ...ready, ...component.facts(), ...(tcpPort && { tcp_port: tcpPort }) })
      }),
      open('/metrics', async () => ({
        status: 200,
        headers: { 'Content-Type': METRICS_CONTENT_TYPE },
        body: await metrics.text(),
      })),
      open('/debug/slow', () => json(200, { slow_ms: options.slowMs, requests: slow() })),
      ...component.routes,
    ],
    tls: options.tls,
    serverName: `vacancy/${options.version}`,
    log,
    host: options.apiHost,
    port: options.apiPort,
  })
  const apiPort = await api.listening
  let opened: Listener
  try {
    opened = await listenForClients(forwarder, {
      host: options.listenHost,
      port: options.listenPort,
      connectionsMax: options.connectionsMax,
      tls: options.tls,
      log,
    })
  } catch (error) {
    await api.close(0)
    throw error
  }
  listener = opened
  return {
    tcpPort: opened.port,
    apiPort,
    setTls(material) {
      opened.setTls(material)
      api.setTls(material)
    },
    async stop() {
      readiness.set('stopping', `The ${options.component} stops.`)
      await component.leave()
      opened.stopAccepting()
      await drain(forwarder, options.drainMs)
      closePool(forwarder.pool)
      await api.close(0)
    },
  }
}
