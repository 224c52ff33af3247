/** Certificates for connections to hops, read again when their files change. */

import { type ConnectionOptions, createSecureContext, type SecureContext } from 'node:tls'
import { systemClock, VacancyError } from '@vacancy/shared'
import { type Log, loadTls, readText, type TlsMaterial, validityFault, watchFiles } from '@vacancy/shared/node'

export type UpstreamTlsFlags = {
  readonly upstreamTls: boolean
  readonly upstreamCa: string | undefined
  readonly upstreamCert: string | undefined
  readonly upstreamKey: string | undefined
  readonly upstreamServerName: string | undefined
}

export type UpstreamTls = {
  /** Undefined for plain TCP. */
  readonly options: (() => ConnectionOptions) | undefined
  /** When the own certificate expires; undefined without one. */
  readonly notAfterMs: () => number | undefined
  readonly reload: () => void
  readonly close: () => void
}

/** @throws VacancyError usage_error, invalid_tls */
export function openUpstreamTls(flags: UpstreamTlsFlags, log: Log): UpstreamTls {
  const { upstreamTls, upstreamCa, upstreamCert, upstreamKey, upstreamServerName } = flags
  const files = [upstreamCa, upstreamCert, upstreamKey].filter((file) => file !== undefined)
  if (!upstreamTls) {
    if (files.length > 0 || upstreamServerName !== undefined) {
      throw new VacancyError('usage_error', {
        reason: '--upstream-ca, -cert, -key and -server-name need --upstream-tls',
      })
    }
    return { options: undefined, notAfterMs: () => undefined, reload: () => {}, close: () => {} }
  }
  if ((upstreamCert === undefined) !== (upstreamKey === undefined)) {
    throw new VacancyError('usage_error', { reason: '--upstream-cert and --upstream-key must be set together' })
  }
  const read = (): Loaded => {
    const ca = upstreamCa === undefined ? undefined : readText(upstreamCa, 'invalid_tls')
    const own = upstreamCert && upstreamKey ? loadTls({ cert: upstreamCert, key: upstreamKey }) : undefined
    return { own, secureContext: contextOf(upstreamCa ?? '', ca, own) }
  }
  let loaded = read()
  const warn = () => {
    const fault = loaded.own ? validityFault(loaded.own, systemClock.wallMs()) : ''
    if (fault !== '') log.warn({ file: upstreamCert }, fault)
  }
  const reload = () => {
    loaded = read()
    warn()
  }
  warn()
  const timer = setInterval(warn, WARNING_REPEAT_MS).unref()
  const unwatch = watchFiles(
    files,
    () => {
      reload()
      log.info({ files }, 'certificates for connections to hops reloaded')
    },
    // Certificate and key are two files: between the two writes they do not match.
    { log, message: 'the files of --upstream-tls changed but cannot be used; keeping the previous ones' },
  )
  return {
    options: () => ({
      secureContext: loaded.secureContext,
      ...(upstreamServerName !== undefined && { servername: upstreamServerName }),
    }),
    notAfterMs: () => loaded.own?.notAfterMs,
    reload,
    close() {
      clearInterval(timer)
      unwatch()
    },
  }
}

const WARNING_REPEAT_MS = 24 * 3_600_000

type Loaded = {
  readonly own: TlsMaterial | undefined
  /** Made once: a file that cannot be used must not end the process at the next connection. */
  readonly secureContext: SecureContext
}

function contextOf(caFile: string, ca: string | undefined, own: TlsMaterial | undefined): SecureContext {
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----'))
    throw new VacancyError('invalid_tls', { reason: `${caFile} holds no certificate in PEM form` })
  try {
    return createSecureContext({
      minVersion: 'TLSv1.2',
      ...(ca !== undefined && { ca }),
      ...(own && { cert: own.cert, key: own.key }),
    })
  } catch (cause) {
    throw new VacancyError('invalid_tls', { reason: `${caFile}: ${(cause as Error).message}` }, { cause })
  }
}
