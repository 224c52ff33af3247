/** The seed of a run that is given none: the time of day in seconds (UTC), so that each run draws others. */
export function seedOfNow(): number {
  return Math.floor((Date.now() % 86_400_000) / 1_000)
}

/** The flag of runs that draw from a seed. */
export const SEED_FLAG = {
  type: 'integer',
  min: 0,
  max: 2 ** 32 - 1,
  summary: 'Repeats the choices of a run. Default: the time of day in seconds.',
} as const
