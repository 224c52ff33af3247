/** Random changes of a registry's state, and all answers it gives, for tests. */

import type { ComponentKind } from '@vacancy/shared/contract'
import fc from 'fast-check'
import { expect } from 'vitest'
import type { RegistryState } from '../registry/model.ts'
import {
  bridgesByShard,
  datasets,
  deregister,
  endReservation,
  expire,
  forgetShard,
  nodesOfShard,
  pushSegments,
  register,
  reserve,
  routersIn,
  segmentsOfShard,
  segmentsOfZone,
} from '../registry/state.ts'

export function put(
  state: RegistryState,
  kind: ComponentKind,
  id: string,
  zone: string,
  shard?: string,
  nowMs = 0,
  details = {},
) {
  return register(state, { kind, id, zone, shard, details }, nowMs)
}

export type Change =
  | {
      readonly do: 'register'
      readonly kind: ComponentKind
      readonly id: string
      readonly zone: string
      readonly shard: string
    }
  | { readonly do: 'deregister'; readonly kind: ComponentKind; readonly id: string }
  | {
      readonly do: 'push'
      readonly shard: string
      readonly zone: string
      readonly segments: readonly string[]
      readonly term: number | undefined
      readonly rejects: boolean
    }
  | { readonly do: 'forget'; readonly shard: string }
  | { readonly do: 'reserve'; readonly shard: string; readonly segment: string }
  | { readonly do: 'release'; readonly segment: string }
  | { readonly do: 'expire' }
  | { readonly do: 'wait'; readonly ms: number }

const kind = fc.constantFrom<ComponentKind>('router', 'bridge', 'node')
const shard = fc.constantFrom('s1', 's2', 's3', '__proto__')
const zone = fc.constantFrom('z1', 'z2')
const id = fc.constantFrom('a', 'b', 'c')
const segment = fc.constantFrom('p', 'q', 'r', 't', '__proto__')
export const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ do: fc.constant('register' as const), kind, id, zone, shard }),
  fc.record({ do: fc.constant('deregister' as const), kind, id }),
  fc.record({
    do: fc.constant('push' as const),
    shard,
    zone,
    segments: fc.array(segment, { maxLength: 4 }),
    term: fc.option(fc.nat(5), { nil: undefined }),
    rejects: fc.boolean(),
  }),
  fc.record({ do: fc.constant('forget' as const), shard }),
  fc.record({ do: fc.constant('reserve' as const), shard, segment }),
  fc.record({ do: fc.constant('release' as const), segment }),
  fc.record({ do: fc.constant('expire' as const) }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.nat(40) }),
)

const TIMEOUT_MS = 100

/** Applies a change to the state, and to a naive queue of claims per segment. */
export function apply(
  state: RegistryState,
  next: Change,
  world: { nowMs: number; queues: Map<string, string[]> },
): void {
  const { queues } = world
  const leave = (name: string, of: string) =>
    queues.set(
      name,
      (queues.get(name) ?? []).filter((each) => each !== of),
    )
  switch (next.do) {
    case 'register':
      put(state, next.kind, next.id, next.zone, next.shard, world.nowMs)
      return
    case 'deregister':
      deregister(state, next.kind, next.id)
      return
    case 'push': {
      const wasReserved = new Set(
        [...state.reservations].flatMap(([name, each]) => (each.shard === next.shard ? [name] : [])),
      )
      const claim = { zone: next.zone, segments: next.segments, term: next.term }
      if (!pushSegments(state, next.shard, claim, next.rejects).ok) return
      for (const name of queues.keys()) {
        if (!next.segments.includes(name) && !wasReserved.has(name)) leave(name, next.shard)
      }
      for (const name of next.segments) {
        const queue = queues.get(name) ?? []
        if (!queue.includes(next.shard)) queues.set(name, [...queue, next.shard])
      }
      return
    }
    case 'forget':
      if (forgetShard(state, next.shard) === 'forgotten') for (const name of queues.keys()) leave(name, next.shard)
      return
    case 'reserve': {
      const result = reserve(state, next.segment, next.shard, 0)
      const queue = queues.get(next.segment) ?? []
      if (result.ok && queue.length === 0) queues.set(next.segment, [next.shard])
      return
    }
    case 'release': {
      const holder = state.reservations.get(next.segment)?.shard
      expect(endReservation(state, next.segment)).toBe(holder !== undefined)
      if (holder !== undefined) leave(next.segment, holder)
      return
    }
    case 'expire':
      expire(state, world.nowMs, TIMEOUT_MS)
      return
    case 'wait':
      world.nowMs += next.ms
  }
}

export const SHARDS = ['s1', 's2', 's3', '__proto__']
export const ZONES = ['z1', 'z2']

/** The response of every list GET, without versions. */
export function answers(state: RegistryState): Map<string, string> {
  const lists = new Map<string, string>()
  for (const each of ZONES) {
    lists.set(datasets.routers(each), JSON.stringify(routersIn(state, each)))
    lists.set(datasets.shards(each), JSON.stringify(bridgesByShard(state, each)))
    lists.set(datasets.zoneSegments(each), JSON.stringify(segmentsOfZone(state, each)))
  }
  for (const each of SHARDS) {
    lists.set(datasets.nodes(each), JSON.stringify(nodesOfShard(state, each)))
    lists.set(datasets.segments(each), JSON.stringify([state.claims.get(each)?.zone, segmentsOfShard(state, each)]))
  }
  return lists
}
