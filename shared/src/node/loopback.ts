/** Addresses that are reachable from this machine only, and who may listen on others. */
import { isIP } from 'node:net'
import { VacancyError } from '../errors.ts'

export function isLoopback(host: string): boolean {
  const kind = isIP(host)
  if (kind === 4) return host.startsWith('127.')
  if (kind === 6) return host === '::1' || host.toLowerCase().startsWith('::ffff:127.')
  return host.toLowerCase() === 'localhost'
}

/**
 * The address on which a program listens that changes data.
 *
 * @param given undefined or '': all addresses where callers need a token or a certificate, else loopback
 * @param isOpen it may be used without these
 * @param allowsAnonymous the operator wants that
 * @param name of the setting, as in `--listen-host`
 * @param ways how callers can be made to need one
 * @throws VacancyError usage_error for an open one that others could reach
 */
export function listenHost(
  given: string | undefined,
  {
    isOpen,
    allowsAnonymous,
    name,
    ways,
  }: {
    readonly isOpen: boolean
    readonly allowsAnonymous: boolean
    readonly name: string
    readonly ways: string
  },
): string {
  const isGuarded = !isOpen || allowsAnonymous
  if (given === undefined || given === '') return isGuarded ? '0.0.0.0' : '127.0.0.1'
  if (isGuarded || isLoopback(given)) return given
  const reason = `${name} ${given}: everyone who reaches it could change data; give ${ways}, or --allow-anonymous if the network admits only those who may`
  throw new VacancyError('usage_error', { reason })
}

export const ALLOW_ANONYMOUS = {
  type: 'boolean',
  summary: 'Listens on addresses that others can reach although callers need neither token nor certificate.',
} as const
