/**
 * The order of writes (docs/design/fabric.md#order). A lane holds the writes of one client connection to one segment
 * that have no reply yet. They go out in order, over one connection as long as any of them is on its way, and a write
 * that was refused is repeated only if none of the later ones got through: otherwise it would be overtaken, and its
 * refusal is passed on instead.
 */

import { assert } from '@vacancy/shared'

export type LaneEntry<Item, Via> = {
  readonly item: Item
  /** `held`: not sent, or refused and to be sent again. `sent`: on its way. `refused`: waits for the later ones. */
  state: 'held' | 'sent' | 'refused'
  via: Via | undefined
  /** A later write got through, or may have: this one is not sent again. */
  isOvertaken: boolean
}

export type Lane<Item, Via> = {
  /** In the order of arrival. The held ones are the last: nothing is sent past them. */
  readonly entries: LaneEntry<Item, Via>[]
  held: number
  refused: number
  /** Its next writes are being sent: a nested attempt has nothing to do. */
  isPumping: boolean
}

export function createLane<Item, Via>(): Lane<Item, Via> {
  return { entries: [], held: 0, refused: 0, isPumping: false }
}

/** Appends a write. */
export function addWrite<Item, Via>(lane: Lane<Item, Via>, item: Item): LaneEntry<Item, Via> {
  const entry: LaneEntry<Item, Via> = { item, state: 'held', via: undefined, isOvertaken: false }
  lane.entries.push(entry)
  lane.held++
  return entry
}

/** The connection over which the next write must go, while one is on its way. */
export function pinnedVia<Item, Via>(lane: Lane<Item, Via>): Via | undefined {
  return lane.entries.find((entry) => entry.state === 'sent')?.via
}

/** The next write to send: the first held one, unless an earlier one waits for the fate of those behind it. */
export function nextWrite<Item, Via>(lane: Lane<Item, Via>): LaneEntry<Item, Via> | undefined {
  return lane.held === 0 || lane.refused > 0 ? undefined : lane.entries[lane.entries.length - lane.held]
}

export function writeSent<Item, Via>(lane: Lane<Item, Via>, entry: LaneEntry<Item, Via>, via: Via): void {
  assert(nextWrite(lane) === entry, 'writes are sent in order')
  entry.state = 'sent'
  entry.via = via
  lane.held--
}

/**
 * A write is over: answered, or given up. Refused writes before it were overtaken if it `gotThrough`, which includes
 * an unknown outcome.
 *
 * @returns the refused writes that must be answered with their refusal
 */
export function writeOver<Item, Via>(
  lane: Lane<Item, Via>,
  entry: LaneEntry<Item, Via>,
  gotThrough: boolean,
): readonly Item[] {
  const at = lane.entries.indexOf(entry)
  assert(at >= 0, 'a write ends once')
  if (entry.state === 'held') lane.held--
  if (entry.state === 'refused') lane.refused--
  const overtaken = gotThrough ? overtake(lane, lane.entries.slice(0, at)) : []
  lane.entries.splice(lane.entries.indexOf(entry), 1)
  settle(lane)
  return overtaken
}

/**
 * A write that may have been executed is about to be sent again.
 *
 * @param keepsOrder whether a write before it may not come after it; those in doubt themselves may
 * @returns the refused writes that must be answered with their refusal
 */
export function writeInDoubt<Item, Via>(
  lane: Lane<Item, Via>,
  entry: LaneEntry<Item, Via>,
  keepsOrder: (item: Item) => boolean,
): readonly Item[] {
  const before = lane.entries.slice(0, lane.entries.indexOf(entry))
  return overtake(
    lane,
    before.filter(({ item }) => keepsOrder(item)),
  )
}

/** @returns those of the entries that are refused already; they leave the lane */
function overtake<Item, Via>(lane: Lane<Item, Via>, entries: readonly LaneEntry<Item, Via>[]): readonly Item[] {
  for (const each of entries) each.isOvertaken = true
  const refused = entries.filter(({ state }) => state === 'refused')
  for (const each of refused) lane.entries.splice(lane.entries.indexOf(each), 1)
  lane.refused -= refused.length
  return refused.map(({ item }) => item)
}

/** A write was certainly not executed and may be sent again once the later ones are known not to have been either. */
export function writeRefused<Item, Via>(lane: Lane<Item, Via>, entry: LaneEntry<Item, Via>): void {
  assert(entry.state === 'sent', 'only a sent write is refused')
  assert(!entry.isOvertaken, 'a write that was overtaken is not sent again')
  entry.state = 'refused'
  entry.via = undefined
  lane.refused++
  settle(lane)
}

/** Refused writes are held again once no later write is on its way. */
function settle<Item, Via>(lane: Lane<Item, Via>): void {
  for (let at = lane.entries.length - 1; at >= 0; at--) {
    const entry = lane.entries[at] as LaneEntry<Item, Via>
    if (entry.state === 'sent') return
    if (entry.state === 'held') continue
    entry.state = 'held'
    lane.held++
    lane.refused--
  }
}
