/** New certificates of a node that runs, from a new authority: both directions must use them. */
import { until } from '@vacancy/testkit/until'
import { expect, onTestFinished, test } from 'vitest'
import { createAuthority, createNodeCertificate } from '../cli/certificates.ts'
import { createEnv } from '../env.ts'
import { openTlsTransport, type TlsTransport } from './tls-transport.ts'
import type { Address } from './transport-state.ts'

const NODES = ['a', 'b']
const DAY = { nowMs: Date.now(), days: 1 }
const quiet = () => undefined

test('with certificates of a new authority, nodes connect again', async () => {
  const [old, renewed] = [await createAuthority(DAY), await createAuthority(DAY)]
  const materialOf = async (node: string, authority: typeof old) => ({
    ...(await createNodeCertificate(authority, { node, hosts: [], ...DAY })),
    ...{ clientCa: authority.cert, notBeforeMs: 0, notAfterMs: 1, fingerprint: '' },
  })
  const addresses = new Map<string, Address>()
  const transports: TlsTransport[] = []
  for (const node of NODES) {
    const transport = await openTlsTransport({
      env: createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet }),
      ...{ node, host: '127.0.0.1', port: 0, tls: await materialOf(node, old), requireNodeId: true },
      ...{ limits: { retryMsMin: 5, retryMsMax: 20, lossMs: 60_000 }, onDuplicate: quiet },
      addressOf: async (peer) => addresses.get(peer) as Address,
    })({ onFrame: quiet, onOpen: quiet, onClosed: quiet })
    onTestFinished(async () => await transport.close())
    addresses.set(node, { host: '127.0.0.1', port: transport.port })
    transports.push(transport)
  }
  const counters = () => transports.map((transport) => transport.counters())

  for (const [n, transport] of transports.entries()) transport.reload(await materialOf(NODES[n] as string, renewed))
  for (const transport of transports) transport.setPeers(NODES)
  await until('they are connected, or one of them failed', () =>
    counters().every(
      ({ outgoing, incoming, failed }) => outgoing + incoming === 6 || Object.values(failed).some((count) => count > 0),
    ),
  )

  expect(counters().map(({ outgoing, incoming }) => [outgoing, incoming])).toEqual([
    [3, 3],
    [3, 3],
  ])
})
