/**
 * Planning and following a change of the codec list. The registry reads its list once at its start and all nodes of all
 * shards must have the same list, so the change is made by hand on all of them. A plan shows its effects and steps, and
 * which of them registry and nodes report as done. Nothing here changes registry or nodes.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type { Handlers, Principal, RouteRequest } from '@vacancy/shared/api/route'
import {
  type CODEC_ROUTES,
  type CodecChange,
  type CodecEntries,
  type CodecPlan,
  type CodecUsage,
  codecPlan,
  type SnapshotFile,
  type SnapshotView,
} from '@vacancy/shared/contract'
import type { Selectable } from 'kysely'
import type { WriteAudit } from '../access/audit.ts'
import type { Cluster } from '../cluster/cluster.ts'
import {
  type Counted,
  checkOrigins,
  listOf,
  nodesOf,
  planOf,
  type Reported,
  type SavedQuery,
  stepsOf,
} from './codec-plan.ts'
import type { Codecs } from './codecs.ts'
import type { ImportDatabase, ImportTables } from './tables.ts'

type Row = Selectable<ImportTables['codec_changes']>

/** The saved codec list plan, and the inputs of plans. */
export type CodecChanges = {
  readonly database: ImportDatabase
  readonly audit: WriteAudit
  readonly clock: Clock
  readonly cluster: Cluster
  /** Address of the registry; '' without one. */
  readonly registry: string
  /** The current list: the registry's, else that of the nodes. @throws ProblemError 503 */
  readonly current: () => Promise<Codecs>
  /** The registry's current list; undefined while it does not respond. */
  readonly ofRegistry: () => Promise<Codecs | undefined>
  readonly snapshots: () => Promise<readonly SnapshotView[]>
  /** Saved playground queries of all people. */
  readonly savedQueries: () => Promise<readonly SavedQuery[]>
  /** Packages by rate feature, by snapshot. Cached, because they are slow to read and never change. */
  readonly counted: Map<string, Counted>
}

export function codecChangeHandlers(changes: CodecChanges): Handlers<typeof CODEC_ROUTES> {
  return {
    'GET /api/v1/registry/codec-usage': () => codecUsage(changes),
    'POST /api/v1/registry/codec-plan': ({ body, principal }) => planFor(changes, body.entries, principal),
    'GET /api/v1/registry/codec-change': () => getChange(changes),
    'POST /api/v1/registry/codec-change': (request) => keepChange(changes, request),
    'DELETE /api/v1/registry/codec-change/{id}': (request) => putChangeAway(changes, request),
  }
}

function openChange(changes: CodecChanges) {
  return changes.database.selectFrom('codec_changes').selectAll().where('ended_at', 'is', null).executeTakeFirst()
}

async function reportedNow(changes: CodecChanges): Promise<Reported> {
  const [reported, snapshots] = await Promise.all([
    changes.registry === '' ? undefined : changes.ofRegistry(),
    changes.snapshots(),
  ])
  return {
    registry: changes.registry === '' ? null : { address: changes.registry, hash: reported?.hash },
    shards: changes.cluster.shards(),
    snapshots,
  }
}

async function planFor(changes: CodecChanges, entries: CodecEntries, principal: Principal): Promise<CodecPlan> {
  const after = listOf(entries)
  const before = await changes.current()
  checkOrigins(entries, before.names)
  const [now, queries] = await Promise.all([reportedNow(changes), changes.savedQueries()])
  return planOf({ before, after, entries, snapshots: now.snapshots, queries, principal }, now)
}

async function changeOf(changes: CodecChanges, row: Row): Promise<CodecChange> {
  const kept = codecPlan.parse(JSON.parse(row.plan))
  const now = await reportedNow(changes)
  const steps = stepsOf(kept, now)
  return {
    id: row.id,
    by: row.by_name,
    reason: row.reason,
    createdAt: new Date(Number(row.created_at)).toISOString(),
    plan: { ...kept, nodes: nodesOf(now.shards), steps },
    complete: steps.every(({ state }) => state === 'done' || state === 'hand'),
  }
}

async function keepChange(
  changes: CodecChanges,
  request: RouteRequest<'POST /api/v1/registry/codec-change'>,
): Promise<CodecChange> {
  const { body, principal, address, userAgent, requestId } = request
  const plan = await planFor(changes, body.entries, principal)
  if (plan.same) {
    throw problem('no-change', { field: 'entries' })
  }
  if (body.confirm !== plan.after.hash) {
    throw problem('not-confirmed', { field: 'confirm', hint: 'Request the plan again and send its after.hash.' })
  }
  const row: Row = {
    id: randomUUID(),
    by_name: principal.name,
    reason: body.reason,
    created_at: changes.clock.wallMs(),
    ended_at: null,
    plan: JSON.stringify(plan),
  }
  await changes.database.transaction().execute(async (transaction) => {
    const open = await transaction
      .selectFrom('codec_changes')
      .select(['id', 'by_name'])
      .where('ended_at', 'is', null)
      .executeTakeFirst()
    if (open) {
      throw problem('change-open', {
        detail: `A plan of ${open.by_name} is already saved.`,
        more: { change: open.id },
      })
    }
    await transaction.insertInto('codec_changes').values(row).execute()
    const detail = `${plan.before.names.join(', ')} → ${plan.after.names.join(', ')}`
    const what = { action: 'codecs.plan', target: plan.after.hash, result: 'kept', reason: body.reason, detail }
    await changes.audit({ principal, address, userAgent, requestId, ...what }, transaction)
  })
  return await changeOf(changes, row)
}

async function putChangeAway(
  changes: CodecChanges,
  request: RouteRequest<'DELETE /api/v1/registry/codec-change/{id}'>,
): Promise<undefined> {
  const { params, principal, address, userAgent, requestId } = request
  await changes.database.transaction().execute(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable('codec_changes')
      .set({ ended_at: changes.clock.wallMs() })
      .where('id', '=', params.id)
      .where('ended_at', 'is', null)
      .executeTakeFirst()
    if (Number(numUpdatedRows) === 0) {
      throw problem('no-such-change')
    }
    const what = { action: 'codecs.plan', target: params.id, result: 'put away' }
    await changes.audit({ principal, address, userAgent, requestId, ...what }, transaction)
  })
  return undefined
}

async function packagesPerFeature(changes: CodecChanges, id: string): Promise<Counted | undefined> {
  const known = changes.counted.get(id)
  if (known) return known
  const row = await changes.database.selectFrom('snapshots').select('document').where('id', '=', id).executeTakeFirst()
  const document = row && (JSON.parse(row.document) as SnapshotFile)
  const counts = document?.packagesPerFeature
  // A snapshot built by a version that did not count features; an import with the same files may replace it.
  if (!counts) return undefined
  const packages = Object.fromEntries(document.codecs.map((name, i) => [name, counts[i] ?? 0]))
  changes.counted.set(id, packages)
  return packages
}

async function codecUsage(changes: CodecChanges): Promise<CodecUsage> {
  const snapshots = await changes.snapshots()
  const shards: CodecUsage['shards'][number][] = []
  for (const { id: shard } of changes.cluster.shards()) {
    const serving = snapshots.find(({ servedBy, stored }) => stored && servedBy.includes(shard))
    const of = serving && {
      snapshot: serving.id,
      name: serving.name,
      at: serving.createdAt,
      packages: serving.packages,
    }
    shards.push({
      shard,
      of: of ?? null,
      packages: (serving && (await packagesPerFeature(changes, serving.id))) ?? null,
    })
  }
  for (const id of changes.counted.keys()) if (!snapshots.some((each) => each.id === id)) changes.counted.delete(id)
  return { shards }
}

async function getChange(changes: CodecChanges): Promise<{ change: CodecChange | null }> {
  const row = await openChange(changes)
  return { change: row ? await changeOf(changes, row) : null }
}
