/** Renders components in happy-dom, with the parts of a browser that it lacks. Imported by component tests. */
import { cleanup, configure } from '@testing-library/react'
import userEvent, { type UserEvent } from '@testing-library/user-event'
import { afterEach } from 'vitest'

// On a busy machine the first import of a lazy component takes seconds.
configure({ asyncUtilTimeout: 20_000 })

const OPEN = 'data-popover-open'

// The Popover API: a browser hides an element with `popover` until it is shown.
const style = document.createElement('style')
style.textContent = `[popover]:not([${OPEN}]) { display: none }`
document.head.append(style)
HTMLElement.prototype.showPopover = function (this: HTMLElement) {
  this.setAttribute(OPEN, '')
}
HTMLElement.prototype.hidePopover = function (this: HTMLElement) {
  this.removeAttribute(OPEN)
}

const { innerWidth } = window

afterEach(() => {
  cleanup()
  resizeTo(innerWidth)
})

/** A person with a keyboard and a mouse. */
export const user = (): UserEvent => userEvent.setup({ delay: null })

/** As wide as a phone, until the end of the test. */
export const narrowWindow = () => resizeTo(390)

function resizeTo(width: number): void {
  Object.assign(window, { innerWidth: width })
}
