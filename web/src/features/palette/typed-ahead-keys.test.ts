// @vitest-environment happy-dom
import { afterEach, expect, test } from 'vitest'
import { bufferTyped, takeTyped, typedWith } from './typed-ahead.ts'

afterEach(() => void takeTyped())

/** @returns whether the key was taken */
const press = (key: string, more: KeyboardEventInit = {}) =>
  !document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }))

test('until the palette is there its keys are kept, and reach nothing else', () => {
  const below: string[] = []
  const listen = (event: KeyboardEvent) => void below.push(event.key)
  document.body.addEventListener('keydown', listen)
  bufferTyped(() => undefined)

  expect(['s', 'Backspace', 'n', '1', 'Enter', 'Tab'].map((key) => press(key))).toEqual(Array(6).fill(true))
  expect(['ArrowDown', 'F5'].map((key) => press(key))).toEqual([false, false])
  const modified = [{ ctrlKey: true }, { metaKey: true }, { altKey: true }, { isComposing: true }]
  expect(modified.map((more) => press('x', more))).toEqual([false, false, false, false])

  expect(below).toEqual(['ArrowDown', 'F5', 'x', 'x', 'x', 'x'])
  expect(takeTyped()).toBe('n1')
  expect(press('z')).toBe(false)
  expect(takeTyped()).toBe('')
  document.body.removeEventListener('keydown', listen)
})

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
