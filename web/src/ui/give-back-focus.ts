/**
 * Focus goes back to what opened a layer once that is gone, and is not taken from whoever has it by then: a click into a
 * field beside the layer, or a key that was pressed right after Escape.
 */
export function giveBackFocus(event: Event, opener: Element | null): void {
  event.preventDefault()
  const isFree = document.activeElement === null || document.activeElement === document.body
  if (isFree && opener instanceof HTMLElement) opener.focus()
}
