/** Settings that admins change in the console. They override the configuration, are cached, and are written through. */
import type { Environment } from '@vacancy/shared/contract'
import type { Transaction } from 'kysely'
import type { AccessDatabase, AccessTables } from './tables.ts'

/** The values of the configuration. */
type SettingsDefaults = {
  readonly environment: string
  readonly environmentKind: Environment['kind']
  readonly baseUrl: string
}

type Kept = { readonly environment: Environment; readonly baseUrl: string }

export type Settings = {
  environment(): Environment
  /** Address under which browsers reach the console, without a trailing slash; '' when not configured. */
  baseUrl(): string
  write(within: Transaction<AccessTables>, next: Kept): Promise<void>
  /** Called after the commit. */
  keep(next: Kept): void
}

export async function openSettings(database: AccessDatabase, config: SettingsDefaults): Promise<Settings> {
  const row = await database.selectFrom('settings').select('value').where('name', '=', 'console').executeTakeFirst()
  let kept: Kept =
    row === undefined
      ? { environment: { label: config.environment.trim(), kind: config.environmentKind }, baseUrl: '' }
      : (JSON.parse(row.value) as Kept)
  return {
    environment: () => kept.environment,
    baseUrl: () => (kept.baseUrl === '' ? config.baseUrl : kept.baseUrl).replace(/\/$/, ''),
    async write(within, next) {
      const value = JSON.stringify(next)
      await within
        .insertInto('settings')
        .values({ name: 'console', value })
        .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
        .execute()
    },
    keep(next) {
      kept = next
    },
  }
}
