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
  const entry: LaneEntry<Item, Via> = { item, state: 'held', via: undefined }
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
  const overtaken = gotThrough ? lane.entries.slice(0, at).filter(({ state }) => state === 'refused') : []
  lane.entries.splice(at, 1)
  for (const one of overtaken) lane.entries.splice(lane.entries.indexOf(one), 1)
  lane.refused -= overtaken.length
  settle(lane)
  return overtaken.map(({ item }) => item)
}

/** A write was certainly not executed and may be sent again once the later ones are known not to have been either. */
export function writeRefused<Item, Via>(lane: Lane<Item, Via>, entry: LaneEntry<Item, Via>): void {
  assert(entry.state === 'sent', 'only a sent write is refused')
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
