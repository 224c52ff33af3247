/** What ends on a date: certificates, their authorities, and tokens. Said from 14 days before the end on. */

import { gauge, type Metrics } from './metrics.ts'
import type { TlsMaterial } from './tls.ts'
import type { TokenHash } from './token-check.ts'

/** From this long before its end until this long after it, a certificate or token is reported. */
export const ENDING_MS = 14 * 86_400_000

/** The name of the reason on `/ready`: it stops nothing. */
export const ENDS_REASON = 'certificate_ends'

/** A certificate in use, with its authority where that is known. */
type CertificateEnd = Pick<TlsMaterial, 'notAfterMs' | 'authorityNotAfterMs'>
type Ending = { readonly what: string; readonly atMs: number }

/** A certificate with its authority, where that is known. @param of completes "the certificate of …" */
export function certificateEnds(of: string, material: CertificateEnd | undefined): readonly Ending[] {
  if (material === undefined) return []
  const { notAfterMs, authorityNotAfterMs } = material
  return [
    { what: `the certificate of ${of}`, atMs: notAfterMs },
    ...(authorityNotAfterMs === undefined ? [] : [{ what: `the authority of ${of}`, atMs: authorityNotAfterMs }]),
  ]
}

/** Tokens that ended long ago are left out: nobody misses them. */
export function tokenEnds(
  tokens: readonly Pick<TokenHash<string>, 'name' | 'role' | 'expiresMs'>[],
  nowMs: number,
): readonly Ending[] {
  return tokens
    .filter(({ expiresMs }) => nowMs - expiresMs < ENDING_MS)
    .map(({ name, role, expiresMs }) => ({ what: `the token ${name || `of role ${role}`}`, atMs: expiresMs }))
}

/** Which of them end soon or have ended, the next one first; '' for none. */
export function endingText(all: readonly Ending[], nowMs: number): string {
  return all
    .filter(({ atMs }) => atMs - nowMs < ENDING_MS)
    .sort((a, b) => a.atMs - b.atMs)
    .map(({ what, atMs }) => `${what} ${atMs <= nowMs ? 'ended' : 'ends'} at ${new Date(atMs).toISOString()}`)
    .join('; ')
}

/** That text as reasons of `/ready`, for programs that do not show since when. */
export function endsReasons(message: string): readonly { readonly name: string; readonly message: string }[] {
  return message === '' ? [] : [{ name: ENDS_REASON, message }]
}

export const CERTIFICATE_END_METRIC = gauge(
  'Expiry of the certificate of a listener, seconds since 1970; of its authority where `_authority` follows the name. Absent without TLS.',
  ['listener'],
)

type CertificateGauge = Metrics<{ readonly row: typeof CERTIFICATE_END_METRIC }>['of']['row']

/** For that metric. */
export function setCertificateEnds(metric: CertificateGauge, listener: string, material: CertificateEnd | undefined) {
  if (material === undefined) return
  metric.set({ listener }, material.notAfterMs / 1000)
  if (material.authorityNotAfterMs !== undefined)
    metric.set({ listener: `${listener}_authority` }, material.authorityNotAfterMs / 1000)
}

export const TOKEN_END_METRIC = gauge('When the next token ends, seconds since 1970; +Inf while none ends.')

/** For that metric; Infinity while none ends. */
export function nextTokenEnd(
  tokens: readonly Pick<TokenHash<string>, 'name' | 'role' | 'expiresMs'>[],
  nowMs: number,
): number {
  return tokenEnds(tokens, nowMs).reduce((next, { atMs }) => Math.min(next, atMs / 1000), Number.POSITIVE_INFINITY)
}
