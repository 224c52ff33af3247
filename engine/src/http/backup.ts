/**
 * The parts of a snapshot that `vacancy backup` fetches from a running node: the manifest of its newest snapshot,
 * without the members of the shard, and its chunks by digest. Writing a snapshot does not block writes.
 */

import { type HttpAnswer, HttpError } from '@vacancy/shared/node'
import { type Disk, readFully, realDisk } from '../env.ts'
import { CHUNK_BYTES_MAX, encodeManifest, hex } from '../snapshot/format.ts'
import { type PlacedChunk, placeChunks, readChunk, type SnapshotHead } from '../snapshot/load.ts'
import { findSnapshots } from '../snapshot/snapshot.ts'
import { chunksFolder } from '../snapshot/write.ts'
import type { Query, Route } from './listener.ts'

export const BACKUP_PATHS = { manifest: '/backup/manifest', chunk: '/backup/chunk' } as const

export function backupRoutes(dataDir: string): Route[] {
  const route = (path: string, query: readonly string[], answer: Route['answer']): Route => ({
    method: 'GET',
    path,
    query,
    access: 'admin',
    takes: 'anything',
    answer,
  })
  return [
    route(BACKUP_PATHS.manifest, [], () =>
      binary(encodeManifest({ ...newest(dataDir).manifest, membership: undefined })),
    ),
    route(BACKUP_PATHS.chunk, ['digest'], (query) => binary(chunk(dataDir, query))),
  ]
}

const binary = (body: Uint8Array): HttpAnswer => ({
  status: 200,
  headers: { 'Content-Type': 'application/octet-stream' },
  body,
})

function newest(dataDir: string): SnapshotHead {
  const found = findSnapshots(realDisk, dataDir).find(({ state }) => state === 'readable')
  if (found?.state !== 'readable') throw new HttpError(404, 'there is no snapshot yet')
  return found.head
}

function chunk(dataDir: string, { parameters }: Query): Uint8Array {
  const digest = parameters.get('digest') ?? ''
  if (!/^[0-9a-f]{64}$/.test(digest)) throw new HttpError(400, 'digest must have 64 lower-case hexadecimal digits')
  return inFolder(realDisk, `${chunksFolder(dataDir)}/${digest}.chk`) ?? inSeed(dataDir, digest)
}

function inFolder(disk: Disk, path: string): Uint8Array | undefined {
  const stat = disk.stat(path)
  if (!stat || stat.isDirectory || stat.bytes > CHUNK_BYTES_MAX) return undefined
  const file = disk.open(path, 'read')
  try {
    const bytes = new Uint8Array(stat.bytes)
    return bytes.subarray(0, readFully(disk, file, bytes, 0, bytes.length, 0))
  } finally {
    disk.close(file)
  }
}

/** A node without a snapshot of its own has its founding snapshot, as one file. */
function inSeed(dataDir: string, digest: string): Uint8Array {
  const head = newest(dataDir)
  const found = placeChunks(head).find(({ part }: PlacedChunk) => hex(part.digest) === digest)
  if (!found) throw new HttpError(404, 'no snapshot of this node has such a chunk')
  return readChunk(realDisk, found, head.places.form)
}
