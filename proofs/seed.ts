/** The seed of a run that is given none: the time of day in seconds (UTC), so that each run draws others. */
export function seedOfNow(): number {
  return Math.floor((Date.now() % 86_400_000) / 1_000)
}
