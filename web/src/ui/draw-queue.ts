/**
 * Orders drawings that are queued together. All are measured before the first one changes the document, since measuring
 * in between would force a layout for each. Those in view are drawn before the next frame; each of the others is a task
 * of its own after it, so that hidden charts delay nothing.
 */

type Drawing = { readonly element: HTMLElement; readonly draw: (width: number) => void }

/** In the order of their calls. */
const waiting = new Set<Drawing>()
let isScheduled = false
let isDraining = false

/**
 * Draws once all drawings of the same task are queued.
 *
 * @param draw is given the width of the element, in CSS pixels
 * @returns cancels the drawing; does nothing once it was drawn
 */
export function queueDraw(element: HTMLElement, draw: (width: number) => void): () => void {
  const drawing = { element, draw }
  waiting.add(drawing)
  if (!isScheduled) {
    isScheduled = true
    queueMicrotask(drawVisible)
  }
  return () => void waiting.delete(drawing)
}

function drawVisible(): void {
  isScheduled = false
  const visible = [...waiting]
    .filter(({ element }) => isInView(element))
    .map((drawing) => ({ drawing, width: drawing.element.clientWidth }))
  if (waiting.size > visible.length && !isDraining) {
    isDraining = true
    requestAnimationFrame(() => setTimeout(drawNext))
  }
  for (const { drawing, width } of visible) draw(drawing, width)
}

function drawNext(): void {
  const [drawing] = waiting
  isDraining = waiting.size > 1
  if (isDraining) setTimeout(drawNext)
  if (drawing) draw(drawing, drawing.element.clientWidth)
}

function draw(drawing: Drawing, width: number): void {
  // Skips one that was cancelled or drawn in the meantime.
  if (waiting.delete(drawing)) drawing.draw(width)
}

function isInView(element: HTMLElement): boolean {
  const { top, bottom } = element.getBoundingClientRect()
  return bottom > 0 && top < innerHeight
}
