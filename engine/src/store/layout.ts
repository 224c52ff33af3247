/**
 * The location of every column of the store in shared memory (docs/design/store.md#tables-and-planes). All offsets
 * are defined here.
 *
 * Layout of the shared memory:
 *
 *   control   page 0         communication between threads; never part of a snapshot
 *   state     pages 1–2      roots, counters and digests; part of a snapshot
 *   pages     8 B per page   epoch and spare copy of each page, for snapshots (cow.ts)
 *   scratch   per reader     parameter block and reply slabs of a serving thread (assigned at startup)
 *   records   grows upward   properties, names, tables, sessions: copied whole by a snapshot
 *   planes    grows downward words, row columns and bitmaps: read plane by plane by a snapshot
 *   spare     at the end     copies of pages that change during a snapshot
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
  /** Epoch of the current snapshot. A page with this epoch was saved or is new. */
  snapshotEpoch: 4,
  /** 1 while a snapshot reads the pages. */
  snapshotActive: 5,
  /** Applied index as clients see it, low and high half. Readers use appliedIndex(). */
  appliedLow: 6,
  appliedHigh: 7,
  /** Bytes of the gap between the regions, in units of 4 KiB. */
  freeUnits: 8,
  /** 1 when growing writes must be refused because too little memory is left. */
  memoryFull: 9,
  /** Bytes in use, in units of 4 KiB: records, planes. */
  recordUnits: 10,
  planeUnits: 11,
  /** First address of the scratch area, and bytes per reader. */
  scratchStart: 12,
  scratchBytes: 13,
  readers: 14,
  /** Even; odd while several words of the catalog change (names of deleted properties, moves). */
  catalogVersion: 15,
  /** 1 while the state is being replaced by another one: no reader may enter (version.ts). */
  isClosed: 16,
  /** 1 from a write that was refused for lack of memory until more memory is free than at that time. */
  memoryLacked: 17,
  /** 1 while updates wait for the snapshot in progress. */
  snapshotHurry: 18,
  /** Counts replacements of the state: addresses found in one state are invalid in the next. */
  generation: 19,
  /** Day of shard time, for serving threads; 0 while unknown. */
  today: 20,
} as const

/**
 * One cache line per reader, so that readers do not slow each other down: the epoch it entered in, and whether it is
 * processing a request.
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
  /** Digest lanes of properties, rooms and sessions. Those of packages are in the day slots. */
  digestLow: 8,
  digestHigh: 9,
  lastMaintenanceDay: 10,
  /** Days before this one are invisible to every reader, whether or not their planes were freed. */
  droppedBefore: 11,
  sessionHead: 12,
  sessionTail: 13,
  sessionCount: 14,
  sessionBytes: 15,
  sessionBytesMax: 16,
  roomTypesUsed: 17,
  genesis: 18,
  featureLevel: 22,
  /** Latest time in the log, in milliseconds. Never decreases (docs/design/consensus.md#shard-time). */
  timeLow: 23,
  timeHigh: 24,
  /** Lists of the ledger (stays.ts): settled and held stays, nights with holds or debt, properties; and stays in all. */
  settledHead: 25,
  settledTail: 26,
  heldHead: 27,
  heldTail: 28,
  nightHead: 29,
  stayPropertyHead: 30,
  stayCount: 31,
  /** Six dictionaries of DICTIONARY.cells each. */
  dictionaries: 32,
  /**
   * REPLICATED_CELLS cells added by feature level 1. A snapshot includes them all, so a new replicated word only
   * needs a name here.
   */
  replicated: 80,
  /** Smallest memory budget of the voters, in bytes; 0 before the first is logged (charge.ts). */
  memoryBudgetLow: 80,
  memoryBudgetHigh: 81,
  /** Settings of stays (stay-settings.ts); 0 = the default. */
  staysBytesMax: 82,
  holdsMax: 83,
  holdsMaxPerSource: 84,
  /** From this index on the ledger knows all bookings (as-of.ts). */
  knownFromLow: 85,
  knownFromHigh: 86,
  /** Minutes after midnight UTC at which the day of the shard begins, signed (day.ts). */
  dayBeginsMinutes: 87,
  /** What is added to indexes of the log for clients, and the first index with it (client-index.ts); 0 below level 5. */
  indexBaseLow: 88,
  indexBaseHigh: 89,
  indexBeginLow: 90,
  indexBeginHigh: 91,
  /** The last command that set shard time (SET_TIME); zero before the first. */
  setTime: 96,
  /** One record per day slot: day, packages, digest low, digest high. */
  slots: 128,
  /**
   * From feature level 4 on, the lists of settled stays by the day on which they are forgotten: first and last of each
   * of FORGET_SLOTS days. Of stays that have ended, and of bookings.
   */
  endedDays: 1664,
  bookedDays: 2688,
} as const

/** More days than the longest time for which a stay is remembered. */
export const FORGET_SLOTS = 512

/** Cells from STATE.replicated on that are part of the replicated state. */
export const REPLICATED_CELLS = 48

/**
 * Cells from STATE.setTime on: how often shard time was set, the last change in milliseconds, the nights it reopened
 * for sale after maintenance had dropped them (`importFrom` up to but without `importBefore`), and the first night it
 * dropped at the far end of the window. Days are 0 where there are none.
 */
export const SET_TIME = {
  cells: 8,
  count: 0,
  fromLow: 1,
  fromHigh: 2,
  toLow: 3,
  toHigh: 4,
  importFrom: 5,
  importBefore: 6,
  droppedFrom: 7,
} as const

/** Kinds of names. The number of a name is local to this node. */
export const NAMES = { segment: 0, area: 1, type: 2, category: 3, roomType: 4, amenity: 5 } as const
export type NameKind = (typeof NAMES)[keyof typeof NAMES]

/**
 * A dictionary: entries[number] = { text address, hash lane 0, hash lane 1, counts }, slots[] = number + 1. A name
 * that does not count is a leftover of this node: no logged command has used it since the feature level was raised.
 */
export const DICTIONARY = { cells: 8, count: 0, entries: 1, capacity: 2, slots: 3, mask: 4, textBytes: 5 } as const
export const DICTIONARY_ENTRY_BYTES = 16

/** The ring of day slots: the 367 visible days, and 17 for days that are cleared late. */
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
  /** The position as a unit vector, so that the kernel computes distances without trigonometry. */
  x: 64,
  y: 72,
  z: 80,
} as const

/** Room types of a property in creation order: { capacity, count, (room type, table, row) … }. */
export const ROOMS = { headerBytes: 8, capacity: 0, count: 4, entryBytes: 12, roomType: 0, table: 4, row: 8 } as const

/** One segment, 48 bytes; found by the number of its name in the segment directory. */
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
  /** Share of its properties and their rooms in the state digest, up to `summedRows`. */
  digestLow: 28,
  digestHigh: 32,
  /** Rows of the property table included in those sums; ALL_ROWS for all, present and future. */
  summedRows: 36,
  /** Charge of its properties, their lists included (charge.ts). */
  propertyBytes: 40,
} as const
export const ALL_ROWS = 0xffffffff
/** Row of a property whose segment was deleted: it can no longer be found, and its memory is freed later. */
export const GONE_ROW = 0xffffffff

/**
 * One table: the rows of one segment and room type, or all properties of a segment (roomType = PROPERTY_TABLE).
 *
 *   word of (day, row) = plane(day) + PLANE.words + row * 8
 *
 *   bits    holds                            empty word
 *   0–7     rooms left, 0–255                0
 *   8–31    features, bit 8 + i = codecs[i]  0
 *   32–63   price, inverted (~price)         0: no package, fails every price limit
 *
 * The rows of a night are contiguous: a stay of n nights reads n planes at the same row. A dead row keeps its position,
 * with rowProperties[row] = 0 and empty words, until the table is rebuilt; new rows are appended. The order of
 * the live rows therefore depends only on the log and is equal on all replicas.
 */
export const TABLE = {
  bytes: 128,
  version: 0,
  segment: 4,
  roomType: 8,
  rowCount: 12,
  capacity: 16,
  /** u32 per row: address of the property, 0 for a dead row. */
  rowProperties: 20,
  /** 16 bytes per row: packed property id, as in replies. */
  rowIds: 24,
  /** Slots by value (ATTRIBUTE_SLOT); 0 when the table is too small for bitmaps. */
  attributeSlots: 28,
  attributeMask: 32,
  bitmaps: 36,
  bitmapCount: 40,
  bitmapCapacity: 44,
  liveRows: 48,
  packages: 52,
  /** Snapshot epoch of the last change, so that an unchanged table is not encoded again. */
  changedEpoch: 56,
  /** Rows appended since the table was last sorted. */
  unordered: 60,
  /**
   * Bit a: attribute a has more values than bitmaps. Values without a bitmap are checked row by row. Higher bits: the degrees
   * of its positions (bitmaps.ts, AXES).
   */
  overflowed: 64,
  /** Number of distinct values with a bitmap, u16 per attribute. */
  attributeCounts: 68,
  /** Twelve leaves of 32 planes: address, and in its lowest bits the round of the ring of days that its day is in. */
  days: 80,
} as const
export const DAY_LEAVES = 12
export const DAYS_PER_LEAF = 32
export const LEAF_BYTES = DAYS_PER_LEAF * 4
/** Rounds that the lowest bits of a plane's address tell apart: readers need no line of the plane itself for its day. */
export const DAY_ROUNDS = 16
export const PROPERTY_TABLE = 0xffffffff

/** A plane: header, words, then one bit per word that is set while rooms are left. */
export const PLANE = { day: 0, packages: 4, digestLow: 8, digestHigh: 12, words: 16 } as const

/** Attributes with bitmaps, and the maximum number of values of each. Further values are checked row by row. */
export const ATTRIBUTE = { alive: 0, type: 1, category: 2, stars: 3, area: 4, amenity: 5 } as const
export type Attribute = (typeof ATTRIBUTE)[keyof typeof ATTRIBUTE]
export const ATTRIBUTE_VALUES_MAX = [1, 64, 64, 5, 64, 256] as const
/**
 * Behind the bitmap of live rows: the lowest bits of the cell of latitude that each row is in, from the lowest on, then
 * those of its cell of longitude. So a box leaves few rows whose position is to be compared.
 */
export const POSITION = { firstBitmap: 1, bitsPerAxis: 8, bitmaps: 16, cellsPerDegree: 64 } as const
/** Capacity for the position and all values that may have a bitmap. */
export const BITMAPS_MOST =
  2 ** Math.ceil(Math.log2(ATTRIBUTE_VALUES_MAX.reduce((sum, most) => sum + most, 2 + POSITION.bitmaps)))

/** The bitmap of an attribute value. Rows are sorted by attributes, so most of its bits are adjacent. */
export const ATTRIBUTE_SLOT = {
  bytes: 16,
  /** Key of attribute and value + 1; 0 in a free slot. */
  key: 0,
  bitmap: 4,
  /** All set bits are in [firstRow, endRow). Cleared bits do not narrow the range. */
  firstRow: 8,
  endRow: 12,
} as const

/** Tables up to this many rows have no bitmaps: checking each row's property is cheaper. */
export const BITMAP_ROWS_MIN = 129

/** One session of request keys, 64 bytes, in a list ordered by last use. */
export const SESSION = {
  bytes: 64,
  key: 0,
  lastUsedMs: 16,
  /** Greatest executed request number. */
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

/** One stay; its lines follow (docs/design/stays.md#ledger). */
export const STAY = {
  bytes: 112,
  /** Packed, as a property id. */
  id: 0,
  state: 16,
  lines: 17,
  sourceBytes: 18,
  /** Lines of the stay that it was to replace, behind its own lines; the id of that stay follows them. 0 without one. */
  credits: 19,
  /** Of a held stay, ms; else 0. */
  deadlineMs: 24,
  total: 32,
  /** Log index and shard time at which the stay reached its state. */
  index: 40,
  timeMs: 48,
  /** Log index at which it was booked; 0 if it never was. */
  bookedIndex: 56,
  /** Shard time of the first hold; 0 without one. */
  heldSinceMs: 64,
  previous: 72,
  next: 76,
  source: 80,
} as const
export const STAY_LINE = {
  bytes: 32,
  /** Address of a STAY_PROPERTY. */
  property: 0,
  /** That of the property when the line was written. */
  generation: 4,
  roomType: 8,
  arrival: 12,
  nights: 16,
  rooms: 17,
  flags: 18,
  /** Its stay. */
  stay: 20,
  /** Lines of the same property. */
  previous: 24,
  next: 28,
} as const
/** A property with lines or nights in the ledger. */
export const STAY_PROPERTY = {
  bytes: 40,
  id: 0,
  /** How often a property with this id was deleted since it entered the ledger. */
  generation: 16,
  /** Lines and nights. */
  references: 20,
  firstLine: 24,
  previous: 28,
  next: 32,
} as const
/** A night on which rooms are held, or are missing for holds: debt. */
export const STAY_NIGHT = {
  bytes: 32,
  property: 0,
  roomType: 4,
  day: 8,
  held: 12,
  debt: 13,
  previous: 16,
  next: 20,
} as const

export function bitmapBytes(capacity: number): number {
  return ((capacity + 127) >>> 7) << 4
}

/** Bytes of one plane of `capacity` rows. */
export function planeBytes(capacity: number): number {
  return PLANE.words + capacity * 8 + bitmapBytes(capacity)
}

/** Row capacity of a table that must hold `rows`: 8, 32, 128, then steps of 128 that grow with the table. */
export function capacityFor(rows: number): number {
  if (rows <= 8) return 8
  if (rows <= 32) return 32
  if (rows <= 128) return 128
  return (rows + 127) & ~127
}

/** Capacity of a table that grows row by row: a sixteenth more, which bounds the number of copies while it fills. */
export function grownCapacity(capacity: number): number {
  return capacityFor(capacity + 1 + (capacity >>> 4))
}
