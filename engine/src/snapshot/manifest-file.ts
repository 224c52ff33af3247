/**
 * The file MANIFEST of a snapshot folder: the manifest and, behind it, a note on how this node came by it.
 *
 *   manifest (format.ts) · u32 bytes of the note · note, JSON · u32 CRC-32 of the four bytes and the note
 *
 * The note has the times that must not be in the manifest, which is the same on all nodes.
 */

import { crc32 } from 'node:zlib'
import {
  createFieldReader,
  createFieldWriter,
  damaged,
  expectEnd,
  putBytes,
  putU32,
  takeBytes,
  takeU32,
  written,
} from './columns.ts'
import { decodeManifest, MANIFEST_BYTES_MAX, type Manifest, manifestLength } from './format.ts'

export type Note = { readonly createdAtMs: number; readonly durationMs: number; readonly origin: string }

export const MANIFEST_FILE_BYTES_MAX = MANIFEST_BYTES_MAX + 4096

export function encodeManifestFile(manifest: Uint8Array, note: Note): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(note))
  const tail = createFieldWriter()
  putU32(tail, text.length)
  putBytes(tail, text)
  putU32(tail, crc32(written(tail)))
  const file = new Uint8Array(manifest.length + tail.length)
  file.set(manifest)
  file.set(written(tail), manifest.length)
  return file
}

export function decodeManifestFile(bytes: Uint8Array, path: string): { manifest: Manifest; note: Note } {
  const length = manifestLength(bytes, path)
  if (length > bytes.length) throw damaged(path, bytes.length, 'the manifest ends too early')
  const manifest = decodeManifest(bytes.subarray(0, length), path)
  const tail = bytes.subarray(length)
  const reader = createFieldReader(tail, path, length)
  const text = takeBytes(reader, takeU32(reader))
  const checked = crc32(tail.subarray(0, reader.at))
  if (takeU32(reader) !== checked) throw damaged(path, length, 'the checksum of the note differs')
  expectEnd(reader)
  // Its checksum matches, so this program wrote it.
  return { manifest, note: JSON.parse(new TextDecoder().decode(text)) as Note }
}
