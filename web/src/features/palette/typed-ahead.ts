/**
 * What is typed between asking for the palette and its being there: on a slow network its code comes seconds later. The
 * palette takes it as soon as its field has the focus; until then no key reaches the page below.
 */

let typed = ''
let stop: (() => void) | undefined

/** Keeps what is typed from now on. @param onEscape the palette is not wanted any more */
export function keepTyped(onEscape: () => void): void {
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

/** What was kept; from here on keys go where they always do. */
export function takeTyped(): string {
  const kept = typed
  typed = ''
  stop?.()
  stop = undefined
  return kept
}

const isCharacter = (key: string) => [...key].length === 1

/** Enter has nothing to choose from yet, and must not press what has the focus below. */
const isTaken = (key: string) => isCharacter(key) || ['Backspace', 'Enter', 'Tab', 'Escape'].includes(key)

/** Keys that are no character have names of several: Enter, ArrowDown. */
export function typedWith(text: string, key: string): string {
  if (key === 'Backspace') return [...text].slice(0, -1).join('')
  return isCharacter(key) ? text + key : text
}
