/** Every change of the tables, by number; a number that was released is never changed again. */
import type { Migration } from 'kysely/migration'

export const MIGRATIONS: Record<string, Migration> = {}
