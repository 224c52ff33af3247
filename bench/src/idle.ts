/** `npm run bench -- idle`: what the programs of `npm start` take while nobody asks for anything, by program and thread. */

import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { EXIT } from '@vacancy/shared'
import { defineCommand, whole } from '@vacancy/shared/node'
import { formatValue, type RowReport, rowOf } from './format.ts'
import { median } from './pauses.ts'
import { proportionalBytes } from './process-memory.ts'
import { threadSeconds } from './process-time.ts'
import { startProgram, stopProgram } from './programs.ts'
import { dirFlag, measureSection, RECORD_FLAGS, type SectionHead, storeSection } from './record-section.ts'
import { judged, type Measure } from './verdict.ts'

/** Compilers and the first snapshots have done their work by then. */
const SETTLE_MS = 120_000
const STOP_MS = 60_000
const TARGETS = { platform: 8, platformMegabytes: 550, node: 1 } as const
const NODES = /^n\d$/

export const idleCommand = defineCommand({
  name: 'bench idle',
  component: 'idle',
  summary: 'Measures processor time and memory of an idle npm start, by program and thread.',
  flags: {
    rounds: { ...whole(3, 1, 100), summary: 'Times, one after the other; figures are medians.' },
    seconds: { ...whole(20, 5, 600, 'seconds'), summary: 'Length of each.' },
    ...RECORD_FLAGS,
    dir: dirFlag('idle'),
  },
  run: async ({ flags }) => {
    const { section, runs } = await measureSection(headOf(flags), async () => {
      const runs = await measure(flags)
      return { rows: rowsOf(runs), ...runs }
    })
    storeSection(section, flags, runs)
    return EXIT.ok
  },
})

type Plan = { readonly rounds: number; readonly seconds: number; readonly dir: string }

/** By program; each a share of a core in percent by thread and round. */
type Times = { readonly [program: string]: { readonly [thread: string]: number[] } }
type IdleRuns = { readonly times: Times; readonly megabytes: { readonly [program: string]: number } }

const headOf = ({ rounds, seconds }: Plan): SectionHead => ({
  name: 'idle',
  title: 'At rest',
  command: `npm run bench -- idle --rounds ${rounds} --seconds ${seconds}`,
  scope: `${rounds} times ${seconds} s, ${SETTLE_MS / 1000} s after the start`,
  how: [
    '`npm start` with its defaults: four nodes, registry, resolver, job queue with sample jobs, control plane and console, which no browser shows.',
    'Processor time is that of the kernel by thread, as a share of one core. Memory counts pages that processes share once.',
  ],
})

async function measure({ rounds, seconds, dir }: Plan): Promise<IdleRuns> {
  rmSync(dir, { recursive: true, force: true })
  const program = startProgram(['quickstart/src/shard.ts', '--dir', dir, '--console-port', '0'])
  try {
    await program.printed(/\nStop {6}Ctrl-C/)
    await wait(SETTLE_MS)
    const { processes } = JSON.parse(readFileSync(join(dir, 'running.json'), 'utf8')) as {
      processes: { [name: string]: number }
    }
    const pids = Object.entries({ ...processes, starter: program.pid })
    const times: { [program: string]: { [thread: string]: number[] } } = {}
    for (let round = 0; round < rounds; round++) {
      process.stderr.write(`round ${round + 1} of ${rounds}\n`)
      const before = pids.map(([, pid]) => threadSeconds(pid))
      const begunMs = performance.now()
      await wait(seconds * 1000)
      const lengthMs = performance.now() - begunMs
      for (const [i, [name, pid]] of pids.entries()) {
        for (const [thread, taken] of Object.entries(threadSeconds(pid))) {
          const share = ((taken - (before[i]?.[thread] ?? 0)) * 100_000) / lengthMs
          times[name] = { ...times[name], [thread]: [...(times[name]?.[thread] ?? []), share] }
        }
      }
    }
    const megabytes = Object.fromEntries(pids.map(([name, pid]) => [name, proportionalBytes(pid) / 1e6]))
    return { times, megabytes }
  } finally {
    await stopProgram(program, { withinMs: STOP_MS })
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Threads of a node, by the names that the kernel has for them. */
const THREADS: readonly (readonly [name: string, threads: readonly string[]])[] = [
  ['replica thread', ['replica']],
  ['main thread', ['node-MainThread']],
  ['serving threads', ['serving']],
  ['compilers and garbage collectors', ['node-V8Worker']],
]

type Part = readonly [name: string, value: number]

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)

/** Of these threads, or of all; the median of the rounds. */
function shareOf(threads: Times[string] = {}, names = Object.keys(threads)): number {
  const rounds = Math.max(...Object.values(threads).map((shares) => shares.length))
  const sums = Array.from({ length: rounds }, (_, round) => sumOf(names.map((name) => threads[name]?.[round] ?? 0)))
  return median(sums)
}

function rowsOf({ times, megabytes }: IdleRuns): RowReport[] {
  const programs = Object.keys(times)
  const nodes = programs.filter((name) => NODES.test(name))
  const others = programs.filter((name) => !NODES.test(name))
  const nodesShare = sumOf(nodes.map((name) => shareOf(times[name])))
  const ofNode = (names?: readonly string[]) =>
    sumOf(nodes.map((name) => shareOf(times[name], names && [...names]))) / nodes.length
  const total = nodesShare + sumOf(others.map((name) => shareOf(times[name])))
  const nodesMemory = sumOf(nodes.map((name) => megabytes[name] ?? 0))
  const whole = (name: string, unit: '%' | 'MB', value: number, atMost: number, parts: readonly Part[]): Measure => {
    const why = parts.map(([part, size]) => `${part} ${formatValue(size, unit)}`).join(', ')
    return judged({ name, unit, value, target: { atMost }, why })
  }
  const share = 'share of a core'
  return [
    rowOf(1, 'processor time of npm start at rest', [
      whole(share, '%', total, TARGETS.platform, [
        [`${nodes.length} nodes`, nodesShare],
        ...others.map((name): Part => [name, shareOf(times[name])]),
      ]),
    ]),
    rowOf(2, 'processor time of one of its nodes', [
      whole(
        share,
        '%',
        ofNode(),
        TARGETS.node,
        THREADS.map(([name, threads]): Part => [name, ofNode(threads)]),
      ),
    ]),
    rowOf(3, 'memory of npm start at rest', [
      whole('in all', 'MB', sumOf(Object.values(megabytes)), TARGETS.platformMegabytes, [
        [`${nodes.length} nodes`, nodesMemory],
        ...others.map((name): Part => [name, megabytes[name] ?? 0]),
      ]),
    ]),
  ]
}
