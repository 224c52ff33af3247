/**
 * Buffers keys typed between opening the palette and its rendering, since its code may load for seconds on a slow
 * network. The palette takes them once its field has the focus; until then no key reaches the page below.
 */

let typed = ''
let stop: (() => void) | undefined

/** Starts buffering. @param onEscape called to cancel the palette */
export function bufferTyped(onEscape: () => void): void {
  takeTyped()
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !isTaken(event.key)) return
    event.preventDefault()
    event.stopPropagation()
    if (event.key === 'Escape') onEscape()
    else typed = typedWith(typed, event.key)
  }
  document.addEventListener('keydown', onKeyDown, true)
  stop = () => document.removeEventListener('keydown', onKeyDown, true)
}

/** Stops buffering. @returns the buffered text */
export function takeTyped(): string {
  const kept = typed
  typed = ''
  stop?.()
  stop = undefined
  return kept
}

const isCharacter = (key: string) => [...key].length === 1

/** Enter is taken as well: it must not activate the focused element below. */
const isTaken = (key: string) => isCharacter(key) || ['Backspace', 'Enter', 'Tab', 'Escape'].includes(key)

/** Keys that are not characters have longer names: Enter, ArrowDown. */
export function typedWith(text: string, key: string): string {
  if (key === 'Backspace') return [...text].slice(0, -1).join('')
  return isCharacter(key) ? text + key : text
}
