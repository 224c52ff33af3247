/**
 * What clients asked and were told, and whether one order of effects explains all of it (reliability.md §5, O6).
 *
 * A key is a register of 0 … 255 or nothing. Keys do not meet, so each is checked for itself: a search for an order in
 * which every operation takes effect at one moment between its call and its return (Wing and Gong), that remembers
 * which sets of done operations it has seen in which state (Lowe). An operation whose outcome nobody knows may take
 * effect at any time after its call, or never. One that certainly had no effect is not part of the order at all.
 */

import { assert } from '@vacancy/shared'

/** What a register can be asked; all but `read` and `delete` carry an amount. */
export const OPERATION_KINDS = ['set', 'increase', 'decrease', 'read', 'delete'] as const
export type OperationKind = (typeof OPERATION_KINDS)[number]

/**
 * `done`: it took effect, or was read. `refused`: too little or too much was there, and nothing changed. `missing`:
 * there was nothing. `unknown`: it may have taken effect, once. `none`: certainly not in any log.
 */
export type Outcome = 'done' | 'refused' | 'missing' | 'unknown' | 'none'

export type Operation = {
  readonly id: number
  readonly process: number
  readonly key: number
  readonly kind: OperationKind
  readonly amount: number
  /** Place among all calls and returns of the run: two moments are never equal. */
  readonly calledAt: number
  /** Infinity until an answer came. */
  returnedAt: number
  outcome: Outcome
  /** What the answer said: what is there now, or was when it was refused. */
  value: number
}

export type History = { readonly operations: Operation[]; moment: number }

export function createHistory(): History {
  return { operations: [], moment: 0 }
}

/** Notes a call. Its outcome is unknown until `complete`. */
export function call(history: History, process: number, key: number, kind: OperationKind, amount = 0): Operation {
  const operation: Operation = {
    id: history.operations.length,
    process,
    key,
    kind,
    amount,
    calledAt: history.moment++,
    returnedAt: Number.POSITIVE_INFINITY,
    outcome: 'unknown',
    value: 0,
  }
  history.operations.push(operation)
  return operation
}

export function complete(history: History, operation: Operation, outcome: Outcome, value = 0): void {
  assert(operation.outcome === 'unknown', 'an operation has one outcome (A21)')
  operation.outcome = outcome
  operation.value = value
  // One with an unknown outcome stays open to the end: its effect may come long after its caller gave up.
  operation.returnedAt = outcome === 'unknown' ? Number.POSITIVE_INFINITY : history.moment++
}

/** Nothing is there. */
export const MISSING = -1
const VALUE_MAX = 255

export type Verdict =
  | { readonly verdict: 'linearizable'; readonly steps: number }
  /** `stuck`: no order explains all; one that explains most ends before one of these. */
  | {
      readonly verdict: 'impossible'
      readonly key: number
      readonly steps: number
      readonly stuck: readonly Operation[]
    }
  /** The budget ended first. It counts as a failure of the run's settings: there was too much at once. */
  | { readonly verdict: 'undecided'; readonly key: number; readonly steps: number }

/** Steps of the search for one key: several seconds of work. */
export const STEPS_MAX = 3_000_000

export type CheckOptions = {
  /** State of every key before the first call. */
  readonly initial?: number
  readonly stepsMax?: number
}

/** Checks every key; ends with the first one that cannot be explained. */
export function checkHistory(operations: readonly Operation[], options: CheckOptions = {}): Verdict {
  const byKey = new Map<number, Operation[]>()
  for (const operation of operations) {
    const own = byKey.get(operation.key)
    if (own) own.push(operation)
    else byKey.set(operation.key, [operation])
  }
  let steps = 0
  for (const [key, own] of byKey) {
    const verdict = checkKey(key, own, options)
    steps += verdict.steps
    if (verdict.verdict !== 'linearizable') return { ...verdict, steps }
  }
  return { verdict: 'linearizable', steps }
}

/**
 * The state after an operation with this outcome.
 *
 * @returns undefined when the outcome cannot be had in this state
 */
export function stateAfter(state: number, operation: Operation): number | undefined {
  const { outcome, value } = operation
  const next = effectOf(state, operation)
  if (outcome === 'unknown') return next.state
  if (next.outcome !== outcome) return undefined
  return outcome === 'missing' || next.value === value ? next.state : undefined
}

function effectOf(
  state: number,
  { kind, amount }: Operation,
): { readonly state: number; readonly outcome: Outcome; readonly value: number } {
  if (kind === 'set') return { state: amount, outcome: 'done', value: amount }
  if (state === MISSING) return { state, outcome: 'missing', value: 0 }
  switch (kind) {
    case 'increase':
      if (state + amount > VALUE_MAX) return { state, outcome: 'refused', value: state }
      return { state: state + amount, outcome: 'done', value: state + amount }
    case 'decrease':
      if (amount > state) return { state, outcome: 'refused', value: state }
      return { state: state - amount, outcome: 'done', value: state - amount }
    case 'delete':
      return { state: MISSING, outcome: 'done', value: 0 }
    default:
      return { state, outcome: 'done', value: state }
  }
}

/** A call or a return in the order of time; a doubly linked list out of which operations are lifted and put back. */
type Event = {
  readonly operation: Operation
  /** Place in the set of done operations. */
  readonly bit: number
  /** The return of a call; undefined for a return, and for a call that never returned. */
  match: Event | undefined
  /**
   * Of an operation without an outcome: an equal one that was called before. Whenever this one may take effect the other
   * may instead, so it need not be tried first.
   */
  twin: number
  readonly isCall: boolean
  before: Event | undefined
  after: Event | undefined
}

type Taken = { readonly event: Event; readonly stateBefore: number }

function checkKey(key: number, all: readonly Operation[], options: CheckOptions): Verdict {
  // A read that was not answered says nothing, and what never happened is not to be explained.
  const operations = all.filter(
    ({ kind, outcome }) => outcome !== 'none' && !(kind === 'read' && outcome === 'unknown'),
  )
  const { initial = MISSING, stepsMax = STEPS_MAX } = options
  const head = eventsOf(operations)
  const done = new Uint16Array(Math.ceil(operations.length / 16))
  const seen = new Set<string>()
  const taken: Taken[] = []
  // Those without an answer need no place in the order.
  let open = operations.filter(({ outcome }) => outcome !== 'unknown').length
  let mostExplained = -1
  let stuck: Operation[] = []
  let state = initial
  let steps = 0
  let at = head.after
  while (open > 0) {
    if (++steps > stepsMax) return { verdict: 'undecided', key, steps }
    if (at?.isCall) {
      const next = stateAfter(state, at.operation)
      const mark = next === undefined ? '' : markOf(done, at.bit, next)
      // An unknown operation that changes nothing here needs no place here.
      const isIdle = next === state && at.operation.outcome === 'unknown'
      if (next !== undefined && !isIdle && (at.twin < 0 || hasBit(done, at.twin)) && !seen.has(mark)) {
        seen.add(mark)
        taken.push({ event: at, stateBefore: state })
        setBit(done, at.bit)
        state = next
        if (at.match) open--
        lift(at)
        at = head.after
      } else at = at.after
      continue
    }
    // A return whose call has no place yet, or the end of the list: the last choice was wrong.
    if (taken.length > mostExplained) {
      mostExplained = taken.length
      stuck = callsBefore(head, at)
    }
    const last = taken.pop()
    if (!last) return { verdict: 'impossible', key, steps, stuck }
    clearBit(done, last.event.bit)
    state = last.stateBefore
    if (last.event.match) open++
    putBack(last.event)
    at = last.event.after
  }
  return { verdict: 'linearizable', steps }
}

function eventsOf(operations: readonly Operation[]): Event {
  const events: { at: number; event: Event }[] = []
  const twins = new Map<string, number>()
  operations.forEach((operation, bit) => {
    const make = (isCall: boolean): Event => ({
      operation,
      bit,
      match: undefined,
      twin: -1,
      isCall,
      before: undefined,
      after: undefined,
    })
    const called = make(true)
    events.push({ at: operation.calledAt, event: called })
    if (operation.outcome === 'unknown') {
      const name = `${operation.kind} ${operation.amount}`
      called.twin = twins.get(name) ?? -1
      twins.set(name, bit)
      return
    }
    called.match = make(false)
    events.push({ at: operation.returnedAt, event: called.match })
  })
  events.sort((a, b) => a.at - b.at)
  const head: Event = {
    operation: operations[0] as Operation,
    bit: -1,
    match: undefined,
    twin: -1,
    isCall: false,
    before: undefined,
    after: undefined,
  }
  let last = head
  for (const { event } of events) {
    last.after = event
    event.before = last
    last = event
  }
  return head
}

function lift(called: Event): void {
  unlink(called)
  if (called.match) unlink(called.match)
}

function putBack(called: Event): void {
  if (called.match) relink(called.match)
  relink(called)
}

function unlink(event: Event): void {
  if (event.before) event.before.after = event.after
  if (event.after) event.after.before = event.before
}

function relink(event: Event): void {
  if (event.before) event.before.after = event
  if (event.after) event.after.before = event
}

function callsBefore(head: Event, end: Event | undefined): Operation[] {
  const found: Operation[] = []
  for (let event = head.after; event && event !== end; event = event.after)
    if (event.isCall) found.push(event.operation)
  return found.slice(0, 16)
}

function hasBit(bits: Uint16Array, bit: number): boolean {
  return ((bits[bit >>> 4] as number) & (1 << (bit & 15))) !== 0
}

function setBit(bits: Uint16Array, bit: number): void {
  bits[bit >>> 4] = (bits[bit >>> 4] as number) | (1 << (bit & 15))
}

function clearBit(bits: Uint16Array, bit: number): void {
  bits[bit >>> 4] = (bits[bit >>> 4] as number) & ~(1 << (bit & 15))
}

/** State and set of done operations with one more, as a string: words that are all done at the front are only counted. */
function markOf(done: Uint16Array, bit: number, state: number): string {
  setBit(done, bit)
  let from = 0
  while (from < done.length && done[from] === 0xffff) from++
  let to = done.length
  while (to > from && done[to - 1] === 0) to--
  const mark = String.fromCharCode(state + 1, from, ...done.subarray(from, to))
  clearBit(done, bit)
  return mark
}

/** The history in a form that other checkers can read: one object an operation, `null` for what never returned. */
export function exportHistory(operations: readonly Operation[], initial = MISSING): string {
  const rows = operations.map((operation) => ({
    ...operation,
    returnedAt: Number.isFinite(operation.returnedAt) ? operation.returnedAt : null,
  }))
  return JSON.stringify({
    model: 'register with set, increase, decrease-if-enough, read, delete',
    initial,
    operations: rows,
  })
}

export function importHistory(text: string): { operations: Operation[]; initial: number } {
  const { operations, initial } = JSON.parse(text) as {
    operations: (Omit<Operation, 'returnedAt'> & { returnedAt: number | null })[]
    initial: number
  }
  return {
    initial,
    operations: operations.map((row) => ({ ...row, returnedAt: row.returnedAt ?? Number.POSITIVE_INFINITY })),
  }
}
