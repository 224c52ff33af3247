/**
 * What routers and bridges have in common as processes: the listeners, the HTTP API, metrics, login and the orderly
 * stop (docs/design/fabric.md#processes). The component gives its policy and its own pages.
 */

import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { type Clock, VacancyError } from '@vacancy/shared'
import { DECIDES_ITSELF, refuseClient } from '@vacancy/shared/client-certificate'
import { lacksDescriptors } from '@vacancy/shared/descriptors'
import {
  type ConfigView,
  certificateEnds,
  createFailureLimiter,
  createReadiness,
  endingText,
  endsReasons,
  findToken,
  type HttpServer,
  json,
  type Log,
  METRICS_CONTENT_TYPE,
  type Metrics,
  type MetricsTable,
  nextTokenEnd,
  type Readiness,
  type SPANS_METRIC,
  secureContextOf,
  setCertificateEnds,
  setSpans,
  spanCounts,
  type TlsMaterial,
  type TOKEN_END_METRIC,
  type TokenHash,
  type Tracing,
  text,
  tlsOptionsOf,
  tokenEnds,
} from '@vacancy/shared/node'
import { readingInto } from '@vacancy/shared/reading-into'
import { standingOf } from '@vacancy/shared/tokens'
import { COMMANDS, isCommandName } from '@vacancy/shared/wire'
import { createDoor } from '../access.ts'
import { configRoute } from '../config-page.ts'
import { createListener, open, probed, type Route } from '../http.ts'
import {
  acceptClient,
  createForwarder,
  drain,
  type Ended,
  type Forwarder,
  type ForwardLimits,
  type Policy,
} from './forwarder.ts'
import { closePool } from './hops.ts'
import { type CERTIFICATE_METRIC, collectForwarding, createObserved, type FAULT_METRIC, observe } from './metrics.ts'
import { type Serving, textOf } from './serving.ts'
import { recordSpan } from './spans.ts'
import { ANYONE, type Hop, type PoolSettings } from './state.ts'
import { traceIdOf } from './traces.ts'
import { READ_BUFFER, type World } from './world.ts'

const SLOW_MAX = 100

/** The last requests that took longer than a limit, for `/debug/slow`. */
type SlowLog = { readonly slowMs: number; readonly entries: SlowEntry[]; next: number }

type SlowEntry = {
  readonly at: string
  readonly segment: string
  readonly command: string
  readonly kind: 'read' | 'write'
  readonly hop: string | null
  readonly tries: number
  readonly result: string
  readonly milliseconds: number
  readonly trace_id: string | null
}

function createSlowLog(slowMs: number): SlowLog {
  return { slowMs, entries: [], next: 0 }
}

function noteSlow(log: SlowLog, { request, result, seconds }: Ended, clock: Clock): void {
  if (seconds * 1000 < log.slowMs) return
  log.entries[log.next] = {
    at: new Date(clock.wallMs()).toISOString(),
    segment: request.segment,
    command: request.command,
    kind: request.isWrite ? 'write' : 'read',
    hop: request.lastHop?.id ?? null,
    tries: request.tries,
    result,
    milliseconds: Math.round(seconds * 10_000) / 10,
    trace_id: traceIdOf(request),
  }
  log.next = (log.next + 1) % SLOW_MAX
}

/** The newest first. */
function slowEntries({ entries, next }: SlowLog): readonly SlowEntry[] {
  return [...entries.slice(next), ...entries.slice(0, next)].reverse()
}

/** Reasons why the component is not ready, and with `isNote` what an operator should know while it is. */
export type Reasons = readonly { readonly name: string; readonly message: string; readonly isNote?: boolean }[]

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
  /** When the certificate shown to hops expires; undefined without one. */
  readonly upstreamEndsMs: () => number | undefined
  /** Connections to hops use TLS. */
  readonly isUpstreamTls: boolean
  readonly tokens: (() => readonly TokenHash[]) | undefined
  readonly requireLogin: boolean
  readonly slowMs: number
  /** Undefined: no spans are recorded. */
  readonly tracing: Tracing | undefined
  readonly drainMs: number
  readonly version: string
  /** For `/config`. */
  readonly config: ConfigView
  readonly clock: Clock
  readonly log: Log
}

export type SlowEntries = ReturnType<typeof slowEntries>

export type Service = {
  readonly tcpPort: number
  readonly apiPort: number
  readonly setTls: (material: TlsMaterial) => void
  readonly isReady: () => boolean
  /** Answers 503, finishes what is in flight, and closes everything. */
  readonly stop: () => Promise<void>
}

/** What makes the service a router or a bridge. */
export type Component = {
  readonly forwarder: Forwarder
  readonly metrics: Metrics<MetricsTable>
  readonly reasons: () => Reasons
  readonly serving: () => Serving
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

/** LOGIN as nodes answer it: without an auth file any token is right, and a known token is never limited. */
export function loginRule({ tokens, clock, log }: Pick<ServiceOptions, 'tokens' | 'clock' | 'log'>): Policy['login'] {
  const failures = createFailureLimiter(clock)
  return (token, remote) => {
    if (tokens === undefined) return () => ANYONE
    const known = tokens()
    const found = findToken(known, token, clock.wallMs())
    if (found !== undefined) {
      const entry = followEntry(tokens, found)
      return () => standingOf(entry(), clock.wallMs())
    }
    if (failures.waitSeconds(remote) === 0) {
      failures.failed(remote)
      const expired = findToken(known, token, Number.NEGATIVE_INFINITY)
      if (expired === undefined) log.warn({ remote }, 'login refused: unknown token')
      else {
        const at = new Date(expired.expiresMs).toISOString()
        log.warn({ remote, name: expired.name, expired: at }, 'login refused: the token expired')
      }
    }
    return undefined
  }
}

/** The entry of a token in the auth file as it is now; looked for once after each change, not for each request. */
function followEntry(tokens: () => readonly TokenHash[], { hash }: TokenHash): () => TokenHash | undefined {
  let list: readonly TokenHash[] | undefined
  let entry: TokenHash | undefined
  return () => {
    const now = tokens()
    if (now !== list) entry = now.find((each) => Buffer.compare(each.hash, hash) === 0)
    list = now
    return entry
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
      if (options.tracing !== undefined) recordSpan(options.tracing, ended, options.clock.wallMs())
    },
    onHopChange: (hop, fault) => {
      logHop(options.log, hop, fault)
      options.onHopChange()
    },
  })
  collectForwarding(options.metrics, options.component, forwarder, observed)
  return { forwarder, slow: () => slowEntries(slow) }
}

/** The last line about each hop: its fault, '' while it was connected. */
const loggedFaults = new WeakMap<Hop, string>()

/** One line when a hop is reached, when it no longer is, and when the reason changes. */
function logHop(log: Log, hop: Hop, fault: string): void {
  const isUp = hop.links.some(({ state }) => state === 'open')
  const now = isUp ? '' : fault
  if (loggedFaults.get(hop) === now || (!isUp && hop.isGone)) return
  loggedFaults.set(hop, now)
  const address = hop.address && `${hop.address.host}:${hop.address.port}`
  if (isUp) log.info({ hop: hop.id, address }, 'hop connected')
  else log.warn({ hop: hop.id, address, reason: fault }, 'hop unreachable')
}

const READINESS_MS = 1_000

/** Sets the reasons that hold and clears the others, except that of a stop. */
function keep(readiness: Readiness, reasons: Reasons): void {
  const names = [...reasons.map(({ name }) => name), STOPPING]
  for (const { name } of readiness.read().reasons) if (!names.includes(name)) readiness.set(name, '')
  for (const { name, message } of reasons) readiness.set(name, message)
}

const STOPPING = 'stopping'

/** The reason that names shards which do not serve: one that others make up for takes nothing out of a balancer. */
export function servingReasons(serving: Serving): Reasons {
  const message = textOf(serving)
  return message === '' ? [] : [{ name: 'shards', message, isNote: serving.serves }]
}

type TokenGauge = Metrics<{ readonly row: typeof TOKEN_END_METRIC }>['of']['row']
type SpansCounter = Metrics<{ readonly row: typeof SPANS_METRIC }>['of']['row']
type FaultGauge = Metrics<{ readonly row: typeof FAULT_METRIC }>['of']['row']
type CertificateGauge = Metrics<{ readonly row: typeof CERTIFICATE_METRIC }>['of']['row']

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
  const notes = createReadiness(clock)
  let certificate = options.tls
  const ends = (): Reasons => {
    const nowMs = clock.wallMs()
    const upstreamMs = options.upstreamEndsMs()
    const message = endingText(
      [
        ...certificateEnds('the listeners', certificate),
        ...certificateEnds('upstream connections', upstreamMs === undefined ? undefined : { notAfterMs: upstreamMs }),
        ...tokenEnds(options.tokens?.() ?? [], nowMs),
      ],
      nowMs,
    )
    return endsReasons(message).map((reason) => ({ ...reason, isNote: true }))
  }
  let wasReady: boolean | undefined
  const refresh = () => {
    const reasons = [...component.reasons(), ...ends()]
    const before = notes.read().reasons.map(({ message }) => message)
    keep(
      readiness,
      reasons.filter(({ isNote }) => !isNote),
    )
    keep(
      notes,
      reasons.filter(({ isNote }) => isNote),
    )
    for (const { message } of notes.read().reasons)
      if (!before.includes(message)) log.warn({ reason: message }, 'impaired')
    const isReady = readiness.read().ready
    if (isReady === wasReady) return
    wasReady = isReady
    if (isReady) log.info({}, 'ready')
    else log.warn({ reasons: reasons.map(({ message }) => message) }, 'not ready')
  }
  refresh()
  // A reason begins when it arises, not with the next request of `/ready`.
  const timer = setInterval(refresh, READINESS_MS)
  metrics.onCollect(() => {
    const faults = metrics.of[`${options.component}_shard_fault`] as unknown as FaultGauge
    faults.reset()
    for (const [shard, fault] of component.serving().faults) faults.set({ shard, fault }, 1)
    const certificates = metrics.of['tls_cert_not_after_seconds'] as unknown as CertificateGauge
    for (const listener of ['tcp', 'http']) setCertificateEnds(certificates, listener, certificate)
    const notAfterMs = options.upstreamEndsMs()
    if (notAfterMs !== undefined) setCertificateEnds(certificates, 'upstream', { notAfterMs })
    const tokenEnd = nextTokenEnd(options.tokens?.() ?? [], clock.wallMs())
    ;(metrics.of['token_not_after_seconds'] as unknown as TokenGauge).set(tokenEnd)
    setSpans(metrics.of[`${options.component}_spans_total`] as unknown as SpansCounter, spanCounts(options.tracing))
  })
  let listener: Listener | undefined
  const door = createDoor({ tokens: () => options.tokens?.(), publicRead: true, clock })
  const api: HttpServer = createListener({
    routes: [
      probed('/health', () => text(200, 'OK')),
      probed('/healthz', () => text(200, 'OK')),
      probed('/ready', () => {
        refresh()
        const ready = readiness.read()
        const tcpPort = listener?.port
        const reasons = [...ready.reasons, ...notes.read().reasons]
        const facts = { ...component.facts(), ...(tcpPort && { tcp_port: tcpPort }) }
        return json(ready.ready ? 200 : 503, { ...ready, reasons, ...facts })
      }),
      probed('/metrics', async () => ({
        status: 200,
        headers: { 'Content-Type': METRICS_CONTENT_TYPE },
        body: await metrics.text(),
      })),
      open('/debug/slow', () => json(200, { slow_ms: options.slowMs, requests: slow() })),
      configRoute(door, options.config),
      ...component.routes,
    ],
    tls: options.tls,
    serverName: `vacancy/${options.version}`,
    log,
    host: options.apiHost,
    port: options.apiPort,
  })
  let opened: Listener
  let apiPort: number
  try {
    apiPort = await api.listening
    opened = await listenForClients(forwarder, {
      host: options.listenHost,
      port: options.listenPort,
      connectionsMax: options.connectionsMax,
      tls: options.tls,
      log,
    })
  } catch (error) {
    clearInterval(timer)
    await api.close(0)
    throw error
  }
  listener = opened
  return {
    tcpPort: opened.port,
    apiPort,
    isReady: () => readiness.read().ready,
    setTls(material) {
      certificate = material
      opened.setTls(material)
      api.setTls(material)
    },
    async stop() {
      clearInterval(timer)
      readiness.set(STOPPING, `The ${options.component} stops.`)
      await component.leave()
      opened.stopAccepting()
      await drain(forwarder, options.drainMs)
      closePool(forwarder.pool)
      await api.close(0)
    },
  }
}

/** The TCP listener of routers and bridges. */
type ListenOptions = {
  readonly host: string
  readonly port: number
  /** Further connections are closed without a byte. */
  readonly connectionsMax: number
  readonly tls: TlsMaterial | undefined
  readonly log: Log
}

type Listener = {
  readonly port: number
  /** Uses other certificates for new connections. */
  readonly setTls: (material: TlsMaterial) => void
  /** Accepts no more connections; the open ones stay. */
  readonly stopAccepting: () => void
}

/**
 * Listens for clients.
 *
 * @throws VacancyError port_taken
 */
export function listenForClients(forwarder: Forwarder, options: ListenOptions): Promise<Listener> {
  const { host, port, connectionsMax, tls, log } = options
  const { counters } = forwarder
  let open = 0
  // A connection counts from its first moment, with TLS before its handshake.
  const admit = (socket: Socket): boolean => {
    if (open >= connectionsMax || forwarder.isDraining || lacksDescriptors(socket)) {
      counters.connectionsRefused++
      if (!forwarder.isDraining) log.warn({ connections: open }, 'connection refused: the limit is reached')
      socket.destroy()
      return false
    }
    open++
    socket.once('close', () => open--)
    socket.setNoDelay(true)
    return true
  }
  const accept = (socket: Socket): void => {
    const events = acceptClient(forwarder, socket, socket.remoteAddress ?? '')
    socket.on('data', (chunk: Buffer) => events.data(chunk))
    socket.on('drain', () => events.drained())
    socket.on('end', () => events.ended())
    // Its `close` follows.
    socket.on('error', () => {})
    socket.once('close', () => events.closed())
  }
  const server: Server = tls
    ? createTlsServer({ ...tlsOptionsOf(tls), ...DECIDES_ITSELF, allowHalfOpen: true }, (socket) => {
        const reason = tls.clientCa === undefined ? '' : refuseClient(socket)
        if (reason === '') accept(socket)
        else noteRefusal(socket, reason)
      })
    : createServer({ allowHalfOpen: true, pauseOnConnect: true })
  server.on('connection', (accepted: Socket) => {
    const socket = tls ? accepted : readingInto(READ_BUFFER, accepted)
    if (admit(socket) && !tls) accept(socket)
  })
  const noteRefusal = (socket: Socket, reason: string): void => {
    counters.handshakesFailed++
    log.warn({ remote: socket.remoteAddress, reason }, 'TLS handshake with a client failed')
  }
  server.on('tlsClientError', (error: Error, socket: Socket) => {
    noteRefusal(socket, error.message)
    // Node reports a failed or slow handshake, but leaves the connection open.
    socket.destroy()
  })
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      reject(new VacancyError('port_taken', { address: `${host}:${port}`, reason: cause.message }, { cause }))
    })
    server.listen({ host, port, backlog: 4096 }, () => {
      const address = server.address()
      resolve({
        port: typeof address === 'object' && address !== null ? address.port : port,
        setTls: (material) => {
          if ('setSecureContext' in server)
            (server as ReturnType<typeof createTlsServer>).setSecureContext(secureContextOf(material))
        },
        stopAccepting: () => server.close(),
      })
    })
  })
}
