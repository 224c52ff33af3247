/**
 * One probe: a search, and a hold with its release, as a client of the platform sends them. One connection for each
 * address, which is kept.
 *
 * The hold names a property that does not exist, by an id drawn for it. It takes its whole way: through the log and the
 * disks of a majority, and is refused with NOT_FOUND when it is applied. So it can neither take a room nor leave a record.
 */
import { randomUUID } from 'node:crypto'
import { type ClientOptions, type connect, VacancyCallError, type VacancyClient } from '@vacancy/client'
import { type Clock, dayOf, formatDay } from '@vacancy/shared'
import { type Outcome, PROBE, type ProbeResult } from './results.ts'
import type { Way } from './ways.ts'

type ProbeDeps = {
  readonly connect: typeof connect
  readonly clock: Clock
  readonly token: string | undefined
}

export type ProbeClients = ProbeDeps & {
  readonly kept: Map<string, { readonly client: Promise<VacancyClient>; readonly ways: Set<string> }>
}

export function createProbeClients(deps: ProbeDeps): ProbeClients {
  return { ...deps, kept: new Map() }
}

/** @param leader of the shard, as far as it is known: no other node is sent a hold */
export async function probe(clients: ProbeClients, way: Way, leader?: string): Promise<ProbeResult> {
  const { clock } = clients
  let client: VacancyClient
  try {
    client = await clientOf(clients, way)
  } catch (error) {
    return { search: failureOf(error), hold: undefined }
  }
  const { segment } = way
  const date = formatDay(dayOf(clock.wallMs()) + 1)
  const search = await measured(clock, () =>
    client.searchAvailability({ segment, anyRoomType: true, dates: [date], limit: 1 }),
  )
  // Without an answer the hold would only wait as long again.
  if (search.kind === 'failed' && NO_ANSWER.has(search.code)) return { search, hold: undefined }
  const leads = way.through === 'edge' || leader === undefined || leader === way.id
  return { search, hold: leads ? await holdAndRelease(clients, client, way, date) : { kind: 'elsewhere' } }
}

async function holdAndRelease(
  { clock }: ProbeClients,
  client: VacancyClient,
  { segment, through }: Way,
  date: string,
): Promise<Outcome> {
  const stayId = randomUUID()
  const line = { propertyId: randomUUID(), roomType: 'probe', arrival: date, nights: 1, rooms: 1 }
  const held = readWrite(
    await measured(clock, () => client.holdStay({ stayId, seconds: HOLD_SECONDS, lines: [line] }, { segment })),
    through,
  )
  if (held.kind === 'elsewhere' || held.kind === 'impossible') return held
  const released = readWrite(await measured(clock, () => client.releaseStay(stayId, {}, { segment })), through)
  return held.kind === 'answered' && released.kind === 'failed' ? released : held
}

/** The shortest that there is. */
const HOLD_SECONDS = 60

/** Codes of the client itself: the peer sent none. */
const NO_ANSWER: ReadonlySet<string> = new Set([
  ...['connection_failed', 'connection_lost', 'deadline_exceeded', 'login_failed', 'malformed_reply'],
])

/** What an answer to a hold or a release proves. */
function readWrite(outcome: Outcome, through: Way['through']): Outcome {
  if (outcome.kind !== 'failed') return outcome
  const { code, message } = outcome
  if (code === '308' && through === 'node') return { kind: 'elsewhere' }
  if (code === 'VALIDATION_ERROR') return { kind: 'impossible', message: `the shard has no stays yet (${message})` }
  if (code === 'FORBIDDEN') return { kind: 'impossible', message: 'node_client_token may not write' }
  return outcome
}

/** NOT_FOUND is an answer: what is probed does not exist. */
async function measured(clock: Clock, call: () => Promise<unknown>): Promise<Outcome> {
  const startedMs = clock.monotonicMs()
  try {
    await call()
  } catch (error) {
    if (!(error instanceof VacancyCallError)) throw error
    if (error.code !== 'NOT_FOUND') return failureOf(error)
  }
  return { kind: 'answered', ms: clock.monotonicMs() - startedMs }
}

function failureOf(error: unknown): Extract<Outcome, { kind: 'failed' }> {
  if (!(error instanceof VacancyCallError)) throw error
  // That nothing was sent matters to a caller who would repeat it, which a probe does anyway.
  return { kind: 'failed', code: error.code, message: error.message.replace(/[.]? Nothing was sent[.]$/, '') }
}

function clientOf(clients: ProbeClients, way: Way): Promise<VacancyClient> {
  const key = addressOf(way)
  let kept = clients.kept.get(key)
  if (!kept) {
    const client = clients.connect(optionsOf(clients, way))
    kept = { client, ways: new Set() }
    clients.kept.set(key, kept)
    // The next probe connects again. Once it was open, the client does so itself.
    client.catch(() => clients.kept.delete(key))
  }
  kept.ways.add(way.key)
  return kept.client
}

function optionsOf({ token }: ProbeClients, { through, address }: Way): ClientOptions {
  return {
    ...(through === 'edge' ? { routers: [address] } : address),
    ...(token !== undefined && { token }),
    ...{ deadlineMs: PROBE.deadlineMs, connectDeadlineMs: PROBE.deadlineMs, requestKeys: false },
    // A client of a platform repeats what a router refuses for now. That a node does not lead is an answer.
    retry: through === 'edge',
  }
}

function addressOf({ through, address: { host, port } }: Way): string {
  return `${through} ${host} ${port}`
}

/** Closes the connection of a way that is gone, unless other shards are probed through it. */
export function forgetWay(clients: ProbeClients, way: Way): void {
  const key = addressOf(way)
  const kept = clients.kept.get(key)
  if (!kept) return
  kept.ways.delete(way.key)
  if (kept.ways.size > 0) return
  clients.kept.delete(key)
  void closeSoon(kept.client)
}

export async function closeProbeClients({ kept }: ProbeClients): Promise<void> {
  const open = [...kept.values()]
  kept.clear()
  await Promise.all(open.map(({ client }) => closeSoon(client)))
}

async function closeSoon(client: Promise<VacancyClient>): Promise<void> {
  const open = await client.catch((error: unknown) => {
    // It was never open; the probe reported why.
    if (!(error instanceof VacancyCallError)) throw error
    return undefined
  })
  await open?.close()
}
