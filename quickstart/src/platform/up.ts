/** `vacancy quickstart up`: data, processes in their order, the first query; then it stays until it is stopped. */

import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { dirname, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '@vacancy/client'
import { dayOf, EXIT, formatDay, VacancyError } from '@vacancy/shared'
import { count, createLogger, runProgram } from '@vacancy/shared/node'
import { createProcessGroup, freePort, killGroup, lookAtPort, stopGroup } from '../launch.ts'
import { say, seconds } from '../say.ts'
import { ask } from './ask.ts'
import { serveControl } from './control.ts'
import {
  buildSnapshots,
  checkState,
  claimFolder,
  filesOf,
  makeSecrets,
  type PlatformFiles,
  readState,
  releaseFolder,
  type State,
  writeQueries,
  writeSample,
  writeState,
} from './files.ts'
import {
  type Component,
  includes,
  type Kind,
  listenersOf,
  nodesOf,
  ofKind,
  type Plan,
  planOf,
  publicAddress,
  resolverTable,
  type Spec,
  shardName,
  startOrder,
} from './plan.ts'
import {
  killComponent,
  leaderNode,
  type Platform,
  restartComponent,
  startComponent,
  statusOf,
  step,
  stopAll,
  waitReady,
  within,
} from './platform.ts'
import { one, parseSettings, type Setting } from './programs.ts'
import { closeForwards, createForwards, type Forwards, publish } from './publish.ts'
import { type SampleQuery, sampleQueries } from './queries.ts'
import { packagesOf } from './sample.ts'

const HOST = '127.0.0.1'
/** All groups of processes stop one after the other; each takes at most 20 s. */
const STOP_MS_MAX = 150_000
/** How often a running platform checks for a new day. */
const DAY_LOOK_MS = 60_000
const WRITES_IN_FLIGHT = 256
const TOKEN_BYTES = 24

export type UpFlags = {
  readonly dir: string
  readonly spec: Spec
  readonly days: number
  readonly seed: number
  readonly settings: readonly string[]
  /** Port of the control plane with console and queue; undefined without it. */
  readonly consolePort: number | undefined
  /** Of a random order of starts; undefined for one in which each process finds what it needs. */
  readonly orderSeed: number | undefined
}

type Shell = {
  readonly forwards: Forwards
  readonly timers: NodeJS.Timeout[]
  platform: Platform | undefined
  control: Server | undefined
  hasClaim: boolean
}

/** Runs until it is stopped; resolves when the platform is up. */
export async function up(flags: UpFlags): Promise<void> {
  const files = filesOf(flags.dir)
  const group = createProcessGroup()
  const shell: Shell = {
    forwards: createForwards(),
    timers: [],
    platform: undefined,
    control: undefined,
    hasClaim: false,
  }
  // After a second stop signal this process exits at once. The processes do not receive Ctrl-C and must not survive it.
  process.on('exit', () => {
    killGroup(group)
    if (shell.hasClaim) releaseFolder(files)
  })
  let hangUp = () => {}
  // The output is no longer read.
  process.stdout.on('error', () => hangUp())
  await runProgram(
    {
      start: async (life) => {
        // Without a terminal the platform could not be seen or stopped.
        hangUp = () => life.stop({ code: EXIT.ok, reason: 'the terminal was closed' })
        const base = { files, group, stopping: life.stopping }
        await start(shell, flags, base, () => life.stop({ code: EXIT.ok, reason: 'vacancy quickstart down' }))
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
        if (shell.hasClaim) releaseFolder(files)
        if (shell.platform?.isUp) say('Stopped. The data stays; the next start continues with it.')
      },
      reload: () => hangUp(),
    },
    { log: createLogger({ level: 'error', format: 'text', component: 'quickstart', id: '' }), drainMs: STOP_MS_MAX },
  )
}

type Base = Pick<Platform, 'files' | 'group' | 'stopping'>

async function start(shell: Shell, flags: UpFlags, base: Base, stop: () => void): Promise<void> {
  const { files } = base
  const startedMs = performance.now()
  await serveAndClaim(shell, files, stop)
  const today = dayOf(Date.now())
  const stored = readState(files)
  const { shards, zones, nodesPerShard } = flags.spec
  const wanted: State = {
    shards,
    zones,
    nodesPerShard,
    seed: flags.seed,
    days: flags.days,
    lastDay: today + flags.days - 1,
  }
  if (stored) checkState(files, stored, wanted)
  const plan = await freePlan(flags)
  const settings: Setting[] = parseSettings(flags.settings, { plan, files })
  const platform: Platform = {
    ...base,
    plan,
    settings,
    processes: new Map(),
    today: formatDay(today),
    state: stored ?? wanted,
    isUp: false,
  }
  shell.platform = platform

  mkdirSync(dirname(files.logOf('any')), { recursive: true })
  await prepareData(platform, stored === undefined, today)
  writeFileSync(files.table, resolverTable(plan))
  for (const each of plan.components.flatMap(({ published }) => published)) await publish(shell.forwards, each)
  if (flags.orderSeed === undefined) await startComponents(platform)
  else await startInOrder(platform, flags.orderSeed)
  if (stored) await topUp(platform, today)
  const queries = writeSampleQueries(platform, today)
  await firstQuery(platform, queries)
  const link = await startConsole(platform)
  platform.isUp = true
  say(
    `\nUp after ${seconds(performance.now() - startedMs)}, ${count(platform.processes.size, 'process', 'processes')}.`,
  )
  say(goOn(platform, flags, link))
  shell.timers.push(setInterval(() => onNewDay(platform), DAY_LOOK_MS))
}

/** The control interface answers from the beginning, so that a start can be watched and stopped from elsewhere. */
async function serveAndClaim(shell: Shell, files: PlatformFiles, stop: () => void): Promise<void> {
  const up = (): Platform => {
    if (shell.platform) return shell.platform
    throw new VacancyError('failure', { reason: 'the platform is starting' })
  }
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  const { server, port } = await serveControl(
    {
      status: async () => {
        const { plan, state } = up()
        const components = await statusOf(up())
        return { spec: plan.spec, seed: state.seed, day: dayOf(Date.now()), components }
      },
      kill: async (name) => await killComponent(up(), name),
      restart: async (name) => await restartComponent(up(), name),
      stop,
    },
    token,
  )
  shell.control = server
  claimFolder(files, { pid: process.pid, port, token })
  shell.hasClaim = true
}

/** @throws VacancyError port_taken that names every port in use, before anything starts */
async function freePlan({ spec, consolePort }: Pick<UpFlags, 'spec' | 'consolePort'>): Promise<Plan> {
  const plan = planOf(spec)
  const taken: string[] = []
  for (const { host, port, who } of listenersOf(plan)) {
    const look = await lookAtPort(host, port)
    if (look === 'no address') {
      say('This machine has only one loopback address: all processes share it, with different ports.')
      return await freePlan({ spec: { ...spec, isOneAddress: true }, consolePort })
    }
    if (look === 'taken') taken.push(`${host}:${port}, for ${who}`)
  }
  if (taken.length > 0) {
    const others = `--network ${1 + ((spec.network + 9) % 240)} --port-offset ${spec.portOffset + 10_000}`
    const reason = `in use, and nothing was started. Stop what uses them, or choose others: ${others}`
    throw new VacancyError('port_taken', { address: taken.join('\n  '), reason })
  }
  if (consolePort === undefined) return plan
  const port = await freePort(HOST, consolePort)
  if (consolePort !== 0 && port !== consolePort) say(`Port ${consolePort} is taken: the console is on ${port}.`)
  const address = { host: HOST, port }
  const part = (name: string, kind: Kind): Component => ({ name, kind, main: address, api: address, published: [] })
  return {
    spec,
    components: [...plan.components, part('control-plane', 'control-plane'), part('queue-sample', 'queue-sample')],
  }
}

async function prepareData(platform: Platform, isNew: boolean, today: number): Promise<void> {
  const { files, plan, state, group } = platform
  const { shards, days } = state
  if (isNew) {
    await step('data', async () => {
      const packages = writeSample(files, state, today)
      return `${count(shards, 'shard')}, ${count(packages, 'package')}, ${formatDay(today)} to ${formatDay(state.lastDay)}`
    })
    await step('snapshots', async () => {
      await buildSnapshots(group, files, plan)
      return `${count(shards, 'snapshot')}, copied to ${count(ofKind(plan, 'node').length, 'node')}`
    })
  } else {
    say(`${'data'.padEnd(12)}  ${files.dir}: ${count(shards, 'shard')}, ${count(days, 'day')}, continued`)
  }
  const nodes = ofKind(plan, 'node').map(({ name }) => name)
  if (!isNew) return void (await makeSecrets(group, files, nodes, Date.now()))
  await step('certificates', async () => `${count(await makeSecrets(group, files, nodes, Date.now()), 'node')}`)
  writeState(files, state)
}

const STEPS: readonly (readonly [kind: Kind, name: string])[] = [
  ['registry', 'registry'],
  ['resolver', 'resolver'],
  ['node', 'nodes'],
  ['bridge', 'bridges'],
  ['zone-router', 'zone routers'],
  ['edge-router', 'edge'],
  ['proxy', 'proxy'],
]

async function startComponents(platform: Platform): Promise<void> {
  const { plan } = platform
  for (const [kind, name] of STEPS) {
    const components = ofKind(plan, kind)
    if (components.length === 0) continue
    await step(name, async () => {
      for (const component of components) startComponent(platform, component)
      await waitReady(platform, components)
      if (kind !== 'node') return components.map((each) => `${each.name} ${addressOf(each)}`).join(', ')
      const leaders = await waitLeaders(platform)
      return `${count(components.length, 'node')}; ${leaders.join(', ')}`
    })
  }
}

/** In any order: each process waits for what it lacks. */
async function startInOrder(platform: Platform, seed: number): Promise<void> {
  const order = startOrder(platform.plan.components.filter(isOfFabric), seed)
  await step('processes', async () => {
    for (const { component, pauseMs } of order) {
      await sleep(pauseMs, undefined, { signal: platform.stopping })
      startComponent(platform, component)
    }
    return `started as ${order.map(({ component }) => component.name).join(', ')}`
  })
  await step('ready', async () => {
    await waitReady(
      platform,
      order.map(({ component }) => component),
    )
    return (await waitLeaders(platform)).join(', ')
  })
}

function isOfFabric({ kind }: Component): boolean {
  return kind !== 'control-plane' && kind !== 'queue-sample'
}

/** @returns a text per shard */
async function waitLeaders(platform: Platform): Promise<string[]> {
  const shards = Array.from({ length: platform.plan.spec.shards }, (_, shard) => shardName(shard))
  const found = new Map<string, string>()
  await within(platform.stopping, async () => {
    for (const shard of shards) {
      const leader = await leaderNode(platform, shard)
      if (leader) found.set(shard, leader.name)
    }
    return shards.filter((shard) => !found.has(shard)).map((shard) => `${shard} has no leader`)
  })
  return shards.map((shard) => `${found.get(shard)} leads ${shard}`)
}

function addressOf(component: Component): string {
  const { host, port } = publicAddress(component)
  return `${host}:${port}`
}

/** Writes the packages of days that have come on sale since the data was made, to the leader of each shard. */
async function topUp(platform: Platform, today: number): Promise<void> {
  const { state, files } = platform
  const days = { first: Math.max(today, state.lastDay + 1), last: today + state.days - 1 }
  if (days.first > days.last) return
  await step('new days', async () => {
    let written = 0
    for (let shard = 0; shard < state.shards; shard++) {
      const leader = await leaderNode(platform, shardName(shard))
      if (leader === undefined) throw new VacancyError('failure', { reason: `${shardName(shard)} has no leader` })
      const client = await connect({ ...leader.main, maxInFlight: WRITES_IN_FLIGHT, deadlineMs: 30_000 })
      const packages = packagesOf(state.seed, shard, days)
      // A property that the user removed needs no new days.
      const write = (each: (typeof packages)[number]) =>
        client.setPackage({ ...each }).catch((error) => {
          if ((error as { code?: string }).code !== 'NOT_FOUND') throw error
        })
      await Promise.all(packages.map(write))
      await client.close()
      written += packages.length
    }
    platform.state = { ...state, lastDay: days.last }
    writeState(files, platform.state)
    return `${count(written, 'package')}, ${formatDay(days.first)} to ${formatDay(days.last)}`
  })
}

let isBusy = false
async function onNewDay(platform: Platform): Promise<void> {
  const today = dayOf(Date.now())
  if (isBusy || platform.group.isStopping || platform.state.lastDay >= today + platform.state.days - 1) return
  isBusy = true
  try {
    await topUp(platform, today)
    writeSampleQueries(platform, today)
  } catch (error) {
    // A shard may be without a leader; the next look repeats it.
    if (!platform.group.isStopping) say(`The new day is not written yet: ${(error as Error).message}`)
  } finally {
    isBusy = false
  }
}

function writeSampleQueries(platform: Platform, day: number): readonly SampleQuery[] {
  const { plan, files, state } = platform
  const queries = sampleQueries({ seed: state.seed, shards: state.shards, day })
  const proxy = includes(plan.spec.level, 'full')
    ? `http://localhost:${publicAddress(one(plan, 'proxy')).port}`
    : 'a proxy'
  writeQueries(files, queries, proxy)
  return queries
}

/** All segments are known, and a search is answered. */
async function firstQuery(platform: Platform, queries: readonly SampleQuery[]): Promise<void> {
  const { plan, stopping } = platform
  const segments = queries.find(({ query }) => query.command === 'GETSEGMENTS')
  const search = queries.find(({ query }) => query.command === 'SEARCHAVAIL')
  if (segments === undefined || search === undefined) throw new Error('the sample has both queries')
  await step('first query', async () => {
    await within(stopping, async () => {
      const missing = segments.check(await ask(plan, segments.query))
      return missing === '' ? [] : [`${segments.name}: ${missing}`]
    })
    let found = 0
    await within(stopping, async () => {
      const { status, body } = await ask(plan, search.query)
      found = (body as { properties?: unknown[] }).properties?.length ?? 0
      return status === 200 ? [] : [`${search.name}: ${JSON.stringify(body)}`]
    })
    return `${segments.states}; ${search.name} found ${count(found, 'property', 'properties')}`
  })
}

/** @returns the link that opens the console, signed in; undefined without a console */
async function startConsole(platform: Platform): Promise<string | undefined> {
  const [control] = ofKind(platform.plan, 'control-plane')
  const [sample] = ofKind(platform.plan, 'queue-sample')
  if (control === undefined || sample === undefined) return undefined
  let link = ''
  await step('console', async () => {
    const { program } = startComponent(platform, control)
    const announced = program.announced('sign-in')
    await waitReady(platform, [control])
    link = await announced
    startComponent(platform, sample)
    return `http://${control.main.host}:${control.main.port}, with job queue and sample jobs`
  })
  return link
}

function goOn({ plan, files }: Platform, { dir }: UpFlags, link: string | undefined): string {
  const command = (text: string) => `npx vacancy quickstart ${text} --dir ${dir}`
  const proxies = ofKind(plan, 'proxy')
  const [node] = nodesOf(plan, shardName(0))
  const [bridge] = ofKind(plan, 'bridge')
  const lines = [
    [
      'Addresses',
      plan.components
        .filter(({ kind }) => kind === 'registry' || kind === 'edge-router')
        .map((each) => `${each.name} ${addressOf(each)}`)
        .join(', '),
    ],
    ...(node ? [['', `${node.name} ${addressOf(node)} (the others follow); ${command('status')}`]] : []),
    ...proxies.slice(0, 1).map((proxy) => {
      const { port } = publicAddress(proxy)
      return ['HTTP', `curl -s -d @${files.queries}/03-search.json http://localhost:${port}/api`]
    }),
    ['Query', command('query')],
    ...(bridge ? [['Kill', `${command(`kill ${bridge.name}`)}, then restart`]] : []),
    ['Files', `${resolve(dir)}: queries, logs, data, tokens`],
    ['Stop', 'Ctrl-C keeps the data; vacancy quickstart down removes it'],
    ...(link === undefined ? [] : [['Open', link]]),
  ]
  return lines.map(([name = '', text = '']) => `${name.padEnd(12)}${text}`).join('\n')
}
