/**
 * Snapshots that were built here, stored as files by content digest, and those that nodes report. People download them;
 * nodes use a token that is valid for one snapshot and one hour.
 *
 *   folder/snapshots/<content digest>.snapshot
 */
import { rm } from 'node:fs/promises'
import { problem } from '@vacancy/shared/api/errors'
import type { Handlers, RouteRequest } from '@vacancy/shared/api/route'
import type { IMPORT_ROUTES, SnapshotDifferences } from '@vacancy/shared/contract'
import { type Cache, createCache } from '../nodes/cache.ts'
import { compareSnapshots } from './builder.ts'
import { compare } from './compare.ts'
import { checkFile, pullSnapshot, sendArchive, sendFile } from './snapshot-downloads.ts'
import { installRows, requireSnapshot, type Snapshots, snapshotPath } from './snapshot-store.ts'
import { listSnapshots, readMatrix, servedBy, snapshotDetails } from './snapshot-views.ts'

const KEEP_MS = 3_600_000
const KEPT_MAX = 50
/** Comparisons that wait or run. */
const OPEN_MAX = 4
/** Both files of a very large shard are read in far less. */
const COMPARE_MS_MAX = 600_000

/**
 * Compares the properties of two stored snapshots. Both files are read as a whole by a process of its own with low
 * priority, one comparison at a time. Snapshots never change, so a result stays valid.
 */
type PropertyComparison = {
  readonly snapshots: Snapshots
  readonly results: Cache<SnapshotDifferences>
  last: Promise<unknown>
  open: number
}

function createPropertyComparison(snapshots: Snapshots): PropertyComparison {
  const results = createCache<SnapshotDifferences>(snapshots.clock, { keepMs: KEEP_MS, max: KEPT_MAX })
  return { snapshots, results, last: Promise.resolve(), open: 0 }
}

async function compareProperties(
  comparison: PropertyComparison,
  { a, b }: { readonly a: string; readonly b: string },
): Promise<SnapshotDifferences> {
  const { snapshots, results } = comparison
  const paths = await Promise.all([storedPath(snapshots, a), storedPath(snapshots, b)])
  return await results.get(`${a} ${b}`, () => inTurn(comparison, () => run(snapshots, paths)))
}

async function storedPath(snapshots: Snapshots, id: string): Promise<string> {
  await checkFile(snapshots, await requireSnapshot(snapshots, id))
  return snapshotPath(snapshots, id)
}

/** Starts the work once the comparisons before have ended. */
async function inTurn<T>(comparison: PropertyComparison, work: () => Promise<T>): Promise<T> {
  if (comparison.open >= OPEN_MAX) throw problem('comparison-busy')
  comparison.open += 1
  const result = comparison.last.then(work).finally(() => {
    comparison.open -= 1
  })
  // Its own caller gets the failure; the next comparison starts all the same.
  comparison.last = result.catch(() => undefined)
  return await result
}

async function run(snapshots: Snapshots, [a, b]: readonly [string, string]): Promise<SnapshotDifferences> {
  try {
    return await compareSnapshots(a, b, AbortSignal.timeout(COMPARE_MS_MAX))
  } catch (error) {
    snapshots.log.error({ err: error }, 'comparing snapshots failed')
    throw problem('comparison-failed')
  }
}

export function snapshotHandlers(
  snapshots: Snapshots,
): Pick<
  Handlers<typeof IMPORT_ROUTES>,
  | 'GET /api/v1/snapshots'
  | 'GET /api/v1/snapshots/compare'
  | 'GET /api/v1/snapshots/compare/properties'
  | 'GET /api/v1/snapshots/matrix'
  | 'GET /api/v1/snapshots/{id}'
  | 'GET /api/v1/snapshots/{id}/download'
  | 'GET /api/v1/snapshots/{id}/archive'
  | 'POST /api/v1/snapshots/{id}/delete'
  | 'GET /api/v1/pull/{id}'
> {
  const { cluster, clock } = snapshots
  const comparison = createPropertyComparison(snapshots)
  const find = (id: string) => requireSnapshot(snapshots, id)
  return {
    'GET /api/v1/snapshots': async () => ({ snapshots: await listSnapshots(snapshots) }),
    'GET /api/v1/snapshots/compare': ({ query }) => compare({ cluster, clock, find }, query.a, query.b),
    'GET /api/v1/snapshots/compare/properties': ({ query }) => compareProperties(comparison, query),
    'GET /api/v1/snapshots/matrix': (request) => readMatrix(snapshots, request),
    'GET /api/v1/snapshots/{id}': ({ params }) => snapshotDetails(snapshots, params.id),
    'GET /api/v1/snapshots/{id}/download': async (request) =>
      sendFile(snapshots, await find(request.params.id), request),
    'GET /api/v1/snapshots/{id}/archive': (request) => sendArchive(snapshots, request),
    'POST /api/v1/snapshots/{id}/delete': (request) => deleteSnapshot(snapshots, request),
    'GET /api/v1/pull/{id}': (request) => pullSnapshot(snapshots, request),
  }
}

async function deleteSnapshot(
  snapshots: Snapshots,
  request: RouteRequest<'POST /api/v1/snapshots/{id}/delete'>,
): Promise<undefined> {
  const { params, body, principal, address, userAgent, requestId } = request
  const row = await requireSnapshot(snapshots, params.id)
  if (body.confirm !== row.id) {
    throw problem('not-confirmed', { field: 'confirm', hint: 'Send the full digest of the snapshot in `confirm`.' })
  }
  const done = await installRows(snapshots)
  const serving = servedBy(snapshots.cluster, row.id, done)
  if (serving.length > 0) {
    throw problem('snapshot-in-use', { detail: `Used by ${serving.join(', ')}.` })
  }
  const open = done.find(({ snapshot, state }) => snapshot === row.id && state === 'running')
  if (open) {
    throw problem('snapshot-in-use', {
      detail: `It is being installed on ${open.shard}.`,
      hint: 'Wait until the operation has ended.',
      more: { operation: open.operation },
    })
  }
  await snapshots.database.transaction().execute(async (transaction) => {
    await transaction.deleteFrom('snapshots').where('id', '=', row.id).execute()
    await transaction.deleteFrom('pull_tokens').where('snapshot', '=', row.id).execute()
    const what = { action: 'snapshot.delete', target: row.id, result: 'done', reason: body.reason, detail: row.name }
    await snapshots.audit({ principal, address, userAgent, requestId, ...what }, transaction)
  })
  snapshots.heads.delete(row.id)
  await rm(snapshotPath(snapshots, row.id), { force: true })
}
