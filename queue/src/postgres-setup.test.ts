import { describe, expect, it, vi } from 'vitest'
import type { Request, Session } from './postgres-session.ts'
import { preparePostgresTables, refusePooler, tablesOf } from './postgres-setup.ts'

/** A session is a server that answers requests, and its log. */
type Server = { readonly answer: (text: string, values: readonly unknown[]) => object[]; readonly queries: string[] }
const others = vi.hoisted(() => ({ next: undefined as unknown, closed: 0 }))

vi.mock('./postgres-session.ts', () => ({
  ask: async (session: unknown, { text, values = [] }: Request) => {
    const { answer, queries } = session as Server
    queries.push(text)
    return { rows: answer(text, values) }
  },
  openSession: async () => others.next,
  closeSession: async () => void others.closed++,
}))

describe('names', () => {
  it('are quoted, and those of sessions and locks derive from the schema', () => {
    const tables = tablesOf('a"b', 1)
    expect(tables).toMatchObject({
      ...{ schema: 'a"b', meta: '"a""b".meta', topics: '"a""b".topics', jobs: '"a""b".jobs' },
      ...{ finished: '"a""b".finished', owner: '"a""b".owner', processes: '1' },
    })
    expect(tables.sweep).toMatch(/^delete from "a""b".jobs where partition = \$1 .*topic_no = \$2 limit 2000\)$/s)
  })

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

describe('a pooler', () => {
  const signal = new AbortController().signal
  const server = (...pids: readonly number[]): Server => {
    const left = [...pids]
    return { answer: (text) => (text.startsWith('select pg_backend_pid') ? [{ pid: left.shift() }] : []), queries: [] }
  }
  const check = (own: Server) => refusePooler(own as unknown as Session, 'url', signal)

  it('that keeps the server process of a session is accepted', async () => {
    const other = server(8)
    Object.assign(others, { next: other, closed: 0 })
    expect(await check(server(7, 7))).toBe(7)
    expect(other.queries).toEqual(['begin', 'select pg_backend_pid() as pid', 'commit'])
    expect(others.closed).toBe(1)
  })

  it.each([
    ['gives both sessions the same', [7, 7], 7],
    ['gives the session another one', [7, 9], 8],
  ])('that %s is refused', async (_, own, pid) => {
    Object.assign(others, { next: server(pid), closed: 0 })
    await expect(check(server(...own))).rejects.toThrow(
      /^a pooler between this process and PostgreSQL .* session pooling$/,
    )
    expect(others.closed).toBe(1)
  })
})

describe('the tables', () => {
  const meta = (partition: number, more: object = {}) => ({
    ...{ id: partition + 1, version: 1, partition, partitions: 2, next_topic: 1 },
    ...more,
  })
  const USUAL = { rows: [meta(0), meta(1)] as object[], found: [true], note: null as string | null }

  async function prepare(fields: Partial<typeof USUAL> = {}, { partition = 1, lockKey = 0 } = {}): Promise<Server> {
    const { rows, found, note } = { ...USUAL, ...fields }
    const left = [...found]
    const server: Server = {
      answer: (text, values) => {
        if (text.includes('to_regclass')) {
          expect(values).toEqual(['"q".meta'])
          return [{ found: left.shift() }]
        }
        if (text.includes('obj_description')) {
          expect(values).toEqual(['"q".owner'])
          return [{ note }]
        }
        return text.startsWith('select * from "q".meta') ? rows : []
      },
      queries: [],
    }
    await preparePostgresTables(server as unknown as Session, tablesOf('q', 2, lockKey), { partition, partitions: 2 })
    return server
  }

  it('that exist are checked and not created', async () => {
    const { queries } = await prepare()
    expect(queries.length).toBe(3)
    expect(queries.join('\n')).not.toMatch(/create|begin/)
  })

  it('are created in one transaction under a lock, with a row for each partition', async () => {
    const { queries } = await prepare({ found: [false, false] })
    expect(queries[1]).toBe('begin')
    expect(queries[2]).toContain('pg_advisory_xact_lock')
    const at = (part: string) => queries.findIndex((text) => text.includes(part))
    expect(queries).toContain('create schema if not exists "q"')
    expect(queries).toContain(
      'create table "q".owner (partition int4 primary key, address text not null, since int8 not null)',
    )
    expect(queries).toContain(`comment on table "q".owner is 'lock key ${tablesOf('q', 2).lockSpace}'`)
    for (const table of ['meta', 'topics', 'jobs', 'finished']) {
      expect(at(`create table if not exists "q"."${table}"`), table).toBeGreaterThan(at('create schema'))
    }
    expect(at('commit')).toBeGreaterThan(at('insert into "q"."meta"'))
    const insert = queries[at('insert into "q"."meta"')] as string
    expect(insert.match(/\(\$/g)?.length).toBe(2)
  })

  it('that another process created meanwhile are not created again', async () => {
    const { queries } = await prepare({ found: [false, true] })
    expect(queries.slice(1, 5).map((text) => text.split(' ')[0])).toEqual(['begin', 'select', 'select', 'commit'])
    expect(queries.join('\n')).not.toContain('create')
  })

  it.each([
    [[meta(0, { version: 2 }), meta(1)], 'it has version 2, this program reads version 1'],
    [[meta(0, { partitions: 3 }), meta(1)], 'it has 3 partitions, the setting partitions is 2'],
    [[meta(0), meta(1, { version: 2 })], 'it has version 2, this program reads version 1'],
    [[meta(0)], 'its table meta is incomplete'],
    [[], 'its table meta is incomplete'],
  ])('of other kinds are refused: %j', async (rows, message) => {
    await expect(prepare({ rows })).rejects.toThrow(message)
  })

  it.each([
    ['no note, and no setting', null, 0, undefined],
    ['the lock of the setting', 'lock key -17', -17, undefined],
    ['another lock than the setting', 'lock key 5', 6, 'set pg_lock_key to 5'],
    ['a lock, and no setting', 'lock key 5', 0, 'it was created with pg_lock_key 5'],
    ['no note, and a setting', 'another comment', 6, `set pg_lock_key to ${tablesOf('q', 2).lockSpace}`],
  ])('with %s are accepted only if all processes have the same lock', async (_, note, lockKey, message) => {
    const prepared = prepare({ note }, { lockKey })
    if (message === undefined) await prepared
    else await expect(prepared).rejects.toThrow(message)
  })
})
