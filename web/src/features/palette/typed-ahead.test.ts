import { expect, test } from 'vitest'
import { typedWith } from './typed-ahead.ts'

const typing = (...keys: readonly string[]) => keys.reduce(typedWith, '')

test('characters are kept in their order, whatever their length in code units', () => {
  expect(typing('s', '3', ' ', 'ü', '𝒩')).toBe('s3 ü𝒩')
})

test('Backspace takes the last character, and nothing from nothing', () => {
  expect(typing('Backspace', 's', '𝒩', 'Backspace', '4')).toBe('s4')
})

test('keys that are no character are not text', () => {
  expect(typing('s', 'Enter', 'Shift', 'ArrowDown', 'F5', '3')).toBe('s3')
})
