/** The client of each system. */
import { connectPostgres } from './postgres.ts'
import { connectRedis } from './redis.ts'
import { connectSqlite } from './sqlite.ts'
import type { Connect, SystemName } from './system.ts'
import { connectVacancy } from './vacancy.ts'

export const CONNECT: Record<SystemName, Connect> = {
  vacancy: connectVacancy,
  sqlite: connectSqlite,
  postgres: connectPostgres,
  redis: connectRedis,
}
