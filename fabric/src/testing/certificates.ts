/** An authority, two certificates issued by it, and one self-signed. */
import { makeCertificate } from '@vacancy/shared/testing/certificates'

const issuer = makeCertificate({ subject: 'Test authority', isAuthority: true })
export const AUTHORITY = issuer.cert
export const SERVER = makeCertificate({ subject: 'registry', issuer })
export const CALLER = makeCertificate({ subject: 'node', issuer })
export const STRANGER = makeCertificate({ subject: 'stranger' })
