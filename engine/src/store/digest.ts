/**
 * The state digest: an order-independent sum of one hash per record, maintained as records change
 * (docs/design/consensus.md#apply).
 *
 * Two independent 32-bit lanes instead of one 64-bit sum, because JavaScript multiplies 32 bits without a BigInt.
 * Each lane is a sum modulo 2^32 over all records: add the hash of a new record, subtract the hash of a removed one.
 * The hashes depend only on names and ids, never on node-local numbers, so that replicas can be compared. The kernels
 * compute `packageHash` with the same steps. A change here changes the snapshot format.
 */

export type Lane = 0 | 1

const A = [0x9e3779b1, 0x27d4eb2f] as const
const B = [0x85ebca77, 0x165667b1] as const
const C = [0xc2b2ae3d, 0x2545f491] as const

/** Finalizer of MurmurHash3: every input bit affects every output bit. */
function finish(hash: number): number {
  let h = hash
  h ^= h >>> 16
  h = Math.imul(h, 0x85ebca6b)
  h ^= h >>> 13
  h = Math.imul(h, 0xc2b2ae35)
  h ^= h >>> 16
  return h >>> 0
}

function mixWord(hash: number, word: number, lane: Lane): number {
  const h = Math.imul(hash ^ word, B[lane])
  return h ^ (h >>> 15)
}

/** Hash of a name's UTF-8 bytes: FNV-1a over the bytes, finished. */
export function nameHash(lane: Lane, bytes: Uint8Array, start: number, end: number): number {
  let h = A[lane] | 0
  for (let i = start; i < end; i++) h = Math.imul(h ^ bytes[i], 0x01000193)
  return finish(h)
}

function mixId(hash: number, id: Uint8Array, start: number, lane: Lane): number {
  let h = hash
  for (let i = start; i < start + 16; i += 4) {
    const word = id[i] | (id[i + 1] << 8) | (id[i + 2] << 16) | (id[i + 3] << 24)
    h = mixWord(h, word, lane)
  }
  return h
}

/**
 * Key of one row: a property and a room type.
 *
 * @param id 16 packed bytes at `start`
 * @param roomTypeHash `nameHash` of the room type in the same lane
 */
export function rowKey(lane: Lane, id: Uint8Array, start: number, roomTypeHash: number): number {
  return finish(mixId(roomTypeHash, id, start, lane))
}

/** Hash of one package; 0 for the empty word, which is no record. `day` is a day number, `lo` and `hi` halves of the word. */
export function packageHash(lane: Lane, key: number, day: number, lo: number, hi: number): number {
  if ((lo | hi) === 0) return 0
  let h = Math.imul(key ^ lo, A[lane])
  h ^= h >>> 15
  h = Math.imul((h + hi) | 0, B[lane])
  h ^= h >>> 13
  h = Math.imul((h + day) | 0, C[lane])
  h ^= h >>> 16
  return h >>> 0
}

/** Hash of the fact that a property has a room type, which outlives its last package. */
export function roomHash(lane: Lane, key: number): number {
  return finish((key + C[lane]) | 0)
}

/** The inputs of a property's hash. Name hashes are of the same lane as the property's. */
export type PropertyHashInput = {
  readonly id: Uint8Array
  readonly idStart: number
  readonly segmentHash: number
  readonly areaHash: number
  readonly typeHash: number
  readonly categoryHash: number
  readonly stars: number
  readonly latitude: number
  readonly longitude: number
  readonly amenityHashes: readonly number[]
}

const float = new Float64Array(1)
const floatWords = new Uint32Array(float.buffer)

/** Hash of one property with all its attributes, independent of the order of its amenities. */
export function propertyHash(lane: Lane, property: PropertyHashInput): number {
  let h = mixId(C[lane] | 0, property.id, property.idStart, lane)
  h = mixWord(h, property.segmentHash, lane)
  h = mixWord(h, property.areaHash, lane)
  h = mixWord(h, property.typeHash, lane)
  h = mixWord(h, property.categoryHash, lane)
  h = mixWord(h, property.stars, lane)
  for (const degrees of [property.latitude, property.longitude]) {
    // Minus zero equals zero for every reader, so it must not differ here.
    float[0] = degrees === 0 ? 0 : degrees
    h = mixWord(h, floatWords[0], lane)
    h = mixWord(h, floatWords[1], lane)
  }
  let amenities = 0
  for (const hash of property.amenityHashes) amenities = (amenities + Math.imul(hash ^ A[lane], B[lane])) | 0
  return finish(mixWord(h, amenities, lane))
}

/** Hexadecimal, as shown to operators. */
export function digestText({ lo, hi }: { readonly lo: number; readonly hi: number }): string {
  return `${hi.toString(16)}-${lo.toString(16)}`
}
