/** What lies where in the folder of a quick start, and what it is made with. Pure. */

import { join } from 'node:path'

export const DEFAULTS = {
  dir: './quickstart-data',
  packages: 1_500_000,
  /** Nights on sale, counted from today. */
  days: 120,
  seed: 1,
  tcpPort: 7777,
  apiPort: 8080,
} as const

export const HOST = '127.0.0.1'
export const SHARD_ID = 'quickstart'
export const NODE_ID = 'quickstart-1'
/** The four valleys that the searches know are there from the first thousand packages on. */
export const SEGMENTS = 4
/** How many ports are tried after a taken one. */
export const PORTS_TRIED_MAX = 100

export type Layout = {
  readonly dir: string
  /** properties.csv, packages.csv and codecs.yml of the sample: input for build-snapshot. */
  readonly csv: string
  /** data_dir of the node. */
  readonly data: string
  readonly seed: string
  readonly codecs: string
  readonly config: string
  /** What the node says, JSON lines. */
  readonly log: string
  /** What the data was made with, and up to which day it goes. */
  readonly state: string
}

export function layoutOf(dir: string): Layout {
  return {
    dir,
    csv: join(dir, 'csv'),
    data: join(dir, 'data'),
    seed: join(dir, 'data', 'seed.snapshot'),
    codecs: join(dir, 'codecs.yml'),
    config: join(dir, 'vacancy.yml'),
    log: join(dir, 'node.log'),
    state: join(dir, 'quickstart.json'),
  }
}

/** The configuration a new folder gets; it is the user's from then on. */
export const CONFIG_TEXT = `# Configuration of the node that npm start runs. docs/config.md has every key.
# Ports and data_dir are not read from here: npm start -- --help names the flags.

# The default is 14: this lets three weeks and more be searched at once.
max_dates_in_query: 31
`

/** What a folder was made with. Days are day numbers. */
export type State = {
  readonly packages: number
  readonly days: number
  readonly seed: number
  /** Last day that every room has a package on. */
  readonly lastDay: number
}

/** Days that are on sale today and have no package yet: none while the first is after the last. */
export function missingDays(state: State, today: number): { readonly first: number; readonly last: number } {
  return { first: Math.max(today, state.lastDay + 1), last: today + state.days - 1 }
}
