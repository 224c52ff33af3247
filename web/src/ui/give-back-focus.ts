/**
 * Returns focus to the element that opened a layer, unless another element has it by then: after a click into a field
 * outside the layer, or a key pressed right after Escape. Without such an element, or when it is gone, the page gets it:
 * focus on the body would start again at the first link.
 */
export function giveBackFocus(event: Event, opener: Element | null): void {
  event.preventDefault()
  const isFree = document.activeElement === null || document.activeElement === document.body
  if (!isFree) return
  if (opener instanceof HTMLElement && opener !== document.body && opener.isConnected) opener.focus()
  else document.getElementById('content')?.focus({ preventScroll: true })
}
