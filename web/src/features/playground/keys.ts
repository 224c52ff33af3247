/** Query keys of what the playground keeps. */
export const HISTORY_KEY = ['playground-history'] as const
export const RESULTS_KEY = ['saved-results'] as const
