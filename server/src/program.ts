/** Health, readiness and metrics of the process. */
import type { Clock } from '@vacancy/shared'
import { REFUSALS } from '@vacancy/shared/api/options'
import { type ControlModule, moduleOf, type RouteRequest } from '@vacancy/shared/api/route'
import { PROGRAM_ROUTES } from '@vacancy/shared/contract'
import {
  certificateEnds,
  createReadiness,
  endingText,
  endsReasons,
  METRICS_CONTENT_TYPE,
  nextTokenEnd,
  registerMetrics,
  type SpanCounts,
  setCertificateEnds,
  setSpans,
  setTotal,
  type TlsMaterial,
  tokenEnds,
} from '@vacancy/shared/node'
import { type Access, tokensThatEnd } from './access/access.ts'
import { countSessions } from './access/sessions.ts'
import { collectorCounts } from './cluster/collector.ts'
import type { Collector } from './cluster/collector-state.ts'
import { liveCounts } from './live/live.ts'
import type { Live } from './live/state.ts'
import { CONTROL_METRICS } from './metrics.ts'

/** The database counts as down when it takes longer than this to respond. */
const DATABASE_MS = 2_000

export type Program = {
  readonly startedAt: string
  readonly clock: Clock
  readonly readiness: ReturnType<typeof createReadiness>
  readonly metrics: ReturnType<typeof registerMetrics<typeof CONTROL_METRICS>>
}

export function createProgram({ clock }: { readonly clock: Clock }): Program {
  const metrics = registerMetrics(CONTROL_METRICS, { process: true })
  // A series that appears with its first event hides that event from rates.
  for (const reason of REFUSALS) metrics.of.control_refused_total.inc({ reason }, 0)
  return { clock, startedAt: new Date(clock.wallMs()).toISOString(), readiness: createReadiness(clock), metrics }
}

/** Values that are measured when metrics are requested. */
export type Measured = {
  readonly access: Access
  readonly live: Live
  readonly collector: Collector
  /** Shards by what the probes of their clients measured. */
  readonly clients: () => readonly (readonly [state: string, shards: number])[]
  readonly spans: () => SpanCounts
  readonly tls: { material(): Pick<TlsMaterial, 'notAfterMs' | 'authorityNotAfterMs'> } | undefined
  /** The job queue, where it is served. */
  readonly queue:
    | {
        readonly fault: () => string
        readonly metrics: () => Promise<string>
        /** What of its auth file ends soon; '' for nothing. */
        readonly ends: () => string
      }
    | undefined
}

export function programModule(program: Program, measured: Measured): ControlModule {
  return moduleOf('program', PROGRAM_ROUTES, {
    'GET /health': () => ({ status: 'ok' as const }),
    'GET /ready': (request) => readReadiness(program, measured, request),
    'GET /metrics': (request) => readMetrics(program, measured, request),
  })
}

async function readReadiness({ readiness, clock }: Program, measured: Measured, { reply }: RouteRequest<'GET /ready'>) {
  const { queue, tls } = measured
  const { fault, tokens } = await askDatabase(measured)
  readiness.set('database', fault)
  readiness.set('queue', queue?.fault() ?? '')
  const ends = ownEnds({ tls, queue }, tokens, clock.wallMs())
  const { ready, reasons } = readiness.read()
  if (!ready) reply.status(503)
  return { ready, reasons: [...reasons.map(({ name, message }) => ({ name, message })), ...endsReasons(ends)] }
}

/** What of the control plane and its queue ends soon or has ended; '' for nothing. */
export function ownEnds(
  { tls, queue }: Pick<Measured, 'tls' | 'queue'>,
  tokens: Awaited<ReturnType<typeof tokensThatEnd>>,
  nowMs: number,
): string {
  const own = [...certificateEnds('the listener', tls?.material()), ...tokenEnds(tokens, nowMs)]
  return [endingText(own, nowMs), queue?.ends() ?? ''].filter((each) => each !== '').join('; ')
}

async function readMetrics(
  { metrics, clock }: Program,
  measured: Measured,
  { reply }: RouteRequest<'GET /metrics'>,
): Promise<string> {
  const { access, live, collector, tls, queue } = measured
  const { fault, tokens } = await askDatabase(measured)
  const isUp = fault === ''
  queue?.ends()
  metrics.of.control_database_up.set(isUp ? 1 : 0)
  if (isUp) {
    metrics.of.control_sessions.set(await countSessions(access))
    metrics.of.token_not_after_seconds.set(nextTokenEnd(tokens, clock.wallMs()))
  }
  const { clients, frames, bytes } = liveCounts(live)
  metrics.of.control_live_connections.set(clients)
  setTotal(metrics.of.control_live_frames_total, frames)
  setTotal(metrics.of.control_live_bytes_total, bytes)
  const polled = collectorCounts(collector)
  metrics.of.control_nodes.set(polled.nodes)
  setTotal(metrics.of.control_node_requests_total, polled.requests)
  setTotal(metrics.of.control_node_failures_total, polled.failures)
  metrics.of.control_poll_round_seconds.set(polled.roundMs / 1000)
  setSpans(metrics.of.control_spans_total, measured.spans())
  for (const [state, shards] of measured.clients()) metrics.of.control_probed_shards.set({ state }, shards)
  setCertificateEnds(metrics.of.tls_cert_not_after_seconds, 'http', tls?.material())
  reply.header('content-type', METRICS_CONTENT_TYPE)
  return (await metrics.text()) + ((await queue?.metrics()) ?? '')
}

/** Why the database does not respond, '' when it does, and the API tokens that end. */
async function askDatabase({
  access,
}: Measured): Promise<{ fault: string; tokens: Awaited<ReturnType<typeof tokensThatEnd>> }> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new Error(`The database did not respond within ${DATABASE_MS} ms.`)),
    DATABASE_MS,
  )
  try {
    return { fault: '', tokens: await Promise.race([tokensThatEnd(access), late.promise]) }
  } catch (error) {
    return { fault: (error as Error).message, tokens: [] }
  } finally {
    clearTimeout(timer)
  }
}
