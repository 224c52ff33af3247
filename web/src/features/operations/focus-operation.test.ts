// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { focusOperation } from './focus-operation.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  document.body.replaceChildren()
})

const STRIP = '<div tabindex="-1" data-operation="op_1"></div>'
function page(): { opener: HTMLElement; content: HTMLElement; operations: HTMLElement } {
  document.body.innerHTML = '<button>Plan</button><main id="content"></main><aside id="operations"></aside>'
  const [opener, content, operations] = [...document.body.children] as [HTMLElement, HTMLElement, HTMLElement]
  return { opener, content, operations }
}
const focused = () => document.activeElement

test('the strip gets the focus as soon as it is there', () => {
  const { opener, content } = page()
  focusOperation('op_1', opener)
  vi.advanceTimersByTime(2_900)
  expect(focused()).toBe(document.body)

  content.innerHTML = STRIP
  vi.advanceTimersByTime(50)

  expect(focused()).toBe(content.firstElementChild)
})

test('Escape returns to the opener', () => {
  const { opener, content } = page()
  content.innerHTML = STRIP
  focusOperation('op_1', opener)
  const strip = focused() as HTMLElement
  const press = (key: string) => {
    const event = new KeyboardEvent('keydown', { key, cancelable: true, bubbles: true })
    strip.dispatchEvent(event)
    return event.defaultPrevented
  }

  expect(press('Enter')).toBe(false)
  expect(focused()).toBe(strip)
  expect(press('Escape')).toBe(true)
  expect(focused()).toBe(opener)

  strip.focus()
  opener.remove()
  expect(press('Escape')).toBe(false)
  expect(focused()).toBe(strip)
})
