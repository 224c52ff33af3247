/** Compares two snapshots, or a snapshot with the data of a shard: counts by segment and day. */
import type { Clock } from '@vacancy/shared'
import { formatDay, parseDay } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { ProblemError } from '@vacancy/shared/api/route'
import {
  type Comparison,
  codecsBody,
  type NodeCoverage,
  nodeCoverageBody,
  type SnapshotFile,
} from '@vacancy/shared/contract'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'

const SHARD = 'shard:'
/** Maximum pages of segments requested from a node. */
const PAGES_MAX = 500

export type Side = {
  readonly head: Comparison['a']
  /** By segment: properties, and packages by day number. */
  readonly segments: ReadonlyMap<string, { properties: number; packages: number; days: ReadonlyMap<number, number> }>
}

export type CompareParts = {
  readonly cluster: Cluster
  readonly clock: Clock
  readonly find: (id: string) => Promise<{ name: string; document: string; created_at: number }>
}

export async function compare(parts: CompareParts, a: string, b: string): Promise<Comparison> {
  const [left, right] = await Promise.all([sideOf(parts, a), sideOf(parts, b)])
  return difference(left, right)
}

async function sideOf(parts: CompareParts, what: string): Promise<Side> {
  if (what.startsWith(SHARD)) {
    const { cluster, clock } = parts
    return await shardSide(cluster, what.slice(SHARD.length), new Date(clock.wallMs()).toISOString())
  }
  if (!/^[0-9a-f]{64}$/.test(what)) {
    throw problem('invalid-side', { detail: `${JSON.stringify(what.slice(0, 80))} is neither a snapshot nor a shard.` })
  }
  const { name, document: text, created_at } = await parts.find(what)
  const document = JSON.parse(text) as SnapshotFile
  const { properties, packages, window, codecHash } = document
  const at = new Date(created_at).toISOString()
  const codecs = [...document.codecs]
  return {
    head: { title: name, kind: 'snapshot', id: what, node: null, at, properties, packages, window, codecHash, codecs },
    segments: new Map(
      document.segments.map((segment) => [segment.name, daysOf(window?.from, segment.properties, segment.packages)]),
    ),
  }
}

function daysOf(from: string | undefined, properties: number, packages: readonly number[]) {
  const first = parseDay(from ?? '') ?? 0
  const days = new Map<number, number>()
  let sum = 0
  for (const [i, count] of packages.entries()) {
    if (count === 0) continue
    days.set(first + i, count)
    sum += count
  }
  return { properties, packages: sum, days }
}

/** The data of a shard, as reported by its leader, else by any responding node. */
async function shardSide(cluster: Cluster, shard: string, at: string): Promise<Side> {
  const view = cluster.shard(shard)
  const nodes = cluster.addresses(shard)
  if (!view || nodes.length === 0) {
    throw problem('shard-not-found', { detail: `No node of shard ${shard.slice(0, 128)} is known.` })
  }
  const order = [...nodes].sort((a, b) => Number(b.id === view.leader) - Number(a.id === view.leader))
  let last: unknown
  for (const node of order) {
    try {
      const side = await nodeSide(cluster, node, at)
      return { ...side, head: { ...side.head, codecs: await codecsOfNode(cluster, node) } }
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      last = error
    }
  }
  throw last
}

/** The codec list of a node; null when it does not report one, which leaves only the hashes to compare. */
async function codecsOfNode(cluster: Cluster, node: NodeAddress): Promise<string[] | null> {
  try {
    const { status, body } = await cluster.request(node, '/codecs', { as: 'monitoring', timeoutMs: 3_000 })
    const parsed = status === 200 ? codecsBody.pick({ rate_features: true }).safeParse(parseJson(body)) : undefined
    return parsed?.success ? [...parsed.data.rate_features] : null
  } catch (error) {
    if (error instanceof ProblemError) return null
    throw error
  }
}

/** One page of a node's coverage. @throws ProblemError with the node's id */
async function coverageOf(cluster: Cluster, node: NodeAddress, query: string): Promise<NodeCoverage> {
  const { status, body } = await cluster.request(node, `/coverage?${query}`, { as: 'client', timeoutMs: 10_000 })
  const parsed = status === 200 ? nodeCoverageBody.safeParse(parseJson(body)) : undefined
  if (!parsed?.success) {
    throw problem('no-coverage', { detail: `${node.id} did not report its coverage: it answered ${status}.` })
  }
  return parsed.data
}

/** The data of one node. @throws ProblemError with the node's id */
export async function nodeSide(cluster: Cluster, node: NodeAddress, at: string): Promise<Side> {
  const segments = new Map<string, ReturnType<typeof daysOf>>()
  let head: Comparison['a'] | undefined
  let after = ''
  let [from, to] = [Number.POSITIVE_INFINITY, 0]
  for (let page = 0; page < PAGES_MAX; page++) {
    const reported = await coverageOf(cluster, node, `after=${encodeURIComponent(after)}`)
    for (const { name, properties, packages } of reported.segments) {
      const segment = daysOf(reported.window?.from, properties, packages)
      segments.set(name, segment)
      for (const day of segment.days.keys()) [from, to] = [Math.min(from, day), Math.max(to, day)]
      after = name
    }
    head = {
      title: `shard ${node.shard}`,
      kind: 'shard',
      id: node.shard,
      node: node.id,
      at,
      properties: reported.properties,
      packages: reported.packages,
      window: to === 0 ? null : { from: formatDay(from), to: formatDay(to) },
      codecHash: reported.ordered_hash,
      codecs: null,
    }
    if (!reported.more) return { head, segments }
  }
  throw problem('too-many-segments', { detail: `${node.id} returned more segments than it can have.` })
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Invalid JSON is undefined here, which the schema refuses.
    return undefined
  }
}

export function difference(a: Side, b: Side): Comparison {
  const days = [...a.segments.values(), ...b.segments.values()].flatMap((segment) => [...segment.days.keys()])
  const from = days.reduce((least, day) => Math.min(least, day), Number.POSITIVE_INFINITY)
  const to = days.reduce((most, day) => Math.max(most, day), 0)
  const length = days.length === 0 ? 0 : to - from + 1
  const names = [...new Set([...a.segments.keys(), ...b.segments.keys()])].sort()
  const segments = names.map((name): Comparison['segments'][number] => {
    const [left, right] = [a.segments.get(name), b.segments.get(name)]
    return {
      name,
      in: left && right ? 'both' : left ? 'a' : 'b',
      properties: { a: left?.properties ?? 0, b: right?.properties ?? 0 },
      packages: { a: left?.packages ?? 0, b: right?.packages ?? 0 },
      days: Array.from({ length }, (_, i) => (right?.days.get(from + i) ?? 0) - (left?.days.get(from + i) ?? 0)),
    }
  })
  const isEqual = segments.every(
    (segment) =>
      segment.in === 'both' && segment.properties.a === segment.properties.b && segment.days.every((day) => day === 0),
  )
  const codecsEqual = a.head.codecHash && b.head.codecHash ? a.head.codecHash === b.head.codecHash : null
  return {
    a: a.head,
    b: b.head,
    equal: isEqual,
    codecsEqual,
    window: length === 0 ? null : { from: formatDay(from), to: formatDay(to) },
    segments,
  }
}
