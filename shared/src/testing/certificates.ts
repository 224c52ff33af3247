/**
 * Certificates for tests, created on demand. Node can sign but cannot build an X.509 certificate, so the few
 * structures of RFC 5280 §4.1 that one needs are written here.
 */

import { createPrivateKey, generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'

export type TestCertificate = { readonly cert: string; readonly key: string }

export type CertificateOptions = {
  /** Its common name. */
  readonly subject: string
  /** The signer; self-signed by default. */
  readonly issuer?: TestCertificate
  readonly isAuthority?: boolean
  readonly notBeforeMs?: number
  readonly notAfterMs?: number
  /** Host names and addresses; localhost and 127.0.0.1 by default. */
  readonly hosts?: readonly string[]
  readonly uris?: readonly string[]
  /** Both by default. */
  readonly uses?: readonly (keyof typeof USES)[]
}

const DAY_MS = 24 * 3_600_000
const USES = { serverAuth: '2b06010505070301', clientAuth: '2b06010505070302' } as const
const EVERY_USE = ['serverAuth', 'clientAuth'] as const

/** Creates a P-256 certificate in PEM form with its key. */
export function makeCertificate(options: CertificateOptions): TestCertificate {
  const { subject, issuer, isAuthority = false, hosts = ['localhost', '127.0.0.1'], uris = [] } = options
  const { notBeforeMs = Date.now() - DAY_MS, notAfterMs = Date.now() + 365 * DAY_MS, uses = EVERY_USE } = options
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const names = [
    ...uris.map((uri) => der(0x86, Buffer.from(uri))),
    ...hosts.map((host) => (isIP(host) === 0 ? der(0x82, Buffer.from(host)) : der(0x87, addressOf(host)))),
  ]
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ECDSA_WITH_SHA256,
    nameOf(issuer ? new X509Certificate(issuer.cert).subject.slice('CN='.length) : subject),
    sequence(time(notBeforeMs), time(notAfterMs)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      sequence(
        extension('551d13', isAuthority ? sequence(der(0x01, Buffer.from([0xff]))) : sequence()),
        ...(uses.length > 0 ? [extension('551d25', sequence(...uses.map((use) => identifier(USES[use]))))] : []),
        ...(names.length > 0 ? [extension('551d11', sequence(...names))] : []),
      ),
    ),
  )
  const signature = sign('sha256', body, issuer ? createPrivateKey(issuer.key) : privateKey)
  const bytes = sequence(body, ECDSA_WITH_SHA256, der(0x03, Buffer.concat([Buffer.from([0]), signature])))
  const lines = (bytes.toString('base64').match(/.{1,64}/g) ?? []).join('\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}

const ECDSA_WITH_SHA256 = sequence(identifier('2a8648ce3d040302'))

/** A distinguished name of one common name. */
function nameOf(text: string): Buffer {
  return sequence(der(0x31, sequence(identifier('550403'), der(0x0c, Buffer.from(text)))))
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(identifier(id), der(0x04, value))
}

function identifier(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'))
}

/** Of IPv6, the forms with "::" at the start. */
function addressOf(host: string): Buffer {
  if (isIP(host) === 4) return Buffer.from(host.split('.').map(Number))
  return Buffer.from(host.slice('::'.length).padStart(32, '0'), 'hex')
}

/** GeneralizedTime, in whole seconds. */
function time(ms: number): Buffer {
  return der(0x18, Buffer.from(new Date(ms).toISOString().replaceAll(/[-:T]|\.\d+/g, '')))
}

function integer(bytes: Buffer): Buffer {
  return der(0x02, bytes)
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts))
}

/** Tag, length and content: the distinguished encoding rules of X.690. */
function der(tag: number, content: Buffer): Buffer {
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}
