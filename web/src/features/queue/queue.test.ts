import { JOB_LIMITS, type TailEvent, type TopicStats, topicConfig } from '@vacancy/shared/contract'
import { describe, expect, test } from 'vitest'
import { CONFIG_KEYS, configChange, configFaults, isNumeric, usualText } from './config-values.ts'
import { deadQuery, isFiltering, selectionBody } from './dead-filter.ts'
import {
  base64Of,
  bytesOf,
  dataOf,
  fileName,
  headText,
  hexOf,
  indentJson,
  isBase64,
  jobsCsv,
  retryId,
  SHOWN_BYTES,
  textOf,
  typedOf,
} from './payload.ts'
import { tailAfter } from './queries.ts'
import { jobOf, statsOf } from './testing/queue.ts'
import {
  jobsViewFilter,
  jobsViewHref,
  parseTopicFilter,
  stateOf,
  topicFields,
  topicKeys,
  topicsViewHref,
} from './topic-view.ts'

test.each<[string, Partial<TopicStats>, string, string, string]>([
  ['a paused topic', { paused: true, stalledConsumers: 1, ready: 1, consumers: 0 }, 'paused', 'warn', 'Paused'],
  ['one whose consumers stall', { stalledConsumers: 2, ready: 1 }, 'stalled', 'warn', '2 consumers stalled'],
  ['one with work and no consumer', { consumers: 0, ready: 1 }, 'no-consumers', 'warn', 'No consumers'],
  ['one whose last consumer left with jobs', { consumers: 0, leased: 1 }, 'active', 'ok', 'Active'],
  ['one with ready jobs', { ready: 1 }, 'active', 'ok', 'Active'],
  ['one with leased jobs', { leased: 1 }, 'active', 'ok', 'Active'],
  ['one with dead jobs only', { delayed: 3, dead: 3 }, 'dead', 'warn', '3 dead'],
  [
    'one that flows, with no job at this instant',
    { dead: 3, rates1m: { accepted: 2, acked: 2, failed: 0 } as TopicStats['rates1m'] },
    'active',
    'ok',
    'Active',
  ],
  ['one without consumers and jobs', { consumers: 0 }, 'idle', 'unk', 'Idle'],
])('the state of %s', (_, stats, state, level, label) => {
  expect(stateOf(statsOf(stats))).toEqual({ state, level, label })
})

test('the fields of a topic have the units of its columns', () => {
  const stats = statsOf({
    ...{ topic: 't', ready: 1, leased: 2, delayed: 3, dead: 4, bytes: 5, oldestReadyMs: 90_000, consumers: 6 },
    rates1m: { accepted: 7, delivered: 8, acked: 9, failed: 10 },
  })

  expect(topicFields(stats)).toEqual({
    ...{ topic: 't', state: 'active', ready: 1, leased: 2, delayed: 3, dead: 4, bytes: 5, oldest: 90, consumers: 6 },
    ...{ in: 7, out: 9, failed: 10 },
  })
})

test('a filter keeps known pairs, and names each unknown key and each missing number', () => {
  const { filter, faults } = parseTopicFilter('mail state:idle dead:>0 oldest:>x ready:many colour:red topic:a')

  expect(filter.words).toEqual(['mail'])
  expect(filter.pairs.map(({ key }) => key)).toEqual(['state', 'dead', 'topic'])
  expect(faults).toEqual([
    'oldest needs a number, as in oldest:>100, not >x',
    'ready needs a number, as in ready:>100, not many',
    `unknown key colour; known keys are topic, state, ready, leased, delayed, dead, in, out, failed, oldest, consumers, bytes`,
  ])
})

test('completion offers the states in use, and the usual values', () => {
  expect(topicKeys([statsOf({ ready: 1 }), statsOf({ paused: true }), statsOf({ ready: 2 })])).toEqual({
    ...{ state: ['active', 'paused'], dead: ['>0'], oldest: ['>60'] },
    ...{ ready: [], leased: [], delayed: [], in: [], out: [], failed: [], consumers: [], bytes: [] },
  })
})

test('a saved view is a link to its list', () => {
  expect(topicsViewHref({ filter: 'dead:>0', sort: '-dead', columns: ['dead', 'bytes'] })).toBe(
    '/queue?filter=dead%3A%3E0&sort=-dead&columns=dead%2Cbytes',
  )
  expect(topicsViewHref({ filter: '', sort: '', columns: null })).toBe('/queue')
  const search = new URLSearchParams('state=dead&group=&error=x&job=7&before=2026-11-20T18:30')
  expect(jobsViewFilter(search)).toBe('state=dead&error=x&before=2026-11-20T18%3A30')
  expect(jobsViewHref('a/b', { filter: 'state=dead&other=1' })).toBe('/queue/topics/a%2Fb?state=dead')
  expect(jobsViewFilter(new URLSearchParams())).toBe('')
})

const FIELDS = { group: '', error: '', failures: '', after: '', before: '' }

test.each([
  [{}, {}],
  [
    { group: 'timeout *', error: 'x' },
    { group: 'timeout *', error: 'x' },
  ],
  [{ failures: '3' }, { minFailures: 3 }],
  [{ failures: '123456' }, { minFailures: 123_456 }],
  [{ failures: '1234567' }, {}],
  [{ failures: '-1' }, {}],
  [
    { after: '2026-11-20T18:30', before: '2026-11-20T18:31:59' },
    { after: '2026-11-20T18:30:00.000Z', before: '2026-11-20T18:31:00.000Z' },
  ],
  [{ after: '2026-11-20 18:30' }, { after: '2026-11-20T18:30:00.000Z' }],
  [{ after: '2026-11-20', before: '2026-13-20T18:30' }, {}],
])('the query of %j', (fields, query) => {
  expect(deadQuery({ ...FIELDS, ...fields })).toEqual(query)
  expect(isFiltering(query)).toBe(Object.keys(query).length > 0)
})

test('a redrive by filter ends at a time, so that what fails again is not redriven again', () => {
  const until = '2026-11-20T18:30:00.000Z'
  const body = (before?: string) =>
    selectionBody({ kind: 'filter', filter: { group: 'g', ...(before !== undefined && { before }) } }, until, 100)

  expect(body()).toEqual({ filter: { group: 'g', before: until }, limit: 100 })
  expect(body('2026-11-20T18:29:00.000Z')).toEqual({
    filter: { group: 'g', before: '2026-11-20T18:29:00.000Z' },
    limit: 100,
  })
  expect(body('2026-11-20T18:31:00.000Z')).toEqual({ filter: { group: 'g', before: until }, limit: 100 })
  expect(selectionBody({ kind: 'ids', ids: ['a', 'b'] }, until, 100)).toEqual({ ids: ['a', 'b'] })
})

const defaults = topicConfig.parse({})

test('every key of a topic but paused can be changed', () => {
  expect([...CONFIG_KEYS, 'paused'].sort()).toEqual(Object.keys(topicConfig.shape).sort())
})

test('bounds and defaults are those of the contract', () => {
  for (const key of CONFIG_KEYS) {
    expect(usualText(key)).toBe(String(defaults[key]))
    if (!isNumeric(key)) continue
    const field = topicConfig.shape[key].unwrap()
    const [min, max] = [field.minValue ?? Number.NaN, field.maxValue ?? Number.NaN]
    expect(configFaults({ [key]: String(min) })).toEqual({})
    expect(configFaults({ [key]: String(max) })).toEqual({})
    expect(configFaults({ [key]: String(max + 1) })).toHaveProperty(key)
    expect(configFaults({ [key]: String(min - 1) })).toHaveProperty(key)
  }
})

test.each(['', ' ', '1e3', '0x10', '-1', '1,000', '5 ', 'Infinity', '1.5'])('%j is no number of attempts', (text) => {
  expect(configFaults({ max_attempts: text })).toHaveProperty('max_attempts')
})

test('a rate may be a fraction', () => {
  expect(configFaults({ rate_per_sec: '0.5' })).toEqual({})
  expect(configChange({ rate_per_sec: '0.5' })).toEqual({ rate_per_sec: 0.5 })
})

test('only what differs is sent', () => {
  expect(configChange({ max_attempts: '5', ordered: 'true', max_leased: '7' }, defaults)).toEqual({
    ordered: true,
    max_leased: 7,
  })
  expect(configChange({ ordered: 'false' })).toEqual({ ordered: false })
})

const eventOf = (n: number): TailEvent => ({
  n,
  at: '2026-11-20T18:30:00.000Z',
  event: 'accepted',
  id: `job-${n}`,
  consumer: null,
  error: null,
  failures: 0,
  bytes: 2,
  head: null,
})
const pageOf = (epoch: string, from: number, to: number, skipped = 0) => ({
  cursor: `${epoch}.${to}`,
  events: Array.from({ length: to - from + 1 }, (_, n) => eventOf(from + n)),
  skipped,
})

test('events are shown newest first, and skipped ones add up', () => {
  const tail = tailAfter(tailAfter(undefined, pageOf('a', 1, 2, 3)), pageOf('a', 6, 7, 3))
  expect(tail.events.map(({ n }) => n)).toEqual([7, 6, 2, 1])
  expect(tail).toMatchObject({ cursor: 'a.7', skipped: 6 })
})

test('so many are kept', () => {
  const tail = tailAfter(tailAfter(undefined, pageOf('a', 1, 200)), pageOf('a', 201, 300))
  expect(tail.events).toHaveLength(JOB_LIMITS.tailKept)
  expect(tail.events[0]?.n).toBe(300)
})

test('after a restart of the queue the list is empty again', () => {
  const tail = tailAfter(tailAfter(undefined, pageOf('a', 1, 2)), pageOf('b', 1, 1))
  expect(tail.events.map(({ n }) => n)).toEqual([1])
})

const utf8 = (text: string) => new TextEncoder().encode(text)
const base64 = (text: string) => base64Of(utf8(text))

describe('payloads', () => {
  test('the first 256 KiB of a payload are shown', () => {
    expect(SHOWN_BYTES).toBe(262_144)
  })

  test('any bytes survive base64', () => {
    const bytes = Uint8Array.from({ length: 100_000 }, (_, n) => (n * 7) & 255)
    expect(bytesOf(base64Of(bytes))).toEqual(bytes)
    expect(bytesOf('')).toHaveLength(0)
  })

  test('text is UTF-8, with its byte order mark, and nothing else is', () => {
    expect(textOf(utf8('\ufeffé'))).toBe('\ufeffé')
    expect(textOf(Uint8Array.of(0xff, 0xfe))).toBeUndefined()
    expect(textOf(utf8('aé').subarray(0, 2))).toBeUndefined()
    expect(textOf(utf8('aé').subarray(0, 2), true)).toBe('a')
  })

  test('hex shows offset, bytes and printable characters', () => {
    expect(hexOf(utf8('{"a":1}\n<b>0123456')).split('\n')).toEqual([
      '00000000  7b 22 61 22 3a 31 7d 0a 3c 62 3e 30 31 32 33 34  |{"a":1}.<b>01234|',
      '00000010  35 36                                            |56|',
    ])
    expect(hexOf(new Uint8Array())).toBe('')
  })

  test('the head of a payload is one line', () => {
    expect(headText(base64('{\n  "a":\t1\n}'))).toBe('{ "a": 1 }')
    expect(headText(base64('a\u0000b\u202ec'))).toBe('a·b·c')
    expect(headText(base64Of(Uint8Array.of(0x61, 0xc3)))).toBe('a')
    expect(headText(base64Of(Uint8Array.of(0xff)))).toBeUndefined()
  })
})

describe('indented JSON', () => {
  test('reads as JSON.stringify writes it', () => {
    for (const value of [{}, [], { a: [], b: { c: [1, { d: 'x,y:{}[]' }] } }, [[]], 'a "b" \\', 1.5, null, true])
      expect(indentJson(JSON.stringify(value))).toBe(JSON.stringify(value, undefined, 2))
  })

  test('keeps what reading the values would change', () => {
    expect(indentJson('{"id":12345678901234567890,"a":1,"a":2, "x" : 1.0e5 }')).toBe(
      '{\n  "id": 12345678901234567890,\n  "a": 1,\n  "a": 2,\n  "x": 1.0e5\n}',
    )
  })

  test('nested brackets do not grow with the square of their number', () => {
    const deep = 20_000
    expect(indentJson('['.repeat(deep) + ']'.repeat(deep)).length).toBeLessThan(deep * 2 * 90)
  })
})

describe('a payload that is edited', () => {
  test.each([
    ['json', '{"order":1}'],
    ['text', 'order 1'],
    ['text', ''],
    ['json', '"é"'],
  ] as const)('%s %j is offered as it was submitted', (kind, text) => {
    const typed = typedOf(base64(text))
    expect(typed).toEqual({ kind, text })
    expect(dataOf(typed)).toBe(base64(text))
  })

  test('bytes stay base64, and no payload stays none', () => {
    expect(typedOf('/w==')).toEqual({ kind: 'base64', text: '/w==' })
    expect(dataOf({ kind: 'base64', text: ' /w\n== ' })).toBe('/w==')
    expect(typedOf(null)).toEqual({ kind: 'none', text: '' })
    expect(dataOf({ kind: 'none', text: 'ignored' })).toBeNull()
  })

  test('base64 is accepted as the queue accepts it', () => {
    expect(['', 'YQ==', 'YW\nJj', 'YWI='].every(isBase64)).toBe(true)
    expect(['YQ', 'YQ=', 'Y-_=', 'YQ==YQ==', 'a'].some(isBase64)).toBe(false)
  })

  test('the id of a retry names the first job, and stays an id', () => {
    expect(retryId('77120')).toBe('77120-retry-1')
    expect(retryId('77120-retry-9')).toBe('77120-retry-10')
    expect(utf8(retryId('é'.repeat(128)))).toHaveLength(256)
  })
})

test('downloads are named by ids without characters that mean something to a file system', () => {
  expect(fileName(['orders', '../../etc/passwd'], 'json')).toBe('orders-..-..-etc-passwd.json')
  expect(fileName(['..'], 'bin')).toBe('job.bin')
})

test('no cell of a CSV runs as a formula', () => {
  const csv = jobsCsv([jobOf({ id: '=1+1', lastError: '@SUM(A1), "x"' }), jobOf({ id: '-2', lastError: null })])
  expect(csv.split('\r\n').slice(1, 3)).toEqual([
    `'=1+1,orders,max_attempts,5,5,2026-11-20T18:00:00.000Z,2026-11-20T18:20:00.000Z,12,"'@SUM(A1), ""x"""`,
    `'-2,orders,max_attempts,5,5,2026-11-20T18:00:00.000Z,2026-11-20T18:20:00.000Z,12,`,
  ])
})
