/** A shard whose nodes share one certificate without Vacancy's own names, with real processes. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { makeCertificate } from '@vacancy/shared/testing/certificates'
import { closeClient, openClient, somewhere, succeed } from '@vacancy/testkit/node'
import { leaderOf, openShard, type Shard } from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { afterEach, expect, test, vi } from 'vitest'
import { createAuthority, createNodeCertificate } from '../cli/certificates.ts'

// A test starts several processes, on two cores that others use as well.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const DAY = { nowMs: Date.now(), days: 1 }
let shard: Shard

afterEach(() => shard.close())

/** Installs a certificate where the nodes of the shard read theirs. */
function give(names: readonly string[], { cert, key }: { cert: string; key: string }, ca: string): string[] {
  const folder = join(shard.folder, 'given')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'ca.pem'), ca)
  for (const name of names) {
    writeFileSync(join(folder, `${name}.pem`), cert)
    writeFileSync(join(folder, `${name}.key`), key)
  }
  return ['--ca-cert-path', join(folder, 'ca.pem')]
}

const filesOf = (name: string): string[] => [
  ...['--cert-path', join(shard.folder, 'given', `${name}.pem`)],
  ...['--key-path', join(shard.folder, 'given', `${name}.key`)],
]

test('a shard whose nodes share one ordinary certificate starts (it used to fail)', async () => {
  shard = await openShard({ ownCertificates: true })
  const authority = await createAuthority(DAY)
  const hosts = ['node.example', ...shard.voters.map((voter) => shard.host(voter))]
  const ca = give(['shared'], makeCertificate({ issuer: authority, subject: 'shard', hosts }), authority.cert)
  shard.startRegistry()
  shard.startResolver()

  const nodes = shard.voters.map((voter) => shard.start(voter, { flags: [...filesOf('shared'), ...ca] }))

  const client = await openClient(await leaderOf(shard, nodes))
  await succeed(client, 'SETPROP', somewhere('hotel_1'))
  closeClient(client)
  await happens('all are connected', nodes, async () => nodes.every((node) => node.output().includes('"active"')))
  for (const node of nodes) expect(node.output().split('certificates that name hosts and no node').length).toBe(2)
})

test('a node with the certificate of another node is refused (it used to register)', async () => {
  shard = await openShard({ ownCertificates: true })
  const authority = await createAuthority(DAY)
  const pair = await createNodeCertificate(authority, { node: 'node-2', hosts: [], ...DAY })
  const ca = give(['other'], pair, authority.cert)
  let requests = 0
  const registry = createServer((_request, response) => {
    requests += 1
    response.writeHead(503).end()
  })
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
  try {
    const registryUrl = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`
    const node = shard.start('node-1', { registryUrl, flags: [...filesOf('other'), ...ca] })

    expect((await node.ended).code).toBe(64)
    expect(node.output()).toContain('the certificate is that of node node-2, not of node-1')
    expect(requests).toBe(0)
  } finally {
    registry.close()
  }
})
