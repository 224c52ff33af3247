import { topicConfig } from '@vacancy/shared/contract'
import { describe, expect, it, test } from 'vitest'
import { createJob, createTopicState, FLAG, type Job, type NewJob, STATE } from './job.ts'
import {
  goneName,
  JOURNAL_VERSION,
  type JournalTables,
  metaFault,
  readPayload,
  rowsOf,
  writePayload,
} from './journal-tables.ts'

const TOPIC = createTopicState('orders', 4, topicConfig.parse({ max_attempts: 7 }), 1_000, () => 0.5)

function jobOf(fields: Partial<NewJob> = {}, changed: Partial<Job> = {}): Job {
  const usual = { id: 'a', priority: 0, flags: 0, maxAttempts: 0, ackDeadlineMs: 0, runAt: 0, data: 'AAEC', bytes: 3 }
  return Object.assign(createJob(TOPIC, { ...usual, ...fields }, 12, STATE.pending, 900), changed)
}

const PAST = {
  ...{ lastError: 'no room', reason: 'rejected' as const, deadAt: 5_000, agesFrom: 70, group: undefined },
  history: [{ at: 5_000, event: 'dead' as const, consumer: '', error: 'no room' }],
}

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

test('a deleted topic has a name that no topic can have', () => {
  expect(goneName(12)).toBe('#12')
})

describe('the rows of a group', () => {
  it('are in the order in which they are stored, so that an id is free before it returns', () => {
    const [job, from] = [jobOf(), jobOf({ id: 'b' }, { seq: 5 })]
    const rows = rowsOf([
      { kind: 'put', job },
      { kind: 'done', seq: 3 },
      { kind: 'finished', topicNumber: 4, id: 'x', at: 77 },
      { kind: 'forget', topicNumber: 4, ids: ['y', 'z'] },
      { kind: 'move', from, job: from },
      { kind: 'topicGone', topicNumber: 9 },
      { kind: 'done', seq: 4 },
    ])
    expect(rows).toMatchObject({
      ...{ topics: [{ gone: 9 }], updates: [], done: [3, 5, 4] },
      finished: [{ topicNumber: 4, id: 'x', at: 77 }],
      forgotten: [{ topicNumber: 4, ids: ['y', 'z'] }],
    })
    expect(rows.puts).toEqual([job, from])
    expect(rowsOf([])).toEqual({ topics: [], updates: [], done: [], finished: [], forgotten: [], puts: [] })
  })

  it('have the configuration of a topic, with its redrive if it has one', () => {
    const config = topicConfig.parse({})
    const redrive = { state: 'running' } as NonNullable<(typeof TOPIC)['redrive']>['record']
    const rows = rowsOf([
      { kind: 'topic', topic: TOPIC, config, redrive: undefined },
      { kind: 'topic', topic: TOPIC, config, redrive },
    ])
    const topic = { name: 'orders', number: 4, createdAt: 1_000 }
    expect(rows.topics).toEqual([
      { topic: { ...topic, config } },
      { topic: { ...topic, config: { ...config, redrive } } },
    ])
    expect(Object.keys((rows.topics[0] as { topic: { config: object } }).topic.config)).not.toContain('redrive')
  })

  const counted = { failures: 3, deliveries: 4, flags: FLAG.json, runAt: 8_000 }
  const shared = { seq: 12, newSeq: 12, failures: 3, deliveries: 4, flags: FLAG.json }

  it.each([
    ['ready', { state: 0, run_at: 0, dead_at: 0, reason: '' }],
    ['leased', { state: 0, run_at: 0, dead_at: 0, reason: '' }],
    ['delayed', { state: 0, run_at: 8_000, dead_at: 0, reason: '' }],
    ['dead', { state: 1, run_at: 0, dead_at: 5_000, reason: 'rejected' }],
    // It is being redriven: dead until that is stored.
    ['pending', { state: 1, run_at: 0, dead_at: 5_000, reason: 'rejected' }],
  ] as const)('update a job that is %s', (state, columns) => {
    const job = jobOf({}, { ...counted, state: STATE[state], past: PAST })
    expect(rowsOf([{ kind: 'update', seq: 12, job }]).updates).toEqual([
      { ...shared, ...columns, last_error: 'no room', history: JSON.stringify(PAST.history) },
    ])
  })

  it.each([
    ['ready', 0],
    ['dead', 1],
  ] as const)('update a job without a past that is %s', (name, state) => {
    const job = jobOf({}, { ...counted, state: STATE[name] })
    expect(rowsOf([{ kind: 'update', seq: 12, job }]).updates).toEqual([
      { ...shared, state, run_at: 0, dead_at: 0, reason: '', last_error: '', history: '' },
    ])
  })

  it('of a redrive give a job another number, with nothing counted', () => {
    const job = jobOf({}, { ...counted, seq: 40, past: PAST })
    expect(rowsOf([{ kind: 'redrive', seq: 12, job }]).updates).toEqual([
      {
        ...{ seq: 12, newSeq: 40, state: 0, failures: 0, deliveries: 0, flags: FLAG.json, run_at: 0, dead_at: 0 },
        ...{ reason: '', last_error: 'no room', history: JSON.stringify(PAST.history) },
      },
    ])
  })
})

describe('a payload', () => {
  it.each([
    ['bytes', 'AAECAw==', 0, [0, 1, 2, 3]],
    ['JSON in ASCII', '{"a":1}', FLAG.json, [...Buffer.from('{"a":1}')]],
    ['JSON beyond ASCII', '"ü東"', FLAG.json | FLAG.wide, [...Buffer.from('"ü東"')]],
    ['no bytes', '', 0, []],
  ])('of %s is stored decoded, and read as it was', (_, data, flags, stored) => {
    const target = Buffer.alloc(stored.length + 4, 0xee)
    expect(writePayload(jobOf({ data, flags }), target, 2)).toBe(stored.length)
    expect([...target]).toEqual([0xee, 0xee, ...stored, 0xee, 0xee])
    expect(readPayload(target, 2, stored.length, flags)).toBe(data)
  })

  it('that is null has no bytes', () => {
    expect(writePayload(jobOf({ data: undefined }), Buffer.alloc(4), 0)).toBe(0)
    expect(readPayload(Buffer.alloc(4), 0, -1, FLAG.json)).toBeUndefined()
    expect(readPayload(Buffer.alloc(4), 0, 0, 0)).toBe('')
  })
})
