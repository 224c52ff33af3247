/** Where a file of an import comes from: this browser, a folder of the control plane, or an upload that is there already. */
import type { FileKind, FolderFile, UploadView } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { fingerprintOf } from './checking.ts'
import { startUpload } from './uploading.ts'

export type Source =
  | { readonly from: 'browser'; readonly name: string; readonly bytes: number; readonly file: File }
  | { readonly from: 'folder'; readonly name: string; readonly bytes: number }
  | { readonly from: 'upload'; readonly name: string; readonly bytes: number; readonly upload: UploadView }

export type Chosen = Partial<Record<FileKind, Source>>
export const KINDS: readonly FileKind[] = ['properties', 'packages']

export const ofBrowser = (file: File): Source => ({ from: 'browser', name: file.name, bytes: file.size, file })
export const ofFolder = ({ path, bytes }: FolderFile): Source => ({ from: 'folder', name: path, bytes })
export const ofUpload = (upload: UploadView): Source => ({
  ...{ from: 'upload', upload },
  ...{ name: upload.name, bytes: upload.bytes },
})

/** Each taken for what the other was. */
export function swapped({ properties, packages }: Chosen): Chosen {
  return { ...(packages && { properties: packages }), ...(properties && { packages: properties }) }
}

type ToBegin = {
  readonly name: string
  readonly shard: string
  readonly codecs: readonly string[] | undefined
  readonly properties: Source
  readonly packages: Source
}

/** @returns id of the import; its files are on their way, or there */
export async function beginImport({ name, shard, codecs, properties, packages }: ToBegin): Promise<string> {
  const [first, second] = await Promise.all([take('properties', properties), take('packages', packages)])
  const body = { name, shard, properties: first.id, packages: second.id, ...(codecs && { codecs: [...codecs] }) }
  const { id } = await call('POST /api/v1/imports', { body })
  if (properties.from === 'browser') startUpload(first, properties.file)
  if (packages.from === 'browser') startUpload(second, packages.file)
  return id
}

async function take(kind: FileKind, source: Source): Promise<UploadView> {
  if (source.from === 'upload' && source.upload.kind === kind) return source.upload
  if (source.from === 'upload') throw new Error(`${source.name} was uploaded as ${source.upload.kind}.csv.`)
  if (source.from === 'folder') return await call('POST /api/v1/import-folder', { body: { path: source.name, kind } })
  const { file } = source
  const fingerprint = await fingerprintOf(file)
  // What was begun before, by this page or another, goes on: nothing is sent twice.
  const { uploads } = await call('GET /api/v1/uploads')
  const known = uploads.find(
    (upload) => upload.fingerprint === fingerprint && upload.kind === kind && upload.import === null,
  )
  return (
    known ?? (await call('POST /api/v1/uploads', { body: { name: file.name, bytes: file.size, kind, fingerprint } }))
  )
}
