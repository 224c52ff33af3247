/**
 * `npm run console -- bench`: latencies of the console (docs/design/console.md#budgets) with a simulated cluster, on
 * a slow laptop with a mobile network: a processor slowed down four times, 40 ms and 10 Mbit/s. Medians of five. The
 * small cluster is opened with an empty browser profile, the large one with a profile that has cached the compiled
 * code.
 *
 * Times are measured inside the page, from the navigation or the click to the painted frame. The floor is measured in
 * the same run: a page without data (the sign-in page), and a click without effect. No page of this server can be
 * faster on this machine. Server and cluster run on the same machine with a lower priority than the browser, since in
 * production they have machines of their own.
 */

import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import type { Browser } from '@playwright/test'
import { measureChanges, measureCharts, measureLarge, measureOverview, measureTopology } from './bench/cluster.ts'
import { type Figure, signedInTo } from './bench/measure.ts'
import { LARGE, measureResults } from './bench/stack.ts'
import { openBrowser } from './browser.ts'
import { startSimulation } from './simulation.ts'
import { startStack } from './stack.ts'

const USAGE_EXIT_CODE = 64

const sizeOf = (nodes: number, shards: number) => [
  ...['--nodes', String(nodes), '--shards', String(shards)],
  ...['--zones', '4', '--seed', '7', '--scenario', 'lag'],
]

/** Parts of the benchmark by their name for --only. */
const PARTS: { readonly [name: string]: (browser: Browser) => Promise<Figure[]> } = {
  small: async (browser) => {
    const simulation = await startSimulation(sizeOf(120, 40), { isBehind: true })
    const state = await signedInTo(browser, simulation)
    const figures = await measureOverview(browser, simulation, state)
    figures.push(...(await measureChanges(browser, simulation, state)))
    figures.push(...(await measureCharts(browser, simulation, state)))
    await simulation.stop()
    return figures
  },
  large: async (browser) => {
    const simulation = await startSimulation(sizeOf(1_000, 300), { isBehind: true })
    const figures = await measureLarge(simulation, await signedInTo(browser, simulation))
    await simulation.stop()
    return figures
  },
  topology: async (browser) => {
    const simulation = await startSimulation([...sizeOf(1_000, 300), '--fabric'], { isBehind: true })
    const figures = await measureTopology(simulation, await signedInTo(browser, simulation))
    await simulation.stop()
    return figures
  },
  stack: async (browser) => {
    const stack = await startStack(LARGE.args, LARGE.env)
    try {
      return await measureResults(browser, stack, await signedInTo(browser, stack))
    } finally {
      await stack.stop()
    }
  },
}

const USAGE = `usage: npm run console -- bench [--only ${Object.keys(PARTS).join('|')}]

--only measures one part: a cluster of 120 nodes, one of 1,000, the topology of such a one, or large answers of a real shard.`

function tableOf(figures: readonly Figure[]): string {
  const rows = figures.map(({ what, limit, unit, value, floor }) => {
    const shown = (one: number) => {
      if (unit === 'ms') return `${Math.round(one)} ms`
      return unit === '' ? String(Math.round(one * 1000) / 1000) : `${one.toFixed(1)} ${unit}`
    }
    const bare = floor === undefined ? '' : `${shown(floor)}, ×${(value / floor).toFixed(1)}`
    return `| ${what} | ${shown(value)} | ≤ ${limit}${unit && ` ${unit}`} | ${value <= limit ? 'met' : '**missed**'} | ${bare} |`
  })
  return ['| What | Value | Budget | | Floor |', '|---|---:|---:|---|---:|', ...rows].join('\n')
}

type Flags = { readonly only?: string | undefined; readonly help: boolean }

/** @throws when an argument is invalid */
function flagsOf(args: string[]): Flags {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  const { only } = values
  if (only !== undefined && !Object.hasOwn(PARTS, only)) throw new Error(`there is no part "${only}"`)
  return values
}

async function main(): Promise<number> {
  let flags: Flags
  try {
    flags = flagsOf(process.argv.slice(2))
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`)
    return USAGE_EXIT_CODE
  }
  const { help, only } = flags
  if (help) {
    console.log(USAGE)
    return 0
  }
  const browser = await openBrowser()
  console.log(`load before: ${loadavg().map((one) => one.toFixed(1))}`)
  const figures: Figure[] = []
  for (const [name, measure] of Object.entries(PARTS)) {
    if (only === undefined || name === only) figures.push(...(await measure(browser)))
  }
  await browser.close()
  console.log(`load after: ${loadavg().map((one) => one.toFixed(1))}`)
  console.log(tableOf(figures))
  return 0
}

process.exitCode = await main()
