// AssemblyScript: lines of packages.csv → words (docs/design/storage.md#import). It works over the memory of layout.ts; a
// test keeps the numbers of both in sync. A line is compared with the previous one: the same `property,room,` bytes mean
// the same row, and the same text from the rate features to the end of the line means the same mask. Only a change needs
// a table lookup. Lines that are
// not plain (quotes, blanks around a cell, unknown non-ASCII bytes, an invalid value) stop the kernel at the start of
// the line, before any change. The slow path in TypeScript then processes that single line. Every line from `start`
// on ends with a newline before `end`, which stops each loop; vectors may read PADDING_BYTES beyond it. Compiled
// without runtime and static data.

// Header, byte offsets from address 0.
const LIMIT: usize = 1 * 4
const ROW_SLOTS: usize = 2 * 4
const ROW_SHIFT: usize = 3 * 4
const ROOM_SLOTS: usize = 4 * 4
const ROOM_SHIFT: usize = 5 * 4
const PROPERTY_SLOTS: usize = 6 * 4
const PROPERTY_SHIFT: usize = 7 * 4
const PROPERTY_IDS: usize = 8 * 4
const PROPERTY_ROOMS: usize = 9 * 4
const FIRST_DAY: usize = 10 * 4
const DAYS: usize = 11 * 4
const CODEC_NAMES: usize = 12 * 4
const CODEC_COUNT: usize = 13 * 4
const EXPLAIN: usize = 14 * 4
const STRICT_WINDOW: usize = 15 * 4
const ROW_BYTES: usize = 16 * 4
const PRICE_SCALE: usize = 17 * 4
const TOP: usize = 32 * 4
const ROWS: usize = 48 * 4
const ROOMS: usize = 64 * 4

// Context, byte offsets.
const CURSOR: usize = 0
const BLOCK_NEXT: usize = 4
const BLOCK_END: usize = 8
const SPARE_ROW: usize = 12
const SPARE_CHUNK: usize = 16
const ROOM_LENGTH: usize = 20
const FEATURE_TEXT_NEXT: usize = 24
const ACCEPTED: usize = 32
const SKIPPED: usize = 40
const LINES: usize = 48
const FIRST_LINE: usize = 56
const ID: usize = 64
const ROOM_NAME: usize = 96
const PROPERTY_ID: usize = 368
const BATCH: usize = 384
const BATCH_LINES: u32 = 32
const FEATURES: usize = 384 + 32 * 64
const FEATURE_ENTRIES: u32 = 8192
const FEATURE_TEXT_AT: usize = FEATURES + FEATURE_ENTRIES * 16
const FEATURE_TEXT_BYTES: usize = 512 * 1024
/** Longer texts are left to the slow path. */
const FEATURE_TEXT_MAX: u32 = 1024

const ROOM_TEXT_AT: usize = 32
const ROW_ROOM: usize = 16
const ROW_PROPERTY: usize = 20
const ROW_HASH: usize = 24
const ROW_BASE: usize = 28
const ROW_CHUNKS: usize = 32
const CHUNK_BYTES: u32 = 128
const CODEC_BYTES: usize = 96
const CODEC_TEXT_AT: usize = 16
const CODEC_TEXT_MAX: u32 = 64
const BLOCK_BYTES: u32 = 256 * 1024
const RESULT_BYTES: u32 = 80
const GROW_PAGES: i32 = 256
const OS_PAGE_BYTES: u32 = 4096
const ROOMS_PER_PROPERTY_MAX: u32 = 256
const ROOM_BYTES_MAX: u32 = 255
/** 4294967295 would be an empty word when inverted. */
const PRICE_MAX: u64 = 0xfffffffe

const NO_PROPERTY: u32 = 0xffffffff

const DONE: i32 = 0
const ODD: i32 = 1
const CROWDED: i32 = 2
const MEMORY_FULL: i32 = 3
const DUPLICATE: i32 = 4
const TOO_MANY_ROOMS: i32 = 5
const UNKNOWN_PROPERTY: i32 = 6
const OUTSIDE: i32 = 7

const NEWLINE: u8 = 0x0a
const RETURN: u8 = 0x0d
const BLANK: u8 = 0x20
const QUOTE: u8 = 0x22
const COMMA: u8 = 0x2c
const DOT: u8 = 0x2e
const ZERO: u8 = 0x30

// The row of the current line: found by `resolve` and completed by `createRow`.
let row: u32 = 0
let room: u32 = 0
let property: u32 = 0
let idHash: u32 = 0
let roomText: usize = 0
let roomLength: u32 = 0

// State that `readTail` keeps between lines: the texts are still in the buffer. Length 0: none.
let features: usize = 0
let featuresLength: usize = 0
let mask: u32 = 0
let monthText: u64 = 0
let monthFirst: u32 = 0
let monthDays: u32 = 0
// What it found.
let night: u32 = 0
let word: u64 = 0

// Counts of one call of `scan`.
let line: u64 = 0
let accepted: u64 = 0
let skipped: u64 = 0

/**
 * Reads the whole lines of [start, end).
 *
 * @param context the thread's context; LINES is the number of the first line, and then of the line at CURSOR
 * @returns DONE, or why the line at CURSOR is not read
 */
export function scan(context: usize, start: usize, end: usize): i32 {
  line = u64(load<f64>(context, LINES))
  accepted = 0
  skipped = 0
  room = 0
  property = NO_PROPERTY
  featuresLength = 0
  monthText = 0
  cursor = start
  let stop = DONE
  while (stop == DONE && cursor < end) {
    stop = scanGrouped(context, cursor, end)
    if (stop == SHUFFLED) stop = scanShuffled(context, cursor, end)
  }
  store<u32>(context, u32(cursor), CURSOR)
  store<f64>(context, f64(line), LINES)
  store<f64>(context, load<f64>(context, ACCEPTED) + f64(accepted), ACCEPTED)
  store<f64>(context, load<f64>(context, SKIPPED) + f64(skipped), SKIPPED)
  return stop
}

/** Start of the line at which the functions below stopped. */
let cursor: usize = 0
/** From `scanGrouped`: so many consecutive lines had different rows that batches are faster. */
const SHUFFLED: i32 = -1
/** Consecutive lines with different rows, and with the same row, after which the kernel switches its method. */
const CHANGE_LINES: u32 = 4

/** Line by line: fast where lines of one row follow each other. */
function scanGrouped(context: usize, start: usize, end: usize): i32 {
  const days = load<u32>(DAYS)
  const explain = load<u32>(EXPLAIN) != 0
  const strict = load<u32>(STRICT_WINDOW) != 0
  const mayBeShuffled = !explain
  let p = start
  let stop = DONE
  let changes: u32 = 0
  let prefix: usize = 0
  let prefixLength: usize = 0
  // The nights at hand: chunkNights of them from chunkFirst on, with their words from `chunk` on.
  let chunkFirst: u32 = 0
  let chunkNights: u32 = 0
  let chunk: u32 = 0
  let lines: u32 = 0
  let linesEmpty: u32 = 0
  let linesSkipped: u32 = 0

  while (p < end) {
    const same = prefixLength != 0 && isSame(p, prefix, prefixLength)
    if (same) {
      changes = 0
    } else {
      const lineEnd = emptyLine(p)
      if (lineEnd != 0) {
        p += lineEnd
        lines++
        linesEmpty++
        continue
      }
      if (mayBeShuffled && ++changes > CHANGE_LINES) {
        stop = SHUFFLED
        break
      }
      prefixLength = resolve(context, p)
      if (prefixLength == 0) {
        stop = ODD
        break
      }
      row = room == 0 ? 0 : findRow(context)
      if (row == 0 && !mayBeNew(context)) {
        stop = ODD
        break
      }
      chunkNights = 0
    }
    prefix = p

    const next = readTail(context, p + prefixLength, end)
    if (next == 0) {
      stop = ODD
      break
    }
    if (night - chunkFirst >= chunkNights) {
      if (night >= days) {
        if (strict) {
          stop = ODD
          break
        }
        p = next
        lines++
        linesSkipped++
        continue
      }
      if (row == 0) {
        stop = createRow(context, night)
        if (stop != DONE) break
      }
      const place = placeOf(row, night)
      chunk = chunkOf(context, row, place)
      if (chunk == 0) {
        stop = MEMORY_FULL
        break
      }
      // Only those nights of the chunk that lie in the window: a chunk may go over its end, and on at its beginning.
      const behind = place & 15
      const back = min<u32>(behind, night)
      chunkFirst = night - back
      chunk += (behind - back) << 3
      chunkNights = min<u32>(back + 16 - behind, days - chunkFirst)
    }
    const at = usize(chunk) + ((night - chunkFirst) << 3)
    const before = load<u64>(at)
    if (before != 0) {
      store<f64>(context, f64(before), FIRST_LINE)
      stop = DUPLICATE
      break
    }
    store<u64>(at, explain ? line + u64(lines) : word)
    p = next
    lines++
  }
  cursor = p
  line += u64(lines)
  accepted += u64(lines - linesEmpty - linesSkipped)
  skipped += u64(linesSkipped)
  return stop
}

// One line of a batch.
const ENTRY_ID: usize = 0
const ENTRY_ROOM: usize = 16
const ENTRY_HASH: usize = 20
const ENTRY_NIGHT: usize = 24
const ENTRY_LINE: usize = 28
const ENTRY_WORD: usize = 32
const ENTRY_ROW: usize = 40
const ENTRY_AT: usize = 44
const ENTRY_BYTES: usize = 64

/**
 * Lines in batches, for files in no order. There each line touches a slot, a row and a word that are in no cache, one
 * found through the other; in a batch, 32 of each are fetched side by side. The ratio is measured in import.bench.ts.
 *
 * Leaves to `scanGrouped` what is new or empty, and everything as soon as lines of one row follow each other.
 */
function scanShuffled(context: usize, start: usize, end: usize): i32 {
  const batch = context + BATCH
  let p = start
  let repeats: u32 = 0
  while (p < end && repeats < CHANGE_LINES) {
    let stop = DONE
    let isPlain = true
    let entry = batch
    const batchEnd = batch + usize(BATCH_LINES) * ENTRY_BYTES
    while (entry < batchEnd && p < end) {
      if (emptyLine(p) != 0) {
        isPlain = false
        break
      }
      const prefixLength = resolve(context, p)
      if (prefixLength != 0 && room == 0) {
        isPlain = false
        break
      }
      const next = prefixLength == 0 ? 0 : readTail(context, p + prefixLength, end)
      if (next == 0) {
        stop = ODD
        break
      }
      const id = v128.load(context, ID)
      if (entry != batch) {
        const isSame =
          load<u32>(entry - ENTRY_BYTES, ENTRY_ROOM) == room &&
          i8x16.all_true(i8x16.eq(id, v128.load(entry - ENTRY_BYTES)))
        repeats = isSame ? repeats + 1 : 0
      }
      v128.store(entry, id)
      store<u32>(entry, room, ENTRY_ROOM)
      store<u32>(entry, rowHash(), ENTRY_HASH)
      store<u32>(entry, night, ENTRY_NIGHT)
      store<u32>(entry, u32(p), ENTRY_LINE)
      store<u64>(entry, word, ENTRY_WORD)
      entry += ENTRY_BYTES
      p = next
    }
    const stopBefore = storeBatch(context, batch, entry)
    if (stopBefore != DONE) return stopBefore
    if (stop != DONE || !isPlain) {
      cursor = p
      return stop
    }
  }
  cursor = p
  return DONE
}

/** Stores the lines of a batch in their order. @returns DONE, or why the line at `cursor` and those behind are not in */
function storeBatch(context: usize, batch: usize, batchEnd: usize): i32 {
  const days = load<u32>(DAYS)
  const strict = load<u32>(STRICT_WINDOW) != 0
  const slots = usize(load<u32>(ROW_SLOTS))
  const shift = load<u32>(ROW_SHIFT)
  for (let entry = batch; entry < batchEnd; entry += ENTRY_BYTES) {
    const slot = load<u32>(entry, ENTRY_HASH) >> shift
    store<u32>(entry, atomic.load<u32>(slots + (usize(slot) << 3)), ENTRY_ROW)
  }
  for (let entry = batch; entry < batchEnd; entry += ENTRY_BYTES) {
    const record = load<u32>(entry, ENTRY_ROW)
    const nightOf = load<u32>(entry, ENTRY_NIGHT)
    let at: u32 = 0
    // A different row in the first slot, or no row yet: looked up below.
    if (
      record != 0 &&
      nightOf < days &&
      load<u32>(record, ROW_ROOM) == load<u32>(entry, ENTRY_ROOM) &&
      i8x16.all_true(i8x16.eq(v128.load(record), v128.load(entry)))
    ) {
      const place = placeOf(record, nightOf)
      const chunk = atomic.load<u32>(usize(record) + ROW_CHUNKS + usize(place >> 4) * 4)
      if (chunk != 0) at = chunk + ((place & 15) << 3)
    }
    store<u32>(entry, at, ENTRY_AT)
  }
  for (let entry = batch; entry < batchEnd; entry += ENTRY_BYTES) {
    let at = load<u32>(entry, ENTRY_AT)
    let stop = DONE
    if (at == 0) {
      const nightOf = load<u32>(entry, ENTRY_NIGHT)
      v128.store(context, v128.load(entry), ID)
      idHash = hashVector(v128.load(entry))
      room = load<u32>(entry, ENTRY_ROOM)
      row = findRow(context)
      if (row == 0 && !mayBeNew(context)) stop = ODD
      if (stop == DONE && nightOf >= days) {
        if (!strict) {
          line++
          skipped++
          continue
        }
        stop = ODD
      }
      if (stop == DONE && row == 0) stop = createRow(context, nightOf)
      if (stop == DONE) {
        const place = placeOf(row, nightOf)
        const chunk = chunkOf(context, row, place)
        if (chunk == 0) stop = MEMORY_FULL
        else at = chunk + ((place & 15) << 3)
      }
    }
    if (stop == DONE) {
      if (load<u64>(at) == 0) {
        store<u64>(at, load<u64>(entry, ENTRY_WORD))
        line++
        accepted++
        continue
      }
      stop = DUPLICATE
    }
    cursor = usize(load<u32>(entry, ENTRY_LINE))
    return stop
  }
  return DONE
}

// @ts-ignore: decorator
@inline
/** Compares in vectors that overlap at the end, and looks at what differs once: 1.2 times as fast as one by one. */
function isSame(a: usize, b: usize, length: usize): bool {
  if (length < 16) {
    const bits = u32(i8x16.bitmask(i8x16.eq(v128.load(a), v128.load(b))))
    return u32(ctz(~bits)) >= u32(length)
  }
  const last = length - 16
  let differ = v128.xor(v128.load(a + last), v128.load(b + last))
  if (last > 0) {
    differ = v128.or(differ, v128.xor(v128.load(a), v128.load(b)))
    for (let i: usize = 16; i < last; i += 16) differ = v128.or(differ, v128.xor(v128.load(a + i), v128.load(b + i)))
  }
  return !v128.any_true(differ)
}

// @ts-ignore: decorator
@inline
/** @returns bytes of the line end at `p`, 0 when the line is not empty */
function emptyLine(p: usize): usize {
  const first = load<u8>(p)
  if (first == NEWLINE) return 1
  return first == RETURN && load<u8>(p, 1) == NEWLINE ? 2 : 0
}

/** What `behindFraction` read, in the smallest unit. */
let fraction: u32 = 0

/** Reads `.50,` at the end of a price with decimals. @returns what follows, 0 when it is anything else */
function behindFraction(dot: usize): usize {
  if (load<u8>(dot) != DOT) return 0
  let at = dot + 1
  let unit = load<u32>(PRICE_SCALE)
  fraction = 0
  for (;;) {
    const digit = u32(load<u8>(at)) - u32(ZERO)
    if (digit > 9) break
    // More decimals than the file has.
    if (unit == 1) return 0
    unit /= 10
    fraction += digit * unit
    at++
  }
  return at > dot + 1 && load<u8>(at) == COMMA ? at + 1 : 0
}

// @ts-ignore: decorator
@inline
/** Reads date, numbers and rate features from `at` on into night and word. @returns the next line, 0 if this is not plain */
function readTail(context: usize, at: usize, end: usize): usize {
  const month = load<u64>(at)
  // `DD,` and one byte of the number behind it. Conditions stand alone: the compiler would add up what is joined by `||`.
  const day = load<u32>(at, 8)
  if (month != monthText) {
    if (!readMonth(month)) return 0
    monthText = month
    monthFirst = readFirst - load<u32>(FIRST_DAY)
    monthDays = readDays
  }
  // Digits and a comma, compared in one: 0x30–0x33, 0x30–0x39, 0x2c.
  if ((day & 0xfff0fc) != 0x2c3030) return 0
  const ones = (day >> 8) & 0xf
  if (ones > 9) return 0
  const dayOfMonth = (day & 3) * 10 + ones - 1
  if (dayOfMonth >= monthDays) return 0
  night = monthFirst + dayOfMonth

  // `availability,price,`: at most 16 bytes where the price has no fraction. What is no digit must be these commas.
  const numbers = at + 11
  const v = v128.load(numbers)
  const others = ~u32(i8x16.bitmask(i8x16.le_u(i8x16.sub(v, i8x16.splat(0x30)), i8x16.splat(9))))
  const comma1 = u32(ctz(others))
  const priceEnd = u32(ctz(others & (others - 1)))
  if (comma1 - 1 > 2) return 0
  if (load<u8>(numbers + comma1) != COMMA) return 0
  const priceLength = priceEnd - comma1 - 1
  // Unsigned: no digit becomes a huge number. No end within the vector is more digits than a price has.
  if (priceLength - 1 > 9) return 0
  let text = numbers + priceEnd + 1
  let decimals: u32 = 0
  if (load<u8>(numbers + priceEnd) != COMMA) {
    text = behindFraction(numbers + priceEnd)
    if (text == 0) return 0
    decimals = fraction
  }
  let a = (load<u32>(numbers) << (32 - 8 * comma1)) & 0x0f0f0f0f
  a = (a * 10 + (a >> 8)) & 0x00ff00ff
  a = (a * 100 + (a >> 16)) & 0xffff
  let price: u64
  const priceAt = numbers + comma1 + 1
  if (priceLength <= 4) {
    let b = (load<u32>(priceAt) << (32 - 8 * priceLength)) & 0x0f0f0f0f
    b = (b * 10 + (b >> 8)) & 0x00ff00ff
    price = u64((b * 100 + (b >> 16)) & 0xffff)
  } else if (priceLength <= 8) {
    price = digits8(load<u64>(priceAt) << (64 - 8 * u64(priceLength)))
  } else {
    price = digits8(load<u64>(priceAt))
    for (let i: u32 = 8; i < priceLength; i++) price = price * 10 + u64(load<u8>(priceAt + i) - 0x30)
  }
  price = price * u64(load<u32>(PRICE_SCALE)) + u64(decimals)
  if (a > 255) return 0
  if (price > PRICE_MAX) return 0

  // Rate features and the end of the line.
  if (featuresLength == 0 || !isSame(text, features, featuresLength)) {
    let lineEnd = text
    while (lineEnd < end) {
      const newlines = u32(i8x16.bitmask(i8x16.eq(v128.load(lineEnd), i8x16.splat(NEWLINE))))
      if (newlines != 0) {
        lineEnd += ctz(newlines) + 1
        break
      }
      lineEnd += 16
    }
    if (lineEnd > end || !findMask(context, text, u32(lineEnd - text))) return 0
    mask = foundMask
    featuresLength = lineEnd - text
  }
  features = text
  word = u64(a) | (u64(mask) << 8) | ((price ^ 0xffffffff) << 32)
  return text + featuresLength
}

/**
 * Takes one package that the slow path has read: property id at ID, room type at ROOM_NAME, ROOM_LENGTH bytes.
 *
 * @param night counted from the first day of the window
 * @param line what the word holds in an explaining pass
 */
export function add(context: usize, night: u32, lo: u32, hi: u32, line: f64): i32 {
  idHash = hashVector(v128.load(context, ID))
  property = findProperty(context)
  if (property == NO_PROPERTY) return UNKNOWN_PROPERTY
  if (night >= load<u32>(DAYS)) return OUTSIDE
  roomText = context + ROOM_NAME
  roomLength = load<u32>(context, ROOM_LENGTH)
  room = findRoom(roomText, roomLength, hashText(roomText, roomLength))
  row = room == 0 ? 0 : findRow(context)
  if (row == 0) {
    const stop = createRow(context, night)
    if (stop != DONE) return stop
  }
  const place = placeOf(row, night)
  const chunk = chunkOf(context, row, place)
  if (chunk == 0) return MEMORY_FULL
  const word = usize(chunk) + ((place & 15) << 3)
  const before = load<u64>(word)
  if (before != 0) {
    store<f64>(context, f64(before), FIRST_LINE)
    return DUPLICATE
  }
  store<u64>(word, load<u32>(EXPLAIN) != 0 ? u64(line) : (u64(hi) << 32) | u64(lo))
  store<f64>(context, load<f64>(context, ACCEPTED) + 1, ACCEPTED)
  return DONE
}

/** Remembers that the bytes from the rate features to the end of a line mean `mask`. */
export function remember(context: usize, text: usize, length: u32, mask: u32): void {
  if (length <= FEATURE_TEXT_MAX) keepMask(context, text, length, hashFeatures(text, length), mask)
}

/** Reads `property,room,` into ID, idHash, room, roomText. @returns its bytes with both commas, 0 if it is not plain */
function resolve(context: usize, p: usize): usize {
  // The id is at most 36 bytes, so its comma is in the first 37.
  let length: u32 = 0
  while (true) {
    const v = v128.load(p + length)
    const ends = u32(
      i8x16.bitmask(v128.or(i8x16.eq(v, i8x16.splat(COMMA)), i8x16.eq(v, i8x16.splat(NEWLINE)))),
    )
    if (ends != 0) {
      length += ctz(ends)
      break
    }
    length += 16
    if (length > 36) return 0
  }
  if (load<u8>(p + length) != COMMA || !packId(context, p, length)) return 0

  const text = p + length + 1
  length = 0
  while (true) {
    const v = v128.load(text + length)
    const ends = u32(
      i8x16.bitmask(v128.or(i8x16.eq(v, i8x16.splat(COMMA)), i8x16.eq(v, i8x16.splat(NEWLINE)))),
    )
    if (ends != 0) {
      length += ctz(ends)
      break
    }
    length += 16
    if (length > ROOM_BYTES_MAX) return 0
  }
  if (load<u8>(text + length) != COMMA || length - 1 >= ROOM_BYTES_MAX) return 0
  const firstByte = load<u8>(text)
  if (firstByte <= BLANK || firstByte == QUOTE || load<u8>(text + length - 1) <= BLANK) return 0

  idHash = hashVector(v128.load(context, ID))
  const isSameRoom = room != 0 && load<u32>(room, 4) == length && isSameText(text, usize(room) + ROOM_TEXT_AT, length)
  if (!isSameRoom) room = findRoom(text, length, hashText(text, length))
  roomText = text
  roomLength = length
  return text + length + 1 - p
}

/** Whether a row for (ID, roomText) may be made: the property is there, and the name needs no proof. Sets `property`. */
function mayBeNew(context: usize): bool {
  // Room types of a property follow each other: it is looked up for the first of them.
  const id = v128.load(context, ID)
  if (property == NO_PROPERTY || !i8x16.all_true(i8x16.eq(id, v128.load(context, PROPERTY_ID)))) {
    property = findProperty(context)
    v128.store(context, id, PROPERTY_ID)
  }
  // Only the slow path knows UTF-8; a room type that is there has been proven.
  return property != NO_PROPERTY && (room != 0 || isPrintable(roomText, roomLength))
}

/**
 * Packs the property id of `length` bytes to ID (docs/design/protocol.md#property-ids). @returns false if it is not
 * one, or not plain
 */
function packId(context: usize, p: usize, length: u32): bool {
  if (length - 1 < 14) {
    const v = v128.and(v128.load(p), lanesBelow(length))
    const all = (u32(1) << length) - 1
    const printable = u32(i8x16.bitmask(i8x16.le_u(i8x16.sub(v, i8x16.splat(0x20)), i8x16.splat(0x5e))))
    const firstByte = load<u8>(p)
    if ((printable & all) != all || firstByte == BLANK || firstByte == QUOTE) return false
    if (load<u8>(p + length - 1) == BLANK) return false
    const spread = i8x16.swizzle(v, i8x16(0, 1, 2, 3, 4, 5, -128, 6, 7, 8, 9, 10, 11, 12, 13, 14))
    v128.store(context, v128.or(spread, i8x16(0, 0, 0, 0, 0, 0, -16, 0, 0, 0, 0, 0, 0, 0, 0, 0)), ID)
    return true
  }
  return length == 36 && packUuid(context, p)
}

/** 8-4-4-4-12 hexadecimal digits: hyphens at 8, 13, 18, 23; version 1–5 or 7 at 14. */
function packUuid(context: usize, p: usize): bool {
  if (load<u8>(p, 8) != 0x2d || load<u8>(p, 13) != 0x2d || load<u8>(p, 18) != 0x2d || load<u8>(p, 23) != 0x2d) {
    return false
  }
  const version = load<u8>(p, 14) - 0x30
  if (version == 0 || version > 7 || version == 6) return false
  const high = i8x16.shuffle(v128.load(p), v128.load(p, 16), 0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 14, 15, 16, 17)
  const low = i8x16.shuffle(v128.load(p, 19), v128.load(p, 20), 0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 31)
  const highNibbles = nibbles(high)
  const lowNibbles = nibbles(low)
  // A byte that is no hexadecimal digit has become 255.
  if (v128.any_true(i8x16.gt_u(v128.or(highNibbles, lowNibbles), i8x16.splat(15)))) return false
  v128.store(context, i8x16.narrow_i16x8_u(joinNibbles(highNibbles), joinNibbles(lowNibbles)), ID)
  return true
}

// @ts-ignore: decorator
@inline
function nibbles(v: v128): v128 {
  const digit = i8x16.sub(v, i8x16.splat(0x30))
  const letter = i8x16.sub(v128.or(v, i8x16.splat(0x20)), i8x16.splat(0x61))
  const isDigit = i8x16.le_u(digit, i8x16.splat(9))
  const isLetter = i8x16.le_u(letter, i8x16.splat(5))
  const value = v128.bitselect(digit, i8x16.add(letter, i8x16.splat(10)), isDigit)
  return v128.or(value, v128.not(v128.or(isDigit, isLetter)))
}

// @ts-ignore: decorator
@inline
function joinNibbles(v: v128): v128 {
  return v128.and(v128.or(i16x8.shl(v, 4), i16x8.shr_u(v, 8)), i16x8.splat(0xff))
}

// What readMonth found.
let readFirst: u32 = 0
let readDays: u32 = 0

/** `YYYY-MM-` as eight bytes → day number of the first, days of the month. Years 1970 to 2999, the rest is not plain. */
function readMonth(text: u64): bool {
  if ((text & 0xff0000ff00000000) != 0x2d00002d00000000) return false
  const y3 = u32(text & 0xff) - 0x30
  const y2 = u32((text >> 8) & 0xff) - 0x30
  const y1 = u32((text >> 16) & 0xff) - 0x30
  const y0 = u32((text >> 24) & 0xff) - 0x30
  const m1 = u32((text >> 40) & 0xff) - 0x30
  const m0 = u32((text >> 48) & 0xff) - 0x30
  if (y3 > 2 || y2 > 9 || y1 > 9 || y0 > 9 || m1 > 1 || m0 > 9) return false
  const year = y3 * 1000 + y2 * 100 + y1 * 10 + y0
  const month = m1 * 10 + m0
  if (year < 1970 || month - 1 > 11) return false
  const isLeap = (year & 3) == 0 && (year % 100 != 0 || year % 400 == 0)
  // 31, 30 by the month's parity, turned over after July.
  readDays = month == 2 ? (isLeap ? 29 : 28) : 30 + ((month + (month >> 3)) & 1)
  // Years begin in March here, so that the leap day is the last of its year; 719468 = 1970-01-01 counted so.
  const marchYear = month > 2 ? year : year - 1
  const marchMonth = month > 2 ? month - 3 : month + 9
  readFirst = marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + (marchMonth * 153 + 2) / 5 - 719468
  return true
}

// @ts-ignore: decorator
@inline
/** Eight ASCII digits, the first in the lowest byte; zero bytes in front count as zeros. */
function digits8(text: u64): u64 {
  let x = text & 0x0f0f0f0f0f0f0f0f
  x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ff
  x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffff
  return (x * 10000 + (x >> 32)) & 0xffffffff
}

// @ts-ignore: decorator
@inline
function lanesBelow(length: u32): v128 {
  return i8x16.lt_u(i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), i8x16.splat(u8(length)))
}

function isSameText(a: usize, b: usize, length: u32): bool {
  let i: u32 = 0
  while (i + 16 <= length) {
    if (!i8x16.all_true(i8x16.eq(v128.load(a + i), v128.load(b + i)))) return false
    i += 16
  }
  if (i == length) return true
  const bits = u32(i8x16.bitmask(i8x16.eq(v128.load(a + i), v128.load(b + i))))
  return u32(ctz(~bits)) >= length - i
}

function isPrintable(p: usize, length: u32): bool {
  for (let i: u32 = 0; i < length; i++) {
    if (u32(load<u8>(p + i)) - 0x20 > 0x5e) return false
  }
  return true
}

// @ts-ignore: decorator
@inline
function finish(hash: u32): u32 {
  let h = hash
  h = (h ^ (h >> 16)) * 0x85ebca6b
  h = (h ^ (h >> 13)) * 0xc2b2ae35
  return h ^ (h >> 16)
}

/** hashId of layout.ts. */
function hashVector(v: v128): u32 {
  const a = (i32x4.extract_lane(v, 0) * 0x9e3779b1) ^ (i32x4.extract_lane(v, 1) * 0x85ebca77)
  const b = (i32x4.extract_lane(v, 2) * 0xc2b2ae3d) ^ (i32x4.extract_lane(v, 3) * 0x27d4eb2f)
  return finish((u32(a) ^ (u32(a) >> 15)) + (u32(b) ^ (u32(b) >> 13)) * 0x165667b1)
}

function hashText(p: usize, length: u32): u32 {
  let h: u32 = length
  let i: u32 = 0
  while (i + 16 <= length) {
    h = finish(h + hashVector(v128.load(p + i)))
    i += 16
  }
  return i < length ? finish(h + hashVector(v128.and(v128.load(p + i), lanesBelow(length - i)))) : h
}

function findProperty(context: usize): u32 {
  const slots = load<u32>(PROPERTY_SLOTS)
  const shift = load<u32>(PROPERTY_SHIFT)
  const last = (u32(0xffffffff) >> shift)
  const ids = load<u32>(PROPERTY_IDS)
  const id = v128.load(context, ID)
  let slot = idHash >> shift
  while (true) {
    const ordinal = load<u32>(usize(slots) + usize(slot) * 4)
    if (ordinal == 0) return NO_PROPERTY
    if (i8x16.all_true(i8x16.eq(v128.load(usize(ids) + usize(ordinal - 1) * 16), id))) return ordinal - 1
    slot = (slot + 1) & last
  }
}

// @ts-ignore: decorator
@inline
function rowHash(): u32 {
  return finish(idHash ^ (room * 0x9e3779b1))
}

function findRoom(text: usize, length: u32, hash: u32): u32 {
  const slots = usize(load<u32>(ROOM_SLOTS))
  const shift = load<u32>(ROOM_SHIFT)
  const last = u32(0xffffffff) >> shift
  let slot = hash >> shift
  while (true) {
    const record = atomic.load<u32>(slots + (usize(slot) << 3))
    if (record == 0) return 0
    if (load<u32>(record) == hash && load<u32>(record, 4) == length && isSameText(text, usize(record) + ROOM_TEXT_AT, length)) {
      return record
    }
    slot = (slot + 1) & last
  }
}

/** @returns the row of (ID, room), 0 if there is none */
function findRow(context: usize): u32 {
  const hash = rowHash()
  const slots = usize(load<u32>(ROW_SLOTS))
  const shift = load<u32>(ROW_SHIFT)
  const last = u32(0xffffffff) >> shift
  const id = v128.load(context, ID)
  let slot = hash >> shift
  while (true) {
    const record = atomic.load<u32>(slots + (usize(slot) << 3))
    if (record == 0) return 0
    const tag = load<u32>(slots + (usize(slot) << 3), 4)
    if (tag == 0 || tag == (hash | 1)) {
      if (load<u32>(record, ROW_ROOM) == room && i8x16.all_true(i8x16.eq(v128.load(record), id))) return record
    }
    slot = (slot + 1) & last
  }
}

/**
 * Makes the row of (ID, roomText) and its room type, or takes the one another thread has just made. Sets `row`.
 *
 * @param base night that its first chunk begins with
 */
function createRow(context: usize, base: u32): i32 {
  const rowShift = load<u32>(ROW_SHIFT)
  const roomShift = load<u32>(ROOM_SHIFT)
  // Half full is full. Threads that pass this check together overshoot by less than one row each.
  if (atomic.load<u32>(ROWS) >= (u32(0x80000000) >> rowShift)) return CROWDED
  if (atomic.load<u32>(ROOMS) >= (u32(0x80000000) >> roomShift)) return CROWDED
  const counts = usize(load<u32>(PROPERTY_ROOMS)) + usize(property) * 4
  if (atomic.load<u32>(counts) >= ROOMS_PER_PROPERTY_MAX) return TOO_MANY_ROOMS
  if (room == 0) {
    room = createRoom(context, roomText, roomLength)
    if (room == 0) return MEMORY_FULL
  }
  let record = load<u32>(context, SPARE_ROW)
  store<u32>(context, 0, SPARE_ROW)
  if (record == 0) record = allocate(context, load<u32>(ROW_BYTES))
  if (record == 0) return MEMORY_FULL
  const hash = rowHash()
  const id = v128.load(context, ID)
  v128.store(record, id)
  store<u32>(record, room, ROW_ROOM)
  store<u32>(record, property, ROW_PROPERTY)
  store<u32>(record, hash, ROW_HASH)
  store<u32>(record, base, ROW_BASE)
  const slots = usize(load<u32>(ROW_SLOTS))
  const last = u32(0xffffffff) >> rowShift
  let slot = hash >> rowShift
  while (true) {
    const at = slots + (usize(slot) << 3)
    let other = atomic.load<u32>(at)
    if (other == 0) {
      other = atomic.cmpxchg<u32>(at, 0, record)
      if (other == 0) {
        store<u32>(at, hash | 1, 4)
        row = record
        atomic.add<u32>(ROWS, 1)
        return atomic.add<u32>(counts, 1) >= ROOMS_PER_PROPERTY_MAX ? TOO_MANY_ROOMS : DONE
      }
    }
    if (load<u32>(other, ROW_ROOM) == room && i8x16.all_true(i8x16.eq(v128.load(other), id))) {
      store<u32>(context, record, SPARE_ROW)
      row = other
      return DONE
    }
    slot = (slot + 1) & last
  }
}

/** @returns the record of a room type, made if need be; 0 when memory is full */
function createRoom(context: usize, text: usize, length: u32): u32 {
  const hash = hashText(text, length)
  const record = allocate(context, (u32(ROOM_TEXT_AT) + length + 63) & ~63)
  if (record == 0) return 0
  store<u32>(record, hash)
  store<u32>(record, length, 4)
  memory.copy(usize(record) + ROOM_TEXT_AT, text, length)
  const slots = usize(load<u32>(ROOM_SLOTS))
  const shift = load<u32>(ROOM_SHIFT)
  const last = u32(0xffffffff) >> shift
  let slot = hash >> shift
  while (true) {
    const at = slots + (usize(slot) << 3)
    let other = atomic.load<u32>(at)
    if (other == 0) {
      other = atomic.cmpxchg<u32>(at, 0, record)
      if (other == 0) {
        store<u32>(at, hash | 1, 4)
        atomic.add<u32>(ROOMS, 1)
        return record
      }
    }
    if (load<u32>(other) == hash && load<u32>(other, 4) == length && isSameText(text, usize(other) + ROOM_TEXT_AT, length)) {
      return other
    }
    slot = (slot + 1) & last
  }
}

// @ts-ignore: decorator
@inline
/** Nights of the window, rounded up to whole chunks. */
function spanOf(): u32 {
  return (load<u32>(DAYS) + 15) & ~15
}

// @ts-ignore: decorator
@inline
/** Where a night lies in the chunks of a row: counted from its base, around the end of the window. */
function placeOf(row: u32, night: u32): u32 {
  const place = night - load<u32>(row, ROW_BASE)
  return i32(place) < 0 ? place + spanOf() : place
}

/** @returns the chunk of a place of a row, made if need be; 0 when memory is full */
function chunkOf(context: usize, row: u32, place: u32): u32 {
  const at = usize(row) + ROW_CHUNKS + usize(place >> 4) * 4
  const known = atomic.load<u32>(at)
  if (known != 0) return known
  let chunk = load<u32>(context, SPARE_CHUNK)
  store<u32>(context, 0, SPARE_CHUNK)
  if (chunk == 0) chunk = allocate(context, CHUNK_BYTES)
  if (chunk == 0) return 0
  const other = atomic.cmpxchg<u32>(at, 0, chunk)
  if (other == 0) return chunk
  store<u32>(context, chunk, SPARE_CHUNK)
  return other
}

/** Fresh zeros from the thread's own block; `bytes` is a multiple of 64. @returns 0 when memory is full */
function allocate(context: usize, bytes: u32): u32 {
  let at = load<u32>(context, BLOCK_NEXT)
  if (load<u32>(context, BLOCK_END) - at < bytes) {
    at = takeBlock()
    if (at == 0) return 0
    store<u32>(context, at + BLOCK_BYTES, BLOCK_END)
  }
  store<u32>(context, at + bytes, BLOCK_NEXT)
  return at
}

function takeBlock(): u32 {
  const limit = load<u32>(LIMIT)
  let top = atomic.load<u32>(TOP)
  while (true) {
    // Compared before it is added: the end must not run over 32 bits.
    if (limit - top < BLOCK_BYTES) return 0
    const seen = atomic.cmpxchg<u32>(TOP, top, top + BLOCK_BYTES)
    if (seen == top) break
    top = seen
  }
  const pages = i32((top + BLOCK_BYTES + 0xffff) >> 16)
  while (memory.size() < pages) {
    if (memory.grow(GROW_PAGES) >= 0) continue
    const missing = pages - memory.size()
    if (missing > 0 && memory.grow(missing) < 0 && memory.size() < pages) return 0
  }
  // Words are read before they are written, and a first read would map a page only to have it replaced by the write.
  for (let page: u32 = 0; page < BLOCK_BYTES; page += OS_PAGE_BYTES) store<u8>(top + page, 0)
  return top
}

// What findMask found.
let foundMask: u32 = 0

/** @param length bytes from the rate features to the end of the line, newline included */
function findMask(context: usize, text: usize, length: u32): bool {
  if (length > FEATURE_TEXT_MAX) return false
  const hash = hashFeatures(text, length)
  const entry = context + FEATURES + usize(hash & (FEATURE_ENTRIES - 1)) * 16
  if (
    load<u32>(entry) == hash &&
    load<u32>(entry, 8) == length &&
    isSameText(text, usize(load<u32>(entry, 4)), length)
  ) {
    foundMask = load<u32>(entry, 12)
    return true
  }
  if (!readFeatures(text, length)) return false
  keepMask(context, text, length, hash, foundMask)
  return true
}

/** Names separated by `|`, exactly as in the codec list. */
function readFeatures(text: usize, length: u32): bool {
  let end = text + length - 1
  if (end > text && load<u8>(end - 1) == RETURN) end--
  let mask: u32 = 0
  let name = text
  while (name < end) {
    let nameEnd = name
    while (nameEnd < end && load<u8>(nameEnd) != 0x7c) nameEnd++
    const bit = codecOf(name, u32(nameEnd - name))
    if (bit < 0) return false
    mask |= 1 << bit
    name = nameEnd + 1
    // A `|` at the end precedes an empty name, which the slow path handles.
    if (name == end) return false
  }
  foundMask = mask
  return true
}

function codecOf(name: usize, length: u32): i32 {
  const names = usize(load<u32>(CODEC_NAMES))
  const count = load<u32>(CODEC_COUNT)
  if (length - 1 >= CODEC_TEXT_MAX) return -1
  for (let i: u32 = 0; i < count; i++) {
    const codec = names + usize(i) * CODEC_BYTES
    if (load<u32>(codec) == length && isSameText(name, codec + CODEC_TEXT_AT, length)) return i32(i)
  }
  return -1
}

function keepMask(context: usize, text: usize, length: u32, hash: u32, mask: u32): void {
  let at = usize(load<u32>(context, FEATURE_TEXT_NEXT))
  // Room for the text and for the vector that reads past its end.
  const bytes = (length + 31) & ~15
  const areaEnd = context + FEATURE_TEXT_AT + FEATURE_TEXT_BYTES
  if (at + bytes > areaEnd) {
    memory.fill(context + FEATURES, 0, FEATURE_ENTRIES * 16)
    at = context + FEATURE_TEXT_AT
  }
  memory.copy(at, text, length)
  store<u32>(context, u32(at) + bytes, FEATURE_TEXT_NEXT)
  const entry = context + FEATURES + usize(hash & (FEATURE_ENTRIES - 1)) * 16
  store<u32>(entry, hash)
  store<u32>(entry, u32(at), 4)
  store<u32>(entry, length, 8)
  store<u32>(entry, mask, 12)
}

/** Private to the thread, so it may use 64-bit steps. */
function hashFeatures(p: usize, length: u32): u32 {
  let h: u64 = length
  let i: u32 = 0
  while (i < length) {
    let v = v128.load(p + i)
    if (length - i < 16) v = v128.and(v, lanesBelow(length - i))
    h = (h ^ u64(i64x2.extract_lane(v, 0))) * 0x9e3779b97f4a7c15
    h = ((h ^ (h >> 32)) ^ u64(i64x2.extract_lane(v, 1))) * 0xc2b2ae3d27d4eb4f
    i += 16
  }
  return u32(h >> 32) | 1
}

// Constants of store/digest.ts, lane 0 and lane 1.
const B0: u32 = 0x85ebca77
const B1: u32 = 0x165667b1
const C0: u32 = 0xc2b2ae3d
const C1: u32 = 0x2545f491

// @ts-ignore: decorator
@inline
function mixWord(hash: u32, word: u32, factor: u32): u32 {
  const h = (hash ^ word) * factor
  return h ^ (h >> 15)
}

/** roomHash(rowKey) of store/digest.ts. */
function hashRoomOfRow(record: usize, nameHash: u32, b: u32, c: u32): u32 {
  let h = mixWord(nameHash, load<u32>(record), b)
  h = mixWord(h, load<u32>(record, 4), b)
  h = mixWord(h, load<u32>(record, 8), b)
  return finish(finish(mixWord(h, load<u32>(record, 12), b)) + c)
}

/**
 * Counts the packages of some rows of one table, marks the nights that have any, and sums the digests of these
 * properties having the room type.
 *
 * @param list row addresses, u32
 * @param result RESULT_BYTES
 */
export function census(list: usize, count: u32, result: usize): void {
  const span = spanOf()
  const chunks = span >> 4
  let packages: u32 = 0
  let digest0: u32 = 0
  let digest1: u32 = 0
  let touched: u32 = 0
  memory.fill(result, 0, RESULT_BYTES)
  for (let i: u32 = 0; i < count; i++) {
    const record = usize(load<u32>(list + usize(i) * 4))
    touched |= touchRow(list, i, count, chunks)
    const roomRecord = load<u32>(record, ROW_ROOM)
    digest0 += hashRoomOfRow(record, load<u32>(roomRecord, 16), B0, C0)
    digest1 += hashRoomOfRow(record, load<u32>(roomRecord, 20), B1, C1)
    let first = load<u32>(record, ROW_BASE)
    for (let k: u32 = 0; k < chunks; k++) {
      const chunk = usize(load<u32>(record + usize(k) * 4, ROW_CHUNKS))
      if (chunk != 0) {
        let nights: u32 = 0
        for (let j: u32 = 0; j < 16; j += 2) {
          nights |= u32(i64x2.bitmask(i64x2.ne(v128.load(chunk + (j << 3)), i64x2.splat(0)))) << j
        }
        packages += popcnt(nights)
        // A chunk beyond the end of the window continues at its beginning.
        const toEnd = span - first
        if (toEnd < 16) {
          addNights(result, 0, nights >> toEnd)
          nights &= (1 << toEnd) - 1
        }
        addNights(result, first, nights)
      }
      first += 16
      if (first >= span) first -= span
    }
  }
  store<u32>(result, packages)
  store<u32>(result, digest0, 4)
  store<u32>(result, digest1, 8)
  // The result is unused, but without a use the compiler would drop the loads.
  store<u32>(result, touched, 12)
}

/** Rows ahead that are fetched while one is worked on, and rows ahead of these whose chunks are looked up. */
const FETCH_ROWS: u32 = 4
const FETCH_RECORDS: u32 = 8

// @ts-ignore: decorator
@inline
/** Prefetches the lines of the chunks of a later row: the order of rows is unpredictable for the processor. */
function touchRow(list: usize, i: u32, count: u32, chunks: u32): u32 {
  if (i + FETCH_RECORDS >= count) return 0
  const far = load<u32>(usize(load<u32>(list + usize(i + FETCH_RECORDS) * 4)), ROW_CHUNKS)
  const record = usize(load<u32>(list + usize(i + FETCH_ROWS) * 4))
  let touched = far
  for (let k: u32 = 0; k < chunks; k++) {
    const chunk = usize(load<u32>(record + usize(k) * 4, ROW_CHUNKS))
    if (chunk != 0) touched |= load<u32>(chunk) | load<u32>(chunk, 64)
  }
  return touched
}

// @ts-ignore: decorator
@inline
/** Sets bits from bit `first` on in the nights of a result; four bytes at any byte hold them. */
function addNights(result: usize, first: u32, nights: u32): void {
  const at = result + usize(first >> 3)
  store<u32>(at, load<u32>(at, 16) | (nights << (first & 7)), 16)
}

/**
 * Turns up to 16 nights of some rows of a table into planes: the words of one night side by side, in row order.
 *
 * @param context of this thread; its batch is written over
 * @param list row addresses, u32
 * @param first the first of the 16 nights, counted around the end of the window
 * @param nights which of them, bit 0 the first; a plane each
 * @param target first plane; the next is `stride` bytes on
 */
export function gather(
  context: usize,
  list: usize,
  count: u32,
  first: u32,
  nights: u32,
  target: usize,
  stride: usize,
): void {
  const zeros = context + BATCH
  const temporary = zeros + CHUNK_BYTES
  memory.fill(zeros, 0, CHUNK_BYTES)
  let touched: u32 = 0
  let i: u32 = 0
  while (nights == 0xffff && i + 2 <= count) {
    if (i + FETCH_RECORDS + 1 < count) {
      touched |= touchNights(load<u32>(list + usize(i + FETCH_RECORDS) * 4), first)
      touched |= touchNights(load<u32>(list + usize(i + FETCH_RECORDS) * 4, 4), first)
    }
    const left = nightsOf(load<u32>(list + usize(i) * 4), first, zeros, temporary)
    const right = nightsOf(load<u32>(list + usize(i) * 4, 4), first, zeros, temporary + CHUNK_BYTES)
    let to = target + (usize(i) << 3)
    for (let j: u32 = 0; j < 128; j += 16) {
      const a = v128.load(left + j)
      const b = v128.load(right + j)
      v128.store(to, i8x16.shuffle(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23))
      to += stride
      v128.store(to, i8x16.shuffle(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
      to += stride
    }
    i += 2
  }
  while (i < count) {
    const words = nightsOf(load<u32>(list + usize(i) * 4), first, zeros, temporary)
    let to = target + (usize(i) << 3)
    for (let left = nights; left != 0; left &= left - 1) {
      store<u64>(to, load<u64>(words + (usize(ctz(left)) << 3)))
      to += stride
    }
    i++
  }
  // Unused, as in `census`.
  store<u32>(zeros, touched)
}

// @ts-ignore: decorator
@inline
/** As placeOf, for nights that are counted around the end of the window. */
function placeAround(row: u32, night: u32, span: u32): u32 {
  const place = placeOf(row, night)
  return place >= span ? place - span : place
}

// @ts-ignore: decorator
@inline
/** Fetches the lines of 16 nights of a later row. */
function touchNights(row: u32, first: u32): u32 {
  const place = placeAround(row, first, spanOf())
  const chunk = usize(load<u32>(usize(row) + ROW_CHUNKS + usize(place >> 4) * 4))
  return chunk == 0 ? 0 : load<u32>(chunk) | load<u32>(chunk, 64)
}

/** Address of 16 nights of a row. Nights in two chunks are joined. */
function nightsOf(row: u32, first: u32, zeros: usize, temporary: usize): usize {
  const span = spanOf()
  const place = placeAround(row, first, span)
  const k = place >> 4
  let chunk = usize(load<u32>(usize(row) + ROW_CHUNKS + usize(k) * 4))
  if (chunk == 0) chunk = zeros
  const skip = (place & 15) << 3
  if (skip == 0) return chunk
  let behind = usize(load<u32>(usize(row) + ROW_CHUNKS + usize(k + 1 == span >> 4 ? 0 : k + 1) * 4))
  if (behind == 0) behind = zeros
  let to = temporary
  for (let from = chunk + skip; from < chunk + CHUNK_BYTES; from += 8) {
    store<u64>(to, load<u64>(from))
    to += 8
  }
  for (let from = behind; from < behind + skip; from += 8) {
    store<u64>(to, load<u64>(from))
    to += 8
  }
  return temporary
}
