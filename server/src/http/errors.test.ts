/** The error table: what programs match on. The reference page repeats it for people. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ERRORS, problem } from './errors.ts'

type Code = keyof typeof ERRORS

const CODES = Object.keys(ERRORS) as Code[]

const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/control-plane-reference.md'), 'utf8')
/** Rows of the reference page: status by code. */
const ROWS = new Map(
  [...PAGE.matchAll(/^\| `([a-z0-9-]+)` \| (\d{3}) \| /gm)].map(([, code, status]) => [code, status]),
)

test('the reference page lists each code with its status', () => {
  expect(CODES.map((code) => `${code} ${ERRORS[code].status}`)).toEqual(
    CODES.map((code) => `${code} ${ROWS.get(code)}`),
  )
})

test('codes are words in lower case, joined by hyphens', () => {
  for (const code of CODES) expect(code).toMatch(/^[a-z]+(?:-[a-z]+)*$/)
})

test('every error has a failure status, a message and a hint', () => {
  for (const code of CODES) {
    const { status, message, hint } = ERRORS[code]
    expect(status >= 400 && status < 600, code).toBe(true)
    expect(message, code).not.toBe('')
    expect(hint, code).not.toBe('')
  }
})

test('a problem has status, message and hint of its row', () => {
  const error = problem('shard-not-found')

  expect([error.status, error.code]).toEqual([404, 'shard-not-found'])
  expect(error.message).toBe('There is no such shard.')
  expect(error.hint).toBe('The shards page lists them.')
  expect([error.field, error.more, error.cause, error.isAudited]).toEqual([undefined, {}, undefined, false])
})

test('detail and hint replace the texts, and further options are kept', () => {
  const cause = new Error('refused')
  const error = problem('node-timeout', {
    detail: 's1/n1: no response within 800 ms',
    hint: 'Check it.',
    field: 'node',
    more: { node: 'n1' },
    cause,
  })

  expect([error.status, error.message, error.hint]).toEqual([504, 's1/n1: no response within 800 ms', 'Check it.'])
  expect([error.field, error.more]).toEqual(['node', { node: 'n1' }])
  expect(error.cause).toBe(cause)
})
