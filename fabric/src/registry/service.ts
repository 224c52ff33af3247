/** The registry as its routes use it: state, and refusals of requests. */

import { type Clock, type CodecList, createCodecList, ID_RULE, parseId } from '@vacancy/shared'
import {
  type ConfigView,
  HttpError,
  type Log,
  type Metrics,
  type Readiness,
  type TlsMaterial,
} from '@vacancy/shared/node'
import type { z } from 'zod'
import { type AccessRules, scopeFault } from '../access.ts'
import type { Query } from '../http.ts'
import type { REGISTRY_METRICS } from '../metrics.ts'
import type { RegistryState } from './model.ts'
import * as registry from './state.ts'
import { type OpenStore, type RegistryStore, StorageUnavailable } from './store.ts'

export type RegistryOptions = {
  readonly host: string
  readonly port: number
  readonly store: RegistryStore
  readonly codecs: CodecList
  readonly heartbeatTimeoutMs: number
  /** A push with segments of others changes nothing. */
  readonly rejectsConflicts: boolean
  readonly tokens: AccessRules['tokens']
  readonly publicRead: boolean
  readonly tls: TlsMaterial | undefined
  readonly version: string
  /** For `/config`. */
  readonly config: ConfigView
  readonly clock: Clock
  readonly log: Log
  /** Requests still in progress this long after the stop are cut off. */
  readonly drainMs: number
  /** 16 random hexadecimal digits. */
  readonly newEpoch: () => string
}

export type Service = {
  readonly options: RegistryOptions
  readonly store: OpenStore
  readonly metrics: Metrics<typeof REGISTRY_METRICS>
  readonly readiness: Readiness
  readonly waiters: Set<() => void>
  readonly kept: Map<string, { readonly etag: string; readonly body: string }>
  readonly clashes: Map<string, number>
  keptBytes: number
  keptVersions: { readonly etag: string; readonly isWarming: boolean; readonly body: string } | undefined
  keptCodecs: CodecList | undefined
  /** Epoch and global version when waiting requests were last answered. */
  notified: string
  isSweeping: boolean
  isStopping: boolean
  certificateEndsMs: number | undefined
}

/** The current state. @throws StorageUnavailable while it was never read */
export function stateOf({ store }: Service): RegistryState {
  const state = store.state()
  if (state === undefined) throw new StorageUnavailable()
  return state
}

export type RejectReason =
  | 'invalid'
  | 'limit'
  | 'conflict'
  | 'stale_term'
  | 'zone'
  | 'forbidden'
  | 'unauthorized'
  | 'too_large'

export function rejected({ metrics }: Service, reason: RejectReason): void {
  metrics.of.registry_rejected_total.inc({ reason })
}

export function refuse(service: Service, status: number, reason: RejectReason, message: string): HttpError {
  rejected(service, reason)
  return new HttpError(status, message)
}

/** @throws HttpError 400 naming the field */
export function parsed<T extends z.ZodType>(service: Service, schema: T, body: unknown): z.infer<T> {
  const { success, data, error } = schema.safeParse(body)
  if (success) return data
  const [issue] = error.issues
  const field = issue?.path.map(String).join('.') ?? ''
  throw refuse(service, 400, 'invalid', `${field === '' ? 'the body' : field}: ${issue?.message ?? 'is not valid'}`)
}

export function pathId(service: Service, { path }: Query, name: string): string {
  const value = parseId(path[name] as string)
  if (value === undefined) throw refuse(service, 400, 'invalid', `${name}: must be ${ID_RULE}`)
  return value
}

/** @throws HttpError 403 when the caller's token is for another shard or zone */
export function within(
  service: Service,
  { caller }: Query,
  touched: { shard: string | undefined; zone: string },
): void {
  const fault = scopeFault(caller, touched)
  if (fault !== '') throw refuse(service, 403, 'forbidden', fault)
}

/** The list in force: another process may have changed it. */
export function codecsOf(service: Service): CodecList {
  const { names } = service.keptCodecs ?? service.options.codecs
  const inForce = service.store.state()?.codecs ?? names
  const isSame = inForce.length === names.length && inForce.every((name, i) => name === names[i])
  if (!isSame) service.keptCodecs = createCodecList(inForce)
  return service.keptCodecs ?? service.options.codecs
}

export function etagOf(state: RegistryState, dataset: string): { readonly ETag: string } {
  return { ETag: `"${state.epoch}.${registry.versionOf(state, dataset)}"` }
}
