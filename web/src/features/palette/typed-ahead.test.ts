import { expect, test } from 'vitest'
import { typedWith } from './typed-ahead.ts'

const typing = (...keys: readonly string[]) => keys.reduce(typedWith, '')

test('characters are kept in order, also outside the BMP', () => {
  expect(typing('s', '3', ' ', 'ü', '𝒩')).toBe('s3 ü𝒩')
})

test('Backspace removes the last character, if any', () => {
  expect(typing('Backspace', 's', '𝒩', 'Backspace', '4')).toBe('s4')
})

test('keys that are not characters are ignored', () => {
  expect(typing('s', 'Enter', 'Shift', 'ArrowDown', 'F5', '3')).toBe('s3')
})
