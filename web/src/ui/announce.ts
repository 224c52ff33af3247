/**
 * Messages for screen readers: a polite region for results of user actions, an assertive one for what cannot wait. Both
 * are in the shell. A message that arrives while another is being read replaces it.
 */

export type Urgency = 'polite' | 'assertive'

const LIVE_DATA_MS = 5_000
let heldUntil = 0

export function announce(text: string, urgency: Urgency = 'polite'): void {
  const region = document.querySelector(`[data-announce="${urgency}"]`)
  if (!region) return
  // A repeated sentence is read again only if the region was empty in between.
  region.textContent = ''
  requestAnimationFrame(() => {
    region.textContent = text
  })
}

/** For live data: at most one message in 5 s. */
export function announceLive(text: string): void {
  if (performance.now() < heldUntil) return
  heldUntil = performance.now() + LIVE_DATA_MS
  announce(text)
}
