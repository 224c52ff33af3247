import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runVacancy } from '@vacancy/testkit/node'
import { type Postgres, startPostgres } from '@vacancy/testkit/postgres'
import { openRelay } from '@vacancy/testkit/relay'
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

  test('a server that accepts and never answers makes it not ready, ends every wait, and it recovers', async () => {
    const url = new URL(await postgres.createDatabase())
    const relay = await openRelay({ host: '127.0.0.1', port: Number(url.port) })
    url.port = String(relay.at.port)
    const plane = await startTestControlPlane({ databaseUrl: url.href })
    const admin = await plane.signIn('admin')
    const ready = () => plane.anonymous().call('GET', '/ready')

    relay.cut()
    const hung = await ready()
    expect(hung.status).toBe(503)
    expect(hung.body.reasons).toContainEqual({
      name: 'database',
      message: 'The database did not respond within 2000 ms.',
    })
    // More than there are connections: some wait for an answer, others for a connection.
    const asked = ['/api/v1/people', '/api/v1/events', '/api/v1/audit', '/api/v1/tokens'].flatMap((path) =>
      Array.from({ length: 5 }, () => admin.call('GET', path)),
    )
    for (const { status, body } of await Promise.all(asked)) expect([status, body.code]).toEqual([503, 'database-down'])
    expect((await plane.anonymous().call('GET', '/health')).status).toBe(200)
    expect((await ready()).status).toBe(503)

    relay.mend()
    relay.reset()
    await expect.poll(async () => (await ready()).body, { timeout: 60_000 }).toEqual({ ready: true, reasons: [] })
    expect((await admin.call('GET', '/api/v1/people')).status).toBe(200)

    // It can be stopped while the server hangs.
    relay.cut()
    await plane.stop()
    await relay.close()
  }, 400_000)

  test('an unreachable server fails the start with its address and without the password', async () => {
    const opening = openDatabase<Tables>('postgres://user:hidden@127.0.0.1:1/name')

    await expect(opening).rejects.toThrow(
      'the PostgreSQL database 127.0.0.1:1/name cannot be opened: connect ECONNREFUSED',
    )
    await expect(opening).rejects.not.toThrow('hidden')
  })
})

describe('the address of PostgreSQL', () => {
  test('with sslmode=require reaches a server whose certificate nobody signed, for tables and queue', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'vacancy-database-tls-'))
    await runVacancy(['certs', 'init', '--out', folder])
    await runVacancy(['certs', 'node', '--ca', folder, '--node-id', 'postgres', '--host', 'localhost', '--out', folder])
    const [cert = '', key = ''] = ['postgres.pem', 'postgres.key'].map((name) =>
      readFileSync(join(folder, name), 'utf8'),
    )
    const postgres = await startPostgres({ tls: { cert, key } })
    const address = (await postgres.createDatabase()).replace(/\?.*$/, '')
    const plane = await startTestControlPlane({ databaseUrl: `${address}?sslmode=require` })

    expect((await plane.anonymous().call('GET', '/ready')).body).toEqual({ ready: true, reasons: [] })
    await plane.stop()
    await postgres.close()
    rmSync(folder, { recursive: true })
  })

  test('may be that of a pooler with session pooling, which refuses unknown parameters', async () => {
    const postgres = await startPostgres()
    const url = new URL(await postgres.createDatabase())
    const { port } = url
    const pooler = createServer((client) => {
      client.once('data', (startup: Buffer) => {
        // Length and version of the protocol; then names and values, each with a zero behind it, and a last zero.
        const names = startup
          .toString('latin1', 8)
          .split('\0')
          .filter((_, n) => n % 2 === 0)
        if (names.some((name) => !['', 'user', 'database', 'client_encoding'].includes(name))) client.destroy()
        const server = connect(Number(port), '127.0.0.1')
        server.write(startup)
        client.pipe(server).pipe(client)
        for (const side of [client, server]) side.on('error', () => [client, server].map((each) => each.destroy()))
      })
    })
    await new Promise<void>((resolve) => pooler.listen(0, '127.0.0.1', resolve))
    url.port = String((pooler.address() as AddressInfo).port)
    const plane = await startTestControlPlane({ databaseUrl: url.href })

    expect((await plane.anonymous().call('GET', '/ready')).body).toEqual({ ready: true, reasons: [] })
    await plane.stop()
    pooler.close()
    await postgres.close()
  })
})
