/** The source of an import file: this browser, the import folder of the control plane, or an earlier upload. */
import type { FileKind, FolderFile, UploadView } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import * as copy from './copy.ts'
import { fingerprintOf } from './digest.ts'
import { startUpload } from './uploading.ts'

export type Source =
  | {
      readonly from: 'browser'
      readonly name: string
      readonly bytes: number
      readonly file: File
      /** An estimate. */
      readonly rows: number | undefined
    }
  | { readonly from: 'folder'; readonly name: string; readonly bytes: number }
  | { readonly from: 'upload'; readonly name: string; readonly bytes: number; readonly upload: UploadView }

export type Chosen = Partial<Record<FileKind, Source>>
export const KINDS: readonly FileKind[] = ['properties', 'packages']

export const ofBrowser = (file: File, rows: number | undefined): Source => ({
  ...{ from: 'browser', file, rows },
  ...{ name: file.name, bytes: file.size },
})
export const ofFolder = ({ path, bytes }: FolderFile): Source => ({ from: 'folder', name: path, bytes })
export const ofUpload = (upload: UploadView): Source => ({
  ...{ from: 'upload', upload },
  ...{ name: upload.name, bytes: upload.bytes },
})

/** Exchanges the kinds of the two files. */
export function swapped({ properties, packages }: Chosen): Chosen {
  return { ...(packages && { properties: packages }), ...(properties && { packages: properties }) }
}

type ToBegin = {
  readonly name: string
  readonly shard: string
  readonly codecs: readonly string[] | undefined
  readonly priceDecimals: number
  readonly properties: Source
  readonly packages: Source
}

/** Creates the import and starts missing uploads. @returns its id */
export async function beginImport({ properties, packages, codecs, ...given }: ToBegin): Promise<string> {
  const [first, second] = await Promise.all([uploadOf('properties', properties), uploadOf('packages', packages)])
  const body = { ...given, properties: first.id, packages: second.id, ...(codecs && { codecs: [...codecs] }) }
  const { id } = await call('POST /api/v1/imports', { body })
  if (properties.from === 'browser') startUpload(first, properties.file)
  if (packages.from === 'browser') startUpload(second, packages.file)
  return id
}

async function uploadOf(kind: FileKind, source: Source): Promise<UploadView> {
  if (source.from === 'upload' && source.upload.kind === kind) return source.upload
  if (source.from === 'upload') throw new Error(copy.send.uploadedAs(source.name, source.upload.kind))
  if (source.from === 'folder') return await call('POST /api/v1/import-folder', { body: { path: source.name, kind } })
  const { file } = source
  const fingerprint = await fingerprintOf(file)
  // Resumes an upload that this page or another one started: nothing is sent twice.
  const { uploads } = await call('GET /api/v1/uploads')
  const known = uploads.find(
    (upload) => upload.fingerprint === fingerprint && upload.kind === kind && upload.import === null,
  )
  return (
    known ?? (await call('POST /api/v1/uploads', { body: { name: file.name, bytes: file.size, kind, fingerprint } }))
  )
}
