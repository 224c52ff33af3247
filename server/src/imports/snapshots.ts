/**
 * Snapshots that were built here, stored as files by content digest, and those that nodes report. People download them;
 * nodes use a token that is valid for one snapshot and one hour.
 *
 *   folder/snapshots/<content digest>.snapshot
 */
import { rm } from 'node:fs/promises'
import { problem } from '@vacancy/shared/api/errors'
import type { Handlers, RouteRequest } from '@vacancy/shared/api/route'
import type { IMPORT_ROUTES } from '@vacancy/shared/contract'
import { compare } from './compare.ts'
import { compareProperties, createPropertyComparison } from './compare-properties.ts'
import { pullSnapshot, sendArchive, sendFile } from './snapshot-downloads.ts'
import { installRows, requireSnapshot, type Snapshots, snapshotPath } from './snapshot-store.ts'
import { listSnapshots, readMatrix, servedBy, snapshotDetails } from './snapshot-views.ts'

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
  const { params, body, principal, address, requestId } = request
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
    await snapshots.audit({ principal, address, requestId, ...what }, transaction)
  })
  snapshots.heads.delete(row.id)
  await rm(snapshotPath(snapshots, row.id), { force: true })
}
