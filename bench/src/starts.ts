/** `npm run bench -- starts`: what it takes to start a program from its bundle and from its sources, in turns. */

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EXIT } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { freePort } from '@vacancy/testkit/free-port'
import { type Program, startProgram } from '@vacancy/testkit/program'
import { type Bench, SIZES } from './bench.ts'
import { failure } from './failure.ts'
import type { RowReport, Section } from './format.ts'
import { inTurns } from './in-turns.ts'
import { cpuPressure, describeMachine } from './machine.ts'
import { median } from './pauses.ts'
import { residentBytes } from './process-memory.ts'
import { processSeconds } from './process-time.ts'
import { lastLine, ROOT, stopProgram } from './programs.ts'
import { recordSection } from './record-section.ts'
import { judged, type Measure, type Unit, worstOf } from './verdict.ts'

/** A node loads its kernels, then gives back what the start took. */
const SETTLE_MS = 5_000

export const startsCommand = defineCommand({
  name: 'bench starts',
  component: 'starts',
  summary: 'Starts an empty node and a short command from their bundles and from their sources, in turns.',
  flags: {
    rounds: {
      type: 'integer',
      min: 1,
      max: 100,
      default: 7,
      summary: 'Starts of each, in turns; figures are medians.',
    },
    write: { type: 'boolean', summary: 'Records the figures and renews the pages that quote them.' },
    json: { type: 'text', value: 'FILE', summary: 'Writes the figures with every run as JSON.' },
    dir: { type: 'text', default: join(ROOT, '.vacancy/starts'), value: 'DIR', summary: 'Folder for the data.' },
  },
  run: async ({ flags }) => {
    await recordSection(flags, SIZES.quick, (bench) => measure(bench, flags.rounds))
    return EXIT.ok
  },
})

/** One start of an empty node, until it has settled, and one of `vacancy query --help`, until its end. */
type StartRun = {
  readonly activeMs: number
  readonly cpuSeconds: number
  readonly residentMb: number
  readonly helpMs: number
}
export type StartRuns = { readonly bundle: readonly StartRun[]; readonly sources: readonly StartRun[] }

async function measure(bench: Bench, rounds: number): Promise<{ section: Section; runs: StartRuns }> {
  const machine = describeMachine()
  const startedAt = new Date().toISOString()
  const begun = performance.now()
  const pressure = cpuPressure()
  const startFrom = (env: NodeJS.ProcessEnv) => startOnce(join(bench.dir, 'node'), env)
  const loads = { bundle: () => startFrom({}), sources: () => startFrom({ VACANCY_FROM_SOURCE: '1' }) }
  // The files are in memory, and their compiled code is kept.
  for (const load of Object.values(loads)) await load()
  const runs = await inTurns(rounds, loads, (round) => bench.say(`starts: round ${round} of ${rounds}`))
  const section: Section = {
    name: 'starts',
    title: 'Starts',
    command: `npm run bench -- starts --rounds ${rounds}`,
    scope: `${rounds} starts of each in turn`,
    startedAt,
    seconds: (performance.now() - begun) / 1000,
    machine,
    rows: rowsOf(runs),
    notes: [...bench.notes, ...pressure()],
    how: HOW,
  }
  return { section, runs }
}

const HOW = [
  'Row 1: a standalone node with an empty data directory, all else at its defaults. Processor time and memory are those of the whole process, 5 s after it was active.',
  'Row 2: `vacancy query --help`, from its start to its end.',
  'The baseline is the same program from its sources (`VACANCY_FROM_SOURCE=1`). Each was started once before. The target is to be no worse.',
]

async function startOnce(dir: string, env: NodeJS.ProcessEnv): Promise<StartRun> {
  rmSync(dir, { recursive: true, force: true })
  mkdirSync(dir, { recursive: true })
  const [port, apiPort] = await Promise.all([freePort(), freePort()])
  const [file, codecs] = [join(dir, 'vacancy.yml'), join(dir, 'codecs.yml')]
  writeFileSync(codecs, 'rate_features:\n  - breakfast\n')
  writeFileSync(file, `tcp_port: ${port}\napi_port: ${apiPort}\n`)
  const begun = performance.now()
  const args = ['run', '--config', file, '--codecs', codecs, '--data-dir', join(dir, 'data')]
  const program = start(args, env)
  await program.printed(/serving: tcp/)
  const activeMs = performance.now() - begun
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS))
  const cpuSeconds = processSeconds(program.pid)
  const residentMb = residentBytes(program.pid).resident / 1e6
  await endsWell(program, () => stopProgram(program))
  rmSync(dir, { recursive: true })
  return { activeMs, cpuSeconds, residentMb, helpMs: await helpMs(env) }
}

async function helpMs(env: NodeJS.ProcessEnv): Promise<number> {
  const begun = performance.now()
  const program = start(['query', '--help'], env)
  await endsWell(program, () => program.ended)
  return performance.now() - begun
}

function start(args: readonly string[], env: NodeJS.ProcessEnv): Program {
  return startProgram(['bin/vacancy.mjs', ...args], { cwd: ROOT, env, isBound: true })
}

async function endsWell(program: Program, end: () => Promise<number | null>): Promise<void> {
  const code = await end()
  if (code !== 0) throw failure(`a program ended with exit code ${code}: ${lastLine(program)}`)
}

/** The figures of all runs. */
function rowsOf({ bundle, sources }: StartRuns): RowReport[] {
  const figure = (name: string, of: keyof StartRun, unit: Unit): Measure => {
    const [value = Number.NaN, baseline = Number.NaN] = [bundle, sources].map((runs) =>
      median(runs.map((run) => run[of])),
    )
    return judged({
      name,
      value,
      unit,
      target: { atMost: baseline },
      baseline: { name: 'from sources', value: baseline },
    })
  }
  const rows = [
    {
      what: 'an empty node starts',
      measures: [
        figure('active after', 'activeMs', 'ms'),
        figure('processor time', 'cpuSeconds', 's'),
        figure('resident', 'residentMb', 'MB'),
      ],
    },
    { what: 'a short command', measures: [figure('ended after', 'helpMs', 'ms')] },
  ]
  return rows.map(({ what, measures }, n) => ({ id: n + 1, what, verdict: worstOf(measures), measures }))
}
