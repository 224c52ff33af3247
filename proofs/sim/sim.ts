/**
 * `npm run proofs -- sim`: simulated clusters by the thousand (docs/design/testing.md#simulation,
 * docs/design/testing.md#a-failing-seed).
 *
 * Unless a program is given, it is drawn from the seed: mostly bare cores, which are fast, and in a third of the
 * seeds whole nodes with the production log and store.
 *
 * A failing seed writes failure-<seed>.json and prints the command that repeats it.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { VacancyError } from '@vacancy/shared'
import { commitOf, defineCommand } from '@vacancy/shared/node'
import { streamOf } from '@vacancy/testkit/random'
import { seedOfNow } from '../seed.ts'
import { type RunOptions, type RunResult, runSeed } from './cluster.ts'
import { coreProgram } from './core-node.ts'
import { driverProgram } from './driver-node.ts'
import { PROFILES, type Profile } from './knobs.ts'
import { addRun, addSummaries, createSummary, type Figures, holesOf, type Summary, textOfSummary } from './report.ts'
import { shrink } from './shrink.ts'
import { STAY_COUNTS } from './stays-reference.ts'
import { MODEL_COUNTS } from './store-model.ts'
import type { Program } from './world.ts'

const PROGRAMS: { readonly [name: string]: Program } = {
  core: coreProgram,
  driver: driverProgram,
}
/** Percentage of seeds of whole nodes; the rest are bare cores. */
const DRIVER_PERCENT = 35
/** From this many seeds, gaps in coverage are errors. */
const HOLES_SEEDS = 1_000
/** One in this many seeds runs twice. */
const TWICE_EVERY = 100
const LINES_KEPT = 2_000
const SAY_MS = 10_000
type Settings = {
  readonly profile: Profile
  /** Seeds take all profiles in turn. */
  readonly hasAllProfiles: boolean
  /** `mix`: drawn from each seed. */
  readonly program: string
  readonly length: number
}

const SEED = { type: 'integer', min: 0, max: 2 ** 48 } as const
const WHOLE = { type: 'integer', min: 1, max: 1_000_000_000 } as const

export const simCommand = defineCommand({
  name: 'proofs sim',
  component: 'sim',
  summary: 'Simulates clusters by the thousand. A failing seed is shrunk, and the command that repeats it is printed.',
  flags: {
    seeds: { ...WHOLE, default: 100, summary: 'How many.' },
    from: { type: 'text', summary: 'The first seed. Default: the time of day in seconds.' },
    seed: { ...SEED, summary: 'One seed, with a description of its last events.' },
    replay: { type: 'text', value: 'FILE', summary: 'The schedule of failure-SEED.json, independent of the seed.' },
    profile: { type: 'choice', choices: ['all', ...PROFILES], default: 'mixed', summary: 'Which faults.' },
    program: {
      type: 'choice',
      choices: ['mix', ...Object.keys(PROGRAMS)],
      default: 'mix',
      summary: 'The program of each seed; mix draws it from the seed.',
    },
    jobs: { ...WHOLE, default: 1, summary: 'Threads.' },
    length: { type: 'text', default: '1', value: 'F', summary: 'Runs F times as long.' },
    json: { type: 'text', value: 'FILE', summary: 'The counts of each profile as JSON.' },
    'keep-going': { type: 'boolean', summary: 'Continues after a failing seed.' },
    'no-shrink': { type: 'boolean', summary: 'Does not shrink a failing seed.' },
  },
  run: async ({ flags }) => {
    const say = (line: string) => void process.stdout.write(`${line}\n`)
    const { profile: named, program, seeds, seed } = flags
    const from = flags.from === undefined ? seedOfNow() : Number(flags.from)
    const length = Number(flags.length)
    if (!Number.isSafeInteger(from))
      throw new VacancyError('usage_error', { reason: `--from is no seed: ${flags.from}` })
    if (!(length > 0)) throw new VacancyError('usage_error', { reason: `--length is no factor: ${flags.length}` })
    const profile = PROFILES.find((name) => name === named) ?? 'mixed'
    const settings: Settings = { profile, hasAllProfiles: named === 'all', program, length }
    if (flags.replay !== undefined) return replay(flags.replay, say)
    if (seed !== undefined) return one(settings, seed, say)
    return await many(settings, from, seeds, flags, say)
  },
})

/** The settings of one seed, with its profile and program. */
function settingsOfSeed(all: Settings, seed: number): Settings {
  const profile = all.hasAllProfiles ? (PROFILES[seed % PROFILES.length] ?? 'mixed') : all.profile
  const settings = { ...all, profile, hasAllProfiles: false }
  if (settings.program !== 'mix') return settings
  return { ...settings, program: streamOf(seed, 'program').below(100) < DRIVER_PERCENT ? 'driver' : 'core' }
}

function optionsOf(settings: Settings, seed: number): RunOptions {
  const { profile, length, program: name } = settingsOfSeed(settings, seed)
  return { seed, profile, length, program: PROGRAMS[name] as Program }
}

function commandOf(all: Settings, seed: number): string {
  const settings = { ...all, profile: settingsOfSeed(all, seed).profile }
  const parts = [`npm run proofs -- sim --seed ${seed}`]
  if (settings.profile !== 'mixed') parts.push(`--profile ${settings.profile}`)
  if (settings.program !== 'mix') parts.push(`--program ${settings.program}`)
  if (settings.length !== 1) parts.push(`--length ${settings.length}`)
  return parts.join(' ')
}

type Values = {
  readonly json?: string | undefined
  readonly jobs: number
  readonly keepGoing: boolean
  readonly noShrink: boolean
}

/** One summary per profile that was run. */
type Summaries = { [profile in Profile]?: Summary }

async function many(
  settings: Settings,
  from: number,
  seeds: number,
  values: Values,
  say: (line: string) => void,
): Promise<number> {
  const { jobs } = values
  say(`${seeds} seeds from ${from} on`)
  const profiles =
    jobs > 1
      ? await runOnThreads(settings, from, seeds, jobs, values, say)
      : runSeeds(settings, seedsOf(from, seeds, 0, 1), values, say)
  const summaries = Object.entries(profiles)
  for (const [profile, summary] of summaries) say(`${profile}: ${textOfSummary(summary)}`)
  if (values.json) {
    const command = `npm run proofs -- sim --profile ${settings.hasAllProfiles ? 'all' : settings.profile} --seeds ${seeds} --from ${from}`
    const figures: Figures = { ...environment(), command, from, seeds, ...settingsOf(settings), profiles }
    writeJson(values.json, figures)
  }
  const all = summaries.map(([, summary]) => summary)
  const failed = all.flatMap((summary) => summary.failed)
  if (summaries.length > 1) say(`${all.reduce((sum, { runs }) => sum + runs, 0)} seeds, ${failed.length} failed`)
  const holes =
    seeds >= HOLES_SEEDS && (settings.hasAllProfiles || settings.profile === 'mixed')
      ? holesOf(addSummaries(all), EXPECTED[settings.program] ?? [])
      : []
  if (holes.length > 0) say(`never happened, so not tested: ${holes.join(', ')}`)
  return failed.length + holes.length > 0 ? 1 : 0
}

/** Seeds of one of several threads, interleaved. */
function seedsOf(from: number, seeds: number, thread: number, threads: number): number[] {
  // Threads run whole rounds of profiles, so that each runs all of them.
  const round = PROFILES.length
  return Array.from({ length: seeds }, (_, n) => from + n).filter((_, n) => Math.floor(n / round) % threads === thread)
}

function runSeeds(
  settings: Settings,
  seeds: readonly number[],
  values: Values,
  say: (line: string) => void,
): Summaries {
  const profiles: Summaries = {}
  const started = performance.now()
  let saidAt = started
  let runs = 0
  let failed = 0
  for (const seed of seeds) {
    const begun = performance.now()
    const result = runSeed(optionsOf(settings, seed))
    const { profile, program } = settingsOfSeed(settings, seed)
    const summary = profiles[profile] ?? createSummary()
    profiles[profile] = summary
    addRun(summary, result, program)
    if (seed % TWICE_EVERY === 0) checkTwice(settings, summary, result)
    runs++
    const now = performance.now()
    summary.seconds += (now - begun) / 1_000
    if (now - saidAt > SAY_MS) {
      saidAt = now
      say(`seed ${seed}: ${runs} runs in ${Math.round((now - started) / 1_000)} s, ${failed} failed`)
    }
    if (!result.failure) continue
    failed++
    tellFailure(settings, result, !values.noShrink, say)
    if (!values.keepGoing) break
  }
  return profiles
}

type ThreadWork = { readonly settings: Settings; readonly seeds: readonly number[]; readonly values: Values }
type FromThread = { readonly line: string } | { readonly profiles: Summaries }

/** A run uses one core: two threads run twice as many seeds. */
async function runOnThreads(
  settings: Settings,
  from: number,
  seeds: number,
  threads: number,
  values: Values,
  say: (line: string) => void,
): Promise<Summaries> {
  const results = await Promise.all(
    Array.from({ length: threads }, (_, thread) => {
      const work: ThreadWork = { settings, seeds: seedsOf(from, seeds, thread, threads), values }
      return new Promise<Summaries>((resolve, reject) => {
        const worker = new Worker(new URL(import.meta.url), { workerData: work })
        worker.on('message', (message: FromThread) => {
          if ('line' in message) say(`[${thread + 1}] ${message.line}`)
          else resolve(message.profiles)
        })
        worker.on('error', reject)
        worker.on('exit', (code) => reject(new Error(`thread ${thread + 1} ended with code ${code}`)))
      })
    }),
  )
  const profiles: Summaries = {}
  for (const profile of PROFILES) {
    const own = results.flatMap((result) => result[profile] ?? [])
    if (own.length > 0) profiles[profile] = addSummaries(own)
  }
  return profiles
}

function writeJson(file: string, value: object): void {
  writeFileSync(file, `${JSON.stringify(value, undefined, 2)}\n`)
}

/** Events that a run of a thousand seeds must include, for any program. */
const EVERYWHERE = [
  ...['elections', 'restarts', 'snapshotsTaken', 'snapshotsInstalled', 'membershipChanges', 'transfers', 'reads'],
  ...['answers', 'unknowns', 'drop', 'duplicate', 'late', 'damage', 'partition', 'oneway', 'slowlink', 'reset'],
  ...[
    'kill',
    'power',
    'killall',
    'rolling',
    'stall',
    'slowdisk',
    'hungdisk',
    'fulldisk',
    'clock',
    'transfer',
    'membership',
  ],
  ...['wipe', 'O1', 'O2', 'O3', 'O4', 'O5', 'O6', 'O8', 'O9', 'O12', 'O13', 'O14'],
]
const OF_NODES = [
  ...[
    ...EVERYWHERE,
    'cut',
    'diskerror',
    'corrupt',
    'refusals',
    'O10',
    'O11',
    'shutdown',
    'maintenance',
    'load',
    'exhaust',
    'restore',
    'O7',
    'O15',
  ],
  ...[
    'built',
    'outsideWindow',
    'exhausted',
    'maintenances',
    'loads',
    'newYears',
    'leapDays',
    'waitedIndexes',
    ...MODEL_COUNTS,
  ],
  ...['stayReplies', 'S1', 'S2', 'S3', 'S4', 'S5', 'S6', ...STAY_COUNTS],
]
const EXPECTED: { readonly [program: string]: readonly string[] } = {
  mix: OF_NODES,
  core: EVERYWHERE,
  driver: OF_NODES,
}

function settingsOf({ profile, hasAllProfiles, program, length }: Settings) {
  return { profile: hasAllProfiles ? 'all' : profile, program, length }
}

function environment(): { readonly node: string; readonly commit: string } {
  return { node: process.version, commit: commitOf(import.meta.dirname) }
}

function checkTwice(settings: Settings, summary: Summary, result: RunResult): void {
  const again = runSeed(optionsOf(settings, result.seed))
  summary.determinismChecks++
  if (again.hash === result.hash) return
  throw new Error(`seed ${result.seed} is not deterministic: ${result.hash} and ${again.hash}`)
}

function tellFailure(settings: Settings, result: RunResult, shrinks: boolean, say: (line: string) => void): void {
  const { failure, seed } = result
  const command = commandOf(settings, seed)
  say(`seed ${seed} failed after ${((failure?.atUs ?? 0) / 1e6).toFixed(3)} s: ${failure?.message}`)
  say(`  again: ${command}`)
  const options = optionsOf(settings, seed)
  const shrunk = shrinks ? shrink(options, result) : undefined
  const detailed = runSeed({ ...(shrunk?.options ?? options), keepsWords: true })
  if (shrunk)
    say(`  shrunk from ${result.schedule.length} to ${detailed.schedule.length} faults in ${shrunk.runs} runs`)
  const file = `failure-${seed}.json`
  const lines = detailed.lines.slice(-LINES_KEPT)
  const own = settingsOf(settingsOfSeed(settings, seed))
  writeJson(file, { ...environment(), ...own, ...detailed, lines, command })
  say(`  ${file}: schedule, settings and the last events. Replay: npm run proofs -- sim --replay ${file}`)
}

function one(settings: Settings, seed: number, say: (line: string) => void): number {
  const result = runSeed({ ...optionsOf(settings, seed), keepsWords: true })
  say(result.lines.slice(-LINES_KEPT).join('\n'))
  const summary = createSummary()
  addRun(summary, result, settingsOfSeed(settings, seed).program)
  say(textOfSummary(summary))
  say(JSON.stringify(result.knobs))
  say(`trace ${result.hash}${result.failure ? `\n${result.failure.message}` : ''}`)
  return result.failure ? 1 : 0
}

function replay(file: string, say: (line: string) => void): number {
  const saved = JSON.parse(readFileSync(file, 'utf8')) as RunResult & { readonly program: string }
  const { seed, profile, knobs, schedule } = saved
  const program = PROGRAMS[saved.program] as Program
  const result = runSeed({ seed, profile, program, knobs, schedule, keepsWords: true })
  say(result.lines.slice(-LINES_KEPT).join('\n'))
  say(`trace ${result.hash}: ${result.failure?.message ?? 'it holds'}`)
  return result.failure ? 1 : 0
}

if (parentPort && !isMainThread) {
  const port = parentPort
  const { settings, seeds, values } = workerData as ThreadWork
  const tell = (message: FromThread) => port.postMessage(message)
  tell({ profiles: runSeeds(settings, seeds, values, (line) => tell({ line })) })
}
