/** Flags and settings of a folder that `npm start` or `npm run start:node` makes. */
import { whole } from '@vacancy/shared/node'

export const SAMPLE_FLAGS = {
  days: { ...whole(120, 1, 365), summary: 'Nights on sale of a new sample.' },
  seed: { ...whole(1, 0, 4_294_967_295), summary: 'Seed of the random sample data.' },
} as const

/** The configuration a new folder gets; it is the user's from then on. */
export const CONFIG = `# Configuration of the nodes of a quick start. docs/config.md has every key.
# Ports and data_dir are not read from here: --help of npm start -- and npm run start:node -- names the flags.

# The default is 14: this lets three weeks and more be searched at once.
max_dates_in_query: 31
`
