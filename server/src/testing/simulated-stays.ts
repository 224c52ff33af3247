/** Figures of stays of a simulated shard. Its nodes do not serve the stays themselves. */
import type { NodeStatus } from '@vacancy/shared/contract'

type StaysShard = {
  readonly id: string
  readonly writesPerSecond: number
  /** Properties with an oversold night. */
  readonly oversold: readonly string[]
}

const DAY_MS = 86_400_000
/** Held stays go up and down over some minutes; of every shard the same, at another time. */
const STAYS_WAVE_MS = 240_000
const HOLD_SECONDS = 900

function heldOf({ id, writesPerSecond }: StaysShard): number {
  const phase = (Date.now() / STAYS_WAVE_MS + id.length + Number(id.replace(/\D/g, '')) / 7) * 2 * Math.PI
  return Math.round(writesPerSecond * (3 + Math.sin(phase)))
}

/** @param writes of the node so far */
export function simulatedStays(shard: StaysShard, writes: number): NonNullable<NodeStatus['stays']> {
  const held = heldOf(shard)
  const date = new Date(Date.now() + 9 * DAY_MS).toISOString().slice(0, 10)
  const oversold = shard.oversold.map((propertyId) => ({
    ...{ property_id: propertyId, room_type: 'double', date, held: 3, owed: 1 },
  }))
  return {
    ...{ stays: held * 40, held, bytes: held * 40 * 160, oversold_nights: oversold.length, oversold },
    next_deadline: held === 0 ? null : new Date(Date.now() + (HOLD_SECONDS * 1_000) / (held + 1)).toISOString(),
    ...{
      expired: Math.floor(writes / 50),
      overflowed_rooms: 0,
      refused: { SOLD_OUT: Math.floor(writes / 80) },
    },
    settings: { stays_bytes: 64 << 20, holds_max: 200_000, holds_max_per_source: 20_000, day_begins_minutes: 0 },
  }
}

/** A part of the writes are stays: most hold first, and some of these are given up. */
export function simulatedStayMetrics(shard: StaysShard, writes: number): string[] {
  const { held, expired, oversold_nights } = simulatedStays(shard, writes)
  const part = (share: number) => Math.floor(writes * share)
  return [
    `vacancy_commands_total{command="HOLDSTAY"} ${part(0.1)}`,
    `vacancy_commands_total{command="CONFIRMSTAY"} ${part(0.06)}`,
    `vacancy_commands_total{command="BOOKSTAY"} ${part(0.04)}`,
    `vacancy_commands_total{command="RELEASESTAY"} ${part(0.01)}`,
    `vacancy_stays_held ${held}`,
    `vacancy_nights_oversold ${oversold_nights}`,
    `vacancy_stays_expired_total ${expired}`,
    `vacancy_stays_refused_total{code="SOLD_OUT"} ${part(1 / 80)}`,
    `vacancy_stays_refused_total{code="PRICE_CHANGED"} ${part(1 / 400)}`,
    `vacancy_stays_refused_total{code="EXPIRED"} ${part(1 / 900)}`,
    `vacancy_stays_refused_total{code="CONFLICT"} ${part(1 / 2_000)}`,
  ]
}
