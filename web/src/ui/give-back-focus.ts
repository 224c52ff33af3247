/**
 * Returns focus to the element that opened a layer, unless another element has it by then: after a click into a field
 * outside the layer, or a key pressed right after Escape.
 */
export function giveBackFocus(event: Event, opener: Element | null): void {
  event.preventDefault()
  const isFree = document.activeElement === null || document.activeElement === document.body
  if (isFree && opener instanceof HTMLElement) opener.focus()
}
