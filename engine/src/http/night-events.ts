/** An event of a night, and what it does to rooms and price (docs/design/storage.md#history-of-a-night). */

import type { NightChangeKind, NightOutcome } from '@vacancy/shared/contract'

export type Outcome = NightOutcome

/** The package of a night. What is undefined is not known. */
export type NightState = {
  readonly package: boolean | undefined
  /** Rooms left; negative while rooms on hold are missing. */
  readonly left: number | undefined
  readonly held: number | undefined
  readonly price: number | undefined
}

export const UNKNOWN: NightState = { package: undefined, left: undefined, held: undefined, price: undefined }

export type Effect =
  | { readonly type: 'none' }
  /** Sets values. `creates`: also where there is no package; `isExact`: the rooms are those that the source counts. */
  | {
      readonly type: 'set'
      readonly rooms: number | undefined
      readonly price: number | undefined
      readonly creates: boolean
      readonly isExact: boolean
    }
  | { readonly type: 'add' | 'take'; readonly rooms: number }
  | { readonly type: 'stay'; readonly left: number; readonly held: number }
  /** No package afterwards. */
  | { readonly type: 'empty' }
  /** The rooms may be different afterwards, or everything. */
  | { readonly type: 'lost'; readonly what: 'rooms' | 'all' }

export type NightEvent = {
  readonly index: number
  readonly timeMs: number
  /** Among events of one index: what ends gives its rooms to what begins. */
  readonly order: number
  /** Undefined for what changes no night, but bears on it: whether the property exists, and rules. */
  readonly kind: NightChangeKind | undefined
  /** '' for all room types. */
  readonly room: string
  /** Undefined where it follows from the state. */
  readonly outcome: Outcome | undefined
  readonly effect: Effect
  readonly rooms?: number | undefined
  readonly price?: number | undefined
  readonly features?: number | undefined
  readonly source?: string
  readonly digest?: string
  readonly stay?: { readonly key: string; readonly replaces: string }
  /** What it makes of the property; undefined for nothing, `unknown` when that is not known. */
  readonly property?: boolean | 'unknown' | undefined
  /** Rooms of events up to this time, and below this index, are not known. */
  readonly doubt?: { readonly untilMs: number; readonly untilIndex: number } | undefined
}

type Known = NightState & { readonly left: number; readonly held: number }

function isKnown(state: NightState): state is Known {
  return state.left !== undefined && state.held !== undefined
}

const ROOMS_MAX = 255

/** Whether rooms fit, where that is known: the rooms that the source counts are those left and those on hold. */
function overflows({ left, held }: Known, rooms: number): boolean {
  return left + held + rooms > ROOMS_MAX
}

/** The state after an event, from the state before it. */
export function after(effect: Effect, before: NightState): NightState {
  switch (effect.type) {
    case 'none':
      return before
    case 'lost':
      return lost(effect.what, before)
    case 'empty': {
      const left = before.held === undefined ? undefined : -before.held
      return { package: false, left, held: before.held, price: undefined }
    }
    case 'set':
      return afterSet(effect, before)
    case 'add':
    case 'take': {
      if (before.package === false) return before
      if (!before.package || !isKnown(before)) return { ...before, left: undefined }
      const isRefused =
        effect.type === 'add' ? overflows(before, effect.rooms) : Math.max(0, before.left) < effect.rooms
      if (isRefused) return before
      return { ...before, left: before.left + (effect.type === 'add' ? effect.rooms : -effect.rooms) }
    }
    case 'stay': {
      const { left } = before
      const held = before.held === undefined ? undefined : before.held + effect.held
      if (held === undefined) return { ...before, left: undefined, held }
      // Without a package nothing is left but what is missing for holds.
      if (before.package === false) return { ...before, left: -held, held }
      // Rooms above the most that a night can have are dropped.
      const isSure = before.package === true && left !== undefined
      return { ...before, left: isSure ? Math.min(left + effect.left, ROOMS_MAX - held) : undefined, held }
    }
    default:
      return effect satisfies never
  }
}

function afterSet(
  { rooms, price, creates, isExact }: Extract<Effect, { readonly type: 'set' }>,
  before: NightState,
): NightState {
  const { held, package: existed } = before
  if (existed === false && !creates) return before
  const set = rooms === undefined || held === undefined || !isExact ? undefined : rooms - held
  // A new package without a number of rooms, or without a price, begins with 0.
  const begun = held === undefined ? undefined : -held
  const kept = existed === undefined ? undefined : existed ? before.left : begun
  const keptPrice = existed === false ? 0 : existed || !creates ? before.price : undefined
  return {
    package: creates ? true : existed,
    // Without a package nothing would have been set.
    left: existed === undefined && !creates ? undefined : rooms === undefined ? kept : set,
    held,
    price: price ?? keptPrice,
  }
}

function lost(what: 'rooms' | 'all', state: NightState): NightState {
  return what === 'all' ? UNKNOWN : { ...state, left: undefined, held: undefined }
}

/** The state before an event, from the state after it, as far as it follows from that. */
export function before(effect: Effect, later: NightState): NightState {
  switch (effect.type) {
    case 'none':
      return later
    case 'lost':
      return lost(effect.what, later)
    case 'empty':
      return { ...UNKNOWN, held: later.held }
    case 'set': {
      const { rooms, price, creates } = effect
      if (!creates && later.package === false) return later
      const { held } = later
      // Without a package before, none would be left now.
      const existed = !creates || (rooms === undefined && isKnown(later) && later.left + later.held !== 0)
      if (!existed) return { ...UNKNOWN, held }
      const left = rooms === undefined ? later.left : undefined
      return {
        package: creates ? true : later.package,
        left,
        held,
        price: price === undefined ? later.price : undefined,
      }
    }
    case 'add': {
      if (later.package === false) return later
      const isDone = isKnown(later) && later.package === true && !overflows(later, effect.rooms)
      return { ...later, left: isDone ? later.left - effect.rooms : undefined }
    }
    case 'take': {
      if (later.package === false) return later
      // With fewer rooms left than it takes, it may have been refused.
      const isDone = isKnown(later) && later.package === true && Math.max(0, later.left) >= effect.rooms
      return { ...later, left: isDone ? later.left + effect.rooms : undefined }
    }
    case 'stay': {
      const held = later.held === undefined ? undefined : later.held - effect.held
      if (held === undefined) return { ...later, left: undefined, held }
      if (later.package === false) return { ...later, left: -held, held }
      const isCapped = effect.left > 0 && isKnown(later) && later.left + later.held >= ROOMS_MAX
      const isSure = later.package === true && later.left !== undefined && !isCapped
      return { ...later, left: isSure ? later.left - effect.left : undefined, held }
    }
    default:
      return effect satisfies never
  }
}

/** What either of two derivations knows; where they contradict each other, nothing is known. */
export function merge(a: NightState, b: NightState): NightState {
  const one = <T>(x: T | undefined, y: T | undefined) =>
    x === undefined ? y : y === undefined || x === y ? x : undefined
  return {
    package: one(a.package, b.package),
    left: one(a.left, b.left),
    held: one(a.held, b.held),
    price: one(a.price, b.price),
  }
}
