/** State of the observation of the fabric: its components, and their last replies. Only the poller changes it. */

import type { Clock } from '@vacancy/shared'
import type { FabricKind, FabricState, topologyBody } from '@vacancy/shared/contract'
import type { Log } from '@vacancy/shared/node'
import type { z } from 'zod'
import type { Alarm } from '../http/alarm.ts'
import type { NodeHttp } from '../http/node-http.ts'
import type { OwnTime } from '../http/own-time.ts'
import type { Reported } from './replies.ts'

export const FABRIC = {
  roundMs: 1_000,
  /** After a failed poll. */
  againMs: 250,
  metricsMs: 3_000,
  atOnce: 32,
  /** How many of these may be components that did not respond recently. */
  silentAtOnce: 8,
  timeoutMs: 800,
  /** A component that left the registry is shown for this long. */
  leftMs: 600_000,
  /** A heartbeat is late after this part of the timeout of the registry. */
  lateShare: 1 / 3,
  componentsMax: 5_000,
} as const

/** What the registry lists. */
export type Topology = z.infer<typeof topologyBody>

export type RegistryState = {
  /** The one that is read: the last that responded. */
  readonly address: string | null
  readonly isUp: boolean
  readonly error: string
  readonly since: number | undefined
  readonly at: number | undefined
  readonly topology: Topology | undefined
}

/** The entry of the registry. */
type Registered = {
  readonly version: string | undefined
  readonly startedAt: string | undefined
  /** Wall time of the last heartbeat. */
  readonly beatAt: number
}

type Failure = { readonly code: string; readonly message: string; readonly at: number }

export type Polled = {
  readonly key: string
  readonly kind: FabricKind
  readonly id: string
  readonly zone: string | undefined
  readonly shard: string | undefined
  /** '' when none is known: it is not polled. */
  apiUrl: string
  /** Undefined when the registry does not list it (any more), or does not list its kind. */
  registered: Registered | undefined
  /** When the registry last listed it. */
  listedAt: number
  reported: Reported | undefined
  /** Since the last reply. */
  failure: Failure | undefined
  missed: number
  nextAt: number
  metricsAt: number
  isBusy: boolean
  /** The state of the last view, and when it began. */
  state: FabricState | undefined
  since: number
}

export type FabricConfig = {
  /** Equal registries; each is polled. */
  readonly registries: readonly string[]
  readonly resolver: string | undefined
  /** `http://host:port` of edge routers and proxies, which do not register. */
  readonly components: readonly string[]
  readonly token: string | undefined
}

export type FabricDeps = {
  readonly http: NodeHttp
  readonly clock: Clock
  readonly log: Log
  /** The last reply of the registry. */
  readonly registry: () => RegistryState
  /** The state of a component may have changed. Rates change without it. */
  readonly onChange: () => void
}

export type Fabric = {
  readonly config: FabricConfig
  readonly deps: FabricDeps
  readonly components: Map<string, Polled>
  readonly alarm: Alarm
  readonly ownTime: OwnTime
  busy: number
  busySilent: number
}

export function componentKey(kind: FabricKind, id: string): string {
  return `${kind} ${id}`
}

export function newComponent(
  about: Pick<Polled, 'kind' | 'id' | 'zone' | 'shard' | 'apiUrl' | 'registered'>,
  now: number,
): Polled {
  return {
    ...about,
    key: componentKey(about.kind, about.id),
    listedAt: now,
    reported: undefined,
    failure: undefined,
    missed: 0,
    nextAt: 0,
    metricsAt: 0,
    isBusy: false,
    state: undefined,
    since: now,
  }
}
