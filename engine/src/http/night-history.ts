/**
 * The history of a night from the commands of the log (docs/design/storage.md#history-of-a-night). The log has no
 * outcomes. They are derived from the ledger, and from what is left: backwards from now, where a command can be undone,
 * and forwards from each command that sets a value. What neither derives is not known.
 */

import { isVisible } from '@vacancy/shared'
import type { NightNow } from '../store/night-now.ts'
import type { NightMention } from '../wal/night-log.ts'
import {
  after,
  before,
  type Effect,
  merge,
  type NightEvent,
  type NightState,
  type Outcome,
  UNKNOWN,
} from './night-events.ts'
import { isOfStay, type StayMention, type StaySearch, stayEvents } from './night-stays.ts'

/** What is known before the oldest event of a page: whether the property exists, and of one room type its package. */
export type NightCarry = { readonly property: boolean | undefined; readonly state: NightState }

export type NightSearch = StaySearch & {
  /** Of the page after this one; undefined for the newest page. */
  readonly carry: NightCarry | undefined
}

export type NightChange = NightEvent & {
  readonly outcome: Outcome
  readonly before: NightState
  readonly after: NightState
}

const NONE: Effect = { type: 'none' }
const ALL_LOST: Effect = { type: 'lost', what: 'all' }

/** @returns the changes, newest first, and what is known before them */
export function nightHistory(search: NightSearch): { readonly changes: NightChange[]; readonly carry: NightCarry } {
  const events = [...plainEvents(search), ...stayEvents(search)].sort((a, b) => a.index - b.index || a.order - b.order)
  const exists = existence(search, events)
  const isOne = search.roomType !== ''
  const rooms = isOne ? [search.roomType] : [...new Set(events.map(({ room }) => room).filter((room) => room !== ''))]
  const derived = rooms.map((room) => derive(search, room, events, exists.before))
  // For several room types, what concerns all of them is listed once, without the package of each.
  const ofAll = isOne ? [] : events.filter(({ room }) => room === '')
  const shared = ofAll.map((event) => ({ ...event, outcome: event.outcome ?? 'done', before: UNKNOWN, after: UNKNOWN }))
  const changes = [...derived.flatMap(({ changes: own }) => own.filter(({ room }) => isOne || room !== '')), ...shared]
  return {
    changes: changes
      .filter(({ kind, outcome }) => kind !== undefined && !(kind === 'past' && outcome === 'unchanged'))
      .sort((a, b) => a.index - b.index || a.order - b.order)
      .reverse(),
    carry: { property: exists.oldest, state: (isOne && derived[0]?.oldest) || UNKNOWN },
  }
}

// Events

type Plain = Exclude<NightMention, StayMention>

function plainEvents(search: NightSearch): NightEvent[] {
  const mentions = search.mentions.filter((mention): mention is Plain => !isOfStay(mention))
  const keys = new Set<string>()
  return mentions.flatMap((mention) => {
    const { key } = mention
    const event = eventOf(search, mentions, mention)
    if (key === '' || !event) return event ?? []
    // The session table replies to a repeat.
    const isRepeat = keys.has(key)
    keys.add(key)
    return isRepeat ? { ...event, outcome: 'unchanged', effect: NONE, property: undefined } : event
  })
}

function eventOf(search: NightSearch, mentions: readonly Plain[], mention: Plain): NightEvent | undefined {
  const { index, timeMs, room, today } = mention
  const common = { index, timeMs, order: 1, room, kind: undefined, outcome: undefined }
  // Such a command is refused, whatever is there.
  const isOutside = !isVisible(search.day, today)
  const refused = isOutside ? ({ outcome: 'refused', effect: NONE } as const) : undefined
  switch (mention.what) {
    case 'package':
    case 'rooms': {
      const { what: kind, rooms } = mention
      const [price, features] = mention.what === 'package' ? [mention.price, mention.features] : []
      const isExact = mention.asOf === undefined
      const given = { ...common, kind, rooms, price, features }
      if (refused) return { ...given, ...refused }
      if (!isExact && !isAccepted(search.now, mention.asOf as number, index)) {
        return { ...given, outcome: 'unknown', effect: ALL_LOST }
      }
      return { ...given, effect: { type: 'set', rooms, price, creates: kind === 'package', isExact } }
    }
    case 'increase':
    case 'decrease': {
      const { what: kind, rooms } = mention
      const type = kind === 'increase' ? 'add' : 'take'
      return { ...common, kind, rooms, effect: { type, rooms }, ...refused }
    }
    case 'delete-package':
    case 'delete-day':
      return { ...common, kind: mention.what, effect: { type: 'empty' }, ...refused }
    case 'delete-room':
      return { ...common, kind: mention.what, effect: { type: 'empty' } }
    case 'past':
      return { ...common, kind: mention.what, effect: { type: 'empty' } }
    case 'delete-property':
      return { ...common, kind: mention.what, effect: { type: 'empty' }, property: false }
    case 'delete-segment': {
      const isOurs = isOfSegment(search, mentions, mention)
      if (isOurs === false) return undefined
      if (isOurs) return { ...common, kind: mention.what, effect: { type: 'empty' }, property: false }
      return { ...common, kind: mention.what, outcome: 'unknown', effect: ALL_LOST, property: 'unknown' }
    }
    case 'property':
      return { ...common, effect: NONE, property: true }
    case 'import':
      return {
        ...common,
        kind: mention.what,
        outcome: 'done',
        effect: ALL_LOST,
        digest: mention.digest,
        property: 'unknown',
      }
    case 'time':
      return { ...common, kind: mention.what, outcome: 'unknown', effect: ALL_LOST }
    case 'level':
      return { ...common, effect: { type: 'lost', what: 'rooms' } }
    default:
      return mention satisfies never
  }
}

/** Whether a value as of an index was certainly not refused for that index. */
function isAccepted({ asOfFrom, indexBase }: NightNow, asOf: number, index: number): boolean {
  return (asOf >= asOfFrom || (asOf === 0 && asOfFrom === 0)) && asOf < index + indexBase
}

/** Whether the property was in a segment that was deleted; undefined when that is not known. */
function isOfSegment(
  { now, carry }: NightSearch,
  mentions: readonly Plain[],
  { index, segment }: Extract<Plain, { readonly what: 'delete-segment' }>,
): boolean | undefined {
  const settings = mentions.filter((mention) => mention.what === 'property')
  const before = settings.filter((mention) => mention.index < index).at(-1)
  if (before) return before.segment === segment
  // A property that is there, and was not set since, was in its segment all the time.
  const isSettled = carry === undefined && now.segment !== '' && settings.length === 0
  return isSettled ? false : undefined
}

// Derivation

/** Whether the property existed before each event, and before the oldest. */
function existence({ now, carry }: NightSearch, events: readonly NightEvent[]) {
  const known: (boolean | undefined)[] = []
  let later = carry ? carry.property : now.segment !== ''
  for (const event of events.toReversed()) {
    if (event.property !== undefined) later = undefined
    known.push(later)
  }
  known.reverse()
  let earlier: boolean | undefined
  const before = events.map((event, n) => {
    const exists = earlier ?? known[n]
    earlier = event.property === undefined ? exists : event.property === 'unknown' ? undefined : event.property
    return exists
  })
  return { before, oldest: events.length === 0 ? later : before[0] }
}

function derive(
  search: NightSearch,
  room: string,
  all: readonly NightEvent[],
  exists: readonly (boolean | undefined)[],
) {
  const events = all.flatMap((event, n) =>
    event.room === '' || event.room === room ? [{ ...event, exists: exists[n] }] : [],
  )
  const doubts = events.filter(({ doubt }) => doubt !== undefined)
  const isCounted = events.map((event) => isRoomsKnown(search, doubts, event))
  const backwards: { readonly before: NightState; readonly after: NightState }[] = []
  let later = latest(search, room)
  for (let n = events.length - 1; n >= 0; n--) {
    const event = events[n] as NightEvent
    if (!isCounted[n]) later = uncounted(later)
    const earlier = before(event.effect, later)
    backwards[n] = { before: earlier, after: later }
    later = earlier
  }
  let earlier = UNKNOWN
  const changes = events.map((event, n): NightChange => {
    const known = backwards[n] as (typeof backwards)[number]
    const from = merge(isCounted[n] ? earlier : uncounted(earlier), known.before)
    const outcome = event.outcome ?? outcomeOf(event, from, known)
    const isIdle = outcome === 'refused' || outcome === 'unchanged'
    const isOpen = outcome === 'unknown' && event.effect.type === 'set'
    const to = merge(after(isIdle ? NONE : isOpen ? ALL_LOST : event.effect, from), known.after)
    earlier = to
    return { ...event, outcome, before: from, after: to }
  })
  return { changes, oldest: changes[0]?.before ?? later }
}

function uncounted(state: NightState): NightState {
  return { ...state, left: undefined, held: undefined }
}

/** The package after the newest event. */
function latest({ now, carry }: NightSearch, room: string): NightState {
  if (carry) return carry.state
  const found = now.rooms.find((each) => each.room === room)
  if (!found) {
    const held = heldNow(now, room)
    return { ...UNKNOWN, package: false, left: held === undefined ? undefined : -held, held }
  }
  return { package: found.price !== undefined, left: found.left, held: found.held, price: found.price }
}

/** Rooms on hold of a room type that the property does not have now; undefined when a hold has less than its lines. */
function heldNow({ stays }: NightNow, room: string): number | undefined {
  const holds = stays.filter(({ state, rooms }) => state === 'held' && rooms.has(room))
  if (holds.some(({ isChange }) => isChange)) return undefined
  return holds.reduce((sum, { rooms }) => sum + (rooms.get(room) ?? 0), 0)
}

/** Whether all stays that can have changed rooms at the time of an event are known. */
function isRoomsKnown({ now }: NightSearch, doubts: readonly NightEvent[], { index, timeMs }: NightEvent): boolean {
  if (index <= now.knownFrom.index || timeMs <= now.knownFrom.timeMs) return false
  return doubts.every(({ index: since, doubt }) => {
    return since >= index || !doubt || (timeMs > doubt.untilMs && index >= doubt.untilIndex)
  })
}

type Known = { readonly before: NightState; readonly after: NightState }

/** The outcome of a command that its state decides. */
function outcomeOf(
  { effect, kind, exists }: NightEvent & { readonly exists: boolean | undefined },
  from: NightState,
  known: Known,
): Outcome {
  switch (effect.type) {
    case 'set': {
      if (!effect.creates) return from.package === undefined ? 'unknown' : from.package ? 'done' : 'refused'
      // A property with a package exists.
      if (exists ?? (from.package || undefined)) return 'done'
      return exists === false ? 'refused' : 'unknown'
    }
    case 'add':
    case 'take': {
      if (from.package === false) return 'refused'
      if (known.before.left !== undefined && known.before.left !== known.after.left) return 'done'
      const to = after(effect, from)
      if (to.left === undefined || from.left === undefined) return 'unknown'
      return to.left === from.left ? 'refused' : 'done'
    }
    case 'empty':
      if (from.package === undefined) return kind === 'past' ? 'done' : 'unknown'
      return from.package ? 'done' : kind === 'delete-package' ? 'refused' : 'unchanged'
    case 'none':
    case 'stay':
    case 'lost':
      return 'done'
    default:
      return effect satisfies never
  }
}
