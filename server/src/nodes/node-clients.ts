/**
 * Clients of the wire protocol: one per shard, which finds the leader, and one per requested node. They are opened on
 * first use and closed after a while without use.
 */
import { type ClientOptions, connect, type VacancyClient } from '@vacancy/client'
import { type Clock, VacancyError } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type { NodeAddress } from '../cluster/cluster.ts'

/** Connect, handshake and codec list: on a busy machine a second is not always enough. */
const CONNECT_MS = 3_000
const IDLE_MS = 300_000
const CLIENTS_MAX = 128
/** Options of the client. */
const NODES_MAX = 32

export type NodeClients = {
  readonly clock: Clock
  /** Credentials for the nodes: the configured client token, and TLS. */
  readonly options: Pick<ClientOptions, 'token' | 'tls'>
  readonly kept: Map<string, { readonly client: Promise<VacancyClient>; usedMs: number }>
  isClosed: boolean
}

export function createNodeClients(clock: Clock, options: NodeClients['options']): NodeClients {
  return { clock, options, kept: new Map(), isClosed: false }
}

/** A client for one node, or for the nodes of a shard.
 *
 * @throws ProblemError 502 when no address is known or no node can be reached
 */
export async function clientOf(clients: NodeClients, nodes: readonly NodeAddress[]): Promise<VacancyClient> {
  const known = nodes.filter((node) => node.tcp !== undefined).slice(0, NODES_MAX)
  const [first] = known
  if (!first?.tcp) {
    throw problem('no-address', { detail: `The wire protocol address of ${namesOf(nodes)} is unknown.` })
  }
  if (clients.isClosed) throw new VacancyError('client_closed', {})
  const key =
    (isRouter(first) ? 'routers ' : '') +
    known.map(({ tcp, apiUrl }) => `${tcp?.host} ${tcp?.port} ${known.length > 1 ? apiUrl : ''}`).join()
  const nowMs = clients.clock.monotonicMs()
  let entry = clients.kept.get(key)
  if (!entry) {
    const client = connect({
      ...(isRouter(first)
        ? { routers: known.flatMap(({ tcp }) => tcp ?? []) }
        : known.length === 1
          ? first.tcp
          : { nodes: known.map(({ tcp, apiUrl }) => ({ ...(tcp ?? { host: '' }), api: apiUrl })) }),
      ...clients.options,
      connectDeadlineMs: CONNECT_MS,
    })
    entry = { client, usedMs: nowMs }
    clients.kept.set(key, entry)
    // The next request retries a node that was down.
    client.catch(() => clients.kept.delete(key))
    closeIdle(clients, nowMs)
  }
  entry.usedMs = nowMs
  try {
    return await entry.client
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw problem('node-unreachable', { detail: `No connection to ${namesOf(known)}: ${reason}`, cause: error })
  }
}

/** Edge routers are in no shard. */
export function isRouter({ shard }: NodeAddress): boolean {
  return shard === ''
}

function namesOf(nodes: readonly NodeAddress[]): string {
  return nodes.length === 0 ? 'any node' : nodes.map(({ id }) => id).join(', ')
}

function closeIdle({ kept }: NodeClients, nowMs: number): void {
  const byUse = [...kept].sort(([, a], [, b]) => a.usedMs - b.usedMs)
  const tooMany = byUse.length - CLIENTS_MAX
  for (const [place, [key, { client, usedMs }]] of byUse.entries()) {
    if (place >= tooMany && nowMs - usedMs < IDLE_MS) continue
    kept.delete(key)
    closeSoon(client)
  }
}

function closeSoon(client: Promise<VacancyClient>): Promise<void> {
  return client.then(
    (open) => open.close(),
    // It was never open; the caller got the error.
    () => {},
  )
}

export async function closeClients(clients: NodeClients): Promise<void> {
  clients.isClosed = true
  const open = [...clients.kept.values()]
  clients.kept.clear()
  await Promise.all(open.map(({ client }) => closeSoon(client)))
}
