/**
 * The registration of a router or a bridge: a heartbeat at once and each interval, and deregistration when it stops
 * (docs/design/http.md#heartbeats-and-versions). A failure is logged and tried again; nothing waits for it.
 */

import type { Clock, Schedule } from '@vacancy/shared'
import { registerBody } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import { pauseMs } from './back-off.ts'
import { startLoop } from './loop.ts'
import type { RegistryClient } from './registry-client.ts'

export type RegistrationOptions = {
  readonly registry: RegistryClient
  readonly kind: 'router' | 'bridge'
  readonly id: string
  readonly zone: string
  /** Of a bridge. */
  readonly shard?: string
  readonly intervalMs: number
  /** Random, different for each start of the process. */
  readonly instance: string
  readonly version: string
  /** RFC 3339. */
  readonly startedAt: string
  readonly apiUrl?: string | undefined
  /** Reported with each heartbeat, such as `ready`. */
  readonly health?: () => string
  readonly clock: Clock
  readonly schedule: Schedule
  /** 0 to 1. */
  readonly random: () => number
  readonly log: Log
}

export type Registration = {
  /** Milliseconds since the last accepted heartbeat; undefined before the first. */
  ageMs(): number | undefined
  /** Why the registry refuses this component; '' when it does not. */
  refusal(): string
  /** Ends the heartbeats and deregisters with one try of at most 1 s. Never rejects. */
  stop(): Promise<void>
}

const BEAT_TIMEOUT_MS = 2_000
const DEREGISTER_TIMEOUT_MS = 1_000

type State = {
  readonly options: RegistrationOptions
  failures: number
  acceptedMs: number | undefined
  refusal: string
  /** The timeout of the registry that was warned about, in seconds. */
  warnedTimeout: number
}

/** Begins at once. */
export function startRegistration(options: RegistrationOptions): Registration {
  const state: State = {
    options,
    failures: 0,
    acceptedMs: undefined,
    refusal: '',
    warnedTimeout: 0,
  }
  const loop = startLoop(options.schedule, () => beat(state))
  return {
    ageMs: () => (state.acceptedMs === undefined ? undefined : options.clock.monotonicMs() - state.acceptedMs),
    refusal: () => state.refusal,
    async stop() {
      // A heartbeat that arrives after the deregistration would register a component that is gone.
      await loop.stop()
      if (state.acceptedMs === undefined) return
      // Existing registries do not know this path. They remove a component when it is silent.
      await options.registry.delete(
        `/register/${options.kind}/${encodeURIComponent(options.id)}`,
        DEREGISTER_TIMEOUT_MS,
      )
    },
  }
}

/** @returns the pause before the next one */
async function beat(state: State): Promise<number> {
  const { options } = state
  const { registry, kind, id, intervalMs, log } = options
  const reply = await registry.post('/register', requestOf(options), BEAT_TIMEOUT_MS)
  switch (reply.kind) {
    case 'failed':
      state.failures += 1
      return Math.min(intervalMs, pauseMs(state.failures, options.random()))
    case 'refused':
      state.failures = 0
      if (state.refusal !== reply.reason)
        log.error({ kind, id, reason: reply.reason }, 'the registry refuses to register this component')
      state.refusal = reply.reason
      return intervalMs
    default:
      state.failures = 0
      if (state.acceptedMs === undefined || state.refusal !== '')
        log.info({ kind, id, registry: registry.health().address }, 'registered')
      state.refusal = ''
      state.acceptedMs = options.clock.monotonicMs()
      if (reply.kind === 'ok') warnOfTimeout(state, reply.body)
      return intervalMs
  }
}

function requestOf({ kind, id, zone, shard, instance, version, startedAt, apiUrl, health }: RegistrationOptions) {
  return {
    kind,
    id,
    zone,
    shard: shard ?? null,
    instance,
    version,
    started_at: startedAt,
    ...(apiUrl !== undefined && { api_url: apiUrl }),
    ...(health && { health: health() }),
  }
}

/** Existing registries reply without a body, and their timeout is unknown. */
function warnOfTimeout(state: State, body: string): void {
  const { intervalMs, log } = state.options
  const answer = registerBody.safeParse(parseJson(body))
  if (!answer.success) return
  const timeoutSeconds = answer.data.heartbeat_timeout_secs
  if (intervalMs * 3 <= timeoutSeconds * 1000 || state.warnedTimeout === timeoutSeconds) return
  state.warnedTimeout = timeoutSeconds
  log.warn(
    { intervalMs, timeoutSeconds },
    'the heartbeat interval is more than a third of the heartbeat timeout of the registry',
  )
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The empty body of an existing registry.
    return undefined
  }
}
