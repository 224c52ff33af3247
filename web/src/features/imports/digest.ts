/** SHA-256 of chunks and files. Not `crypto.subtle`, which browsers do not offer to a page without TLS. */
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'

const MEBIBYTE = 1 << 20
/** Hashed at a time, in a millisecond or two, so that the page stays responsive. */
const STEP_BYTES = 256 << 10

/** In hexadecimal. */
export async function digestOf(blob: Blob): Promise<string> {
  const digest = sha256.create()
  for (let at = 0; at < blob.size; at += STEP_BYTES) {
    digest.update(new Uint8Array(await blob.slice(at, at + STEP_BYTES).arrayBuffer()))
  }
  return bytesToHex(digest.digest())
}

/** Of its size, first and last MiB, as in the control plane (server/src/imports/uploads.ts). */
export function fingerprintOf(file: File): Promise<string> {
  const last = file.slice(Math.max(0, file.size - MEBIBYTE))
  return digestOf(new Blob([`${file.size}\n`, file.slice(0, MEBIBYTE), last]))
}
