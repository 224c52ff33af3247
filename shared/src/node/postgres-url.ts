/**
 * The address of PostgreSQL, as every program reads it: with the TLS settings as libpq understands them, and the keys that
 * override them. Pure.
 */

/** `prefer` and `allow` are absent: they continue without TLS when the server has none. */
export const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const
const SETTABLE: readonly string[] = SSL_MODES

type TlsSettings = { readonly pgSslmode: string; readonly pgSslrootcert: string }
const NO_SETTINGS: TlsSettings = { pgSslmode: '', pgSslrootcert: '' }

/** The address with the settings in it; `require` without a CA encrypts and verifies nothing, as with libpq. */
export function postgresUrl(databaseUrl: string, { pgSslmode, pgSslrootcert }: TlsSettings = NO_SETTINGS): string {
  const url = URL.parse(databaseUrl)
  if (url === null) return databaseUrl
  const { searchParams } = url
  if (pgSslmode !== '') searchParams.set('sslmode', pgSslmode)
  if (pgSslrootcert !== '') searchParams.set('sslrootcert', pgSslrootcert)
  if (searchParams.has('sslrootcert') && !searchParams.has('sslmode')) searchParams.set('sslmode', 'verify-full')
  // Without it the driver has modes of its own under the same names.
  if (searchParams.has('sslmode')) searchParams.set('uselibpqcompat', 'true')
  return url.href
}

/** What is wrong with the TLS settings of an address; undefined for usable ones. */
export function tlsFault(databaseUrl: string, settings: TlsSettings): string | undefined {
  const params = URL.parse(postgresUrl(databaseUrl, settings))?.searchParams
  const mode = params?.get('sslmode')
  if (mode === null || mode === undefined) return undefined
  if (!SETTABLE.includes(mode)) return `sslmode ${mode} is not one of ${SSL_MODES.join(', ')}`
  if (mode === 'verify-ca' && !params?.get('sslrootcert')) return 'sslmode verify-ca needs sslrootcert'
  return undefined
}
