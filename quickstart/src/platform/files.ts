/** The folder of a quick start: where its files are, what its data is, and which process runs in it. */

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { formatDay, parseDay, VacancyError } from '@vacancy/shared'
import { holdFile } from '@vacancy/shared/file-lock'
import { isRunning } from '@vacancy/shared/node'
import type { Shape } from './plan.ts'
import { queriesReadme, type SampleQuery } from './queries.ts'

export type TokenName = 'admin' | 'client' | 'producer' | 'consumer'

export type PlatformFiles = Readonly<ReturnType<typeof filesOf>>

export const SEED = 'seed.snapshot'
/** Folders, and names of files with their endings, that `down` removes; `sample` and `n1` to `n4` are of earlier versions. */
const FOLDERS = ['csv', 'data', 'cache', 'logs', 'certs', 'control-plane', 'queries', 'sample', 'n1', 'n2', 'n3', 'n4']
const FILES = [
  ...['auth.yml', 'queue-auth.yml', 'codecs.yml', 'vacancy.yml', 'resolver.yml', 'compose.yml'],
  ...['platform.json', 'quickstart.json', 'processes.json', 'running.lock'],
]
const FILE_ENDINGS = ['.token', '.tmp', '.log']
const REGISTRY_FILES = /^registry\.json/

export function filesOf(dir: string) {
  const [certs, csv] = [join(dir, 'certs'), join(dir, 'csv')]
  /** The folder that an earlier version wrote such a file to, if it did. */
  const existing = (folders: readonly string[], files: readonly string[]) =>
    folders.find((folder) => files.some((file) => existsSync(join(folder, file))))
  return {
    dir,
    /** CSV files of the sample. */
    csv,
    /** CSV files and snapshot of a shard: those of the sample, or its part of them. */
    csvOf: (shard: string) => existing([join(dir, 'sample', shard), join(csv, shard)], ['properties.csv']) ?? csv,
    /** data_dir of a node. */
    dataOf: (node: string) =>
      existing([join(dir, node), join(dir, 'data')], ['IDENTITY', SEED]) ?? join(dir, 'data', node),
    cacheOf: (component: string) => join(dir, 'cache', component),
    logOf: (component: string) => join(dir, 'logs', `${component}.log`),
    certs,
    authority: join(certs, 'ca.pem'),
    certificateOf: (node: string) => join(certs, `${node}.pem`),
    keyOf: (node: string) => join(certs, `${node}.key`),
    /** Tokens of the nodes; those of the job queue. */
    auth: join(dir, 'auth.yml'),
    queueAuth: join(dir, 'queue-auth.yml'),
    tokenOf: (role: TokenName) => join(dir, `${role}.token`),
    codecs: join(dir, 'codecs.yml'),
    /** Settings of the nodes. */
    config: join(dir, 'vacancy.yml'),
    table: join(dir, 'resolver.yml'),
    registryState: join(dir, 'registry.json'),
    control: join(dir, 'control-plane'),
    queries: join(dir, 'queries'),
    /** What the data is. */
    state: join(dir, 'platform.json'),
    /** The running platform. */
    running: join(dir, 'running.json'),
    /** Held by its process. */
    lock: join(dir, 'running.lock'),
  }
}

/** What the sample of a new folder is. */
export type Sample = {
  /** Undefined: of a platform of an earlier version, whose properties were others. */
  readonly packages: number | undefined
  readonly seed: number
  /** Nights on sale, counted from today. */
  readonly days: number
}

/** What the data of a folder is. Days are day numbers. */
export type State = Shape &
  Sample & {
    /** Last day with packages for every room. */
    readonly lastDay: number
  }

/** `npm start` and `npm run start:node` wrote the sample only, to a file of another name. */
const earlierState = ({ dir }: PlatformFiles): string => join(dir, 'quickstart.json')

/** @returns undefined without complete data: there is none, or an interrupted start left parts of it */
export function readState(files: PlatformFiles): State | undefined {
  const file = [files.state, earlierState(files)].find((each) => existsSync(each))
  if (file === undefined) return undefined
  const read = JSON.parse(readFileSync(file, 'utf8')) as { readonly [name: string]: unknown }
  if (read['complete'] === false) return undefined
  const { shards = 1, zones = 1, nodes_per_shard = 3, packages, seed, days, last_day } = read
  const lastDay = parseDay(String(last_day))
  const numbers = [shards, zones, nodes_per_shard, packages ?? 1, seed, days]
  if (lastDay === undefined || !numbers.every(Number.isInteger)) {
    throw new VacancyError('data_conflict', { reason: `${file} was not written by a quick start: remove it` })
  }
  return {
    shards: Number(shards),
    zones: Number(zones),
    nodesPerShard: Number(nodes_per_shard),
    packages: packages === undefined ? undefined : Number(packages),
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
export function markFolder(files: PlatformFiles): void {
  const { dir, state } = files
  const found = statSync(dir, { throwIfNoEntry: false })
  if (found && !found.isDirectory()) {
    throw new VacancyError('data_conflict', { reason: `${dir} is a file, not a folder: choose another --dir` })
  }
  if (hasData(files)) return
  if (existsSync(dir) && readdirSync(dir).length > 0) {
    throw new VacancyError('data_conflict', { reason: `${dir} holds other files: choose another --dir` })
  }
  mkdirSync(dir, { recursive: true })
  writeWhole(state, { complete: false })
}

/** Written atomically, last of all data. */
export function writeState({ state }: PlatformFiles, data: State): void {
  const { nodesPerShard, lastDay, ...others } = data
  writeWhole(state, { ...others, nodes_per_shard: nodesPerShard, last_day: formatDay(lastDay) })
}

export function writeQueries(files: PlatformFiles, queries: readonly SampleQuery[], proxy: string): void {
  mkdirSync(files.queries, { recursive: true })
  for (const { name, query } of queries) {
    writeFileSync(join(files.queries, name), `${JSON.stringify(query, null, 2)}\n`)
  }
  writeFileSync(join(files.queries, 'README.md'), queriesReadme(queries, proxy))
}

export function hasData(files: PlatformFiles): boolean {
  return existsSync(files.state) || existsSync(earlierState(files))
}

/**
 * Removes what a platform has written, and the folder if nothing else is in it.
 *
 * @returns false for a folder without a platform, which stays as it is
 * @throws VacancyError data_conflict while one runs in it, in another container
 */
export function removeData(files: PlatformFiles): boolean {
  const { dir } = files
  if (!hasData(files)) return false
  const release = holdFile(files.lock, 0)
  if (!release) throw new VacancyError('data_conflict', { reason: `a platform is running in ${dir}: stop it first` })
  release()
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
  /** The running processes by name, for people who want to kill one. */
  readonly processes: { readonly [name: string]: number }
}

/** @returns undefined when nothing runs in the folder */
export function readRunning({ running }: PlatformFiles): Running | undefined {
  if (!existsSync(running)) return undefined
  try {
    const read = JSON.parse(readFileSync(running, 'utf8')) as Running
    return isRunning(read.pid) ? read : undefined
  } catch (cause) {
    throw new VacancyError('data_conflict', { reason: `${running} cannot be read: remove it` }, { cause })
  }
}

/**
 * Makes this process the one that runs in the folder.
 *
 * @returns gives it up
 * @throws VacancyError data_conflict when another one does
 */
export function claimFolder(files: PlatformFiles, running: Running): () => void {
  const { dir } = files
  markFolder(files)
  const release = holdFile(files.lock, 0)
  if (!release) {
    const other = readRunning(files)
    const reason = `a platform is running in ${dir}, process ${other?.pid ?? 'unknown, in another container'}: vacancy quickstart status --dir ${dir} shows it, down stops it`
    throw new VacancyError('data_conflict', { reason })
  }
  writeRunning(files, running)
  return () => {
    rmSync(files.running, { force: true })
    release()
  }
}

/** Updates the claim of this process. */
export function writeRunning({ running }: PlatformFiles, value: Running): void {
  writeWhole(running, value, 0o600)
}

function writeWhole(file: string, value: unknown, mode = 0o644): void {
  writeFileSync(`${file}.tmp`, `${JSON.stringify(value, null, 2)}\n`, { mode })
  renameSync(`${file}.tmp`, file)
}
