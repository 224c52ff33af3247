/** The registry as its routes use it: state, and refusals of requests. */

import {
  type Clock,
  type CodecList,
  createCodecList,
  ID_RULE,
  knownValues,
  parseId,
  spellingOf,
  unknownName,
} from '@vacancy/shared'
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
  /** What an operator should know while it is ready. */
  readonly notes: Readiness
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
  certificate: TlsMaterial | undefined
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

/** Log lines about unknown fields, for the life of the process. */
const UNKNOWN_LOGGED_MAX = 100
const unknownLogged = new WeakMap<Service, Set<string>>()

/**
 * The body of a component by the names that this registry knows, in either spelling. Components of other versions may
 * say more: that is named in the response, and once in the log.
 *
 * @throws HttpError 400 for one name in two spellings
 */
export function knownOf(
  service: Service,
  path: string,
  known: readonly string[],
  body: unknown,
): { readonly body: unknown; readonly headers: { readonly [name: string]: string } } {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return { body, headers: {} }
  const isKnown = (name: string) => known.some((each) => spellingOf(each) === spellingOf(name))
  const unknown = Object.keys(body).filter((name) => !isKnown(name))
  const values = knownValues(Object.fromEntries(Object.entries(body).filter(([name]) => isKnown(name))), known)
  if (typeof values === 'string') throw refuse(service, 400, 'invalid', values)
  if (unknown.length === 0) return { body: values, headers: {} }
  const logged = unknownLogged.get(service) ?? new Set<string>()
  unknownLogged.set(service, logged)
  for (const name of unknown.slice(0, UNKNOWN_LOGGED_MAX)) {
    const key = `${path} ${name.slice(0, UNKNOWN_LOGGED_MAX)}`
    if (logged.has(key) || logged.size >= UNKNOWN_LOGGED_MAX) continue
    logged.add(key)
    service.options.log.warn({ path }, `ignored a field: ${unknownName(name, known)}`)
  }
  const names = unknown.slice(0, UNKNOWN_SHOWN_MAX).map((name) => encodeURIComponent(name.toWellFormed().slice(0, 64)))
  return { body: values, headers: { 'X-Unknown-Fields': names.join(', ') } }
}

const UNKNOWN_SHOWN_MAX = 10

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
