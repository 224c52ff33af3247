import { X509Certificate } from 'node:crypto'
import { type CertificateOptions, makeCertificate } from '@vacancy/shared/testing/certificates'
import { expect, test } from 'vitest'
import { createAuthority, createNodeCertificate, type Pair } from '../cli/certificates.ts'
import { checkPeerTls, isGoodForHost, namedBy, nodeNamedBy, nodeUri, requiresNodeId } from './peer-tls.ts'

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
] as const)('the names %s identify node %s', ([names, node]) => {
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

test('a node accepts only its own certificate, of its own authority', async () => {
  const authority = await createAuthority(DAY)
  const other = await createAuthority(DAY)
  const pair = await createNodeCertificate(authority, { node: 'a', hosts: [], ...DAY })

  expect(() => checkPeerTls(material(pair, authority), 'a', undefined)).not.toThrow()
  expect(() => checkPeerTls(material(pair, authority), 'b', undefined)).toThrow('that of node a, not of b')
  expect(() => checkPeerTls(material(pair, other), 'a', undefined)).toThrow('not issued by the cluster authority')
  expect(() => checkPeerTls(material(pair, undefined), 'a', undefined)).toThrow('--ca-cert-path')
  expect(() => checkPeerTls(material(authority, authority), 'a', undefined)).toThrow('urn:vacancy:node:a')
})

test('one of several authorities is enough, as during a replacement', async () => {
  const [before, after] = [await createAuthority(DAY), await createAuthority(DAY)]
  const pair = await createNodeCertificate(after, { node: 'a', hosts: [], ...DAY })
  const both = { cert: before.cert + after.cert, key: '' }

  expect(() => checkPeerTls(material(pair, both), 'a', undefined)).not.toThrow()
})

test('ids of any legal form are stored in a certificate unchanged', async () => {
  const authority = await createAuthority(DAY)
  for (const node of ['A.b_c-9', 'x'.repeat(128)]) {
    const { cert } = await createNodeCertificate(authority, { node, hosts: ['h.example', '10.0.0.1', '::1'], ...DAY })

    expect(nodeNamedBy(new X509Certificate(cert).subjectAltName)).toBe(node)
  }
})

const HOSTS = { subject: 'shard', hosts: ['n1.example', '10.0.0.1', '::1'] }

test.for<[string, CertificateOptions, boolean | undefined, string]>([
  ['hosts alone', HOSTS, undefined, ''],
  ['a common name alone', { subject: 'n1.example', hosts: [] }, undefined, ''],
  ['hosts, where the node id is demanded', HOSTS, true, 'urn:vacancy:node:a'],
  ['hosts, and not for clients', { ...HOSTS, uses: ['serverAuth'] }, undefined, 'serverAuth and clientAuth'],
  ['hosts, and not for servers', { ...HOSTS, uses: ['clientAuth'] }, undefined, 'serverAuth and clientAuth'],
  ['hosts, and for no use in particular', { ...HOSTS, uses: [] }, undefined, 'serverAuth and clientAuth'],
  ['another node', { ...HOSTS, uris: [nodeUri('b')] }, false, 'that of node b, not of a'],
  ['two nodes', { ...HOSTS, uris: [nodeUri('a'), nodeUri('b')] }, false, 'must name it once'],
  ['the node', { ...HOSTS, uris: [nodeUri('a')] }, true, ''],
])('a node starts with an ordinary certificate (it used to fail): %s', async ([, ordinary, setting, error]) => {
  const authority = await createAuthority(DAY)
  const pair = makeCertificate({ ...ordinary, issuer: authority })
  const check = () => checkPeerTls(material(pair, authority), 'a', setting)

  if (error === '') expect(check).not.toThrow()
  else expect(check).toThrow(error)
})

test('peers must name their node id by default if the own certificate does', async () => {
  const authority = await createAuthority(DAY)
  const own = material(await createNodeCertificate(authority, { node: 'a', hosts: [], ...DAY }), authority)
  const shared = material(makeCertificate({ ...HOSTS, issuer: authority }), authority)

  expect([own, shared].map((each) => requiresNodeId(each, undefined))).toEqual([true, false])
  expect([own, shared].map((each) => requiresNodeId(each, false))).toEqual([false, false])
  expect([own, shared].map((each) => requiresNodeId(each, true))).toEqual([true, true])
})

test('hosts are matched by name, address and common name', async () => {
  const authority = await createAuthority(DAY)
  const open = async (ordinary: CertificateOptions) =>
    new X509Certificate(makeCertificate({ ...ordinary, issuer: authority }).cert)
  const certificate = await open({
    subject: 'cn.example',
    hosts: ['n1.example', '*.shard.example', '10.0.0.1', '::1'],
  })
  const common = await open({ subject: 'cn.example', hosts: [] })

  expect(namedBy(certificate)).toBe('hosts')
  for (const host of ['n1.example', 'a.shard.example', '10.0.0.1', '::ffff:10.0.0.1', '::1'])
    expect(isGoodForHost(certificate, host), host).toBe(true)
  for (const host of ['cn.example', 'n2.example', 'a.b.shard.example', '10.0.0.2', '::2', ''])
    expect(isGoodForHost(certificate, host), host).toBe(false)
  expect(isGoodForHost(common, 'cn.example')).toBe(true)
})
