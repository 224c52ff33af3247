/** What stops when a zone, machine, node or component goes, computed from the present state. Pure. */
import type {
  FailureRow,
  HandoverScope,
  NodeView,
  ShardImpact,
  ShardView,
  TopologyView,
} from '@vacancy/shared/contract'

export function isWithin({ kind, name }: HandoverScope, node: Pick<NodeView, 'zone' | 'apiUrl'>): boolean {
  return (kind === 'zone' ? node.zone : machineOf(node)) === name
}

/** The host of a node's address; '' while that is unknown. */
export function machineOf({ apiUrl }: Pick<NodeView, 'apiUrl'>): string {
  return URL.canParse(apiUrl) ? new URL(apiUrl).hostname : ''
}

/** Nodes in these states serve nothing and vote for nothing. */
const AWAY: ReadonlySet<NodeView['state']> = new Set(['unreachable', 'not-answering', 'unavailable', 'unknown'])
const serves = ({ state, freshness }: NodeView) => !AWAY.has(state) && (freshness === 'live' || freshness === 'delayed')

/** Of one shard; undefined when none of its nodes goes. What is stopped already is not stopped by this. */
export function impactOn(shard: ShardView, goes: (node: NodeView) => boolean): ShardImpact | undefined {
  if (!shard.nodes.some(goes)) return undefined
  const up = shard.nodes.filter(serves)
  const left = up.filter((node) => !goes(node))
  const isAlone = shard.mode === 'standalone'
  const votes = (nodes: readonly NodeView[]) => nodes.filter(({ voter }) => isAlone || voter === true).length
  const majority = isAlone ? 1 : shard.majority
  const votersLeft = votes(left)
  const writes =
    majority === 0
      ? 'unknown'
      : votes(up) < majority
        ? 'stopped'
        : votersLeft < majority
          ? 'stop'
          : shard.nodes.some((node) => node.id === shard.leader && goes(node))
            ? 'pause'
            : 'continue'
  const reads = up.length === 0 ? 'stopped' : left.length === 0 ? 'stop' : 'continue'
  return { shard: shard.id, writes, reads, votersLeft, majority }
}

/** Shards that stop, in part or whole, when a zone or machine goes. */
export function stopsOf(scope: HandoverScope, shards: readonly ShardView[]): ShardImpact[] {
  return shards
    .flatMap((shard) => impactOn(shard, (node) => isWithin(scope, node)) ?? [])
    .filter(({ writes, reads }) => writes === 'stop' || reads === 'stop')
}

/** A place of which nodes or components may go. */
type Place = Pick<FailureRow, 'kind' | 'name' | 'shard'> & {
  readonly nodes?: ReadonlySet<NodeView>
  readonly component?: (component: TopologyView['components'][number]) => boolean
}

/**
 * Every zone, machine, node and component, those that stop most first. Those that stop nothing are counted.
 *
 * @param cutsWithout what clients lose without some components, as sentences
 */
export function failureMatrix(
  shards: readonly ShardView[],
  components: TopologyView['components'],
  cutsWithout: (goes: (key: string) => boolean) => readonly string[],
): { readonly rows: FailureRow[]; readonly harmless: { readonly [kind: string]: number } } {
  const rows: FailureRow[] = []
  const harmless: { [kind: string]: number } = {}
  const shardOf = new Map(shards.flatMap((shard) => shard.nodes.map((node) => [node, shard] as const)))
  for (const { kind, name, shard, nodes = new Set<NodeView>(), component } of placesOf(shards, components)) {
    const hit = new Set([...nodes].map((node) => shardOf.get(node) as ShardView))
    const impacts = [...hit].flatMap((each) => impactOn(each, (node) => nodes.has(node)) ?? [])
    const gone = component ? new Set(components.filter(component).map(({ key }) => key)) : new Set<string>()
    const row: FailureRow = {
      ...{ kind, name, shard },
      writes: impacts.filter(({ writes }) => writes === 'stop').map(({ shard: id }) => id),
      reads: impacts.filter(({ reads }) => reads === 'stop').map(({ shard: id }) => id),
      pauses: impacts.filter(({ writes }) => writes === 'pause').map(({ shard: id }) => id),
      cuts: gone.size === 0 ? [] : [...cutsWithout((key) => gone.has(key))],
    }
    if (row.writes.length + row.reads.length + row.pauses.length + row.cuts.length > 0) rows.push(row)
    else harmless[kind] = (harmless[kind] ?? 0) + 1
  }
  const weight = ({ cuts, reads, writes, pauses }: FailureRow) => [
    cuts.length,
    reads.length,
    writes.length,
    pauses.length,
  ]
  rows.sort((a, b) => {
    const [mine, other] = [weight(a), weight(b)]
    const at = mine.findIndex((value, n) => value !== other[n])
    return at === -1 ? 0 : (other[at] as number) - (mine[at] as number)
  })
  return { rows, harmless }
}

function placesOf(shards: readonly ShardView[], components: TopologyView['components']): Place[] {
  const nodes = shards.flatMap((shard) => shard.nodes)
  // Once for each node: among thousands, addresses take the time.
  const [byZone, byHost] = [grouped(nodes, ({ zone }) => zone), grouped(nodes, machineOf)]
  const [zones, hosts] = [grouped(components, ({ zone }) => zone ?? ''), grouped(components, hostOf)]
  const sizeAt = (host: string) => (byHost.get(host)?.size ?? 0) + (hosts.get(host)?.size ?? 0)
  return [
    ...named([...byZone.keys(), ...zones.keys()]).map(
      (name): Place => ({
        ...{ kind: 'zone', name, shard: null },
        nodes: byZone.get(name) ?? new Set(),
        component: (component) => zones.get(name)?.has(component) ?? false,
      }),
    ),
    // A machine with one thing on it is that thing.
    ...named([...byHost.keys(), ...hosts.keys()])
      .filter((host) => sizeAt(host) > 1)
      .map(
        (name): Place => ({
          ...{ kind: 'machine', name, shard: null },
          nodes: byHost.get(name) ?? new Set(),
          component: (component) => hosts.get(name)?.has(component) ?? false,
        }),
      ),
    ...shards.flatMap((shard) =>
      shard.nodes.map((node): Place => ({ kind: 'node', name: node.id, shard: shard.id, nodes: new Set([node]) })),
    ),
    ...components.map(
      ({ kind, id, shard, key }): Place => ({
        ...{ kind, name: id, shard },
        component: (other) => other.key === key,
      }),
    ),
  ]
}

function grouped<T>(things: readonly T[], keyOf: (thing: T) => string): Map<string, Set<T>> {
  const groups = new Map<string, Set<T>>()
  for (const thing of things) {
    const key = keyOf(thing)
    groups.set(key, (groups.get(key) ?? new Set()).add(thing))
  }
  return groups
}

const named = (names: readonly string[]) => [...new Set(names)].filter((name) => name !== '').sort()
const hostOf = ({ apiUrl }: TopologyView['components'][number]) => machineOf({ apiUrl: apiUrl ?? '' })
