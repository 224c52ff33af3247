/** Certificates as issued by other authorities, for tests: with host names, and without a node id by default. */

import { createPrivateKey } from 'node:crypto'
import { isIP } from 'node:net'
import type { Pair } from '../cli/certificates.ts'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const DAY_MS = 86_400_000

export type Ordinary = {
  readonly commonName: string
  readonly hosts: readonly string[]
  /** URIs among its names. */
  readonly uris?: readonly string[]
  /** Default: both. */
  readonly uses?: readonly ('serverAuth' | 'clientAuth')[]
}

export async function createOrdinaryCertificate(
  authority: Pair,
  { commonName, hosts, uris = [], uses = ['serverAuth', 'clientAuth'] }: Ordinary,
): Promise<Pair> {
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  const keys = (await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as CryptoKeyPair
  const pkcs8 = createPrivateKey(authority.key).export({ type: 'pkcs8', format: 'der' })
  const issuer = new x509.X509Certificate(authority.cert)
  const nowMs = Date.now()
  const names = [
    ...uris.map((value) => ({ type: 'url' as const, value })),
    ...hosts.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
  ]
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [commonName] }],
    issuer: issuer.subjectName,
    serialNumber: `40${Buffer.from(crypto.getRandomValues(new Uint8Array(15))).toString('hex')}`,
    notBefore: new Date(nowMs - DAY_MS),
    notAfter: new Date(nowMs + DAY_MS),
    publicKey: keys.publicKey,
    signingKey: await crypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign']),
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      ...(uses.length > 0 ? [new x509.ExtendedKeyUsageExtension(uses.map((use) => x509.ExtendedKeyUsage[use]))] : []),
      ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
    ],
  })
  const key = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey))
  return {
    cert: `${certificate.toString('pem')}\n`,
    key: createPrivateKey({ key, format: 'der', type: 'pkcs8' }).export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}
