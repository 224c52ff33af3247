/** Certificates towards hops, read again when their files change. */

import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { VacancyError } from '@vacancy/shared'
import { type Log, watchFiles } from '@vacancy/shared/node'

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
    return { options: undefined, reload: () => {}, close: () => {} }
  }
  if ((upstreamCert === undefined) !== (upstreamKey === undefined)) {
    throw new VacancyError('usage_error', { reason: '--upstream-cert and --upstream-key must be set together' })
  }
  const read = (): ConnectionOptions => ({
    minVersion: 'TLSv1.2',
    ...(upstreamCa !== undefined && { ca: contentOf(upstreamCa) }),
    ...(upstreamCert !== undefined && { cert: contentOf(upstreamCert) }),
    ...(upstreamKey !== undefined && { key: contentOf(upstreamKey) }),
    ...(upstreamServerName !== undefined && { servername: upstreamServerName }),
  })
  let options = read()
  const reload = () => {
    options = read()
  }
  const unwatch = watchFiles(files, () => {
    try {
      reload()
    } catch (error) {
      log.error({ err: error }, 'the files of --upstream-tls changed but cannot be used; keeping the previous ones')
    }
  })
  return { options: () => options, reload, close: unwatch }
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new VacancyError('invalid_tls', { reason: `${file}: cannot be read: ${(cause as Error).message}` }, { cause })
  }
}
