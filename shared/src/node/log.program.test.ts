import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { turnableClock } from '../clock.ts'
import { VacancyError } from '../errors.ts'
import { createLogger, createRepeatLimiter, formatLine, type LogOptions } from './log.ts'

function logger(options: Partial<LogOptions> = {}) {
  const lines: string[] = []
  const clock = turnableClock(0)
  const log = createLogger({
    level: 'info',
    format: 'json',
    component: 'node',
    id: 'n1',
    shard: 's1',
    clock,
    write: (line) => void lines.push(line),
    ...options,
  })
  return { log, clock, lines, entries: () => lines.map((line) => JSON.parse(line)) }
}

test('a line has time, level, component, id, shard, message and fields', () => {
  const { log, entries, lines } = logger()

  log.info({ term: 3 }, 'became leader')

  expect(entries()).toEqual([
    {
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      level: 'info',
      component: 'node',
      id: 'n1',
      shard: 's1',
      term: 3,
      msg: 'became leader',
    },
  ])
  expect(lines[0]).toMatch(/}\n$/)
})

test('no line has a key twice (a second shard used to hide that of the program)', () => {
  const { log, lines } = logger()

  log.warn({ shard: 's2', id: 'n1', time: 5, level: 'high', zone: 'z1' }, 'another shard')

  const keys = [...(lines[0] ?? '').matchAll(/"([a-z_]+)":/g)].map(([, key]) => key)
  expect(keys).toEqual([...new Set(keys)])
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    ...{ shard: 's1', other_shard: 's2', id: 'n1', zone: 'z1', level: 'warn', other_level: 'high', other_time: 5 },
  })
})

test('levels below the configured one are omitted', () => {
  const { log, entries } = logger({ level: 'warn' })

  log.info('one')
  log.warn('two')

  expect(entries().map(({ msg }) => msg)).toEqual(['two'])
})

test('a repeated message is logged once a second, with the number of suppressed repeats', () => {
  const { log, clock, entries } = logger()

  for (let i = 0; i < 5; i++) log.warn({ i }, 'slow reader')
  log.warn('another message')
  clock.advance(1_000)
  log.warn({ i: 5 }, 'slow reader')

  expect(entries().map(({ msg, i, repeats }) => [msg, i, repeats])).toEqual([
    ['slow reader', 0, undefined],
    ['another message', undefined, undefined],
    ['slow reader', 5, 4],
  ])
})

test('suppressed messages are reported after a second, even if none follows', async () => {
  const { log, entries } = logger()

  log.error(new Error('no'), 'cannot write')
  log.error(new Error('no'), 'cannot write')
  log.error(new Error('no'), 'cannot write')
  await vi.waitUntil(() => entries().length === 2, { timeout: 10_000 })

  expect(entries()[1]).toMatchObject({ msg: 'cannot write', repeats: 2, err: { message: 'no' } })
})

test('the limiter tracks a bounded number of messages and reports those it evicts', () => {
  const limiter = createRepeatLimiter(turnableClock(0))
  const late = vi.fn()
  limiter.admit('first', late)
  limiter.admit('first', late)

  for (let i = 0; i < 1_000; i++) limiter.admit(`message ${i}`, () => {})

  expect(late).toHaveBeenCalledExactlyOnceWith(1)
  expect(limiter.admit('first', late)).toBe(0)
})

test('tokens and passwords are not logged', () => {
  const { log, lines } = logger()

  log.info({ token: 'abc123', headers: { authorization: 'Bearer abc123' }, password: 'abc123' }, 'request')

  expect(lines.join()).not.toContain('abc123')
})

test('an error is logged with code, message, stack and cause, without its fields', () => {
  const { log, entries } = logger()

  log.error(
    { err: new VacancyError('data_conflict', { reason: 'no', body: 'secret' }, { cause: new Error('why') }) },
    'failed',
  )

  const [{ err }] = entries()
  expect(err).toMatchObject({
    code: 'data_conflict',
    message: expect.stringContaining('no'),
    stack: expect.any(String),
  })
  expect(JSON.stringify(err)).not.toContain('secret')
})

test('text format has the same fields in one line, with control characters escaped', () => {
  const { log, lines } = logger({ format: 'text', zone: 'z1' })

  log.warn({ file: 'a b', count: 3, list: [1] }, 'odd \u001b[31m name\nsecond line')

  expect(lines[0]).toMatch(
    /^\d{4}-\S+Z warn {2}node z1 s1 n1: odd \\u001b\[31m name\\u000asecond line file="a b" count=3 list=\[1\]\n$/,
  )
})

test.each([
  ['a', 'a'],
  ['a b', '"a b"'],
  ['a"b', '"a\\"b"'],
  ['a=b', '"a=b"'],
  ['', '""'],
  ['a\u0085b', 'a\\u0085b'],
  // What JSON leaves as it is used to reach the terminal: U+009B begins a sequence that controls it.
  ['a \u009b31m', '"a \\u009b31m"'],
  [{ b: '\u007f' }, '{"b":"\\u007f"}'],
  [7, '7'],
  [null, 'null'],
  [{ b: [1] }, '{"b":[1]}'],
])('in text format the field %j is written as %s', (value, text) => {
  const fields = { time: 't', level: 'warn', component: 'node', zone: 'z', shard: 's', id: 'n', msg: 'm' }

  expect(formatLine(JSON.stringify({ ...fields, value }))).toBe(`t warn  node z s n: m value=${text}\n`)
})

test('text format has the stack of an error below its line', () => {
  const line = JSON.stringify({
    time: 't',
    level: 'error',
    component: 'node',
    msg: 'failed',
    err: { stack: 'Error: no\n    at x' },
  })

  expect(formatLine(line)).toBe('t error node: failed\n  Error: no\n      at x\n')
})

test('lines go to stderr, and survive an immediate exit', () => {
  const code = `import { createLogger } from ${JSON.stringify(path.join(import.meta.dirname, 'log.ts'))}
    const log = createLogger({ level: 'info', format: 'json', component: 'node' })
    for (let i = 0; i < 3000; i++) log.info({ filler: 'x'.repeat(100) }, 'line ' + i)
    process.exit(3)`

  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module-typescript', '-e', code], {
    encoding: 'utf8',
    maxBuffer: 16 * 1024 * 1024,
  })

  expect([status, stdout, stderr.trimEnd().split('\n').length]).toEqual([3, '', 3000])
})
