/** Runs the same tests on both databases, in `npm test` on SQLite alone. */
import { afterAll, beforeAll, describe } from 'vitest'
import type { Postgres } from './postgres.ts'

/** @param tests get a function that returns the address of a new, empty database; '' is a SQLite file */
export function onBothDatabases(tests: (newDatabase: () => Promise<string>) => void): void {
  describe('on SQLite', () => tests(async () => ''))
  if (process.env['VACANCY_TEST_DATABASES'] === 'embedded') return
  describe('on PostgreSQL', () => {
    let postgres: Postgres | undefined
    beforeAll(async () => {
      const { startPostgres } = await import('./postgres.ts')
      postgres = await startPostgres()
    })
    afterAll(async () => await postgres?.close())
    tests(async () => await (postgres as Postgres).createDatabase())
  })
}
