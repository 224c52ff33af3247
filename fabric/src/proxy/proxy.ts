/** `vacancy proxy`: puts upstream, tokens, API and listeners together, and takes them down in order (docs/proxy.md). */

import { randomBytes } from 'node:crypto'
import type { Clock } from '@vacancy/shared'
import {
  createFailureLimiter,
  createReadiness,
  type Log,
  METRICS_CONTENT_TYPE,
  type Metrics,
  registerMetrics,
  setTotal,
  type TlsMaterial,
} from '@vacancy/shared/node'
import { type Api, createApi, fetchCodecs, handle, type Page, upstreamChanged } from './api.ts'
import type { ProxyConfig } from './config.ts'
import { API_LIMITS, type Listener, openListener } from './listener.ts'
import { PROXY_METRICS } from './metrics.ts'
import { createObserved, type Durations, type Observed, REJECTIONS, slowRequests } from './observed.ts'
import { openApi } from './openapi.ts'
import { type ApiTokens, createTokenLimits, forgetTokens } from './tokens.ts'
import { openUpstream, type Upstream, type UpstreamSettings } from './upstream.ts'

export type ProxyOptions = {
  readonly config: ProxyConfig
  /** Undefined without an auth file. */
  readonly tokens: (() => ApiTokens) | undefined
  readonly tls: TlsMaterial | undefined
  readonly upstreamTls: UpstreamSettings['tls']
  readonly version: string
  readonly clock: Clock
  readonly log: Log
  readonly drainMs: number
  /** Instead of API_LIMITS.requestMs. */
  readonly requestMs?: number
}

export type RunningProxy = {
  readonly httpPort: number | undefined
  readonly httpsPort: number | undefined
  readonly setTls: (tls: TlsMaterial) => void
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
  const { config, tokens, tls, version, clock, log } = options
  const readiness = createReadiness(clock)
  const observed = createObserved(config.slowMs)
  const limits = createTokenLimits(clock)
  let certificate = tls
  let api: Api | undefined
  const upstream = openUpstream({
    mode: config.mode,
    host: config.upstreamAddr,
    port: config.upstreamPort,
    tls: options.upstreamTls,
    nodeToken: () => tokens?.().nodeToken,
    connections: config.connPerNode,
    keepAliveMs: config.keepAliveSec * 1000,
    deadlineMs: config.timeoutSec * 1000,
    onChange: (isUp) => {
      if (isUp) log.info({ host: config.upstreamAddr, port: config.upstreamPort }, 'upstream connected')
      else log.warn({ reason: upstream.fault() }, 'upstream lost')
      if (api) upstreamChanged(api, isUp)
    },
  })
  const metrics = registerMetrics(PROXY_METRICS, { process: true })
  const pages: ReadonlyMap<string, Page> = new Map([
    ['/health', { access: 'open', read: () => jsonPage(200, { status: 'ok' }) }],
    ['/ready', { access: 'open', read: () => readyPage() }],
    [
      '/metrics',
      { access: 'token', read: async () => ({ status: 200, type: METRICS_CONTENT_TYPE, body: await metrics.text() }) },
    ],
    ['/openapi.json', { access: 'open', read: () => jsonPage(200, openApi(version, config.authEnabled)) }],
    [
      '/debug/slow',
      { access: 'full', read: () => jsonPage(200, { slow_ms: config.slowMs, requests: slowRequests(observed) }) },
    ],
  ])
  const readyPage = () => {
    const ready = readiness.read()
    const { open, inFlight } = upstream.counts()
    return jsonPage(ready.ready ? 200 : 503, {
      ...ready,
      component: 'proxy',
      mode: config.mode,
      version,
      upstream: `${config.upstreamAddr}:${config.upstreamPort}`,
      connections: open,
      in_flight: inFlight,
    })
  }
  api = createApi({
    settings: {
      isRouter: config.mode === 'router',
      tokens: config.authEnabled ? tokens : undefined,
      corsOrigins: config.corsOrigin,
      serverName: `vacancy/${version}`,
      idPrefix: `${randomBytes(6).toString('hex')}-`,
    },
    upstream,
    pages,
    clock,
    log,
    failures: createFailureLimiter(clock),
    limits,
    readiness,
    observed,
  })
  const started = api
  readiness.set('codecs', 'no codec list yet')
  upstreamChanged(started, upstream.fault() === '')
  const stopFetching = fetchRepeatedly(started)
  let listener: Listener
  try {
    listener = await openListener(
      {
        host: config.listeningAddr,
        httpPort: config.httpEnabled ? config.httpPort : undefined,
        https: tls && { port: config.httpsPort, tls },
        connectionsMax: config.maxActiveConns,
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
  metrics.onCollect(() => collect(metrics, observed, listener, upstream, certificate))
  readDurations(metrics, observed)
  return {
    httpPort: listener.httpPort,
    httpsPort: listener.httpsPort,
    setTls(material) {
      listener.setTls(material)
      certificate = material
    },
    tokensChanged: ({ tokens: current }) => forgetTokens(limits, current),
    async stop() {
      readiness.set('stopping', 'the proxy stops')
      await listener.close(options.drainMs)
      stopFetching()
      await upstream.close(0)
    },
  }
}

function jsonPage(status: number, content: object) {
  return { status, type: 'application/json', body: JSON.stringify(content) }
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
  { counts }: Listener,
  upstream: Upstream,
  tls: TlsMaterial | undefined,
): void {
  const backend = upstream.counts()
  setTotal(of.api_commands_total, observed.commands)
  setTotal(of.api_bytes_received_total, observed.bytesReceived)
  setTotal(of.api_bytes_sent_total, observed.bytesSent)
  setTotal(of.api_client_errors_total, observed.clientErrors + counts.unreadable)
  setTotal(of.api_client_login_fail_total, observed.loginFailures)
  for (const [command, byStatus] of observed.requests) {
    for (const [status, { total }] of byStatus) {
      setTotal(of.api_requests_total, total, { command, status: String(status) })
    }
  }
  for (const [token, total] of observed.tokens) setTotal(of.api_token_requests_total, total, { token })
  for (const proto of ['http1', 'http2'] as const) {
    of.api_inflight.set({ proto }, counts.inFlight[proto])
    of.api_connections.set({ proto }, counts.connections[proto])
  }
  for (const reason of REJECTIONS) setTotal(of.api_rejected_total, observed.rejections[reason], { reason })
  setTotal(of.api_rejected_total, counts.refused, { reason: 'connections' })
  setTotal(of.api_rejected_total, counts.unreadable, { reason: 'unreadable' })
  of.backend_inflight.set(backend.inFlight)
  of.backend_connections.set(backend.open)
  setTotal(of.backend_opened_connections_total, backend.opened)
  setTotal(of.backend_disconnect_total, backend.lost)
  setTotal(of.backend_login_fail_total, backend.loginFailures)
  if (tls) of.tls_cert_not_after_seconds.set({ listener: 'https' }, tls.notAfterMs / 1000)
}

function readDurations(metrics: ProxyMetrics, observed: Observed): void {
  const reading = (labels: { readonly [label: string]: string }, { counts, sum }: Durations) => ({
    labels,
    counts,
    sum,
  })
  metrics.readHistogram('api_request_duration_seconds', () =>
    [...observed.requests].flatMap(([command, byStatus]) =>
      [...byStatus].map(([status, series]) => reading({ command, status: String(status) }, series)),
    ),
  )
  metrics.readHistogram('api_upstream_duration_seconds', () =>
    [...observed.upstream].map(([command, series]) => reading({ command }, series)),
  )
}
