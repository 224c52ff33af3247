// @vitest-environment happy-dom
import { render, renderHook } from '@testing-library/react'
import { useLayoutEffect } from 'react'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import '../ui/testing/dom.ts'
import { listenForKeys, setKeysOn, useKey } from './keys.ts'

let stop: () => void
let acts: string[] = []

beforeEach(() => {
  vi.useFakeTimers()
  acts = []
  stop = listenForKeys()
  // happy-dom has no layout.
  HTMLElement.prototype.checkVisibility = function () {
    return !this.hidden
  }
})
afterEach(() => {
  stop()
  setKeysOn(true)
  vi.useRealTimers()
})

const registered = (...keys: readonly string[]) =>
  renderHook(() => {
    for (const one of keys) useKey(one, () => acts.push(one), `label of ${one}`)
  })
/** @returns whether the key was taken */
const press = (key: string, more: KeyboardEventInit = {}, target: EventTarget = document.body) =>
  !target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }))

test.each<[string, KeyboardEventInit & { key: string }, string[]]>([
  ['a key', { key: 'p' }, ['p']],
  ['another key', { key: 'q' }, []],
  ['a key with Alt', { key: 'p', altKey: true }, []],
  ['a key with Ctrl', { key: 'K', ctrlKey: true }, ['mod+k']],
  ['a key with ⌘', { key: 'k', metaKey: true }, ['mod+k']],
  ['the key of a combination alone', { key: 'k' }, []],
  ['an arrow with Shift', { key: 'ArrowLeft', shiftKey: true }, ['shift+ArrowLeft']],
  ['an arrow', { key: 'ArrowLeft' }, []],
  ['a character that needs Shift', { key: '?', shiftKey: true }, ['?']],
  ['a held key', { key: 'p', repeat: true }, []],
  ['a key while text is composed', { key: 'p', isComposing: true }, []],
])('%s', (_, { key, ...more }, expected) => {
  registered('p', 'mod+k', 'shift+ArrowLeft', '?')

  const isTaken = press(key, more)

  expect(acts).toEqual(expected)
  expect(isTaken).toBe(expected.length > 0)
})

test('a key works as soon as its component is in the document', () => {
  renderHook(() => {
    useKey('p', () => acts.push('p'), 'label of p')
    useLayoutEffect(() => void press('p'), [])
  })
  expect(acts).toEqual(['p'])
})

test('a sequence is two keys within 1.2 seconds', () => {
  registered('g s', 's', 'g')

  press('g')
  press('s')
  expect(acts.splice(0)).toEqual(['g s'])

  press('g')
  vi.advanceTimersByTime(1_199)
  press('s')
  expect(acts.splice(0)).toEqual(['g s'])

  press('g')
  vi.advanceTimersByTime(1_200)
  press('s')
  expect(acts.splice(0)).toEqual(['s'])

  // Another key ends it.
  press('g')
  press('x')
  press('s')
  expect(acts.splice(0)).toEqual(['s'])
  press('s')
  press('s')
  expect(acts).toEqual(['s', 's'])
})

test('single keys can be turned off, combinations cannot', () => {
  registered('p', 'mod+k')
  setKeysOn(false)
  press('p')
  press('k', { ctrlKey: true })
  setKeysOn(true)
  press('p')
  expect(acts).toEqual(['mod+k', 'p'])
})

test.each([
  ['<input>', false],
  ['<textarea></textarea>', false],
  ['<select></select>', false],
  ['<div contenteditable></div>', false],
  ['<a role="menuitem"></a>', false],
  ['<button></button>', true],
])('a single key in %s fires: %s', (html, fires) => {
  registered('p', 'mod+k')
  const { container } = render(<div dangerouslySetInnerHTML={{ __html: html }} />)
  const target = container.querySelector('div > :only-child > *') as HTMLElement

  press('p', {}, target)
  press('k', { ctrlKey: true }, target)

  expect(acts).toEqual(fires ? ['p', 'mod+k'] : ['mod+k'])
})
