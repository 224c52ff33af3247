/**
 * Operator actions on the data directory of a stopped node: inspect it, back it up, manage data set aside
 * (docs/design/storage.md#recovery, docs/design/http.md#codec-list).
 */

import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createCodecList, formatDay, VacancyError } from '@vacancy/shared'
import { WAL_FILE_BYTES_MIN } from '../config.ts'
import {
  acceptAside,
  closeDataDirectory,
  openDataDirectory,
  readCluster,
  readNodeId,
  restoreAside,
} from '../data/data-directory.ts'
import { recoverNode } from '../data/recovery.ts'
import { writeSnapshotNow } from '../data/rescue.ts'
import { createEnv, type Log } from '../env.ts'
import { differencesOf } from '../snapshot/compare.ts'
import { coverageOf } from '../snapshot/coverage.ts'
import { hex, shortSnapshotId, snapshotId } from '../snapshot/format.ts'
import { findSnapshots, SEED_FILE, verifySnapshot } from '../snapshot/snapshot.ts'
import { writeSeedFile } from '../snapshot/write.ts'
import { inspectWal, type LogInspection } from '../wal/inspect.ts'
import { closeWal } from '../wal/wal.ts'

const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const env = createEnv(silent)

export type Inspection = { readonly lines: string[]; readonly document: object; readonly isDamaged: boolean }

/** Reads all data without changes. */
export function inspectDirectory(path: string): Inspection {
  if (!existsSync(path)) throw new VacancyError('usage_error', { reason: `${path}: no such folder` })
  const lines: string[] = []
  let isDamaged = false
  const cluster = attempt(() => readCluster(env.disk, path))
  if (cluster.error !== undefined) {
    isDamaged = true
    lines.push(`CLUSTER: damaged: ${cluster.error}`)
  } else if (cluster.value) {
    lines.push(`shard ${cluster.value.shardId}, codec list ${cluster.value.codecs.join(', ')}`)
  } else lines.push('not formed yet: no CLUSTER')
  const snapshots = findSnapshots(env.disk, path).map((found) => {
    if (found.state === 'refused') return { path: found.path, damage: found.error.message }
    const verified = attempt(() => verifySnapshot(env.disk, found.head))
    const { manifest, bytes } = found.head
    return {
      path: found.path,
      id: snapshotId(manifest),
      short: shortSnapshotId(manifest),
      shard: manifest.shardId,
      index: manifest.index,
      term: manifest.term,
      packages: manifest.packages,
      properties: manifest.properties,
      window: manifest.window && { from: formatDay(manifest.window.from), to: formatDay(manifest.window.to) },
      bytes,
      damage: verified.error,
    }
  })
  for (const snapshot of snapshots) {
    if (snapshot.damage !== undefined) isDamaged = true
    const what =
      'id' in snapshot
        ? `index ${snapshot.index}, term ${snapshot.term}, ${snapshot.packages} packages, ${snapshot.bytes} bytes`
        : 'unreadable'
    lines.push(
      `snapshot ${snapshot.path}: ${what}: ${snapshot.damage === undefined ? 'whole' : `damaged: ${snapshot.damage}`}`,
    )
  }
  const log = inspectWal(env.disk, join(path, 'wal'))
  if (!log) lines.push('no log')
  else {
    lines.push(`log: entries ${log.firstIndex} to ${log.lastIndex} verify`)
    for (const { name, firstIndex, lastIndex, bytes, validBytes, tornBytes } of log.files) {
      const entries = lastIndex < firstIndex ? 'no entries' : `entries ${firstIndex} to ${lastIndex}`
      lines.push(
        `  ${name}: ${entries}, ${validBytes} of ${bytes} bytes used${tornBytes > 0 ? `, ${tornBytes} torn` : ''}`,
      )
    }
    if (log.damage) {
      isDamaged = true
      lines.push(`log damaged: ${log.damage.file} at byte ${log.damage.offset}: ${log.damage.reason}`)
      lines.push(
        'what to do: copy the folder; then `vacancy run --accept-loss` starts from the valid data and reports the loss; start a member of a healthy shard with --rejoin to get its data from the others',
      )
    }
  }
  const aside = listAside(path)
  if (aside.length > 0) lines.push(`set aside: ${aside.join(', ')} (vacancy quarantine list)`)
  return {
    lines,
    document: { path, cluster: cluster.value ?? null, snapshots, log: logDocument(log), quarantine: aside, isDamaged },
    isDamaged,
  }
}

/** The report with ids and hashes in hexadecimal. */
function logDocument(log: LogInspection | undefined) {
  const identityOf = ({ identity }: LogInspection['files'][number]) =>
    identity && Object.fromEntries(Object.entries(identity).map(([name, bytes]) => [name, hex(bytes)]))
  return log ? { ...log, files: log.files.map((file) => ({ ...file, identity: identityOf(file) })) } : null
}

/** Reads a whole snapshot file and counts its contents. */
export function inspectSnapshotFile(path: string): Inspection {
  const { value, error } = attempt(() => coverageOf(path, env.disk))
  if (!value) {
    return {
      lines: [`snapshot ${path}: damaged: ${error}`, 'what to do: copy or build the file again'],
      document: { path, damage: error },
      isDamaged: true,
    }
  }
  const { id, shard, packages, properties, bytes, window, segments, codecHash } = value
  const days = window ? `${window.from} to ${window.to}` : 'none'
  const lines = [
    `snapshot ${id} of shard ${shard}: ${packages} packages of ${properties} properties, ${bytes} bytes: whole`,
    `nights ${days}  room types ${value.roomTypes}  codec list ${value.codecs.join(', ')} (${codecHash})`,
    ...segments.map(
      ({ name, properties: count, packages: nights }) =>
        `  ${name}: ${nights.reduce((sum, each) => sum + each, 0)} packages of ${count} properties`,
    ),
  ]
  return { lines, document: value, isDamaged: false }
}

/** Compares the properties of two snapshot files. */
export function compareSnapshotFiles(path: string, other: string): Inspection {
  const { value, error } = attempt(() => differencesOf(path, other, env.disk))
  if (!value) {
    return {
      lines: [`damaged: ${error}`, 'what to do: copy or build the file again'],
      document: { path, damage: error },
      isDamaged: true,
    }
  }
  const { a, b, onlyA, onlyB, changed } = value
  const rest = (count: number, listed: number) => (count > listed ? [`  and ${count - listed} more`] : [])
  const lines = [
    `properties of snapshots ${a} and ${b}: ${onlyA.count} removed, ${onlyB.count} added, ${changed.count} changed`,
    ...onlyA.first.map(({ id, segment }) => `  removed ${id} of ${segment}`),
    ...rest(onlyA.count, onlyA.first.length),
    ...onlyB.first.map(({ id, segment }) => `  added ${id} to ${segment}`),
    ...rest(onlyB.count, onlyB.first.length),
    ...changed.first.map(({ id, segment, what }) => `  changed ${id} of ${segment}: ${what.join(', ')}`),
    ...rest(changed.count, changed.first.length),
  ]
  return { lines, document: value, isDamaged: false }
}

function attempt<T>(read: () => T): { value?: T; error?: string } {
  try {
    return { value: read() }
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    return { error: error.message }
  }
}

export type Exported = {
  readonly snapshotId: string
  readonly shardId: string
  readonly packages: number
  readonly properties: number
  readonly bytes: number
  readonly lost: readonly string[]
}

/**
 * Recovers the folder as a start would and writes one snapshot file of the result. With `acceptLoss`, damaged data is
 * set aside as by `run --accept-loss`; otherwise the folder does not change.
 */
export async function exportDirectory(path: string, outputPath: string, acceptLoss: boolean): Promise<Exported> {
  if (!existsSync(path)) throw new VacancyError('usage_error', { reason: `${path}: no such folder` })
  const cluster = readCluster(env.disk, path)
  const seed = findSnapshots(env.disk, path).find((found) => found.state === 'readable')
  const names = cluster?.codecs ?? (seed?.state === 'readable' ? seed.head.manifest.codecs : undefined)
  if (!names) throw new VacancyError('no_snapshot', { directory: path, shard: 'any shard' })
  const codecs = createCodecList(names)
  const node = await recoverNode(
    env,
    {
      dataDir: path,
      shardId: undefined,
      nodeId: nodeIdOf(path),
      codecs: names,
      memoryBytes: 4 * 1024 ** 3,
      readers: 2,
      scratchBytes: 16 << 20,
      sessionBytesMax: 32 << 20,
      roomsHint: 4,
      snapshotIntervalMs: 0,
      snapshotTriggerCount: 1,
      walFlushThreshold: 1,
      // Never enlarges a log that is only read.
      walFileBytes: WAL_FILE_BYTES_MIN,
      loadThreads: 2,
      acceptLoss,
      rejoin: false,
      cluster: undefined,
      acceptDay: 0,
    },
    () => undefined,
  )
  try {
    mkdirSync(outputPath, { recursive: true })
    // Index and term of the data are kept, so that a later export differs from an earlier one.
    const position = { shardId: node.shardId, index: node.raft.applied, term: node.raft.term, voters: [] }
    const written = await writeSnapshotNow(node.store, codecs, position, (source, encoder) =>
      writeSeedFile(env, join(outputPath, SEED_FILE), source, { encoder }),
    )
    if (!written) throw new VacancyError('failure', { reason: 'the store changed during the export' })
    const { manifest, bytes } = written
    return {
      snapshotId: snapshotId(manifest),
      shardId: manifest.shardId,
      packages: manifest.packages,
      properties: manifest.properties,
      bytes,
      lost: node.lost,
    }
  } finally {
    closeWal(node.wal)
    closeDataDirectory(node.directory)
  }
}

/** The owner of a folder; a new folder accepts any name. */
function nodeIdOf(path: string): string {
  return readNodeId(env.disk, path) ?? 'node-1'
}

const asideFolder = (path: string): string => join(path, 'quarantine')

function listAside(path: string): string[] {
  return existsSync(asideFolder(path)) ? readdirSync(asideFolder(path)).sort() : []
}

/** `list`, `restore NAME` or `remove NAME`. @returns lines to print */
export function quarantine(path: string, action: string, name: string | undefined): string[] {
  const names = listAside(path)
  if (action === 'list' && name === undefined) {
    return names.map((entry) => `${entry}  ${folderBytes(join(asideFolder(path), entry))} bytes`)
  }
  if ((action !== 'restore' && action !== 'remove' && action !== 'accept') || name === undefined) {
    throw new VacancyError('usage_error', { reason: 'use list, restore NAME, remove NAME or accept NAME' })
  }
  if (!names.includes(name)) {
    throw new VacancyError('usage_error', {
      reason: `${name} was not set aside in ${path}; there are: ${names.join(', ') || 'none'}`,
    })
  }
  // The node may run: it notices that the note is gone.
  if (action === 'accept') return [acceptAside(env, path, name) ? `accepted ${name}` : `${name} waits for nothing`]
  const directory = openDataDirectory(env, path, { nodeId: nodeIdOf(path) })
  try {
    acceptAside(env, path, name)
    if (action === 'remove') {
      rmSync(join(asideFolder(path), name), { recursive: true })
      return [`removed ${name}`]
    }
    const before = restoreAside(directory, name)
    return [`restored ${name}${before === '' ? '' : `; the previous data is in ${before}`}`]
  } finally {
    closeDataDirectory(directory)
  }
}

function folderBytes(path: string): number {
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.size
  return readdirSync(path).reduce((sum, entry) => sum + folderBytes(join(path, entry)), 0)
}
