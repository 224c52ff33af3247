/**
 * What a run with bookers must have left behind (docs/design/stays.md#bookers): the records and nights of the shard at its
 * end, against the journal that the bookers kept. The takes and returns are replayed in the order of the log.
 */

import { dayOf, formatDay } from '@vacancy/shared'
import type { StayLine, StayState } from '@vacancy/shared/wire'

/** A time at which a stay took its rooms. */
export type Take = {
  /** Of the entry that took them; undefined where only later replies arrived. */
  readonly index: number | undefined
  /** Rooms left right after it, by line and night; undefined for a repeat, whose days are of a later time. */
  readonly left: readonly (readonly number[])[] | undefined
  /** When a hold that was taken again had returned its rooms; undefined for the last time. */
  returnedAt?: number
  /** Of a hold that changes a booking: what that one lacks, then by the confirmation the rest. Absent: all rooms. */
  readonly share?: 'lacking' | 'rest'
}

export type Journal = {
  readonly id: string
  readonly lines: readonly StayLine[]
  /** Lines of the booking that a hold of it changes. */
  changes?: readonly StayLine[]
  readonly takes: Take[]
  /** Of the last acknowledged hold. */
  deadlineMs: number
  /** An acknowledged booking or confirmation. */
  isBooked: boolean
  /** A release was requested, or a stay that replaces it. */
  isReleased: boolean
  /** The void of this unknown stay was acknowledged. */
  isVoid: boolean
}

export type StayRecord = { readonly state: StayState; readonly index: number; readonly timeMs: number }

export type Evidence = {
  readonly journals: readonly Journal[]
  /** At the end, by stay. */
  readonly records: ReadonlyMap<string, StayRecord>
  /** Rooms left at the end, by `nightName`. */
  readonly nights: ReadonlyMap<string, number>
  /** Rooms of each night at the start. */
  readonly rooms: number
}

export type Verdict = {
  readonly booked: number
  readonly released: number
  readonly expired: number
  readonly voided: number
  /** Takes whose index no reply had: they are in no replay. */
  readonly unplaced: number
  /** Replies whose rooms left were compared with the replay. */
  readonly compared: number
  readonly violations: readonly string[]
}

export function nightName(propertyId: string, roomType: string, date: string): string {
  return `${propertyId}/${roomType}/${date}`
}

/** Names of the nights of a line. */
export function nightsOf({ propertyId, roomType, arrival, nights }: StayLine): string[] {
  const first = dayOf(Date.parse(arrival))
  return Array.from({ length: nights }, (_, n) => nightName(propertyId, roomType, formatDay(first + n)))
}

const TAKEN: readonly StayState[] = ['held', 'booked']

export function judge(evidence: Evidence): Verdict {
  const violations: string[] = []
  const counts = { booked: 0, released: 0, expired: 0, void: 0, held: 0 }
  for (const journal of evidence.journals) {
    const record = evidence.records.get(journal.id)
    if (record) counts[record.state]++
    violations.push(...fateViolations(journal, record))
  }
  const { unplaced, compared, oversold } = replay(evidence)
  violations.push(...oversold, ...nightViolations(evidence))
  const { booked, released, expired, void: voided } = counts
  return { booked, released, expired, voided, unplaced, compared, violations }
}

/** One fate, and no acknowledged step undone. */
function fateViolations(
  { id, isBooked, isReleased, isVoid, takes, deadlineMs }: Journal,
  record?: StayRecord,
): string[] {
  if (!record) return takes.length > 0 || isVoid ? [`${id} was acknowledged and has no record`] : []
  const { state, timeMs } = record
  const found: string[] = []
  if (state === 'held') found.push(`${id} is still on hold`)
  if (isBooked && state !== 'booked' && !(isReleased && state === 'released')) {
    found.push(`${id} was acknowledged as booked and is ${state}`)
  }
  if (state === 'released' && !isReleased) found.push(`${id} is released without a request`)
  if (isVoid && takes.length === 0 && state !== 'void' && state !== 'released') found.push(`${id} is void and ${state}`)
  if (state === 'expired' && timeMs < deadlineMs) found.push(`${id} expired ${deadlineMs - timeMs} ms early`)
  return found
}

type Step = { readonly index: number; readonly order: number; readonly journal: Journal; readonly take?: Take }
/** Within one entry: holds expire, a replaced stay is released, and then rooms are taken. */
const ORDER = { return: 0, take: 1 } as const

function replay({ journals, records, rooms }: Evidence): { unplaced: number; compared: number; oversold: string[] } {
  const steps: Step[] = []
  /** Nights of stays that are in no replay: what is left on them cannot be compared. */
  const unclear = new Set<string>()
  let unplaced = 0
  for (const journal of journals) {
    const record = records.get(journal.id)
    const leftAt = record && !TAKEN.includes(record.state) ? record.index : undefined
    const hasUnknown = journal.takes.some(({ index }) => index === undefined)
    if (hasUnknown || (journal.takes.length === 0 && record && record.state !== 'void')) {
      unplaced++
      for (const line of journal.lines) for (const night of nightsOf(line)) unclear.add(night)
      continue
    }
    for (const take of journal.takes) {
      steps.push({ index: take.index as number, order: ORDER.take, journal, take })
      const returnedAt = take.returnedAt ?? leftAt
      if (returnedAt !== undefined) steps.push({ index: returnedAt, order: ORDER.return, journal })
    }
  }
  steps.sort((a, b) => a.index - b.index || a.order - b.order)
  const taken = new Map<string, number>()
  const ofStay = new Map<Journal, Map<string, number>>()
  const oversold: string[] = []
  let compared = 0
  for (const { index, journal, take } of steps) {
    const own = ofStay.get(journal) ?? new Map<string, number>()
    for (const [night, rooms] of take ? shareOf(journal, take) : own) {
      taken.set(night, (taken.get(night) ?? 0) + (take ? rooms : -rooms))
      own.set(night, (own.get(night) ?? 0) + rooms)
    }
    if (!take) own.clear()
    ofStay.set(journal, own)
    if (!take) continue
    for (const [n, line] of journal.lines.entries()) {
      for (const [at, night] of nightsOf(line).entries()) {
        const left = rooms - (taken.get(night) ?? 0)
        const reported = take.left?.[n]?.[at]
        if (left < 0) oversold.push(`${night} is oversold by ${-left} at ${index}`)
        else if (reported !== undefined && !unclear.has(night) && reported !== left) {
          oversold.push(`${journal.id} at ${index}: ${night} has ${reported} left, not ${left}`)
        }
      }
    }
    if (take.left) compared++
  }
  return { unplaced, compared, oversold }
}

/** The rooms that a step takes, by night. */
function shareOf({ lines, changes = [] }: Journal, { share }: Take): Map<string, number> {
  const before = share ? roomsOf(changes) : new Map<string, number>()
  return new Map(
    [...roomsOf(lines)].map(([night, rooms]) => {
      const kept = Math.min(rooms, before.get(night) ?? 0)
      return [night, share === 'rest' ? kept : rooms - kept]
    }),
  )
}

function roomsOf(lines: readonly StayLine[]): Map<string, number> {
  const rooms = new Map<string, number>()
  for (const line of lines) for (const night of nightsOf(line)) rooms.set(night, (rooms.get(night) ?? 0) + line.rooms)
  return rooms
}

/** At the end a night has its rooms, without those of booked stays. */
function nightViolations({ journals, records, nights, rooms }: Evidence): string[] {
  const booked = new Map<string, number>()
  for (const { id, lines } of journals) {
    if (records.get(id)?.state !== 'booked') continue
    for (const line of lines)
      for (const night of nightsOf(line)) booked.set(night, (booked.get(night) ?? 0) + line.rooms)
  }
  return [...nights].flatMap(([night, left]) => {
    const expected = rooms - (booked.get(night) ?? 0)
    return left === expected ? [] : [`${night} has ${left} rooms left at the end, not ${expected}`]
  })
}
