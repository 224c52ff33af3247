/** Certificates that change while nodes run, and certificates that name neither node nor host. */
import { makeCertificate } from '@vacancy/shared/testing/certificates'
import { until } from '@vacancy/testkit/until'
import { expect, onTestFinished, test } from 'vitest'
import { createAuthority, createNodeCertificate, type Pair } from '../cli/certificates.ts'
import { createEnv } from '../env.ts'
import { openTlsTransport, type TlsTransport } from './tls-transport.ts'
import type { Address } from './transport-state.ts'

const NODES = ['a', 'b']
const DAY = { nowMs: Date.now(), days: 1 }
const quiet = () => undefined

const materialOf = (pair: Pair, authority: Pair) => ({
  ...{ ...pair, clientCa: authority.cert },
  ...{ notBeforeMs: 0, notAfterMs: 1, fingerprint: '' },
})

async function openNodes(
  pairOf: (node: string) => Promise<Pair>,
  authority: Pair,
  requireNodeId: boolean | 'any',
): Promise<TlsTransport[]> {
  const addresses = new Map<string, Address>()
  const transports: TlsTransport[] = []
  for (const node of NODES) {
    const transport = await openTlsTransport({
      env: createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet }),
      ...{ node, host: '127.0.0.1', port: 0, tls: materialOf(await pairOf(node), authority), requireNodeId },
      ...{ limits: { retryMsMin: 5, retryMsMax: 20, lossMs: 60_000 }, onDuplicate: quiet },
      addressOf: async (peer) => addresses.get(peer) as Address,
    })({ onFrame: quiet, onOpen: quiet, onClosed: quiet })
    onTestFinished(async () => await transport.close())
    addresses.set(node, { host: '127.0.0.1', port: transport.port })
    transports.push(transport)
  }
  return transports
}

async function connect(transports: readonly TlsTransport[]): Promise<void> {
  const counters = () => transports.map((transport) => transport.counters())
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
}

test('with certificates of a new authority, nodes connect again', async () => {
  const [old, renewed] = [await createAuthority(DAY), await createAuthority(DAY)]
  const pairOf = (authority: Pair) => (node: string) => createNodeCertificate(authority, { node, hosts: [], ...DAY })
  const transports = await openNodes(pairOf(old), old, true)

  for (const [n, transport] of transports.entries())
    transport.reload(materialOf(await pairOf(renewed)(NODES[n] as string), renewed))

  await connect(transports)
})

test('nodes with certificates of other hosts connect where names do not count', async () => {
  const authority = await createAuthority(DAY)
  const pairOf = async () => makeCertificate({ issuer: authority, subject: 'shard', hosts: ['elsewhere.example'] })

  await connect(await openNodes(pairOf, authority, 'any'))
})

test('a node with an id and one with an ordinary certificate connect when that is set', async () => {
  const authority = await createAuthority(DAY)
  const ordinary = async () => makeCertificate({ issuer: authority, subject: 'shard', hosts: ['127.0.0.1'] })
  const named = (node: string) => createNodeCertificate(authority, { node, hosts: [], ...DAY })

  await connect(await openNodes((node) => (node === 'a' ? named(node) : ordinary()), authority, false))
})
