import { type Postgres, startPostgres } from '@vacancy/testkit/postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Tables } from '../parts.ts'
import { startTestControlPlane } from '../testing/control-plane.ts'
import { openDatabase } from './database.ts'

describe('PostgreSQL outage', () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(async () => await postgres.close())

  test('the control plane reports it, keeps running, and recovers', async () => {
    const plane = await startTestControlPlane({ databaseUrl: await postgres.createDatabase() })
    const admin = await plane.signIn('admin')
    const { password } = new URL(await postgres.createDatabase())

    await postgres.stop()
    const gone = await plane.anonymous().call('GET', '/ready')
    expect(gone.status).toBe(503)
    expect(gone.body.reasons.map(({ name }: { name: string }) => name)).toContain('database')
    expect((await plane.anonymous().call('GET', '/health')).status).toBe(200)
    const failed = await admin.call('GET', '/api/v1/people')
    expect(failed.status).toBe(503)
    expect(failed.body).toMatchObject({ code: 'database-down' })

    await postgres.start()
    // The queue opens its journal there again.
    await expect
      .poll(async () => (await plane.anonymous().call('GET', '/ready')).body)
      .toEqual({ ready: true, reasons: [] })
    expect((await admin.call('GET', '/api/v1/people')).status).toBe(200)
    await plane.stop()
    for (const text of [gone.text, failed.text, ...plane.log]) expect(text).not.toContain(password)
  })

  test('an unreachable server fails the start with its address and without the password', async () => {
    const opening = openDatabase<Tables>('postgres://user:hidden@127.0.0.1:1/name')

    await expect(opening).rejects.toThrow(
      'the PostgreSQL database 127.0.0.1:1/name cannot be opened: connect ECONNREFUSED',
    )
    await expect(opening).rejects.not.toThrow('hidden')
  })
})
