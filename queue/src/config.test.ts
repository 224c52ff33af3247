import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Given } from '@vacancy/shared/node'
import { expect, test } from 'vitest'
import { loadServeConfig } from './config.ts'

const flag = (key: string, text: string): ReadonlyMap<string, Given> =>
  new Map([[key, { text, at: `--${key.replaceAll('_', '-')}`, from: 'flag' }]])

test('the address of PostgreSQL comes from its setting, else from DATABASE_URL, and as a flag only from a file', () => {
  const databaseUrl = 'postgres://queue:secret@db/queue'
  expect(loadServeConfig({}).databaseUrl).toBe('')
  expect(loadServeConfig({ databaseUrl }).databaseUrl).toBe(databaseUrl)
  const given: ReadonlyMap<string, Given> = new Map([
    ['database_url', { text: 'postgres://other/queue', at: 'VACANCY_QUEUE_DATABASE_URL', from: 'env' }],
  ])
  expect(loadServeConfig({ given, databaseUrl }).databaseUrl).toBe('postgres://other/queue')
  expect(() => loadServeConfig({ given: flag('database_url', databaseUrl) })).toThrow(
    '--database-url: a secret on the command line can be read by every user of this machine',
  )
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-queue-config-'))
  const file = join(folder, 'url')
  writeFileSync(file, `${databaseUrl}\n`)
  expect(loadServeConfig({ given: flag('database_url', `file:${file}`) }).databaseUrl).toBe(databaseUrl)
  rmSync(folder, { recursive: true })
})

test('settings of PostgreSQL are checked, and a faulty address is not shown', () => {
  expect(() => loadServeConfig({ databaseUrl: 'mysql://queue:secret@db' })).toThrow(
    /^(?!.*secret@).*database_url: must begin with postgres:/s,
  )
  for (const schema of ['Queue', '1queue', 'pg_queue', 'a"b', ''])
    expect(() => loadServeConfig({ given: flag('pg_schema', schema) })).toThrow('pg_schema: must be 1 to 63')
  for (const url of ['queue-1:8080', 'http://queue-1:8080/path', 'http://user@queue-1'])
    expect(() => loadServeConfig({ given: flag('advertise_url', url) })).toThrow(
      'is not an address like http://host:port',
    )
  expect(loadServeConfig({ given: flag('advertise_url', 'https://queue-1:8443') }).advertiseUrl).toBe(
    'https://queue-1:8443',
  )
})
