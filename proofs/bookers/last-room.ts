/** One room, one night, and clients that all want it at once: each a connection of its own, all requests in flight. */
import { encodeRequest } from '@vacancy/shared/wire'
import { failure } from '../../bench/src/failure.ts'
import { runLoad } from '../../bench/src/load.ts'

export type LastRoom = {
  readonly clients: number
  readonly booked: number
  readonly soldOut: number
  /** Other replies, by text. */
  readonly others: { readonly [text: string]: number }
}

type Wanted = { readonly propertyId: string; readonly roomType: string; readonly arrival: string }

const RUN_MS = 1_000
/** Until all have their reply. */
const DRAIN_MS = 60_000

/** @param node that leads */
export async function lastRoom(
  { host, port }: { host: string; port: number },
  clients: number,
  wanted: Wanted,
): Promise<LastRoom> {
  const lines = [{ ...wanted, nights: 1, rooms: 1 }]
  const frames = Array.from({ length: clients }, (_, n) =>
    encodeRequest({ command: 'BOOKSTAY', correlationId: 0, fields: { stayId: `last-${n}`, lines } }),
  )
  const pacing = { kind: 'spike', requests: clients, periodMs: 2 * RUN_MS } as const
  const stream = { name: 'bookings', pacing, connections: clients, frames }
  // One process: every frame, and so every stay, is sent exactly once.
  const load = { host, port, processes: 1, warmupMs: 0, runMs: RUN_MS, drainMs: DRAIN_MS, streams: [stream] }
  const { broken, streams } = await runLoad(load)
  const [result] = streams
  if (broken || !result) throw failure(`last room: ${broken}`)
  if (result.answered !== clients) throw failure(`last room: ${result.answered} of ${clients} requests were answered`)
  const errors = Object.entries(result.errors)
  const sum = (some: typeof errors) => some.reduce((total, [, count]) => total + count, 0)
  const others = errors.filter(([text]) => !text.startsWith('SOLD_OUT'))
  return {
    clients,
    booked: clients - sum(errors),
    soldOut: sum(errors) - sum(others),
    others: Object.fromEntries(others),
  }
}
