/**
 * The layout of the shared memory of an import, for the kernel (kernel.as.ts) and the threads.
 *
 *   0        header        u32 cells, HEADER
 *   BASE     set once      codec names, property ids, property slots, room counts, one context per thread
 *   base     grows         room types, rows, chunks, slot tables; allocated upwards, never freed during a pass
 *
 * A package is found by property and room type → row → chunk of 16 nights → word. Each is created by the
 * first thread that needs it, with one compare-and-swap. Nothing moves while threads read lines.
 *
 *   slots    8 bytes: address of the record (0 = free) · tag: hash | 1, or 0 until its writer has stored it.
 *            Open addressing with linear steps; slot = hash >>> shift
 *   room     u32 hash · u32 length · u32 rank · u32 unused · u32 name hash of lane 0, lane 1 · u64 unused · text,
 *            padded with zeros to a multiple of 16. Its address is its number until ranks are given
 *   row      16 bytes property id · u32 room address · u32 property ordinal · u32 hash · u32 base ·
 *            u32 chunk address for each 16 nights of the window (0 = none yet); rounded up to cache lines
 *   chunk    16 words of 8 bytes (word: store/layout.ts); all zero = no package
 *
 * Chunk k of a row begins with night base + 16 k, counted from the first day of the window and around its end. The base
 * is the night with which the row began, mostly its first: so 60 nights take 4 chunks, not 4 or 5.
 *
 * Words are plain loads and stores: two threads that write the same night at the same moment may both see it empty.
 * This is detected, because fewer words are counted at the end than packages were accepted (import.ts).
 */

export const PAGE_BYTES = 65536
/** One page less than 4 GiB, so that every address and every end fits in 32 bits. */
export const MEMORY_BYTES_MAX = 65535 * PAGE_BYTES

/** Bytes that vectors may read behind the end of lines. */
export const PADDING_BYTES = 64

/** u32 cells of the header. Cells that threads change while reading are on their own cache lines, from cell 32 on. */
export const HEADER = {
  limit: 1,
  rowSlots: 2,
  rowShift: 3,
  roomSlots: 4,
  roomShift: 5,
  propertySlots: 6,
  propertyShift: 7,
  propertyIds: 8,
  propertyRooms: 9,
  firstDay: 10,
  days: 11,
  codecNames: 12,
  codecCount: 13,
  /** 1: words hold the line number instead of the package, so that an error can name the first line. */
  explain: 14,
  /** 1: a date outside the window is an error. */
  strictWindow: 15,
  /** Bytes of one row. */
  rowBytes: 16,
  /** Smallest units in a whole number of the price column: 100 in a file with two decimals. */
  priceScale: 17,
  /** Next free byte. */
  top: 32,
  rows: 48,
  rooms: 64,
  failed: 80,
  /** Working threads << 16 | threads that wait for larger slot tables. */
  threads: 96,
  growths: 112,
  nextRange: 128,
  nextTask: 144,
} as const
export const HEADER_BYTES = 1024

/** Byte offsets in a thread's context. */
export const CONTEXT = {
  /** Where `scan` stopped: the start of a line, or the end. */
  cursor: 0,
  blockNext: 4,
  blockEnd: 8,
  spareRow: 12,
  spareChunk: 16,
  roomLength: 20,
  featureTextNext: 24,
  /** f64: packages accepted. */
  accepted: 32,
  /** f64: packages outside the window. */
  skipped: 40,
  /** f64: lines read so far. */
  lines: 48,
  /** f64: line of the first package, after `duplicate` in an explaining pass. */
  firstLine: 56,
  /** 16 bytes: packed property id of the current line. */
  id: 64,
  /** f64: bytes of the file that this thread has processed. */
  bytesDone: 80,
  /** Room type of the current line for `add`, up to 255 bytes and padding. */
  room: 96,
  /** 16 bytes: property id of the compiled kernel's last lookup. */
  propertyId: 368,
  /** Lines of a batch: 32 of 64 bytes, for the compiled kernel only. */
  batch: 384,
  /** Feature texts seen before: 16 bytes each, u32 hash · u32 address of the text · u32 length · u32 mask. */
  features: 384 + 32 * 64,
} as const
export const FEATURE_ENTRIES = 8192
export const FEATURE_TEXT_AT = CONTEXT.features + FEATURE_ENTRIES * 16
export const FEATURE_TEXT_BYTES = 512 * 1024
export const CONTEXT_BYTES = FEATURE_TEXT_AT + FEATURE_TEXT_BYTES

/** u32 cells of a room record. */
export const ROOM = { hash: 0, length: 1, rank: 2, nameHash0: 4, nameHash1: 5 } as const
export const ROOM_TEXT_AT = 32

/** u32 cells of a row record. */
export const ROW = { id: 0, room: 4, property: 5, hash: 6, base: 7, chunks: 8 } as const

export const CHUNK_NIGHTS = 16
export const CHUNK_BYTES = CHUNK_NIGHTS * 8

/** Nights of the longest window: today to today plus one calendar year, both included, in a leap year. */
export const WINDOW_DAYS_MAX = 367

/** One codec name: u32 length, at +16 its bytes, padded with zeros. */
export const CODEC_BYTES = 96

/** Allocation unit of threads. */
export const BLOCK_BYTES = 256 * 1024

/** Rows of one census task; one result is RESULT_BYTES. */
export const TASK_ROWS = 4096
/** u32 firstRow (place in the row list) · u32 count. */
export const TASK_BYTES = 8
/** u32 packages · u32 digest of lane 0, lane 1, words not included · u32 unused · 384 bits: some row has night d. */
export const RESULT_BYTES = 80

/** Why `scan` stopped at the cursor, and the result of `add`. */
export const STOP = {
  /** Everything up to the end is read; `add`: the package is stored. */
  done: 0,
  /** This line needs the slow path. */
  odd: 1,
  /** A slot table is full: all threads must meet. */
  crowded: 2,
  memoryFull: 3,
  duplicate: 4,
  tooManyRooms: 5,
  unknownProperty: 6,
  outside: 7,
} as const
export type Stop = (typeof STOP)[keyof typeof STOP]

/** Hash of a packed property id as four u32; the slots of properties are built here and read by the kernel. */
export function hashId(w0: number, w1: number, w2: number, w3: number): number {
  const a = Math.imul(w0, 0x9e3779b1) ^ Math.imul(w1, 0x85ebca77)
  const b = Math.imul(w2, 0xc2b2ae3d) ^ Math.imul(w3, 0x27d4eb2f)
  return finishHash((a ^ (a >>> 15)) + Math.imul(b ^ (b >>> 13), 0x165667b1))
}

/** Finalizer of MurmurHash3. */
function finishHash(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** All arguments but counts are addresses in the memory of the kernel (layout.ts). */
export type ImportKernel = {
  /** Reads the whole lines of [start, end), and up to PADDING_BYTES beyond. Stops at context.cursor. */
  scan(context: number, start: number, end: number): Stop
  /** Adds one package: id and room type are in the context. `line` is the word's content in an explaining pass. */
  add(context: number, night: number, lo: number, hi: number, line: number): Stop
  /** From now on the bytes from the rate features to the newline mean `mask`. */
  remember(context: number, text: number, length: number, mask: number): void
  /** Packages, nights and digest of the rows of one table, without their words (RESULT_BYTES at `result`). */
  census(list: number, count: number, result: number): void
  /** Words of the `nights` (bits) among 16, row by row, into planes `stride` bytes apart. */
  gather(
    context: number,
    list: number,
    count: number,
    index: number,
    nights: number,
    target: number,
    stride: number,
  ): void
}
