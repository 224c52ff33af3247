/** Starts a quick start of any shape: data, processes in their order, new days; then it stays until it is stopped. */

import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect, type VacancyClient } from '@vacancy/client'
import { dayOf, EXIT, formatDay, VacancyError } from '@vacancy/shared'
import { count, createLogger, runProgram } from '@vacancy/shared/node'
import { makeCertificates, makeTokens } from '../certificates.ts'
import { createProcessGroup, freePort, killGroup, lookAtPort, stopGroup } from '../launch.ts'
import { say, seconds } from '../say.ts'
import { serveControl } from './control.ts'
import {
  claimFolder,
  filesOf,
  type PlatformFiles,
  type Running,
  readState,
  type Sample,
  type State,
  writeState,
} from './files.ts'
import {
  type Component,
  HOST,
  type Kind,
  listenersOf,
  ofKind,
  type Plan,
  publicAddress,
  resolverTable,
  type Shape,
  shardsOf,
  startOrder,
  withConsole,
} from './plan.ts'
import {
  follow,
  killComponent,
  leaderNode,
  type Platform,
  restartComponent,
  sayStep,
  startComponent,
  statusOf,
  step,
  stopAll,
  waitReady,
  within,
  withoutLeader,
} from './platform.ts'
import { parseSettings } from './programs.ts'
import { closeForwards, createForwards, type Forwards, publish } from './publish.ts'
import { buildSnapshots, missingDays, writeDays, writeSample } from './sample.ts'

/** All groups of processes stop one after the other; each takes at most 20 s. */
const STOP_MS_MAX = 150_000
/** How often a running quick start looks for a new day, and at the states of its nodes. */
const DAY_LOOK_MS = 60_000
const LOOK_MS = 500
const WRITES_IN_FLIGHT = 512
const ANSWER_MS_MAX = 30_000
const TOKEN_BYTES = 24

export type Start = {
  readonly dir: string
  /** Of a new folder. */
  readonly sample: Sample
  /** Values of a sample without flags: others are ignored for existing data. Undefined: they must be those of the data. */
  readonly usual?: Sample
  /** The settings of the nodes in a new folder. */
  readonly config: string
  /** The processes; a later attempt has other addresses. */
  readonly planOf: (attempt: number, isOneAddress: boolean) => Plan
  readonly attempts?: number
  /** Port of the control plane with console and queue; undefined without it. */
  readonly consolePort?: number | undefined
  /** With producers and workers of sample jobs. */
  readonly hasJobs?: boolean
  /** `--set` of `vacancy quickstart up`. */
  readonly settings?: readonly string[]
  readonly nodeOptions?: string
  /** Ended processes are started again. */
  readonly restarts?: boolean
  /** The states of nodes are reported. */
  readonly follows?: boolean
  /** Of a random order of starts; undefined for one in which each process finds what it needs. */
  readonly orderSeed?: number | undefined
  /** At each start and when a day begins. @param day day number */
  readonly onDay?: (platform: Platform, day: number) => Promise<void>
  /** Shows that it works. @returns what to do next: names and texts, an empty name continues the text before */
  readonly show: (platform: Platform, day: number) => Promise<readonly (readonly [name: string, text: string])[]>
}

type Shell = {
  readonly forwards: Forwards
  readonly timers: NodeJS.Timeout[]
  platform: Platform | undefined
  control: Server | undefined
  release: (() => void) | undefined
}

/** Runs until it is stopped; resolves when everything is up. */
export async function startAndStay(given: Start): Promise<void> {
  const files = filesOf(given.dir)
  const group = createProcessGroup()
  const shell: Shell = {
    forwards: createForwards(),
    timers: [],
    platform: undefined,
    control: undefined,
    release: undefined,
  }
  // After a second stop signal this process exits at once. The processes do not receive Ctrl-C and must not survive it.
  process.on('exit', () => {
    killGroup(group)
    shell.release?.()
  })
  let hangUp = () => {}
  // The output is no longer read.
  process.stdout.on('error', () => hangUp())
  await runProgram(
    {
      start: async (life) => {
        // Without a terminal the processes could not be seen or stopped.
        hangUp = () => life.stop({ code: EXIT.ok, reason: 'the terminal was closed' })
        const stop = () => life.stop({ code: EXIT.ok, reason: 'vacancy quickstart down' })
        await start(shell, given, { files, group, stopping: life.stopping }, stop)
      },
      stop: async () => {
        for (const timer of shell.timers) clearInterval(timer)
        group.isStopping = true
        if (shell.platform && shell.platform.processes.size > 0) {
          say('\nStopping …')
          await stopAll(shell.platform)
        }
        await stopGroup(group)
        closeForwards(shell.forwards)
        shell.control?.close()
        shell.control?.closeAllConnections()
        shell.release?.()
        shell.release = undefined
        if (shell.platform?.isUp) say('Stopped. The data stays; the next start continues with it.')
      },
      reload: () => hangUp(),
    },
    { log: createLogger({ level: 'error', format: 'text', component: 'quickstart', id: '' }), drainMs: STOP_MS_MAX },
  )
}

type Base = Pick<Platform, 'files' | 'group' | 'stopping'>

async function start(shell: Shell, given: Start, base: Base, stop: () => void): Promise<void> {
  const { files } = base
  const startedMs = performance.now()
  const running = await serveAndClaim(shell, files, stop)
  const today = dayOf(Date.now())
  const stored = readState(files)
  const wanted = stateOf(given.planOf(0, false).spec, given.sample, today)
  if (stored) checkState(files, stored, wanted, given.usual)
  const plan = await freePlan(given)
  const platform: Platform = {
    ...base,
    plan,
    settings: parseSettings(given.settings ?? [], { plan, files }),
    nodeOptions: given.nodeOptions ?? '',
    restarts: given.restarts ?? false,
    states: given.follows ? new Map() : undefined,
    running,
    processes: new Map(),
    today: formatDay(today),
    state: stored ?? wanted,
    isUp: false,
  }
  const nodes = [...ofKind(plan, 'node'), ...ofKind(plan, 'standalone')]
  if (stored && !nodes.some(({ name }) => existsSync(files.dataOf(name)))) {
    const reason = `${files.dir} holds data of other nodes than ${nodes[0]?.name}: choose another --dir`
    throw new VacancyError('data_conflict', { reason })
  }
  shell.platform = platform

  mkdirSync(dirname(files.logOf('any')), { recursive: true })
  await prepareData(platform, { isNew: stored === undefined, config: given.config }, today)
  writeFileSync(files.table, resolverTable(plan))
  for (const each of plan.components.flatMap(({ published }) => published)) await publish(shell.forwards, each)
  const link =
    given.orderSeed === undefined ? await startInSteps(platform) : await startInOrder(platform, given.orderSeed)
  if (stored) await topUp(platform, today)
  await given.onDay?.(platform, today)
  const lines = [...(await given.show(platform, today))]
  platform.isUp = true
  say(
    `\nUp after ${seconds(performance.now() - startedMs)}, ${count(platform.processes.size, 'process', 'processes')}.\n`,
  )
  if (link !== undefined) lines.push(['', ''], ['Open', link])
  for (const [name, text] of lines) say(`${name.padEnd(10)}${text}`.trimEnd())
  shell.timers.push(setInterval(() => onNewDay(platform, given), DAY_LOOK_MS))
  if (given.follows) shell.timers.push(setInterval(() => follow(platform), LOOK_MS))
}

/** The control interface answers from the beginning, so that a start can be watched and stopped from elsewhere. */
async function serveAndClaim(shell: Shell, files: PlatformFiles, stop: () => void): Promise<Platform['running']> {
  const up = (): Platform => {
    if (shell.platform) return shell.platform
    throw new VacancyError('failure', { reason: 'it is starting' })
  }
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  const { server, port } = await serveControl(
    {
      status: async () => ({ plan: up().plan, day: dayOf(Date.now()), components: await statusOf(up()) }),
      kill: async (name) => await killComponent(up(), name),
      restart: async (name) => await restartComponent(up(), name),
      stop,
    },
    token,
  )
  shell.control = server
  const running: Omit<Running, 'processes'> = { pid: process.pid, port, token }
  shell.release = claimFolder(files, { ...running, processes: {} })
  return running
}

/** The state of new data. */
export function stateOf({ shards, zones, nodesPerShard }: Shape, sample: Sample, today: number): State {
  return { shards, zones, nodesPerShard, ...sample, lastDay: today + sample.days - 1 }
}

/**
 * Compares the data of a folder with the wanted ones.
 *
 * @throws VacancyError data_conflict when they must be equal and are not
 */
export function checkState(
  { dir }: Pick<PlatformFiles, 'dir'>,
  state: State,
  wanted: Omit<State, 'lastDay'>,
  usual?: Sample,
): void {
  const flags = {
    shards: 'shards',
    zones: 'zones',
    nodesPerShard: 'nodes-per-shard',
    seed: 'seed',
    days: 'days',
  } as const
  if (usual) {
    const differs = (a: Sample, b: Sample) => a.packages !== b.packages || a.days !== b.days || a.seed !== b.seed
    if (differs(wanted, state) && differs(wanted, usual))
      say(`Existing data is reused: remove ${dir}, or choose another --dir, for different data.`)
    return
  }
  const other = (Object.keys(flags) as (keyof typeof flags)[]).filter((key) => state[key] !== wanted[key])
  if (other.length === 0) return
  const values = other.map((key) => `--${flags[key]} ${state[key]}`).join(' ')
  const reason = `${dir} holds data with ${values}: use these flags, or vacancy quickstart down, or another --dir`
  throw new VacancyError('data_conflict', { reason })
}

/**
 * Holds a port beside those of the plan until this process ends: a second start that looks meanwhile, before anything
 * listens, takes other addresses.
 *
 * @returns the held port if another start has it
 */
function claimAddresses(listeners: ReturnType<typeof listenersOf>): Promise<string[]> {
  const [{ host } = { host: HOST }] = listeners
  const port = Math.max(...listeners.filter((each) => each.host === host).map((each) => each.port)) + 1
  return new Promise((resolve) => {
    const claim = createServer((socket) => socket.destroy()).unref()
    claim.once('error', () => resolve([`${host}:${port}, for a start on these addresses`]))
    claim.listen({ host, port, exclusive: true }, () => resolve([]))
  })
}

/** @throws VacancyError port_taken that names every port in use, before anything starts */
async function freePlan({ planOf, attempts = 1, consolePort, hasJobs = false }: Start): Promise<Plan> {
  let isOneAddress = false
  for (let attempt = 0; ; ) {
    const plan = planOf(attempt, isOneAddress)
    const looks = await Promise.all(
      listenersOf(plan).map(async ({ host, port, who }) => ({ host, port, who, is: await lookAtPort(host, port) })),
    )
    if (looks.some(({ is }) => is === 'no address') && !isOneAddress) {
      say('This machine has only one loopback address: all processes share it, with different ports.')
      isOneAddress = true
      continue
    }
    const taken = looks.filter(({ is }) => is !== 'free').map(({ host, port, who }) => `${host}:${port}, for ${who}`)
    // Ports that a person chose are not next to one that must be free.
    if (taken.length === 0 && attempts > 1) taken.push(...(await claimAddresses(listenersOf(plan))))
    if (taken.length === 0) {
      if (consolePort === undefined) return plan
      const owner = listenersOf(plan).find(({ host, port }) => host === HOST && port === consolePort)?.who
      const port = await freePort(HOST, owner === undefined ? consolePort : 0)
      const why = owner === undefined ? 'taken' : `for ${owner}`
      if (consolePort !== 0 && port !== consolePort) say(`Port ${consolePort} is ${why}: the console is on ${port}.`)
      return withConsole(plan, port, hasJobs)
    }
    attempt++
    if (attempt < attempts) {
      say(`${taken[0]?.split(',')[0]} is taken: trying other addresses.`)
      continue
    }
    const { network, portOffset } = plan.spec
    const others =
      attempts > 1 ? '--block' : `--network ${1 + ((network + 9) % 240)} --port-offset ${portOffset + 10_000}`
    const reason = `in use, and nothing was started. Stop what uses them, or choose others: ${others}`
    throw new VacancyError('port_taken', { address: taken.join('\n  '), reason })
  }
}

/** Sample and snapshots; certificates and tokens at the same time. */
async function prepareData(
  platform: Platform,
  { isNew, config }: { isNew: boolean; config: string },
  today: number,
): Promise<void> {
  const { files, group, state, plan } = platform
  const { packages = 0, days, lastDay } = state
  const secrets = makeSecrets(platform)
  if (isNew) {
    say(`Making sample data: ${count(packages, 'package')} of hotels and apartments in the Alps …`)
    await step('data', async () => {
      await writeSample(group, files, plan, { state, today, config })
      const shards = shardsOf(plan).length > 1 ? `${count(shardsOf(plan).length, 'shard')}, ` : ''
      return `${shards}${count(packages, 'package')}, ${formatDay(today)} to ${formatDay(lastDay)}`
    })
    await step('snapshots', async () => {
      await buildSnapshots(group, files, plan, [today, lastDay])
      const nodes = [...ofKind(plan, 'node'), ...ofKind(plan, 'standalone')]
      const empty = nodes.filter(({ isEmpty }) => isEmpty).map(({ name }) => name)
      const download = empty.length === 0 ? '' : `, a majority of the voters; ${empty.join(' and ')} download it`
      return `${count(shardsOf(plan).length, 'snapshot')}, copied to ${count(nodes.length - empty.length, 'node')}${download}`
    })
  }
  await secrets
  if (isNew) writeState(files, state)
  else {
    const size = `${packages > 0 ? `${count(packages, 'package')}, ` : ''}${count(days, 'night')}`
    sayStep('data', `${files.dir}: ${size} from ${formatDay(today)}, continued`)
  }
}

async function makeSecrets({ group, files, plan }: Platform): Promise<void> {
  const nodes = ofKind(plan, 'node').map(({ name }) => name)
  if (nodes.length === 0) return
  const startedMs = performance.now()
  const made = await makeCertificates(group, files, nodes, Date.now())
  makeTokens(files)
  if (made === 0) return
  sayStep('certificates', `${count(made, 'node')} with mutual TLS (${seconds(performance.now() - startedMs)})`)
}

const STEPS: readonly (readonly [name: string, ...kinds: Kind[]])[] = [
  ['registry', 'registry', 'resolver'],
  ['nodes', 'node', 'standalone'],
  ['bridges', 'bridge'],
  ['zone routers', 'zone-router'],
  ['edge', 'edge-router'],
  ['proxy', 'proxy'],
]

/** @returns the link that opens the console, signed in; undefined without a console */
async function startInSteps(platform: Platform): Promise<string | undefined> {
  const { plan } = platform
  let link: Promise<string | undefined> | undefined
  for (const [name, ...kinds] of STEPS) {
    const components = kinds.flatMap((kind) => ofKind(plan, kind))
    if (components.length === 0) continue
    await step(name, async () => {
      for (const component of components) startComponent(platform, component)
      // It starts while the nodes do. It is awaited below: a failure meanwhile is not unhandled.
      if (name === 'nodes') link = startConsole(platform)
      link?.catch(() => {})
      await waitReady(platform, components)
      if (name !== 'nodes') return components.map((each) => `${each.name} ${addressOf(each)}`).join(', ')
      const leaders = ofKind(plan, 'node').length > 0 ? await waitLeaders(platform) : []
      return [count(components.length, 'node'), ...leaders].join(', ')
    })
  }
  return await link
}

/** In any order: each process waits for what it lacks. */
async function startInOrder(platform: Platform, seed: number): Promise<string | undefined> {
  const kinds = STEPS.flatMap(([, ...each]) => each)
  const order = startOrder(
    platform.plan.components.filter(({ kind }) => kinds.includes(kind)),
    seed,
  )
  const components = order.map(({ component }) => component)
  await step('processes', async () => {
    for (const { component, pauseMs } of order) {
      await sleep(pauseMs, undefined, { signal: platform.stopping })
      startComponent(platform, component)
    }
    return `started as ${components.map(({ name }) => name).join(', ')}`
  })
  await step('ready', async () => {
    await waitReady(platform, components)
    return (await waitLeaders(platform)).join(', ')
  })
  return await startConsole(platform)
}

/** @returns the link that opens the console, signed in; undefined without a console */
async function startConsole(platform: Platform): Promise<string | undefined> {
  const [control] = ofKind(platform.plan, 'control-plane')
  const [jobs] = ofKind(platform.plan, 'queue-sample')
  if (control === undefined) return undefined
  const startedMs = performance.now()
  const program = startComponent(platform, control)
  const [, link] = await Promise.all([program.serving, program.announced('sign-in')])
  if (jobs) startComponent(platform, jobs)
  sayStep(
    'console',
    `http://${addressOf(control)}, with job queue${jobs ? ' and sample jobs' : ''} (${seconds(performance.now() - startedMs)})`,
  )
  return link
}

/** @returns a text per shard */
async function waitLeaders(platform: Platform): Promise<string[]> {
  await within(platform.stopping, async () => (await withoutLeader(platform)).map((shard) => `${shard} has no leader`))
  const shards = shardsOf(platform.plan)
  return await Promise.all(
    shards.map(async (shard) => `${(await leaderNode(platform, shard))?.name ?? 'no node'} leads ${shard}`),
  )
}

function addressOf(component: Component): string {
  const { host, port } = publicAddress(component)
  return `${host}:${port}`
}

/** Connects to the leader of a shard. */
export async function openLeader(platform: Platform, shard: string): Promise<VacancyClient> {
  const leader = await leaderNode(platform, shard)
  if (leader === undefined) throw new VacancyError('failure', { reason: `${shard} currently has no leader` })
  return await connect({ ...leader.main, maxInFlight: WRITES_IN_FLIGHT, deadlineMs: ANSWER_MS_MAX })
}

/** Writes the packages of days that have come on sale since the data was made. */
async function topUp(platform: Platform, today: number): Promise<void> {
  const { first, last } = missingDays(platform.state, today)
  if (first > last) return
  say(`Topping up ${count(last - first + 1, 'day')}, ${formatDay(first)} to ${formatDay(last)} …`)
  await step('new days', async () => {
    const written = await writeDays(platform, today, (shard) => openLeader(platform, shard))
    platform.state = { ...platform.state, lastDay: last }
    writeState(platform.files, platform.state)
    return `${count(written, 'package')} written over TCP`
  })
}

let isBusy = false
async function onNewDay(platform: Platform, { onDay }: Pick<Start, 'onDay'>): Promise<void> {
  const today = dayOf(Date.now())
  const { first, last } = missingDays(platform.state, today)
  if (isBusy || platform.group.isStopping || first > last) return
  isBusy = true
  try {
    await topUp(platform, today)
    await onDay?.(platform, today)
  } catch (error) {
    // A shard may be without a leader; the next look repeats it.
    if (!platform.group.isStopping) say(`The new day is not written yet: ${(error as Error).message}`)
  } finally {
    isBusy = false
  }
}
