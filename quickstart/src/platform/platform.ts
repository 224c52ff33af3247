/** A running platform: its processes, and waiting for them. */

import { VacancyError } from '@vacancy/shared'
import { howEnded, type ProcessGroup, TYPED, VACANCY } from '../launch.ts'
import { say, seconds } from '../say.ts'
import { type Ended, type Supervised, superviseProgram } from '../supervise.ts'
import type { ComponentStatus } from './control.ts'
import { type Running, type State, writeRunning } from './files.ts'
import { type Component, type Kind, nodesOf, ofKind, publicAddress, shardsOf } from './plan.ts'
import { argumentsOf, type Launch } from './programs.ts'
import { LEADS, leaderSeenBy, type Ready, readinessOf, residentBytes, STARTING } from './ready.ts'

/** The longest wait of a step. */
const STEP_MS_MAX = 180_000
/** After this time nodes are waited for no longer, if each shard has a leader. */
const NODES_MS_MAX = 60_000
const POLL_MS = 200
/** A state that does not last as long is not reported. */
const LASTS_MS = 1_000
const NAME_COLUMN = 12

type Process = {
  readonly component: Component
  readonly program: Supervised
  /** It was ended on request. */
  isKilled: boolean
}

export type Platform = Launch & {
  readonly group: ProcessGroup
  /** The last start of each component. */
  readonly processes: Map<string, Process>
  readonly stopping: AbortSignal
  /** YYYY-MM-DD of the start. */
  readonly today: string
  readonly nodeOptions: string
  /** Ended processes are started again. */
  readonly restarts: boolean
  /** The last state of each node and since when it lasts; undefined where they are not reported. */
  readonly states: Map<string, { readonly text: string; readonly sinceMs: number; isSaid: boolean }> | undefined
  /** The claim of this process on the folder. */
  readonly running: Omit<Running, 'processes'>
  state: State
  isUp: boolean
}

/** Starts a component, or starts it again. */
export function startComponent(platform: Platform, component: Component): Supervised {
  const { group, files, processes, nodeOptions, restarts } = platform
  const { name } = component
  const args = [VACANCY, ...argumentsOf(component, platform, platform.today)]
  const tell = {
    started(isAgain: boolean) {
      if (!isAgain) return
      noteProcesses(platform)
      say(`${name}  started again, process ${processes.get(name)?.program.pid()}`)
    },
    ended: (ended: Ended) => sayEnd(platform, component, ended),
  }
  const program = superviseProgram(group, { name, args, log: files.logOf(name), nodeOptions }, { tell, restarts })
  processes.set(name, { component, program, isKilled: false })
  noteProcesses(platform)
  return program
}

function noteProcesses({ files, running, processes }: Platform): void {
  const pids = [...processes].flatMap(([name, { program }]) => {
    const pid = program.pid()
    return pid === undefined ? [] : [[name, pid] as const]
  })
  writeRunning(files, { ...running, processes: Object.fromEntries(pids) })
}

function sayEnd(platform: Platform, component: Component, { end, againMs, logged }: Ended): void {
  const { files, isUp, states } = platform
  const { name, kind } = component
  noteProcesses(platform)
  states?.delete(name)
  // The start fails with the same reason.
  if (againMs === undefined && !isUp && kind !== 'queue-sample') return
  say(`${name}  ${howEnded(end)}${effectOf(platform, component)}`)
  if (againMs !== undefined) return say(`${name}  restarts in ${againMs / 1000} s`)
  for (const line of logged) say(`  ${line}`)
  say(`${name}  stays down; docs/reasons.md explains exit codes. Its log is ${files.logOf(name)}. To start it:`)
  say(`  ${TYPED} quickstart restart ${name} --dir ${files.dir}`)
}

function effectOf({ plan, processes }: Platform, { kind, shard = '' }: Component): string {
  if (kind !== 'node') return ''
  const voters = nodesOf(plan, shard).filter(({ isLearner }) => !isLearner)
  const up = voters.filter(({ name }) => processes.get(name)?.program.pid() !== undefined).length
  if (up * 2 > voters.length) return `; ${up} of ${voters.length} voters are up, the shard continues`
  return `; ${up} of ${voters.length} voters are up: no majority, so writes wait until one more is back`
}

/**
 * Waits until all are ready. Nodes may be late if their shard has a leader.
 *
 * @throws VacancyError failure with the last reason of each that is not, or the end of the log of one that ended
 */
export async function waitReady(
  platform: Pick<Platform, 'plan' | 'files' | 'processes' | 'stopping' | 'states'>,
  components: readonly Component[],
): Promise<void> {
  const { processes, stopping, files } = platform
  const startedMs = performance.now()
  let waiting = components
  await within(stopping, async () => {
    const looks = await lookAt(waiting)
    for (const {
      component: { name },
    } of looks) {
      const ended = processes.get(name)?.program.ended()
      if (ended && ended.againMs === undefined) throw endedEarly(name, ended, files.logOf(name))
    }
    await report(platform, looks)
    const missing = looks.filter(({ ready }) => !ready.isReady)
    waiting = missing.map(({ component }) => component)
    const isLate = performance.now() - startedMs > NODES_MS_MAX && waiting.every(({ kind }) => kind === 'node')
    if (isLate && (await withoutLeader(platform)).length === 0) return []
    return missing.map(
      ({ component, ready }) => `${component.name} is not ready: ${ready.text || 'it gives no reason'}`,
    )
  })
}

type Look = { readonly component: Component; readonly ready: Ready }

async function lookAt(components: readonly Component[]): Promise<Look[]> {
  return await Promise.all(components.map(async (component) => ({ component, ready: await readinessOf(component) })))
}

/** The shards that have no leader. */
export async function withoutLeader(platform: Pick<Platform, 'plan'>): Promise<string[]> {
  const shards = shardsOf(platform.plan)
  const leaders = await Promise.all(shards.map((shard) => leaderNode(platform, shard)))
  return shards.filter((_, at) => leaders[at] === undefined)
}

/** Reports nodes whose state has changed and lasts. */
async function report({ processes, states }: Pick<Platform, 'processes' | 'states'>, looks: readonly Look[]) {
  for (const { component, ready } of looks) {
    const { name, kind } = component
    const pid = processes.get(name)?.program.pid()
    // The end of a process was already reported.
    if (states === undefined || kind !== 'node' || pid === undefined || ready.text.startsWith(STARTING)) continue
    const [text = ''] = ready.text.split('; ')
    const [before, nowMs] = [states.get(name), performance.now()]
    const state = before?.text === text ? before : { text, sinceMs: nowMs, isSaid: false }
    states.set(name, state)
    if (state.isSaid || (!ready.isReady && nowMs - state.sinceMs < LASTS_MS)) continue
    state.isSaid = true
    if (!ready.isReady) say(`${name}  not yet: ${text}`)
    else if (text !== LEADS) say(`${name}  ${text}, up to date`)
    else say(`${name}  leads in term ${(await leaderSeenBy(component))?.term}, process ${pid}`)
  }
}

let isFollowing = false
/** Looks at all nodes, without overlapping looks. */
export async function follow(platform: Platform): Promise<void> {
  if (isFollowing || platform.group.isStopping) return
  isFollowing = true
  const looks = await lookAt(ofKind(platform.plan, 'node'))
  if (!platform.group.isStopping) await report(platform, looks)
  isFollowing = false
}

function endedEarly(name: string, { end, logged }: Ended, log: string): VacancyError {
  const lines = [`${name} ${howEnded(end)}; docs/reasons.md explains exit codes. Its log is ${log}`, ...logged]
  return new VacancyError('failure', { reason: lines.join('\n') })
}

/**
 * Repeats a look until it finds nothing missing.
 *
 * @param look returns what is missing
 * @throws VacancyError failure with the last missing things after STEP_MS_MAX, or when the platform stops
 */
export async function within(stopping: AbortSignal, look: () => Promise<readonly string[]>): Promise<void> {
  const startedMs = performance.now()
  for (;;) {
    if (stopping.aborted) throw new VacancyError('failure', { reason: 'stopped on request' })
    const missing = await look()
    if (missing.length === 0) return
    if (performance.now() - startedMs > STEP_MS_MAX) {
      const reason = [`after ${STEP_MS_MAX / 1000} s:`, ...missing.map((each) => `  ${each}`)].join('\n')
      throw new VacancyError('failure', { reason })
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/** Runs a step of the start and prints a line with its time. @param run returns the text of the line */
export async function step(name: string, run: () => Promise<string>): Promise<void> {
  const startedMs = performance.now()
  const text = await run()
  sayStep(name, `${text} (${seconds(performance.now() - startedMs)})`)
}

export function sayStep(name: string, text: string): void {
  say(`${name.padEnd(NAME_COLUMN)}  ${text}`)
}

/** Every component with its state. */
export async function statusOf(platform: Pick<Platform, 'plan' | 'processes'>): Promise<ComponentStatus[]> {
  return await Promise.all(
    platform.plan.components.map(async (component) => {
      const { name, kind } = component
      const process = platform.processes.get(name)
      const { host, port } = publicAddress(component)
      const row = { name, kind, address: kind === 'queue-sample' ? '' : `${host}:${port}` }
      const pid = process?.program.pid()
      if (process === undefined || pid === undefined) {
        const ended = process?.program.ended()
        const text = !ended ? 'not started yet' : process?.isKilled ? 'killed' : howEnded(ended.end)
        return { ...row, pid: null, isReady: false, text, residentBytes: null }
      }
      return { ...row, pid, ...(await readinessOf(component)), residentBytes: residentBytes(pid) ?? null }
    }),
  )
}

function find({ plan }: Platform, name: string): Component {
  const component = plan.components.find((each) => each.name === name)
  if (component) return component
  const names = plan.components.map((each) => each.name).join(', ')
  throw new VacancyError('usage_error', { reason: `no process is named ${JSON.stringify(name)}: ${names}` })
}

/** Ends a process at once, like a crash. @returns what happened, as a sentence */
export async function killComponent(platform: Platform, name: string): Promise<string> {
  find(platform, name)
  const process = platform.processes.get(name)
  const pid = process?.program.pid()
  if (process === undefined || pid === undefined) throw new VacancyError('failure', { reason: `${name} does not run` })
  process.isKilled = true
  await process.program.kill()
  noteProcesses(platform)
  const text = `${name}, process ${pid}, is killed; vacancy quickstart restart ${name} --dir ${platform.files.dir} starts it again`
  say(text)
  return text
}

/** Starts a process, after stopping it gracefully if it runs, and waits until it is ready. */
export async function restartComponent(platform: Platform, name: string): Promise<string> {
  const component = find(platform, name)
  const startedMs = performance.now()
  await platform.processes.get(name)?.program.stop()
  const program = startComponent(platform, component)
  await waitReady(platform, [component])
  const text = `${name} is ready after ${seconds(performance.now() - startedMs)}, process ${program.pid()}`
  say(text)
  return text
}

/** From the outside to the inside: each stops while what it depends on still runs. */
const STOP_ORDER: readonly (readonly Kind[])[] = [
  ['queue-sample'],
  ['control-plane', 'proxy'],
  ['edge-router'],
  ['zone-router'],
  ['bridge'],
  ['node', 'standalone'],
  ['resolver'],
  ['registry'],
]

/** Stops all processes gracefully. In each shard the leader stops last, without a transfer. */
export async function stopAll(platform: Platform): Promise<void> {
  const { processes, plan } = platform
  for (const kinds of STOP_ORDER) {
    const ofKinds = [...processes.values()].filter(({ component }) => kinds.includes(component.kind))
    const leaders = kinds.includes('node') ? await leadersOf(plan) : []
    const isLeader = ({ component }: Process) => leaders.includes(component.name)
    for (const part of [ofKinds.filter((each) => !isLeader(each)), ofKinds.filter(isLeader)])
      await Promise.all(part.map(({ program }) => program.stop()))
  }
}

async function leadersOf(plan: Launch['plan']): Promise<string[]> {
  const looks = await lookAt(ofKind(plan, 'node'))
  return looks.filter(({ ready }) => ready.text === LEADS).map(({ component }) => component.name)
}

/** The node that leads a shard, or the standalone node; undefined without one. */
export async function leaderNode({ plan }: Pick<Platform, 'plan'>, shard: string): Promise<Component | undefined> {
  const looks = await lookAt(nodesOf(plan, shard))
  return looks.find(
    ({ component, ready }) => ready.text === LEADS || (component.kind === 'standalone' && ready.isReady),
  )?.component
}
