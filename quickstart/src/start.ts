/** `npm run start:node`: a node with a sample of at least a million packages, three searches, and the next steps. */

import { resolve } from 'node:path'
import { tableOf } from '@vacancy/cli/table'
import { connect, VacancyCallError, type VacancyClient } from '@vacancy/client'
import { dayOf, EXIT, formatDay } from '@vacancy/shared'
import {
  count,
  createLogger,
  defineCommand,
  type FlagValues,
  runCommand,
  runProgram,
  tableLines,
} from '@vacancy/shared/node'
import { createProcessGroup, freePort, type ProcessGroup, type RunningNode, startNode, stopGroup } from './launch.ts'
import { DEFAULTS, HOST, type Layout, layoutOf, NODE_ID, SHARD_ID, type State } from './layout.ts'
import { eachNewDay, withNewDays } from './new-days.ts'
import { makeData, readState } from './sample-data.ts'
import { say, sayWhatIsThere, seconds } from './say.ts'
import { sampleSearches } from './searches.ts'

const ANSWER_MS_MAX = 30_000
/** How often a search is repeated for its usual time. */
const REPEATS = 50
const RESULTS_SHOWN = 4
/** A node drains for 10 s, and is ended after 20. */
const STOP_MS_MAX = 25_000

const FLAGS = {
  dir: { type: 'text', value: 'DIR', default: DEFAULTS.dir, summary: 'Data folder, created if absent.' },
  packages: {
    type: 'integer',
    min: 1,
    max: 60_000_000,
    default: DEFAULTS.packages,
    summary: 'Daily packages of a new sample.',
  },
  days: { type: 'integer', min: 1, max: 365, default: DEFAULTS.days, summary: 'Nights on sale of a new sample.' },
  seed: {
    type: 'integer',
    min: 0,
    max: 4_294_967_295,
    default: DEFAULTS.seed,
    summary: 'Seed of the random sample data.',
  },
  'tcp-port': {
    type: 'integer',
    min: 0,
    max: 65_535,
    default: DEFAULTS.tcpPort,
    summary: 'Port of the data protocol; the next free one when it is taken, any when 0.',
  },
  'api-port': {
    type: 'integer',
    min: 0,
    max: 65_535,
    default: DEFAULTS.apiPort,
    summary: 'Port of the HTTP API, in the same way.',
  },
} as const

type Flags = FlagValues<typeof FLAGS>

const startCommand = defineCommand({
  name: 'npm run start:node --',
  component: 'START',
  summary: 'Starts a node with sample data, shows three searches and stays up. A second start reuses the data.',
  flags: FLAGS,
  run: async ({ flags }) => {
    const group = createProcessGroup()
    const timers: NodeJS.Timeout[] = []
    await runProgram(
      {
        start: async (life) => {
          const node = await start(group, flags, timers)
          node.ended.then((code) => {
            if (group.isStopping) return
            say(`The node ended with exit code ${code}: see docs/reasons.md.`)
            // There is no exit code after a signal.
            life.stop({ code: code >= 0 ? code : EXIT.failure, reason: 'the node ended' })
          })
        },
        stop: async () => {
          if (timers.length > 0) say('\nStopping …')
          for (const timer of timers) clearInterval(timer)
          await stopGroup(group)
          if (timers.length > 0) say('Stopped. The data stays; npm run start:node continues with it.')
        },
      },
      { log: createLogger({ level: 'error', format: 'text', component: 'quickstart', id: '' }), drainMs: STOP_MS_MAX },
    )
    return undefined
  },
})

async function start(group: ProcessGroup, flags: Flags, timers: NodeJS.Timeout[]): Promise<RunningNode> {
  const layout = layoutOf(flags.dir)
  const today = dayOf(Date.now())
  const state = readState(layout) ?? (await firstData(group, layout, flags, today))
  sayWhatIsThere(layout, { given: flags, usual: DEFAULTS }, state, today)

  const tcpPort = await chosenPort('TCP', flags.tcpPort)
  const apiPort = await chosenPort('HTTP', flags.apiPort, [tcpPort])
  const startedMs = performance.now()
  const node = await startNode(group, nodeArguments(layout, { tcpPort, apiPort, today }), layout.log)
  say(`Serving after ${seconds(performance.now() - startedMs)}.`)

  const address = { host: HOST, port: node.tcpPort, deadlineMs: ANSWER_MS_MAX }
  const client = await connect(address)
  const current = await withNewDays({ group, layout, client }, state, today)
  await showSearches(client, today)
  await client.close()
  say(goOn(layout, node))
  timers.push(eachNewDay(group, layout, () => connect(address), current))
  return node
}

async function firstData(group: ProcessGroup, layout: Layout, flags: Flags, today: number): Promise<State> {
  const { packages, days, seed } = flags
  say(`Making sample data: ${count(packages, 'package')} of hotels and apartments in the Alps …`)
  return await makeData(group, layout, { packages, days, seed }, today)
}

async function chosenPort(what: string, wanted: number, others: readonly number[] = []): Promise<number> {
  // The node chooses, and prints it.
  if (wanted === 0) return 0
  const port = await freePort(HOST, wanted, others)
  if (port !== wanted) say(`Port ${wanted} is taken: ${what} is on ${port}.`)
  return port
}

function nodeArguments(
  layout: Layout,
  { tcpPort, apiPort, today }: { tcpPort: number; apiPort: number; today: number },
): string[] {
  const ports = ['--tcp-port', String(tcpPort), '--api-port', String(apiPort)]
  const files = ['--config', layout.config, '--codecs', layout.codecs, '--data-dir', layout.data]
  // A sample may be unused for a year; expired days can be dropped.
  return [...files, ...ports, '--shard-id', SHARD_ID, '--node-id', NODE_ID, '--accept-date', formatDay(today)]
}

async function showSearches(client: VacancyClient, today: number): Promise<void> {
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
}

function goOn(layout: Layout, node: RunningNode): string {
  const port = node.tcpPort === DEFAULTS.tcpPort ? '' : ` --port ${node.tcpPort}`
  return `
Connect   TCP  ${HOST}:${node.tcpPort}   clients: docs/integrators.md
          HTTP http://${HOST}:${node.apiPort}/status, /ready, /metrics: docs/operators.md
Query     npx vacancy query segments${port}
          npx vacancy query search --segment tyrol --room-type double --area kitzbuehel --from +7 --nights 2 --limit 10${port}
          npx vacancy query send SEARCHPROP segment=valais area=zermatt stars=5${port}
Files     ${resolve(layout.dir)}   the log of the node is in node.log
Stop      Ctrl-C. A second npm run start:node continues with this data.`
}

await runCommand(startCommand, process.argv.slice(2))
