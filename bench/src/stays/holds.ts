/** When rooms of holds return: every hold is watched from outside, by clients of the leader, until it is listed as expired. */
import { setTimeout as wait } from 'node:timers/promises'
import { connect, type VacancyClient } from '@vacancy/client'
import { failure } from '../failure.ts'
import { type At, type Stock, takeStay } from './stock.ts'

const HOLD_SECONDS = 10
/** Between two looks at a stay, which makes a delay look longer by up to as much. */
const LOOK_MS = 20
/** A stay is watched from so long before its deadline. */
const AHEAD_MS = 300
const OVERDUE_MS_MAX = 60_000

export type Returned = {
  /** From each deadline until a client saw the stay as expired. */
  readonly delaysMs: readonly number[]
  /** Stays that were seen as expired before their deadline. */
  readonly early: number
}

/** @param perSecond holds; their deadlines come as fast */
export async function measureHolds(at: At, stock: Stock, count: number, perSecond: number): Promise<Returned> {
  const client = await connect({ ...at, deadlineMs: OVERDUE_MS_MAX })
  try {
    const begun = performance.now()
    const watched: Promise<number>[] = []
    for (let n = 0; n < count; n++) {
      await wait(Math.max(0, begun + (n * 1_000) / perSecond - performance.now()))
      watched.push(delayOf(client, stock))
    }
    const delaysMs = await Promise.all(watched)
    return { delaysMs, early: delaysMs.filter((ms) => ms < 0).length }
  } finally {
    await client.close()
  }
}

/** Holds one stay. @returns how long after its deadline it was seen as expired */
async function delayOf(client: VacancyClient, stock: Stock): Promise<number> {
  const { stayId, lines } = takeStay(stock)
  const { deadlineMs } = await client.holdStay({ stayId, lines, seconds: HOLD_SECONDS })
  if (deadlineMs === undefined) throw failure(`${stayId} has no deadline`)
  await wait(Math.max(0, deadlineMs - AHEAD_MS - Date.now()))
  for (;;) {
    const { state } = await client.stay(stayId)
    const delay = Date.now() - deadlineMs
    if (state === 'expired') return delay
    if (state !== 'held' || delay > OVERDUE_MS_MAX)
      throw failure(`${stayId} is ${state} ${delay} ms after its deadline`)
    await wait(LOOK_MS)
  }
}
