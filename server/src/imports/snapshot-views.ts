/** Views of snapshots for lists and pages: those stored here, and those that nodes report. */

import { problem } from '@vacancy/shared/api/errors'
import { ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import {
  type CoverageBody,
  clusterInfoBody,
  type ShardView,
  type SnapshotDetails,
  type SnapshotFile,
  type SnapshotView,
} from '@vacancy/shared/contract'
import type { Cluster } from '../cluster/cluster.ts'
import { parseJson } from './compare.ts'
import { type Founders, matrixOf, restorableOf } from './matrix.ts'
import {
  type COLUMNS,
  type Head,
  headIn,
  headOf,
  type InstallRow,
  installRows,
  type Row,
  requireSnapshot,
  type Snapshots,
  snapshotRow,
  snapshotRows,
} from './snapshot-store.ts'

async function codecHash(snapshots: Snapshots): Promise<string | undefined> {
  try {
    return (await snapshots.codecs(undefined)).hash
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    return undefined
  }
}

/** Shards whose last install was this snapshot, and those that formed with it. */
export function servedBy(cluster: Cluster, id: string, done: readonly InstallRow[]): string[] {
  const newest = new Map<string, string>()
  for (const { shard, snapshot, state } of done) {
    if (state === 'done' && !newest.has(shard)) newest.set(shard, snapshot)
  }
  const began = cluster
    .shards()
    .filter(({ id: shard, nodes }) => !newest.has(shard) && nodes.some(({ snapshot }) => snapshot?.id === id))
    .map(({ id: shard }) => shard)
  return [...[...newest].filter(([, snapshot]) => snapshot === id).map(([shard]) => shard), ...began].sort()
}

/** By snapshot: the nodes whose newest own snapshot it is. */
function holdersNow(snapshots: Snapshots): Holders {
  const holders = new Map<string, { shard: string; node: string }[]>()
  for (const { id: shard, nodes } of snapshots.cluster.shards()) {
    for (const { id: node, snapshot } of nodes) {
      if (!snapshot) continue
      const known = holders.get(snapshot.id)
      if (known) known.push({ shard, node })
      else holders.set(snapshot.id, [{ shard, node }])
    }
  }
  return holders
}

function snapshotView(
  snapshots: Snapshots,
  row: Pick<Row, (typeof COLUMNS)[number]>,
  head: Head,
  done: readonly InstallRow[],
  hash: string | undefined,
  holders: Holders,
): SnapshotView {
  return {
    id: row.id,
    name: row.name,
    origin: 'import',
    shard: row.shard,
    stored: true,
    ...head,
    codecsCurrent: hash === undefined ? null : hash === head.codecHash,
    bytes: row.bytes,
    sha256: row.sha256,
    createdAt: new Date(row.created_at).toISOString(),
    by: row.by_name,
    import: row.import_id,
    installable: row.installable === 1,
    servedBy: servedBy(snapshots.cluster, row.id, done),
    heldBy: holders.get(row.id) ?? [],
  }
}

/** Newest own snapshots of nodes, without those built here. */
function foundOnNodes(
  snapshots: Snapshots,
  known: ReadonlySet<string>,
  hash: string | undefined,
  holders: Holders,
): SnapshotView[] {
  const found = new Map<string, SnapshotView>()
  for (const { id: shard, nodes } of snapshots.cluster.shards()) {
    for (const { snapshot, window } of nodes) {
      if (!snapshot || known.has(snapshot.id) || found.has(snapshot.id)) continue
      const { id, lastIndex, packages, properties, segments, codecHash, bytes, createdAt, origin } = snapshot
      found.set(id, {
        ...{ id, shard, origin, packages, properties, segments, codecHash, bytes, createdAt, window },
        name: `${shard}, entry ${lastIndex}`,
        stored: false,
        roomTypes: null,
        codecsCurrent: hash === undefined ? null : hash === codecHash,
        sha256: null,
        by: '',
        import: null,
        installable: false,
        servedBy: [],
        heldBy: holders.get(id) ?? [],
      })
    }
  }
  return [...found.values()]
}

export async function listSnapshots(snapshots: Snapshots): Promise<SnapshotView[]> {
  const [stored, done, hash] = await Promise.all([
    snapshotRows(snapshots),
    installRows(snapshots),
    codecHash(snapshots),
  ])
  const holders = holdersNow(snapshots)
  const own: SnapshotView[] = []
  for (const row of stored) {
    // Undefined: it was deleted meanwhile.
    const head = await headOf(snapshots, row.id)
    if (head) own.push(snapshotView(snapshots, row, head, done, hash, holders))
  }
  const others = foundOnNodes(snapshots, new Set(own.map(({ id }) => id)), hash, holders)
  return [...own, ...others].sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1))
}

export async function readMatrix(snapshots: Snapshots, { query }: RouteRequest<'GET /api/v1/snapshots/matrix'>) {
  const shards = snapshots.cluster.shards()
  const founders = new Map(
    await Promise.all(shards.map(async (shard) => [shard.id, await foundersOf(snapshots.cluster, shard)] as const)),
  )
  const request = query.shard ?? (shards.length === 1 ? shards[0]?.id : undefined)
  const shard = shards.find(({ id }) => id === request)
  if (query.shard !== undefined && !shard) {
    throw problem('shard-not-found', { detail: `No node of shard ${query.shard.slice(0, 128)} is known.` })
  }
  return {
    shards: shards.map((each) => restorableOf(each, founders.get(each.id))),
    matrix: shard
      ? matrixOf(
          shard,
          (await listSnapshots(snapshots)).filter((each) => each.shard === shard.id),
          founders.get(shard.id),
        )
      : null,
  }
}

export async function snapshotDetails(snapshots: Snapshots, id: string): Promise<SnapshotDetails> {
  const [row, done, hash] = await Promise.all([
    snapshotRow(snapshots, id),
    installRows(snapshots),
    codecHash(snapshots),
  ])
  if (!row) {
    const found = foundOnNodes(snapshots, new Set(), hash, holdersNow(snapshots)).find((each) => each.id === id)
    if (!found) await requireSnapshot(snapshots, id)
    return {
      ...(found as SnapshotView),
      codecs: [],
      coverage: null,
      roomsPerProperty: [],
      counters: null,
      sources: [],
      installs: [],
    }
  }
  const document = JSON.parse(row.document) as SnapshotFile
  return {
    ...snapshotView(snapshots, row, headIn(document), done, hash, holdersNow(snapshots)),
    codecs: [...document.codecs],
    coverage: coverageOf(document),
    roomsPerProperty: [...document.roomsPerProperty],
    counters: JSON.parse(row.counters) as SnapshotDetails['counters'],
    sources: JSON.parse(row.sources) as SnapshotDetails['sources'],
    installs: done
      .filter(({ snapshot }) => snapshot === id)
      .map(({ operation, shard, at, state }) => ({ operation, shard, at: new Date(at).toISOString(), state })),
  }
}

/** Nodes by their newest own snapshot. */
type Holders = ReadonlyMap<string, SnapshotView['heldBy']>

function coverageOf({ window, segments }: SnapshotFile): CoverageBody {
  return {
    window,
    segments: segments.map(({ name, properties, rooms, packages }) => ({
      name,
      properties,
      rooms,
      packages: [...packages],
    })),
  }
}

/** The founding voters of a shard that waits to form. Every waiting node reports the same. */
async function foundersOf(cluster: Cluster, { id, state }: ShardView): Promise<Founders | undefined> {
  if (state !== 'forming') return undefined
  for (const node of cluster.addresses(id)) {
    try {
      const { status, body } = await cluster.request(node, '/cluster/info')
      const reported = status === 200 ? clusterInfoBody.safeParse(parseJson(body)).data?.bootstrap : undefined
      if (reported) return reported
    } catch (error) {
      // No response: another node may be waiting as well, and the matrix shows which nodes did not respond.
      if (!(error instanceof ProblemError)) throw error
    }
  }
  return undefined
}
