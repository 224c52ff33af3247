import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EXIT } from '@vacancy/shared'
import { afterAll, expect, test } from 'vitest'
import { createProcessGroup, stopGroup } from './launch.ts'
import { maySucceed, pauseMs, superviseProgram, type Tell } from './supervise.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-supervise-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A program that runs until it is stopped, or that exits. */
const SERVES = `console.log('serving: here'); setInterval(() => {}, 1000)`
const program = (script: string) => ({ name: 'it', args: ['-e', script], log: join(folder, 'it.log') })
const quiet: Tell = { started: () => {}, ended: () => {} }

test('programs that exit early restart with increasing delay, up to a minute', () => {
  expect([0, 1, 2, 3, 4, 10].map(pauseMs)).toEqual([5_000, 10_000, 20_000, 40_000, 60_000, 60_000])
})

test('a program whose exit code needs attention is not restarted', () => {
  for (const code of [EXIT.usage, EXIT.conflict, EXIT.bind, EXIT.corruption]) {
    expect(maySucceed({ code, signal: undefined })).toBe(false)
  }
  for (const code of [-1, EXIT.failure, EXIT.digest, EXIT.coresChanged]) {
    expect(maySucceed({ code, signal: undefined })).toBe(true)
  }
})

test('a killed program is reported with the time of its restart', async () => {
  const group = createProcessGroup()
  const { promise, resolve } = Promise.withResolvers<Parameters<Tell['ended']>>()
  const it = superviseProgram(group, program(SERVES), {
    tell: { ...quiet, ended: (...events) => resolve(events) },
    restarts: true,
  })
  const served = await it.serving
  process.kill(it.pid() as number, 'SIGKILL')

  expect(served).toBe('here')
  expect(await promise).toEqual([{ end: { code: -1, signal: 'SIGKILL' }, againMs: 5_000, logged: [] }])
  expect(it.pid()).toBeUndefined()
  await it.stop()
})

test('a program that exits with such a code stays down, with the end of its log', async () => {
  const group = createProcessGroup()
  const { promise, resolve } = Promise.withResolvers<Parameters<Tell['ended']>>()
  const it = superviseProgram(group, program(`console.error('held by process 1'); process.exit(65)`), {
    tell: { ...quiet, ended: (...events) => resolve(events) },
    restarts: true,
  })

  await expect(it.serving).rejects.toThrow('it ended with exit code 65')
  expect((await promise)[0]).toEqual({
    end: { code: 65, signal: undefined },
    againMs: undefined,
    logged: ['held by process 1'],
  })
})

test('one that is stopped is not announced', async () => {
  const group = createProcessGroup()
  const events: unknown[] = []
  const tell = { ...quiet, ended: (ended: unknown) => void events.push(ended) }
  const it = superviseProgram(group, program(SERVES), { tell, restarts: true })
  await it.serving
  await it.stop()
  await stopGroup(group)

  expect(events).toEqual([])
  expect(it.pid()).toBeUndefined()
})
