import { expect, test } from 'vitest'
import { AssertionError, assert, unreachable } from './assert.ts'
import {
  ERRORS,
  type ErrorName,
  EXIT,
  errorRow,
  isNumeric,
  kindOf,
  kindOfWireCode,
  sentence,
  VacancyError,
  WIRE_CODES,
  wireText,
} from './errors.ts'
import { replyVectors } from './testing/vectors.ts'

const NAMES = Object.keys(ERRORS) as ErrorName[]

test('an error has its message with the fields filled in, and keeps fields and cause', () => {
  const cause = new Error('ENOSPC')
  const error = new VacancyError(
    'unknown_feature',
    { file: 'packages.csv', line: 7, feature: 'wfi', nearest: 'wifi' },
    { cause },
  )

  expect(error.message).toBe('packages.csv:7: rate feature wfi is not in the codec list; did you mean wifi?')
  expect(error).toMatchObject({ name: 'VacancyError', code: 'unknown_feature', fields: { line: 7 }, cause })
})

test('values in a message are truncated to one line, but a reason may have several lines', () => {
  const long = sentence('not_found', { what: `a\nb${'x'.repeat(1000)}` })

  expect(long).toHaveLength('a b'.length + 394 + '… not found'.length)
  expect(long).not.toContain('\n')
  expect(sentence('invalid_config', { reason: 'one\ntwo' })).toBe('one\ntwo')
  expect(sentence('import_failed', { count: [1, 2] })).toContain('1, 2')
})

test('a missing field stays visible as its placeholder', () => {
  expect(sentence('not_found', {})).toBe('{what} not found')
})

test.each(NAMES)('%s is consistent over wire, HTTP and exit code', (name) => {
  const { wire, http, retry, exit } = errorRow(name)

  expect(name).toMatch(/^[a-z_]+$/)
  expect(http).toBeGreaterThanOrEqual(400)
  expect(http).toBeLessThan(600)
  expect(retry).toBe(kindOf(name) === 'retry')
  if (exit !== undefined) expect(Object.values(EXIT)).toContain(exit)
  if (wire !== undefined) {
    expect(kindOf(name)).toBe(kindOfWireCode(wire))
    const text = wireText(name, { reason: 'a: "b"\\', what: 'property', left: 3, role: 'r', command: 'DELPROP' })
    expect(text).toMatch(isNumeric(wire) ? /^\d{3}$/ : /^[A-Z_]+: [^:"\\]+$/)
  }
})

test('every wire code has an error that uses it', () => {
  for (const code of WIRE_CODES) expect(NAMES.some((name) => errorRow(name).wire === code)).toBe(true)
})

test('every exit code but success has an error that uses it', () => {
  for (const exit of Object.values(EXIT)) {
    if (exit !== EXIT.ok) expect(NAMES.some((name) => errorRow(name).exit === exit)).toBe(true)
  }
})

// The libraries know no unknown outcome: they file it under internal.
const LIBRARY_KIND = {
  request: 'REQUEST',
  client: 'CLIENT',
  retry: 'RETRY',
  unknown_outcome: 'INTERNAL',
  internal: 'INTERNAL',
}

test.each(replyVectors.cases.filter(({ client }) => client))(
  '$name is of the kind that the libraries report',
  (vector) => {
    const { kind, code } = vector.client ?? { kind: '', code: '' }

    expect(LIBRARY_KIND[kindOfWireCode(code)]).toBe(kind)
  },
)

test('what a caller can do follows from the wire code, then from the exit code, then from the retry', () => {
  // Rows of docs/errors.md.
  expect(kindOf('not_leader')).toBe('retry')
  expect(kindOf('outcome_unknown')).toBe('unknown_outcome')
  expect(kindOf('usage_error')).toBe('request')
  expect(kindOf('invalid_tls')).toBe('request')
  expect(kindOf('port_taken')).toBe('internal')
  expect(kindOf('connection_failed')).toBe('retry')
  expect(kindOf('connection_lost')).toBe('unknown_outcome')
  expect(kindOf('login_failed')).toBe('client')
})

test('an unknown code is internal', () => {
  expect(kindOfWireCode('TEAPOT')).toBe('internal')
  expect(kindOfWireCode('toString')).toBe('internal')
})

test('a broken invariant reports what must hold', () => {
  expect(() => assert(1 + 1 === 3, 'sums add up')).toThrow(new AssertionError('sums add up'))
  expect(() => assert(true, 'sums add up')).not.toThrow()
})

test('an unhandled union member fails an assertion', () => {
  expect(() => unreachable('leader' as never)).toThrow(AssertionError)
})
