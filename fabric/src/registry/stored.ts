/**
 * The persisted state of the registry: everything that components do not report again when they register. Pure. Ages
 * are not persisted: every loaded component has a fresh heartbeat (docs/design/http.md#registry-storage).
 */

import { ID_RULE, parseId } from '@vacancy/shared'
import {
  COMPONENT_KINDS,
  type ComponentDetails,
  type ComponentKind,
  registerRequest,
  segmentFault,
} from '@vacancy/shared/contract'
import { z } from 'zod'
import type { Component, RegistryState } from './model.ts'
import { createState, register, restoreClaims } from './state.ts'

/** A different number belongs to another program version. */
const STORED_FORMAT = 1

const count = z.int().nonnegative()
const id = z.string().refine((text) => parseId(text) !== undefined, `must be ${ID_RULE}`)
const segment = z.string().superRefine((name, context) => {
  const fault = segmentFault(name)
  if (fault !== '') context.addIssue({ code: 'custom', message: fault })
})

export const storedComponent = z
  .object({ kind: z.enum(COMPONENT_KINDS), id, zone: id, shard: id.optional() })
  .refine(({ kind, shard }) => kind === 'router' || shard !== undefined, 'a bridge or a node has a shard')
export const storedClaim = z.object({ shard: id, zone: id, term: count, segments: z.array(segment) })
export const storedReservation = z.object({ segment, shard: id, until_ms: count })

const storedState = z.object({
  format: z.literal(STORED_FORMAT),
  epoch: z.string().regex(/^[0-9a-f]{16}$/),
  first_version: count,
  global_version: count,
  codecs: z.array(z.string()),
  /** Wall time of the orderly stop that wrote this; absent in what a running registry wrote. */
  closed_ms: count.optional(),
  versions: z.record(z.string(), count),
  components: z.array(storedComponent),
  // Rows, not keys: a shard or a segment may be called __proto__.
  claims: z.array(storedClaim),
  /** Queues with more than one shard; the others follow from the claims. */
  contested: z.array(z.object({ segment, shards: z.array(id).min(2) })),
  /** `until_ms`: wall time. */
  reservations: z.array(storedReservation),
})

export type StoredState = z.infer<typeof storedState>

/** The part of a state to persist. */
export function storedOf(state: RegistryState, closedMs?: number): StoredState {
  const contested = [...state.queues].filter(([, queue]) => queue.length > 1)
  return {
    format: STORED_FORMAT,
    epoch: state.epoch,
    first_version: state.firstVersion,
    global_version: state.globalVersion,
    codecs: [...state.codecs],
    ...(closedMs !== undefined && { closed_ms: Math.max(0, Math.floor(closedMs)) }),
    versions: Object.fromEntries(state.versions),
    components: COMPONENT_KINDS.flatMap((kind) =>
      [...state.components[kind].values()].map(({ id, zone, shard }) => ({
        kind,
        id,
        zone,
        ...(shard !== undefined && { shard }),
      })),
    ),
    claims: [...state.claims].map(([shard, { zone, term, segments }]) => ({
      shard,
      zone,
      term,
      segments: [...segments],
    })),
    contested: contested.map(([segment, shards]) => ({ segment, shards: [...shards] })),
    reservations: [...state.reservations].map(([segment, { shard, untilMs }]) => ({
      segment,
      shard,
      until_ms: untilMs,
    })),
  }
}

export type Restored =
  | { readonly state: RegistryState; readonly closedMs: number | undefined }
  | { readonly fault: string }

/**
 * Parses a persisted state.
 *
 * @returns the state, or what is wrong with the text
 */
export function restoreState(text: string, nowMs: number): Restored {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { fault: `is not valid JSON: ${(error as Error).message}` }
  }
  return restoreValue(value, nowMs)
}

/** Like restoreState, from parsed JSON. */
export function restoreValue(value: unknown, nowMs: number): Restored {
  const { success, data, error } = storedState.safeParse(value)
  if (!success) {
    const [issue] = error.issues
    return { fault: `${issue?.path.join('.') || 'the document'}: ${issue?.message}` }
  }
  const state = createState({ epoch: data.epoch, firstVersion: data.first_version, codecs: data.codecs })
  for (const { kind, id, zone, shard } of data.components) {
    register(state, { kind, id, zone, shard, details: {} }, nowMs)
  }
  const fault = restoreClaims(state, {
    claims: data.claims.map(({ shard, ...claim }) => [shard, claim]),
    contested: data.contested.map(({ segment, shards }) => [segment, shards]),
    reservations: data.reservations.map(({ segment, shard, until_ms: untilMs }) => [segment, { shard, untilMs }]),
  })
  if (fault !== '') return { fault }
  // Last, because restoring the parts bumped versions.
  state.versions.clear()
  for (const [dataset, version] of Object.entries(data.versions)) state.versions.set(dataset, version)
  state.globalVersion = data.global_version
  return { state, closedMs: data.closed_ms }
}

// Heartbeats in a store that several registries share.

/**
 * A heartbeat as it was sent.
 *
 * @param by the registry that writes it
 */
export function heartbeatText({ kind, id, zone, shard, details }: Component, by: string): string {
  return JSON.stringify({ by, kind, id, zone, ...(shard !== undefined && { shard }), ...details })
}

export type Heartbeat = {
  readonly by: string
  readonly kind: ComponentKind
  readonly id: string
  readonly details: ComponentDetails
}

/** @returns undefined for a heartbeat of another program version */
export function heartbeatOf(value: Uint8Array): Heartbeat | undefined {
  let sent: unknown
  try {
    sent = JSON.parse(new TextDecoder().decode(value))
  } catch {
    // Only its lease counts then.
    return undefined
  }
  const { data } = registerRequest.extend({ by: z.string() }).safeParse(sent)
  const kind = COMPONENT_KINDS.find((each) => each === data?.kind)
  if (data === undefined || kind === undefined) return undefined
  const { kind: _, by, id, zone, shard, ...details } = data
  return { by, kind, id, details }
}
