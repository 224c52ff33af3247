/**
 * What a stay may be after requests whose outcomes are partly unknown. A request without an outcome may be applied at
 * once, later, or never.
 */

/** A hold may have expired at any time: whether it did is not tracked before the end. */
export type Fate = 'none' | 'held' | 'booked' | 'released' | 'expired' | 'void' | Late
/** Not a state: a request of this kind may still be applied. */
type Late = 'late hold' | 'late book' | 'late confirm' | 'late release' | 'late void'
type State = Exclude<Fate, Late>

export type StayOutcome = {
  readonly kind: 'hold' | 'book' | 'confirm' | 'retake' | 'release' | 'void'
  /** `none`: it changed nothing. */
  readonly outcome: 'done' | 'unknown' | 'none'
  /** The state in the reply; undefined for a stay that another one has replaced. */
  readonly state: Fate | undefined
}

const LATE = {
  hold: 'late hold',
  book: 'late book',
  confirm: 'late confirm',
  retake: 'late book',
  release: 'late release',
  void: 'late void',
} as const satisfies { readonly [kind in StayOutcome['kind']]: Late }

const AFTER: { readonly [late in Late]: Partial<Record<State, State>> } = {
  'late hold': { none: 'held', expired: 'held' },
  'late book': { none: 'booked', held: 'booked', expired: 'booked' },
  'late confirm': { held: 'booked' },
  'late release': { held: 'released', booked: 'released' },
  'late void': { none: 'void', held: 'released', booked: 'released' },
}

function isLate(fate: Fate): fate is Late {
  return fate in AFTER
}

function isState(fate: Fate): fate is State {
  return !isLate(fate)
}

/** Everything that pending requests and deadlines may make of the states. */
function reachable(fates: readonly Fate[]): Set<Fate> {
  const known = new Set(fates)
  for (let before = 0; before < known.size; ) {
    before = known.size
    const pending = [...known].filter(isLate)
    for (const state of [...known].filter(isState)) {
      if (state === 'held') known.add('expired')
      for (const late of pending) known.add(AFTER[late][state] ?? state)
    }
  }
  return known
}

/** @returns the possible states after it, and the requests that may still be applied; [] if the reply is impossible */
export function addOutcome(fates: readonly Fate[], { kind, outcome, state }: StayOutcome): readonly Fate[] {
  const before = reachable(fates)
  if (outcome === 'unknown') return [...reachable([...before, LATE[kind]])]
  if (outcome === 'none') return [...before]
  const pending = [...before].filter(isLate)
  const own = [...before].filter(isState).map((fate): Fate => AFTER[LATE[kind]][fate] ?? fate)
  if (state === undefined) return [...own.filter((fate) => fate !== 'none'), ...pending]
  return own.includes(state) ? [state, ...pending] : []
}

/** What the stay may be once nothing is pending and no deadline is ahead. */
export function allowedFates(fates: readonly Fate[]): readonly Fate[] {
  return [...reachable(fates)].filter((fate) => isState(fate) && fate !== 'held')
}
