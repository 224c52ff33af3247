/**
 * `npm run proofs -- chaos --minutes M [--seed S] [--nodes 3|5] [--json FILE] [--keep]`: a shard of real processes under
 * faults, with clients whose histories are checked at the end (docs/design/testing.md#chaos).
 *
 *   clients ──► links ──► nodes ◄── links between each two of them      registry, resolver, views of the resolver
 *      │                    ▲
 *      └── histories        └── kill, stop, partition, full disk, changes of members, transfers
 *             └──► judge: one order explains each package; sums; keys; digests; all nodes converge
 *
 * After a violation everything is kept: data directories, logs, histories, seed and verdict.
 */

import { cpSync, renameSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { EXIT } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { between, streamOf } from '@vacancy/testkit/random'
import { openShard } from '@vacancy/testkit/shard'
import { until } from '@vacancy/testkit/until'
import { say, tellReport } from '../report.ts'
import { SEED_FLAG, seedOfNow } from '../seed.ts'
import { type StayFigures, startBookers } from './bookers.ts'
import { type Crowd, nodesOf, startCrowd } from './crowd.ts'
import { runFaults, type Tally } from './faults.ts'
import {
  createFleet,
  emptyDisk,
  type Fleet,
  killNode,
  mountSmallDisk,
  nodeOf,
  pollFleet,
  resumeNode,
  runningNodes,
  standings,
  startNode,
  stopNode,
  unmountSmallDisk,
  watchFleet,
} from './fleet.ts'
import { type Judgement, judge } from './judge.ts'
import { openNetwork } from './network.ts'
import { machineMs } from './recorder.ts'
import { type Backup, backUpUnderFaults, restoreAndJudge, restoreUnderClients } from './restore.ts'

/** Longest stall of a process. */
const STALL_MS_MAX = 30_000
const TELL_MS = 10_000
const FORM_MS = 240_000
/** About one restore under clients in this time. */
const RESTORE_SECONDS = 240
/** Time until all nodes are at the same index and have a leader, after the last fault is repaired. */
const CONVERGE_MS = 300_000

export type ChaosOptions = {
  readonly seconds: number
  readonly seed: number
  /** Founding voters. */
  readonly voters: number
  readonly say: (line: string) => void
  readonly stop?: AbortSignal
  readonly stallMsMax?: number
  /** Keep the files of a successful run as well. */
  readonly keeps?: boolean
}

export type ChaosReport = Judgement &
  StayFigures & {
    readonly seed: number
    readonly voters: number
    readonly seconds: number
    readonly network: string
    readonly clocks: string
    /** Restores while the clients went on. */
    readonly restores: number
    /** Of a shard restored at the end: bookings from before the backup, and stays from after it, which it must not know. */
    readonly restoredStays: number
    readonly forgottenStays: number
    readonly disk: string
    readonly faults: { readonly [name: string]: number }
    readonly elections: number
    readonly terms: number
    readonly digestMismatches: number
    readonly convergedMs: number
    /** Folder with all files; '' without violations. */
    readonly kept: string
  }

/**
 * Runs it once. The report lists violations; with any, all files are kept.
 *
 * @throws when the run itself fails: the shard did not form, or the run was stopped
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, say, voters } = options
  const founders = Array.from({ length: voters }, (_, i) => `node-${i + 1}`)
  const spare = `node-${voters + 1}`
  const shard = await openShard({
    nodes: [...founders, spare],
    voters: founders,
    tls: true,
    // Election timeouts of 1.2 to 2.4 s: on a busy machine, leaders with shorter ones do not last.
    // Frequent snapshots and new log files, so that faults hit them as well.
    config: {
      raft_tick_ms: 20,
      snapshot_trigger_count: 2_000,
      snapshot_interval_sec: 5,
      // Small enough to be filled within seconds.
      memory_max_bytes: 64 << 20,
      session_table_bytes: 8 << 20,
    },
  })
  const network = await openNetwork(shard.nodes, shard.host)
  const clocks = clocksOf(options, shard.nodes.length)
  const fleet = createFleet(shard, network, clocks.offsetsMs)
  const onExit = () => {
    for (const node of runningNodes(fleet)) node.process?.signal('SIGKILL')
    unmountSmallDisk(fleet)
  }
  process.once('exit', onExit)
  let kept = ''
  try {
    const disk = mountSmallDisk(fleet, founders[1])
      ? `tmpfs under ${founders[1]}`
      : 'disks are not filled: mounting is not permitted here'
    say(`seed ${seed}: ${voters} voters and ${spare}, ${options.seconds} s; ${disk}; ${shard.folder}`)
    const run = await disturb(fleet, founders, clocks.aheadMs, options)
    const report = {
      ...run,
      disk,
      seed,
      voters,
      seconds: options.seconds,
      network: 'a proxy in user space for each directed link',
      clocks: clocks.text,
    }
    if (run.violations.length > 0 || options.keeps) kept = await keep(fleet, { ...report, kept: '' })
    return { ...report, kept }
  } catch (error) {
    if (!options.stop?.aborted) kept = await keep(fleet, { seed, error: String(error) })
    throw new Error(`seed ${seed}${kept && `, everything in ${kept}`}: ${(error as Error).message}`, { cause: error })
  } finally {
    fleet.isClosed = true
    await Promise.all(runningNodes(fleet).map((node) => killNode(fleet, node)))
    unmountSmallDisk(fleet)
    await network.close()
    await shard.close()
    process.off('exit', onExit)
  }
}

const APART_MS = 3_000
const DAY_MS = 86_400_000
/** Certificates are valid for longer. */
const AHEAD_DAYS_MAX = 300

/** Clocks of nodes are seconds apart; with every other seed New Year comes in the middle of the run. */
function clocksOf({ seed, seconds }: ChaosOptions, nodes: number) {
  const random = streamOf(seed, 'clocks')
  const year = new Date().getUTCFullYear() + 1
  const toNewYear = Date.UTC(year, 0, 1) - Date.now() - (seconds * 1_000) / 2
  const aheadMs = seed % 2 === 1 && toNewYear < AHEAD_DAYS_MAX * DAY_MS ? toNewYear : 0
  const offsetsMs = Array.from({ length: nodes }, () => aheadMs + between(random, -APART_MS, APART_MS))
  return { aheadMs, offsetsMs, text: aheadMs === 0 ? 'seconds apart' : `seconds apart, over New Year ${year}` }
}

type Run = Omit<ChaosReport, 'seed' | 'voters' | 'seconds' | 'network' | 'clocks' | 'disk' | 'kept'>

async function disturb(
  fleet: Fleet,
  founders: readonly string[],
  aheadMs: number,
  options: ChaosOptions,
): Promise<Run> {
  const { seconds, seed, say, stop } = options
  await formShard(fleet, founders, stop)
  void watchFleet(fleet)
  const crowd = await startCrowd(fleet, seed, seconds, aheadMs)
  const bookers = await startBookers(nodesOf(fleet), seed, aheadMs)
  const tally: Tally = new Map()
  const leaders: Elections = { elections: 0, terms: 0 }
  const restores = Math.max(1, Math.round(seconds / RESTORE_SECONDS))
  const progress = setInterval(() => say(lineOf(fleet, crowd.fromMs, tally)), TELL_MS)
  try {
    let backup: Backup | undefined
    for (let part = 0; part <= restores; part++) {
      if (backup) {
        say('restoring under clients')
        await Promise.all(runningNodes(fleet).map((node) => killNode(fleet, node)))
        countElections(fleet, leaders)
        await restoreUnderClients(fleet, founders, backup, { crowd, bookers })
      }
      // Half of what is acknowledged in a part is lost by the restore that ends it.
      const partSeconds = seconds / (restores + 1)
      const [made] = await Promise.all([
        wait(partSeconds * 500).then(() => backUpUnderFaults(fleet, crowd, bookers, `${part}`)),
        disturbFor(partSeconds, fleet, founders, crowd, tally, { ...options, seed: seed + part }),
      ])
      backup = made
    }
    const toMs = machineMs()
    await heal(fleet)
    await Promise.all([crowd.end(), bookers.end()])
    say('healed; waiting for convergence')
    const together = await converge(fleet, stop)
    const sold = await bookers.judge()
    const records = await crowd.readAll()
    for (const node of runningNodes(fleet)) await stopNode(fleet, node)
    countElections(fleet, leaders)
    say('restoring')
    const restored = await restoreAndJudge(fleet, founders, backup as Backup, bookers)
    say('judging')
    const judgement = judge(records, crowd.fromMs, toMs)
    const violations = [...fleet.violations, ...judgement.violations, ...sold.violations]
    if (violations.length > 0) {
      const lines = records.operations.map((operation) => JSON.stringify(operation))
      writeFileSync(join(fleet.shard.folder, 'history.jsonl'), lines.join('\n'))
    }
    return {
      ...judgement,
      violations,
      ...sold.figures,
      ...restored,
      restores,
      faults: Object.fromEntries([...tally].sort()),
      ...leaders,
      ...together,
    }
  } finally {
    clearInterval(progress)
    bookers.close()
    crowd.close()
  }
}

async function formShard(fleet: Fleet, founders: readonly string[], stop: AbortSignal | undefined): Promise<void> {
  for (const name of founders) await startNode(fleet, nodeOf(fleet, name))
  const come = async () => {
    await pollFleet(fleet)
    return fleet.view.leader !== '' || fleet.violations.length > 0 || stop?.aborted
  }
  await until('a leader', come, FORM_MS)
  if (stop?.aborted) throw new Error('stopped')
  if (fleet.violations.length > 0) throw new Error(fleet.violations.join('\n'))
}

async function disturbFor(
  seconds: number,
  fleet: Fleet,
  founders: readonly string[],
  { flood, fillMemory }: Crowd,
  tally: Tally,
  { seed, stop, stallMsMax = STALL_MS_MAX }: ChaosOptions,
): Promise<void> {
  const over = AbortSignal.any([AbortSignal.timeout(seconds * 1_000), ...(stop ? [stop] : [])])
  await runFaults({ fleet, founders, tally, over, stallMsMax, wipes: { areSafe: true }, flood, fillMemory }, seed)
  if (stop?.aborted) throw new Error('stopped')
}

function lineOf(fleet: Fleet, fromMs: number, tally: Tally): string {
  const { view } = fleet
  const faults = [...tally.values()].reduce((sum, count) => sum + count, 0)
  const seconds = Math.round((machineMs() - fromMs) / 1_000)
  const up = runningNodes(fleet).length
  return `${seconds} s: ${faults} faults, term ${view.term}, leader ${view.leader || 'none'}, voters ${view.voters.join(' ')}, ${up} up, applied ${Math.max(0, ...view.applied.values())}, ${fleet.violations.length} violations`
}

async function heal(fleet: Fleet): Promise<void> {
  fleet.network.heal()
  emptyDisk(fleet)
  for (const node of fleet.nodes.values()) {
    if (node.isPaused) resumeNode(node)
    const isMember = fleet.view.voters.includes(node.name) || fleet.view.learners.includes(node.name)
    if (!node.process && isMember) await startNode(fleet, node)
  }
}

/** Waits until all nodes have applied the same index and there is a leader; otherwise a violation. */
async function converge(
  fleet: Fleet,
  stop: AbortSignal | undefined,
): Promise<{ convergedMs: number; digestMismatches: number }> {
  const beganMs = performance.now()
  let last = ''
  let digestMismatches = 0
  const come = async () => {
    const members = [...fleet.view.voters, ...fleet.view.learners]
    const seen = (await standings(fleet)).filter(({ name }) => members.includes(name))
    last = JSON.stringify({ view: { ...fleet.view, applied: [...fleet.view.applied] }, seen })
    const [first] = seen
    const isWhole = first && seen.length === members.length && !fleet.view.isChanging
    if (!isWhole || first.index === 0 || seen.some(({ index }) => index !== first.index)) return false
    if (seen.some(({ health }) => health === 'unavailable' || health === '')) return false
    digestMismatches = seen.filter(({ digest }) => digest !== first.digest).length
    return digestMismatches === 0
  }
  const isTogether = await until('', async () => stop?.aborted || (await come()), CONVERGE_MS).catch(() => false)
  if (stop?.aborted) throw new Error('stopped')
  if (!isTogether)
    fleet.violations.push(`the nodes do not converge within ${CONVERGE_MS} ms of the last fault: ${last}`)
  return { convergedMs: Math.round(performance.now() - beganMs), digestMismatches }
}

type Elections = { elections: number; terms: number }

/**
 * The leaders of all terms, from the logs of the nodes of one life of the data. Two leaders of one term are a violation
 * (docs/design/consensus.md#invariants).
 */
function countElections(fleet: Fleet, counts: Elections): void {
  const leaders = new Map<number, string>()
  for (const life of fleet.lives.splice(0)) {
    for (const printed of life.output().split('\n')) {
      if (!printed.includes('this node leads the shard')) continue
      const { term, id } = JSON.parse(printed) as { term: number; id: string }
      const other = leaders.get(term)
      if (other !== undefined && other !== id) fleet.violations.push(`${other} and ${id} both led term ${term} (A1)`)
      leaders.set(term, id)
      counts.elections++
    }
  }
  counts.terms += Math.max(0, ...leaders.keys())
}

/** Moves all files to a folder that is not removed. @returns the folder */
async function keep(fleet: Fleet, verdict: object): Promise<string> {
  fleet.isClosed = true
  await Promise.all(runningNodes(fleet).map((node) => killNode(fleet, node)))
  // Their last output is written when their pipes are closed.
  await wait(200)
  const folder = join(tmpdir(), `vacancy-chaos-${Date.now()}`)
  const { smallDisk, shard } = fleet
  if (smallDisk !== undefined) {
    emptyDisk(fleet)
    const copied = join(shard.folder, 'data', `${smallDisk}.kept`)
    cpSync(shard.dataDir(smallDisk), copied, { recursive: true })
    unmountSmallDisk(fleet)
  }
  writeFileSync(join(shard.folder, 'verdict.json'), JSON.stringify(verdict, undefined, 2))
  renameSync(shard.folder, folder)
  return folder
}

// The command

const INTERRUPTED = 130

export const chaosCommand = defineCommand({
  name: 'proofs chaos',
  component: 'chaos',
  summary: 'Runs a shard of real processes under faults and judges the histories of its clients.',
  flags: {
    minutes: { type: 'integer', min: 1, max: 10_000, default: 1, summary: 'Time with faults.' },
    seed: SEED_FLAG,
    // A node needs at least half a core.
    nodes: {
      type: 'choice',
      choices: ['3', '5'],
      default: availableParallelism() >= 4 ? '5' : '3',
      summary: 'Voters.',
    },
    json: { type: 'text', value: 'FILE', summary: 'Writes the report.' },
    keep: { type: 'boolean', summary: 'Keeps the files of a successful run as well.' },
  },
  run: async ({ flags: { minutes, seed = seedOfNow(), nodes, json, keep: keeps } }) => {
    const stop = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
    try {
      const report = await runChaos({
        seconds: minutes * 60,
        seed,
        voters: Number(nodes),
        keeps,
        say,
        stop: stop.signal,
      })
      return tellReport(report, json, `chaos --minutes ${minutes} --seed ${seed} --nodes ${nodes}`)
    } catch (error) {
      say(stop.signal.aborted ? 'stopped' : String((error as Error).stack))
      return stop.signal.aborted ? INTERRUPTED : EXIT.failure
    }
  },
})
