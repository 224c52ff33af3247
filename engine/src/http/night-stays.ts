/**
 * What became of the commands on stays of a night. The log does not say whether a command was refused, but the ledger
 * has the index of each booking and of the last state of each stay (docs/design/storage.md#history-of-a-night).
 */

import { STAY_FLAGS } from '../store/apply-stays.ts'
import type { NightNow, NightStay } from '../store/night-now.ts'
import { HOLD_MS_MAX } from '../store/stays.ts'
import type { NightMention, StayKind } from '../wal/night-log.ts'
import type { Effect, NightEvent, Outcome } from './night-events.ts'

export type StayMention = Extract<NightMention, { readonly what: StayKind }>

/** The indexes that were searched, and what the ledger has now. */
export type StaySearch = {
  readonly firstIndex: number
  readonly lastIndex: number
  readonly now: NightNow
  readonly mentions: readonly NightMention[]
  /** Stays of the mentions that the ledger has, but not on this night. */
  readonly others: ReadonlySet<string>
  /** '' for all room types. */
  readonly roomType: string
  readonly day: number
}

const NONE: Effect = { type: 'none' }
const LOST: Effect = { type: 'lost', what: 'rooms' }

/** Events of the stays of a night, unordered. */
export function stayEvents(search: StaySearch): NightEvent[] {
  const { now, mentions } = search
  const known = new Map(now.stays.map((stay) => [stay.stay, stay]))
  const commands = mentions.filter(isOfStay)
  return [
    ...commands.flatMap((mention) => commandEvents(search, commands, mention, known.get(mention.stay))),
    ...now.stays.flatMap((stay) => endOf(search, commands, stay)),
  ]
}

export function isOfStay(mention: NightMention): mention is StayMention {
  return 'stay' in mention
}

/** Rooms by room type, as the command or the ledger has them. */
function roomsOf(
  search: StaySearch,
  commands: readonly StayMention[],
  { stay, room, rooms, index }: StayMention,
  record: NightStay | undefined,
): (readonly [string, number])[] {
  if (room !== '') return [[room, rooms]]
  if (record) return [...record.rooms].filter(([name]) => search.roomType === '' || name === search.roomType)
  // An earlier command in this part has its lines.
  const lines = commands.filter((each) => each.stay === stay && each.room !== '' && each.index < index)
  const last = lines.at(-1)?.index
  return lines.filter((each) => each.index === last).map((each) => [each.room, each.rooms] as const)
}

function commandEvents(
  search: StaySearch,
  commands: readonly StayMention[],
  mention: StayMention,
  record: NightStay | undefined,
): NightEvent[] {
  const { index, timeMs, today, stay, replaces, source, what: kind } = mention
  const { outcome, per } = decide(search, commands, mention, record)
  // A hold that expired and was made void has no trace of its expiry.
  const isDoubted = outcome === 'unknown' || (kind === 'hold' && record?.state === 'void')
  const doubt = isDoubted ? doubtOf(commands, mention, record) : undefined
  return roomsOf(search, commands, mention, record).map(([room, count]) => {
    // Of a night that has passed, and of a change of another stay, rooms come and go by other rules.
    const isPlain = today <= search.day && (record === undefined || !record.isChange || per.held === 0)
    // Without lines, those of the ledger are of what the id is used for now.
    const rooms = mention.room === '' && outcome === 'unknown' ? undefined : count
    const effect = effectOf(outcome, per, count, isPlain)
    return {
      ...{ index, timeMs, order: 1, kind, room, outcome, effect, rooms, source, doubt },
      stay: { key: stay, replaces },
    }
  })
}

type Per = { readonly left: number; readonly held: number }
type Decision = { readonly outcome: Outcome; readonly per: Per }

function effectOf(outcome: Outcome, { left, held }: Per, rooms: number, isPlain: boolean): Effect {
  if (outcome === 'unknown') return LOST
  if (outcome !== 'done' || (left === 0 && held === 0)) return NONE
  return isPlain ? { type: 'stay', left: left * rooms, held: held * rooms } : LOST
}

/** Entries return so many expired holds each; later ones do the rest. */
const EXPIRY_LAG_MS = 60_000

/** Until when a command may have had a further effect: an expiry, or an end that no command on the stay says. */
function doubtOf(
  commands: readonly StayMention[],
  { what, stay, timeMs, seconds, index }: StayMention,
  record: NightStay | undefined,
): NightEvent['doubt'] {
  if (what === 'hold') {
    // A hold that is to be replaced is kept as long as the one that replaces it.
    const isKept = commands.some(({ replaces }) => replaces === stay)
    const ms = isKept ? HOLD_MS_MAX : seconds * 1_000
    return { untilMs: timeMs + ms + EXPIRY_LAG_MS, untilIndex: 0 }
  }
  if (what === 'release') return { untilMs: 0, untilIndex: index }
  return { untilMs: 0, untilIndex: record ? record.bookedIndex || record.index : Number.POSITIVE_INFINITY }
}

const NOTHING: Per = { left: 0, held: 0 }

function is(outcome: Outcome, per = NOTHING): Decision {
  return { outcome, per }
}

function decide(
  search: StaySearch,
  commands: readonly StayMention[],
  mention: StayMention,
  record: NightStay | undefined,
): Decision {
  const kind = mention.what
  if (!record) {
    const mayBe = search.others.has(mention.stay) || isForgotten(search.now, mention)
    return is(mayBe ? 'unknown' : 'refused')
  }
  switch (kind) {
    case 'hold':
      return decideHold(commands, mention, record)
    case 'book':
    case 'confirm': {
      const { bookedIndex, heldSinceMs } = record
      if (bookedIndex === mention.index) return is('done', heldSinceMs > 0 ? CONFIRMED : BOOKED)
      if (bookedIndex > 0 && mention.index > bookedIndex) return is(afterBooking(mention, record))
      return is(isEndedBefore(search, commands, mention, record) ? 'unknown' : 'refused')
    }
    case 'release': {
      if (record.state === 'void' && record.index === mention.index) return is('done')
      if (record.state === 'released' && record.index === mention.index) return is('done', endPer(record))
      if (record.index > mention.index) return is('unknown')
      return is(record.state === 'booked' || record.state === 'held' ? 'refused' : 'unchanged')
    }
    default:
      return kind satisfies never
  }
}

const BOOKED: Per = { left: -1, held: 0 }
const HELD: Per = { left: -1, held: 1 }
const CONFIRMED: Per = { left: 0, held: -1 }

/** What the end of a stay gives back. */
function endPer({ bookedIndex, heldSinceMs }: NightStay): Per {
  return bookedIndex > 0 || heldSinceMs === 0 ? { left: 1, held: 0 } : { left: 1, held: -1 }
}

/** Whether a stay that the ledger has no more may have existed. */
function isForgotten({ knownFrom }: NightNow, { what, index, timeMs }: StayMention): boolean {
  if (index <= knownFrom.index) return true
  return what !== 'book' && timeMs <= knownFrom.timeMs
}

function decideHold(commands: readonly StayMention[], mention: StayMention, record: NightStay): Decision {
  const { index, timeMs, stay, replaces } = mention
  const { heldSinceMs, state, bookedIndex } = record
  if (state === 'held' && record.index === index) return is('done', HELD)
  const atOnce = commands.filter((each) => each.what === 'hold' && each.stay === stay && each.timeMs === timeMs)
  const isFirst = heldSinceMs > 0 && timeMs === heldSinceMs
  if (isFirst && new Set(atOnce.map((each) => each.index)).size === 1) return is('done', HELD)
  if (isFirst || heldSinceMs === 0 || timeMs < heldSinceMs || replaces !== '') {
    return is(bookedIndex > 0 && index > bookedIndex && state === 'booked' ? 'unchanged' : 'unknown')
  }
  // At most its deadline moved.
  const endIndex = bookedIndex || (state === 'held' ? Number.POSITIVE_INFINITY : record.index)
  return is(index < endIndex || state === 'booked' ? 'unchanged' : 'refused')
}

/** A repeat of a booking. */
function afterBooking({ index }: StayMention, { state, index: reached }: NightStay): Outcome {
  return state === 'booked' || index < reached ? 'unchanged' : 'refused'
}

/** Whether the stay may have been booked by the command and ended since, before it was held or booked as the ledger has it. */
function isEndedBefore(
  { lastIndex }: StaySearch,
  commands: readonly StayMention[],
  { stay, index }: StayMention,
  { bookedIndex, index: reached }: NightStay,
): boolean {
  const until = bookedIndex || reached
  if (until > lastIndex) return true
  return commands.some((each) => {
    if (each.index <= index || each.index > until) return false
    const isAgain = (each.flags & STAY_FLAGS.reinstate) !== 0
    return each.stay === stay ? each.what === 'release' || isAgain : each.replaces === stay
  })
}

/** The end of a stay that no command on it says: it expired, or another stay took its place. */
function endOf(search: StaySearch, commands: readonly StayMention[], record: NightStay): NightEvent[] {
  const { index, timeMs, state, stay, isChange, bookedIndex, rooms } = record
  if (index < search.firstIndex || index > search.lastIndex) return []
  const isNamed = commands.some((each) => each.stay === stay && each.index === index && each.what === 'release')
  const kind = state === 'expired' ? 'expire' : state === 'released' && !isNamed ? 'replaced' : undefined
  if (kind === undefined) return []
  const isPlain = !isChange || bookedIndex > 0
  return [...rooms]
    .filter(([room]) => search.roomType === '' || room === search.roomType)
    .map(([room, count]) => ({
      ...{ index, timeMs, order: 0, kind, room, rooms: count, source: record.source },
      outcome: 'done' as const,
      effect: effectOf('done', endPer(record), count, isPlain),
      stay: { key: stay, replaces: '' },
    }))
}
