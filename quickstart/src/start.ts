/** `npm start`: a node with a sample of a million packages and more, three searches, and how to go on from there. */

import { resolve } from 'node:path'
import { dayOf, EXIT, formatDay } from '@vacancy/shared'
import { createLogger, defineCommand, type FlagValues, runCommand, runProgram } from '@vacancy/shared/node'
import { type Connection, openConnection } from './connection.ts'
import { type Crew, createCrew, freePort, type RunningNode, startNode, stopCrew } from './launch.ts'
import { DEFAULTS, HOST, type Layout, layoutOf, missingDays, NODE_ID, SHARD_ID, type State } from './layout.ts'
import { makeData, readState, topUp } from './sample-data.ts'
import { sampleSearches } from './searches.ts'
import { count, tableLines, tableOf } from './table.ts'

const ANSWER_MS_MAX = 30_000
/** How often a search is repeated for its usual time. */
const REPEATS = 50
const RESULTS_SHOWN = 4
/** How often a quick start that runs on looks whether a new day has begun. */
const DAY_LOOK_MS = 60_000
const PROGRESS_MS = 100
/** A node drains for 10 s, and is ended after 20. */
const STOP_MS_MAX = 25_000

const FLAGS = {
  dir: { type: 'text', value: 'DIR', default: DEFAULTS.dir, summary: 'Folder of the data, made if absent.' },
  packages: {
    type: 'integer',
    min: 1,
    max: 60_000_000,
    default: DEFAULTS.packages,
    summary: 'Daily packages of a new sample.',
  },
  days: { type: 'integer', min: 1, max: 365, default: DEFAULTS.days, summary: 'Nights on sale of a new sample.' },
  seed: { type: 'integer', min: 0, max: 4_294_967_295, default: DEFAULTS.seed, summary: 'Another seed, other values.' },
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
  name: 'npm start --',
  component: 'START',
  summary: 'Starts a node with sample data, shows three searches and stays up. A second start reuses the data.',
  flags: FLAGS,
  run: async ({ flags }) => {
    const crew = createCrew()
    const timers: NodeJS.Timeout[] = []
    await runProgram(
      {
        start: async (life) => {
          const node = await start(crew, flags, timers)
          node.ended.then((code) => {
            if (crew.isStopping) return
            say(`The node ended with exit code ${code}: docs/reasons.md says what that means.`)
            // A signal that ended it leaves no code.
            life.stop({ code: code >= 0 ? code : EXIT.failure, reason: 'the node ended' })
          })
        },
        stop: async () => {
          if (timers.length > 0) say('\nStopping …')
          for (const timer of timers) clearInterval(timer)
          await stopCrew(crew)
          if (timers.length > 0) say('Stopped. The data stays; npm start goes on with it.')
        },
      },
      { log: createLogger({ level: 'error', format: 'text', component: 'quickstart', id: '' }), drainMs: STOP_MS_MAX },
    )
    return undefined
  },
})

async function start(crew: Crew, flags: Flags, timers: NodeJS.Timeout[]): Promise<RunningNode> {
  const layout = layoutOf(flags.dir)
  const today = dayOf(Date.now())
  const state = readState(layout) ?? (await firstData(crew, layout, flags, today))
  sayWhatIsReused(layout, flags, state, today)

  const tcpPort = await chosenPort('TCP', flags.tcpPort)
  const apiPort = await chosenPort('HTTP', flags.apiPort, [tcpPort])
  const startedMs = performance.now()
  const node = await startNode(crew, nodeArguments(layout, { tcpPort, apiPort, today }), layout.log)
  say(`Serving after ${seconds(performance.now() - startedMs)}.`)

  const address = { host: HOST, port: node.tcpPort, timeoutMs: ANSWER_MS_MAX }
  const connection = await openConnection(address)
  const current = await withNewDays({ crew, layout, connection }, state, today)
  await showSearches(connection, today)
  connection.close()
  say(goOn(layout, node))
  timers.push(eachNewDay(crew, layout, address, current))
  return node
}

function sayWhatIsReused(layout: Layout, flags: Flags, state: State, today: number): void {
  say(`${layout.dir}: ${count(state.packages, 'package')}, ${count(state.days, 'night')} from ${formatDay(today)} on.`)
  const isOther = state.packages !== flags.packages || state.days !== flags.days || state.seed !== flags.seed
  const { packages, days, seed } = DEFAULTS
  const isAsked = flags.packages !== packages || flags.days !== days || flags.seed !== seed
  if (isOther && isAsked) say(`It stays as it is: remove ${layout.dir}, or take another --dir, for other data.`)
}

async function firstData(crew: Crew, layout: Layout, flags: Flags, today: number): Promise<State> {
  const { packages, days, seed } = flags
  say(`Making sample data: ${count(packages, 'package')} of hotels and apartments in the Alps …`)
  return await makeData(crew, layout, { packages, days, seed }, today)
}

async function chosenPort(what: string, wanted: number, others: readonly number[] = []): Promise<number> {
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
  // A sample may rest for a year; nothing is lost when its days are over.
  return [...files, ...ports, '--shard-id', SHARD_ID, '--node-id', NODE_ID, '--accept-date', formatDay(today)]
}

async function withNewDays(
  target: { crew: Crew; layout: Layout; connection: Connection },
  state: State,
  today: number,
): Promise<State> {
  const { first, last } = missingDays(state, today)
  if (first > last) return state
  say(`Topping up ${count(last - first + 1, 'day')}, ${formatDay(first)} to ${formatDay(last)} …`)
  const startedMs = performance.now()
  let shownMs = 0
  const result = await topUp(target, state, today, (packages) => {
    if (!process.stderr.isTTY || performance.now() - shownMs < PROGRESS_MS) return
    shownMs = performance.now()
    process.stderr.write(`\r${count(packages, 'package')} written`)
  })
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  const ms = performance.now() - startedMs
  say(`${count(result.written, 'package')} written over TCP in ${seconds(ms)}.`)
  return result.state
}

/** Goes on topping up while it runs: whoever leaves it open over midnight finds the new day. */
function eachNewDay(
  crew: Crew,
  layout: Layout,
  address: Parameters<typeof openConnection>[0],
  first: State,
): NodeJS.Timeout {
  let state = first
  let isBusy = false
  const look = async () => {
    const today = dayOf(Date.now())
    if (isBusy || crew.isStopping || missingDays(state, today).first > missingDays(state, today).last) return
    isBusy = true
    try {
      const connection = await openConnection(address)
      state = await withNewDays({ crew, layout, connection }, state, today)
      connection.close()
    } catch (error) {
      // The node may be stopping; what is missing is written at the next look or start.
      if (!crew.isStopping) say(`The new day is not topped up yet: ${(error as Error).message}`)
    } finally {
      isBusy = false
    }
  }
  return setInterval(look, DAY_LOOK_MS)
}

async function showSearches(connection: Connection, today: number): Promise<void> {
  for (const [index, { title, fields }] of sampleSearches(today).entries()) {
    const times: number[] = []
    let lines: string[] = []
    let counted = ''
    for (let repeat = 0; repeat <= REPEATS; repeat++) {
      const sentMs = performance.now()
      const answer = await connection.send('SEARCHAVAIL', fields)
      times.push(performance.now() - sentMs)
      // The data and the configuration are the user's by now: a search that no longer fits is no reason to end.
      const table = answer.ok ? tableOf(answer.result) : undefined
      counted = answer.ok ? (table?.counted ?? '') : `${answer.code} ${answer.message}`.trim()
      if (table) lines = tableLines(table, RESULTS_SHOWN)
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
Stop      Ctrl-C. A second npm start goes on with this data.`
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

await runCommand(startCommand, process.argv.slice(2))
