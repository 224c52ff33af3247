/**
 * Nights to sell, and the requests that sell them: every stay has an id of its own, since a repeated one takes nothing.
 * They are properties beside those of the data set, with all the rooms a night can have.
 */
import { dayOf, formatDay } from '@vacancy/shared'
import { encodeRequest, type RequestFields } from '@vacancy/shared/wire'
import { failure } from '../failure.ts'
import { runLoad } from '../load.ts'

export const STAY_NIGHTS = 3
const PROPERTIES = 1_000
const DAYS = 30
const ROOMS = 255
const ROOM_TYPE = 'double'
const AT_ONCE = 3_000
const SETUP_DRAIN_MS = 120_000
/** Bytes of records of stays: all of a benchmark. */
const STAYS_BYTES = 1 << 30

export type At = { readonly host: string; readonly port: number }

/** Gives the numbers of stays, so that no id and no night is used by two measurements. */
export type Stock = { sold: number; readonly firstDay: number }

/** Puts the nights on a node, and lets it keep every record. */
export async function openStock({ host, port, api }: At & { api: string }, token?: string): Promise<Stock> {
  const firstDay = dayOf(Date.now()) + 1
  const frames: Uint8Array[] = []
  for (let n = 0; n < PROPERTIES; n++) {
    const place = { segment: 'stays', area: 'stays', propertyType: 'hotel', category: 'standard', stars: 3 }
    const at = { latitude: 47, longitude: 11, amenities: [] }
    frames.push(
      encodeRequest({ command: 'SETPROP', correlationId: 0, fields: { ...place, ...at, propertyId: idOf(n) } }),
    )
  }
  await sendAll({ host, port }, frames)
  frames.length = 0
  for (let n = 0; n < PROPERTIES * DAYS; n++) {
    const fields = { ...nightOf(n, firstDay), availability: ROOMS, finalPrice: 100, rateFeatures: [] }
    frames.push(encodeRequest({ command: 'SETROOMPKG', correlationId: 0, fields }))
  }
  await sendAll({ host, port }, frames)
  const body = JSON.stringify({ name: 'stays_bytes', value: STAYS_BYTES })
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
  const response = await fetch(`${api}/admin/settings`, { method: 'POST', body, headers })
  if (!response.ok) throw failure(`POST /admin/settings answered ${response.status}: ${await response.text()}`)
  return { sold: 0, firstDay }
}

const idOf = (n: number) => `stay-${n % PROPERTIES}`

function nightOf(n: number, firstDay: number, days = DAYS) {
  const date = formatDay(firstDay + (Math.floor(n / PROPERTIES) % days))
  return { propertyId: idOf(n), roomType: ROOM_TYPE, date }
}

/** Sends each request once, some at a time, so that a slow shard keeps its deadlines. */
async function sendAll(at: At, frames: readonly Uint8Array[]): Promise<void> {
  for (let n = 0; n < frames.length; n += AT_ONCE) await sendAtOnce(at, frames.slice(n, n + AT_ONCE))
}

async function sendAtOnce(at: At, frames: readonly Uint8Array[]): Promise<void> {
  const runMs = 100
  const pacing = { kind: 'spike', requests: frames.length, periodMs: 2 * runMs } as const
  const stream = { name: 'setup', pacing, connections: 16, batch: 64, frames }
  const { streams, broken } = await runLoad({
    ...at,
    processes: 1,
    warmupMs: 0,
    runMs,
    drainMs: SETUP_DRAIN_MS,
    streams: [stream],
  })
  const [result] = streams
  const [error] = Object.entries(result?.errors ?? {})
  if (broken || error || result?.answered !== frames.length) {
    throw failure(`the nights were not set: ${broken || (error?.[0] ?? `${result?.answered} of ${frames.length}`)}`)
  }
}

/** Bookings of one room each. */
export function stayFrames(stock: Stock, count: number): Uint8Array[] {
  return Array.from({ length: count }, () => {
    const fields = takeStay(stock)
    return encodeRequest({ command: 'BOOKSTAY', correlationId: 0, fields })
  })
}

/** The next stay, on nights of which few others are. */
export function takeStay(stock: Stock): RequestFields<'BOOKSTAY'> {
  const n = stock.sold++
  const { propertyId, roomType, date: arrival } = nightOf(n, stock.firstDay, DAYS - STAY_NIGHTS + 1)
  return {
    stayId: `bench-${n.toString(36)}`,
    lines: [{ propertyId, roomType, arrival, nights: STAY_NIGHTS, rooms: 1 }],
  }
}

/** Decrements of one room each, on the same nights. */
export function decrementFrames(stock: Stock, count: number): Uint8Array[] {
  return Array.from({ length: count }, () => {
    const fields = { ...nightOf(stock.sold++, stock.firstDay), amount: 1 }
    return encodeRequest({ command: 'DECROOMAVL', correlationId: 0, fields })
  })
}
