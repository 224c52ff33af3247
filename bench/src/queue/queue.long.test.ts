import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Section } from '../format.ts'
import { describeMachine } from '../machine.ts'
import { measureWaiting } from './million.ts'
import { measureQueue, withKeptRows } from './queue.ts'

test('each load runs on the real queue and the floor, and its figures are reported', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'vacancy-bench-queue-'))
  try {
    // The user that PostgreSQL runs as has to reach its folder.
    chmodSync(dir, 0o755)
    const options = { jobs: 1_000, rounds: 1, url: '', token: '', only: ['1', '2', '3', '6', '8', '9'], dir }
    const { rows } = await measureQueue(options, () => {})

    expect(rows.map(({ id }) => id)).toEqual([1, 2, 3, 6, 8, 9])
    const measures = rows.flatMap((row) => row.measures)
    // The time of a database is counted in hundredths of a second, of which so few jobs may need none.
    const isOfDatabase = (name: string) => name === 'in the database over the floor'
    expect(measures.filter(({ name, value }) => !(value > 0 || (isOfDatabase(name) && value === 0)))).toEqual([])
    expect(rows[0]?.measures.map(({ name }) => name)).toContain('processor time over the floor')
    expect(rows[4]?.measures.map(({ name }) => name)).toContain('in the database over the floor')
    expect(rows[5]?.measures.map(({ name }) => name)).toContain('submitted: share of the queue alone')
  } finally {
    rmSync(dir, { recursive: true })
  }
}, 300_000)

test('the row of a million jobs is recorded beside the others, and stays when they are recorded again', () => {
  const section = (command: string, ids: readonly number[]): Section => ({
    name: 'queue',
    title: 'The job queue',
    command,
    scope: 'jobs',
    startedAt: '2026-11-25T10:00:00.000Z',
    seconds: 1,
    machine: { ...describeMachine(), commit: 'abc1234' },
    rows: ids.map((id) => ({ id, what: command, verdict: 'met', measures: [] })),
    notes: [],
    how: [],
  })
  const first = section('first', [1, 8])
  const both = withKeptRows(section('million', [7]), first)

  expect(both).toMatchObject({ command: 'first', rows: [{ id: 1 }, { id: 7, what: 'million' }, { id: 8 }] })
  expect(both.rows[1]?.why).toBe('`million`, 2026-11-25, commit abc1234')
  expect(withKeptRows(section('second', [1, 8]), both)).toMatchObject({
    command: 'second',
    rows: [
      { id: 1, what: 'second' },
      { id: 7, what: 'million' },
      { id: 8, what: 'second' },
    ],
  })
})

test('a queue with many waiting jobs is started, weighed and drained', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'vacancy-bench-queue-'))
  try {
    const { measures } = await measureWaiting({ dir, jobs: 20_000, few: 1_000, starts: 1, rounds: 3 }, () => {})

    expect(measures.filter(({ value }) => !Number.isFinite(value))).toEqual([])
    expect(measures.map(({ target }) => target)).not.toContain(undefined)
  } finally {
    rmSync(dir, { recursive: true })
  }
}, 300_000)
