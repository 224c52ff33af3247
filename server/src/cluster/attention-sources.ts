/** Attention items beyond shards: what clients cannot reach, the queue, imports, and the control plane. Pure. */
import { groupDigits } from '@vacancy/shared'
import type {
  ClientsOfShard,
  ClientWay,
  FabricComponent,
  FabricKind,
  ImportView,
  ShardView,
  TopicStats,
  TopologyView,
} from '@vacancy/shared/contract'
import { secondsText } from '../history/figures.ts'
import type { AttentionSeed } from './attention.ts'

const SOURCE_LIMITS = {
  /** Age of the oldest ready job of a topic that has consumers. */
  oldestReadyMs: 300_000,
  /** A job may wait this long for the first consumer of its topic. */
  noConsumerMs: 30_000,
  /** Topics with an item of their own; the others are counted. */
  topicsMax: 10,
  importDays: 7,
  /** A timer that is this late took what nodes sent too late as well. */
  lateMs: 1_000,
} as const

const DAY_MS = 86_400_000

const KIND_NAMES: { readonly [kind in FabricKind]: string } = {
  registry: 'Registry',
  resolver: 'Resolver',
  proxy: 'Proxy',
  edge: 'Edge router',
  'zone-router': 'Zone router',
  bridge: 'Bridge',
}
/** Without one of these what is known goes on; without the others requests fail. */
const CONTINUES: ReadonlySet<FabricKind> = new Set(['registry', 'resolver'])
/** A component names these reasons for the shards behind it, which have items of their own. */
const OF_SHARDS: ReadonlySet<string> = new Set(['shards', 'leader', 'topology'])
/** A proxy does not reach what it sends to, which has an item if it is down. */
const UPSTREAM = 'upstream'

/** One item for each thing that is cut off, with all components that are down for it; then those that others replace. */
export function fabricSeeds({ components, edges }: Pick<TopologyView, 'components' | 'edges'>): AttentionSeed[] {
  const cut = new Map<string, FabricComponent[]>()
  // What is in front of it is not ready for this reason alone.
  const isCut = components.some(({ kind, cuts }) => cuts.length > 0 && !CONTINUES.has(kind))
  const down = new Set(components.flatMap(({ key, level }) => (level === 'crit' ? [key] : [])))
  const isExplained = ({ key }: FabricComponent, reason: string) =>
    OF_SHARDS.has(reason) || (reason === UPSTREAM && edges.some(({ from, to }) => from === key && down.has(to)))
  const seeds: AttentionSeed[] = []
  for (const component of components) {
    const { kind, id, state, message, cuts, reasons, since, differences } = component
    const of = { shard: component.shard, node: null, value: null, href: topologyOf(component), since }
    const add = (rule: number, level: 'warn' | 'crit', text: string) =>
      seeds.push({
        ...{ id: `${rule}:fabric:${component.key}`, rule, level, area: 'fabric' as const, ...of },
        message: `${KIND_NAMES[kind]} ${id}: ${text}`,
        action: 'Show',
      })
    if (cuts.length > 0) {
      for (const sentence of cuts) cut.set(sentence, [...(cut.get(sentence) ?? []), component])
    } else if (component.level === 'crit') add(2, 'warn', startedLow(message))
    else if (state === 'unregistered') add(4, 'warn', startedLow(message))
    else if (state === 'not-ready' && !isCut && reasons.some(({ name }) => !isExplained(component, name)))
      add(4, 'warn', startedLow(message))
    else if (state === 'ready' && component.level === 'warn') add(9, 'warn', startedLow(message.replace('Ready; ', '')))
    else if (differences.length > 0) add(4, 'warn', startedLow(differences[0] as string))
  }
  for (const [sentence, down] of cut) {
    const [first] = down as [FabricComponent]
    const isWarning = down.every(({ kind }) => CONTINUES.has(kind))
    seeds.push({
      id: `${isWarning ? 2 : 1}:cut:${first.kind}:${first.shard ?? first.zone ?? ''}`,
      rule: isWarning ? 2 : 1,
      level: isWarning ? 'warn' : 'crit',
      ...{ area: 'fabric', shard: first.shard, node: null, value: null },
      message: `${sentence} (${down.map(({ id }) => id).join(', ')} down)`,
      href: topologyOf(first),
      action: 'Show',
      since: down.map(({ since }) => since).sort()[0] as string,
    })
  }
  return seeds
}

/** A shard in these states has an item that names the cause, and what clients miss. */
const EXPLAINED: ReadonlySet<ShardView['state']> = new Set(['quorum-lost', 'no-leader', 'disagree', 'unknown'])
/** So has a node. */
const EXPLAINED_NODES: ReadonlySet<ShardView['nodes'][number]['state']> = new Set([
  ...(['unreachable', 'not-answering', 'unavailable', 'cores-changed', 'conflicting-leader'] as const),
])

/** What clients miss by the probes: one item for an edge router, else for a shard, unless another item names the cause. */
export function clientSeeds(
  clients: readonly ClientsOfShard[],
  shards: readonly ShardView[],
  components: readonly FabricComponent[],
): AttentionSeed[] {
  const views = new Map(shards.map((shard) => [shard.id, shard]))
  const open = clients.filter(({ shard, state }) => {
    const view = views.get(shard)
    return (
      (state === 'fails' || state === 'partly') && view && !EXPLAINED.has(view.state) && !isCutOff(view, components)
    )
  })
  const edges = edgesThatFail(clients)
  const seeds = [...edges].flatMap(([id, ways]): AttentionSeed[] => {
    const affected = ways.filter(({ shard }) => open.some((each) => each.shard === shard))
    if (isDown(id, components) || affected.length === 0) return []
    const isOnly = affected.some(({ shard }) => clients.some((each) => each.shard === shard && each.state === 'fails'))
    const of = { area: 'fabric', shard: null, node: null, value: null, action: 'Show' } as const
    return [
      {
        ...{ ...of, ...rankOf(isOnly), id: `${isOnly ? 1 : 2}:clients:edge:${id}`, since: sinceOf(affected) },
        message: `Clients get no answer through edge ${id}: ${startedLow((affected[0] as ClientWay).message)}`,
        href: `/topology?focus=${encodeURIComponent(`edge ${id}`)}`,
      },
    ]
  })
  for (const { shard, state, message, ways } of open) {
    const view = views.get(shard) as ShardView
    const failing = ways.filter(
      (way) => way.state === 'fails' && !isExplained(way, view, (id) => edges.has(id) || isDown(id, components)),
    )
    if (failing.length === 0 && !(state === 'fails' && ways.every((way) => way.state !== 'fails'))) continue
    const isWhole = state === 'fails'
    const isHold = isWhole && ways.some(({ failing: request }) => request !== 'search')
    const through = isWhole ? '' : ` through ${failing.map(({ id }) => id).join(', ')}`
    const why = startedLow(isWhole ? message : (failing[0] as ClientWay).message)
    const of = { area: 'shards', shard, node: null, value: null, action: `Open ${shard}` } as const
    seeds.push({
      ...{ ...of, ...rankOf(isWhole), id: `${isWhole ? 1 : 2}:clients:${shard}` },
      message: `Clients of ${shard} ${isHold ? 'cannot book' : 'get no answer'}${through}: ${why}`,
      href: `/shards/${encodeURIComponent(shard)}`,
      ...(failing.length > 0 && { since: sinceOf(failing) }),
    })
  }
  return seeds
}

const rankOf = (isWhole: boolean) => ({ rule: isWhole ? 1 : 2, level: isWhole ? 'crit' : 'warn' }) as const

const sinceOf = (ways: readonly ClientWay[]) => ways.flatMap(({ since }) => since ?? []).sort()[0] as string

/** It has an item of its own. */
function isDown(edge: string, components: readonly FabricComponent[]): boolean {
  const found = components.find(({ kind, id }) => kind === 'edge' && id === edge)
  return found !== undefined && (found.level === 'crit' || found.cuts.length > 0)
}

function isExplained(way: ClientWay, view: ShardView, hasItem: (edge: string) => boolean): boolean {
  if (way.through === 'edge') return hasItem(way.id)
  const node = view.nodes.find(({ id }) => id === way.id)
  return node !== undefined && EXPLAINED_NODES.has(node.state)
}

/** Edge routers through which no shard gets an answer, of several that are measured. */
function edgesThatFail(clients: readonly ClientsOfShard[]): Map<string, ClientWay[]> {
  const ways = new Map<string, ClientWay[]>()
  for (const way of clients.flatMap((each) => each.ways)) {
    const isMeasured = way.through === 'edge' && (way.state === 'fails' || way.state === 'answers')
    if (isMeasured) ways.set(way.id, [...(ways.get(way.id) ?? []), way])
  }
  for (const [id, through] of ways) {
    if (through.length < 2 || through.some(({ failing }) => failing !== 'search')) ways.delete(id)
  }
  return ways
}

/** A bridge or zone router in front of the shard is down, and has an item. */
function isCutOff({ id, zone }: ShardView, components: readonly FabricComponent[]): boolean {
  return components.some(
    (each) =>
      each.cuts.length > 0 && !CONTINUES.has(each.kind) && (each.shard === id || (!each.shard && each.zone === zone)),
  )
}

const topologyOf = ({ key }: FabricComponent) => `/topology?focus=${encodeURIComponent(key)}`

function startedLow(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}

/** @param fault why the queue is not available; '' when it is */
export function queueSeeds(fault: string, topics: readonly TopicStats[]): AttentionSeed[] {
  const base = { rule: 7, area: 'queue', shard: null, node: null, action: 'Open' } as const
  if (fault !== '') {
    const message = `The job queue does not serve: ${startedLow(fault)}`
    return [{ ...base, id: '7:queue', level: 'crit', message, value: null, href: '/queue' }]
  }
  const found = topics.flatMap((stats): AttentionSeed[] => {
    const { topic } = stats
    const add = (kind: string, message: string, value: number): AttentionSeed => ({
      ...{ ...base, id: `7:${kind}:${topic}`, level: 'warn', message, value },
      href: `/queue/topics/${encodeURIComponent(topic)}`,
    })
    const waits = `its oldest ready job is ${secondsText(Math.round(stats.oldestReadyMs / 1_000))} old`
    return [
      ...(stats.dead > 0 ? [add('dead', `${topic} has ${jobs(stats.dead, 'dead')}`, stats.dead)] : []),
      ...(stats.stalledConsumers > 0
        ? [
            add(
              'stalled',
              `${topic}: ${stats.stalledConsumers} of ${stats.consumers} consumers stalled`,
              stats.stalledConsumers,
            ),
          ]
        : []),
      ...(!stats.paused && stats.consumers === 0 && stats.oldestReadyMs > SOURCE_LIMITS.noConsumerMs
        ? [add('no-consumer', `${topic} has ${jobs(stats.ready, 'ready')} and no consumer`, stats.ready)]
        : []),
      ...(!stats.paused && stats.consumers > 0 && stats.oldestReadyMs > SOURCE_LIMITS.oldestReadyMs
        ? [add('oldest', `${topic}: ${waits}`, Math.round(stats.oldestReadyMs / 1_000))]
        : []),
    ]
  })
  found.sort((a, b) => (b.value ?? 0) - (a.value ?? 0))
  const more = found.length - SOURCE_LIMITS.topicsMax
  if (more <= 0) return found
  const message = `${more} more of this kind in the queue`
  return [
    ...found.slice(0, SOURCE_LIMITS.topicsMax),
    { ...base, id: '7:more', level: 'warn', message, value: more, href: '/queue' },
  ]
}

const jobs = (count: number, state: string) => `${groupDigits(count)} ${state} ${count === 1 ? 'job' : 'jobs'}`

/** Failed imports of the last days; a later snapshot of the shard makes up for one. */
export function importSeeds(
  imports: readonly Pick<ImportView, 'id' | 'name' | 'shard' | 'state' | 'message' | 'createdAt' | 'endedAt'>[],
  now: number,
): AttentionSeed[] {
  return imports.flatMap((each): AttentionSeed[] => {
    const { id, name, shard, state, message, createdAt, endedAt } = each
    if (state !== 'failed' || endedAt === null || now - Date.parse(endedAt) > SOURCE_LIMITS.importDays * DAY_MS)
      return []
    const isMadeUp = imports.some(
      (other) =>
        other.shard === shard && other.createdAt > createdAt && (other.state === 'built' || other.state === 'failed'),
    )
    if (isMadeUp) return []
    return [
      {
        ...{ id: `6:${id}`, rule: 6, level: 'warn', area: 'imports', shard, node: null, value: null, since: endedAt },
        ...{
          message: `Import ${name} of ${shard} failed: ${startedLow(message)}`,
          href: `/imports/${id}`,
          action: 'Open',
        },
      },
    ]
  })
}

/** @param ends what of this control plane ends soon or has ended; '' for nothing */
export function endSeeds(ends: string): AttentionSeed[] {
  if (ends === '') return []
  return [
    {
      ...{ id: '9:certificate_ends:control', rule: 9, level: 'warn', area: 'control-plane', shard: null, node: null },
      message: `Of this control plane, a certificate or token ends. ${ends}`,
      ...{ href: '/settings', action: 'Open', value: null },
    },
  ]
}

/**
 * A control plane that is short of processor time takes its own delay for silence of the nodes.
 *
 * @param lateMs the latest that one of its timers ran within the last half minute
 * @param unread shards of which this control plane read too little lately, though nodes refused nothing
 */
export function ownSeeds(lateMs: number, unread: readonly string[]): AttentionSeed[] {
  const isLate = lateMs >= SOURCE_LIMITS.lateMs
  if (!isLate && unread.length === 0) return []
  const late = isLate ? `, ${secondsText(Math.round(lateMs / 1_000))} behind` : ''
  const named = unread.length === 1 ? `shard ${unread[0]} was` : `${groupDigits(unread.length)} shards were`
  return [
    {
      ...{ id: '2:control', rule: 2, level: 'warn', area: 'control-plane', shard: null, node: null },
      message: `This control plane is short of processor time${late}${unread.length === 0 ? '' : `: ${named} not read lately, and may be in any state`}`,
      ...{ href: '/dashboards', action: 'Open', value: unread.length },
    },
  ]
}
