/** Moves the focus to a started operation: its strip on the page, else its row in the tray. */

/** The strip appears with the next live value; after this time the tray is enough. */
const STRIP_WAIT_MS = 400
const WAIT_MS = 3_000

/**
 * @param opener regains the focus on Escape: where the plan was opened
 */
export function focusOperation(id: string, opener: Element | null): void {
  const start = performance.now()
  const before = document.activeElement
  const look = () => {
    const waited = performance.now() - start
    // The focus is not taken from where it was moved to meanwhile.
    if (document.activeElement !== before && document.activeElement !== document.body) return
    const strip = document.querySelector<HTMLElement>(`#content [data-operation="${CSS.escape(id)}"]`)
    const row = document.querySelector<HTMLElement>(`#operations [data-operation="${CSS.escape(id)}"] a`)
    const target = strip ?? (waited > STRIP_WAIT_MS ? row : null)
    if (target) arrive(target, opener)
    else if (waited < WAIT_MS) requestAnimationFrame(look)
    else if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
  }
  look()
}

function arrive(target: HTMLElement, opener: Element | null): void {
  target.focus({ preventScroll: false })
  target.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.defaultPrevented) return
    if (!(opener instanceof HTMLElement) || !opener.isConnected) return
    event.preventDefault()
    opener.focus()
  })
}
