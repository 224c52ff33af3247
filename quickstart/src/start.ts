/** `npm run start:node`: a node with a sample of at least a million packages, three searches, and the next steps. */

import { resolve } from 'node:path'
import { tableOf } from '@vacancy/cli/table'
import { connect, VacancyCallError } from '@vacancy/client'
import { defineCommand, runCommand, tableLines, whole } from '@vacancy/shared/node'
import { freePort } from './launch.ts'
import { type Component, HOST, nodePlan } from './platform/plan.ts'
import type { Platform } from './platform/platform.ts'
import { urlOf } from './platform/programs.ts'
import { startAndStay } from './platform/start.ts'
import { CONFIG, SAMPLE_FLAGS } from './sample-flags.ts'
import { say } from './say.ts'
import { cheapestOfWeekend, sampleSearches } from './searches.ts'

const ANSWER_MS_MAX = 30_000
/** How often a search is repeated for its usual time. */
const REPEATS = 50
const RESULTS_SHOWN = 4
const PACKAGES = 1_500_000
const TCP_PORT = 7777

const FLAGS = {
  dir: { type: 'text', value: 'DIR', default: './quickstart-data', summary: 'Data folder, created if absent.' },
  packages: { ...whole(PACKAGES, 1, 60_000_000), summary: 'Daily packages of a new sample.' },
  ...SAMPLE_FLAGS,
  'tcp-port': {
    ...whole(TCP_PORT, 0, 65_535),
    summary: 'Port of the data protocol; the next free one when it is taken, any when 0.',
  },
  'api-port': { ...whole(8080, 0, 65_535), summary: 'Port of the HTTP API, in the same way.' },
} as const

const startCommand = defineCommand({
  name: 'npm run start:node --',
  component: 'START',
  summary: 'Starts a node with sample data, shows three searches and stays up. A second start reuses the data.',
  flags: FLAGS,
  run: async ({ flags: { dir, packages, days, seed, tcpPort, apiPort } }) => {
    const tcp = await chosenPort('TCP', tcpPort)
    const plan = nodePlan({ tcp, api: await chosenPort('HTTP', apiPort, [tcp]) })
    await startAndStay({
      dir,
      sample: { packages, days, seed },
      usual: { packages: PACKAGES, days: FLAGS.days.default, seed: FLAGS.seed.default },
      config: CONFIG,
      planOf: () => plan,
      restarts: true,
      show: async ({ files }, today) => {
        const [node] = plan.components as [Component]
        await showSearches(node, today)
        return nextSteps(node, files, today)
      },
    })
    return undefined
  },
})

async function chosenPort(what: string, wanted: number, others: readonly number[] = []): Promise<number> {
  const port = await freePort(HOST, wanted, others)
  if (wanted !== 0 && port !== wanted) say(`Port ${wanted} is taken: ${what} is on ${port}.`)
  return port
}

async function showSearches({ main }: Component, today: number): Promise<void> {
  const client = await connect({ ...main, deadlineMs: ANSWER_MS_MAX })
  for (const [index, { title, fields }] of sampleSearches(today).entries()) {
    const times: number[] = []
    let lines: string[] = []
    let counted = ''
    for (let repeat = 0; repeat <= REPEATS; repeat++) {
      const sentMs = performance.now()
      try {
        const table = tableOf(await client.send('SEARCHAVAIL', fields))
        counted = table.counted
        lines = tableLines(table, RESULTS_SHOWN)
      } catch (error) {
        // The data and the configuration now belong to the user: a search that no longer fits is not an error.
        if (!(error instanceof VacancyCallError)) throw error
        counted = `${error.code} ${error.message}`
      }
      times.push(performance.now() - sentMs)
    }
    const [first = 0, ...others] = times
    const usual = others.toSorted((a, b) => a - b)[REPEATS >> 1] ?? 0
    say(`\n${index + 1}. ${title}`)
    say(
      `   ${counted}; first answer after ${first.toFixed(2)} ms, then ${usual.toFixed(2)} ms (median of ${REPEATS})\n`,
    )
    for (const line of lines) say(`   ${line}`)
  }
  await client.close()
}

function nextSteps(
  { name, main, api }: Component,
  files: Platform['files'],
  today: number,
): (readonly [string, string])[] {
  const port = main.port === TCP_PORT ? '' : ` --port ${main.port}`
  return [
    ['Connect', `TCP  ${main.host}:${main.port}   clients: docs/integrators.md`],
    ['', `HTTP ${urlOf(api)}/status, /ready, /metrics: docs/operators.md`],
    ['Query', `npx vacancy query segments${port}`],
    ['', `${cheapestOfWeekend(today)}${port}`],
    ['', `npx vacancy query send SEARCHPROP segment=valais area=zermatt stars=5${port}`],
    ['Files', `${resolve(files.dir)}   the log of the node is ${files.logOf(name)}`],
    ['Stop', 'Ctrl-C. A second npm run start:node continues with this data.'],
  ]
}

await runCommand(startCommand, process.argv.slice(2))
