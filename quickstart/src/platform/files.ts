/** The folder of a platform: where its files are, what its data is, and which process runs in it. */

import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { formatDay, parseDay, VacancyError } from '@vacancy/shared'
import { isRunning } from '@vacancy/shared/node'
import { makeCertificates, makeTokens, type TokenFiles } from '../certificates.ts'
import { type ProcessGroup, runToEnd, VACANCY } from '../launch.ts'
import type { TokenName } from '../layout.ts'
import { nodesOf, type Plan, type Shape, shardName } from './plan.ts'
import { queriesReadme, type SampleQuery } from './queries.ts'
import { codecsYaml, packagesCsv, packagesOf, propertiesCsv, propertiesOf } from './sample.ts'

export type PlatformFiles = TokenFiles & {
  readonly dir: string
  /** CSV files and snapshot of a shard. */
  readonly sampleOf: (shard: string) => string
  /** data_dir of a node. */
  readonly dataOf: (node: string) => string
  readonly cacheOf: (component: string) => string
  readonly logOf: (component: string) => string
  readonly certs: string
  readonly authority: string
  readonly certificateOf: (node: string) => string
  readonly keyOf: (node: string) => string
  readonly codecs: string
  /** Settings of the nodes. */
  readonly config: string
  readonly table: string
  readonly registryState: string
  readonly control: string
  readonly queries: string
  /** What the data is. */
  readonly state: string
  /** The running platform. */
  readonly running: string
}

const SEED = 'seed.snapshot'
/** Folders, and names of files with their endings, that `down` removes. */
const FOLDERS = ['sample', 'data', 'cache', 'logs', 'certs', 'control-plane', 'queries']
const FILES = [
  'auth.yml',
  'queue-auth.yml',
  'codecs.yml',
  'vacancy.yml',
  'resolver.yml',
  'platform.json',
  'compose.yml',
]
const FILE_ENDINGS = ['.token', '.tmp']
const REGISTRY_FILES = /^registry\.json/

export function filesOf(dir: string): PlatformFiles {
  const certs = join(dir, 'certs')
  return {
    dir,
    sampleOf: (shard) => join(dir, 'sample', shard),
    dataOf: (node) => join(dir, 'data', node),
    cacheOf: (component) => join(dir, 'cache', component),
    logOf: (component) => join(dir, 'logs', `${component}.log`),
    certs,
    authority: join(certs, 'ca.pem'),
    certificateOf: (node) => join(certs, `${node}.pem`),
    keyOf: (node) => join(certs, `${node}.key`),
    auth: join(dir, 'auth.yml'),
    queueAuth: join(dir, 'queue-auth.yml'),
    tokenOf: (role: TokenName) => join(dir, `${role}.token`),
    codecs: join(dir, 'codecs.yml'),
    config: join(dir, 'vacancy.yml'),
    table: join(dir, 'resolver.yml'),
    registryState: join(dir, 'registry.json'),
    control: join(dir, 'control-plane'),
    queries: join(dir, 'queries'),
    state: join(dir, 'platform.json'),
    running: join(dir, 'running.json'),
  }
}

/** The configuration a new folder gets; it is the user's from then on. Six nodes on one machine: small ones. */
const CONFIG_TEXT = `# Configuration of the nodes of a quick start. docs/config.md has every key.
# Ports and data_dir are flags of the nodes.
serving_threads: 1
# The times of elections and heartbeats are the default ones; fewer ticks need less CPU time.
raft_tick_ms: 90
raft_election_tick: 20
raft_heartbeat_tick: 5
memory_max_bytes: 67108864
session_table_bytes: 1048576
wal_file_bytes: 4194304
`

/** What the data of a folder is. Days are day numbers. */
export type State = Shape & {
  readonly seed: number
  readonly days: number
  /** Last day with packages for every room. */
  readonly lastDay: number
}

/** @returns undefined without complete data: there is none, or an interrupted start left parts of it */
export function readState({ state }: PlatformFiles): State | undefined {
  if (!existsSync(state)) return undefined
  const read = JSON.parse(readFileSync(state, 'utf8')) as { readonly [name: string]: unknown }
  if (read['complete'] === false) return undefined
  const { shards, zones, nodes_per_shard, seed, days, last_day } = read
  const lastDay = parseDay(String(last_day))
  if (lastDay === undefined || ![shards, zones, nodes_per_shard, seed, days].every(Number.isInteger)) {
    throw new VacancyError('data_conflict', { reason: `${state} was not written by vacancy quickstart: remove it` })
  }
  return {
    shards: Number(shards),
    zones: Number(zones),
    nodesPerShard: Number(nodes_per_shard),
    seed: Number(seed),
    days: Number(days),
    lastDay,
  }
}

/**
 * Marks a new folder as ours, before anything else is written to it: `down` removes data from such folders only.
 *
 * @throws VacancyError data_conflict when it holds other files
 */
export function markFolder({ dir, state }: PlatformFiles): void {
  if (existsSync(state)) return
  if (existsSync(dir) && readdirSync(dir).length > 0) {
    throw new VacancyError('data_conflict', { reason: `${dir} holds other files: choose another --dir` })
  }
  mkdirSync(dir, { recursive: true })
  writeWhole(state, { complete: false })
}

/** Written atomically, last of all data. */
export function writeState({ state }: PlatformFiles, data: State): void {
  const { shards, zones, nodesPerShard, seed, days, lastDay } = data
  writeWhole(state, {
    shards,
    zones,
    nodes_per_shard: nodesPerShard,
    seed,
    days,
    last_day: formatDay(lastDay),
  })
}

/** @throws VacancyError data_conflict when a folder holds other data than wanted */
export function checkState({ dir }: PlatformFiles, state: State, wanted: Omit<State, 'lastDay'>): void {
  const flags = {
    shards: 'shards',
    zones: 'zones',
    nodesPerShard: 'nodes-per-shard',
    seed: 'seed',
    days: 'days',
  } as const
  const other = (Object.keys(flags) as (keyof typeof flags)[]).filter((key) => state[key] !== wanted[key])
  if (other.length === 0) return
  const values = other.map((key) => `--${flags[key]} ${state[key]}`).join(' ')
  const reason = `${dir} holds data with ${values}: use these flags, or vacancy quickstart down, or another --dir`
  throw new VacancyError('data_conflict', { reason })
}

/** CSV files of each shard; replaces those of an interrupted start. @returns the number of packages */
export function writeSample(files: PlatformFiles, { shards, seed, days }: State, today: number): number {
  let packages = 0
  for (let shard = 0; shard < shards; shard++) {
    const folder = files.sampleOf(shardName(shard))
    const ofShard = packagesOf(seed, shard, { first: today, last: today + days - 1 })
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'properties.csv'), propertiesCsv(propertiesOf(seed, shard)))
    writeFileSync(join(folder, 'packages.csv'), packagesCsv(ofShard))
    writeFileSync(join(folder, 'codecs.yml'), codecsYaml())
    packages += ofShard.length
  }
  writeFileSync(files.codecs, codecsYaml())
  if (!existsSync(files.config)) writeFileSync(files.config, CONFIG_TEXT)
  return packages
}

/** One snapshot per shard, copied to each of its nodes. */
export async function buildSnapshots(group: ProcessGroup, files: PlatformFiles, plan: Plan): Promise<void> {
  const shards = Array.from({ length: plan.spec.shards }, (_, shard) => shardName(shard))
  await Promise.all(
    shards.map((shard) => {
      const folder = files.sampleOf(shard)
      const args = [
        '--shard-id',
        shard,
        '--input-path',
        folder,
        '--output-path',
        folder,
        '--overwrite',
        '--threads',
        '1',
      ]
      return runToEnd(group, [VACANCY, 'build-snapshot', ...args], `build-snapshot of ${shard}`, { isQuiet: true })
    }),
  )
  for (const shard of shards) {
    for (const { name } of nodesOf(plan, shard)) {
      mkdirSync(files.dataOf(name), { recursive: true })
      copyFileSync(join(files.sampleOf(shard), SEED), join(files.dataOf(name), SEED))
    }
  }
}

/** Certificates and tokens. @returns the number of created certificates */
export async function makeSecrets(
  group: ProcessGroup,
  files: PlatformFiles,
  nodes: readonly string[],
  nowMs: number,
): Promise<number> {
  const made = await makeCertificates(group, files, nodes, nowMs)
  makeTokens(files)
  return made
}

export function writeQueries(files: PlatformFiles, queries: readonly SampleQuery[], proxy: string): void {
  mkdirSync(files.queries, { recursive: true })
  for (const { name, query } of queries) {
    writeFileSync(join(files.queries, name), `${JSON.stringify(query, null, 2)}\n`)
  }
  writeFileSync(join(files.queries, 'README.md'), queriesReadme(queries, proxy))
}

/**
 * Removes what a platform has written, and the folder if nothing else is in it.
 *
 * @returns false for a folder without a platform, which stays as it is
 */
export function removeData({ dir, state }: PlatformFiles): boolean {
  if (!existsSync(state)) return false
  for (const name of readdirSync(dir)) {
    const isOurs =
      FOLDERS.includes(name) ||
      FILES.includes(name) ||
      REGISTRY_FILES.test(name) ||
      FILE_ENDINGS.some((ending) => name.endsWith(ending))
    if (isOurs) rmSync(join(dir, name), { recursive: true, force: true })
  }
  if (readdirSync(dir).length === 0) rmdirSync(dir)
  return true
}

/** The process that runs a platform in a folder, and how to reach it. */
export type Running = {
  readonly pid: number
  /** Of its control interface on 127.0.0.1. */
  readonly port: number
  readonly token: string
}

/** @returns undefined when nothing runs in the folder */
export function readRunning({ running }: PlatformFiles): Running | undefined {
  if (!existsSync(running)) return undefined
  try {
    const { pid, port, token } = JSON.parse(readFileSync(running, 'utf8')) as Running
    return isRunning(pid) ? { pid, port, token } : undefined
  } catch (cause) {
    throw new VacancyError('data_conflict', { reason: `${running} cannot be read: remove it` }, { cause })
  }
}

/**
 * Makes this process the one that runs in the folder.
 *
 * @throws VacancyError data_conflict when another one does
 */
export function claimFolder(files: PlatformFiles, running: Running): void {
  const { dir, running: file } = files
  markFolder(files)
  const own = `${file}.${running.pid}.tmp`
  writeFileSync(own, `${JSON.stringify(running)}\n`, { mode: 0o600 })
  try {
    const other = readRunning(files)
    if (other === undefined) rmSync(file, { force: true })
    // Fails when another process was faster.
    linkSync(own, file)
  } catch (cause) {
    const other = readRunning(files)
    const reason = `a platform is running in ${dir}, process ${other?.pid ?? 'unknown'}: vacancy quickstart status shows it, down stops it. If that process is something else, remove ${file}`
    throw new VacancyError('data_conflict', { reason }, { cause })
  } finally {
    rmSync(own, { force: true })
  }
}

/** Removes the claim unless it belongs to another process. */
export function releaseFolder(files: PlatformFiles): void {
  if (existsSync(files.running) && readRunning(files)?.pid === process.pid) rmSync(files.running, { force: true })
}

function writeWhole(file: string, value: unknown): void {
  writeFileSync(`${file}.tmp`, `${JSON.stringify(value, null, 2)}\n`)
  renameSync(`${file}.tmp`, file)
}
