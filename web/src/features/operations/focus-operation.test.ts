// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { focusOperation } from './focus-operation.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  vi.useRealTimers()
  document.body.replaceChildren()
})

const STRIP = '<div tabindex="-1" data-operation="op_1"></div>'
const ROW = '<div data-operation="op_1"><a href="#x">row</a></div>'

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

test('the row of the tray gets it when no strip appears within 0.4 seconds', () => {
  const { opener, operations } = page()
  operations.innerHTML = ROW
  focusOperation('op_1', opener)
  vi.advanceTimersByTime(390)
  expect(focused()).toBe(document.body)
  vi.advanceTimersByTime(50)
  expect(focused()).toBe(operations.querySelector('a'))
})

test('after three seconds without either the opener gets it', () => {
  const { opener, content } = page()
  focusOperation('op_1', opener)
  vi.advanceTimersByTime(2_980)
  expect(focused()).toBe(document.body)
  vi.advanceTimersByTime(60)
  expect(focused()).toBe(opener)

  content.innerHTML = STRIP
  vi.advanceTimersByTime(1_000)
  expect(focused()).toBe(opener)
})

test('an opener that is gone does not', () => {
  const { opener } = page()
  opener.remove()
  const focus = vi.spyOn(opener, 'focus')
  focusOperation('op_1', opener)
  focusOperation('op_1', null)
  vi.advanceTimersByTime(4_000)
  expect(focus).not.toHaveBeenCalled()
})

test('the focus is not taken from where a person moved it', () => {
  const { opener, content } = page()
  const field = document.createElement('input')
  document.body.append(field)
  focusOperation('op_1', opener)
  field.focus()
  content.innerHTML = STRIP
  vi.advanceTimersByTime(4_000)
  expect(focused()).toBe(field)
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

test('Escape that closed something else does nothing', () => {
  const { opener, content } = page()
  content.innerHTML = STRIP
  focusOperation('op_1', opener)
  const event = new KeyboardEvent('keydown', { key: 'Escape', cancelable: true })
  event.preventDefault()
  focused()?.dispatchEvent(event)
  expect(focused()).toBe(content.firstElementChild)
})
