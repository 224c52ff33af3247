import { expect, test } from 'vitest'
import { compareIds, formatSession, parseId, parseSession } from './ids.ts'

test.each(['n1', 'eu-west_1.node', '...', 'A'.repeat(128)])('%s is an id', (text) => {
  expect(parseId(text)).toBe(text)
})

test.each(['', '.', '..', 'a b', 'a/b', 'ä', 'a\n', 'A'.repeat(129)])('%j is not an id', (text) => {
  expect(parseId(text)).toBeUndefined()
})

test('ids are ordered by their bytes, upper case first', () => {
  expect(['b', 'a', 'B', 'a1', 'a-'].sort(compareIds)).toEqual(['B', 'a', 'a-', 'a1', 'b'])
  expect(compareIds('a', 'a')).toBe(0)
})

test('a session is 16 bytes or 32 lower-case hexadecimal digits', () => {
  const bytes = Uint8Array.from({ length: 16 }, (_, i) => i * 17)

  expect(formatSession(bytes)).toBe('00112233445566778899aabbccddeeff')
  expect(parseSession('00112233445566778899aabbccddeeff')).toEqual(bytes)
})

test.each(['', '0'.repeat(31), '0'.repeat(33), 'A'.repeat(32), 'g'.repeat(32)])('%j is not a session', (text) => {
  expect(parseSession(text)).toBeUndefined()
})
