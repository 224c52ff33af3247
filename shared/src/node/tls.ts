/**
 * Certificates of listeners: loading, checking them against their key, following file changes, and warning before
 * they expire (docs/design/http.md#process-rules).
 */

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'
import { type Clock, systemClock } from '../clock.ts'
import { VacancyError } from '../errors.ts'
import type { Log } from './log.ts'
import { readText, watchFiles } from './watch.ts'

/** From this long before its expiry a certificate causes a warning once a day. */
const EXPIRY_WARNING_MS = 14 * 24 * 3_600_000
const WARNING_REPEAT_MS = 24 * 3_600_000

export type TlsFiles = {
  /** PEM: the certificate, followed by its intermediates. */
  readonly cert: string
  /** PEM, without a passphrase. */
  readonly key: string
  /** PEM: authorities whose certificates clients must show; without it clients show none. */
  readonly clientCa?: string | undefined
}

/** The material of a listener. Plain data, so that it can be sent to other threads. */
export type TlsMaterial = {
  readonly cert: string
  readonly key: string
  readonly clientCa: string | undefined
  readonly notBeforeMs: number
  /** For the metric `tls_cert_not_after_seconds`. */
  readonly notAfterMs: number
  /** When the authority in `clientCa` ends that issued the certificate; if none did, the last of them. */
  readonly authorityNotAfterMs?: number | undefined
  /** SHA-256 of the certificate, as openssl prints it. */
  readonly fingerprint: string
}

/**
 * Loads a certificate and its key.
 *
 * @throws VacancyError invalid_tls: a file is unreadable or holds something else, or the key belongs to another certificate
 */
export function loadTls(files: TlsFiles): TlsMaterial {
  const cert = readText(files.cert, 'invalid_tls')
  const key = readText(files.key, 'invalid_tls')
  const clientCa = files.clientCa === undefined ? undefined : readText(files.clientCa, 'invalid_tls')
  const chain = parseCertificates(files.cert, cert)
  const [certificate] = chain
  if (!certificate?.checkPrivateKey(parseKey(files.key, key))) {
    throw invalid(`${files.key} is not the key of the certificate in ${files.cert}`)
  }
  const authorities = files.clientCa === undefined ? [] : parseCertificates(files.clientCa, clientCa ?? '')
  return {
    cert,
    key,
    clientCa,
    notBeforeMs: Date.parse(certificate.validFrom),
    notAfterMs: Date.parse(certificate.validTo),
    ...(authorities.length === 0 ? {} : { authorityNotAfterMs: endOf(authorities, chain.at(-1) ?? certificate) }),
    fingerprint: certificate.fingerprint256,
  }
}

/** While an authority is replaced, both are in the file: the one that counts issued the certificate. */
function endOf(authorities: readonly X509Certificate[], last: X509Certificate): number {
  const ends = (of: readonly X509Certificate[]) => of.map(({ validTo }) => Date.parse(validTo))
  const issuers = authorities.filter((authority) => last.checkIssued(authority))
  return Math.max(...ends(issuers.length > 0 ? issuers : authorities))
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

function parseCertificates(file: string, text: string): X509Certificate[] {
  const blocks = text.match(PEM_CERTIFICATE)
  if (!blocks) throw invalid(`${file} holds no certificate in PEM form`)
  try {
    return blocks.map((block) => new X509Certificate(block))
  } catch (error) {
    throw invalid(`${file} holds a damaged certificate: ${(error as Error).message}`, error)
  }
}

function parseKey(file: string, text: string): KeyObject {
  try {
    return createPrivateKey(text)
  } catch (error) {
    throw invalid(`${file} holds no private key in PEM form without a passphrase`, error)
  }
}

function invalid(reason: string, cause?: unknown): VacancyError {
  return new VacancyError('invalid_tls', { reason }, { cause })
}

/** Options for `tls.createServer`, and for `server.setSecureContext` after a reload. */
export function secureContextOf(material: TlsMaterial): SecureContextOptions {
  const { cert, key, clientCa } = material
  return { cert, key, minVersion: 'TLSv1.2', ...(clientCa === undefined ? {} : { ca: clientCa }) }
}

/** The warning about a certificate's validity; '' if there is none. */
export function validityFault(material: TlsMaterial, nowMs: number): string {
  const { notBeforeMs, notAfterMs } = material
  const day = (ms: number): string => new Date(ms).toISOString()
  if (nowMs >= notAfterMs) return `the certificate is expired since ${day(notAfterMs)}`
  if (nowMs < notBeforeMs) return `the certificate is not valid before ${day(notBeforeMs)}`
  if (notAfterMs - nowMs < EXPIRY_WARNING_MS) return `the certificate expires at ${day(notAfterMs)}`
  const { authorityNotAfterMs = Number.POSITIVE_INFINITY } = material
  const isSoon = authorityNotAfterMs - nowMs < EXPIRY_WARNING_MS
  return isSoon ? `the authority of the certificate expires at ${day(authorityNotAfterMs)}` : ''
}

export type TlsStore = {
  /** The current certificate; a new object after each reload. */
  material(): TlsMaterial
  /**
   * Reloads the files, as `/tls-rotate` and SIGHUP do.
   *
   * @throws VacancyError invalid_tls; the previous certificate stays in force
   */
  reload(): TlsMaterial
  close(): void
}

/**
 * Opens a certificate, follows its files and warns before it expires.
 *
 * @throws VacancyError invalid_tls
 */
export function openTls(options: {
  readonly files: TlsFiles
  readonly log: Log
  /** Called with each reloaded certificate, for new connections of listeners. If it throws, the previous one stays. */
  readonly onReload?: (material: TlsMaterial) => void
  readonly clock?: Clock
  readonly lookMs?: number
}): TlsStore {
  const { files, log, onReload, clock = systemClock } = options
  let material = loadTls(files)
  const warn = (): void => {
    const fault = validityFault(material, clock.wallMs())
    if (fault) log.warn({ file: files.cert }, fault)
  }
  const reload = (): TlsMaterial => {
    const next = loadTls(files)
    if (next.cert === material.cert && next.key === material.key && next.clientCa === material.clientCa) return material
    onReload?.(next)
    material = next
    log.info({ file: files.cert, fingerprint: material.fingerprint }, 'certificate reloaded')
    warn()
    return material
  }
  warn()
  const timer = setInterval(warn, WARNING_REPEAT_MS).unref()
  const paths = [files.cert, files.key, ...(files.clientCa === undefined ? [] : [files.clientCa])]
  // Certificate and key are two files: between the two writes they do not match.
  const message = 'the certificate files changed but cannot be used; keeping the previous certificate'
  const unwatch = watchFiles(paths, reload, { log, message }, options.lookMs)
  return {
    material: () => material,
    reload,
    close() {
      clearInterval(timer)
      unwatch()
    },
  }
}
