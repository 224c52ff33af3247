/**
 * Where every column of the store lies in shared memory (performance.md §2). No offset number appears anywhere else.
 *
 * One shared memory, cut like this:
 *
 *   control   page 0         words that threads talk through; never part of a snapshot
 *   state     pages 1–2      roots, counters and digests; part of a snapshot
 *   pages     8 B a page     epoch and spare copy of each page, for snapshots (cow.ts)
 *   scratch   per reader     parameter block and reply slabs of a serving thread (given out at start)
 *   records   grows upward   properties, names, tables, sessions: copied whole by a snapshot
 *   planes    grows downward words, row columns and bitmaps: read plane by plane by a snapshot
 *
 * Addresses are byte offsets, below 4 GiB, kept as unsigned numbers. Everything little-endian.
 * Writer of all but control and scratch: the replica thread. Readers: any thread, under version.ts.
 */

export const PAGE_BYTES = 8192
export const PAGE_SHIFT = 13

/** Control words, as indexes of 32-bit cells from address 0. */
export const CONTROL = {
  magic: 0,
  layoutVersion: 1,
  memoryPages: 2,
  /** Epoch of memory reclamation: readers publish the one they entered in (version.ts). */
  reclaimEpoch: 3,
  /** Epoch of the snapshot being taken; a page whose epoch equals it was saved or is new. */
  snapshotEpoch: 4,
  /** 1 while a snapshot reads the pages. */
  snapshotActive: 5,
  /** Applied log index, low and high half; readers use appliedIndex(). */
  appliedLow: 6,
  appliedHigh: 7,
  /** Bytes that neither region has taken, in units of 4 KiB. */
  freeUnits: 8,
  /** 1 when growing writes must be refused: too little memory is left. */
  memoryFull: 9,
  /** Bytes in use, in units of 4 KiB: records, planes. */
  recordUnits: 10,
  planeUnits: 11,
  /** First address of the scratch area and bytes of one reader's part. */
  scratchStart: 12,
  scratchBytes: 13,
  readers: 14,
  /** Even; odd while the catalog changes in more than one word (names of deleted properties, moves). */
  catalogVersion: 15,
  /** 1 while another state takes the place of this one: nobody reads (version.ts). */
  isClosed: 16,
  /** 1 from a write that would have needed more memory than there was until there is more than there was then. */
  memoryLacked: 17,
} as const

/**
 * One cache line a reader, so that entering and leaving does not disturb the others: the epoch it entered in, and
 * whether it is at a request.
 */
export const READER_SLOT_START = 1024
export const READER_SLOT_BYTES = 64
export const READERS_MAX = 96
export const READER_SLOT = { epoch: 0, isBusy: 1 } as const

export const STATE_START = PAGE_BYTES
export const STATE_BYTES = 2 * PAGE_BYTES

/** State words, as indexes of 32-bit cells from STATE_START. */
export const STATE = {
  propertySlots: 0,
  propertyMask: 1,
  propertyCount: 2,
  propertySlotsUsed: 3,
  segmentDirectory: 4,
  segmentCapacity: 5,
  packagesLow: 6,
  packagesHigh: 7,
  /** Digest lanes of properties, rooms and sessions; packages are in the slots. */
  digestLow: 8,
  digestHigh: 9,
  lastMaintenanceDay: 10,
  /** Days before this one are gone for every reader, whether or not their planes were freed. */
  droppedBefore: 11,
  sessionHead: 12,
  sessionTail: 13,
  sessionCount: 14,
  sessionBytes: 15,
  sessionBytesMax: 16,
  roomTypesUsed: 17,
  genesis: 18,
  featureLevel: 22,
  /** Latest time in the log, milliseconds: it never goes back (consensus.md C2). */
  timeLow: 23,
  timeHigh: 24,
  /** Six dictionaries of DICTIONARY.cells each. */
  dictionaries: 32,
  /** One record a day slot: day, packages, digest low, digest high. */
  slots: 128,
} as const

/** Names by kind. The number of a name is this node's own and never leaves it. */
export const NAMES = { segment: 0, area: 1, type: 2, category: 3, roomType: 4, amenity: 5 } as const
export type NameKind = (typeof NAMES)[keyof typeof NAMES]

/** A dictionary: entries[number] = { text address, hash lane 0, hash lane 1, spare }, slots[] = number + 1. */
export const DICTIONARY = { cells: 8, count: 0, entries: 1, capacity: 2, slots: 3, mask: 4, textBytes: 5 } as const
export const DICTIONARY_ENTRY_BYTES = 16

/** The ring of day slots: the 367 visible days and 17 whose clearing may be late. */
export const DAY_SLOTS = 384
export const SLOT = { cells: 4, day: 0, packages: 1, digestLow: 2, digestHigh: 3 } as const

/** One property, 88 bytes. Its address is its number. */
export const PROPERTY = {
  bytes: 88,
  id: 0,
  segment: 16,
  area: 20,
  type: 24,
  category: 28,
  stars: 32,
  /** Address of { count, amenity numbers ascending }, 0 for none. */
  amenities: 36,
  /** Address of a room list, 0 for none. */
  rooms: 40,
  /** Row in the property table of its segment. */
  row: 44,
  latitude: 48,
  longitude: 56,
  /** The position as a unit vector, so that a distance needs no trigonometry (kernel). */
  x: 64,
  y: 72,
  z: 80,
} as const

/** Room types of a property in order of creation: { capacity, count, (room type, table, row) … }. */
export const ROOMS = { headerBytes: 8, capacity: 0, count: 4, entryBytes: 12, roomType: 0, table: 4, row: 8 } as const

/** One segment, 48 bytes; found through the segment directory by the number of its name. */
export const SEGMENT = {
  bytes: 48,
  name: 0,
  propertyTable: 4,
  /** Tables by room type: slots of (room type + 1, table address). */
  tableSlots: 8,
  tableMask: 12,
  tableCount: 16,
  packages: 20,
  properties: 24,
} as const

/**
 * One table: the rows of one segment and room type, or all properties of a segment (roomType = PROPERTY_TABLE).
 *
 *   word of (day, row) = plane(day) + PLANE.words + row * 8
 *
 *   bits    holds                            empty word
 *   0–7     rooms left, 0–255                0
 *   8–31    features, bit 8 + i = codecs[i]  0
 *   32–63   price, inverted (~price)         0: no package, no price limit lets it through
 *
 * The rows of a night lie side by side: a stay of n nights reads n planes at the same row. A dead row keeps its place,
 * with rowProperties[row] = 0 and empty words, until the table is rebuilt; new rows go to the end. So the order of the
 * live rows depends on the log alone and is equal on all replicas.
 */
export const TABLE = {
  bytes: 128,
  version: 0,
  segment: 4,
  roomType: 8,
  rowCount: 12,
  capacity: 16,
  /** u32 a row: address of the property, 0 for a dead row. */
  rowProperties: 20,
  /** 16 bytes a row: packed property id, as replies carry it. */
  rowIds: 24,
  /** Slots by value (ATTRIBUTE_SLOT); 0 when the table is too small for bitmaps. */
  attributeSlots: 28,
  attributeMask: 32,
  bitmaps: 36,
  bitmapCount: 40,
  bitmapCapacity: 44,
  liveRows: 48,
  packages: 52,
  /** Snapshot epoch of the last change, so that an untouched table need not be encoded again. */
  changedEpoch: 56,
  /** Rows that were appended since the rows were last in order. */
  unordered: 60,
  /** Bit a: attribute a has more values than bitmaps; a value without one is checked row by row. */
  overflowed: 64,
  /** Number of distinct values with a bitmap, u16 an attribute. */
  attributeCounts: 68,
  /** Twelve leaves of 32 plane addresses. */
  days: 80,
} as const
export const DAY_LEAVES = 12
export const DAYS_PER_LEAF = 32
export const LEAF_BYTES = DAYS_PER_LEAF * 4
export const PROPERTY_TABLE = 0xffffffff

/** A plane: header, words, then one bit a word that is set while rooms are left. */
export const PLANE = { day: 0, packages: 4, digestLow: 8, digestHigh: 12, words: 16 } as const

/** Attributes that have bitmaps, and how many values of each; more are checked row by row. */
export const ATTRIBUTE = { alive: 0, type: 1, category: 2, stars: 3, area: 4, amenity: 5 } as const
export type Attribute = (typeof ATTRIBUTE)[keyof typeof ATTRIBUTE]
export const ATTRIBUTE_VALUES_MAX = [1, 64, 64, 5, 64, 256] as const

/** Where a value of an attribute has its bitmap. Rows lie ordered by attributes, so most bits of it are neighbours. */
export const ATTRIBUTE_SLOT = {
  bytes: 16,
  /** Key of attribute and value + 1; 0 in a free slot. */
  key: 0,
  bitmap: 4,
  /** All bits that are set lie in [firstRow, endRow); bits that were cleared do not narrow it. */
  firstRow: 8,
  endRow: 12,
} as const

/** Tables up to this many rows have no bitmaps: checking each row's property costs less than finding them. */
export const BITMAP_ROWS_MIN = 129

/** One session of request keys, 64 bytes, in a list ordered by last use. */
export const SESSION = {
  bytes: 64,
  key: 0,
  lastUsedMs: 16,
  /** Greatest request number that was executed. */
  highest: 24,
  /** Numbers below this are closed: too old. */
  closedBelow: 32,
  results: 40,
  capacity: 44,
  previous: 48,
  next: 52,
} as const
export const SESSION_RESULT = {
  bytes: 24,
  numberLow: 0,
  outcome: 4,
  value: 5,
  used: 6,
  digestLow: 8,
  digestHigh: 12,
  index: 16,
} as const
export const SESSION_WINDOW = 256

export function bitmapBytes(capacity: number): number {
  return ((capacity + 127) >>> 7) << 4
}

/** Bytes of one plane of `capacity` rows. */
export function planeBytes(capacity: number): number {
  return PLANE.words + capacity * 8 + bitmapBytes(capacity)
}

/** Rows a table makes room for when it must hold `rows`: 8, 32, 128, then steps of 128 that grow with the table. */
export function capacityFor(rows: number): number {
  if (rows <= 8) return 8
  if (rows <= 32) return 32
  if (rows <= 128) return 128
  return (rows + 127) & ~127
}

/** Capacity of a table that grows row by row: a sixteenth more, so that filling one costs a bounded number of copies. */
export function grownCapacity(capacity: number): number {
  return capacityFor(capacity + 1 + (capacity >>> 4))
}
