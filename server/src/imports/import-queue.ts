/** The queue of imports: one is built at a time, and interrupted builds restart at the next start. */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SYSTEM_CALLER } from '@vacancy/shared/api/route'
import { FILE_KINDS } from '@vacancy/shared/contract'
import { touchTopic } from '../live/topics.ts'
import { buildImport } from './build-import.ts'
import { addLogLine, buildFolder, type Imports, ordered, reportChange, saveImport } from './import-state.ts'
import { detailOf, type Item, isOver, itemOf } from './item.ts'
import { FileFault } from './reading.ts'
import { isDiskFull } from './upload-files.ts'
import { assignUploads, dropStaleUploads, dropUpload, findUpload, listUploads, type UploadRow } from './uploads.ts'

/** Ended imports that are kept in the list. */
const ENDED_KEPT = 200

/** After this many process ends during the build, the import is assumed to cause them. */
const ATTEMPTS_MAX = 3

export async function beginWhenComplete(imports: Imports, item: Item): Promise<void> {
  if (item.row.state !== 'uploading') return
  const rows = await Promise.all(FILE_KINDS.map((kind) => findUpload(imports.uploads, item.row[`${kind}_upload`])))
  if (rows.some((row) => row === undefined)) {
    return await finishImport(
      imports,
      item,
      'failed',
      'A file of this import is missing.',
      'Start a new import with both files.',
    )
  }
  if (rows.some((row) => row && row.received < row.bytes)) return reportChange(imports, item)
  await saveImport(imports, item, { state: 'queued' }, { message: 'Waiting for other imports.' })
  startNext(imports)
}

/** One import at a time: a build uses all cores. */
function startNext(imports: Imports): void {
  if (imports.working || imports.isStopping) return
  const next = ordered(imports).findLast(({ row }) => row.state === 'queued')
  if (!next) return
  imports.working = buildItem(imports, next)
    .catch((error: unknown) => imports.log.error({ err: error, import: next.row.id }, 'ending an import failed'))
    .finally(() => {
      imports.working = undefined
      startNext(imports)
    })
}

async function buildItem(imports: Imports, item: Item): Promise<void> {
  const end = new AbortController()
  item.end = end
  try {
    const { state, message, hint } = await buildImport(imports, item, end.signal)
    await finishImport(imports, item, state, message, hint)
  } catch (error) {
    // On shutdown its state is kept: the next start restarts it.
    if (imports.isStopping && !item.isCancelled) return
    if (item.isCancelled) await finishImport(imports, item, 'cancelled', 'Cancelled. Its files were removed.', '')
    else await failImport(imports, item, error)
  } finally {
    item.end = undefined
  }
}

async function failImport(imports: Imports, item: Item, error: unknown): Promise<void> {
  if (error instanceof FileFault) return await finishImport(imports, item, 'failed', error.message, error.hint)
  if (isDiskFull(error)) {
    const hint = 'Delete old snapshots or unfinished uploads, then start a new import with the same uploads.'
    return await finishImport(imports, item, 'failed', 'The disk of the control plane is full.', hint)
  }
  imports.log.error({ err: error, import: item.row.id }, 'an import failed')
  await finishImport(
    imports,
    item,
    'failed',
    (error as Error).message,
    'See the logs of the import and of the control plane.',
  )
}

export async function finishImport(
  imports: Imports,
  item: Item,
  state: 'built' | 'failed' | 'cancelled',
  message: string,
  hint: string,
): Promise<void> {
  addLogLine(imports, item, message)
  if (state !== 'built') item.progress = null
  const ids = FILE_KINDS.map((kind) => item.row[`${kind}_upload`])
  await saveImport(imports, item, { state, ended_at: imports.clock.wallMs() }, { message, hint })
  // After a successful build the uploads are no longer needed. Otherwise they can be used again.
  if (state === 'built') for (const id of ids) await dropUpload(imports.uploads, id)
  else await assignUploads(imports.uploads, ids, null)
  await clearBuild(imports, item.row.id, item.detail.errors !== null)
  await imports.audit({
    ...SYSTEM_CALLER,
    action: 'import.end',
    target: item.row.name,
    result: state,
    detail: message,
  })
  reportChange(imports, item)
}

async function clearBuild(imports: Imports, id: string, keepsErrors: boolean): Promise<void> {
  const folder = buildFolder(imports, id)
  if (!keepsErrors) return await rm(folder, { recursive: true, force: true })
  for (const name of await readdir(folder)) {
    if (name !== 'errors.jsonl') await rm(join(folder, name), { recursive: true, force: true })
  }
}

export async function forgetOldImports(imports: Imports): Promise<void> {
  const ended = ordered(imports).filter(({ row }) => isOver(row))
  for (const { row } of ended.slice(ENDED_KEPT)) {
    imports.items.delete(row.id)
    await imports.database.deleteFrom('imports').where('id', '=', row.id).execute()
    await rm(buildFolder(imports, row.id), { recursive: true, force: true })
  }
}

export async function startImports(imports: Imports): Promise<void> {
  const rows = await imports.database.selectFrom('imports').selectAll().execute()
  for (const row of rows) imports.items.set(row.id, itemOf(row, detailOf(row.detail)))
  for (const upload of await listUploads(imports.uploads)) imports.received.set(upload.id, upload.offset)
  await removeUnknownFolders(imports)
  for (const item of ordered(imports)) {
    if (isOver(item.row)) continue
    if (item.row.state === 'uploading') {
      await beginWhenComplete(imports, item)
      continue
    }
    if (item.row.attempts >= ATTEMPTS_MAX) {
      const message = `The control plane ended ${ATTEMPTS_MAX} times while it built this import.`
      await finishImport(
        imports,
        item,
        'failed',
        message,
        'Check its log for the reason, such as lack of memory, then import again.',
      )
      continue
    }
    addLogLine(imports, item, 'the control plane was restarted')
    await saveImport(imports, item, { state: 'queued' }, { message: 'Interrupted; waiting to restart.' })
  }
  await dropStaleUploads(imports.uploads)
  startNext(imports)
}

async function removeUnknownFolders(imports: Imports): Promise<void> {
  const folder = join(imports.folder, 'builds')
  await mkdir(folder, { recursive: true })
  for (const name of await readdir(folder)) {
    if (!imports.items.has(name)) await rm(join(folder, name), { recursive: true, force: true })
  }
}

export async function stopImports(imports: Imports): Promise<void> {
  imports.isStopping = true
  for (const item of imports.items.values()) {
    item.end?.abort()
  }
  await imports.working
}

/** Called when an upload changed; `isComplete` with its last chunk. */
export function observeUpload(imports: Imports, row: UploadRow, isComplete: boolean): void {
  imports.received.set(row.id, row.received)
  const item = row.import_id === null ? undefined : imports.items.get(row.import_id)
  if (!item) return touchTopic(imports.live, 'imports')
  if (!isComplete) return reportChange(imports, item)
  beginWhenComplete(imports, item).catch((error: unknown) => {
    imports.log.error({ err: error, import: item.row.id }, 'starting an import failed')
  })
}
