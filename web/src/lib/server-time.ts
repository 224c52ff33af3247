/**
 * The control plane's time. All times that the console shows come from there, so ages and countdowns count by it: the
 * clock of the browser may be minutes off.
 */

/** How far the control plane's clock is ahead of the browser's. */
let aheadMs = 0

/** Milliseconds since 1970. Until the control plane has told its time, that of the browser. */
export function serverNow(): number {
  return serverTimeOf(Date.now())
}

/** A time of the browser's clock, by the control plane's. */
export function serverTimeOf(browserMs: number): number {
  return browserMs + aheadMs
}

/** Takes over a time that the control plane has just told. */
export function learnServerNow(now: number): void {
  if (Number.isFinite(now)) aheadMs = now - Date.now()
}
