/** Which shards behind a component do not serve (docs/design/fabric.md#shards-that-do-not-serve). Pure. */

import type { Hop } from './state.ts'
import type { Status } from './status.ts'

/** `down`: no node of the shard can be reached. `no_leader`: it serves reads, and takes no writes. */
export type Fault = 'down' | 'no_leader'

export type Serving = {
  /** By shard; `zone z1` for a zone of which an edge reaches no router. */
  readonly faults: ReadonlyMap<string, Fault>
  /** Of one shard at least. A component that serves none is not ready. */
  readonly serves: boolean
}

/** Faults that `__status__` has room for. */
const TOLD_MAX = 50
const NAMED_MAX = 5

const WELL: Serving = { faults: new Map(), serves: true }

export function servingOf(place: string, fault: Fault | undefined): Serving {
  return fault === undefined ? WELL : { faults: new Map([[place, fault]]), serves: fault !== 'down' }
}

/** Of a place that these hops lead to: what the reachable ones say. One that serves a shard is enough. */
export function servingBehind(place: string, hops: readonly Hop[]): Serving {
  const open = hops.filter(({ links }) => links.some(({ state }) => state === 'open'))
  const [first, ...others] = open.map(({ status }) => saidBy(status))
  if (first === undefined) return servingOf(place, 'down')
  const faults = [...first.faults].flatMap(([shard, fault]): (readonly [string, Fault])[] => {
    const said = [fault, ...others.map((other) => other.faults.get(shard))]
    if (said.includes(undefined)) return []
    return [[shard, said.includes('no_leader') ? 'no_leader' : 'down']]
  })
  return { faults: new Map(faults), serves: first.serves || others.some(({ serves }) => serves) }
}

/** Of all places. */
export function servingAll(places: readonly Serving[]): Serving {
  if (places.length === 0) return WELL
  return {
    faults: new Map(places.flatMap(({ faults }) => [...faults])),
    serves: places.some(({ serves }) => serves),
  }
}

/**
 * Those that say they can serve the request, if one of them `isOpen`; else all: what they said may be a second old.
 * A fault that a bridge tells is that of its shard.
 */
export function servingHops(hops: readonly Hop[], isWrite: boolean, isOpen: (hop: Hop) => boolean): readonly Hop[] {
  const fails = ({ status }: Hop) =>
    status?.serves === false || (isWrite && status?.component === 'bridge' && status.faults !== undefined)
  if (hops.length === 1 || !hops.some(fails)) return hops
  const others = hops.filter((hop) => !fails(hop))
  return others.some(isOpen) ? others : hops
}

/** Components of other makers, and nodes, say nothing. */
function saidBy(status: Status | undefined): Serving {
  const faults = Object.entries(status?.faults ?? {})
  return {
    faults: new Map(faults.map(([shard, fault]) => [shard, fault === 'no_leader' ? fault : 'down'])),
    serves: status?.serves !== false,
  }
}

/** For `__status__`: nothing while all is well, so that its bytes are those of before. */
export function toldOf({ faults, serves }: Serving): Pick<Status, 'faults' | 'serves'> {
  return {
    ...(faults.size > 0 && { faults: Object.fromEntries([...faults].slice(0, TOLD_MAX)) }),
    ...(!serves && { serves }),
  }
}

/** For `/ready`; '' while all serve. */
export function textOf({ faults }: Serving): string {
  const named = (wanted: Fault, text: string) => {
    const shards = [...faults].filter(([, fault]) => fault === wanted).map(([shard]) => shard)
    if (shards.length === 0) return []
    const more = shards.length > NAMED_MAX ? ` and ${shards.length - NAMED_MAX} more` : ''
    return [`${text}: ${shards.slice(0, NAMED_MAX).join(', ')}${more}.`]
  }
  return [
    ...named('down', 'No node serves the shards'),
    ...named('no_leader', 'Shards without a leader, which take no writes'),
  ].join(' ')
}
