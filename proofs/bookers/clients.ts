/**
 * The bookers: each sends stays at its own pace, keeps a journal of every reply, and repeats a call whose outcome is
 * unknown until it is known.
 */

import { setTimeout as wait } from 'node:timers/promises'
import { VacancyCallError, type VacancyClient, VacancyRequestError } from '@vacancy/client'
import { formatDay } from '@vacancy/shared'
import type { StayLine } from '@vacancy/shared/wire'
import { between, chance, pick, type Random, streamOf } from '@vacancy/testkit/random'
import type { Journal, Take } from './judge.ts'

export const CLIENTS = 64

export const INVENTORY = {
  properties: Array.from({ length: 10 }, (_, n) => `book-${n}`),
  roomTypes: ['single', 'double', 'suite'],
  nights: 60,
  /** Few, so that many stays are refused. */
  rooms: 16,
} as const
const HOLD_SECONDS_MIN = 10
/** After it the hold of an earlier attempt may have expired, so that the reply is that of a second one. */
const HOLD_KNOWN_MS = 9_000
/** Bookings that a booker keeps: beyond them it cancels the oldest. */
const BOOKINGS_KEPT = 25
const REPEAT_PAUSE_MS = 50
/** Of a refused stay nothing else is wanted. */
const REFUSALS = ['SOLD_OUT', 'CONFLICT']
/** During a refresh packages are missing for a moment, also those of holds that are confirmed. */
const REFRESHED = 'NOT_FOUND'
/** How far the clock of the bookers may be from shard time, ms. An exact check follows at the end. */
const CLOCK_MS = 5_000

export type Counts = ReturnType<typeof createCounts>

export type Bookers = {
  readonly journals: Journal[]
  readonly violations: string[]
  readonly counts: Counts
  readonly firstDay: number
  readonly holdSecondsMax: number
  /** How far the clocks of the shard are ahead of the one of this process. */
  readonly aheadMs: number
  /** From one stay of a booker to its next. */
  readonly everyMs: number
  isOver: boolean
  lastTakenMs: number
}

type Pending = { readonly journal: Journal; readonly dueMs: number; readonly old: Journal | undefined }
export type Booker = {
  readonly number: number
  readonly name: string
  readonly client: VacancyClient
  readonly random: Random
  booked: Journal[]
  pending: Pending[]
  stays: number
}

export function createBookers(plan: Pick<Bookers, 'firstDay' | 'holdSecondsMax' | 'aheadMs' | 'everyMs'>): Bookers {
  return {
    ...plan,
    journals: [],
    violations: [],
    counts: createCounts(),
    isOver: false,
    lastTakenMs: performance.now(),
  }
}

function createCounts() {
  return {
    ...{ taken: 0, refused: 0, confirmed: 0, late: 0, retaken: 0, replaced: 0, reinstated: 0, voided: 0, abandoned: 0 },
    /** Repeats of a booking after its release, which are refused. */
    lateRepeats: 0,
    ...{ refreshed: 0, dayBegins: 0, restored: 0, repeats: 0, sentTwice: 0, longestGapMs: 0 },
  }
}

export function createBooker(client: VacancyClient, number: number, seed: number): Booker {
  const name = `b${number}`
  return { number, name, client, random: streamOf(seed, name), booked: [], pending: [], stays: 0 }
}

/** Sends stays until the bookers are over. Every call has its reply then. */
export async function runBooker(all: Bookers, booker: Booker): Promise<void> {
  let nextMs = performance.now() + (all.everyMs * booker.number) / CLIENTS
  while (!all.isOver) {
    const now = performance.now()
    if (now < nextMs) await wait(nextMs - now)
    // After an outage a booker sends at once what it missed of the last second.
    nextMs = Math.max(nextMs + all.everyMs, performance.now() - 1_000)
    await confirmDue(all, booker)
    await takeOne(all, booker)
    if (booker.booked.length > BOOKINGS_KEPT) await release(all, booker, booker.booked.shift() as Journal)
  }
}

function drawLine({ firstDay }: Bookers, random: Random): StayLine {
  const nights = between(random, 1, 7)
  const arrival = formatDay(firstDay + random.below(INVENTORY.nights - nights + 1))
  const { properties, roomTypes } = INVENTORY
  return {
    propertyId: pick(random, properties),
    roomType: pick(random, roomTypes),
    arrival,
    nights,
    rooms: between(random, 1, 3),
  }
}

function open(all: Bookers, booker: Booker): Journal {
  const { random, name } = booker
  const lines = [drawLine(all, random)]
  // The rooms left of a night that two lines touch would be ambiguous.
  const second = drawLine(all, random)
  if (chance(random, 0.1) && second.propertyId !== lines[0]?.propertyId) lines.push(second)
  const journal = {
    id: `${name}-${booker.stays++}`,
    lines,
    takes: [],
    deadlineMs: 0,
    isBooked: false,
    isReleased: false,
    isVoid: false,
  }
  all.journals.push(journal)
  return journal
}

async function takeOne(all: Bookers, booker: Booker): Promise<void> {
  const { random } = booker
  const journal = open(all, booker)
  if (chance(random, 0.03)) return await giveUp(all, booker, journal)
  const old = chance(random, 0.1) ? booker.booked[random.below(booker.booked.length)] : undefined
  if (chance(random, 0.3)) await hold(all, booker, journal, old)
  else await book(all, booker, journal, old)
}

/** A booking that is given up: its id is marked as void while it is on its way. */
async function giveUp(all: Bookers, booker: Booker, journal: Journal): Promise<void> {
  const { client } = booker
  const { id, lines } = journal
  journal.isReleased = true
  const booking = settle(all, () => client.bookStay({ stayId: id, lines, wantIndex: 1 }))
  const [taken, gone] = await Promise.all([booking, settle(all, () => client.releaseStay(id, { void: true }))])
  if (taken.result) note(all, journal, taken.result)
  if (gone.result?.state !== 'void' && gone.result?.state !== 'released') {
    all.violations.push(`${id}: void was answered with ${gone.result?.state ?? gone.code}`)
  }
  journal.isVoid = true
  all.counts.voided++
  const again = await settle(all, () => client.bookStay({ stayId: id, lines }))
  if (again.code !== 'CONFLICT') all.violations.push(`${id} is void, and booked again`)
}

async function book(all: Bookers, booker: Booker, journal: Journal, old: Journal | undefined): Promise<void> {
  const { client, booked } = booker
  const { id, lines } = journal
  const fields = { stayId: id, lines, ...(old && { replaces: old.id }), wantIndex: 1 }
  if (old) old.isReleased = true
  const { result, code } = await sometimesTwice(all, booker, journal, () => client.bookStay(fields))
  if (!result) return refused(all, booker, { journal, old, code })
  note(all, journal, result)
  journal.isBooked = true
  booked.push(journal)
  if (old) replaced(all, booker, old)
}

async function hold(all: Bookers, booker: Booker, journal: Journal, old: Journal | undefined): Promise<void> {
  const { client, random, pending } = booker
  const { id, lines } = journal
  const seconds = between(random, HOLD_SECONDS_MIN, all.holdSecondsMax)
  const fields = { stayId: id, lines, seconds, ...(old && { replaces: old.id }), wantIndex: 1 }
  const { result, code, tookMs } = await sometimesTwice(all, booker, journal, () => client.holdStay(fields))
  if (!result) return refused(all, booker, { journal, old: undefined, code })
  if (old) journal.changes = old.lines
  note(all, journal, tookMs < HOLD_KNOWN_MS ? result : { ...result, index: Number.NaN }, old && 'lacking')
  journal.deadlineMs = result.deadlineMs ?? 0
  if (chance(random, 0.5)) all.counts.abandoned++
  // One in ten is confirmed after its deadline.
  else {
    const share = chance(random, 0.1) ? 1.05 : between(random, 0, 70) / 100
    pending.push({ journal, dueMs: Date.now() + seconds * 1_000 * share, old })
  }
}

/** Whether a call may be refused so. */
function isRefusal({ counts }: Bookers, code: string): boolean {
  return REFUSALS.includes(code) || (counts.refreshed > 0 && code === REFRESHED)
}

/** The old stay of a refused replacement is unchanged. */
function refused(
  all: Bookers,
  { booked }: Booker,
  { journal, old, code }: { journal: Journal; old: Journal | undefined; code: string },
): void {
  if (old && booked.includes(old)) old.isReleased = false
  all.counts.refused++
  if (!isRefusal(all, code)) all.violations.push(`${journal.id} was refused with ${code}`)
}

function replaced(all: Bookers, { booked }: Booker, old: Journal): void {
  booked.splice(booked.indexOf(old), 1)
  all.counts.replaced++
}

/** A hold of a change was booked: the booking that it changes has ended, now or before. */
function changed(all: Bookers, booker: Booker, old: Journal | undefined): void {
  if (!old || !booker.booked.includes(old)) return
  old.isReleased = true
  replaced(all, booker, old)
}

async function release(all: Bookers, booker: Booker, journal: Journal): Promise<void> {
  journal.isReleased = true
  const { result, code } = await sometimesTwice(all, booker, journal, () => booker.client.releaseStay(journal.id))
  if (result?.state !== 'released') {
    all.violations.push(`${journal.id}: the release was answered with ${result?.state ?? code}`)
  } else if (chance(booker.random, 0.1)) await reinstate(all, booker, journal, Number(result.index))
}

/** A channel takes a cancellation back. A late repeat of the first booking never does. */
async function reinstate(all: Bookers, booker: Booker, journal: Journal, releasedAt: number): Promise<void> {
  const { client } = booker
  const { id, lines, takes } = journal
  const late = await settle(all, () => client.bookStay({ stayId: id, lines }))
  if (late.code !== 'CONFLICT') all.violations.push(`${id} is released, and booked again by a repeat`)
  all.counts.lateRepeats++
  const fields = { stayId: id, lines, reinstate: true, releasedAt, wantIndex: 1 }
  const { result, code } = await sometimesTwice(all, booker, journal, () => client.bookStay(fields))
  if (!result) {
    if (!isRefusal(all, code)) all.violations.push(`${id} was refused to be reinstated with ${code}`)
    return
  }
  for (const take of takes) take.returnedAt ??= releasedAt
  note(all, journal, result)
  journal.isReleased = false
  booker.booked.push(journal)
  all.counts.reinstated++
}

/** Confirms the holds whose time has come. */
async function confirmDue(all: Bookers, booker: Booker): Promise<void> {
  const now = Date.now()
  const due = booker.pending.filter(({ dueMs }) => dueMs <= now)
  for (const each of due) {
    booker.pending.splice(booker.pending.indexOf(each), 1)
    await confirm(all, booker, each)
  }
}

async function confirm(all: Bookers, booker: Booker, { journal, old }: Pending): Promise<void> {
  const { client, random, booked } = booker
  const { result, code } = await sometimesTwice(all, booker, journal, () => client.confirmStay(journal.id))
  if (result?.state === 'booked') {
    journal.isBooked = true
    if (journal.changes) journal.takes.push({ index: Number(result.index), left: undefined, share: 'rest' })
    changed(all, booker, old)
    booked.push(journal)
    all.counts.confirmed++
    return
  }
  // The booking that it changes has ended meanwhile: its rooms had to be taken again.
  if (code === 'SOLD_OUT' && old?.isReleased) return void all.counts.refused++
  if (code === REFRESHED && all.counts.refreshed > 0) return void all.counts.refused++
  if (code !== 'EXPIRED') all.violations.push(`${journal.id}: the confirmation was answered with ${code}`)
  const earlyMs = journal.deadlineMs - Date.now() - all.aheadMs
  if (earlyMs > CLOCK_MS) all.violations.push(`${journal.id} expired ${earlyMs} ms before its deadline`)
  all.counts.late++
  if (chance(random, 0.5)) await retake(all, booker, { journal, old })
}

async function retake(all: Bookers, booker: Booker, { journal, old }: Omit<Pending, 'dueMs'>): Promise<void> {
  const { client, booked } = booker
  const { id, takes } = journal
  const before = await settle(all, () => client.stay(id, { linearizable: true }))
  const last = takes.at(-1)
  if (before.result?.state !== 'expired' || last === undefined) {
    all.violations.push(`${id} was expired and is ${before.result?.state ?? before.code}`)
    return
  }
  const expiredAt = Number(before.result.index)
  const call = () => client.send('CONFIRMSTAY', { stayId: id, retake: 1, wantIndex: 1 })
  const { result, code } = await settle(all, call)
  if (result?.state !== 'booked') {
    if (!isRefusal(all, code)) all.violations.push(`${id}: the confirmation with retake was answered with ${code}`)
    return
  }
  last.returnedAt = expiredAt
  note(all, journal, result)
  journal.isBooked = true
  changed(all, booker, old)
  booked.push(journal)
  all.counts.retaken++
}

type Stay = Awaited<ReturnType<VacancyClient['bookStay']>>
type Outcome = { readonly result: Stay | undefined; readonly code: string; readonly tookMs: number }

/** Notes that a stay took its rooms. */
function note(
  all: Bookers,
  journal: Journal,
  { state, index, appliedIndex, lines }: Stay,
  share?: Take['share'],
): void {
  const isTaken = (state === 'held' || state === 'booked') && !Number.isNaN(index)
  const isOriginal = isTaken && appliedIndex !== undefined && Number(appliedIndex) === Number(index)
  const take: Take = {
    index: isTaken ? Number(index) : undefined,
    left: isOriginal ? lines.map(({ days }) => (days ?? []).map(({ availability }) => availability)) : undefined,
    ...(share && { share }),
  }
  journal.takes.push(take)
  const now = performance.now()
  all.counts.taken++
  all.counts.longestGapMs = Math.max(all.counts.longestGapMs, Math.round(now - all.lastTakenMs))
  all.lastTakenMs = now
}

/** One call in twenty is sent twice at once: both must have the same result. */
async function sometimesTwice(
  all: Bookers,
  { random }: Booker,
  journal: Journal,
  call: () => Promise<Stay>,
): Promise<Outcome> {
  if (!chance(random, 0.05)) return await settle(all, call)
  all.counts.sentTwice++
  const [first, second] = await Promise.all([settle(all, call), settle(all, call)])
  // A refusal leaves no record: what is refused once may be taken the next time.
  const results = [first, second].flatMap(({ result }) => result ?? [])
  const [one, other] = results
  if (one && other && (one.state !== other.state || one.index !== other.index)) {
    all.violations.push(`${journal.id}: sent twice, ${one.state} at ${one.index} and ${other.state} at ${other.index}`)
  }
  const original = results.find(({ index, appliedIndex }) => index === appliedIndex) ?? one
  const deadlineMs = Math.max(0, ...results.map(({ deadlineMs: ms = 0 }) => ms))
  if (original)
    return {
      result: { ...original, ...(deadlineMs > 0 && { deadlineMs }) },
      code: '',
      tookMs: Math.max(first.tookMs, second.tookMs),
    }
  return first
}

/** Repeats a call until its outcome is known. */
async function settle(all: Bookers, call: () => Promise<Stay>): Promise<Outcome> {
  const sentAt = performance.now()
  for (;;) {
    try {
      return { result: await call(), code: '', tookMs: performance.now() - sentAt }
    } catch (error) {
      const tookMs = performance.now() - sentAt
      if (error instanceof VacancyRequestError) return { result: undefined, code: error.code, tookMs }
      if (!(error instanceof VacancyCallError)) throw error
      all.counts.repeats++
      await wait(REPEAT_PAUSE_MS)
    }
  }
}
