/**
 * The invariants of every run, checked while it runs (docs/design/testing.md#oracles).
 *
 * The oracles observe what replicas apply, reply and report, with a global view that no replica has. The first replica
 * that applies an index defines its entry; every other replica, and every restart, must agree. A reference state
 * machine applies the same entries.
 */

import { assert } from '@vacancy/shared'
import { entryTerm, viewOf } from '../../engine/src/raft/entry.ts'
import { KIND, kindOfCommand } from '../../engine/src/store/command.ts'
import type { Memory } from '../../engine/src/store/store.ts'
import type { NodeClock } from './clocks.ts'
import type { Reference } from './machine.ts'
import { attemptOf } from './toy-machine.ts'
import { digestOf } from './trace.ts'

export const ORACLES = {
  O1: 'at most one leader per term; a leader has every entry committed before its term',
  O2: 'every index holds the same entry on every node and after every restart',
  O3: 'no acknowledged write is missing, and no failed write is present',
  O4: 'each request takes effect once, and repeats get the same result',
  O5: 'availability is never negative, and changes only by acknowledged or unknown writes',
  O6: 'writes and linearizable reads are linearizable',
  O7: 'a follower read is not older than reported, and never goes back within a connection',
  O8: 'equal state at equal indexes',
  O9: 'acknowledged writes are durable on a majority',
  O10: 'damage is found before the data is used; a torn tail does not prevent a start',
  O11: 'no process ends without a fault',
  O12: 'joint phases end, and configurations agree',
  O13: 'a healthy majority makes progress',
  O14: 'nothing grows beyond its bound',
  O15: 'time and maintenance go back only by set-time, and time runs ahead only with a clock shared by a majority',
  S1: 'no night is oversold: sellable − debt = base − held',
  S2: 'a stay has all of its nights or none',
  S3: 'every hold ends in one fate, and no booking that was acknowledged expires',
  S4: 'a request about a stay has one effect however often it is sent, and the replies agree',
  S5: 'after the last deadline nothing is held',
  S6: 'stays are part of equal states, also after snapshot and log',
} as const
export type OracleName = keyof typeof ORACLES

/** A violated invariant; ends the run. */
export class ViolationError extends Error {
  readonly oracle: OracleName
  constructor(oracle: OracleName, message: string) {
    super(`${oracle}: ${message}`)
    this.oracle = oracle
  }
}

export function violate(oracle: OracleName, message: string): never {
  throw new ViolationError(oracle, message)
}

export type Oracles = ReturnType<typeof createOracles>

/** Groups of node numbers, each with its own majority. */
type Halves = readonly (readonly number[])[]

export function createOracles(reference: Reference) {
  return {
    checks: Object.fromEntries(Object.keys(ORACLES).map((name) => [name, 0])) as Record<OracleName, number>,
    /** By index: term (0: unknown), digest of the entry, digest of the state after it, result. */
    terms: [0],
    entries: [0],
    statesLo: [0],
    statesHi: [0],
    codes: [0],
    values: [0],
    /** Row order by index, from the first checked replica. */
    orders: new Map<number, number>(),
    reference,
    /** Attempt → first index at which it was applied. */
    attempts: new Map<number, number>(),
    /** Attempts that were reported as certainly in no log. */
    failed: new Set<number>(),
    leaders: new Map<number, number>(),
    /** By index: terms of entries that a leader of bare cores has committed, which later leaders must have. */
    committedTerms: new Map<number, number>(),
    /** By index and term, of every entry that bare cores stored: its digest and the term of the entry before. */
    stored: new Map<string, { readonly digest: number; readonly before: number }>(),
    /** Highest index known to be committed. */
    committed: 0,
    /** Acknowledged attempts with their index. */
    acknowledged: new Map<number, number>(),
    /** Acknowledgements with a higher index than all earlier ones, oldest first. */
    acknowledgedAt: [] as { readonly us: number; readonly index: number }[],
    /** Voters in force, oldest first; two groups while joint. Only changes. */
    configurations: [] as { readonly index: number; readonly halves: Halves }[],
    configurationIndex: -1,
    maintenanceDay: 0,
    timeMs: 0,
    timeAtUs: 0,
    /** Majority of the voters, if these never change. */
    clocks: [] as readonly NodeClock[],
  }
}

/** Those of a life of the data that begins with a backup: its state is what the first node shows. */
export function oraclesFrom(
  { checks, clocks }: Oracles,
  { index, timeMs, timeAtUs }: { readonly index: number; readonly timeMs: number; readonly timeAtUs: number },
  reference: Reference,
): Oracles {
  const oracles = { ...createOracles(reference), checks, clocks, committed: index, timeMs, timeAtUs }
  oracles.maintenanceDay = reference.lastMaintenanceDay()
  fill(oracles, index)
  oracles.statesLo[index] = Number.NaN
  return oracles
}

type Digest = { readonly lo: number; readonly hi: number }

/** The result of applying one command. */
export type AppliedEntry = {
  readonly node: number
  readonly index: number
  readonly term: number
  readonly bytes: Uint8Array
  readonly start: number
  readonly end: number
  readonly code: number
  readonly value: number
  readonly resultIndex: number
  /** Time assigned by the leader; 0 without one. */
  readonly timeMs?: number
  /** Its attempt, if not encoded in the bytes; 0 for none. */
  readonly attempt?: number
  /** Digest of the state after it, if the reference has none. */
  readonly digest?: Digest
}

/** A replica applied a command. */
export function onApplied(oracles: Oracles, nowUs: number, applied: AppliedEntry): void {
  const { node, index, term, bytes, start, end } = applied
  const { terms, entries, checks, reference } = oracles
  // The leader adds its time before the command is logged, so all bytes belong to the entry.
  const digest = digestOf(bytes.subarray(start, end))
  checks.O2++
  if (index < terms.length && terms[index] !== 0) {
    if (terms[index] !== term || entries[index] !== digest) {
      violate('O2', `node ${node} applied a different entry at index ${index}: term ${term} instead of ${terms[index]}`)
    }
  } else {
    if (index < terms.length)
      violate('O2', `node ${node} applied a command at index ${index}, where others applied none`)
    fill(oracles, index - 1)
    terms.push(term)
    entries.push(digest)
    const observed = { code: applied.code, value: applied.value, index: applied.resultIndex }
    const result = reference.apply(index, bytes, start, end, observed)
    oracles.codes.push(result.code)
    oracles.values.push(result.value)
    pushState(oracles, reference.digest?.() ?? applied.digest)
    noteAttempt(oracles, applied.attempt ?? attemptOf(bytes, start), index)
    const kind = kindOfCommand(viewOf(bytes), start)
    const isSet = kind === KIND.setTime
    noteReference(oracles, isSet || kind === KIND.setting)
    noteTime(oracles, nowUs, index, applied.timeMs ?? 0, isSet)
  }
  oracles.committed = Math.max(oracles.committed, index)
  if (applied.digest) onState(oracles, node, index, applied.digest.lo, applied.digest.hi)
  checks.O4++
  if (oracles.codes[index] !== applied.code || oracles.values[index] !== applied.value) {
    violate(
      'O4',
      `node ${node} returned ${applied.code}/${applied.value} at index ${index}, not ${oracles.codes[index]}/${oracles.values[index]}`,
    )
  }
}

function noteAttempt(oracles: Oracles, attempt: number, index: number): void {
  if (attempt === 0) return
  if (!oracles.attempts.has(attempt)) oracles.attempts.set(attempt, index)
  oracles.checks.O3++
  if (oracles.failed.has(attempt))
    violate('O3', `attempt ${attempt} was reported as in no log, but is at index ${index}`)
}

/** Slightly more than drift, slew and the age of reports add to the allowed minute. */
const CLOCKS_AGREE_MS = 65_000
const FASTEST = 1.4

/** Independent of leader and clocks. */
function noteTime(oracles: Oracles, nowUs: number, index: number, timeMs: number, isSet: boolean): void {
  if (timeMs === 0) return
  const { timeMs: before, timeAtUs, clocks, checks } = oracles
  checks.O15++
  if (timeMs < before && !isSet) violate('O15', `the time of the log goes back at index ${index}`)
  const ranMs = ((nowUs - timeAtUs) / 1_000) * FASTEST + CLOCKS_AGREE_MS
  if (before > 0 && clocks.length > 1 && timeMs > before + ranMs) {
    const latestMs = (clock: NodeClock) => clock.clock.wallMs() - clock.offsetMs + clock.offsetMostMs
    const near = clocks.filter((clock) => latestMs(clock) + CLOCKS_AGREE_MS >= timeMs)
    if (near.length * 2 <= clocks.length)
      violate('O15', `the time of the log jumps by ${timeMs - before} ms at index ${index}, with ${near.length} clocks`)
  }
  oracles.timeMs = timeMs
  oracles.timeAtUs = nowUs
}

/** @param mayGoBack the time was set, or the beginning of the day */
function noteReference(oracles: Oracles, mayGoBack: boolean): void {
  const { reference, checks } = oracles
  checks.O5++
  checks.O15++
  const day = reference.lastMaintenanceDay()
  if (day < oracles.maintenanceDay && !mayGoBack) violate('O15', 'the date of maintenance went back')
  oracles.maintenanceDay = day
}

function fill(oracles: Oracles, to: number): void {
  while (oracles.terms.length <= to) {
    oracles.terms.push(0)
    oracles.entries.push(0)
    oracles.codes.push(0)
    oracles.values.push(0)
    pushState(oracles, undefined)
  }
}

/** @param digest undefined: nothing changed */
function pushState({ statesLo, statesHi }: Oracles, digest: Digest | undefined): void {
  statesLo.push(digest?.lo ?? (statesLo.at(-1) as number))
  statesHi.push(digest?.hi ?? (statesHi.at(-1) as number))
}

/** A core stored an entry: log matching (docs/design/consensus.md#invariants). @param before the term of the entry before */
export function onStored({ stored, checks }: Oracles, index: number, before: number, bytes: Uint8Array): void {
  const term = entryTerm(viewOf(bytes), 0)
  if (before > term) violate('O2', `index ${index} of term ${term} is stored behind one of term ${before}`)
  const digest = digestOf(bytes)
  const known = stored.get(`${index} ${term}`)
  checks.O2++
  if (!known) stored.set(`${index} ${term}`, { digest, before })
  else if (known.digest !== digest || known.before !== before)
    violate('O2', `index ${index} of term ${term} is stored with two contents, or behind two terms`)
}

/** A replica's state after an index, from applying or installing a snapshot. */
export function onState(oracles: Oracles, node: number, index: number, lo: number, hi: number): void {
  oracles.checks.O8++
  // Entries other than commands change nothing and may not have been reported.
  const known = Math.min(index, oracles.statesLo.length - 1)
  if (Number.isNaN(oracles.statesLo[known])) {
    oracles.statesLo[known] = lo
    oracles.statesHi[known] = hi
  }
  if (oracles.statesLo[known] === lo && oracles.statesHi[known] === hi) return
  violate('O8', `the state of node ${node} at index ${index} differs from the log up to there`)
}

/** Compares a replica record by record, if the reference is at the same index. @param order hash of its row order */
export function onRecords(oracles: Oracles, node: number, index: number, memory: Memory, order: number): void {
  const { reference, terms, orders } = oracles
  oracles.checks.O8++
  const known = orders.get(index)
  if (known !== undefined && known !== order)
    violate('O8', `node ${node} has a different row order at index ${index} than another node`)
  orders.set(index, order)
  if (!reference.differenceFrom || index < terms.length - 1) return
  const stays = reference.stays?.differenceFrom(memory)
  for (const name of ['S1', 'S2', 'S6'] as const) oracles.checks[name] += reference.stays ? 1 : 0
  if (stays) violate(stays.oracle, `node ${node} at index ${index}: ${stays.text}`)
  const difference = reference.differenceFrom(memory)
  if (difference !== '')
    violate('O8', `the records of node ${node} at index ${index} differ from the log up to there: ${difference}`)
}

/** A replica reports that it leads a term. @param lastIndex of its log */
export function onLeader(oracles: Oracles, node: number, term: number, lastIndex: number): void {
  const { leaders, checks, committed } = oracles
  const known = leaders.get(term)
  checks.O1++
  if (known === node) violate('O1', `node ${node} leads term ${term} again after a restart`)
  if (known !== undefined) violate('O1', `nodes ${known} and ${node} both lead term ${term}`)
  leaders.set(term, node)
  // The committed entries were committed in an earlier term, unless a later leader was observed before.
  const isNewest = [...leaders.keys()].every((other) => other <= term)
  if (isNewest && lastIndex < committed) {
    violate('O1', `node ${node} leads term ${term} with a log up to ${lastIndex}; index ${committed} is committed`)
  }
}

/** A replica makes the reply about a stay. @param text state, deadline, total and index */
export function onStayReply({ checks, reference }: Oracles, node: number, index: number, text: string): void {
  checks.S4++
  const wanted = reference.stays?.replyAt(index)
  if (wanted !== text) violate('S4', `node ${node} replies to index ${index}: ${text}, not ${wanted}`)
}

/** A client received a reply that its write took effect at an index, or was refused there with a value. */
export function onAcknowledged(
  oracles: Oracles,
  nowUs: number,
  attempt: number,
  { code, value, index }: { readonly code: number; readonly value: number; readonly index: number },
): void {
  const { attempts, checks, acknowledged, acknowledgedAt } = oracles
  checks.O3++
  const at = attempts.get(attempt)
  if (at === undefined) violate('O3', `attempt ${attempt} was acknowledged but no node has applied it`)
  if (index > at) violate('O3', `attempt ${attempt} was acknowledged with index ${index} but applied at ${at}`)
  checks.O4++
  if (oracles.codes[at] !== code || oracles.values[at] !== value) {
    violate(
      'O4',
      `attempt ${attempt} got the reply ${code}/${value}; index ${at} gives ${oracles.codes[at]}/${oracles.values[at]}`,
    )
  }
  acknowledged.set(attempt, at)
  if (index > (acknowledgedAt.at(-1)?.index ?? 0)) acknowledgedAt.push({ us: nowUs, index })
}

/** A node reports that all writes acknowledged before a time are applied there, which bounded-staleness reads rely on. */
export function onFresh({ checks, acknowledgedAt }: Oracles, node: number, atUs: number, applied: number): void {
  checks.O7++
  const last = acknowledgedAt.findLast(({ us }) => us < atUs)
  if (last && last.index > applied)
    violate('O7', `node ${node} reports that it is fresh, but lacks index ${last.index}; it has applied ${applied}`)
}

/** A replica has applied the membership change at `index`, or starts with the configuration in force there. */
export function onConfiguration(oracles: Oracles, index: number, halves: Halves): void {
  // A joining node knows no members yet.
  if (index <= oracles.configurationIndex || halves.every((half) => half.length === 0)) return
  oracles.configurationIndex = index
  const last = oracles.configurations.at(-1)
  if (JSON.stringify(last?.halves) !== JSON.stringify(halves)) oracles.configurations.push({ index, halves })
}

/**
 * A change takes effect when it is applied (docs/design/consensus.md#when-a-configuration-takes-effect): later entries
 * may have been committed by the previous voters.
 */
const IN_FORCE_MAX = 3

/** docs/design/testing.md#oracles: an entry was acknowledged, and these nodes have it, or may have it, on disk. */
export function checkDurable({ configurations }: Oracles, index: number, holders: readonly number[]): void {
  const before = configurations.filter((each) => each.index < index).slice(-IN_FORCE_MAX)
  const isHeld = (half: readonly number[]) => half.filter((number) => holders.includes(number)).length * 2 > half.length
  if (before.length === 0 || before.some(({ halves }) => halves.every(isHeld))) return
  violate(
    'O9',
    `index ${index} was acknowledged, but is durable only on nodes ${holders}; voters are ${JSON.stringify(before)}`,
  )
}

/** A client received a reply that an attempt is certainly in no log. */
export function onFailed(oracles: Oracles, attempt: number): void {
  oracles.checks.O3++
  const at = oracles.attempts.get(attempt)
  if (at !== undefined) violate('O3', `attempt ${attempt} is at index ${at}, but was reported as in no log`)
  oracles.failed.add(attempt)
}

/** Term of a committed command; 0 when no replica has applied one there. */
export function committedTerm(oracles: Oracles, index: number): number {
  assert(index >= 0, 'indexes are not negative')
  return oracles.terms[index] ?? 0
}
