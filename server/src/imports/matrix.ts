/**
 * Which node of a shard holds which snapshot, and whether the shard would recover its data after all of its nodes
 * stopped. Pure. A formed shard recovers when a majority of its voters start with their log and any snapshot. One that
 * has not formed needs the same snapshot on a majority of its initial voters. Missing reports count as unknown.
 */
import type { ClusterInfo, NodeView, Restorable, ShardView, SnapshotMatrix } from '@vacancy/shared/contract'

/** What is known about a snapshot, in addition to the reports of nodes. */
export type KnownSnapshot = Pick<
  SnapshotMatrix['snapshots'][number],
  'id' | 'name' | 'stored' | 'codecsCurrent' | 'createdAt'
>

/** The founding voters of a shard that waits to form, as reported by a waiting node. */
export type Founders = NonNullable<ClusterInfo['bootstrap']>

const SHORT = 8
const NAMES_MAX = 5

export function restorableOf(shard: ShardView, founders: Founders | undefined): Restorable {
  if (founders) return ofFounders(shard.id, founders)
  const voters = votersOf(shard)
  const needed = shard.mode === 'standalone' ? voters.length : shard.majority
  const same = samenessOf(voters, needed)
  if (voters.length === 0) {
    return { shard: shard.id, verdict: 'unknown', message: 'No node reported the voters', same }
  }
  const reported = voters.filter((node) => reportOf(node) === 'current')
  const having = reported.filter(({ snapshot, wal }) => snapshot !== null || wal !== null)
  const unknown = voters.filter((node) => !reported.includes(node))
  const all = shard.mode === 'standalone' ? 1 : Math.max(shard.voters, voters.length)
  const what = 'have log and snapshots on disk'
  const many = `${having.length} of ${all} ${shard.mode === 'standalone' ? 'nodes' : 'voters'} ${what}, ${needed} needed`
  if (having.length >= needed) return { shard: shard.id, verdict: 'yes', message: many, same }
  if (having.length + unknown.length >= needed) {
    return { shard: shard.id, verdict: 'unknown', message: `${silence(unknown)}; ${many}`, same }
  }
  return { shard: shard.id, verdict: 'no', message: many, same }
}

function ofFounders(shard: string, { voters, needed }: Founders): Restorable {
  const holders = new Map<string, number>()
  for (const { snapshot } of voters) if (snapshot !== '') holders.set(snapshot, (holders.get(snapshot) ?? 0) + 1)
  const [most] = [...holders].sort(([, a], [, b]) => b - a)
  const silent = voters.filter(({ state }) => state === 'silent').map(({ id }) => id)
  if (!most) {
    const message =
      silent.length >= needed
        ? `${names(silent)} did not respond`
        : 'It has not formed, and no initial voter holds a snapshot'
    return { shard, verdict: silent.length >= needed ? 'unknown' : 'no', message, same: '' }
  }
  const [id, count] = most
  const many = `${count} of ${voters.length} initial voters hold ${id.slice(0, SHORT)}…, ${needed} needed`
  if (count >= needed) return { shard, verdict: 'yes', message: many, same: many }
  if (count + silent.length >= needed) {
    return { shard, verdict: 'unknown', message: `${names(silent)} did not respond; ${many}`, same: many }
  }
  return { shard, verdict: 'no', message: many, same: many }
}

/** Of the files themselves, for forming the shard again from them. */
function samenessOf(voters: readonly NodeView[], needed: number): string {
  const [most] = [...holdersOf(voters)].sort(([, a], [, b]) => b - a)
  if (!most) return ''
  const [id, count] = most
  return `${count} of ${voters.length} hold ${id.slice(0, SHORT)}… as their newest${count >= needed ? '' : '; the others have one of a different log entry'}`
}

function holdersOf(voters: readonly NodeView[]): Map<string, number> {
  const holders = new Map<string, number>()
  for (const { snapshot } of voters) if (snapshot) holders.set(snapshot.id, (holders.get(snapshot.id) ?? 0) + 1)
  return holders
}

function votersOf({ nodes, mode }: ShardView): NodeView[] {
  return nodes.filter(({ voter }) => voter === true || mode === 'standalone')
}

function isAway({ freshness }: NodeView): boolean {
  return freshness !== 'live' && freshness !== 'delayed'
}

function reportOf(node: NodeView): SnapshotMatrix['nodes'][number]['report'] {
  if (node.ages.status === null) return 'none'
  return isAway(node) ? 'last' : 'current'
}

function silence(nodes: readonly NodeView[]): string {
  const [away, quiet] = [nodes.filter(isAway), nodes.filter((node) => !isAway(node))]
  return [
    ...(away.length > 0 ? [`${names(away.map(({ id }) => id))} did not respond`] : []),
    ...(quiet.length > 0 ? [`${names(quiet.map(({ id }) => id))} did not report the files on disk`] : []),
  ].join(', ')
}

function names(ids: readonly string[]): string {
  const more = ids.length - NAMES_MAX
  return more > 0 ? `${ids.slice(0, NAMES_MAX).join(', ')} and ${more} more` : ids.join(', ')
}

/** @param known snapshots of this shard, built here or reported by its nodes, newest first */
export function matrixOf(
  shard: ShardView,
  known: readonly KnownSnapshot[],
  founders: Founders | undefined,
): SnapshotMatrix {
  const held = new Map((founders?.voters ?? []).map(({ id, snapshot }) => [id, snapshot === '' ? null : snapshot]))
  const nodes = shard.nodes.map((node): SnapshotMatrix['nodes'][number] => ({
    node: node.id,
    role: node.role,
    voter: node.voter,
    report: reportOf(node),
    at: node.ages.status ?? node.answeredAt,
    error: node.error?.message ?? '',
    holds: node.snapshot?.id ?? held.get(node.id) ?? null,
    lastIndex: node.lastIndex,
  }))
  const isVoter = new Set(founders ? founders.voters.map(({ id }) => id) : votersOf(shard).map(({ id }) => id))
  const majority = founders?.needed ?? shard.majority
  const columns = new Map(known.map((each) => [each.id, each]))
  for (const { node, holds } of nodes) {
    if (holds === null || columns.has(holds)) continue
    const [name, createdAt] = [`of ${node}`, null]
    columns.set(holds, { id: holds, name, stored: false, codecsCurrent: null, createdAt })
  }
  return {
    shard: shard.id,
    voters: founders?.voters.length ?? shard.voters,
    majority,
    snapshots: [...columns.values()].map((each) => {
      const voters = nodes.filter(({ node, holds }) => holds === each.id && isVoter.has(node)).length
      return { ...each, voters, majority: isVoter.size > 0 && voters >= majority }
    }),
    nodes,
  }
}
