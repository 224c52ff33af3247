/** The subcommands of `vacancy quickstart`. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { EXIT, groupDigits, VacancyError } from '@vacancy/shared'
import {
  type Command,
  choice,
  count,
  defineCommand,
  isRunning,
  named,
  runCommands,
  tableLines,
  whole,
} from '@vacancy/shared/node'
import { lastLines } from '../launch.ts'
import { say } from '../say.ts'
import { ask } from './ask.ts'
import { composeFile } from './compose.ts'
import { type PlatformStatus, request } from './control.ts'
import { filesOf, hasData, type PlatformFiles, type Running, readRunning, removeData } from './files.ts'
import { LEVELS, type Level, NODES_MAX, SHARDS_MAX, type Spec, shardsOf } from './plan.ts'
import { type Query, sampleQueries } from './queries.ts'
import { querySample } from './sample.ts'
import { up } from './up.ts'

/** Not `quickstart`, which in a clone is the folder of this code. */
const DIR = './quickstart-platform'
const CONSOLE_PORT = 8100
const STOP_MS_MAX = 160_000
const POLL_MS = 100
/** A follower may be this far behind the write that a search is to find. */
const FOLLOWER_MS_MAX = 5_000
const MEBIBYTE = 1024 ** 2
const LINES = 20

const DIR_FLAG = { dir: { ...named('DIR'), default: DIR, summary: 'Folder of the platform.' } } as const

const SHAPE_FLAGS = {
  ...DIR_FLAG,
  level: {
    ...choice(LEVELS, 'full'),
    summary:
      'cluster: registry, resolver and nodes; each further level adds bridges, zone routers, an edge router, an HTTP proxy.',
  },
  shards: { ...whole(2, 1, SHARDS_MAX), summary: 'Shards, each with its own segments.' },
  zones: { ...whole(2, 1, SHARDS_MAX), summary: 'Zones; at most one per shard is used.' },
  ha: {
    type: 'boolean',
    summary:
      'Two bridges per shard, two zone routers per zone, two edge routers and proxies; with etcd two registries.',
  },
  'etcd-endpoints': {
    type: 'list',
    value: 'URLS',
    default: [],
    summary:
      'An etcd of yours that keeps the state of the registry, http://a:2379,http://b:2379. down leaves it there.',
  },
  'nodes-per-shard': { ...whole(3, 1, NODES_MAX), summary: 'Voters of each shard.' },
  days: { ...whole(10, 1, 365), summary: 'Days on sale from today (UTC).' },
  seed: { ...whole(1, 0, 4_294_967_295), summary: 'Seed of the sample data.' },
} as const

const UP_FLAGS = {
  ...SHAPE_FLAGS,
  set: {
    type: 'list',
    value: 'NAME.FLAG=V',
    default: [],
    summary:
      'Flags of components: node, bridge, router, proxy … or the name of a process; e.g. bridge.reads=any. May be repeated.',
  },
  console: { type: 'boolean', summary: 'Also control plane, console and job queue.' },
  'console-port': {
    ...whole(CONSOLE_PORT, 0, 65_535),
    summary: 'Port of the console; the next free one when it is taken.',
  },
  network: { ...whole(77, 1, 250), summary: 'Processes listen on addresses of 127.N.0.0 and the next two networks.' },
  'port-offset': { ...whole(0, 0, 40_000), summary: 'Added to each published port.' },
  'one-address': {
    type: 'boolean',
    summary: 'All on 127.0.0.1 with the published ports; the default on machines without other loopback addresses.',
  },
  'order-seed': {
    type: 'integer',
    min: 0,
    max: 4_294_967_295,
    summary: 'Starts the processes in a random order from this seed, to show that any order works.',
  },
} as const

function specOf(flags: {
  readonly level: string
  readonly shards: number
  readonly zones: number
  readonly ha: boolean
  readonly nodesPerShard: number
  readonly etcdEndpoints: readonly string[]
}): Spec {
  const { level, shards, zones, ha, nodesPerShard } = flags
  const etcdEndpoints = flags.etcdEndpoints.flatMap((each) => each.split(',')).filter((each) => each !== '')
  const shape = { shards, zones: Math.min(zones, shards), nodesPerShard }
  return { ...shape, level: level as Level, ha, etcdEndpoints, network: 77, portOffset: 0, isOneAddress: false }
}

const upCommand = defineCommand({
  name: 'vacancy quickstart up',
  component: 'QUICKSTART_UP',
  summary: 'Starts a platform of several shards as processes on this machine, and stays until Ctrl-C.',
  flags: UP_FLAGS,
  run: async ({ flags }) => {
    const { dir, days, seed, set, console: hasConsole, consolePort, network, portOffset, oneAddress, orderSeed } = flags
    const spec = { ...specOf(flags), network, portOffset, isOneAddress: oneAddress }
    await up({ dir, days, seed, spec, settings: set, consolePort: hasConsole ? consolePort : undefined, orderSeed })
    return undefined
  },
})

const NOTHING = 'nothing runs in'

function running(dir: string): { files: PlatformFiles; running: Running } {
  const files = filesOf(dir)
  const found = readRunning(files)
  if (found) return { files, running: found }
  throw new VacancyError('failure', { reason: `${NOTHING} ${dir}: vacancy quickstart up --dir ${dir} starts it` })
}

const statusCommand = defineCommand({
  name: 'vacancy quickstart status',
  component: 'QUICKSTART',
  summary: 'Shows each process: its id, whether it is ready or why not, its memory and its address.',
  flags: { ...DIR_FLAG, json: { type: 'boolean', summary: 'One JSON document instead of a table.' } },
  run: async ({ flags }) => {
    const status = await request<PlatformStatus>(running(flags.dir).running, 'GET', '/status')
    const { components } = status
    if (flags.json) say(JSON.stringify(status, null, 2))
    else {
      const rows = components.map(({ name, pid, isReady, text, residentBytes, address }) => {
        const state = isReady ? `ready${text === '' ? '' : `, ${text}`}` : text || 'not ready'
        return [name, pid ?? '', state, residentBytes === null ? '' : Math.round(residentBytes / MEBIBYTE), address]
      })
      const columns = ['process', 'pid', 'state', 'MiB', 'address']
      for (const line of tableLines({ columns, rows, counted: '' })) say(line)
      const bytes = components.reduce((sum, each) => sum + (each.residentBytes ?? 0), 0)
      const up = components.filter(({ isReady }) => isReady).length
      say(`\n${up} of ${components.length} ready, ${groupDigits(Math.round(bytes / MEBIBYTE))} MiB resident`)
    }
    return components.every(({ isReady }) => isReady) ? EXIT.ok : EXIT.failure
  },
})

const queryCommand = defineCommand({
  name: 'vacancy quickstart query',
  component: 'QUICKSTART',
  summary: 'Sends the sample queries in their order and compares each answer with the stated one, or sends one file.',
  flags: DIR_FLAG,
  operands: {
    name: 'FILE',
    min: 0,
    max: 1,
    summary: 'A query as JSON, or the name of a sample query, such as 03-search.',
  },
  run: async ({ flags, operands }) => {
    const { files, running: found } = running(flags.dir)
    const { plan, day } = await request<PlatformStatus>(found, 'GET', '/status')
    const [file] = operands
    if (file !== undefined) {
      const { status, body } = await ask(plan, readQuery(files, file))
      say(JSON.stringify(body, null, 2))
      return status === 200 ? EXIT.ok : EXIT.failure
    }
    let wrong = 0
    for (const each of sampleQueries(await querySample(files, shardsOf(plan)), day)) {
      const sentMs = performance.now()
      const { status, body } = await ask(plan, each.query)
      const ms = performance.now() - sentMs
      let fault = each.check({ status, body })
      // A search may reach a follower that has not applied the write yet.
      while (fault !== '' && performance.now() - sentMs < FOLLOWER_MS_MAX && each.query.command.startsWith('SEARCH')) {
        await new Promise((resolve) => setTimeout(resolve, POLL_MS))
        fault = each.check(await ask(plan, each.query))
      }
      say(
        `${each.name.padEnd(22)} ${fault === '' ? 'as stated' : 'DIFFERENT'}  ${ms.toFixed(1).padStart(6)} ms  ${each.states}`,
      )
      if (fault === '') continue
      wrong++
      say(`  ${fault}`)
    }
    say(wrong === 0 ? '\nAll answers are as stated.' : `\n${count(wrong, 'answer')} not as stated.`)
    return wrong === 0 ? EXIT.ok : EXIT.failure
  },
})

function readQuery({ queries }: PlatformFiles, name: string): Query {
  const inFolder = join(queries, name.endsWith('.json') ? name : `${name}.json`)
  const file = existsSync(name) ? name : inFolder
  try {
    const { command, segment, body } = JSON.parse(readFileSync(file, 'utf8')) as Query
    if (typeof command !== 'string') throw new Error('it has no command')
    return { command, body: body ?? {}, ...(segment !== undefined && { segment }) }
  } catch (cause) {
    throw new VacancyError('usage_error', { reason: `${file}: ${(cause as Error).message}` }, { cause })
  }
}

const logsCommand = defineCommand({
  name: 'vacancy quickstart logs',
  component: 'QUICKSTART',
  summary: 'Prints the last lines of the log of one process, or of each.',
  flags: {
    ...DIR_FLAG,
    lines: { ...whole(LINES, 1, 10_000), summary: 'Lines of each log.' },
  },
  operands: { name: 'NAME', min: 0, max: 1, summary: 'A process, such as node-0-1.' },
  run: async ({ flags, operands }) => {
    const files = filesOf(flags.dir)
    const folder = join(flags.dir, 'logs')
    const names = existsSync(folder)
      ? readdirSync(folder)
          .map((file) => basename(file, '.log'))
          .sort()
      : []
    const [wanted] = operands
    if (wanted !== undefined && !names.includes(wanted)) {
      const known = names.length === 0 ? `there are no logs in ${flags.dir}` : names.join(', ')
      throw new VacancyError('usage_error', { reason: `no log of ${JSON.stringify(wanted)}: ${known}` })
    }
    for (const name of wanted === undefined ? names : [wanted]) {
      for (const line of lastLines(files.logOf(name), 0, { lines: flags.lines, isRaw: true })) {
        say(wanted === undefined ? `${name}  ${line}` : line)
      }
    }
    return EXIT.ok
  },
})

const change = (word: 'kill' | 'restart', summary: string): Command =>
  defineCommand({
    name: `vacancy quickstart ${word}`,
    component: 'QUICKSTART',
    summary,
    flags: DIR_FLAG,
    operands: { name: 'NAME', min: 1, max: 1, summary: 'A process, such as bridge-0; status lists them.' },
    run: async ({ flags, operands: [name = ''] }) => {
      const { text } = await request<{ text: string }>(
        running(flags.dir).running,
        'POST',
        `/${word}/${encodeURIComponent(name)}`,
      )
      say(text)
      return EXIT.ok
    },
  })

const downCommand = defineCommand({
  name: 'vacancy quickstart down',
  component: 'QUICKSTART',
  summary: 'Stops the platform and removes its data.',
  flags: { ...DIR_FLAG, 'keep-data': { type: 'boolean', summary: 'The data stays for the next start.' } },
  run: async ({ flags }) => {
    const files = filesOf(flags.dir)
    const found = readRunning(files)
    const hadData = hasData(files)
    if (found) {
      await request(found, 'POST', '/stop')
      const deadlineMs = performance.now() + STOP_MS_MAX
      while (isRunning(found.pid)) {
        if (performance.now() > deadlineMs) {
          throw new VacancyError('failure', { reason: `process ${found.pid} still runs after ${STOP_MS_MAX / 1000} s` })
        }
        await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      }
    }
    if (hadData && !flags.keepData) removeData(files)
    const data = !hadData
      ? 'there is no data'
      : flags.keepData
        ? `the data stays in ${flags.dir}`
        : 'its data is removed'
    say(`${found ? 'Stopped' : `${NOTHING} ${flags.dir}`}; ${data}.`)
    return EXIT.ok
  },
})

const composeCommand = defineCommand({
  name: 'vacancy quickstart compose',
  component: 'QUICKSTART',
  summary: 'Prepares the data and writes compose.yml, which runs the same platform in containers; starts nothing.',
  flags: SHAPE_FLAGS,
  run: async ({ flags }) => {
    const file = await composeFile({ dir: flags.dir, spec: specOf(flags), days: flags.days, seed: flags.seed })
    say(`${file} is written: docker compose -f ${file} up`)
    return EXIT.ok
  },
})

const sampleJobsCommand = defineCommand({
  name: 'vacancy quickstart sample-jobs',
  component: 'QUICKSTART',
  summary: 'Submits sample jobs to a job queue and works them off until it is stopped; up --console starts it.',
  flags: {},
  operands: {
    name: 'URL PRODUCER-FILE CONSUMER-FILE',
    min: 3,
    max: 3,
    summary: 'The queue, and the files with the token of a producer and of a consumer.',
  },
  run: async ({ operands }) => {
    await (await import('../queue-sample.ts')).sampleJobs(operands)
    return EXIT.ok
  },
})

/** Each subcommand, by its last word. */
export const COMMANDS: readonly Command[] = [
  upCommand,
  statusCommand,
  queryCommand,
  logsCommand,
  change('kill', 'Ends a process at once, like a crash. It stays down until restart.'),
  change('restart', 'Starts a process that ended, or stops and starts one that runs, and waits until it is ready.'),
  downCommand,
  composeCommand,
  sampleJobsCommand,
]

/** The tables of all commands, for what is made from them. */
export const commands = async (): Promise<readonly Command[]> => COMMANDS

/** Runs one subcommand; sets the exit code. */
export async function main([, ...args]: readonly string[]): Promise<void> {
  await runCommands(COMMANDS, args)
}
