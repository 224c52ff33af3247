/** Attention items, ranked. Pure: earlier items and the time are arguments. */
import { groupDigits } from '@vacancy/shared'
import type {
  AttentionItem,
  Environment,
  Level,
  MissingSource,
  NodeView,
  Operation,
  ShardBrief,
  ShardView,
  Summary,
} from '@vacancy/shared/contract'
import { secondsText } from '../history/figures.ts'
import { hasMismatch, lagText, time } from './derive.ts'
import type { NodeLimits } from './observation.ts'

const ATTENTION = {
  memoryShare: 0.85,
  connectionsShare: 0.8,
  windowDays: 7,
  snapshotIntervals: 3,
  itemsMax: 200,
} as const

const DAY_MS = 86_400_000
const AWAY = new Set(['unreachable', 'not-answering', 'unavailable'])

/** An item without its start time. `value` is compared over time to find its trend. */
export type AttentionSeed = Pick<
  AttentionItem,
  'id' | 'rule' | 'level' | 'area' | 'shard' | 'node' | 'message' | 'href' | 'action'
> & {
  readonly value: number | null
  /** When the start is known more precisely than from the first observation. */
  readonly since?: string
}

export type AttentionMemory = ReadonlyMap<string, { readonly since: number; readonly values: readonly number[] }>

export type Aside = { readonly untilAt: number | null; readonly message: string }

export function attentionSeeds(facts: {
  readonly shards: readonly ShardView[]
  readonly now: number
  readonly operations: readonly Operation[]
  readonly limitsOf: (shard: string) => NodeLimits | undefined
  /** Nights on which rooms on hold are missing. */
  readonly oversoldOf: (shard: string) => number
  /** What its clients were measured to miss, "clients cannot book"; '' for nothing. */
  readonly clientsOf?: (shard: string) => string
  /** Ordered hash of the registry's list. */
  readonly registryHash: string | undefined
  /** Of the other parts of the system. */
  readonly others?: readonly AttentionSeed[]
}): AttentionSeed[] {
  const seeds = [...facts.shards.flatMap((shard) => shardSeeds(shard, facts)), ...(facts.others ?? [])]
  for (const operation of facts.operations) {
    const message = OPERATION_TEXT[operation.state]?.(operation)
    if (message === undefined) continue
    seeds.push({
      id: `5:${operation.id}`,
      rule: 5,
      level: 'warn',
      area: 'operations',
      shard: operation.shard,
      node: operation.node,
      message,
      href: `/operations/${operation.id}`,
      action: 'Review',
      value: null,
      ...(operation.endedAt !== null && { since: operation.endedAt }),
    })
  }
  return seeds
}

const OPERATION_TEXT: { readonly [state in Operation['state']]?: (operation: Operation) => string } = {
  unconfirmed: ({ title }) => `${title}: not confirmed`,
  elsewhere: ({ title, message }) => `${title}: ${message}`,
  'no-change': ({ title, message }) => `${title}: ${message}`,
  stopped: ({ title, message }) => `${title}: stopped. ${message}`,
  refused: ({ title, message }) => `${title}: refused. ${message}`,
}

function shardSeeds(shard: ShardView, facts: Parameters<typeof attentionSeeds>[0]): AttentionSeed[] {
  const { id } = shard
  const href = (focus?: string) =>
    `/shards/${encodeURIComponent(id)}${focus === undefined ? '' : `?focus=${encodeURIComponent(focus)}`}`
  const seeds: AttentionSeed[] = []
  const add = (
    rule: number,
    kind: string,
    level: Level,
    message: string,
    nodes: readonly NodeView[] = [],
    value: number | null = null,
  ) => {
    const node = nodes.length === 1 ? (nodes[0] as NodeView).id : null
    seeds.push({
      id: `${rule}:${kind}:${id}`,
      ...{ rule, level, area: 'shards' as const, shard: id, node, message, value },
      href: href(nodes[0]?.id),
      action: `Open ${id}`,
    })
  }
  // The voters that are away are why the quorum is lost: they are named there and are no items of their own.
  const lost =
    shard.state === 'quorum-lost'
      ? shard.nodes.filter((node) => node.voter !== false && AWAY.has(node.state) && !hasMismatch(node))
      : []
  const broken: { readonly [state in ShardView['state']]?: string } = {
    'quorum-lost': `${id} has lost its quorum: ${shard.votersUp} of ${shard.voters} voters answer, ${shard.majority} needed${lost.length === 0 ? '' : ` (${names(lost)} down)`}`,
    'no-leader': `${id} has no leader`,
    disagree: `Nodes of ${id} disagree about the leader`,
    ...(shard.nodes.every(({ error }) => error !== null) && { unknown: `No node of ${id} answers` }),
  }
  const seen = facts.clientsOf?.(id) ?? ''
  const cause = broken[shard.state]
  const message = cause === undefined || seen === '' ? cause : `${cause}; ${seen}`
  if (message !== undefined) add(1, shard.state, shard.state === 'unknown' ? 'crit' : shard.level, message)
  const isJudged = shard.state !== 'unknown' && shard.state !== 'forming'
  let spare = ''
  if (isJudged && shard.spare === 0 && shard.voters > 1 && message === undefined) {
    spare = `${id} cannot lose another voter`
  }
  // The voters that are away are why: it is said with them, once.
  const withSpare = (text: string, nodes: readonly NodeView[]) => {
    if (spare === '' || !nodes.some((node) => node.voter !== false && AWAY.has(node.state))) return text
    const both = `${text}; ${spare}`
    spare = ''
    return both
  }
  // One item from the detection until the node is back.
  const mismatched = shard.nodes.filter((node) => AWAY.has(node.state) && hasMismatch(node))
  if (mismatched.length > 0) {
    add(2, 'digest-mismatch', 'crit', withSpare(nodesText(id, mismatched), mismatched), mismatched)
  }
  for (const state of ['unreachable', 'not-answering', 'cores-changed', 'unavailable', 'conflicting-leader'] as const) {
    const nodes = shard.nodes.filter(
      (node) => node.state === state && !mismatched.includes(node) && !lost.includes(node),
    )
    // Without any responding node there is nothing to compare.
    if (nodes.length > 0 && shard.state !== 'unknown') {
      add(2, state, 'crit', withSpare(nodesText(id, nodes), nodes), nodes)
    }
  }
  if (spare !== '') add(3, 'spare', 'warn', spare)
  const different = shard.nodes.filter(({ state }) => state === 'different-data')
  if (different.length > 0) add(4, 'different', 'warn', nodesText(id, different), different)
  const far = shard.nodes.filter(({ state }) => state === 'far-behind')
  if (far.length > 0) {
    const worst = far.reduce((a, b) => ((b.lagEntries ?? 0) > (a.lagEntries ?? 0) ? b : a))
    const text = `${id} / ${names(far)} ${far.length === 1 ? 'is' : 'are'} far behind: ${lagText(worst.lagEntries ?? 0, worst.lagSeconds)}`
    add(4, 'far-behind', 'warn', text, far, worst.lagEntries)
  }
  const oversold = facts.oversoldOf(id)
  if (oversold > 0) {
    seeds.push({
      id: `9:oversold:${id}`,
      ...{ rule: 9, level: 'warn', area: 'shards', shard: id, node: null, value: oversold },
      message: `${id} has ${groupDigits(oversold)} oversold ${oversold === 1 ? 'night' : 'nights'}: rooms on hold were taken back`,
      href: `/shards/${encodeURIComponent(id)}/stays`,
      action: 'Show nights',
    })
  }
  seeds.push(...snapshotSeeds(shard, facts, href()))
  for (const node of shard.nodes) seeds.push(...limitSeeds(shard, node, href(node.id)))
  if (shard.window !== null) {
    // The last day of a window belongs to it.
    const days = Date.parse(shard.window.to) / DAY_MS - Math.floor(facts.now / DAY_MS)
    if (days < ATTENTION.windowDays) {
      const when = days === 0 ? 'today' : `in ${days} ${days === 1 ? 'day' : 'days'}`
      add(
        9,
        'window',
        'warn',
        `The dates of ${id} ${days < 0 ? 'have ended' : `end on ${shard.window.to}: the hot window ends ${when}`}`,
      )
    }
  }
  const { registryHash } = facts
  const others = shard.nodes.filter(
    ({ orderedHash }) => orderedHash !== null && registryHash !== undefined && orderedHash !== registryHash,
  )
  if (others.length > 0) {
    add(
      10,
      'codecs',
      'warn',
      `${id} / ${names(others)} ${others.length === 1 ? 'runs' : 'run'} another codec list than the registry`,
      others,
    )
  }
  return seeds
}

function snapshotSeeds(
  shard: ShardView,
  { now, limitsOf }: Parameters<typeof attentionSeeds>[0],
  href: string,
): AttentionSeed[] {
  const interval = limitsOf(shard.id)?.snapshotIntervalSeconds
  if (interval === undefined || interval === 0 || shard.snapshotAt === null) return []
  // An installed snapshot has no creation time, and a node saves none before it has run for an interval.
  const starts = shard.nodes.flatMap(({ startedAt }) => (startedAt === null ? [] : [Date.parse(startedAt)]))
  const since = Math.max(Date.parse(shard.snapshotAt), starts.length === 0 ? 0 : Math.min(...starts))
  const seconds = (now - since) / 1000
  const newest = shard.nodes.reduce((last, { snapshot }) => Math.max(last, snapshot?.lastIndex ?? 0), 0)
  const applied = shard.nodes.reduce((last, { appliedIndex }) => Math.max(last, appliedIndex ?? 0), 0)
  if (seconds <= ATTENTION.snapshotIntervals * interval || applied <= newest) return []
  return [
    {
      id: `8:snapshot:${shard.id}`,
      ...{
        rule: 8,
        level: 'warn',
        area: 'shards',
        shard: shard.id,
        node: null,
        href,
        action: `Open ${shard.id}`,
        value: null,
      },
      message: `${shard.id} has written since its last snapshot and saved none for more than ${secondsText(ATTENTION.snapshotIntervals * interval)}`,
    },
  ]
}

function limitSeeds(shard: ShardView, node: NodeView, href: string): AttentionSeed[] {
  const where = `${shard.id} / ${node.id}`
  const base = {
    rule: 9,
    level: 'warn',
    area: 'shards',
    ...{ shard: shard.id, node: node.id, href, action: `Open ${shard.id}` },
  } as const
  const seeds: AttentionSeed[] = []
  const share = node.memory?.share ?? null
  if (share !== null && share > ATTENTION.memoryShare) {
    const message = `${where} has used ${Math.round(share * 100)} % of its memory for data`
    seeds.push({ ...base, id: `9:memory:${where}`, message, value: Math.round(share * 100) })
  }
  if (
    node.connections !== null &&
    node.connectionsLimit !== null &&
    node.connections > node.connectionsLimit * ATTENTION.connectionsShare
  ) {
    const message = `${where} has ${groupDigits(node.connections)} of ${groupDigits(node.connectionsLimit)} connections open`
    seeds.push({ ...base, id: `9:connections:${where}`, message, value: node.connections })
  }
  for (const { reason, detail, since } of node.reasons) {
    const text = NODE_ITEMS[reason]
    if (text !== undefined)
      seeds.push({ ...base, id: `9:${reason}:${where}`, message: `${where}: ${text}. ${detail}`, value: null, since })
  }
  return seeds
}

/** Reasons that stop nothing now, but will, or may hide a mistake. */
const NODE_ITEMS: { readonly [reason: string]: string } = {
  certificate_ends: 'a certificate or token ends',
  codecs_changed: 'started without its data, which were made with another codec list',
}

function nodesText(shard: string, nodes: readonly NodeView[]): string {
  const [first] = nodes as [NodeView]
  const message = first.message.charAt(0).toLowerCase() + first.message.slice(1)
  return nodes.length === 1
    ? `${shard} / ${first.id} is ${message}`
        .replace('is claims', 'claims')
        .replace('is different', 'has different')
        .replace('is stopped', 'stopped')
    : `${shard} / ${names(nodes)}: ${message}`
}

function names(nodes: readonly NodeView[]): string {
  return nodes.map(({ id }) => id).join(', ')
}

/** Adds start time and trend to seeds and ranks them. The returned memory is the input of the next call. */
export function settleAttention(
  seeds: readonly AttentionSeed[],
  memory: AttentionMemory,
  aside: ReadonlyMap<string, Aside>,
  now: number,
): { readonly items: AttentionItem[]; readonly memory: AttentionMemory } {
  const next = new Map<string, { since: number; values: readonly number[] }>()
  const items = seeds.map(({ value, since, ...seed }): AttentionItem => {
    const before = memory.get(seed.id)
    const values = value === null ? [] : [...(before?.values ?? []), value].slice(-VALUES_KEPT)
    const began = since === undefined ? (before?.since ?? now) : Date.parse(since)
    next.set(seed.id, { since: began, values })
    const put = aside.get(seed.id)
    const isAside =
      put !== undefined && (put.untilAt === null ? put.message === withoutNumbers(seed.message) : put.untilAt > now)
    return {
      ...seed,
      since: time(began),
      trend: trendOf(values),
      asideUntil: isAside ? (put.untilAt === null ? 'change' : time(put.untilAt)) : null,
    }
  })
  items.sort((a, b) => a.rule - b.rule || Date.parse(a.since) - Date.parse(b.since) || (a.id < b.id ? -1 : 1))
  return { items: items.slice(0, ATTENTION.itemsMax), memory: next }
}

/** A minute of values, one per second. */
const VALUES_KEPT = 60

/** The message of an item without its numbers: an item put aside until it changes ignores them. */
export function withoutNumbers(message: string): string {
  return message.replace(/[\d,.]+/g, '#')
}

function trendOf(values: readonly number[]): AttentionItem['trend'] {
  const [first, last] = [values[0], values.at(-1)]
  if (first === undefined || last === undefined || values.length < 3) return null
  const change = last - first
  if (Math.abs(change) <= Math.abs(first) * 0.02) return 'steady'
  return change > 0 ? 'growing' : 'shrinking'
}

export function summarise(facts: {
  readonly at: number
  readonly environment: Environment
  readonly shards: readonly ShardView[]
  readonly briefs: readonly ShardBrief[]
  readonly clients: Summary['clients']
  readonly attention: readonly AttentionItem[]
  readonly running: Summary['running']
  readonly events: Summary['events']
  readonly missing: readonly MissingSource[]
}): Summary {
  const { shards, attention } = facts
  const nodes = shards.flatMap((shard) => shard.nodes)
  const sum = (values: readonly (number | null)[]) => {
    const reported = values.filter((value) => value !== null)
    return reported.length === 0 ? null : reported.reduce((all, each) => all + each, 0)
  }
  const windows = shards.flatMap(({ window }) => (window ? [window] : []))
  const isAside = ({ asideUntil }: AttentionItem) => asideUntil !== null
  return {
    // Coarse, so that an otherwise unchanged summary is not sent.
    at: time(Math.floor(facts.at / COARSE_MS) * COARSE_MS),
    oldestReadAt: oldestRead(nodes),
    environment: facts.environment,
    counts: {
      shards: shards.length,
      shardsHealthy: shards.filter(({ level }) => level === 'ok' || level === 'info').length,
      nodes: nodes.length,
      nodesAnswering: nodes.filter(({ freshness }) => freshness === 'live' || freshness === 'delayed').length,
      packages: sum(shards.map(({ packages }) => packages)),
      properties: sum(shards.map(({ properties }) => properties)),
      attention: attention.filter((item) => !isAside(item)).length,
      aside: attention.filter(isAside).length,
    },
    window:
      windows.length === 0
        ? null
        : {
            from: windows.map(({ from }) => from).sort()[0] as string,
            to: windows
              .map(({ to }) => to)
              .sort()
              .at(-1) as string,
          },
    clients: facts.clients,
    attention: [...attention],
    shards: [...facts.briefs],
    running: facts.running,
    events: facts.events,
    missing: [...facts.missing],
  }
}

/** Of the nodes that are not known to be away; null while all are live. */
function oldestRead(nodes: readonly NodeView[]): string | null {
  const late = nodes.filter(
    ({ freshness, level }) => level !== 'crit' && (freshness === 'delayed' || freshness === 'gone'),
  )
  const times = late.flatMap(({ answeredAt }) => (answeredAt === null ? [] : [answeredAt]))
  return times.length === 0 ? null : times.reduce((a, b) => (a < b ? a : b))
}

const COARSE_MS = 5_000
