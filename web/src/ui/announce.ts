/**
 * Words for screen readers: one polite region for what the user asked for, one assertive for what cannot wait. Both are
 * in the shell; a message that comes while another is being read replaces it at the next turn.
 */

export type Urgency = 'polite' | 'assertive'

const LIVE_DATA_MS = 5_000
let heldUntil = 0

export function announce(text: string, urgency: Urgency = 'polite'): void {
  const region = document.querySelector(`[data-announce="${urgency}"]`)
  if (!region) return
  // The same sentence twice is only read when the region was empty in between.
  region.textContent = ''
  requestAnimationFrame(() => {
    region.textContent = text
  })
}

/** For live data: at most one message in 5 s, so that it does not chatter. */
export function announceLive(text: string): void {
  if (performance.now() < heldUntil) return
  heldUntil = performance.now() + LIVE_DATA_MS
  announce(text)
}
