/** What admins set in the console; it goes over the configuration. Read once, kept, and written through. */
import type { Environment } from '@vacancy/shared/contract'
import type { Transaction } from 'kysely'
import type { ControlConfig } from './config.ts'
import type { Database } from './database.ts'
import type { Tables } from './tables.ts'

type Kept = { readonly environment: Environment; readonly baseUrl: string }

export type Settings = {
  environment(): Environment
  /** Address under which browsers reach the console, without a slash at its end; '' when nobody said. */
  baseUrl(): string
  write(within: Transaction<Tables>, next: Kept): Promise<void>
  /** Once that stands. */
  keep(next: Kept): void
}

export async function openSettings(database: Database, config: ControlConfig): Promise<Settings> {
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
