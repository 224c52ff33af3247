/** A running platform: its processes, and waiting for them. */

import { VacancyError } from '@vacancy/shared'
import {
  type End,
  howEnded,
  lastLines,
  type ProcessGroup,
  QUEUE_SAMPLE,
  type RunningProgram,
  sizeOf,
  startProgram,
  VACANCY,
} from '../launch.ts'
import { say, seconds } from '../say.ts'
import type { ComponentStatus } from './control.ts'
import type { State } from './files.ts'
import { type Component, type Kind, nodesOf, publicAddress } from './plan.ts'
import { argumentsOf, type Launch } from './programs.ts'
import { type Ready, readinessOf, residentBytes } from './ready.ts'

/** The longest wait of a step. */
const STEP_MS_MAX = 180_000
const POLL_MS = 100
/** Young objects of a process take 2 MiB instead of 16: more than a dozen of them share this machine. */
const NODE_OPTIONS = '--max-semi-space-size=2'
const NAME_COLUMN = 12

export type Process = {
  readonly component: Component
  readonly program: RunningProgram
  readonly log: string
  /** Size of its log when it started. */
  readonly logStart: number
  end: End | undefined
  /** It was ended on request, so its end is not reported. */
  isWanted: boolean
}

export type Platform = Launch & {
  readonly group: ProcessGroup
  /** The last start of each component. */
  readonly processes: Map<string, Process>
  readonly stopping: AbortSignal
  /** YYYY-MM-DD of the start. */
  readonly today: string
  state: State
  isUp: boolean
}

/** Starts a component, or starts it again. */
export function startComponent(platform: Platform, component: Component): Process {
  const { group, files, processes } = platform
  const { name, kind } = component
  const entry = kind === 'queue-sample' ? QUEUE_SAMPLE : VACANCY
  const log = files.logOf(name)
  const logStart = sizeOf(log)
  const args = [entry, ...argumentsOf(component, platform, platform.today)]
  const program = startProgram(group, { name, args, log, isApart: true, nodeOptions: NODE_OPTIONS })
  const process: Process = { component, program, log, logStart, end: undefined, isWanted: false }
  processes.set(name, process)
  program.serving.catch(() => {
    // The end is reported below, with the same reason.
  })
  program.ended.then((end) => {
    process.end = end
    if (group.isStopping || process.isWanted || !platform.isUp) return
    say(`${name}  ${howEnded(end)}; it stays down until vacancy quickstart restart ${name}`)
    for (const line of lastLines(log, logStart)) say(`  ${line}`)
  })
  return process
}

/**
 * Waits until all are ready.
 *
 * @throws VacancyError failure with the last reason of each that is not, or the end of the log of one that ended
 */
export async function waitReady(
  { processes, stopping }: Pick<Platform, 'processes' | 'stopping'>,
  components: readonly Component[],
): Promise<void> {
  let waiting = components
  await within(stopping, async () => {
    const looks = await Promise.all(
      waiting.map(async (component) => {
        const ready = await readinessOf(component)
        const process = processes.get(component.name)
        if (process?.end) throw endedEarly(process)
        return { component, ready }
      }),
    )
    waiting = looks.filter(({ ready }) => !ready.isReady).map(({ component }) => component)
    return looks.filter(({ ready }) => !ready.isReady).map(({ component, ready }) => notReady(component, ready))
  })
}

function notReady({ name }: Component, { text }: Ready): string {
  return `${name} is not ready: ${text || 'it gives no reason'}`
}

function endedEarly({ component: { name }, end, log, logStart }: Process): VacancyError {
  const how = end ? howEnded(end) : 'ended'
  const lines = [`${name} ${how}; docs/reasons.md explains exit codes. Its log is ${log}`, ...lastLines(log, logStart)]
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
  say(`${name.padEnd(NAME_COLUMN)}  ${text} (${seconds(performance.now() - startedMs)})`)
}

/** Every component with its state. */
export async function statusOf(platform: Pick<Platform, 'plan' | 'processes'>): Promise<ComponentStatus[]> {
  return await Promise.all(
    platform.plan.components.map(async (component) => {
      const { name, kind } = component
      const process = platform.processes.get(name)
      const { host, port } = publicAddress(component)
      const row = { name, kind, address: kind === 'queue-sample' ? '' : `${host}:${port}` }
      if (process === undefined || process.end) {
        const text = process?.end ? (process.isWanted ? 'killed' : howEnded(process.end)) : 'not started yet'
        return { ...row, pid: null, isReady: false, text, residentBytes: null }
      }
      const { pid } = process.program
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
  if (process === undefined || process.end) throw new VacancyError('failure', { reason: `${name} does not run` })
  process.isWanted = true
  const { pid, ended } = process.program
  globalThis.process.kill(pid, 'SIGKILL')
  await ended
  const text = `${name}, process ${pid}, is killed; vacancy quickstart restart ${name} starts it again`
  say(text)
  return text
}

/** Starts a process, after stopping it gracefully if it runs, and waits until it is ready. */
export async function restartComponent(platform: Platform, name: string): Promise<string> {
  const component = find(platform, name)
  const before = platform.processes.get(name)
  const startedMs = performance.now()
  if (before && !before.end) {
    before.isWanted = true
    await before.program.stop()
  }
  const { program } = startComponent(platform, component)
  await waitReady(platform, [component])
  const text = `${name} is ready after ${seconds(performance.now() - startedMs)}, process ${program.pid}`
  say(text)
  return text
}

/** From the outside to the inside: each stops while what it depends on still runs. */
const STOP_ORDER: readonly (readonly Kind[])[] = [
  ['queue-sample', 'control-plane', 'proxy'],
  ['edge-router'],
  ['zone-router'],
  ['bridge'],
  ['node'],
  ['resolver'],
  ['registry'],
]

/** Stops all processes gracefully. In each shard the leader stops last, without a transfer. */
export async function stopAll(platform: Platform): Promise<void> {
  const { processes, plan } = platform
  const running = () => [...processes.values()].filter(({ end }) => end === undefined)
  for (const kinds of STOP_ORDER) {
    const ofKinds = running().filter(({ component }) => kinds.includes(component.kind))
    if (ofKinds.length === 0) continue
    const leaders = kinds.includes('node') ? await leadersOf(plan) : []
    const isLeader = ({ component }: Process) => leaders.includes(component.name)
    await Promise.all(ofKinds.filter((each) => !isLeader(each)).map(({ program }) => program.stop()))
    await Promise.all(ofKinds.filter(isLeader).map(({ program }) => program.stop()))
  }
}

async function leadersOf(plan: Launch['plan']): Promise<string[]> {
  const nodes = plan.components.filter(({ kind }) => kind === 'node')
  const states = await Promise.all(
    nodes.map(async ({ name, ...rest }) => ({ name, ...(await readinessOf({ name, ...rest })) })),
  )
  return states.filter(({ text }) => text === 'leads').map(({ name }) => name)
}

/** The node that leads a shard; undefined without one. */
export async function leaderNode({ plan }: Pick<Platform, 'plan'>, shard: string): Promise<Component | undefined> {
  const nodes = nodesOf(plan, shard)
  const states = await Promise.all(nodes.map(readinessOf))
  return nodes.find((_, at) => states[at]?.text === 'leads')
}
