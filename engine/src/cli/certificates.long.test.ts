import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeNamedBy, peerContextOptions } from '../transport/peer-tls.ts'
import { createAuthority, createNodeCertificate, type Pair } from './certificates.ts'

const NOW = Date.UTC(2030, 0, 15)
const DAY_MS = 86_400_000
const VALID = { nowMs: Date.now(), days: 1 }

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-certs-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Runs `vacancy certs` in its own process. */
function certs(...args: string[]) {
  const module = new URL('./certificates.ts', import.meta.url).href
  const program = `await (await import(${JSON.stringify(module)})).certsMain(process.argv.slice(1))`
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', program, '--', ...args], { encoding: 'utf8' })
  return { code: run.status, out: run.stdout, err: run.stderr.replace(/^\(node:.*$|^\(Use .*$/gm, '').trim() }
}

const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
const modeOf = (name: string): string => (statSync(join(folder, name)).mode & 0o777).toString(8)

/** Both ends of a connection, or why it failed. */
async function shake(server: Pair, client: Pair, serverCa: Pair, clientCa: Pair) {
  const material = (pair: Pair, ca: Pair) => ({
    ...pair,
    clientCa: ca.cert,
    notBeforeMs: 0,
    notAfterMs: 0,
    fingerprint: '',
  })
  const listener = createServer({
    ...peerContextOptions(material(server, serverCa)),
    requestCert: true,
    rejectUnauthorized: true,
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const socket = connect({
    port,
    host: '127.0.0.1',
    ...peerContextOptions(material(client, clientCa)),
    checkServerIdentity: () => undefined,
  })
  socket.on('error', () => {})
  const accepted = new Promise<TLSSocket | string>((resolve) => {
    listener.once('secureConnection', resolve)
    listener.once('tlsClientError', (_, refused) => resolve(String(refused.authorizationError ?? 'refused')))
  })
  const other = await accepted
  const names = typeof other === 'string' ? other : nodeNamedBy(other.getPeerX509Certificate()?.subjectAltName)
  const protocol = socket.getProtocol()
  const seen = nodeNamedBy(socket.getPeerX509Certificate()?.subjectAltName)
  socket.destroy()
  if (typeof other !== 'string') other.destroy()
  await new Promise((resolve) => listener.close(resolve))
  return { client: names, server: seen, protocol }
}

test('certificates of one authority yield a mutual connection in which each side identifies the other', async () => {
  const authority = await createAuthority(VALID)
  const [a, b] = await Promise.all(
    ['a', 'b'].map((node) => createNodeCertificate(authority, { node, hosts: [], ...VALID })),
  )

  expect(await shake(a as Pair, b as Pair, authority, authority)).toEqual({
    client: 'b',
    server: 'a',
    protocol: 'TLSv1.3',
  })
})

test('a node of another authority is refused under any name', async () => {
  const [authority, other] = [await createAuthority(VALID), await createAuthority(VALID)]
  const a = await createNodeCertificate(authority, { node: 'a', hosts: [], ...VALID })
  const b = await createNodeCertificate(other, { node: 'b', hosts: [], ...VALID })

  const { client } = await shake(a, b, authority, authority)

  expect(client).toMatch(/UNABLE|SELF_SIGNED|CERT/)
})

test('an expired certificate is refused', async () => {
  const authority = await createAuthority({ nowMs: VALID.nowMs - 10 * DAY_MS, days: 20 })
  const a = await createNodeCertificate(authority, { node: 'a', hosts: [], ...VALID })
  const b = await createNodeCertificate(authority, { node: 'b', hosts: [], nowMs: VALID.nowMs - 5 * DAY_MS, days: 1 })

  expect((await shake(a, b, authority, authority)).client).toBe('CERT_HAS_EXPIRED')
})

test('a certificate names its node and hosts, is valid for both sides, and expires no later than its authority', async () => {
  const authority = await createAuthority({ nowMs: NOW, days: 10 })
  const pair = await createNodeCertificate(authority, {
    node: 'n-1',
    hosts: ['n1.example', '10.0.0.1', '::1'],
    nowMs: NOW,
    days: 30,
  })

  const [ca, own] = [new X509Certificate(authority.cert), new X509Certificate(pair.cert)]
  expect(own.subjectAltName).toBe(
    'URI:urn:vacancy:node:n-1, DNS:n1.example, IP Address:10.0.0.1, IP Address:0:0:0:0:0:0:0:1',
  )
  expect(own.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2'])
  expect([ca.ca, own.ca]).toEqual([true, false])
  expect(own.checkIssued(ca) && own.verify(ca.publicKey)).toBe(true)
  expect(Date.parse(own.validFrom)).toBe(NOW - 3_600_000)
  expect(Date.parse(own.validTo)).toBe(NOW + 10 * DAY_MS)
  expect(own.serialNumber).not.toBe(ca.serialNumber)
})

test('an authority that is damaged, expired, or has another key signs nothing', async () => {
  const [authority, other] = [await createAuthority(VALID), await createAuthority(VALID)]
  const node = { node: 'a', hosts: [], ...VALID }
  const own = await createNodeCertificate(authority, node)

  await expect(createNodeCertificate({ ...authority, key: other.key }, node)).rejects.toThrow('not the key of ca.pem')
  await expect(createNodeCertificate({ ...authority, cert: 'x' }, node)).rejects.toThrow('holds something else')
  await expect(createNodeCertificate(own, node)).rejects.toThrow('not a certificate of an authority')
  const late = { ...node, nowMs: VALID.nowMs + 2 * DAY_MS }
  await expect(createNodeCertificate(authority, late)).rejects.toThrow('expired at')
})

test('the commands create an authority and a node, with keys readable by their owner only', () => {
  const init = certs('init', '--out', folder)
  const node = certs('node', '--ca', folder, '--node-id', 'n1', '--host', 'localhost,127.0.0.1', '--out', folder)

  expect([init.code, node.code, init.err, node.err]).toEqual([0, 0, '', ''])
  expect(readdirSync(folder).sort()).toEqual(['ca.key', 'ca.pem', 'n1.key', 'n1.pem'])
  expect([modeOf('ca.key'), modeOf('n1.key')]).toEqual(['600', '600'])
  const own = new X509Certificate(read('n1.pem'))
  expect(nodeNamedBy(own.subjectAltName)).toBe('n1')
  expect(own.checkHost('localhost')).toBe('localhost')
  expect(own.checkIssued(new X509Certificate(read('ca.pem')))).toBe(true)
})

test('files are replaced only with --force, and then as a whole', () => {
  certs('init', '--out', folder)
  const before = read('ca.pem')

  const refused = certs('init', '--out', folder)
  expect(refused.code).toBe(64)
  expect(refused.err).toContain('ca.pem already exists')
  expect(read('ca.pem')).toBe(before)

  writeFileSync(join(folder, 'ca.key'), 'old', { mode: 0o644 })
  expect(certs('init', '--out', folder, '--force').code).toBe(0)
  expect(read('ca.pem')).not.toBe(before)
  expect(modeOf('ca.key')).toBe('600')
  expect(certs('node', '--ca', folder, '--node-id', 'n1', '--out', folder).code).toBe(0)
})

test.for([
  [['node', '--ca', 'X', '--node-id', 'a b', '--out', 'X'], 'a b is not an id'],
  [['node', '--ca', 'X', '--node-id', 'ca', '--out', 'X'], 'would overwrite the files of the authority'],
  [['node', '--ca', 'X', '--node-id', 'a', '--host', 'b c', '--out', 'X'], 'b c is neither a host name nor an address'],
  [['node', '--ca', 'X', '--node-id', 'a', '--out', 'X'], '`vacancy certs init` creates an authority'],
  [['node', '--node-id', 'a', '--out', 'X'], '--ca is required'],
  [['init', '--out', 'X', '--days', '0'], '--days'],
  [['renew'], 'unknown command renew'],
] as const)('%s is refused with advice', ([args, message]) => {
  const { code, err } = certs(...args.map((arg) => (arg === 'X' ? join(folder, 'none') : arg)))

  expect(err).toContain(message)
  expect(code).toBe(64)
  expect(readdirSync(folder)).toEqual([])
})

test('help lists both commands', () => {
  const { code, out } = certs('--help')

  expect(code).toBe(0)
  expect(out).toContain('usage: vacancy certs init [flags]')
  expect(out).toContain('usage: vacancy certs node [flags]')
  expect(certs('node', '--help').out).toContain('--node-id')
})
