import { topicConfig } from '@vacancy/shared/contract'
import { describe, expect, it } from 'vitest'
import { createJob, createTopicState, FLAG, STATE } from './job.ts'
import type { Rows, UpdateRow } from './journal-tables.ts'
import { tablesOf } from './postgres-setup.ts'
import { groupStatements, preparedStatements } from './postgres-statements.ts'

const tables = tablesOf('queue', 2)
const NONE: Rows = { topics: [], updates: [], done: [], finished: [], forgotten: [], puts: [] }

/** Items of an array of PostgreSQL: of texts, or numbers of 4 or 8 bytes. */
function itemsOf(value: unknown): (string | number)[] {
  const buffer = value as Buffer
  const type = buffer.readInt32BE(8)
  const count = buffer.readInt32BE(12)
  const items: (string | number)[] = []
  for (let n = 0, at = 20; n < count; n++) {
    const length = buffer.readInt32BE(at)
    at += 4
    if (type === 25) items.push(buffer.toString('utf8', at, at + length))
    else items.push(length === 4 ? buffer.readInt32BE(at) : Number(buffer.readBigInt64BE(at)))
    at += length
  }
  return items
}

const statements = (rows: Partial<Rows>) =>
  groupStatements(tables, 1, { ...NONE, ...rows }).map(({ name, text, values }) => ({
    name,
    text: text.replace(/\s+/g, ' ').trim(),
    values: (values ?? []).map((value: unknown) => (Buffer.isBuffer(value) ? itemsOf(value) : value)),
  }))

const updateOf = (seq: number, more: Partial<UpdateRow> = {}): UpdateRow => ({
  ...{ seq, newSeq: seq, state: 0, failures: 1, deliveries: 2, flags: 3, run_at: 4, dead_at: 5 },
  ...{ reason: 'r', last_error: 'e', history: '[]' },
  ...more,
})

const topic = createTopicState('orders', 7, topicConfig.parse({}), 50, Math.random)
const USUAL = { flags: FLAG.json, priority: 4, maxAttempts: 6, ackDeadlineMs: 8_000, runAt: 90, data: '"ü"', bytes: 4 }

describe('a group', () => {
  it('without changes needs no statement', () => {
    expect(statements({})).toEqual([])
  })

  it('has its statements in the order in which ids become free', () => {
    const job = createJob(topic, { ...USUAL, id: 'a' }, 1, STATE.ready, 60)
    const names = statements({
      ...{ topics: [{ gone: 3 }], updates: [updateOf(1)], done: [1], puts: [job] },
      ...{ finished: [{ topicNumber: 1, id: 'a', at: 5 }], forgotten: [{ topicNumber: 1, ids: ['b'] }] },
    }).map(({ name, text }) => name ?? text.slice(0, 4))
    expect(names).toEqual(['topic_gone', 'update', 'done', 'finished', 'forget', 'copy'])
  })

  it('stores a topic and the next number, and takes the name of one that is gone', () => {
    const config = { a: 1 } as never
    const [stored, next, gone, ...others] = statements({
      topics: [{ topic: { number: 7, name: 'orders', createdAt: 50, config } }, { gone: 3 }],
    })
    expect(stored).toMatchObject({ name: 'topic', values: [1, 7, 'orders', '{"a":1}', 50] })
    expect(stored?.text).toMatch(/^insert into "queue".topics .* do update set config = excluded.config$/)
    expect(next).toEqual({
      name: 'next_topic',
      text: 'update "queue".meta set next_topic = $2::int4 where id = $1::int4 + 1 and next_topic < $2::int4',
      values: [1, 8],
    })
    expect(gone).toMatchObject({ name: 'topic_gone', values: [1, 3, '#3', ''] })
    expect(others).toEqual([])
  })

  it('deletes jobs, and forgets ids topic by topic', () => {
    const [done, first, second] = statements({
      ...{ done: [5, 2 ** 40] },
      forgotten: [
        { topicNumber: 1, ids: ['a', 'ü'] },
        { topicNumber: 2, ids: ['c'] },
      ],
    })
    expect(done).toEqual({
      name: 'done',
      text: 'delete from "queue".jobs where partition = $1::int4 and seq = any($2::int8[])',
      values: [1, [5, 2 ** 40]],
    })
    expect(first).toMatchObject({ name: 'forget', values: [1, 1, ['a', 'ü']] })
    expect(second).toMatchObject({ name: 'forget', values: [1, 2, ['c']] })
    expect(first?.text).toMatch(/^delete from "queue".finished where .* id = any/)
  })

  it('keeps the last time of an id that finished twice, of each topic', () => {
    const at = (topicNumber: number, id: string, time: number) => ({ topicNumber, id, at: time })
    const [finished] = statements({ finished: [at(1, 'a', 5), at(2, 'a', 6), at(1, 'a', 7), at(1, 'b', 8)] })
    expect(finished).toMatchObject({ name: 'finished', values: [1, [1, 2, 1], ['a', 'a', 'b'], [7, 6, 8]] })
  })
})

describe('updates', () => {
  const values = (...updates: UpdateRow[]) => statements({ updates })[0]?.values

  it('have all columns in the order of the statement', () => {
    const row = updateOf(2 ** 40, { newSeq: 9, state: 1, run_at: 2 ** 41, dead_at: 2 ** 42 })
    expect(values(row)).toEqual([1, [2 ** 40], [9], [1], [1], [2], [3], [2 ** 41], [2 ** 42], ['r'], ['e'], ['[]']])
    const text = statements({ updates: [row] })[0]?.text ?? ''
    const columns = /as u \((.*?)\)/.exec(text)?.[1]?.split(', ') ?? []
    expect(columns[1]).toBe('new_seq')
    for (const column of columns.slice(2)) expect(text).toContain(`${column} = u.${column}`)
    expect(text).toContain('set seq = u.new_seq')
    expect(text).toMatch(/where jobs.partition = \$1::int4 and jobs.seq = u.seq$/)
  })

  it('of one job are one, the last', () => {
    const [, keys, , states, failures] = values(updateOf(1), updateOf(2), updateOf(1, { state: 1, failures: 9 })) ?? []
    expect([keys, states, failures]).toEqual([
      [2, 1],
      [0, 1],
      [1, 9],
    ])
  })

  it('of a job that gets another number begin at the key of its row', () => {
    const [, keys, numbers, states] =
      values(updateOf(1, { newSeq: 5 }), updateOf(5, { newSeq: 5, state: 1 }), updateOf(5, { newSeq: 8 })) ?? []
    expect([keys, numbers, states]).toEqual([[1], [8], [0]])
    const [, others, targets] = values(updateOf(1, { newSeq: 5 }), updateOf(2, { newSeq: 6 }), updateOf(6)) ?? []
    expect([others, targets]).toEqual([
      [1, 2],
      [5, 6],
    ])
  })
})

describe('new jobs', () => {
  /** Values of the rows of a COPY, as bytes; undefined for null. */
  function rowsOf(copied: Buffer, columns: number): (Buffer | undefined)[][] {
    const rows: (Buffer | undefined)[][] = []
    let at = 5 + 11 + 8
    while (copied.readInt16BE(at) !== -1) {
      expect(copied.readInt16BE(at)).toBe(columns)
      at += 2
      const row: (Buffer | undefined)[] = []
      for (let n = 0; n < columns; n++) {
        const length = copied.readInt32BE(at)
        at += 4
        row.push(length < 0 ? undefined : copied.subarray(at, at + length))
        at += Math.max(0, length)
      }
      rows.push(row)
    }
    expect(copied.subarray(at + 2)).toEqual(Buffer.from([0x63, 0, 0, 0, 4]))
    return rows
  }

  it('are copied, each with all columns', () => {
    const jobs = [
      createJob(topic, { ...USUAL, id: 'ü1' }, 2 ** 40, STATE.ready, 60),
      createJob(topic, { ...USUAL, id: 'b', data: undefined, bytes: 0 }, 9, STATE.ready, 61),
      createJob(topic, { ...USUAL, id: 'c', data: '', bytes: 0 }, 10, STATE.ready, 62),
      createJob(
        topic,
        { ...USUAL, id: 'd', flags: 0, data: Buffer.from([1, 2, 255]).toString('base64'), bytes: 3 },
        11,
        1,
        63,
      ),
      ...Array.from({ length: 40 }, (_, n) => createJob(topic, { ...USUAL, id: '漢'.repeat(80) }, 100 + n, 1, 64)),
    ]
    const [copy, ...others] = groupStatements(tables, 1, { ...NONE, puts: jobs })
    expect(others).toEqual([])
    const [, table, list = ''] = /^copy (\S+) \((.*)\) from stdin \(format binary\)$/.exec(copy?.text ?? '') ?? []
    expect(table).toBe('"queue".jobs')
    const columns = list.split(',')
    const rows = rowsOf(copy?.copied as Buffer, columns.length)
    expect(rows.length).toBe(jobs.length)
    const read = (row: (Buffer | undefined)[] = []) =>
      Object.fromEntries(
        columns.map((column, n) => {
          const value = row[n]
          if (value === undefined) return [column, null]
          const isText = ['id', 'reason', 'last_error', 'history', 'data'].includes(column)
          if (isText) return [column, value.toString(column === 'data' ? 'latin1' : 'utf8')]
          return [column, value.length === 4 ? value.readInt32BE() : Number(value.readBigInt64BE())]
        }),
      )
    const usual = {
      ...{ partition: 1, seq: 2 ** 40, topic_no: 7, id: 'ü1', flags: USUAL.flags, state: 0, priority: 4, failures: 0 },
      ...{ deliveries: 0, max_attempts: 6, ack_deadline_ms: 8_000, created_at: 60, run_at: 90, dead_at: 0 },
      ...{ reason: '', last_error: '', history: '' },
    }
    expect(read(rows[0])).toEqual({ ...usual, data: expect.any(String) })
    expect(read(rows[1])).toEqual({ ...usual, id: 'b', seq: 9, created_at: 61, data: null })
    expect(read(rows[2])).toEqual({ ...usual, id: 'c', seq: 10, created_at: 62, data: '' })
    expect(read(rows[3])).toMatchObject({ flags: 0, data: '\x01\x02\xff' })
    expect(read(rows.at(-1))).toMatchObject({ seq: 139, id: '漢'.repeat(80) })
    const eight = columns.filter((_, n) => rows[0]?.[n]?.length === 8)
    expect(eight).toEqual(['seq', 'created_at', 'run_at', 'dead_at'])
  })
})

it('the statements that are prepared have no rows, and the names of those of groups', () => {
  const prepared = preparedStatements(tables, 1)
  expect(prepared.map(({ name }) => name)).toEqual(['update', 'done', 'finished'])
  for (const { values = [] } of prepared) {
    expect(values[0]).toBe(1)
    for (const value of values.slice(1)) expect(itemsOf(value)).toEqual([])
  }
})
