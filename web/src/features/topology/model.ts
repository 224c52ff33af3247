/** The things of the topology, from the fabric and the shards: rows, tree, sentences. Pure. */
import type { FabricComponent, FabricEdge, Level, Summary, TopologyView, ViewRole } from '@vacancy/shared/contract'
import { sentence } from '../../lib/format.ts'
import * as copy from './copy.ts'

export type ShardBrief = Summary['shards'][number]
type ThingKind = FabricComponent['kind'] | 'node' | 'shard' | 'zone'

/** Anything with a place on the map and a row in the table. */
export type Thing = {
  /** `bridge b3`, `node s1/n1`, `shard s1`, `zone eu-1`. */
  readonly key: string
  readonly kind: ThingKind
  readonly id: string
  readonly zone: string
  readonly shard: string
  readonly level: Level
  readonly message: string
  readonly component: FabricComponent | undefined
  readonly brief: ShardBrief | undefined
  readonly role: ViewRole | undefined
  readonly reads: number | null
  readonly writes: number | null
}

export type Model = {
  readonly view: TopologyView
  readonly things: ReadonlyMap<string, Thing>
  readonly zones: readonly string[]
  /** Shards of each zone, by id. */
  readonly shardsOf: ReadonlyMap<string, readonly string[]>
  /** Bridges, nodes and the shard itself, by shard. */
  readonly inShard: ReadonlyMap<string, readonly Thing[]>
  readonly edgesFrom: ReadonlyMap<string, readonly FabricEdge[]>
  readonly edgesTo: ReadonlyMap<string, readonly FabricEdge[]>
}

const NATURAL = new Intl.Collator('en', { numeric: true })
const RANK: { readonly [level in Level]: number } = { crit: 0, warn: 1, info: 2, unk: 3, ok: 4 }

export function modelOf(view: TopologyView, briefs: readonly ShardBrief[]): Model {
  const things = new Map<string, Thing>()
  const add = (thing: Thing) => things.set(thing.key, thing)
  const byId = new Map(briefs.map((brief) => [brief.id, brief]))
  for (const component of view.components) {
    const { key, kind, id, zone, shard, level, message, rates } = component
    const { reads, writes } = rates
    add({
      key,
      kind,
      id,
      zone: zone ?? '',
      shard: shard ?? '',
      level,
      message,
      component,
      brief: undefined,
      role: undefined,
      reads,
      writes,
    })
  }
  const shards = new Map(view.shards.map((shard) => [shard.id, shard]))
  const ids = [...new Set([...shards.keys(), ...byId.keys()])].sort(NATURAL.compare)
  for (const id of ids) {
    const brief = byId.get(id)
    const isCut = shards.get(id)?.served === false
    const zone = brief?.zone || shards.get(id)?.zone || ''
    add({
      ...{ key: `shard ${id}`, kind: 'shard', id, zone, shard: id, component: undefined, brief, role: undefined },
      level: brief?.level ?? (isCut ? 'crit' : 'unk'),
      message: brief?.message ?? (isCut ? copy.cutOff : copy.notObserved),
      reads: brief?.rates.queries ?? null,
      writes: brief?.rates.writes ?? null,
    })
    for (const { node, role, level, message } of brief?.slots ?? []) {
      add({
        ...{ key: `node ${id}/${node}`, kind: 'node', id: node, zone, shard: id, level, message, role },
        ...{ component: undefined, brief, reads: null, writes: null },
      })
    }
  }
  const all = [...things.values()]
  const zones = [...new Set(all.filter(({ zone }) => zone !== '').map(({ zone }) => zone))].sort(NATURAL.compare)
  for (const zone of zones) {
    const inside = all.filter((thing) => thing.zone === zone)
    const worst = worstOf(inside.map(({ level }) => level))
    const bad = inside.filter(({ kind, level }) => kind !== 'node' && isProblem(level)).map(({ id }) => id)
    add({
      ...{
        key: `zone ${zone}`,
        kind: 'zone',
        id: zone,
        zone,
        shard: '',
        level: worst,
        component: undefined,
        brief: undefined,
      },
      ...{ role: undefined, reads: null, writes: null, message: bad.length > 0 ? bad.join(', ') : '' },
    })
  }
  const shardsOf = Map.groupBy(ids, (id) => things.get(`shard ${id}`)?.zone ?? '')
  return {
    ...{ view, things, shardsOf },
    inShard: Map.groupBy(things.values(), ({ shard }) => shard),
    zones: shardsOf.has('') ? [...zones, ''] : zones,
    edgesFrom: Map.groupBy(view.edges, ({ from }) => from),
    edgesTo: Map.groupBy(view.edges, ({ to }) => to),
  }
}

export function isProblem(level: Level): boolean {
  return level === 'crit' || level === 'warn'
}

export function worstOf(levels: readonly Level[]): Level {
  return levels.reduce<Level>((worst, level) => (RANK[level] < RANK[worst] ? level : worst), 'ok')
}

/**
 * Components with a problem, then shards, each worst first. Nodes are part of their shard, and a shard is part of the
 * component that cuts it off.
 */
export function problemsOf({ things }: Model): readonly Thing[] {
  const all = [...things.values()].filter(({ level }) => isProblem(level)).sort(worstFirst)
  const components = all.filter(({ component }) => component)
  const isNamed = ({ id }: Thing) => components.some(({ shard, component }) => shard === id && component?.cuts.length)
  return [...components, ...all.filter((thing) => thing.kind === 'shard' && !isNamed(thing))]
}

function worstFirst(a: { readonly level: Level }, b: { readonly level: Level }): number {
  return RANK[a.level] - RANK[b.level]
}

export function rowsOf({ things }: Model): readonly Thing[] {
  return [...things.values()].filter(({ kind }) => kind !== 'zone').sort(worstFirst)
}

export type Branch = { readonly thing: Thing; readonly children: readonly Branch[] }

/** Proxies, edges, registry and resolver, then zones with their routers and shards, these with bridges and nodes. */
export function treeOf(model: Model): readonly Branch[] {
  const all = [...model.things.values()]
  const leaf = (thing: Thing): Branch => ({ thing, children: [] })
  const outside = all.filter(({ kind }) => ['proxy', 'edge', 'registry', 'resolver'].includes(kind)).map(leaf)
  const shardBranch = (id: string): Branch[] => {
    const thing = model.things.get(`shard ${id}`)
    if (!thing) return []
    const inside = (model.inShard.get(id) ?? []).filter(({ kind }) => kind === 'bridge' || kind === 'node')
    return [{ thing, children: inside.map(leaf) }]
  }
  const zones = model.zones.flatMap((zone): Branch[] => {
    const shards = (model.shardsOf.get(zone) ?? []).flatMap(shardBranch)
    const thing = model.things.get(`zone ${zone}`)
    if (!thing) return shards
    const routers = all.filter((each) => each.kind === 'zone-router' && each.zone === zone).map(leaf)
    return [{ thing, children: [...routers, ...shards] }]
  })
  return [...outside, ...zones]
}

/** The topology in sentences, for tickets, terminals and screen readers. */
export function sentencesOf(model: Model): readonly string[] {
  const lines: string[] = []
  const { components } = model.view
  for (const kind of ['proxy', 'edge', 'zone-router', 'bridge', 'registry', 'resolver'] as const) {
    const ofKind = components.filter((each) => each.kind === kind)
    const good = ofKind.filter(({ state }) => state === 'ready')
    if (good.length > 0 && good.length === ofKind.length) {
      lines.push(
        copy.text.all(
          sentence(copy.kinds[kind]),
          good.map(({ id }) => id),
        ),
      )
      continue
    }
    for (const { id, message, cuts } of ofKind) {
      lines.push(copy.text.component(sentence(copy.kinds[kind]), id, message), ...cuts.map(copy.text.cut))
    }
  }
  for (const zone of model.zones) {
    const shards = (model.shardsOf.get(zone) ?? []).flatMap((id) => model.things.get(`shard ${id}`) ?? [])
    const good = shards.filter(({ level }) => level === 'ok')
    if (zone !== '') lines.push(copy.text.zone(zone, shards.length, good.length))
    for (const { id, brief, message, level } of shards) {
      if (level !== 'ok') lines.push(copy.text.shard(id, brief?.leader ?? null, message))
    }
  }
  return lines
}
