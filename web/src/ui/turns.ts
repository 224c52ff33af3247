/**
 * Drawings that come to a page together, in turns. All are measured before the first changes the document: a look in
 * between would lay the page out once for each. Those in view are drawn before the next frame; each of the others is a
 * task of its own behind it, so that nobody waits for what nobody sees.
 */

type Turn = { readonly element: HTMLElement; readonly draw: (width: number) => void }

/** In the order in which they came. */
const waiting = new Set<Turn>()
let isBegun = false
let isGoingOn = false

/**
 * Draws once the others of the page have come, too.
 *
 * @param draw is given the width of the element, in CSS pixels
 * @returns takes the turn back; nothing happens when it was had
 */
export function inTurn(element: HTMLElement, draw: (width: number) => void): () => void {
  const turn = { element, draw }
  waiting.add(turn)
  if (!isBegun) {
    isBegun = true
    queueMicrotask(drawSeen)
  }
  return () => void waiting.delete(turn)
}

function drawSeen(): void {
  isBegun = false
  const seen = [...waiting]
    .filter(({ element }) => isInView(element))
    .map((turn) => ({ turn, width: turn.element.clientWidth }))
  if (waiting.size > seen.length && !isGoingOn) {
    isGoingOn = true
    requestAnimationFrame(() => setTimeout(drawNext))
  }
  for (const { turn, width } of seen) draw(turn, width)
}

function drawNext(): void {
  const [turn] = waiting
  isGoingOn = waiting.size > 1
  if (isGoingOn) setTimeout(drawNext)
  if (turn) draw(turn, turn.element.clientWidth)
}

function draw(turn: Turn, width: number): void {
  // One that took its turn back, or had it, while others were drawn.
  if (waiting.delete(turn)) turn.draw(width)
}

function isInView(element: HTMLElement): boolean {
  const { top, bottom } = element.getBoundingClientRect()
  return bottom > 0 && top < innerHeight
}
