/**
 * CRC32C (Castagnoli, polynomial 0x1EDC6F41 as in RFC 3720 §12.1), eight bytes a step over eight tables
 * ("slicing-by-8", Kounavis and Berry 2005). The log's checksum; snapshots use the built-in `zlib.crc32`.
 */

const REVERSED_POLYNOMIAL = 0x82f63b78

/** Table k, byte b at k * 256 + b: the remainder of b followed by k zero bytes. */
const TABLES = createTables()

/**
 * @param seed checksum of what comes before: `crc32c(b, crc32c(a))` is the checksum of a and b together
 * @returns an unsigned number of 32 bits
 */
export function crc32c(bytes: Uint8Array, start: number, end: number, seed = 0): number {
  const t = TABLES
  let crc = ~seed
  let i = start
  // The indices are masked, so the loads need no `undefined`; the casts only say so.
  for (const stop = end - 7; i < stop; i += 8) {
    const low = crc ^ (bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24))
    crc =
      t[1792 + (low & 255)] ^
      t[1536 + ((low >>> 8) & 255)] ^
      t[1280 + ((low >>> 16) & 255)] ^
      t[1024 + (low >>> 24)] ^
      t[768 + bytes[i + 4]] ^
      t[512 + bytes[i + 5]] ^
      t[256 + bytes[i + 6]] ^
      t[bytes[i + 7]]
  }
  for (; i < end; i++) crc = t[(crc ^ bytes[i]) & 255] ^ (crc >>> 8)
  return ~crc >>> 0
}

function createTables(): Int32Array {
  const tables = new Int32Array(8 * 256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ REVERSED_POLYNOMIAL : crc >>> 1
    tables[byte] = crc
  }
  for (let k = 1; k < 8; k++) {
    for (let byte = 0; byte < 256; byte++) {
      const before = tables[(k - 1) * 256 + byte]
      tables[k * 256 + byte] = tables[before & 255] ^ (before >>> 8)
    }
  }
  return tables
}
