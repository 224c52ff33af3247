/** The queue with its journal in PostgreSQL, beside the floor: what a job costs in our process and in the database. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { RowReport } from '../format.ts'
import { connectTo, POSTGRES_USER, type PostgresServer, startPostgresServer } from '../postgres-server.ts'
import { type Load, measureLoad } from './load.ts'
import { closeServer, openFloor, type Server, startOurs, withTopics } from './servers.ts'

/** Checkpoints of a run should not depend on when it began. */
const SETTINGS = ['shared_buffers=256MB', 'max_wal_size=4GB', 'checkpoint_timeout=30min']
const POLL_MS = 20

/** @throws NotMeasured where PostgreSQL is not installed */
export async function measurePostgres(
  options: { readonly jobs: number; readonly rounds: number; readonly dir: string },
  load: Load,
  say: (text: string) => void,
): Promise<RowReport> {
  const folder = mkdtempSync(join(options.dir, 'postgres-'))
  try {
    const postgres = await startPostgresServer(folder, SETTINGS)
    try {
      let databases = 0
      return await measureLoad(
        options,
        load,
        {
          openOurs: () => openOnPostgres(postgres, `queue_${++databases}`, options.dir),
          openOther: () => openFloor('floor'),
          other: 'floor',
        },
        say,
      )
    } finally {
      await postgres.stop()
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Our program on an empty database. */
async function openOnPostgres(postgres: PostgresServer, name: string, dir: string): Promise<Server> {
  const admin = await connectTo(postgres.port)
  try {
    await admin.query(`create database ${name}`)
  } finally {
    await admin.end()
  }
  const url = `postgres://${POSTGRES_USER}@127.0.0.1:${postgres.port}/${name}`
  const server = await startOurs(mkdtempSync(join(dir, 'run-')), url)
  const client = await connectTo(postgres.port, name)
  try {
    return {
      ...(await withTopics(server)),
      databaseSeconds: postgres.cpuSeconds,
      settle: async () => {
        for (;;) {
          const { rowCount } = await client.query('select from vacancy_queue.jobs limit 1')
          if (rowCount === 0) return
          await new Promise((resolve) => setTimeout(resolve, POLL_MS))
        }
      },
      end: () => client.end(),
    }
  } catch (error) {
    await client.end()
    await closeServer(server)
    throw error
  }
}
