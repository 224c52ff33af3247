import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { connect, createServer, type PeerCertificate, type TLSSocket } from 'node:tls'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { turnableClock } from '../clock.ts'
import { VacancyError } from '../errors.ts'
import { makeCertificate } from '../testing/certificates.ts'
import { loadTls, openTls, secureContextOf, validityFault } from './tls.ts'

const DAY_MS = 24 * 3_600_000

let folder: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-tls-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

function put(name: string, text: string): string {
  const file = path.join(folder, name)
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
  return file
}

function putPair({ cert, key }: { cert: string; key: string }) {
  return { cert: put('cert.pem', cert), key: put('key.pem', key) }
}

function fault(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    expect((error as VacancyError).code).toBe('invalid_tls')
    return (error as Error).message.replaceAll(`${folder}/`, '')
  }
  throw new Error('no fault was found')
}

function silentLog(lines: string[] = []) {
  const keep = (_fields: object, message: string) => void lines.push(message)
  return { debug: keep, info: keep, warn: keep, error: keep }
}

test('a certificate that fits its key is loaded with its expiry and fingerprint', () => {
  const notAfterMs = Date.parse('2030-01-31T12:00:00Z')
  const material = loadTls(putPair(makeCertificate({ subject: 'node', notAfterMs })))

  expect(material.notAfterMs).toBe(notAfterMs)
  expect(material.fingerprint).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)
})

test('the key of another certificate is refused', () => {
  const files = {
    ...putPair(makeCertificate({ subject: 'one' })),
    key: put('other.pem', makeCertificate({ subject: 'two' }).key),
  }

  expect(fault(() => loadTls(files))).toBe('other.pem is not the key of the certificate in cert.pem')
})

test('missing and invalid files are refused by name', () => {
  const pair = makeCertificate({ subject: 'node' })
  const files = putPair(pair)
  const text = put('text.pem', 'no certificate')
  const torn = put('torn.pem', pair.cert.replace(/\n.{20}/, '\nAAAAAAAAAAAAAAAAAAAA'))

  expect(fault(() => loadTls({ ...files, cert: path.join(folder, 'none.pem') }))).toMatch(
    /^none.pem: cannot be read: ENOENT/,
  )
  expect(fault(() => loadTls({ ...files, cert: text }))).toBe('text.pem holds no certificate in PEM form')
  expect(fault(() => loadTls({ ...files, cert: torn }))).toMatch(/^torn.pem holds a damaged certificate: /)
  expect(fault(() => loadTls({ ...files, key: text }))).toBe(
    'text.pem holds no private key in PEM form without a passphrase',
  )
  expect(fault(() => loadTls({ ...files, clientCa: text }))).toBe('text.pem holds no certificate in PEM form')
})

test('a warning is given 14 days before expiry, after it, and before the validity starts', () => {
  const startMs = Date.parse('2026-01-01T00:00:00Z')
  const endMs = Date.parse('2026-06-30T00:00:00Z')
  const material = loadTls(putPair(makeCertificate({ subject: 'node', notBeforeMs: startMs, notAfterMs: endMs })))

  expect(validityFault(material, endMs - 15 * DAY_MS)).toBe('')
  expect(validityFault(material, endMs - 13 * DAY_MS)).toBe('the certificate expires at 2026-06-30T00:00:00.000Z')
  expect(validityFault(material, endMs - 14 * DAY_MS)).toBe('')
  expect(validityFault(material, endMs - 14 * DAY_MS + 1)).toContain('expires at')
  expect(validityFault(material, endMs - 1)).toContain('expires at')
  expect(validityFault(material, startMs)).toBe('')
  expect(validityFault(material, endMs)).toBe('the certificate is expired since 2026-06-30T00:00:00.000Z')
  expect(validityFault(material, startMs - 1)).toBe('the certificate is not valid before 2026-01-01T00:00:00.000Z')
  const ofOldAuthority = { ...material, authorityNotAfterMs: endMs - 20 * DAY_MS }
  expect(validityFault(ofOldAuthority, endMs - 30 * DAY_MS)).toContain('the authority of the certificate expires at')
})

test('a certificate that expires soon causes a warning at startup', () => {
  const lines: string[] = []
  const clock = turnableClock(Date.parse('2026-06-20T00:00:00Z'))
  const notBeforeMs = Date.parse('2026-01-01T00:00:00Z')
  const notAfterMs = Date.parse('2026-06-30T00:00:00Z')
  const files = putPair(makeCertificate({ subject: 'node', notBeforeMs, notAfterMs }))

  openTls({ files, log: silentLog(lines), clock }).close()

  expect(lines).toEqual(['the certificate expires at 2026-06-30T00:00:00.000Z'])
})

test('a rotated certificate applies to the next connection, and half a rotation changes nothing', async () => {
  const [first, second] = [makeCertificate({ subject: 'first' }), makeCertificate({ subject: 'second' })]
  const files = putPair(first)
  const lines: string[] = []
  const server = createServer({ ...secureContextOf(loadTls(files)) }, (socket) => socket.end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const onReload = vi.fn((material) => server.setSecureContext(secureContextOf(material)))
  const store = openTls({ files, log: silentLog(lines), lookMs: 5, onReload })
  expect(await subjectShown(server.address() as { port: number }, first.cert)).toBe('first')

  put('cert.pem', second.cert)
  await vi.waitUntil(() =>
    lines.includes('the certificate files changed but cannot be used; keeping the previous certificate'),
  )
  expect(fault(() => store.reload())).toContain('is not the key of')
  expect(await subjectShown(server.address() as { port: number }, first.cert)).toBe('first')

  put('key.pem', second.key)
  await vi.waitUntil(() => onReload.mock.calls.length > 0)
  expect(await subjectShown(server.address() as { port: number }, second.cert)).toBe('second')
  expect(store.material().cert).toBe(second.cert)
  store.close()
  server.close()
})

test('a change of the client authorities alone is followed', async () => {
  const pair = makeCertificate({ subject: 'node' })
  const other = makeCertificate({ subject: 'other' })
  const files = { ...putPair(pair), clientCa: put('ca.pem', pair.cert) }
  const store = openTls({ files, log: silentLog(), lookMs: 2 })

  put('ca.pem', other.cert)
  await vi.waitUntil(() => store.material().clientCa === other.cert, { timeout: 30_000, interval: 2 })

  store.close()
})

test('a certificate that its listener refuses is not in force', () => {
  const [first, second] = [makeCertificate({ subject: 'first' }), makeCertificate({ subject: 'second' })]
  const files = putPair(first)
  const onReload = (): never => {
    throw new VacancyError('invalid_tls', { reason: 'the certificate is that of another node' })
  }
  const store = openTls({ files, log: silentLog([]), lookMs: 3_600_000, onReload })
  putPair(second)

  expect(fault(() => store.reload())).toContain('that of another node')

  expect(store.material().cert).toBe(first.cert)
  store.close()
})

test('with a client authority a client without its certificate is refused', async () => {
  const authority = makeCertificate({ subject: 'authority', isAuthority: true })
  const client = makeCertificate({ subject: 'client', issuer: authority })
  const pair = makeCertificate({ subject: 'node' })
  const material = loadTls({ ...putPair(pair), clientCa: put('ca.pem', authority.cert) })
  const server = createServer({ ...secureContextOf(material), requestCert: true, rejectUnauthorized: true })
  server.on('secureConnection', (socket) => socket.end('welcome'))
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const ask = (identity: object) =>
    new Promise<string>((resolve) => {
      let text = ''
      const socket = connect({ port, host: '127.0.0.1', ca: pair.cert, ...identity })
      socket.setEncoding('utf8').on('data', (data) => {
        text += data
      })
      // A TLS 1.3 server refuses a client only after the client considers itself connected.
      socket.on('error', () => resolve('refused')).on('close', () => resolve(text || 'refused'))
    })

  expect(await ask({ cert: client.cert, key: client.key })).toBe('welcome')
  expect(await ask({})).toBe('refused')
  expect(await ask(makeCertificate({ subject: 'stranger' }))).toBe('refused')
  server.close()
})

function subjectShown({ port }: { port: number }, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket: TLSSocket = connect({ port, host: '127.0.0.1', ca }, () => {
      const certificate: PeerCertificate = socket.getPeerCertificate()
      socket.destroy()
      resolve(String(certificate.subject.CN))
    })
    socket.on('error', reject)
  })
}
