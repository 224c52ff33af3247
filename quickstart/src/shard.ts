/**
 * `npm start`: registry, resolver, three voters and a learner with the sample, control plane and console, on this machine;
 * stays up, reports changes, and restarts killed programs. `npm run start:shard` leaves the console out.
 */

import { writeFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { tableOf } from '@vacancy/cli/table'
import { type ClientOptions, connect, VacancyCallError, type VacancyClient } from '@vacancy/client'
import { dayOf, EXIT, formatDay, VacancyError } from '@vacancy/shared'
import {
  count,
  createLogger,
  defineCommand,
  type FlagValues,
  runCommand,
  runProgram,
  tableLines,
} from '@vacancy/shared/node'
import type { RequestFields } from '@vacancy/shared/wire'
import { makeCertificates, makeTokens } from './certificates.ts'
import {
  createProcessGroup,
  freePort,
  howEnded,
  killGroup,
  lookAtPort,
  type ProcessGroup,
  QUEUE_SAMPLE,
  stopGroup,
  VACANCY,
} from './launch.ts'
import {
  BLOCKS_TRIED_MAX,
  CONSOLE_PORT,
  controlArguments,
  DEFAULTS,
  HOST,
  listenersOf,
  nodeArguments,
  type Place,
  type Places,
  placesOf,
  registryArguments,
  resolverArguments,
  resolverTable,
  SHARD,
  SHARD_NODES,
  type ShardLayout,
  type State,
  sampleArguments,
  shardLayoutOf,
} from './layout.ts'
import { eachNewDay, withNewDays } from './new-days.ts'
import { claim, release, writeProcesses } from './processes.ts'
import { makeData, readState } from './sample-data.ts'
import { say, sayWhatIsThere, seconds } from './say.ts'
import { shardSearch } from './searches.ts'
import { isServing, leaderOf, lookAt, type Seen, stateOf } from './shard-view.ts'
import { makeSampleStays } from './stays-sample.ts'
import { type Supervised, superviseProgram, type Tell } from './supervise.ts'

const ANSWER_MS_MAX = 30_000
const LOOK_MS = 500
/** After this time a shard with a leader is ready, although some programs are missing. */
const READY_MS_MAX = 60_000
/** After this time a shard without a leader is stopped. */
const LEADER_MS_MAX = 180_000
/** One after the other, each within the 20 s that a program may take. */
const STOP_MS_MAX = 150_000
const REGISTRY = 'registry'
const RESOLVER = 'resolver'
const CONTROL = 'control-plane'
const QUEUE_JOBS = 'queue-sample'

const FLAGS = {
  dir: { type: 'text', value: 'DIR', default: SHARD.dir, summary: 'Data folder, created if absent.' },
  packages: {
    type: 'integer',
    min: 1,
    max: 15_000_000,
    default: SHARD.packages,
    summary: 'Daily packages of a new sample; each of the four nodes holds all.',
  },
  days: { type: 'integer', min: 1, max: 365, default: DEFAULTS.days, summary: 'Nights on sale of a new sample.' },
  seed: {
    type: 'integer',
    min: 0,
    max: 4_294_967_295,
    default: DEFAULTS.seed,
    summary: 'Seed of the random sample data.',
  },
  block: {
    type: 'integer',
    min: 0,
    max: 200,
    default: 1,
    summary: 'The nodes use addresses from 127.0.N.1; if these are taken, the next N and other ports.',
  },
  'one-address': {
    type: 'boolean',
    summary: 'All on 127.0.0.1 with different ports; the default on machines without other loopback addresses.',
  },
  'console-port': {
    type: 'integer',
    min: 0,
    max: 65_535,
    default: CONSOLE_PORT,
    summary: 'Port of the console on 127.0.0.1; the next free one when it is taken, any when 0.',
  },
  'no-sample': {
    type: 'boolean',
    summary: 'No sample stays, and a job queue without sample topics, producers and workers.',
  },
  'no-console': { type: 'boolean', summary: 'The shard alone, without control plane and console.' },
  'no-restart': { type: 'boolean', summary: 'Ended programs are not restarted; the command to start them is printed.' },
} as const

type Flags = FlagValues<typeof FLAGS>

/** What runs, and what is known of it. */
type Shard = {
  readonly group: ProcessGroup
  readonly layout: ShardLayout
  readonly programs: Map<string, Supervised>
  readonly timers: NodeJS.Timeout[]
  places: Places
  seen: readonly Seen[]
  /** The last reported state of each node. */
  readonly reported: Map<string, string>
  /** A program that no restart helps, while the shard is being started. */
  failed: VacancyError | undefined
  isUp: boolean
}

const shardCommand = defineCommand({
  name: 'npm start --',
  component: 'START_SHARD',
  summary:
    'Starts three voters and a learner with sample data, registry, resolver, control plane and console, and stays up. A second start reuses the data.',
  flags: FLAGS,
  run: async ({ flags }) => {
    const shard: Shard = {
      group: createProcessGroup(),
      layout: shardLayoutOf(flags.dir),
      programs: new Map(),
      timers: [],
      places: placesOf(SHARD_NODES, { block: flags.block, attempt: 0, isOneAddress: flags.oneAddress }),
      seen: [],
      reported: new Map(),
      failed: undefined,
      isUp: false,
    }
    // After a second stop signal this process exits at once. The programs do not receive Ctrl-C and must not survive
    // it.
    process.on('exit', () => killGroup(shard.group))
    let hangUp = () => {}
    // The output is no longer read.
    process.stdout.on('error', () => hangUp())
    await runProgram(
      {
        start: async (life) => {
          // Without a terminal the process could not be seen or stopped.
          hangUp = () => life.stop({ code: EXIT.ok, reason: 'the terminal was closed' })
          claim(shard.layout.processes)
          await start(shard, flags, life.stopping)
        },
        stop: async () => await stop(shard),
        reload: () => hangUp(),
      },
      { log: createLogger({ level: 'error', format: 'text', component: 'quickstart', id: '' }), drainMs: STOP_MS_MAX },
    )
    return undefined
  },
})

async function start(shard: Shard, flags: Flags, stopping: AbortSignal): Promise<void> {
  const { group, layout } = shard
  const today = dayOf(Date.now())
  const state = readState(layout) ?? (await firstData(shard, flags, today))
  sayWhatIsThere(layout, { given: flags, usual: { ...DEFAULTS, packages: SHARD.packages } }, state, today)
  const made = await makeCertificates(group, layout, SHARD_NODES, Date.now())
  if (made > 0) say(`Created an authority and ${count(made, 'certificate')}: nodes use mutual TLS with each other.`)
  makeTokens(layout)

  shard.places = await freePlaces(flags)
  writeFileSync(layout.table, resolverTable(shard.places))
  const startedMs = performance.now()
  await startPrograms(shard, flags, today)
  const consoleUrl = flags.noConsole ? undefined : await startConsole(shard, flags)
  await followStart(shard, stopping)
  const leader = leaderOf(shard.seen)
  say(`Serving after ${seconds(performance.now() - startedMs)}; ${leader?.node} leads.`)

  const current = await toppedUp(shard, state, today)
  shard.isUp = true
  await showNodes(shard, today)
  const staysOf = flags.noSample ? '' : await addStays(shard, today)
  say(goOn(shard, staysOf))
  if (consoleUrl !== undefined) say(`Open      ${consoleUrl}\n`)
  shard.timers.push(
    eachNewDay(group, layout, () => openLeader(shard), current),
    setInterval(() => follow(shard), LOOK_MS),
  )
}

async function firstData({ group, layout }: Shard, { packages, days, seed }: Flags, today: number): Promise<State> {
  say(`Making sample data: ${count(packages, 'package')} of hotels and apartments in the Alps …`)
  const state = await makeData(group, layout, { packages, days, seed }, today)
  const others = SHARD_NODES.filter((node) => !SHARD.seeded.some((seeded) => seeded === node))
  say(
    `${SHARD.seeded.join(' and ')}, a majority of the voters, have the snapshot; ${others.join(' and ')} download it.`,
  )
  return state
}

/** The first free addresses. Taken ones are reported. */
async function freePlaces({ block, oneAddress }: Flags): Promise<Places> {
  let isOneAddress = oneAddress
  for (let attempt = 0; attempt < BLOCKS_TRIED_MAX; attempt++) {
    const places = placesOf(SHARD_NODES, { block, attempt, isOneAddress })
    const looks = await Promise.all(
      listenersOf(places).map(async ({ host, port }) => ({ at: `${host}:${port}`, is: await lookAtPort(host, port) })),
    )
    if (looks.some(({ is }) => is === 'no address') && !isOneAddress) {
      say('This machine has only one loopback address: the nodes share it with different ports.')
      isOneAddress = true
      attempt--
      continue
    }
    const taken = looks.find(({ is }) => is !== 'free')
    if (taken === undefined) return places
    say(`${taken.at} is taken: trying other addresses.`)
  }
  throw new VacancyError('failure', {
    reason: `${BLOCKS_TRIED_MAX} address blocks are taken: stop the programs that use them, or choose another --block`,
  })
}

async function startPrograms(shard: Shard, flags: Flags, today: number): Promise<void> {
  const { layout, places } = shard
  const [registry, resolver] = await Promise.all([
    run(shard, flags, REGISTRY, registryArguments({ layout, places })).serving,
    run(shard, flags, RESOLVER, resolverArguments({ layout, places })).serving,
  ])
  say(`registry  ${registry}`)
  say(`resolver  ${resolver}`)
  for (const node of SHARD_NODES) {
    run(shard, flags, node, nodeArguments(node, { layout, places, today: formatDay(today) }))
  }
}

function run(shard: Shard, flags: Flags, name: string, args: readonly string[], entry = VACANCY): Supervised {
  const { group, layout, programs } = shard
  const program = { name, args: [entry, ...args], log: layout.logOf(name) }
  const supervised = superviseProgram(group, program, { tell: teller(shard), restarts: !flags.noRestart })
  programs.set(name, supervised)
  noteProcesses(shard)
  return supervised
}

/** @returns the link that opens the console, signed in */
async function startConsole(shard: Shard, flags: Flags): Promise<string> {
  const port = await freePort(HOST, flags.consolePort)
  if (flags.consolePort !== 0 && port !== flags.consolePort)
    say(`Port ${flags.consolePort} is taken: the console is on ${port}.`)
  shard.places = { ...shard.places, console: { host: HOST, port } }
  const { layout, places } = shard
  const program = run(shard, flags, CONTROL, controlArguments({ layout, places }))
  const [url, link] = await Promise.all([program.serving, program.announced('sign-in')])
  say(`console   ${url}`)
  if (!flags.noSample) run(shard, flags, QUEUE_JOBS, sampleArguments({ layout, places: shard.places }), QUEUE_SAMPLE)
  return link
}

/** Reports progress until all programs serve, or, once there is a leader, until the timeout. */
async function followStart(shard: Shard, stopping: AbortSignal): Promise<void> {
  const startedMs = performance.now()
  while (!stopping.aborted) {
    await look(shard)
    if (shard.failed) throw shard.failed
    if (shard.seen.every(isServing) && leaderOf(shard.seen)) return
    const passedMs = performance.now() - startedMs
    if (passedMs > READY_MS_MAX && leaderOf(shard.seen)) return
    if (passedMs > LEADER_MS_MAX) throw new VacancyError('failure', { reason: withoutLeader(shard) })
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
  throw new VacancyError('failure', { reason: 'stopped on request' })
}

function withoutLeader({ seen, layout }: Shard): string {
  const lines = seen.map((each) => `  ${each.node}  ${stateOf(each)}; its log is ${layout.logOf(each.node)}`)
  return [`no leader after ${LEADER_MS_MAX / 1000} s`, ...lines].join('\n')
}

/** Polls all nodes and reports changes that last longer than half a second. */
async function look(shard: Shard): Promise<void> {
  const { group, places, programs, reported } = shard
  const before = new Map(shard.seen.map((each) => [each.node, stateOf(each)]))
  const seen = await lookAt(places.nodes)
  shard.seen = seen
  if (group.isStopping) return
  for (const each of seen) {
    const { node } = each
    const state = stateOf(each)
    const pid = programs.get(node)?.pid()
    const lasts = isServing(each) || before.get(node) === state
    // The end of a program was already reported.
    if (pid === undefined || !lasts || reported.get(node) === state) continue
    reported.set(node, state)
    say(`${node}  ${state}${each.health === 'active_leader' ? ` in term ${each.info?.term}, process ${pid}` : ''}`)
  }
}

let isLooking = false
/** Polls continuously, without overlapping polls. */
async function follow(shard: Shard): Promise<void> {
  if (isLooking || shard.group.isStopping) return
  isLooking = true
  await look(shard)
  isLooking = false
}

function teller(shard: Shard): Tell {
  const { layout } = shard
  const known = new Set<string>()
  return {
    started(name) {
      noteProcesses(shard)
      if (known.has(name)) say(`${name}  started again, process ${shard.programs.get(name)?.pid()}`)
      known.add(name)
    },
    ended(name, { end, againMs, logged }) {
      noteProcesses(shard)
      shard.reported.delete(name)
      say(`${name}  ${howEnded(end)}; ${effectOn(shard, name)}`)
      if (againMs !== undefined) return say(`${name}  restarts in ${againMs / 1000} s`)
      for (const line of logged) say(`  ${line}`)
      say(`${name}  stays down; docs/reasons.md explains exit codes. Its log is ${layout.logOf(name)}. To start it:`)
      say(`  ${commandOf(shard, name)}`)
      if (!shard.isUp) shard.failed ??= new VacancyError('failure', { reason: `${name} ${howEnded(end)}` })
    },
  }
}

function effectOn({ programs }: Shard, name: string): string {
  if ([REGISTRY, RESOLVER, CONTROL, QUEUE_JOBS].includes(name)) return 'the shard continues without it'
  const voters = SHARD.voters.filter((voter) => programs.get(voter)?.pid() !== undefined).length
  if (voters * 2 > SHARD.voters.length) return `${voters} of ${SHARD.voters.length} voters are up, the shard continues`
  return `${voters} of ${SHARD.voters.length} voters are up: no majority, so writes wait until one more is back`
}

function commandOf({ layout, places }: Shard, name: string): string {
  const today = formatDay(dayOf(Date.now()))
  if (name === REGISTRY) return ['npx', 'vacancy', ...registryArguments({ layout, places })].join(' ')
  if (name === RESOLVER) return ['npx', 'vacancy', ...resolverArguments({ layout, places })].join(' ')
  if (name === CONTROL) return ['npx', 'vacancy', ...controlArguments({ layout, places })].join(' ')
  if (name === QUEUE_JOBS) return ['node', QUEUE_SAMPLE, ...sampleArguments({ layout, places })].join(' ')
  return ['npx', 'vacancy', ...nodeArguments(name, { layout, places, today })].join(' ')
}

function openLeader({ seen, places }: Shard): Promise<VacancyClient> {
  const leader = leaderOf(seen)
  if (leader === undefined) throw new VacancyError('failure', { reason: 'there is currently no leader' })
  return connect(addressOf(places.nodes.get(leader.node) as Place))
}

function addressOf({ host, tcpPort }: Place): ClientOptions {
  return { host, port: tcpPort, deadlineMs: ANSWER_MS_MAX }
}

async function toppedUp(shard: Shard, state: State, today: number): Promise<State> {
  const { group, layout } = shard
  const client = await openLeader(shard)
  const current = await withNewDays({ group, layout, client }, state, today)
  await client.close()
  return current
}

/** Every node with its addresses, and the same search on each. */
async function showNodes({ seen, places }: Shard, today: number): Promise<void> {
  const search = shardSearch(today)
  const rows = await Promise.all(
    seen.map(async (each) => {
      const { host, tcpPort, apiPort } = places.nodes.get(each.node) as Place
      const role = each.info?.members.voters.includes(each.node) ? 'voter' : 'learner'
      const does = each.health === 'active_leader' ? 'leader' : role
      const found = isServing(each) ? await foundBy(places.nodes.get(each.node) as Place, search.fields) : stateOf(each)
      return [each.node, does, `${host}:${tcpPort}`, `http://${host}:${apiPort}`, found]
    }),
  )
  say(`\n${search.title}, on each node:\n`)
  const columns = ['node', 'role', 'TCP', 'HTTP', 'answers']
  for (const line of tableLines({ columns, rows, counted: '' })) say(`   ${line}`)
}

/** @returns a property that has stays; '' for none */
async function addStays(shard: Shard, today: number): Promise<string> {
  const client = await openLeader(shard)
  try {
    const { booked, held, property, refusal } = await makeSampleStays(client, today)
    const why = booked === 0 ? ` (${refusal})` : ''
    say(`\nStays of the sample: ${booked} booked, ${held} on hold for a day${why}.`)
    return property
  } catch (error) {
    // A leader that steps down just now costs the sample, not the start.
    if (!(error instanceof VacancyCallError)) throw error
    say(`\nThere are no sample stays: ${error.code} ${error.message}`)
    return ''
  } finally {
    await client.close()
  }
}

async function foundBy(place: Place, fields: RequestFields<'SEARCHAVAIL'>): Promise<string> {
  const client = await connect({ ...addressOf(place), retry: false })
  try {
    return tableOf(await client.send('SEARCHAVAIL', fields)).counted
  } catch (error) {
    if (error instanceof VacancyCallError) return `${error.code} ${error.message}`
    throw error
  } finally {
    await client.close()
  }
}

function goOn(shard: Shard, staysOf: string): string {
  const { layout, places, seen, programs } = shard
  const leader = leaderOf(seen)?.node ?? SHARD.voters[0]
  const target = SHARD.voters.find((voter) => voter !== leader) ?? leader
  const tcp = ({ host, tcpPort }: Place) => `--host ${host} --port ${tcpPort}`
  const leading = places.nodes.get(leader) as Place
  const learner = places.nodes.get(SHARD.learner) as Place
  const api = `--node ${learner.host}:${learner.apiPort}`
  const token = `--token-file ${pathOf(layout.tokenOf('admin'))}`
  const night = `propertyId=alp_000001 roomType=double date=${formatDay(dayOf(Date.now()) + 7)}`
  const stays =
    staysOf === '' ? '' : `Stays     npx vacancy query send LISTSTAYS propertyId=${staysOf} ${tcp(learner)}\n`
  return `
Query     npx vacancy query segments ${tcp(learner)}
${stays}Write     npx vacancy query send SETROOMPKG ${night} availability=3 finalPrice=90 ${tcp(leading)}
Look      npx vacancy cluster info ${api}
Transfer  npx vacancy cluster transfer ${target} --wait ${api} ${token}
Promote   npx vacancy cluster promote ${SHARD.learner} --wait ${api} ${token}
${jobsLine(shard)}Kill      kill -9 ${programs.get(leader)?.pid()}   (${leader}, the leader; any single node may fail)
Files     ${resolve(layout.dir)}   logs beside the data; processes in ${relative(layout.dir, layout.processes)}
          the admin token is in ${pathOf(layout.tokenOf('admin'))}; see docs/clusters.md for its other uses
Stop      Ctrl-C. A second start continues with this data.
`
}

/** Nothing without a console, which serves the queue. */
function jobsLine({ layout, places }: Shard): string {
  if (places.console === undefined) return ''
  const { host, port } = places.console
  const submit = `npx vacancy queue submit hotel-sync '{"property":"alp_000001"}'`
  return `Jobs      ${submit} --url http://${host}:${port} --token-file ${pathOf(layout.tokenOf('producer'))}\n`
}

/** The shortest path from the current folder. */
function pathOf(file: string): string {
  const path = relative('.', file)
  return path.startsWith('..') ? resolve(file) : path
}

function noteProcesses({ layout: { processes }, programs }: Shard): void {
  const running = [...programs.values()].flatMap(({ name, pid }) => (pid() === undefined ? [] : [[name, pid()]]))
  writeProcesses(processes, Object.fromEntries(running))
}

/**
 * Learner and followers before the leader, which then has no transfer target; then the services they deregister from.
 */
async function stop({ group, programs, timers, seen, layout, isUp }: Shard): Promise<void> {
  for (const timer of timers) clearInterval(timer)
  group.isStopping = true
  if (programs.size > 0) say('\nStopping …')
  const leader = leaderOf(seen)?.node
  const rank = ({ name }: Supervised) =>
    [QUEUE_JOBS, CONTROL, SHARD.learner, undefined, leader, RESOLVER, REGISTRY].indexOf(name)
  const placeOf = (program: Supervised) => (rank(program) === -1 ? 3 : rank(program))
  const inOrder = [...programs.values()].sort((a, b) => placeOf(a) - placeOf(b))
  for (const program of inOrder) await program.stop()
  await stopGroup(group)
  release(layout.processes)
  if (isUp) say('Stopped. The data stays; the next start continues with it.')
}

await runCommand(shardCommand, process.argv.slice(2))
