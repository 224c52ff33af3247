/**
 * The registration of a router or a bridge: a heartbeat at once and each interval, and deregistration when it stops
 * (docs/design/http.md#heartbeats-and-versions).
 */

import type { Clock, Schedule } from '@vacancy/shared'
import type { Log } from '@vacancy/shared/node'
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

/** Begins at once. */
export declare function startRegistration(options: RegistrationOptions): Registration
