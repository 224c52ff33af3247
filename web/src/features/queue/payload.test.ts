import { describe, expect, test } from 'vitest'
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
import { jobOf } from './testing/queue.ts'

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
