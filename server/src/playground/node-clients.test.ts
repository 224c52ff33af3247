import type { VacancyClient } from '@vacancy/client'
import { turnableClock } from '@vacancy/shared'
import { freePort } from '@vacancy/testkit/free-port'
import { expect, test } from 'vitest'
import type { NodeAddress } from '../cluster/cluster.ts'
import { clientOf, closeClients, createNodeClients } from './node-clients.ts'

const MINUTE_MS = 60_000

/** Clients of nodes 0, 1, …, used one millisecond after the other. */
function withOpen(count: number) {
  const clock = turnableClock(0)
  const clients = createNodeClients(clock, {})
  const closed: number[] = []
  for (let n = 0; n < count; n++) {
    const client = { close: async () => void closed.push(n) } as VacancyClient
    clients.kept.set(`node ${n}`, { client: Promise.resolve(client), usedMs: clock.monotonicMs() })
    clock.advance(1)
  }
  return { clock, clients, closed }
}

async function nodeWithoutListener(): Promise<NodeAddress> {
  const tcp = { host: '127.0.0.1', port: await freePort() }
  return { id: 'n9', shard: 's1', zone: 'z', apiUrl: 'http://127.0.0.1:1', tcp }
}

/** Which clients a request for another node closes. That node does not respond, which takes the client three seconds. */
async function closedByAnother({ clients, closed }: ReturnType<typeof withOpen>): Promise<number[]> {
  clientOf(clients, [await nodeWithoutListener()]).catch(() => {})
  await new Promise((resolve) => setImmediate(resolve))
  return closed
}

test('at most 128 clients are kept: those unused for longest are closed', async () => {
  expect(await closedByAnother(withOpen(127))).toEqual([])
  expect(await closedByAnother(withOpen(129))).toEqual([0, 1])
})

test('a client unused for five minutes is closed', async () => {
  const open = withOpen(3)
  open.clock.advance(5 * MINUTE_MS - 2)

  expect(await closedByAnother(open)).toEqual([0, 1])
})

test('a node without an address has no client', async () => {
  const { clients } = withOpen(0)
  const node = await nodeWithoutListener()

  await expect(clientOf(clients, [{ ...node, tcp: undefined }])).rejects.toThrow(
    'The wire protocol address of n9 is unknown.',
  )
  await expect(clientOf(clients, [])).rejects.toThrow('The wire protocol address of any node is unknown.')
  expect(clients.kept.size).toBe(0)
})

test('after the end every client is closed, and none is opened', async () => {
  const { clients, closed } = withOpen(2)

  await closeClients(clients)

  expect(closed).toEqual([0, 1])
  await expect(clientOf(clients, [await nodeWithoutListener()])).rejects.toMatchObject({ code: 'client_closed' })
})
