import { expect, test } from 'vitest'
import {
  type ClientErrorCode,
  errorOfAnswer,
  errorOfClient,
  errorOfConnection,
  VacancyClientError,
  VacancyRequestError,
  VacancyRetryError,
  VacancyUnknownOutcomeError,
} from './errors.ts'

const READ = { command: 'PROPEXIST', inDoubt: false, isWrite: false } as const
const WRITE = { command: 'SETPROP', inDoubt: false, isWrite: true } as const

test.each([
  ['NOT_FOUND', VacancyRequestError, VacancyRequestError],
  ['UNDERFLOW', VacancyRequestError, VacancyRequestError],
  ['VALIDATION_ERROR', VacancyRequestError, VacancyRequestError],
  ['404', VacancyRequestError, VacancyRequestError],
  ['308', VacancyRetryError, VacancyRetryError],
  ['429', VacancyRetryError, VacancyRetryError],
  ['503', VacancyRetryError, VacancyRetryError],
  ['408', VacancyRetryError, VacancyUnknownOutcomeError],
  ['500', VacancyClientError, VacancyUnknownOutcomeError],
  ['AUTH_ERROR', VacancyClientError, VacancyClientError],
  ['NO_SUCH_CODE', VacancyClientError, VacancyClientError],
])('a read and a write that were answered with %s', (code, ofRead, ofWrite) => {
  const [read, write] = [READ, WRITE].map((call) => errorOfAnswer(call, code, 'the reason'))

  expect(read?.constructor).toBe(ofRead)
  expect(write?.constructor).toBe(ofWrite)
  expect(read).toMatchObject({ name: ofRead.name, code, command: 'PROPEXIST', message: 'the reason', details: {} })
})

test('a call that may have been executed is in doubt, whatever the last reply', () => {
  const doubtful = (code: string) => errorOfAnswer({ ...WRITE, inDoubt: true }, code, 'm')

  expect(doubtful('503')).toBeInstanceOf(VacancyUnknownOutcomeError)
  expect(doubtful('503').message).toBe('An earlier attempt may have been executed. Of the last one: m')
  expect(doubtful('408').message).toBe('m')
})

test('a message is that of the node, up to 1,024 characters, or that of the code', () => {
  expect(errorOfAnswer(READ, '503', 'x'.repeat(1_025)).message).toBe('x'.repeat(1_024))
  expect(errorOfAnswer(READ, '503', '').message).not.toBe('')
  expect(errorOfAnswer(READ, '503', '').message).not.toContain('The node replied with')
  expect(errorOfAnswer(READ, '999', '').message).toBe('The node replied with 999.')
  expect(errorOfAnswer(READ, '', '').message).toBe('The node replied with an error without a code.')
})

test.each<[string, object]>([
  ['line=2 date=2026-12-24 left=0 wanted=1', { line: 2, date: '2026-12-24', left: 0, wanted: 1 }],
  ['state=expired', { state: 'expired' }],
  ['total=12x', { total: '12x' }],
  ['line=', {}],
  ['line=2 and more', {}],
  ['Line=2', {}],
  ['line=2  left=0', {}],
  ['', {}],
])('the details of %j', (message, details) => {
  expect(errorOfAnswer(READ, 'UNDERFLOW', message).details).toEqual(message === '' ? {} : details)
})

test.each<[ClientErrorCode, typeof VacancyRetryError]>([
  ['malformed_reply', VacancyClientError],
  ['connection_failed', VacancyRetryError],
  ['connection_lost', VacancyRetryError],
  ['deadline_exceeded', VacancyRetryError],
  ['cancelled', VacancyClientError],
  ['login_failed', VacancyClientError],
  ['client_closed', VacancyClientError],
  ['backpressure', VacancyRetryError],
])('the client detects %s', (code, Class) => {
  const fields = { address: 'h:1', reason: 'why', milliseconds: 5, count: 6 }
  const cause = new Error('x')

  expect(errorOfClient(code, READ, fields, cause).constructor).toBe(Class)
  expect(errorOfClient(code, READ, fields, cause)).toMatchObject({ code, command: 'PROPEXIST', cause })
  expect(errorOfClient(code, { ...WRITE, inDoubt: true }, fields)).toBeInstanceOf(VacancyUnknownOutcomeError)
  expect(Object.hasOwn(errorOfClient(code, READ, fields), 'cause')).toBe(false)
})

test('the error of a lost connection is that of each of its calls', () => {
  const cause = new Error('x')
  const lost = errorOfClient(
    'connection_lost',
    { command: undefined, inDoubt: false },
    { address: 'h:1', reason: 'r' },
    cause,
  )
  const failed = errorOfClient(
    'connection_failed',
    { command: undefined, inDoubt: false },
    { address: 'h:1', reason: 'r' },
  )

  expect(errorOfConnection(READ, lost)).toMatchObject({
    command: 'PROPEXIST',
    code: 'connection_lost',
    message: lost.message,
    cause,
  })
  expect(errorOfConnection(READ, lost)).toBeInstanceOf(VacancyRetryError)
  const doubtful = { ...WRITE, inDoubt: true }
  expect(errorOfConnection(doubtful, lost)).toBeInstanceOf(VacancyUnknownOutcomeError)
  expect(errorOfConnection(doubtful, lost)).toMatchObject({ command: 'SETPROP', message: lost.message, cause })
  expect(errorOfConnection(doubtful, failed).message).toBe(
    `An earlier attempt may have been executed. Of the last one: ${failed.message}`,
  )
})
