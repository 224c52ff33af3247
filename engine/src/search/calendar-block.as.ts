// The block of a search of several arrival days, by byte offsets: written by calendar.ts, read by the kernel and its
// reference. Valid in AssemblyScript and in TypeScript. "Address" means a byte offset in the memory of the store.

// Cells of 32 bits.
/** 1: the lowest total of each arrival day; 0: the best stay of each row. */
export const BY_DAY = 0
export const NIGHTS = 4
export const MOST_NIGHTS = 8
/** Nights that some stay may have, from the first arrival on. */
export const SPAN = 12
export const ARRIVALS = 16
/** Address of a DAY record for each arrival day. */
export const DAYS = 20
/** 1: the kernel also leaves which rows fit on each arrival day, to count properties over several tables. */
export const WITH_FITS = 24
/** 1: totals are bounded. */
export const IS_BOUNDED = 28
/** Conditions of a night, as in the parameter block. */
export const ROOMS_LEFT = 32
export const FEATURES = 36
export const INVERTED_MIN = 40
export const INVERTED_MAX = 44
export const ROW_IDS = 48
export const ROW_PROPERTIES = 52
/** Address of the next record that the kernel writes: FITS of a list of rows, or STAY of a row. */
export const OUT = 56
/** Nothing: keeps the compiler from leaving loads out. */
export const TOUCHED = 60
/** Bounds of the total, u64. */
export const MIN_TOTAL = 64
export const MAX_TOTAL = 72
/** For each number of nights, u32: total times it is in the order of prices per night, without division. */
export const FACTORS = 80
/** 1: the search is of one property. The kernel looks the planes of its tables up, instead of reading PLANES. */
export const IS_ONE = 112
export const TABLE = 116
export const FIRST_DAY = 120
/** Nights from the first arrival on whose packages are visible: FROM_NIGHT « 16 | the night behind the last one. */
export const VISIBLE = 124
/** 1 for each arrival day that is searched, u8. */
export const ALLOWED = 128
/** Address of the words of each night; 0 for a night without packages, or of no stay. */
export const PLANES = 496

// State of 512 rows, cleared by the kernel.
const ROWS = 512
/** Nights in a row that fit, u32. */
export const RUNS = 2128
/** Prices of the last NIGHTS nights together, u64. */
export const SUMS = RUNS + ROWS * 4
/** Prices of the last MOST_NIGHTS nights, u32: a line of rows for each night. 0 where a night does not fit. */
export const RING = SUMS + ROWS * 8
export const RING_LINE = ROWS * 4
/** Best key of each row, u64, and its arrival « 8 | nights, u64. */
export const BEST = RING + 36 * RING_LINE
export const CODES = BEST + ROWS * 8
export const BLOCK_BYTES = CODES + ROWS * 8

/** Of an arrival day, as in a reply: u64 lowest total, u32 number of rows, 16 bytes id of the cheapest; then u32 day. */
export const DAY_BYTES = 32
export const DAY_COUNT = 8
export const DAY_ID = 12
/** 0 for a day that no stay may begin on. */
export const DAY_NUMBER = 28
/** Of a day in a reply: u16 day, u8 whether a stay was found, the fields of the day. */
export const DAY_RECORD_BYTES = 31
/** Greatest i64: no stay yet. */
export const DAY_EMPTY_HIGH = 0x7fffffff

/** The best stay of a row: u64 total, u32 row, u32 row in the table of all properties, u32 arrival « 8 | nights. */
export const STAY_BYTES = 24
export const STAY_ROW = 8
export const STAY_PLACE = 12
export const STAY_CODE = 16

/** Rows of a list: u32 how many, their rows in the table of all properties, then 512 bits for each arrival day. */
export const FITS_PLACES = 16
export const FITS_BITS = FITS_PLACES + ROWS * 4
export const FITS_BITS_BYTES = ROWS / 8
