/** Secrets in settings: not on the command line, and perhaps in a file of their own. */
import { VacancyError } from '../index.ts'
import type { ConfigSchema, Given } from './config.ts'
import { readText } from './watch.ts'

/** A value that is the path of a file with the secret. */
const SECRET_FILE = 'file:'

/** Every user of a machine can read the arguments of its processes. */
export function refuseSecretFlags(schema: ConfigSchema, given: ReadonlyMap<string, Given>): void {
  for (const [key, { text, at, from }] of given) {
    if (from !== 'flag' || !schema[key]?.secret || text.startsWith(SECRET_FILE)) continue
    throw new VacancyError('usage_error', {
      reason: `${at}: a secret on the command line can be read by every user of this machine; write ${at} ${SECRET_FILE}PATH, or set it in the configuration file or the environment`,
    })
  }
}

/** @throws VacancyError invalid_config when its file cannot be read or is empty */
export function readSecret(value: string): string {
  if (!value.startsWith(SECRET_FILE)) return value
  const file = value.slice(SECRET_FILE.length)
  const secret = readText(file, 'invalid_config').trim()
  if (secret === '') throw new VacancyError('invalid_config', { reason: `${file}: is empty` })
  return secret
}

/** A value that is the name of an environment variable with the secret. */
const SECRET_VARIABLE = 'env:'

/** Whether a text names the place of a secret: `env:NAME` or `file:PATH`. */
export function isSecretPlace(value: string): boolean {
  return value.startsWith(SECRET_FILE) || value.startsWith(SECRET_VARIABLE)
}

/** @throws VacancyError invalid_config when the variable is not set, or the file cannot be read or is empty */
export function secretAt(place: string, env: { readonly [name: string]: string | undefined } = process.env): string {
  if (!place.startsWith(SECRET_VARIABLE)) return readSecret(place)
  const name = place.slice(SECRET_VARIABLE.length)
  const secret = env[name] ?? ''
  if (secret === '') throw new VacancyError('invalid_config', { reason: `the environment variable ${name} is not set` })
  return secret
}

/** Adds the address of PostgreSQL from its usual environment variable, unless the setting itself is given. */
export function withDatabaseUrl(
  given: ReadonlyMap<string, Given> = new Map(),
  databaseUrl = '',
): ReadonlyMap<string, Given> {
  if (databaseUrl === '' || given.has('database_url')) return given
  return new Map([...given, ['database_url', { text: databaseUrl, at: 'DATABASE_URL', from: 'env' }]])
}
