/**
 * `npm run proofs -- fabric-chaos --minutes M [--seed S] [--json FILE]`: a platform of real processes under faults, with clients
 * whose writes are counted (docs/design/testing.md#chaos-of-a-platform).
 *
 *   8 clients ──► 2 edge routers ──► 2 zone routers a zone ──► 2 bridges a shard ──► 2 shards of 3 nodes
 *        └── counters ──► each at least what was acknowledged, at most that and what has no outcome
 */

import { connect, type VacancyClient } from '@vacancy/client'
import { defineCommand } from '@vacancy/shared/node'
import { createRandom } from '@vacancy/testkit/random'
import { until } from '@vacancy/testkit/until'
import { type PlatformStatus, request } from '../../quickstart/src/platform/control.ts'
import { filesOf, readRunning } from '../../quickstart/src/platform/files.ts'
import { type Component, nodesOf, ofKind, type Plan, shardName } from '../../quickstart/src/platform/plan.ts'
import { quickstartTest, UP } from '../../quickstart/src/platform/testing/command.ts'
import { say, tellReport } from '../report.ts'
import { SEED_FLAG, seedOfNow } from '../seed.ts'
import { type Crowd, closeCrowd, judgeCounters, openCrowd, runCrowd, type Sums } from './clients.ts'
import { type Patient, runFaults } from './faults.ts'
import { REFUSED_MS_MAX, refusedMs } from './refusals.ts'

const PROGRESS_MS = 10_000
const READY_MS = 60_000

type Options = {
  readonly seconds: number
  readonly seed: number
  /** Multiplies the times of faults and of the pauses between them. Default 1. */
  readonly pace?: number
  readonly say: (line: string) => void
}

export type FabricChaosReport = Sums & {
  readonly seed: number
  readonly seconds: number
  readonly faults: { readonly [name: string]: number }
  /** Longest time without an acknowledged write of any client. */
  readonly longestGapMs: number
  /** How long a client that asks 100 times a second was refused when the component was killed, ms. */
  readonly refusedMs: { readonly [component: string]: number }
  /** Writes without an outcome that were executed. */
  readonly executedUnknown: number
  readonly violations: readonly string[]
}

/** Runs it once. @throws when the platform does not start, or is not ready again after the last fault */
export async function runFabricChaos(options: Options): Promise<FabricChaosReport> {
  const { seconds, seed, say } = options
  const quickstart = await quickstartTest()
  const platform = quickstart.up('--ha')
  try {
    const [, startSeconds] = await platform.printed(UP)
    say(
      `seed ${seed}, ${seconds} s; a platform of ${(await quickstart.status()).length} processes after ${startSeconds} s`,
    )
    const running = readRunning(filesOf(quickstart.dir))
    if (running === undefined) throw new Error(`nothing runs in ${quickstart.dir}`)
    const status = () => request<PlatformStatus>(running, 'GET', '/status')
    const patient: Patient = {
      status: async () => (await status()).components,
      kill: (name) => request(running, 'POST', `/kill/${encodeURIComponent(name)}`),
      restart: (name) => request(running, 'POST', `/restart/${encodeURIComponent(name)}`),
    }
    const { plan, day } = await status()
    return await disturb(plan, day, patient, options)
  } catch (error) {
    throw new Error(`seed ${seed}: ${(error as Error).message}\n${platform.output()}`, { cause: error })
  } finally {
    await platform.stop()
    quickstart.remove()
  }
}

async function disturb(plan: Plan, day: number, patient: Patient, options: Options): Promise<FabricChaosReport> {
  const { seconds, seed, pace = 1, say } = options
  const routers = ofKind(plan, 'edge-router').map(({ main }) => `${main.host}:${main.port}`)
  const leaders = await Promise.all(
    Array.from({ length: plan.spec.shards }, (_, shard) => {
      const nodes = nodesOf(plan, shardName(shard)).map(({ main, api }) => ({
        ...main,
        api: `http://${api.host}:${api.port}`,
      }))
      return connect({ nodes, reads: 'leader', deadlineMs: READY_MS })
    }),
  )
  const segmentsOf = await Promise.all(
    leaders.map(async (leader) => (await leader.listSegments()).map(({ segment }) => segment)),
  )
  const segments = segmentsOf.flatMap((_, at) => segmentsOf.map((names) => names[at] as string))
  const leaderOf = (segment: string) =>
    leaders[segmentsOf.findIndex((names) => names.includes(segment))] as VacancyClient
  const refusals = await killOneOfTwo(plan, patient, routers, segments[0] as string, say)
  const crowd = await openCrowd(routers, segments, day)
  const progress = setInterval(() => say(lineOf(crowd)), PROGRESS_MS)
  try {
    const requests = runCrowd(crowd)
    const over = AbortSignal.timeout(seconds * 1_000)
    const faults = await runFaults(patient, createRandom(seed), pace, over, say)
    await until(
      'all components are ready',
      async () => (await patient.status()).every(({ isReady }) => isReady),
      READY_MS,
    )
    crowd.isOver = true
    await requests
    say('judging')
    const { violations, executedUnknown } = await judgeCounters(crowd, leaderOf)
    return {
      seed,
      seconds,
      ...crowd.sums,
      executedUnknown,
      faults: Object.fromEntries(faults),
      refusedMs: refusals,
      longestGapMs: Math.round(crowd.longestGapMs),
      violations: [...refusedTooLong(refusals), ...crowd.violations, ...violations],
    }
  } finally {
    clearInterval(progress)
    crowd.isOver = true
    await closeCrowd(crowd)
    await Promise.all(leaders.map((leader) => leader.close()))
  }
}

/** @param segment of the first shard */
async function killOneOfTwo(
  plan: Plan,
  patient: Patient,
  routers: readonly string[],
  segment: string,
  say: (line: string) => void,
): Promise<{ [component: string]: number }> {
  const refusals: { [component: string]: number } = {}
  for (const kind of ['edge-router', 'zone-router', 'bridge'] as const) {
    const [{ name }] = ofKind(plan, kind) as [Component]
    refusals[name] = await refusedMs(patient, routers, segment, name)
    say(`${name} killed: a client was refused for ${refusals[name]} ms`)
  }
  return refusals
}

function refusedTooLong(refusals: FabricChaosReport['refusedMs']): string[] {
  return Object.entries(refusals)
    .filter(([, ms]) => ms > REFUSED_MS_MAX)
    .map(([name, ms]) => `${name} killed: a client was refused for ${ms} ms, more than ${REFUSED_MS_MAX} ms`)
}

function lineOf(crowd: Crowd): string {
  const { requests, acknowledged, unknown, refused, failedReads } = crowd.sums
  return `${requests} requests, ${acknowledged} writes acknowledged, ${unknown} unknown, ${refused} refused, ${failedReads} reads failed, ${crowd.violations.length} violations`
}

export const fabricChaosCommand = defineCommand({
  name: 'proofs fabric-chaos',
  component: 'fabric-chaos',
  summary: 'Runs a platform of real processes under faults and counts what its clients wrote.',
  flags: {
    minutes: { type: 'integer', min: 1, max: 10_000, default: 1, summary: 'Time with faults.' },
    seed: SEED_FLAG,
    json: { type: 'text', value: 'FILE', summary: 'Writes the report.' },
  },
  run: async ({ flags: { minutes, seed = seedOfNow(), json } }) => {
    const report = await runFabricChaos({ seconds: minutes * 60, seed, say })
    return tellReport(report, json, `fabric-chaos --minutes ${minutes} --seed ${seed}`)
  },
})
