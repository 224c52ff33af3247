/**
 * A snapshot as one file that can be copied as a whole: what build-snapshot makes, a node starts from and export writes.
 *
 *   offset  size  field
 *   0       8     magic "VACSEED\n"
 *   8       4     format version
 *   12      4     bytes of the manifest
 *   16      8     bytes of the file
 *   24      4     CRC-32 of bytes 0 … 23
 *   28      4     zero
 *   32      m     manifest (format.ts)
 *   32+m    n     chunks in the order of the manifest
 *   end−48  8     magic "VACEND.\n"
 *   end−40  8     bytes of the file
 *   end−32  32    SHA-256 of header and manifest
 *
 * The manifest has the digests of the chunks, so header, manifest, chunks and trailer leave no byte unchecked.
 */

import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import { assert, VacancyError } from '@vacancy/shared'
import {
  type Disk,
  diskFailed,
  isDiskFull,
  readFully,
  renameFile,
  syncFile,
  syncFolder,
  unlinkFile,
  writeFully,
} from '../env.ts'
import { damaged } from './columns.ts'
import {
  chunkBytesOf,
  DIGEST_BYTES,
  decodeManifest,
  equalBytes,
  FORMAT_VERSION,
  MANIFEST_BYTES_MAX,
  type Manifest,
  sha256,
} from './format.ts'

export const SEED_HEADER_BYTES = 32
const SEED_TRAILER_BYTES = 16 + DIGEST_BYTES
const MAGIC = new TextEncoder().encode('VACSEED\n')
const END_MAGIC = new TextEncoder().encode('VACEND.\n')

export type SeedWriter = {
  /** Appends the next chunk. */
  put(chunk: Uint8Array): void
  /** Writes manifest and trailer and renames the file. @returns bytes of the file */
  finish(manifest: Uint8Array): number
  /** Removes the unfinished file; after `finish` it has no effect. */
  abandon(): void
}

/** Creates a file whose manifest will have `manifestBytes` bytes. It has a temporary name until `finish`. */
export function beginSeed(disk: Disk, path: string, manifestBytes: number): SeedWriter {
  const temporary = `${path}.tmp`
  if (disk.stat(temporary)) unlinkFile(disk, temporary)
  const file = disk.open(temporary, 'create')
  const start = SEED_HEADER_BYTES + manifestBytes
  let length = start
  let isOpen = true
  const write = (bytes: Uint8Array, position: number): void => {
    try {
      writeFully(disk, file, bytes, 0, bytes.length, position)
    } catch (error) {
      throw isDiskFull(error) ? error : diskFailed('write', temporary, error)
    }
  }
  return {
    put(chunk) {
      write(chunk, length)
      length += chunk.length
    },
    finish(manifest) {
      assert(manifest.length === manifestBytes, 'the manifest has its reserved length')
      const bytes = length + SEED_TRAILER_BYTES
      const head = new Uint8Array(start)
      const view = new DataView(head.buffer)
      head.set(MAGIC)
      view.setUint32(8, FORMAT_VERSION, true)
      view.setUint32(12, manifest.length, true)
      view.setBigUint64(16, BigInt(bytes), true)
      view.setUint32(24, crc32(head.subarray(0, 24)), true)
      head.set(manifest, SEED_HEADER_BYTES)
      write(head, 0)
      const trailer = new Uint8Array(SEED_TRAILER_BYTES)
      trailer.set(END_MAGIC)
      new DataView(trailer.buffer).setBigUint64(8, BigInt(bytes), true)
      trailer.set(sha256(head), 16)
      write(trailer, length)
      syncFile(disk, file, temporary)
      disk.close(file)
      isOpen = false
      renameFile(disk, temporary, path)
      syncFolder(disk, dirname(path))
      return bytes
    },
    abandon() {
      if (!isOpen) return
      isOpen = false
      disk.close(file)
      unlinkFile(disk, temporary)
    },
  }
}

/**
 * Reads and verifies a seed file except the chunks.
 *
 * @returns the manifest and the offset of the first chunk
 * @throws corrupt_data; data_conflict for an unknown format
 */
export function readSeedHead(disk: Disk, path: string): { manifest: Manifest; chunksStart: number; bytes: number } {
  const stat = disk.stat(path)
  if (!stat || stat.isDirectory) throw damaged(path, 0, 'the file does not exist')
  const file = disk.open(path, 'read')
  try {
    const header = readAt(disk, file, path, 0, SEED_HEADER_BYTES)
    const view = new DataView(header.buffer)
    if (!equalBytes(header.subarray(0, 8), MAGIC)) throw damaged(path, 0, 'this is not a snapshot file')
    if (crc32(header.subarray(0, 24)) !== view.getUint32(24, true)) {
      throw damaged(path, 24, 'the checksum of the header differs')
    }
    if (view.getUint32(28, true) !== 0) throw damaged(path, 28, 'the header does not end with zeros')
    const version = view.getUint32(8, true)
    if (version !== FORMAT_VERSION) {
      throw new VacancyError('data_conflict', {
        reason: `${path} has format version ${version}, which this version of Vacancy cannot read.`,
      })
    }
    const manifestBytes = view.getUint32(12, true)
    const bytes = Number(view.getBigUint64(16, true))
    if (bytes !== stat.bytes)
      throw damaged(path, 16, `the file has ${stat.bytes} bytes, expected ${bytes} by its header`)
    const chunksStart = SEED_HEADER_BYTES + manifestBytes
    if (manifestBytes > MANIFEST_BYTES_MAX || chunksStart + SEED_TRAILER_BYTES > bytes) {
      throw damaged(path, 12, `a manifest of ${manifestBytes} bytes does not fit the file`)
    }
    const head = readAt(disk, file, path, 0, chunksStart)
    const trailer = readAt(disk, file, path, bytes - SEED_TRAILER_BYTES, SEED_TRAILER_BYTES)
    checkTrailer(path, trailer, bytes, sha256(head))
    const manifest = decodeManifest(head.subarray(SEED_HEADER_BYTES), path, SEED_HEADER_BYTES)
    if (chunksStart + chunkBytesOf(manifest) + SEED_TRAILER_BYTES !== bytes) {
      throw damaged(path, chunksStart, 'the lengths of the chunks do not add up to that of the file')
    }
    return { manifest, chunksStart, bytes }
  } finally {
    disk.close(file)
  }
}

function checkTrailer(path: string, trailer: Uint8Array, bytes: number, digest: Uint8Array): void {
  const at = bytes - SEED_TRAILER_BYTES
  if (!equalBytes(trailer.subarray(0, 8), END_MAGIC)) throw damaged(path, at, 'the file does not end with a trailer')
  if (Number(new DataView(trailer.buffer).getBigUint64(8, true)) !== bytes) {
    throw damaged(path, at + 8, 'the trailer has a different length')
  }
  if (!equalBytes(trailer.subarray(16), digest)) throw damaged(path, at + 16, 'the digest of the head differs')
}

function readAt(disk: Disk, file: number, path: string, position: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length)
  const read = readFully(disk, file, bytes, 0, length, position)
  if (read !== length) throw damaged(path, position + read, 'the file ends too early')
  return bytes
}
