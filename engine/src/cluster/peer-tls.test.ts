import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { createAuthority, createNodeCertificate, type Pair } from '../certificates.ts'
import { checkPeerTls, nodeNamedBy } from './peer-tls.ts'

test.for([
  ['URI:urn:vacancy:node:a', 'a'],
  ['DNS:localhost, URI:urn:vacancy:node:zone-1.a_b, IP Address:127.0.0.1', 'zone-1.a_b'],
  ['DNS:a', undefined],
  [undefined, undefined],
  ['', undefined],
  ['URI:urn:vacancy:node:', undefined],
  ['URI:urn:vacancy:node:..', undefined],
  ['URI:urn:vacancy:node:a b', undefined],
  ['URI:urn:vacancy:node:a, URI:urn:vacancy:node:b', undefined],
  ['URI:"urn:vacancy:node:a, b"', undefined],
  ['DNS:"x, URI:urn:vacancy:node:evil, y"', undefined],
  ['DNS:"x\\", URI:urn:vacancy:node:evil", URI:urn:vacancy:node:a', 'a'],
  ['URI:https://urn:vacancy:node:a', undefined],
] as const)('the names %s are good for node %s', ([names, node]) => {
  expect(nodeNamedBy(names)).toBe(node)
})

const DAY = { nowMs: Date.now(), days: 1 }
const material = (pair: Pair, authority: Pair | undefined) => ({
  ...pair,
  clientCa: authority?.cert,
  notBeforeMs: 0,
  notAfterMs: 0,
  fingerprint: '',
})

test('a node takes only its own certificate, of its own authority', async () => {
  const authority = await createAuthority(DAY)
  const other = await createAuthority(DAY)
  const pair = await createNodeCertificate(authority, { node: 'a', hosts: [], ...DAY })

  expect(() => checkPeerTls(material(pair, authority), 'a')).not.toThrow()
  expect(() => checkPeerTls(material(pair, authority), 'b')).toThrow('that of node a, not of b')
  expect(() => checkPeerTls(material(pair, other), 'a')).toThrow('not issued by the cluster authority')
  expect(() => checkPeerTls(material(pair, undefined), 'a')).toThrow('--ca-cert-path')
  expect(() => checkPeerTls(material(authority, authority), 'a')).toThrow('urn:vacancy:node:a')
})

test('of several authorities one is enough, as while one replaces the other', async () => {
  const [before, after] = [await createAuthority(DAY), await createAuthority(DAY)]
  const pair = await createNodeCertificate(after, { node: 'a', hosts: [], ...DAY })
  const both = { cert: before.cert + after.cert, key: '' }

  expect(() => checkPeerTls(material(pair, both), 'a')).not.toThrow()
})

test('ids of any legal form stand in a certificate as they are', async () => {
  const authority = await createAuthority(DAY)
  for (const node of ['A.b_c-9', 'x'.repeat(128)]) {
    const { cert } = await createNodeCertificate(authority, { node, hosts: ['h.example', '10.0.0.1', '::1'], ...DAY })

    expect(nodeNamedBy(new X509Certificate(cert).subjectAltName)).toBe(node)
  }
})
