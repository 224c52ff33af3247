/**
 * Certificates for tests, created on demand. Node can sign but cannot build an X.509 certificate, so the few
 * structures of RFC 5280 §4.1 that one needs are written here.
 */

import { createPrivateKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'

export type TestCertificate = { readonly cert: string; readonly key: string; readonly subject: string }

const DAY_MS = 24 * 3_600_000

/**
 * Creates a P-256 certificate for localhost and 127.0.0.1, in PEM form with its key.
 *
 * @param options.issuer the signer; self-signed by default
 */
export function makeCertificate(options: {
  readonly subject: string
  readonly issuer?: TestCertificate
  readonly isAuthority?: boolean
  readonly notBeforeMs?: number
  readonly notAfterMs?: number
}): TestCertificate {
  const { subject, issuer, isAuthority = false } = options
  const { notBeforeMs = Date.now() - DAY_MS, notAfterMs = Date.now() + 365 * DAY_MS } = options
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ECDSA_WITH_SHA256,
    nameOf(issuer?.subject ?? subject),
    sequence(time(notBeforeMs), time(notAfterMs)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      sequence(
        extension('551d13', isAuthority ? sequence(der(0x01, Buffer.from([0xff]))) : sequence()),
        extension('551d11', sequence(der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])))),
      ),
    ),
  )
  const signature = sign('sha256', body, issuer ? createPrivateKey(issuer.key) : privateKey)
  const bytes = sequence(body, ECDSA_WITH_SHA256, der(0x03, Buffer.concat([Buffer.from([0]), signature])))
  const lines = (bytes.toString('base64').match(/.{1,64}/g) ?? []).join('\n')
  return {
    subject,
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}

const ECDSA_WITH_SHA256 = sequence(der(0x06, Buffer.from('2a8648ce3d040302', 'hex')))

/** A distinguished name of one common name. */
function nameOf(text: string): Buffer {
  return sequence(der(0x31, sequence(der(0x06, Buffer.from('550403', 'hex')), der(0x0c, Buffer.from(text)))))
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(der(0x06, Buffer.from(id, 'hex')), der(0x04, value))
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
