/** `vacancy proxy`: puts upstream, tokens, API and listeners together, and takes them down in order (docs/proxy.md). */

import { randomBytes } from 'node:crypto'
import { assert, type Clock } from '@vacancy/shared'
import {
  certificateEnds,
  createFailureLimiter,
  createReadiness,
  ENDS_REASON,
  endingText,
  type Log,
  METRICS_CONTENT_TYPE,
  type Metrics,
  nextTokenEnd,
  type Readiness,
  registerMetrics,
  setCertificateEnds,
  setSpans,
  setTotal,
  spanCounts,
  type TlsMaterial,
  TOKEN_FAILURES_MAX,
  type Tracing,
  tokenEnds,
} from '@vacancy/shared/node'
import type { Discovery } from '../bridge/discovery.ts'
import { type Serving, textOf } from '../forward/serving.ts'
import { type Api, createApi, fetchCodecs, handle, type Page, upstreamChanged } from './api.ts'
import type { ProxyConfig } from './config.ts'
import { API_LIMITS } from './exchange.ts'
import { type Listener, openListener } from './listener.ts'
import { PROXY_METRICS } from './metrics.ts'
import { createObserved, type Durations, type Observed, REJECTIONS, slowRequests, sumObserved } from './observed.ts'
import { openApi } from './openapi.ts'
import { type ApiTokens, createTokenLimits, forgetTokens } from './tokens.ts'
import { openUpstream, type ShardState, type Target, type Upstream, type UpstreamSettings } from './upstream.ts'

export type ProxyOptions = {
  readonly config: ProxyConfig
  /** Undefined without an auth file. */
  readonly tokens: (() => ApiTokens) | undefined
  readonly tls: TlsMaterial | undefined
  readonly upstreamTls: UpstreamSettings['tls']
  /** Mode cluster: finds the nodes of the shard. Stopped with the proxy. */
  readonly discovery?: Discovery | undefined
  /** Undefined: no spans are recorded. Closed with the proxy. */
  readonly tracing?: Tracing | undefined
  readonly version: string
  readonly clock: Clock
  readonly log: Log
  readonly drainMs: number
  /** Instead of API_LIMITS.requestMs. */
  readonly requestMs?: number
  /** Undefined: this thread serves alone. */
  readonly team?: Team | undefined
}

/** The workers that serve the same ports, this one included. */
export type Team = {
  readonly size: number
  /** What each of them counts. */
  readonly snapshots: () => Promise<readonly Snapshot[]>
}

/** What a worker counts and whether it is ready, as plain data. */
export type Snapshot = {
  readonly observed: Observed
  readonly listener: Listener['counts']
  readonly upstream: ReturnType<Upstream['counts']>
  /** Mode cluster. */
  readonly shard: ShardState | undefined
  readonly serving: Serving
  /** What an operator should know while it is ready. */
  readonly notes: ReturnType<Readiness['read']>['reasons']
  readonly readiness: ReturnType<Readiness['read']>
  readonly spans: ReturnType<Tracing['counts']>
}

export type RunningProxy = {
  readonly httpPort: number | undefined
  readonly httpsPort: number | undefined
  readonly setTls: (tls: TlsMaterial) => void
  readonly snapshot: () => Snapshot
  /** The tokens were read again. */
  readonly tokensChanged: (tokens: ApiTokens) => void
  readonly stop: () => Promise<void>
}

/** The codec list of a router may change without any connection of ours noticing. */
const CODECS_REFRESH_MS = 10_000
/** Without a list every request is refused, so the next try comes soon. */
const CODECS_RETRY_MS = 500

/** @throws VacancyError port_taken */
export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const { config, tokens, tls, version, clock, log, team, tracing } = options
  const readiness = createReadiness(clock)
  const notes = createReadiness(clock)
  const observed = createObserved(config.slowMs)
  const limits = createTokenLimits(clock, team?.size ?? 1)
  let certificate = tls
  const endsText = () => {
    const nowMs = clock.wallMs()
    const known = config.authEnabled ? (tokens?.().tokens ?? []) : []
    return endingText([...certificateEnds('the listener', certificate), ...tokenEnds(known, nowMs)], nowMs)
  }
  let api: Api | undefined
  const upstream = openUpstream({
    target: targetOf(options),
    tls: options.upstreamTls,
    nodeToken: () => tokens?.().nodeToken,
    connections: config.connPerNode,
    keepAliveMs: config.keepAliveSec * 1000,
    deadlineMs: config.timeoutSec * 1000,
    onChange: (isUp) => {
      if (isUp) log.info({ upstream: nameOf(config) }, 'upstream connected')
      else log.warn({ reason: upstream.fault() }, 'upstream lost')
      if (api) upstreamChanged(api, isUp)
    },
  })
  const metrics = registerMetrics(PROXY_METRICS, { process: true })
  const snapshots = async (): Promise<readonly Snapshot[]> => (team ? await team.snapshots() : [snapshot()])
  let shown: Observed = observed
  const pages: ReadonlyMap<string, Page> = new Map([
    ['/health', { access: 'open', read: () => jsonPage(200, { status: 'ok' }) }],
    ['/ready', { access: 'open', read: async () => readyPage(options, await snapshots()) }],
    [
      '/metrics',
      {
        access: 'token',
        read: async () => {
          const all = await snapshots()
          shown = sumObserved(all.map((each) => each.observed))
          collect(metrics, shown, all, certificate)
          metrics.of.token_not_after_seconds.set(nextTokenEnd(tokens?.().tokens ?? [], clock.wallMs()))
          return { status: 200, type: METRICS_CONTENT_TYPE, body: await metrics.text() }
        },
      },
    ],
    ['/openapi.json', { access: 'open', read: () => jsonPage(200, openApi(version, config.authEnabled)) }],
    ['/config', { access: 'full', read: () => jsonPage(200, config.view) }],
    [
      '/debug/slow',
      {
        access: 'full',
        read: async () => {
          const all = sumObserved((await snapshots()).map((each) => each.observed))
          return jsonPage(200, { slow_ms: config.slowMs, requests: slowRequests(all) })
        },
      },
    ],
  ])
  api = createApi({
    settings: {
      isRouter: config.mode === 'router',
      tokens: config.authEnabled ? tokens : undefined,
      corsOrigins: config.corsOrigin,
      serverName: `vacancy/${version}`,
      idPrefix: `${randomBytes(6).toString('hex')}-`,
      upstream: placeOf(config),
    },
    upstream,
    tracing,
    pages,
    clock,
    log,
    failures: createFailureLimiter(clock, Math.ceil(TOKEN_FAILURES_MAX / (team?.size ?? 1))),
    limits,
    readiness,
    observed,
  })
  const started = api
  readiness.set('codecs', 'no codec list yet')
  upstreamChanged(started, upstream.fault() === '')
  const stopFetching = fetchRepeatedly(started)
  let listener: Listener | undefined
  const snapshot = (): Snapshot => {
    const serving = upstream.serving()
    const message = textOf(serving)
    readiness.set('shards', serving.serves ? '' : message)
    notes.set('shards', serving.serves ? message : '')
    notes.set(ENDS_REASON, endsText())
    return {
      ...{ observed, listener: (listener as Listener).counts, upstream: upstream.counts(), shard: upstream.shard() },
      ...{ serving, readiness: readiness.read(), notes: notes.read().reasons, spans: spanCounts(tracing) },
    }
  }
  try {
    listener = await openListener(
      {
        host: config.listeningAddr,
        httpPort: config.httpEnabled ? config.httpPort : undefined,
        https: tls && { port: config.httpsPort, tls },
        connectionsMax: Math.ceil(config.maxActiveConns / (team?.size ?? 1)),
        sharesPorts: team !== undefined,
        serverName: `vacancy/${version}`,
        requestMs: options.requestMs ?? API_LIMITS.requestMs,
      },
      (exchange) => handle(started, exchange),
    )
  } catch (error) {
    stopFetching()
    await upstream.close(0)
    throw error
  }
  const serving = listener
  readDurations(metrics, () => shown)
  return {
    httpPort: serving.httpPort,
    httpsPort: serving.httpsPort,
    snapshot,
    setTls(material) {
      serving.setTls(material)
      certificate = material
    },
    tokensChanged: ({ tokens: current }) => forgetTokens(limits, current),
    async stop() {
      readiness.set('stopping', 'the proxy is shutting down')
      await serving.close(options.drainMs)
      stopFetching()
      await upstream.close(0)
      await tracing?.close()
    },
  }
}

function targetOf({ config, discovery }: ProxyOptions): Target {
  const { mode, upstreamAddr: host, upstreamPort: port, shardId: shard, reads, maxReadLag: lagMax } = config
  if (mode !== 'cluster') return { mode, host, port }
  assert(discovery, 'mode cluster has a discovery')
  return { mode, shard, reads, lagMax, discovery }
}

/** The upstream in logs and on `/ready`. */
function nameOf({ mode, upstreamAddr, upstreamPort, shardId }: ProxyConfig): string {
  if (mode !== 'cluster') return `${upstreamAddr}:${upstreamPort}`
  return shardId === '' ? 'the shard of the seeds' : `shard ${shardId}`
}

/** Where calls go, in their spans. */
function placeOf({ mode, upstreamAddr, upstreamPort, shardId }: ProxyConfig) {
  if (mode !== 'cluster') return { upstream: `${upstreamAddr}:${upstreamPort}` }
  return shardId === '' ? {} : { shard: shardId }
}

function jsonPage(status: number, content: object) {
  return { status, type: 'application/json', body: JSON.stringify(content) }
}

/** Ready when every worker is. */
function readyPage({ config, version }: ProxyOptions, all: readonly Snapshot[]) {
  const notReady = all.filter(({ readiness }) => !readiness.ready)
  const { readiness, notes, shard } = (notReady[0] ?? all[0]) as Snapshot
  return jsonPage(readiness.ready ? 200 : 503, {
    ...{ ...readiness, reasons: [...readiness.reasons, ...notes] },
    component: 'proxy',
    mode: config.mode,
    version,
    upstream: nameOf(config),
    ...(shard && { leader: shard.leader ?? null, followers: shard.followers }),
    workers: all.length,
    connections: sumOf(all, ({ upstream }) => upstream.open),
    in_flight: sumOf(all, ({ upstream }) => upstream.inFlight),
  })
}

function sumOf(all: readonly Snapshot[], count: (of: Snapshot) => number): number {
  return all.reduce((sum, each) => sum + count(each), 0)
}

/** @returns stops it */
function fetchRepeatedly(api: Api): () => void {
  let timer: NodeJS.Timeout
  const next = (): void => {
    timer = setTimeout(
      () => {
        if (api.upstream.fault() === '') fetchCodecs(api)
        else api.readiness.set('upstream', api.upstream.fault())
        next()
      },
      api.codecs && !api.isStale ? CODECS_REFRESH_MS : CODECS_RETRY_MS,
    )
  }
  next()
  return () => clearTimeout(timer)
}

type ProxyMetrics = Metrics<typeof PROXY_METRICS>

function collect(
  { of }: ProxyMetrics,
  observed: Observed,
  all: readonly Snapshot[],
  tls: TlsMaterial | undefined,
): void {
  const unreadable = sumOf(all, ({ listener }) => listener.unreadable)
  setTotal(of.api_commands_total, observed.commands)
  setTotal(of.api_bytes_received_total, observed.bytesReceived)
  setTotal(of.api_bytes_sent_total, observed.bytesSent)
  setTotal(of.api_client_errors_total, observed.clientErrors + unreadable)
  setTotal(of.api_client_login_fail_total, observed.loginFailures)
  for (const [command, byStatus] of observed.requests) {
    for (const [status, { total }] of byStatus) {
      setTotal(of.api_requests_total, total, { command, status: String(status) })
    }
  }
  for (const [token, total] of observed.tokens) setTotal(of.api_token_requests_total, total, { token })
  for (const proto of ['http1', 'http2'] as const) {
    of.api_inflight.set(
      { proto },
      sumOf(all, ({ listener }) => listener.inFlight[proto]),
    )
    of.api_connections.set(
      { proto },
      sumOf(all, ({ listener }) => listener.connections[proto]),
    )
  }
  for (const reason of REJECTIONS) setTotal(of.api_rejected_total, observed.rejections[reason], { reason })
  const refused = sumOf(all, ({ listener }) => listener.refused)
  setTotal(of.api_rejected_total, refused, { reason: 'connections' })
  setTotal(of.api_rejected_total, unreadable, { reason: 'unreadable' })
  of.api_workers.set(all.length)
  const backend = (count: keyof Snapshot['upstream']) => sumOf(all, ({ upstream }) => upstream[count])
  of.backend_inflight.set(backend('inFlight'))
  of.backend_connections.set(backend('open'))
  setTotal(of.backend_opened_connections_total, backend('opened'))
  setTotal(of.backend_disconnect_total, backend('lost'))
  setTotal(of.backend_login_fail_total, backend('loginFailures'))
  // Every worker sees the same shard, some a moment later.
  of.backend_followers_total.set(Math.max(...all.map(({ shard }) => shard?.followers.length ?? 0)))
  of.backend_shard_fault.reset()
  for (const [shard, fault] of all[0]?.serving.faults ?? []) of.backend_shard_fault.set({ shard, fault }, 1)
  setTotal(of.backend_leader_change_total, Math.max(...all.map(({ upstream }) => upstream.leaderChanges)))
  setCertificateEnds(of.tls_cert_not_after_seconds, 'https', tls)
  setSpans(of.api_spans_total, {
    exported: sumOf(all, ({ spans }) => spans.exported),
    dropped: sumOf(all, ({ spans }) => spans.dropped),
  })
}

function readDurations(metrics: ProxyMetrics, shown: () => Observed): void {
  const reading = (labels: { readonly [label: string]: string }, { counts, sum }: Durations) => ({
    labels,
    counts,
    sum,
  })
  metrics.readHistogram('api_request_duration_seconds', () =>
    [...shown().requests].flatMap(([command, byStatus]) =>
      [...byStatus].map(([status, series]) => reading({ command, status: String(status) }, series)),
    ),
  )
  metrics.readHistogram('api_upstream_duration_seconds', () =>
    [...shown().upstream].map(([command, series]) => reading({ command }, series)),
  )
}
