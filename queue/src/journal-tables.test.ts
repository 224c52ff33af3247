import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Given } from '@vacancy/shared/node'
import { describe, expect, it, test } from 'vitest'
import { loadServeConfig } from './config.ts'
import { JOURNAL_VERSION, type JournalTables, metaFault } from './journal-tables.ts'
import type { Partition } from './partition.ts'
import { tablesOf } from './postgres-setup.ts'
import { type QueueServer, servingOf } from './queue-server.ts'
import { startEngine } from './testing/engine.ts'

test.each<[Partial<JournalTables['meta']>, string | undefined]>([
  [{}, undefined],
  [{ next_topic: 99 }, undefined],
  [{ version: 2 }, 'it has version 2, this program reads version 3'],
  [{ version: 4 }, 'it has version 4, this program reads version 3'],
  [{ partitions: 8 }, 'it has 8 partitions, the setting partitions is 4'],
  [{ partition: 2 }, 'it is partition 2, not 1'],
  [{ partition: 2, partitions: 8 }, 'it has 8 partitions, the setting partitions is 4'],
])('a journal with %j: %s', (meta, fault) => {
  const usual = { id: 1, version: 3, partition: 1, partitions: 4, next_topic: 1 }
  expect(metaFault({ ...usual, ...meta }, 3, 1, 4)).toBe(fault)
})

test('journals that exist are of these versions, which change only with their tables', () => {
  expect(JOURNAL_VERSION).toEqual({ sqlite: 3, pg: 1 })
})

describe('names', () => {
  // Known values of FNV-1a with 32 bits.
  it.each([
    ['a', 0xe40c292c],
    ['foobar', 0xbf9cf968],
    ['', 0x811c9dc5],
  ])('of the schema "%s" have the hash that every version has', (schema, hash) => {
    const { lockSpace, derivedLockSpace, sessionPrefix, processes } = tablesOf(schema, 2)
    expect([lockSpace, derivedLockSpace]).toEqual([hash | 0, hash | 0])
    expect(sessionPrefix).toBe(`vacancy queue ${hash.toString(16)}`)
    expect(processes).toContain(`application_name like '${sessionPrefix} %'`)
  })

  it('of a lock may be set', () => {
    expect(tablesOf('a', 1, 17)).toMatchObject({ lockSpace: 17, derivedLockSpace: 0xe40c292c | 0 })
    expect(tablesOf('a', 1, -1).lockSpace).toBe(-1)
  })
})

const clock = { wallMs: () => 5, monotonicMs: () => 100 }
const partitionOf = (fields: object): Partition =>
  ({ options: { clock }, unavailable: undefined, fullUntil: 0, ...fields }) as never

describe('the partition of a topic', () => {
  // FNV-1a of 32 bits: a 0xe40c292c, b 0xe70c2de5, foobar 0xbf9cf968.
  it.each([
    ['a', 4, 0],
    ['b', 4, 1],
    ['foobar', 7, 0xbf9cf968 % 7],
    ['a', 7, 0xe40c292c % 7],
    ['foobar', 1, 0],
  ])('of "%s" among %i is number %i in every process', (topic, count, expected) => {
    const queues = Array.from({ length: count }, () => startEngine().queue)
    const server = { partitions: queues.map((queue) => partitionOf({ queue })) } as unknown as QueueServer
    const { queue, partition, now } = servingOf(server, topic)
    expect(queues.indexOf(queue)).toBe(expected)
    expect(server.partitions.indexOf(partition)).toBe(expected)
    expect(now).toEqual({ wallMs: 5, monotonicMs: 100 })
  })
})

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
