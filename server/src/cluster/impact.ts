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
  readonly node?: (shard: ShardView, node: NodeView) => boolean
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
  for (const { kind, name, shard, node, component } of placesOf(shards, components)) {
    const impacts = node ? shards.flatMap((each) => impactOn(each, (one) => node(each, one)) ?? []) : []
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
  const zones = new Set([...nodes.map(({ zone }) => zone), ...components.flatMap(({ zone }) => zone ?? [])])
  // A machine with one thing on it is that thing.
  const things = [...nodes.map(machineOf), ...components.map(hostOf)].filter((host) => host !== '')
  const hosts = new Set(things.filter((host, at) => things.indexOf(host) !== at))
  return [
    ...named(zones).map(
      (name): Place => ({
        ...{ kind: 'zone', name, shard: null },
        node: (_, node) => node.zone === name,
        component: ({ zone }) => zone === name,
      }),
    ),
    ...named(hosts).map(
      (name): Place => ({
        ...{ kind: 'machine', name, shard: null },
        node: (_, node) => machineOf(node) === name,
        component: (component) => hostOf(component) === name,
      }),
    ),
    ...shards.flatMap((shard) =>
      shard.nodes.map(
        ({ id }): Place => ({
          ...{ kind: 'node', name: id, shard: shard.id },
          node: (other, node) => other === shard && node.id === id,
        }),
      ),
    ),
    ...components.map(
      ({ kind, id, shard, key }): Place => ({
        ...{ kind, name: id, shard },
        component: (other) => other.key === key,
      }),
    ),
  ]
}

const named = (names: ReadonlySet<string>) => [...names].filter((name) => name !== '').sort()
const hostOf = ({ apiUrl }: TopologyView['components'][number]) => machineOf({ apiUrl: apiUrl ?? '' })
