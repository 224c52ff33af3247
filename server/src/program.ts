/** Health, readiness and metrics of the process. */
import type { Clock } from '@vacancy/shared'
import { type ControlModule, moduleOf, type RouteRequest } from '@vacancy/shared/api/route'
import { PROGRAM_ROUTES } from '@vacancy/shared/contract'
import { createReadiness, METRICS_CONTENT_TYPE, registerMetrics, setTotal } from '@vacancy/shared/node'
import type { Access } from './access/access.ts'
import { countSessions } from './access/sessions.ts'
import type { AuditDatabase } from './access/tables.ts'
import { collectorCounts } from './cluster/collector.ts'
import type { Collector } from './cluster/collector-state.ts'
import { liveCounts } from './live/live.ts'
import type { Live } from './live/state.ts'
import { CONTROL_METRICS } from './metrics.ts'

/** The database counts as down when it takes longer than this to respond. */
const DATABASE_MS = 2_000

export type Program = {
  readonly startedAt: string
  readonly readiness: ReturnType<typeof createReadiness>
  readonly metrics: ReturnType<typeof registerMetrics<typeof CONTROL_METRICS>>
}

export function createProgram({ clock }: { readonly clock: Clock }): Program {
  return {
    startedAt: new Date(clock.wallMs()).toISOString(),
    readiness: createReadiness(clock),
    metrics: registerMetrics(CONTROL_METRICS, { process: true }),
  }
}

/** Values that are measured when metrics are requested. */
export type Measured = {
  readonly database: AuditDatabase
  readonly access: Access
  readonly live: Live
  readonly collector: Collector
  readonly tls: { material(): { readonly notAfterMs: number } } | undefined
  /** The job queue, where it is served. */
  readonly queue: { readonly fault: () => string; readonly metrics: () => Promise<string> } | undefined
}

export function programModule(program: Program, measured: Measured): ControlModule {
  return moduleOf('program', PROGRAM_ROUTES, {
    'GET /health': () => ({ status: 'ok' as const }),
    'GET /ready': (request) => readReadiness(program, measured, request),
    'GET /metrics': (request) => readMetrics(program, measured, request),
  })
}

async function readReadiness(
  { readiness }: Program,
  { database, queue }: Measured,
  { reply }: RouteRequest<'GET /ready'>,
) {
  readiness.set('database', await databaseFault(database))
  readiness.set('queue', queue?.fault() ?? '')
  const { ready, reasons } = readiness.read()
  if (!ready) reply.status(503)
  return { ready, reasons: reasons.map(({ name, message }) => ({ name, message })) }
}

async function readMetrics(
  { metrics }: Program,
  measured: Measured,
  { reply }: RouteRequest<'GET /metrics'>,
): Promise<string> {
  const { database, access, live, collector, tls, queue } = measured
  const isUp = (await databaseFault(database)) === ''
  metrics.of.control_database_up.set(isUp ? 1 : 0)
  if (isUp) metrics.of.control_sessions.set(await countSessions(access))
  const { clients, frames, bytes } = liveCounts(live)
  metrics.of.control_live_connections.set(clients)
  setTotal(metrics.of.control_live_frames_total, frames)
  setTotal(metrics.of.control_live_bytes_total, bytes)
  const polled = collectorCounts(collector)
  metrics.of.control_nodes.set(polled.nodes)
  setTotal(metrics.of.control_node_requests_total, polled.requests)
  setTotal(metrics.of.control_node_failures_total, polled.failures)
  metrics.of.control_poll_round_seconds.set(polled.roundMs / 1000)
  if (tls !== undefined)
    metrics.of.tls_cert_not_after_seconds.set({ listener: 'http' }, tls.material().notAfterMs / 1000)
  reply.header('content-type', METRICS_CONTENT_TYPE)
  return (await metrics.text()) + ((await queue?.metrics()) ?? '')
}

/** Why the database does not respond; '' when it does. */
async function databaseFault(database: AuditDatabase): Promise<string> {
  const late = Promise.withResolvers<string>()
  const timer = setTimeout(() => late.resolve(`The database did not respond within ${DATABASE_MS} ms.`), DATABASE_MS)
  const query = database.selectFrom('audit_chain').select('id').executeTakeFirst()
  try {
    return await Promise.race([query.then(() => ''), late.promise])
  } catch (error) {
    return (error as Error).message
  } finally {
    clearTimeout(timer)
  }
}
