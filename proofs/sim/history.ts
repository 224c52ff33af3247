/**
 * The history of client operations and results, and the check whether one order of effects explains it
 * (docs/design/testing.md#oracles).
 *
 * A key is a register of 0 … 255 or nothing. Keys are independent, so each is checked alone: a search for an order in
 * which every operation takes effect at one time between its call and its return (Wing and Gong). It goes through the
 * history once, with all possible explanations so far, and lets an operation take effect only when a return needs it
 * (just-in-time linearization, Lowe). An operation with an unknown outcome may take effect at any time after its call,
 * or never: equal ones are only counted, an explanation that used more of them than another one with the same state is
 * dropped, and the search prefers explanations that need the fewest. An operation that certainly had no effect is not
 * part of the order.
 *
 * If the order of writes in the log is known, it is tried first: it is checked in full against results and times,
 * without a search. Otherwise the search runs as if it were unknown.
 */

import { assert } from '@vacancy/shared'

/** Operations on a register; all except `read` and `delete` have an amount. */
export const OPERATION_KINDS = ['set', 'increase', 'decrease', 'read', 'delete'] as const
export type OperationKind = (typeof OPERATION_KINDS)[number]

/**
 * `done`: it took effect, or was read. `refused`: out of bounds, nothing changed. `missing`: the register was empty.
 * `unknown`: it may have taken effect, once. `none`: certainly not in any log.
 */
export type Outcome = 'done' | 'refused' | 'missing' | 'unknown' | 'none'

export type Operation = {
  readonly id: number
  readonly process: number
  readonly key: number
  readonly kind: OperationKind
  readonly amount: number
  /** Sequence number among all calls and returns of the run, which are all distinct. */
  readonly calledAt: number
  /** Infinity until it returned. */
  returnedAt: number
  outcome: Outcome
  /** The value in the result: the new one, or the current one when refused. */
  value: number
}

export type History = { readonly operations: Operation[]; moment: number }

export function createHistory(): History {
  return { operations: [], moment: 0 }
}

/** Records a call. Its outcome is unknown until `complete`. */
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
  assert(operation.outcome === 'unknown', 'an operation has one outcome')
  operation.outcome = outcome
  operation.value = value
  // An operation with an unknown outcome stays open to the end: it may take effect long after its caller gave up.
  operation.returnedAt = outcome === 'unknown' ? Number.POSITIVE_INFINITY : history.moment++
}

/** The empty register. */
export const MISSING = -1
const VALUE_MAX = 255

export type Verdict =
  | { readonly verdict: 'linearizable'; readonly steps: number }
  /** `stuck`: no order explains all; the first unexplained operation, then concurrent ones. */
  | {
      readonly verdict: 'impossible'
      readonly key: number
      readonly steps: number
      readonly stuck: readonly Operation[]
    }
  /** The budget was exhausted. This counts as a failure of the settings of the run: too many concurrent operations. */
  | { readonly verdict: 'undecided'; readonly key: number; readonly steps: number }

/** Search steps for one key, about ten seconds. */
const STEPS_MAX = 5_000_000

export type CheckOptions = {
  /** State of every key before the first call. */
  readonly initial?: number
  readonly stepsMax?: number
  /** By operation, the index of its write in the log. Absent ones had no effect according to the log. */
  readonly order?: ReadonlyMap<Operation, number>
}

/** Checks every key; ends with the first one that cannot be explained. */
export function checkHistory(operations: readonly Operation[], options: CheckOptions = {}): Verdict {
  let steps = 0
  for (const [key, own] of Map.groupBy(operations, (operation) => operation.key)) {
    const verdict = checkKey(key, own, options)
    steps += verdict.steps
    if (verdict.verdict !== 'linearizable') return { ...verdict, steps }
  }
  return { verdict: 'linearizable', steps }
}

/**
 * The state after an operation with this outcome.
 *
 * @returns undefined when the outcome is impossible in this state
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

/** A call or a return, in the order of time. */
type Moment = { readonly at: number; readonly operation: Operation; readonly isCall: boolean }

/**
 * An explanation of the returned operations: the resulting state, and the pending operations that took effect. It
 * dominates another one when state and pending operations are the same and it used a subset of the operations without
 * an outcome: unused ones may still take effect, but need not.
 */
type Way = {
  readonly state: number
  /** Bits of pending operations that took effect, by slot. */
  readonly done: number
  /** How many operations of each kind without an outcome took effect. */
  readonly used: Uint16Array
  readonly total: number
}

/**
 * Limits of one sweep: kept explanations, and how many more operations without an outcome a return may use than the
 * minimum.
 */
type Reach = { readonly ways: number; readonly more: number }

/** Nearly all histories are explained by the first sweep; only the last one can prove that no explanation exists. */
const REACHES: readonly Reach[] = [
  { ways: 16, more: 0 },
  { ways: 64, more: 1 },
  { ways: 512, more: 2 },
  { ways: 4_096, more: 4 },
  { ways: Number.POSITIVE_INFINITY, more: Number.POSITIVE_INFINITY },
]

const SLOTS_MAX = 31

/** Equivalent operations without an outcome: only the number that took effect matters. */
type Kind = {
  readonly name: string
  /** The transition of each state; both are shifted by one so that `MISSING` fits. */
  readonly next: Uint16Array
  called: number
}

const STATES = VALUE_MAX + 2

type Sweep = {
  readonly reach: Reach
  readonly stepsMax: number
  steps: number
  /** The search was truncated, so a failed search proves nothing. */
  isCut: boolean
  /** Called and not returned, by slot. */
  readonly pending: (Operation | undefined)[]
  readonly kinds: readonly Kind[]
  ways: Way[]
}

function checkKey(key: number, all: readonly Operation[], options: CheckOptions): Verdict {
  // A read without a result has no information, and operations without effect need no explanation.
  const operations = all.filter(
    ({ kind, outcome }) => outcome !== 'none' && !(kind === 'read' && outcome === 'unknown'),
  )
  const { initial = MISSING, stepsMax = STEPS_MAX, order } = options
  if (order && isExplainedBy(order, operations, initial)) return { verdict: 'linearizable', steps: operations.length }
  const moments = momentsOf(operations)
  const kinds = kindsOf(operations)
  let steps = 0
  for (const reach of REACHES) {
    const sweep: Sweep = {
      reach,
      stepsMax: stepsMax - steps,
      steps: 0,
      isCut: false,
      pending: [],
      kinds: kinds.map((kind) => ({ ...kind })),
      ways: [{ state: initial, done: 0, used: new Uint16Array(kinds.length), total: 0 }],
    }
    const stuck = runSweep(sweep, moments)
    steps += sweep.steps
    if (!stuck) return { verdict: 'linearizable', steps }
    if (sweep.steps >= sweep.stepsMax) break
    if (!sweep.isCut) return { verdict: 'impossible', key, steps, stuck }
  }
  return { verdict: 'undecided', key, steps }
}

/**
 * Whether the writes in this order, with each read at the first position that its value allows, explain every result,
 * with each effect between call and return.
 */
function isExplainedBy(
  order: ReadonlyMap<Operation, number>,
  operations: readonly Operation[],
  initial: number,
): boolean {
  const placeIn = (operation: Operation): number => order.get(operation) ?? Number.POSITIVE_INFINITY
  const writes = operations
    .filter((operation) => operation.kind !== 'read' && (order.has(operation) || operation.outcome !== 'unknown'))
    .sort((a, b) => placeIn(a) - placeIn(b))
  /** State and latest call after this many writes. */
  const states = [initial]
  const calls = [Number.NEGATIVE_INFINITY]
  for (const write of writes) {
    const state = order.has(write) ? stateAfter(states.at(-1) as number, write) : undefined
    const call = Math.max(calls.at(-1) as number, write.calledAt)
    if (state === undefined || call > write.returnedAt) return false
    states.push(state)
    calls.push(call)
  }
  /** The earliest return among the n-th write and all later ones. */
  const returns = Array.from({ length: writes.length + 1 }, () => Number.NEGATIVE_INFINITY)
  for (let n = writes.length, earliest = Number.POSITIVE_INFINITY; n > 0; n--) {
    earliest = Math.min(earliest, (writes[n - 1] as Operation).returnedAt)
    returns[n] = earliest
  }
  const reads = operations.filter(({ kind }) => kind === 'read').sort((a, b) => a.returnedAt - b.returnedAt)
  /** The minimum number of writes before a read, when all of them returned before its call. */
  const places = [0]
  for (const [n, read] of reads.entries()) {
    let before = n
    while (before > 0 && (reads[before - 1] as Operation).returnedAt > read.calledAt) before--
    const last = lastBelow(calls, read.returnedAt)
    let place = Math.max(lastBelow(returns, read.calledAt), places[before])
    while (place <= last && stateAfter(states[place], read) === undefined) place++
    if (place > last) return false
    places.push(Math.max(place, places[n]))
  }
  return true
}

/** Index of the last of ascending numbers below a limit; the first always is. */
function lastBelow(ascending: readonly number[], limit: number): number {
  let low = 0
  let high = ascending.length
  while (high - low > 1) {
    const middle = (low + high) >>> 1
    if (ascending[middle] < limit) low = middle
    else high = middle
  }
  return low
}

/** Operations with equal names are equivalent; a deletion ignores its amount. */
const nameOf = ({ kind, amount }: Operation): string => (kind === 'delete' ? kind : `${kind} ${amount}`)

function kindsOf(operations: readonly Operation[]): Kind[] {
  const kinds = new Map<string, Kind>()
  for (const operation of operations) {
    const name = nameOf(operation)
    if (operation.outcome !== 'unknown' || kinds.has(name)) continue
    const next = Uint16Array.from({ length: STATES }, (_, place) => effectOf(place - 1, operation).state + 1)
    kinds.set(name, { name, next, called: 0 })
  }
  return [...kinds.values()]
}

/** An operation that never returned need not have taken effect. */
function momentsOf(operations: readonly Operation[]): Moment[] {
  const moments: Moment[] = []
  for (const operation of operations) {
    moments.push({ at: operation.calledAt, operation, isCall: true })
    if (operation.outcome !== 'unknown') moments.push({ at: operation.returnedAt, operation, isCall: false })
  }
  return moments.sort((a, b) => a.at - b.at)
}

/** @returns the first operation that cannot be explained, if any */
function runSweep(sweep: Sweep, moments: readonly Moment[]): Operation[] | undefined {
  const { pending, kinds } = sweep
  for (const { operation, isCall } of moments) {
    if (!isCall) {
      const slot = pending.indexOf(operation)
      sweep.ways = explain(sweep, operation, slot)
      const open = pending.filter((other) => other !== undefined && other !== operation) as Operation[]
      if (sweep.ways.length === 0) return [operation, ...open].slice(0, 16)
      pending[slot] = undefined
    } else if (operation.outcome === 'unknown') {
      const kind = kinds.find(({ name }) => name === nameOf(operation)) as Kind
      kind.called++
    } else {
      const free = pending.indexOf(undefined)
      const slot = free < 0 ? pending.length : free
      assert(slot < SLOTS_MAX, `a register has at most ${SLOTS_MAX} concurrent operations`)
      pending[slot] = operation
      sweep.ways = sweep.ways.map((way) => ({ ...way, done: settled(pending, way.state, way.done) }))
    }
  }
  return undefined
}

/**
 * Applies pending operations that change nothing and are valid in this state: no later state is better for them. A
 * write of the current value may still be needed later to restore it.
 */
function settled(pending: readonly (Operation | undefined)[], state: number, done: number): number {
  let all = done
  for (let slot = 0; slot < pending.length; slot++) {
    const operation = pending[slot]
    if (operation && isLook(operation) && stateAfter(state, operation) !== undefined) all |= 1 << slot
  }
  return all
}

const UNREACHABLE = 0xffff

/**
 * By state: the minimum number of operations without an outcome that must take effect before `operation` can, assuming
 * an unlimited number of each called kind and of pending operations. States that are unreachable under this assumption
 * are unreachable, so it is an admissible heuristic (A*).
 */
function distancesTo({ pending, kinds }: Sweep, operation: Operation): Uint16Array {
  const far = new Uint16Array(STATES).fill(UNREACHABLE)
  for (let place = 0; place < STATES; place++) if (stateAfter(place - 1, operation) !== undefined) far[place] = 0
  const known = pending.filter((other) => other !== undefined && other !== operation && !isLook(other)) as Operation[]
  const unknown = kinds.filter(({ called }) => called > 0)
  const reach = (from: number, to: number, after: (place: number) => number): boolean => {
    let isNews = false
    for (let place = 0; place < STATES; place++) {
      if (far[place] !== UNREACHABLE || far[after(place)] !== from) continue
      far[place] = to
      isNews = true
    }
    return isNews
  }
  for (let distance = 0; ; distance++) {
    while (known.some((other) => reach(distance, distance, (place) => placeAfter(place, other))));
    let isLast = true
    for (const { next } of unknown) {
      if (reach(distance, distance + 1, (place) => next[place])) isLast = false
    }
    if (isLast) return far
  }
}

/** Changes nothing in any state where its outcome is possible. */
function isLook({ kind, outcome }: Operation): boolean {
  return kind === 'read' || outcome === 'refused' || outcome === 'missing'
}

/** −1 when its outcome is impossible there. */
function placeAfter(place: number, operation: Operation): number {
  const next = stateAfter(place - 1, operation)
  return next === undefined ? -1 : next + 1
}

/** `limit`: the maximum number of operations without an outcome. */
type Open = Way & { readonly limit: number }

/**
 * The explanations after the return of an operation: it took effect before, or takes effect now, after any other
 * concurrent ones. No change takes effect before a return needs it (just in time).
 */
function explain(sweep: Sweep, operation: Operation, slot: number): Way[] {
  const { reach, pending, kinds } = sweep
  const bit = 1 << slot
  let far: Uint16Array | undefined
  const restOf = (state: number): number => {
    if (stateAfter(state, operation) !== undefined) return 0
    far ??= distancesTo(sweep, operation)
    return far[state + 1]
  }
  const found: Way[] = []
  /** Ordered by the minimum number of operations without an outcome, cheapest first. */
  const open: Open[][] = []
  const push = (way: Open): void => {
    const rest = restOf(way.state)
    if (rest === UNREACHABLE) return
    const estimate = way.total + rest
    if (estimate > way.limit) {
      sweep.isCut = true
      return
    }
    const same = open[estimate]
    if (same) same.push(way)
    else open[estimate] = [way]
  }
  for (const way of sweep.ways) {
    if (way.done & bit) found.push({ ...way, done: way.done & ~bit })
    else push({ ...way, limit: way.total + restOf(way.state) + reach.more })
  }
  const seen = createFront()
  let explained = 0
  for (let estimate = 0; estimate < open.length; estimate++) {
    for (const way of open[estimate] ?? []) {
      if (explained >= reach.ways || ++sweep.steps > sweep.stepsMax) {
        sweep.isCut = true
        return best(sweep, found)
      }
      if (!isNew(seen, way)) continue
      const { state, done, used, total, limit } = way
      if (done & bit) {
        explained++
        found.push({ state, done: done & ~bit, used, total })
        continue
      }
      const after = stateAfter(state, operation)
      if (after !== undefined) {
        explained++
        found.push({ state: after, done: settled(pending, after, done) & ~bit, used, total })
      }
      for (let other = 0; other < pending.length; other++) {
        const known = pending[other]
        if (!known || other === slot || done & (1 << other)) continue
        const next = stateAfter(state, known)
        if (next === undefined) continue
        push({ state: next, done: settled(pending, next, done | (1 << other)), used, total, limit })
      }
      for (let kind = 0; kind < kinds.length; kind++) {
        const { next: places, called } = kinds[kind] as Kind
        const next = places[state + 1] - 1
        if (next === state || used[kind] >= called) continue
        const more = used.slice()
        more[kind] = more[kind] + 1
        push({ state: next, done: settled(pending, next, done), used: more, total: total + 1, limit })
      }
    }
  }
  return best(sweep, found)
}

/** Explanations that do not dominate each other, cheapest first. */
function best(sweep: Sweep, found: Way[]): Way[] {
  const front = createFront()
  const kept: Way[] = []
  for (const way of found.sort((a, b) => a.total - b.total)) {
    if (!isNew(front, way)) continue
    if (kept.length >= sweep.reach.ways) {
      sweep.isCut = true
      break
    }
    kept.push(way)
  }
  return kept
}

/** The operations used to reach a state with the same pending operations. */
type Front = Map<number, Uint16Array[]>

function createFront(): Front {
  return new Map()
}

/** Whether no existing explanation dominates it. Totals are ascending, so a later one never dominates an earlier one. */
function isNew(front: Front, { state, done, used }: Way): boolean {
  const place = done * (VALUE_MAX + 2) + state + 1
  const others = front.get(place)
  if (!others) front.set(place, [used])
  else if (others.some((other) => isWithin(other, used))) return false
  else others.push(used)
  return true
}

function isWithin(some: Uint16Array, other: Uint16Array): boolean {
  for (let kind = 0; kind < some.length; kind++) if (some[kind] > other[kind]) return false
  return true
}
