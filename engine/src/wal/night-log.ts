/**
 * What the log has about one night of a property (docs/design/storage.md#history-of-a-night): every command that can
 * have changed it, as it was given. The log has no outcomes; http/night-history.ts derives them.
 */

import type { Disk } from '../env.ts'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, entryKind, entryLength } from '../raft/entry.ts'
import {
  CONTENT_DIGEST_BYTES,
  type CommandReader,
  createCommandReader,
  GIVEN,
  KIND,
  openCommand,
  REQUEST_KEY_BYTES,
  readBytes,
  readF64,
  readName,
  readU8,
  readU32,
} from '../store/command.ts'
import { type LogPosition, readPartBefore } from './backward.ts'

export type NightAsk = {
  /** Packed. */
  readonly property: Uint8Array
  /** '' for all room types. */
  readonly roomType: string
  readonly day: number
}

/** Stay commands: `replaced` is none, but the end of a stay whose place another one took (http/night-stays.ts). */
export type StayKind = 'hold' | 'book' | 'confirm' | 'release'

/** What a command says. `room` is '' where it concerns all room types. */
type Command =
  | {
      readonly what: 'package'
      readonly room: string
      /** What it sets; undefined for what stays as it was. */
      readonly rooms: number | undefined
      readonly price: number | undefined
      readonly features: number | undefined
      /** Index up to which the source knows bookings; the ledger corrects its rooms (docs/design/stays.md#as-of). */
      readonly asOf: number | undefined
    }
  | { readonly what: 'rooms'; readonly room: string; readonly rooms: number; readonly asOf: number | undefined }
  | { readonly what: 'increase' | 'decrease'; readonly room: string; readonly rooms: number }
  | { readonly what: 'delete-package' | 'delete-room'; readonly room: string }
  | { readonly what: 'delete-day' | 'delete-property' | 'past' | 'time' | 'level'; readonly room: '' }
  | { readonly what: 'property'; readonly room: ''; readonly segment: string }
  | { readonly what: 'delete-segment'; readonly room: ''; readonly segment: string }
  | { readonly what: 'import'; readonly room: ''; readonly digest: string }
  | {
      readonly what: StayKind
      /** '' for a command without lines. */
      readonly room: string
      /** On this night; 0 without lines. */
      readonly rooms: number
      /** Hexadecimal, of the packed id. */
      readonly stay: string
      /** That it is to replace; '' for none. */
      readonly replaces: string
      readonly flags: number
      readonly seconds: number
      readonly source: string
    }

export type NightMention = Command & {
  readonly index: number
  readonly timeMs: number
  /** The day of the shard. */
  readonly today: number
  /** Its request key, hexadecimal; '' without one. */
  readonly key: string
}

/** A part of the log that was searched: all of its entries from `firstIndex` to `lastIndex`. */
export type NightPart = {
  /** Ascending. */
  readonly mentions: readonly NightMention[]
  /** 0 when the part has no entries. */
  readonly firstIndex: number
  readonly lastIndex: number
  /** Leader time of the first entry, ms; 0 for an entry without one. */
  readonly firstMs: number
  /** Where the search continues; undefined at the beginning of the log. */
  readonly next: LogPosition | undefined
  readonly bytes: number
  /** The first index that the log of this node may have. */
  readonly retainedFrom: number
}

/** Mentions of a part. Where it has more, the search continues within it. */
const MENTIONS_MAX = 256

export type SearchFrom = { readonly below: number } & Partial<LogPosition>

/**
 * Searches one part of the log.
 *
 * @param from without a place from the end of the log on
 * @param stays known stays of the night: commands on them need not have lines
 */
export function searchNight(
  disk: Disk,
  directory: string,
  seed: number,
  ask: NightAsk,
  { sequence, offset, below }: SearchFrom,
  stays: readonly string[],
): NightPart {
  const search = createSearch(ask, stays)
  const from = sequence === undefined || offset === undefined ? undefined : { sequence, offset }
  const { end, before, bytes, retainedFrom } = readPartBefore(
    disk,
    directory,
    seed,
    from,
    (first, count, buffer, start) => {
      const wanted = Math.min(count, below - first)
      if (wanted > 0) visitEntries(search, first, wanted, buffer, start)
    },
  )
  const { mentions, firstIndex, lastIndex, firstMs } = search
  const [oldest] = mentions
  if (search.isCut && oldest && end) {
    const next = { ...end, below: oldest.index }
    return { mentions, firstIndex: oldest.index, lastIndex, firstMs: oldest.timeMs, next, bytes, retainedFrom }
  }
  const next = before && { ...before, below: firstIndex === 0 ? below : firstIndex }
  return { mentions, firstIndex, lastIndex, firstMs, next, bytes, retainedFrom }
}

type Search = ReturnType<typeof createSearch>

function createSearch(ask: NightAsk, stays: readonly string[]) {
  return {
    ask,
    stays: new Set(stays),
    roomType: new TextEncoder().encode(ask.roomType),
    reader: createCommandReader(),
    mentions: [] as NightMention[],
    isCut: false,
    firstIndex: 0,
    lastIndex: 0,
    firstMs: 0,
  }
}

function visitEntries(search: Search, first: number, count: number, bytes: Uint8Array, start: number): void {
  const { mentions, reader } = search
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  // A record whose first index is at or below the last one replaces the tail.
  while (mentions.length > 0 && (mentions.at(-1)?.index as number) >= first) mentions.pop()
  let at = start
  for (let index = first; index < first + count; index++) {
    const from = at + ENTRY_HEADER_BYTES
    const end = from + entryLength(view, at)
    const isCommand = entryKind(view, at) === ENTRY_KIND.command
    if (isCommand) openCommand(reader, bytes, from, end)
    if (search.firstIndex === 0 || index <= search.firstIndex) {
      search.firstIndex = index
      search.firstMs = isCommand ? reader.timeMs : 0
    }
    if (isCommand) note(search, index)
    at = end
  }
  search.lastIndex = first + count - 1
  if (mentions.length <= 2 * MENTIONS_MAX) return
  keepNewest(search)
}

/** Commands with several room types stay together. */
function keepNewest(search: Search): void {
  const { mentions } = search
  const last = mentions[mentions.length - MENTIONS_MAX - 1]?.index as number
  mentions.splice(
    0,
    mentions.findIndex(({ index }) => index > last),
  )
  search.isCut = true
}

function note(search: Search, index: number): void {
  const { reader, ask } = search
  const { kind } = reader
  switch (kind) {
    case KIND.setPackage:
    case KIND.setPackageAsOf: {
      const asOf = kind === KIND.setPackageAsOf ? readF64(reader) : undefined
      if (!isOfProperty(search) || readU32(reader) !== ask.day) return
      const flags = readU8(reader)
      const [rooms, price, features] = [readU8(reader), readU32(reader), readU32(reader)]
      const room = readRoom(search)
      if (room === undefined) return
      return void add(search, index, {
        what: 'package',
        room,
        rooms: flags & GIVEN.availability ? rooms : undefined,
        price: flags & GIVEN.price ? price : undefined,
        features: flags & GIVEN.features ? features : undefined,
        asOf,
      })
    }
    case KIND.setAvailability:
    case KIND.setAvailabilityAsOf:
    case KIND.increaseAvailability:
    case KIND.decreaseAvailability: {
      const asOf = kind === KIND.setAvailabilityAsOf ? readF64(reader) : undefined
      if (!isOfProperty(search) || readU32(reader) !== ask.day) return
      const rooms = readU8(reader)
      const room = readRoom(search)
      if (room === undefined) return
      if (kind === KIND.increaseAvailability) return void add(search, index, { what: 'increase', room, rooms })
      if (kind === KIND.decreaseAvailability) return void add(search, index, { what: 'decrease', room, rooms })
      return void add(search, index, { what: 'rooms', room, rooms, asOf })
    }
    case KIND.deletePackage: {
      if (!isOfProperty(search) || readU32(reader) !== ask.day) return
      const room = readRoom(search)
      return room === undefined ? undefined : void add(search, index, { what: 'delete-package', room })
    }
    case KIND.deleteDay:
      if (!isOfProperty(search) || readU32(reader) !== ask.day) return
      return void add(search, index, { what: 'delete-day', room: '' })
    case KIND.deleteRoom: {
      const room = isOfProperty(search) ? readRoom(search) : undefined
      return room === undefined ? undefined : void add(search, index, { what: 'delete-room', room })
    }
    case KIND.deleteProperty:
      return isOfProperty(search) ? void add(search, index, { what: 'delete-property', room: '' }) : undefined
    case KIND.setProperty:
      if (!isOfProperty(search)) return
      // Stars and position.
      readBytes(reader, 1 + 8 + 8)
      return void add(search, index, { what: 'property', room: '', segment: readText(reader) })
    case KIND.deleteSegment:
      return void add(search, index, { what: 'delete-segment', room: '', segment: readText(reader) })
    case KIND.dropBefore:
      return readU32(reader) > ask.day ? void add(search, index, { what: 'past', room: '' }) : undefined
    case KIND.setTime:
      return void add(search, index, { what: 'time', room: '' })
    case KIND.featureLevel:
      return void add(search, index, { what: 'level', room: '' })
    case KIND.bulkLoad: {
      const digest = hexOf(reader.bytes, readBytes(reader, CONTENT_DIGEST_BYTES), CONTENT_DIGEST_BYTES)
      return void add(search, index, { what: 'import', room: '', digest })
    }
    case KIND.holdStay:
      return noteStay(search, index, 'hold')
    case KIND.bookStay:
      return noteStay(search, index, 'book')
    case KIND.confirmStay:
      return noteStay(search, index, 'confirm')
    case KIND.releaseStay:
      return noteStay(search, index, 'release')
    default:
  }
}

function add(search: Search, index: number, command: Command): void {
  const { timeMs, day: today, bytes, key: keyAt } = search.reader
  const key = keyAt < 0 ? '' : hexOf(bytes, keyAt, REQUEST_KEY_BYTES)
  search.mentions.push({ index, timeMs, today, key, ...command })
}

/** One mention for each room type of its lines on this night; without lines one for a known stay. */
function noteStay(search: Search, index: number, what: StayKind): void {
  const { reader, ask, stays } = search
  const { bytes } = reader
  const stayAt = readBytes(reader, STAY_ID_BYTES)
  const flags = readU8(reader)
  const seconds = readU32(reader)
  // The greatest total and the features.
  readBytes(reader, 8 + 4)
  const replacedAt = readBytes(reader, STAY_ID_BYTES)
  const sourceAt = readName(reader)
  const sourceEnd = reader.at
  const rooms = new Map<string, number>()
  for (let left = readU8(reader); left > 0; left--) {
    const isOurs = isOfProperty(search)
    const room = readRoom(search)
    const arrival = readU32(reader)
    const nights = readU8(reader)
    const count = readU8(reader)
    // Its flags.
    readU8(reader)
    if (!isOurs || room === undefined || ask.day < arrival || ask.day >= arrival + nights) continue
    rooms.set(room, (rooms.get(room) ?? 0) + count)
  }
  const stay = hexOf(bytes, stayAt, STAY_ID_BYTES)
  if (rooms.size === 0 && !stays.has(stay)) return
  stays.add(stay)
  const isReplacing = bytes.subarray(replacedAt, replacedAt + STAY_ID_BYTES).some((byte) => byte !== 0)
  const replaces = isReplacing ? hexOf(bytes, replacedAt, STAY_ID_BYTES) : ''
  const source = textOf(bytes, sourceAt, sourceEnd - sourceAt)
  const common = { what, stay, replaces, flags, seconds, source }
  if (rooms.size === 0) add(search, index, { ...common, room: '', rooms: 0 })
  for (const [room, count] of rooms) add(search, index, { ...common, room, rooms: count })
}

const STAY_ID_BYTES = 16

/** Reads a packed id. */
function isOfProperty({ reader, ask }: Search): boolean {
  const start = readBytes(reader, ask.property.length)
  for (let i = 0; i < ask.property.length; i++) if (reader.bytes[start + i] !== ask.property[i]) return false
  return true
}

/** Reads a room type. @returns undefined for another one than is searched for */
function readRoom({ reader, roomType, ask }: Search): string | undefined {
  const start = readName(reader)
  const length = reader.at - start
  if (ask.roomType === '') return textOf(reader.bytes, start, length)
  if (length !== roomType.length) return undefined
  for (let i = 0; i < length; i++) if (reader.bytes[start + i] !== roomType[i]) return undefined
  return ask.roomType
}

function readText(reader: CommandReader): string {
  const start = readName(reader)
  return textOf(reader.bytes, start, reader.at - start)
}

const decoder = new TextDecoder()

function textOf(bytes: Uint8Array, start: number, length: number): string {
  return decoder.decode(bytes.subarray(start, start + length))
}

function hexOf(bytes: Uint8Array, start: number, length: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, length).toString('hex')
}
