/**
 * What clients asked and were told, and whether one order of effects explains all of it (reliability.md §5, O6).
 *
 * A key is a register of 0 … 255 or nothing. Keys do not meet, so each is checked for itself: a search for an order in
 * which every operation takes effect at one moment between its call and its return (Wing and Gong). It goes through the
 * history once, with all ways to explain it so far, and has an operation take effect only when a return needs it (the
 * just-in-time linearization of Lowe). An operation whose outcome nobody knows may take effect at any time after its
 * call, or never: equal ones are counted and not told apart, and a way that used more of them than another way to the
 * same place is dropped. One that certainly had no effect is not part of the order at all.
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
  /** `stuck`: no order explains all; the first that has no place, then what was under way with it. */
  | {
      readonly verdict: 'impossible'
      readonly key: number
      readonly steps: number
      readonly stuck: readonly Operation[]
    }
  /** The budget ended first. It counts as a failure of the run's settings: there was too much at once. */
  | { readonly verdict: 'undecided'; readonly key: number; readonly steps: number }

/** Steps of the search for one key: some ten seconds of work. */
export const STEPS_MAX = 5_000_000

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

/** A call or a return, in the order of time. */
type Moment = { readonly at: number; readonly operation: Operation; readonly isCall: boolean }

/**
 * One way to explain what has returned so far: the state it leads to, and what took effect of that which has not
 * returned. One way is as good as another, or better, when state and pending operations are the same and it used no
 * operation without an outcome that the other did not use: what is left may still take effect, but need not.
 */
type Way = {
  readonly state: number
  /** Bits of the pending operations that took effect, by their slots. */
  readonly done: number
  /** How many of each kind of operation without an outcome took effect. */
  readonly used: Uint16Array
  readonly total: number
}

/** How far one sweep looks: ways that are kept, and operations without an outcome that one return may need. */
type Reach = { readonly ways: number; readonly depth: number }

/** Nearly all histories are explained by the first; only the last one can say that nothing explains a history. */
const REACHES: readonly Reach[] = [
  { ways: 16, depth: 1 },
  { ways: 64, depth: 2 },
  { ways: 512, depth: 3 },
  { ways: 4_096, depth: 5 },
  { ways: Number.POSITIVE_INFINITY, depth: Number.POSITIVE_INFINITY },
]

const SLOTS_MAX = 31

type Sweep = {
  readonly reach: Reach
  readonly stepsMax: number
  steps: number
  /** Something was left out: that nothing was found means nothing. */
  isCut: boolean
  /** Called and not returned, by slot. */
  readonly pending: (Operation | undefined)[]
  /** One of each kind of operation without an outcome, and how many of them were called. */
  readonly kinds: readonly Operation[]
  readonly called: Uint16Array
  ways: Way[]
}

function checkKey(key: number, all: readonly Operation[], options: CheckOptions): Verdict {
  // A read that was not answered says nothing, and what never happened is not to be explained.
  const operations = all.filter(
    ({ kind, outcome }) => outcome !== 'none' && !(kind === 'read' && outcome === 'unknown'),
  )
  const { initial = MISSING, stepsMax = STEPS_MAX } = options
  const moments = momentsOf(operations)
  const kinds = new Map<string, Operation>()
  for (const operation of operations) if (operation.outcome === 'unknown') kinds.set(nameOf(operation), operation)
  let steps = 0
  for (const reach of REACHES) {
    const sweep: Sweep = {
      reach,
      stepsMax: stepsMax - steps,
      steps: 0,
      isCut: false,
      pending: [],
      kinds: [...kinds.values()],
      called: new Uint16Array(kinds.size),
      ways: [{ state: initial, done: 0, used: new Uint16Array(kinds.size), total: 0 }],
    }
    const stuck = runSweep(sweep, moments, [...kinds.keys()])
    steps += sweep.steps
    if (!stuck) return { verdict: 'linearizable', steps }
    if (sweep.steps >= sweep.stepsMax) break
    if (!sweep.isCut) return { verdict: 'impossible', key, steps, stuck }
  }
  return { verdict: 'undecided', key, steps }
}

const nameOf = ({ kind, amount }: Operation): string => `${kind} ${amount}`

/** What never returned has no place at which it must have taken effect. */
function momentsOf(operations: readonly Operation[]): Moment[] {
  const moments: Moment[] = []
  for (const operation of operations) {
    moments.push({ at: operation.calledAt, operation, isCall: true })
    if (operation.outcome !== 'unknown') moments.push({ at: operation.returnedAt, operation, isCall: false })
  }
  return moments.sort((a, b) => a.at - b.at)
}

/** @returns what cannot be explained, the first of them, when that is so */
function runSweep(sweep: Sweep, moments: readonly Moment[], names: readonly string[]): Operation[] | undefined {
  const { pending, called } = sweep
  for (const { operation, isCall } of moments) {
    if (!isCall) {
      const slot = pending.indexOf(operation)
      sweep.ways = explain(sweep, operation, slot)
      const open = pending.filter((other) => other !== undefined && other !== operation) as Operation[]
      if (sweep.ways.length === 0) return [operation, ...open].slice(0, 16)
      pending[slot] = undefined
    } else if (operation.outcome === 'unknown') {
      const kind = names.indexOf(nameOf(operation))
      called[kind] = (called[kind] as number) + 1
    } else {
      const free = pending.indexOf(undefined)
      const slot = free < 0 ? pending.length : free
      assert(slot < SLOTS_MAX, `a register is asked by at most ${SLOTS_MAX} at once`)
      pending[slot] = operation
    }
  }
  return undefined
}

type Open = Way & { readonly depth: number }

/**
 * The ways that go on behind the return of an operation: it took effect before, or does so now, behind any others that
 * are under way. Nothing takes effect before somebody returns who needs it (just in time).
 */
function explain(sweep: Sweep, operation: Operation, slot: number): Way[] {
  const { reach, pending, kinds, called } = sweep
  const bit = 1 << slot
  const found: Way[] = []
  /** By how many operations without an outcome they used: who used fewest is looked at first. */
  const open: Open[][] = []
  const push = (way: Open): void => {
    const same = open[way.total]
    if (same) same.push(way)
    else open[way.total] = [way]
  }
  for (const way of sweep.ways) {
    if (way.done & bit) found.push({ ...way, done: way.done & ~bit })
    else push({ ...way, depth: 0 })
  }
  const seen = createFront()
  let explained = 0
  for (let total = 0; total < open.length; total++) {
    for (const way of open[total] ?? []) {
      if (explained >= reach.ways || ++sweep.steps > sweep.stepsMax) {
        sweep.isCut = true
        return best(sweep, found)
      }
      if (!isNew(seen, way)) continue
      const { state, done, used, depth } = way
      const after = stateAfter(state, operation)
      if (after !== undefined) {
        explained++
        found.push({ state: after, done, used, total })
      }
      for (let other = 0; other < pending.length; other++) {
        const known = pending[other]
        if (!known || other === slot || done & (1 << other)) continue
        const next = stateAfter(state, known)
        if (next !== undefined) push({ state: next, done: done | (1 << other), used, total, depth })
      }
      for (let kind = 0; kind < kinds.length; kind++) {
        if ((used[kind] as number) >= (called[kind] as number)) continue
        const { state: next } = effectOf(state, kinds[kind] as Operation)
        if (next === state) continue
        if (depth >= reach.depth) {
          sweep.isCut = true
          break
        }
        const more = used.slice()
        more[kind] = (more[kind] as number) + 1
        push({ state: next, done, used: more, total: total + 1, depth: depth + 1 })
      }
    }
  }
  return best(sweep, found)
}

/** Those of which none is as good as another, the ones that used least first. */
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

/** What was used to come to a state with the same pending operations done. */
type Front = Map<number, Uint16Array[]>

function createFront(): Front {
  return new Map()
}

/** Whether no way that is there already is as good. Ways come with ascending totals, so none makes an earlier one vain. */
function isNew(front: Front, { state, done, used }: Way): boolean {
  const place = done * (VALUE_MAX + 2) + state + 1
  const others = front.get(place)
  if (!others) front.set(place, [used])
  else if (others.some((other) => isWithin(other, used))) return false
  else others.push(used)
  return true
}

function isWithin(some: Uint16Array, other: Uint16Array): boolean {
  for (let kind = 0; kind < some.length; kind++) if ((some[kind] as number) > (other[kind] as number)) return false
  return true
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
