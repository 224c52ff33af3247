/** CSV files for imports, and uploads in chunks. */
import { createHash } from 'node:crypto'
import { dayOf, formatDay } from '@vacancy/shared'
import { IMPORT_LIMITS, type ImportView, type UploadView } from '@vacancy/shared/contract'
import { until } from '@vacancy/testkit/until'
import type { Answer, Caller } from './control-plane.ts'

const END_STATES = ['built', 'failed', 'cancelled']
const MEBIBYTE = 1 << 20

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** The night `n` days from today. */
export const nightIn = (n: number): string => formatDay(dayOf(Date.now()) + n)

/** Two files: `hotels` properties in three segments, each with a package on `nights` nights. */
export function csvFiles(hotels: number, nights: number): { properties: Buffer; packages: Buffer } {
  const ids = Array.from({ length: hotels }, (_, i) => `hotel_${i}`)
  const days = Array.from({ length: nights }, (_, i) => nightIn(i + 1))
  const properties = ids.map((id, i) => `${id},segment_${i % 3},valley,hotel,standard,3,47.123456,11.123456,wifi\n`)
  const packages = ids.map((id, i) => days.map((day) => `${id},double,${day},${1 + (i % 9)},120,breakfast\n`).join(''))
  return { properties: Buffer.from(properties.join('')), packages: Buffer.from(packages.join('')) }
}

/** As the console computes it, over the whole file at once. */
function fingerprint(bytes: Buffer): string {
  const end = bytes.subarray(Math.max(0, bytes.length - MEBIBYTE))
  return sha256(Buffer.concat([Buffer.from(`${bytes.length}\n`), bytes.subarray(0, MEBIBYTE), end]))
}

export async function beginUpload(
  caller: Caller,
  kind: 'properties' | 'packages',
  bytes: Buffer,
  name = `${kind}.csv`,
): Promise<UploadView> {
  const body = { name, kind, bytes: bytes.length, fingerprint: fingerprint(bytes) }
  const { status, text, body: view } = await caller.call('POST', '/api/v1/uploads', body)
  if (status !== 201) throw new Error(text)
  return view as UploadView
}

export function sendChunk(
  url: string,
  caller: Caller,
  id: string,
  offset: number,
  chunk: Uint8Array,
  checksum = sha256(chunk),
): Promise<Answer> {
  const headers = { ...caller.headers, 'upload-offset': String(offset), 'x-chunk-sha256': checksum }
  return fetch(`${url}/api/v1/uploads/${id}`, { method: 'PATCH', headers, body: new Uint8Array(chunk) }).then(
    async (response) => {
      const text = await response.text()
      return { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
    },
  )
}

/** Sends all missing bytes in chunks of this size. */
export async function sendRest(
  url: string,
  caller: Caller,
  upload: UploadView,
  bytes: Buffer,
  chunkBytes: number = IMPORT_LIMITS.chunkBytes,
): Promise<void> {
  for (let at = upload.offset; at < bytes.length; at += chunkBytes) {
    const { status, text } = await sendChunk(url, caller, upload.id, at, bytes.subarray(at, at + chunkBytes))
    if (status !== 200) throw new Error(text)
  }
}

/** Uploads both files and starts an import with them. */
export async function beginImport(
  url: string,
  caller: Caller,
  files: { readonly properties: Buffer; readonly packages: Buffer },
  body: {
    readonly name?: string
    readonly shard?: string
    readonly from?: string
    readonly to?: string
    readonly codecs?: readonly string[]
    readonly priceDecimals?: number
  } = {},
): Promise<ImportView> {
  const properties = await beginUpload(caller, 'properties', files.properties)
  const packages = await beginUpload(caller, 'packages', files.packages)
  await sendRest(url, caller, properties, files.properties)
  await sendRest(url, caller, packages, files.packages)
  const ids = { properties: properties.id, packages: packages.id }
  const { status, text, ...made } = await caller.call('POST', '/api/v1/imports', {
    name: 'hotels',
    shard: 's1',
    ...body,
    ...ids,
  })
  if (status !== 201) throw new Error(text)
  return made.body as ImportView
}

/** Waits until an import has ended. */
export function importEnds(caller: Caller, id: string): Promise<ImportView> {
  return until('the import ends', async () => {
    const { body } = await caller.call('GET', `/api/v1/imports/${id}`)
    if (!END_STATES.includes(body.state)) throw new Error(JSON.stringify(body, undefined, 2))
    return body as ImportView
  })
}
