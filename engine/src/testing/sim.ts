/**
 * `npm run sim`: simulated clusters by the thousand (reliability.md §3–§7, §13).
 *
 * The forms of the command stand in USAGE_TEXT.
 *
 * What a seed runs is drawn from it, unless a program is named: mostly bare cores, which are quick, and in one seed of
 * twenty whole nodes over the product's store.
 *
 * A failing seed writes failure-<seed>.json and prints the command that plays it again.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { commitOf } from '@vacancy/shared/node'
import { type RunOptions, type RunResult, runSeed } from './cluster.ts'
import { arrayLog } from './core-log.ts'
import { createCoreProgram } from './core-node.ts'
import { DEFECTS, type DefectRow } from './defects.ts'
import { driverProgram } from './driver-node.ts'
import type { Fault } from './knobs.ts'
import { type Knobs, PROFILES, type Profile } from './knobs.ts'
import { streamOf } from './random.ts'
import {
  addRun,
  createSummary,
  type DefectFinding,
  holesOf,
  markdownOf,
  type Summary,
  textOfSummary,
} from './report.ts'
import { shrink } from './shrink.ts'
import { walLog } from './wal-log.ts'
import type { Program } from './world.ts'

const PROGRAMS: { readonly [name: string]: Program } = {
  core: createCoreProgram(arrayLog),
  log: createCoreProgram(walLog),
  driver: driverProgram,
}
/** Of a hundred seeds so many run this; the rest bare cores. */
const MIX: readonly { readonly percent: number; readonly program: string; readonly usesStore: boolean }[] = [
  { percent: 5, program: 'driver', usesStore: true },
  { percent: 1, program: 'driver', usesStore: false },
  { percent: 4, program: 'log', usesStore: false },
]
/** From so many seeds on nothing may be left out that a run is there to test. */
const HOLES_SEEDS = 1_000
/** One seed in so many runs twice. */
const TWICE_EVERY = 100
const LINES_KEPT = 2_000
const SAY_MS = 10_000
const USAGE = 64

const USAGE_TEXT = `usage:
  npm run sim -- --seeds 1000 [--from 1]     that many seeds; a failing one is shrunk, and its replay printed
  npm run sim -- --seed 8412                 one seed, with the words of its last events
  npm run sim -- --replay failure-8412.json  the fault schedule of a failure, whatever the seed gives today
  npm run sim -- --defects [--seeds 200] [--only NAME]
                                             every planted defect, and the seeds it took to find it
  npm run sim -- --seeds 200 --defect NAME   one of them
  npm run sim -- --report FOLDER [--seeds N] everything: reliability-report.json and reliability.md in that folder

flags:
  --profile NAME                 which faults (default mixed): ${PROFILES.join(', ')}
  --program mix|core|log|driver  what a seed runs; mix draws it from the seed (default)
  --store                        all seeds over the product's store
  --length F                     runs F times as long (default 1)
  --json FILE                    the counts as JSON
  --keep-going                   a failing seed does not end the run
  --no-shrink                    a failing seed is not shrunk`

type Settings = {
  readonly profile: Profile
  /** `mix`: of each seed its own. */
  readonly program: string
  readonly length: number
  /** All seeds run the product's store, not one in twenty; only whole nodes have one. */
  readonly usesStore: boolean
  readonly defects: ReadonlySet<string>
}

const OPTIONS = {
  seeds: { type: 'string', default: '100' },
  from: { type: 'string', default: '1' },
  seed: { type: 'string' },
  replay: { type: 'string' },
  profile: { type: 'string', default: 'mixed' },
  program: { type: 'string', default: 'mix' },
  length: { type: 'string', default: '1' },
  store: { type: 'boolean', default: false },
  defect: { type: 'string' },
  defects: { type: 'boolean', default: false },
  only: { type: 'string' },
  json: { type: 'string' },
  report: { type: 'string' },
  'keep-going': { type: 'boolean', default: false },
  'no-shrink': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const

/** What is wrong with the flags, as words, or the flags. */
function flagsOf(args: readonly string[]) {
  let values: ReturnType<typeof parseArgs<{ args: string[]; options: typeof OPTIONS }>>['values']
  try {
    values = parseArgs({ args: [...args], options: OPTIONS }).values
  } catch (error) {
    return (error as Error).message
  }
  for (const name of ['seeds', 'from', 'seed'] as const) {
    const text = values[name]
    if (text !== undefined && !/^\d{1,15}$/.test(text)) return `--${name} takes a whole number, not "${text}"`
  }
  if (!(Number(values.length) > 0)) return `--length takes a number above 0, not "${values.length}"`
  for (const name of [values.defect, values.only]) {
    if (name !== undefined && !DEFECTS.some((row) => row.name === name)) return `there is no planted defect "${name}"`
  }
  return values
}

export function main(args: readonly string[], say: (line: string) => void): number {
  const values = flagsOf(args)
  if (typeof values === 'string') {
    say(`${values}\n\n${USAGE_TEXT}`)
    return USAGE
  }
  if (values.help) {
    say(USAGE_TEXT)
    return 0
  }
  const profile = PROFILES.find((name) => name === values.profile)
  // Only whole nodes have a store.
  const program = values.program === 'mix' && values.store ? 'driver' : values.program
  if (!profile || (program !== 'mix' && !PROGRAMS[program])) {
    say(`profiles: ${PROFILES.join(', ')}; programs: mix, ${Object.keys(PROGRAMS).join(', ')}`)
    return USAGE
  }
  const settings: Settings = {
    profile,
    program,
    length: Number(values.length),
    usesStore: values.store,
    defects: new Set(values.defect ? [values.defect] : []),
  }
  if (values.replay) return replay(values.replay, say)
  if (values.seed) return one(settings, Number(values.seed), say)
  const from = Number(values.from)
  const seeds = Number(values.seeds)
  if (values.report) return report(settings, from, seeds, values.report, say)
  if (values.defects) return plantAll(settings, from, seeds, values.only, values.json, say)
  return many(settings, from, seeds, values, say)
}

/** The settings of one seed, with the program that it runs. */
function settingsOfSeed(settings: Settings, seed: number): Settings {
  if (settings.program !== 'mix') return settings
  let drawn = streamOf(seed, 'program').below(100)
  for (const { percent, program, usesStore } of MIX) {
    if (drawn < percent) return { ...settings, program, usesStore }
    drawn -= percent
  }
  return { ...settings, program: 'core' }
}

function optionsOf(settings: Settings, seed: number): RunOptions {
  const { profile, length, defects, program: name, usesStore } = settingsOfSeed(settings, seed)
  const program = PROGRAMS[name] as Program
  // In a mix the shares are those of the mix.
  const knobs = usesStore || settings.program === 'mix' ? { knobs: { usesStore } } : {}
  return { seed, profile, length, defects, program, ...knobs }
}

function commandOf(settings: Settings, seed: number): string {
  const parts = [`npm run sim -- --seed ${seed}`]
  if (settings.profile !== 'mixed') parts.push(`--profile ${settings.profile}`)
  if (settings.program !== 'mix') parts.push(`--program ${settings.program}`)
  if (settings.usesStore) parts.push('--store')
  if (settings.length !== 1) parts.push(`--length ${settings.length}`)
  for (const name of settings.defects) parts.push(`--defect ${name}`)
  return parts.join(' ')
}

type Values = {
  readonly json?: string | undefined
  readonly 'keep-going': boolean
  readonly 'no-shrink': boolean
}

function many(settings: Settings, from: number, seeds: number, values: Values, say: (line: string) => void): number {
  const summary = runMany(settings, from, seeds, values, say)
  say(textOfSummary(summary))
  if (values.json) writeJson(values.json, { ...environment(), ...settingsOf(settings), ...summary })
  const holes =
    seeds >= HOLES_SEEDS && settings.profile === 'mixed' ? holesOf(summary, EXPECTED[settings.program] ?? []) : []
  if (holes.length > 0) say(`never happened, so never tested: ${holes.join(', ')}`)
  return summary.failed.length + holes.length > 0 ? 1 : 0
}

function runMany(
  settings: Settings,
  from: number,
  seeds: number,
  values: Values,
  say: (line: string) => void,
): Summary {
  const summary = createSummary()
  const started = performance.now()
  let saidAt = started
  for (let seed = from; seed < from + seeds; seed++) {
    const result = runSeed(optionsOf(settings, seed))
    const { program, usesStore } = settingsOfSeed(settings, seed)
    addRun(summary, result, usesStore ? `${program} over the store` : program)
    if (seed % TWICE_EVERY === 0) checkTwice(settings, summary, result)
    const now = performance.now()
    summary.seconds = (now - started) / 1_000
    if (now - saidAt > SAY_MS) {
      saidAt = now
      const rate = Math.round(summary.events / summary.seconds)
      say(`seed ${seed}: ${summary.runs} runs, ${rate} events a second, ${summary.failed.length} failed`)
    }
    if (!result.failure) continue
    tellFailure(settings, result, !values['no-shrink'], say)
    if (!values['keep-going']) break
  }
  return summary
}

function writeJson(file: string, value: object): void {
  writeFileSync(file, `${JSON.stringify(value, undefined, 2)}\n`)
}

/** The figures of reliability.md §14 that the simulation gives, of one run of each program and of all planted defects. */
function report(settings: Settings, from: number, seeds: number, folder: string, say: (line: string) => void): number {
  const programs: { [name: string]: Summary } = {}
  for (const program of Object.keys(PROGRAMS)) {
    say(`${program}: ${seeds} seeds`)
    programs[program] = runMany({ ...settings, program }, from, seeds, { 'keep-going': true, 'no-shrink': true }, say)
  }
  const findings = findAll(settings, from, seeds, undefined, say)
  writeJson(join(folder, 'reliability-report.json'), { ...environment(), from, seeds, programs, findings })
  const command = `npm run sim -- --report ${folder} --seeds ${seeds} --from ${from}`
  writeFileSync(join(folder, 'reliability.md'), markdownOf(programs, findings, command))
  return Object.values(programs).some(({ failed }) => failed.length > 0) || findings.some(isMissed) ? 1 : 0
}

const isMissed = ({ layer, seeds }: DefectFinding): boolean => layer === 'simulation' && seeds === undefined

/** What a run of a thousand seeds must have met, whatever runs. */
const EVERYWHERE = [
  ...['elections', 'restarts', 'snapshotsTaken', 'snapshotsInstalled', 'membershipChanges', 'transfers', 'reads'],
  ...['answers', 'unknowns', 'drop', 'duplicate', 'late', 'damage', 'partition', 'oneway', 'slowlink', 'reset'],
  ...['kill', 'power', 'killall', 'rolling', 'stall', 'slowdisk', 'fulldisk', 'clock', 'transfer', 'membership'],
  ...['O1', 'O2', 'O3', 'O4', 'O5', 'O6', 'O8', 'O9', 'O12', 'O13', 'O14'],
]
const ON_DISK = [...EVERYWHERE, 'cut', 'diskerror', 'corrupt', 'refusals', 'O10', 'O11']
const OF_NODES = [...ON_DISK, 'wipe', 'shutdown', 'O7', 'O15']
const EXPECTED: { readonly [program: string]: readonly string[] } = {
  mix: OF_NODES,
  core: EVERYWHERE,
  log: ON_DISK,
  driver: OF_NODES,
}

function settingsOf({ profile, program, length, usesStore, defects }: Settings): object {
  return { profile, program, length, usesStore, defects: [...defects] }
}

function environment(): object {
  return { node: process.version, commit: commitOf(import.meta.dirname) }
}

function checkTwice(settings: Settings, summary: Summary, result: RunResult): void {
  const again = runSeed(optionsOf(settings, result.seed))
  summary.determinismChecks++
  if (again.hash === result.hash) return
  throw new Error(`seed ${result.seed} is not the same twice: ${result.hash} and ${again.hash}`)
}

function tellFailure(settings: Settings, result: RunResult, shrinks: boolean, say: (line: string) => void): void {
  const { failure, seed } = result
  const command = commandOf(settings, seed)
  say(`seed ${seed} failed after ${((failure?.atUs ?? 0) / 1e6).toFixed(3)} s: ${failure?.message}`)
  say(`  again: ${command}`)
  const options = optionsOf(settings, seed)
  const shrunk = shrinks ? shrink(options, result) : undefined
  const detailed = runSeed({ ...(shrunk?.options ?? options), keepsWords: true })
  if (shrunk) say(`  ${shrunk.runs} runs left ${detailed.schedule.length} faults of ${result.schedule.length}`)
  const file = `failure-${seed}.json`
  writeFileSync(
    file,
    `${JSON.stringify({ ...environment(), ...settingsOf(settingsOfSeed(settings, seed)), ...failureFile(detailed), command }, undefined, 1)}\n`,
  )
  say(`  ${file}: schedule, settings and the last events; again: npm run sim -- --replay ${file}`)
}

function failureFile(result: RunResult): object {
  const { lines, history, ...rest } = result
  return { ...rest, lines: lines.slice(-LINES_KEPT), history: history === '' ? undefined : JSON.parse(history) }
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
  const saved = JSON.parse(readFileSync(file, 'utf8')) as {
    seed: number
    profile: Profile
    program: string
    defects: string[]
    knobs: Knobs
    schedule: Fault[]
  }
  const { seed, profile, knobs, schedule } = saved
  const program = PROGRAMS[saved.program] as Program
  const result = runSeed({ seed, profile, program, knobs, schedule, defects: new Set(saved.defects), keepsWords: true })
  say(result.lines.slice(-LINES_KEPT).join('\n'))
  say(`trace ${result.hash}: ${result.failure?.message ?? 'it holds'}`)
  return result.failure ? 1 : 0
}

/** Plants each defect in turn and counts the seeds until a run fails. */
function plantAll(
  settings: Settings,
  from: number,
  seeds: number,
  only: string | undefined,
  json: string | undefined,
  say: (line: string) => void,
): number {
  const findings = findAll(settings, from, seeds, only, say)
  const planted = findings.filter(({ layer }) => layer === 'simulation')
  const found = planted.flatMap((finding) => finding.seeds ?? []).sort((a, b) => a - b)
  say(`${found.length} of ${planted.length} found; median ${found[found.length >>> 1]} seeds, at most ${found.at(-1)}`)
  if (json) writeJson(json, { ...environment(), findings })
  return findings.some(isMissed) ? 1 : 0
}

function findAll(
  settings: Settings,
  from: number,
  seeds: number,
  only: string | undefined,
  say: (line: string) => void,
): DefectFinding[] {
  return DEFECTS.filter(({ name }) => !only || name.includes(only)).map((row) => {
    const { name, layer } = row
    const isElsewhere = row.program === 'elsewhere'
    const finding = isElsewhere
      ? { name, layer, seeds: undefined, oracle: '' }
      : plant({ ...settings, program: row.program }, row, from, seeds)
    const missed = isElsewhere ? `left to ${layer}` : `NOT FOUND in ${seeds} seeds`
    say(`${name.padEnd(36)} ${finding.seeds === undefined ? missed : `${finding.seeds} seeds, ${finding.oracle}`}`)
    return finding
  })
}

export function plant(settings: Settings, row: DefectRow, from: number, seeds: number): DefectFinding {
  for (let n = 0; n < seeds; n++) {
    const result = runSeed({
      ...optionsOf({ ...settings, usesStore: row.usesStore ?? settings.usesStore }, from + n),
      profile: row.profile ?? settings.profile,
      defects: new Set([row.name]),
    })
    if (result.failure && !result.failure.message.includes('undecided'))
      return {
        name: row.name,
        seeds: n + 1,
        oracle: result.failure.message.split('\n')[0]?.slice(0, 150) ?? '',
        layer: 'simulation',
      }
  }
  return { name: row.name, seeds: undefined, oracle: '', layer: 'simulation' }
}

if (import.meta.main) process.exitCode = main(process.argv.slice(2), (line) => void process.stdout.write(`${line}\n`))
