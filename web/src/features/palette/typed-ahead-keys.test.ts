// @vitest-environment happy-dom
import { afterEach, expect, test } from 'vitest'
import { bufferTyped, takeTyped } from './typed-ahead.ts'

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

test('Escape cancels, and another palette begins empty', () => {
  let escapes = 0
  bufferTyped(() => escapes++)
  press('a')
  expect([press('Escape'), escapes]).toEqual([true, 1])
  bufferTyped(() => undefined)
  press('b')
  expect(takeTyped()).toBe('b')
  expect(escapes).toBe(1)
})
