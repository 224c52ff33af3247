/**
 * What a change of the registry's state touches: the values before it, so that a storage can write what is new, and
 * take back a change that it could not keep. Pure.
 */

import type { ComponentKind } from '@vacancy/shared/contract'
import type { Journal, RegistryState, Values } from './model.ts'

export function touchComponent({ journal, components }: RegistryState, kind: ComponentKind, id: string): void {
  const key = `${kind}/${id}`
  if (!journal || journal.components.has(key)) return
  const before = components[kind].get(id)
  journal.components.set(key, [kind, id, before && { ...before }])
}

export function touchClaim({ journal, claims }: RegistryState, shard: string): void {
  if (!journal || journal.claims.has(shard)) return
  const before = claims.get(shard)
  journal.claims.set(shard, before && { ...before })
}

export function touchQueue({ journal, queues }: RegistryState, segment: string): void {
  if (journal && !journal.queues.has(segment)) journal.queues.set(segment, queues.get(segment) ?? [])
}

export function touchReservation({ journal, reservations }: RegistryState, segment: string): void {
  if (journal && !journal.reservations.has(segment)) journal.reservations.set(segment, reservations.get(segment))
}

export function touchVersion({ journal, versions }: RegistryState, dataset: string): void {
  if (journal && !journal.versions.has(dataset)) journal.versions.set(dataset, versions.get(dataset))
}

/** Applies a rule, and returns with its result what it touched. A rule that throws changes nothing. */
export function recorded<T>(state: RegistryState, rule: (state: RegistryState) => T): { result: T; journal: Journal } {
  const journal: Journal = {
    components: new Map(),
    claims: new Map(),
    queues: new Map(),
    reservations: new Map(),
    versions: new Map(),
    codecs: undefined,
    globalVersion: state.globalVersion,
  }
  state.journal = journal
  try {
    return { result: rule(state), journal }
  } finally {
    state.journal = undefined
  }
}

/** Whether anything that is kept has changed. */
export function isChange({ components, claims, reservations, versions, codecs }: Journal): boolean {
  return components.size + claims.size + reservations.size + versions.size > 0 || codecs !== undefined
}

/** The values before the change. */
export function valuesBefore(journal: Journal): Values {
  return {
    components: [...journal.components.values()],
    claims: [...journal.claims],
    queues: [...journal.queues],
    reservations: [...journal.reservations],
    versions: [...journal.versions],
    codecs: journal.codecs,
    globalVersion: journal.globalVersion,
  }
}

/** The values after the change, as copies. */
export function valuesAfter(journal: Journal, state: RegistryState): Values {
  return {
    components: [...journal.components.values()].map(([kind, id]) => {
      const component = state.components[kind].get(id)
      return [kind, id, component && { ...component }]
    }),
    claims: [...journal.claims.keys()].map((shard) => {
      const claim = state.claims.get(shard)
      return [shard, claim && { ...claim }]
    }),
    queues: [...journal.queues.keys()].map((segment) => [segment, state.queues.get(segment) ?? []]),
    reservations: [...journal.reservations.keys()].map((segment) => [segment, state.reservations.get(segment)]),
    versions: [...journal.versions.keys()].map((dataset) => [dataset, state.versions.get(dataset)]),
    codecs: journal.codecs && state.codecs,
    globalVersion: state.globalVersion,
  }
}

/** Adds the touched values of a later change to those of the changes before it. */
export function mergeJournal(into: Journal, later: Journal): void {
  for (const part of ['components', 'claims', 'queues', 'reservations', 'versions'] as const) {
    const target = into[part] as Map<string, unknown>
    for (const [key, before] of later[part]) if (!target.has(key)) target.set(key, before)
  }
  into.codecs ??= later.codecs
}
