/**
 * `vacancy cluster set-time` on the leader: the plan, and the entry that carries it out. The new time is always the
 * clock that a majority of the voters shares, so not even an operator can give the shard the time of a wrong clock.
 */

import { formatDay } from '@vacancy/shared'
import type { NodeSetTime } from '@vacancy/shared/contract'
import { encodeSetTime, KIND } from '../store/command.ts'
import { readingOf, shardTime } from './keep-time.ts'
import { proposeOwn } from './proposals.ts'
import type { Replica } from './replica-state.ts'
import { anchorClock, CLOCK_LIMITS, trustedClock } from './shard-time.ts'

const LOOK_MS = 20
/** Less than the caller waits (http/node.ts). */
const APPLY_MS = 4_000

export type SetTimeAnswer = { readonly status: 202 | 409 | 503; readonly text: string }

/** @param onAnswer is called once: 202 with the plan as JSON, and after `confirm` when it is applied */
export function setShardTime(replica: Replica, confirm: boolean, onAnswer: (answer: SetTimeAnswer) => void): void {
  const { machine, clock, env } = replica
  if (machine.featureLevel() < 1) {
    const text = 'The shard runs at feature level 0. Set the time once all members run this version.'
    return onAnswer({ status: 409, text })
  }
  const reading = readingOf(replica)
  const trusted = trustedClock(reading)
  if (trusted === undefined) {
    const clocks = [reading.wallMs, ...reading.others].map((ms) => new Date(ms).toISOString()).join(', ')
    const text = `No majority of the ${reading.voters} voters agrees on the time within 60 s: ${clocks}. Correct the clocks first.`
    return onAnswer({ status: 409, text })
  }
  const toMs = Math.floor(trusted)
  const fromMs = shardTime(replica)
  const plan = planOf(replica, fromMs, toMs)
  const isRight = Math.abs(toMs - fromMs) <= CLOCK_LIMITS.agreeMs && plan.import_nights === null
  if (isRight) return onAnswer({ status: 409, text: `Shard time is ${plan.shard_time} and agrees with the clock.` })
  if (!confirm) return onAnswer({ status: 202, text: JSON.stringify(plan) })
  const before = machine.time.lastSet()?.count ?? 0
  if (!proposeOwn(replica, KIND.setTime, encodeSetTime(toMs))) {
    return onAnswer({ status: 503, text: 'The leader accepts no writes at the moment. Nothing was changed.' })
  }
  // Later proposals carry the new time.
  anchorClock(clock, toMs, env.clock.monotonicMs())
  const untilMs = env.clock.monotonicMs() + APPLY_MS
  const look = (): void => {
    const last = machine.time.lastSet()
    if (last && last.count > before && last.toMs === toMs) {
      return onAnswer({ status: 202, text: JSON.stringify({ ...plan, applied: true }) })
    }
    if (env.clock.monotonicMs() >= untilMs || replica.isStopping) {
      return onAnswer({ status: 503, text: 'It is not known whether the time was set. `/status` shows shard time.' })
    }
    env.schedule.after(LOOK_MS, look)
  }
  look()
}

function planOf({ machine }: Replica, fromMs: number, toMs: number): NodeSetTime {
  const { importNights, droppedFrom } = machine.time.effectsOf(toMs)
  const [today, was] = [machine.time.dayAt(toMs), machine.time.dayAt(fromMs)]
  return {
    applied: false,
    shard_time: new Date(fromMs).toISOString(),
    new_time: new Date(toMs).toISOString(),
    import_nights: importNights ? { from: formatDay(importNights.from), to: formatDay(importNights.end - 1) } : null,
    missed_nights: today < was ? { from: formatDay(today), to: formatDay(was - 1) } : null,
    dropped_from: droppedFrom === undefined ? null : formatDay(droppedFrom),
  }
}
