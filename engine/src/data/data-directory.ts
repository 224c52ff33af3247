/**
 * The data directory of one node: its lock, its identity, its cluster, and how the last run ended
 * (docs/design/storage.md#data-directory).
 *
 *   lock.db      empty; the kernel's lock of the process that uses the folder
 *   LOCK         that process for people and earlier programs: process id, start time, boot id
 *   IDENTITY     node id and incarnation; created once, with the folder
 *   CLUSTER      the genesis of the shard; present once the node is formed
 *   CLEAN        the last shutdown was clean; deleted before the first write of a run
 *   reserve.bin  space that is released once when the disk is full
 *   wal/ snapshots/ quarantine/
 *
 * IDENTITY, CLUSTER and CLEAN are one header line (name, format, CRC32C, bytes) and JSON, and are only replaced as a
 * whole.
 */

import { dirname, join } from 'node:path'
import { assert, type CodecList, VacancyError } from '@vacancy/shared'
import type { FileLock } from '@vacancy/shared/file-lock'
import {
  type Disk,
  type Env,
  errnoOf,
  isDiskFull,
  readSmallFile,
  renameFile,
  replaceFile,
  syncFolder,
  unlinkFile,
  writeFully,
} from '../env.ts'
import { crc32c } from '../wal/crc32c.ts'
import type { LogIdentity } from '../wal/record.ts'

const RESERVE_BYTES = 64 * 1024 * 1024

const FORMAT = 1
/** A list of 24 features and seven voters is a few kilobytes. */
const FILE_BYTES_MAX = 1024 * 1024
const RESERVE_FILE = 'reserve.bin'
const RESERVE_PIECE_BYTES = 1024 * 1024
const LOCK_FILE = 'lock.db'

type Identity = {
  readonly nodeId: string
  /** 128 random bits, hexadecimal: a wiped node returns as another member (docs/design/consensus.md#identities). */
  readonly incarnation: string
}

/** The genesis of a shard (docs/design/consensus.md#formation). */
export type Cluster = {
  /** 128 bits, hexadecimal. */
  readonly clusterId: string
  readonly shardId: string
  readonly codecs: readonly string[]
  /** Their `orderedHash`. */
  readonly codecHash: string
  /** Position of the founding snapshot; 0 and 0 for an empty shard. */
  readonly baseIndex: number
  readonly baseTerm: number
  readonly voters: readonly string[]
  /** Content digest of the founding snapshot, hexadecimal; absent without one. */
  readonly snapshotDigest?: string
  /** False: this node joined a shard that others founded, and participates only in the role they gave it. */
  readonly isFounder?: boolean
  /** This node joined and has been a voter since. A demotion after that is meant to last. */
  readonly wasVoter?: boolean
  /**
   * The shard draws its own genesis (docs/design/consensus.md#formation), whatever the founding snapshot contains;
   * absent: an older program founded it.
   */
  readonly drawsGenesis?: boolean
}

export type DataDirectory = {
  readonly env: Env
  readonly path: string
  identity: Identity
  /** Undefined until the node is formed. */
  cluster: Cluster | undefined
  /** The last run ended with a clean shutdown. */
  readonly isClean: boolean
  readonly lock: DirectoryLock
}

/** `owner`: the content of LOCK. */
type DirectoryLock = { readonly kernel: FileLock; readonly owner: Uint8Array }

export type DirectoryOptions = { nodeId: string }

const FOLDERS = ['wal', 'snapshots'] as const
const SLUG_CHARS_MAX = 40

/**
 * Creates or opens the folder and locks it.
 *
 * @throws `directory_in_use` (65) naming the live owner, `data_conflict` (65) for another node's folder,
 * `invalid_config` (64) when it cannot be written, `corrupt_data` (71) for a damaged file, `no_room`
 */
export function openDataDirectory(env: Env, path: string, options: DirectoryOptions): DataDirectory {
  return door(path, () => openAndLock(env, path, options))
}

function openAndLock(env: Env, path: string, { nodeId }: DirectoryOptions): DataDirectory {
  const { disk } = env
  for (const name of FOLDERS) makeFolder(disk, join(path, name))
  const lock = takeLock(env, path)
  try {
    const cluster = decodeCluster(path, readState(disk, path, 'CLUSTER'))
    settleNames(disk, path, cluster !== undefined)
    const identity = openIdentity(env, path, nodeId, cluster !== undefined)
    const isClean = isReadable(disk, path, 'CLEAN')
    return { env, path, identity, cluster, isClean, lock }
  } catch (error) {
    const named = unwritable(path, error)
    // After a disk failure nothing more is written to it (docs/design/storage.md#disk-errors). The lock of a dead
    // process is void.
    if (!(named instanceof VacancyError && named.code === 'disk_failed')) releaseLock(disk, path, lock)
    throw named
  }
}

export const walFolder = (directory: DataDirectory): string => join(directory.path, 'wal')
/** Contents of the headers of the log files. */
export function logIdentity({ identity }: DataDirectory, cluster: Cluster): LogIdentity {
  return {
    clusterId: fromHex(cluster.clusterId),
    incarnation: fromHex(identity.incarnation),
    codecHash: fromHex(cluster.codecHash),
  }
}

export type Genesis = {
  readonly shardId: string
  readonly codecs: CodecList
  readonly base: { readonly index: number; readonly term: number }
  /** Digest of the founding snapshot, hexadecimal; empty without one. */
  readonly snapshotDigest: string
  readonly voters: readonly string[]
}

/**
 * The record of a shard that is about to be formed. A pure function of the values that the voters agree on, so that all
 * of them write the same record without a coordinator (docs/design/consensus.md#formation).
 *
 * @param sha256 of the bytes, as 32 bytes
 */
export function createCluster(genesis: Genesis, sha256: (bytes: Uint8Array) => Uint8Array): Cluster {
  const { shardId, codecs, base, snapshotDigest } = genesis
  const voters = genesis.voters.toSorted()
  const agreed = JSON.stringify([shardId, voters, snapshotDigest, base.index, base.term])
  const digest = sha256(new TextEncoder().encode(agreed))
  assert(digest.length === 32, 'SHA-256 has 32 bytes')
  return {
    clusterId: toHex(digest.subarray(0, 16)),
    shardId,
    codecs: codecs.names,
    codecHash: codecs.orderedHash,
    baseIndex: base.index,
    baseTerm: base.term,
    voters,
    ...(snapshotDigest === '' ? {} : { snapshotDigest }),
  }
}

/** Whether a snapshot is the founding snapshot of the shard. */
export function isSeedOf(
  cluster: Pick<Cluster, 'baseIndex' | 'baseTerm' | 'snapshotDigest'>,
  manifest: { readonly index: number; readonly term: number; readonly contentDigest: Uint8Array },
): boolean {
  const { baseIndex, baseTerm, snapshotDigest = '' } = cluster
  const digest = Buffer.from(manifest.contentDigest).toString('hex')
  return manifest.index === baseIndex && manifest.term === baseTerm && digest === snapshotDigest
}

/** Forms the node. The log of the cluster must already exist: CLUSTER without a log means that the log was lost. */
export function writeCluster(directory: DataDirectory, cluster: Cluster): void {
  assert(directory.cluster === undefined, 'a node is formed once')
  const { env, path } = directory
  door(path, () => withRoom(env, path, () => writeState(directory, 'CLUSTER', cluster)))
  directory.cluster = cluster
}

/** Records that this node, which joined, is a voter. */
export function noteVoter(directory: DataDirectory): void {
  const { env, path, cluster } = directory
  assert(cluster?.isFounder === false, 'founders are voters from the start')
  const noted = { ...cluster, wasVoter: true }
  door(path, () => withRoom(env, path, () => writeState(directory, 'CLUSTER', noted)))
  directory.cluster = noted
}

/** Deletes CLEAN durably before the first write of a run. */
export function beginWriting({ env, path, isClean }: DataDirectory): void {
  const file = join(path, 'CLEAN')
  if (!isClean || !door(path, () => env.disk.stat(file))) return
  unlinkFile(env.disk, file)
  syncFolder(env.disk, path)
}

/**
 * Records a clean shutdown: everything is synced and closed.
 *
 * @returns false when the disk had no room for it; it is only information
 */
export function writeClean(directory: DataDirectory): boolean {
  const { env } = directory
  try {
    writeState(directory, 'CLEAN', { stoppedAtMs: env.clock.wallMs() })
    return true
  } catch (error) {
    if (!isDiskFull(error)) throw unwritable(directory.path, error)
    env.log.warn({ directory: directory.path }, 'no room for CLEAN: the next start checks as after a crash')
    return false
  }
}

/** Releases the lock for the next process. */
export function closeDataDirectory({ env, path, lock }: DataDirectory): void {
  door(path, () => releaseLock(env.disk, path, lock))
}

/** Reserves 64 MiB for a full disk. @returns whether the reserve exists */
export function ensureReserve({ env, path }: DataDirectory, bytes = RESERVE_BYTES): boolean {
  return door(path, () => makeReserve(env.disk, path, bytes))
}

function makeReserve(disk: Disk, path: string, bytes: number): boolean {
  const file = join(path, RESERVE_FILE)
  const found = disk.stat(file)
  if (found && found.bytes >= bytes) return true
  if (found) unlinkFile(disk, file)
  // The reserve itself must not fill the disk.
  if (disk.space(path).freeBytes < 3 * bytes) return false
  const zeros = new Uint8Array(Math.min(bytes, RESERVE_PIECE_BYTES))
  let descriptor = -1
  // No sync: writing takes the space, and a reserve lost in a crash is created again.
  try {
    descriptor = disk.open(file, 'create')
    for (let at = 0; at < bytes; at += zeros.length) {
      writeFully(disk, descriptor, zeros, 0, Math.min(zeros.length, bytes - at), at)
    }
  } catch (error) {
    if (!isDiskFull(error)) throw error
    if (descriptor < 0) return false
    disk.close(descriptor)
    unlinkFile(disk, file)
    return false
  }
  disk.close(descriptor)
  return true
}

/** Releases the reserve. @returns whether there was one */
export function releaseReserve({ env, path }: DataDirectory): boolean {
  return door(path, () => releaseReserveOf(env, path))
}

function releaseReserveOf({ disk, log }: Env, path: string): boolean {
  const file = join(path, RESERVE_FILE)
  if (!disk.stat(file)) return false
  log.warn({ file }, 'disk full, reserve released')
  unlinkFile(disk, file)
  return true
}

/**
 * Moves files and folders into `quarantine/<time>-<reason>/`, in order, each move durable before the next. After a
 * crash in between, the same call with the same names continues with the rest. Therefore name the file last whose
 * presence shows that there is something to move.
 *
 * @param names inside the folder; missing ones are skipped
 * @returns their new location, relative to the folder; empty when there was nothing to move
 */
export function setAside({ env, path }: DataDirectory, names: readonly string[], reason: string): string {
  return door(path, () => moveAside(env, path, names, reason))
}

function moveAside(env: Env, path: string, names: readonly string[], reason: string): string {
  const { disk } = env
  const there = names.filter((name) => disk.stat(join(path, name)) !== undefined)
  if (there.length === 0) return ''
  const quarantine = join(path, 'quarantine')
  makeFolder(disk, quarantine)
  syncFolder(disk, path)
  const time = new Date(env.clock.wallMs()).toISOString().replaceAll(/[-:]|[.]\d+/g, '')
  const target = freeName(disk, join(quarantine, `${time}-${slugOf(reason)}`))
  disk.makeDirectory(target)
  syncFolder(disk, quarantine)
  for (const name of there) {
    renameFile(disk, join(path, name), join(target, name))
    // The target first: a name gone from one folder and missing in the other would be lost.
    syncFolder(disk, target)
    syncFolder(disk, path)
  }
  // The result is a new folder, ready to be formed, as after opening one.
  for (const name of FOLDERS) makeFolder(disk, join(path, name))
  env.log.warn({ moved: there, target, reason }, 'set data aside')
  return target.slice(path.length + 1)
}

// A state that differed from that of the other replicas

/** Its presence alone counts: the history in the folder may contain the difference. */
export const SUSPECT_FILE = 'SUSPECT'
/** Data of another codec list was set aside; stays until an operator accepts that or puts the data back. */
export const CODECS_FILE = 'CODECS_CHANGED'
const NOTE_BYTES_MAX = 16_384

type NoteFile = typeof SUSPECT_FILE | typeof CODECS_FILE

/** Records durably what an operator must know about this folder. */
export function writeNote({ disk }: Env, path: string, name: NoteFile, text: string): void {
  replaceFile(disk, join(path, name), new TextEncoder().encode(`${text}\n`))
}

/** @returns why the history in this folder is not trusted, or what was set aside; undefined without a note */
export function readNote({ disk }: Env, path: string, name: NoteFile): string | undefined {
  const bytes = readSmallFile(disk, join(path, name), NOTE_BYTES_MAX)
  return bytes && new TextDecoder().decode(bytes).trim()
}

/** Ends the note about data of another codec list. @returns whether it was about this entry of the quarantine */
export function acceptAside(env: Env, path: string, name: string): boolean {
  if (!readNote(env, path, CODECS_FILE)?.endsWith(asideText(name))) return false
  unlinkFile(env.disk, join(path, CODECS_FILE))
  syncFolder(env.disk, path)
  return true
}

/** The end of a note that names the place of the data. */
export const asideText = (name: string): string => `; set aside in quarantine/${name}`

/** The first words of a sentence as part of a file name that can be typed. */
function slugOf(reason: string): string {
  const words = reason.toLowerCase().match(/[a-z0-9]+/g) ?? []
  return words.join('-').slice(0, SLUG_CHARS_MAX)
}

function freeName(disk: Disk, path: string): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? path : `${path}-${number}`
    if (!disk.stat(name)) return name
  }
}

// Creating the folder

function makeFolder(disk: Disk, path: string): void {
  const found = disk.stat(path)
  if (found?.isDirectory) return
  if (found) throw Object.assign(new Error(`${path} is a file`), { code: 'ENOTDIR' })
  makeFolder(disk, dirname(path))
  try {
    disk.makeDirectory(path)
  } catch (error) {
    // Nodes that start together on one machine may share parent folders, which another node has just created.
    if (errnoOf(error) !== 'EEXIST' || !disk.stat(path)?.isDirectory) throw error
  }
}

/**
 * Names read here may exist only in the page cache, as pages of the log may
 * (docs/design/storage.md#torn-tail-or-corruption), because a process can be killed between a rename and the sync of
 * its folder. They are synced before anything depends on them.
 */
function settleNames(disk: Disk, path: string, isFormed: boolean): void {
  // A file moved into quarantine must be durable there before its absence here is.
  const quarantine = join(path, 'quarantine')
  if (disk.stat(quarantine)) {
    for (const name of disk.list(quarantine)) syncFolder(disk, join(quarantine, name))
  }
  syncFolder(disk, path)
  // A formed node did this before it was formed.
  for (let at = path; !isFormed && dirname(at) !== at; at = dirname(at)) syncOuterFolder(disk, dirname(at))
}

/** A parent folder. One that cannot be read was not created by us. */
function syncOuterFolder(disk: Disk, path: string): void {
  try {
    syncFolder(disk, path)
  } catch (error) {
    const code = errnoOf(error instanceof Error ? error.cause : error)
    if (code !== 'EACCES' && code !== 'EPERM') throw error
  }
}

const UNWRITABLE: { readonly [code: string]: string } = {
  EROFS: 'is on a file system that is mounted read-only',
  EACCES: 'is not writable for this user',
  EPERM: 'is not writable for this user',
  ENOTDIR: 'is not a folder',
  ENOENT: 'cannot be created',
}

/** Maps disk errors to the error that the process ends with. */
function door<T>(path: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw unwritable(path, error)
  }
}

function unwritable(path: string, error: unknown): unknown {
  const problem = UNWRITABLE[errnoOf(error)]
  if (problem)
    return new VacancyError(
      'invalid_config',
      { file: path, key: 'data_dir', reason: `${path} ${problem}` },
      { cause: error },
    )
  if (isDiskFull(error)) return new VacancyError('no_room', { directory: path }, { cause: error })
  return errnoOf(error) === ''
    ? error
    : new VacancyError('disk_failed', { operation: 'making', file: path, reason: errnoOf(error) }, { cause: error })
}

/** Runs a small write during the start. When there is no room, releases the reserve and tries once more. */
function withRoom<T>(env: Env, path: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    if (!isDiskFull(error) || !releaseReserveOf(env, path)) throw error
    return run()
  }
}

// LOCK

type Owner = {
  readonly processId: number
  readonly startedAt: string
  readonly bootId: string
  readonly holdsKernelLock: boolean
}

/**
 * The kernel's lock decides. What LOCK says about processes is believed only of earlier programs, which have no other
 * lock: process ids, boot ids and host names differ or repeat between containers.
 */
function takeLock(env: Env, path: string): DirectoryLock {
  const { disk, host } = env
  const kernel = withRoom(env, path, () => disk.lock(join(path, LOCK_FILE)))
  if (!kernel) throw inUse(path, readOwner(disk, path)?.processId)
  try {
    const earlier = readOwner(disk, path)
    if (earlier && !earlier.holdsKernelLock && isAlive(env, earlier)) throw inUse(path, earlier.processId)
    const startedAt = host.startOf(host.processId) ?? ''
    const owner = { processId: host.processId, startedAt, bootId: host.bootId, holdsKernelLock: true }
    const bytes = encodeState('LOCK', owner satisfies Owner)
    withRoom(env, path, () => writeOwner(disk, join(path, 'LOCK'), bytes))
    return { kernel, owner: bytes }
  } catch (error) {
    kernel.release()
    throw error
  }
}

/** The running process that names itself in LOCK; 0 for none. */
export function ownerOf(env: Env, path: string): number {
  const owner = readOwner(env.disk, path)
  return owner && isAlive(env, owner) ? owner.processId : 0
}

/** Not synced: it is void after a reboot. */
function writeOwner(disk: Disk, file: string, bytes: Uint8Array): void {
  if (disk.stat(file)) disk.unlink(file)
  const descriptor = disk.open(file, 'create')
  try {
    writeFully(disk, descriptor, bytes, 0, bytes.length, 0)
  } finally {
    disk.close(descriptor)
  }
}

function releaseLock(disk: Disk, path: string, { kernel, owner }: DirectoryLock): void {
  const file = join(path, 'LOCK')
  const found = readSmallFile(disk, file, FILE_BYTES_MAX)
  // Another process may have the folder, if the lock was deleted.
  if (found && equalBytes(found, owner)) disk.unlink(file)
  kernel.release()
}

function isAlive({ host }: Env, owner: Owner): boolean {
  return owner.bootId === host.bootId && host.startOf(owner.processId) === owner.startedAt
}

function inUse(directory: string, processId: number | undefined): VacancyError {
  return new VacancyError('directory_in_use', { directory, pid: processId ?? 'unknown' })
}

/**
 * Before a node says anything to registry and peers: of two with one folder, the second must not speak for the first.
 *
 * @throws `directory_in_use` (65)
 */
export function requireFree(env: Env, path: string): void {
  const file = join(path, LOCK_FILE)
  if (!env.disk.stat(file)) return
  const lock = door(path, () => env.disk.lock(file))
  if (!lock) throw inUse(path, readOwner(env.disk, path)?.processId)
  lock.release()
}

/** Whether the node has used the folder, and the lock of whoever may use it is gone: deleted, or of an earlier program. */
export function lacksLock({ disk }: Env, path: string): boolean {
  return disk.stat(join(path, 'IDENTITY')) !== undefined && disk.stat(join(path, LOCK_FILE)) === undefined
}

/** @throws `lock_lost` (65) once the lock is deleted or replaced: another process may use the folder */
export function checkLock({ path, lock }: DataDirectory): void {
  if (!lock.kernel.isInPlace()) throw new VacancyError('lock_lost', { file: join(path, LOCK_FILE) })
}

/** @throws `lock_lost` (65) when the folder was deleted under the running node */
export function spaceOf(disk: Disk, directory: DataDirectory): ReturnType<Disk['space']> {
  try {
    return disk.space(directory.path)
  } catch (error) {
    checkLock(directory)
    throw error
  }
}

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}

function readOwner(disk: Disk, path: string): Owner | undefined {
  const bytes = readSmallFile(disk, join(path, 'LOCK'), FILE_BYTES_MAX)
  const state = bytes && decodeState('LOCK', bytes)
  if (state === undefined || typeof state === 'string') return undefined
  const { processId, startedAt, bootId, holdsKernelLock } = state
  if (typeof processId !== 'number' || typeof startedAt !== 'string' || typeof bootId !== 'string') return undefined
  return { processId, startedAt, bootId, holdsKernelLock: holdsKernelLock === true }
}

// IDENTITY, CLUSTER, CLEAN

type StateName = 'LOCK' | 'IDENTITY' | 'CLUSTER' | 'CLEAN'
type State = { readonly [key: string]: unknown }

const HEADER = /^VACANCY ([A-Z]+) ([0-9]+) ([0-9a-f]{8}) ([0-9]+)\n/

function encodeState(name: StateName, state: object): Uint8Array {
  const text = new TextEncoder().encode(`${JSON.stringify(state)}\n`)
  const checksum = crc32c(text, 0, text.length, nameChecksum(name)).toString(16).padStart(8, '0')
  const header = new TextEncoder().encode(`VACANCY ${name} ${FORMAT} ${checksum} ${text.length}\n`)
  const bytes = new Uint8Array(header.length + text.length)
  bytes.set(header)
  bytes.set(text, header.length)
  return bytes
}

/** Included so that one file is never mistaken for another. */
function nameChecksum(name: StateName): number {
  const bytes = new TextEncoder().encode(name)
  return crc32c(bytes, 0, bytes.length)
}

/** @returns the state, or the defect of the bytes */
function decodeState(name: StateName, bytes: Uint8Array): State | string {
  const match = HEADER.exec(new TextDecoder('latin1').decode(bytes.subarray(0, 80)))
  if (!match || match[1] !== name) return `it does not begin like ${name}`
  if (match[2] !== String(FORMAT)) return `format ${match[2]} is not supported by this program`
  const text = bytes.subarray(match[0].length)
  if (match[4] !== String(text.length)) return `it has ${text.length} bytes of ${match[4]}`
  const checksum = crc32c(text, 0, text.length, nameChecksum(name))
  if (match[3] !== checksum.toString(16).padStart(8, '0')) return 'its checksum does not match'
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(text)) as State
  } catch (error) {
    return `its content cannot be read: ${error instanceof Error ? error.message : String(error)}`
  }
}

function writeState({ env, path }: DataDirectory, name: StateName, state: object): void {
  replaceFile(env.disk, join(path, name), encodeState(name, state))
}

/** @throws `corrupt_data` */
function readState(disk: Disk, path: string, name: StateName): State | undefined {
  const bytes = readStateBytes(disk, path, name)
  if (!bytes) return undefined
  const state = decodeState(name, bytes)
  if (typeof state === 'string') throw corrupt(path, name, state)
  return state
}

function readStateBytes(disk: Disk, path: string, name: StateName): Uint8Array | undefined {
  try {
    return readSmallFile(disk, join(path, name), FILE_BYTES_MAX)
  } catch (error) {
    const code = errnoOf(error)
    throw code === '' ? error : corrupt(path, name, `it cannot be read (${code})`)
  }
}

function isReadable(disk: Disk, path: string, name: StateName): boolean {
  const bytes = readStateBytes(disk, path, name)
  return bytes !== undefined && typeof decodeState(name, bytes) !== 'string'
}

function corrupt(path: string, name: StateName, reason: string): VacancyError {
  return new VacancyError('corrupt_data', { file: join(path, name), offset: 0, reason })
}

function writeNewIdentity(env: Env, path: string, nodeId: string): Identity {
  const identity = { nodeId, incarnation: toHex(env.random.bytes(16)) }
  const bytes = encodeState('IDENTITY', identity)
  withRoom(env, path, () => replaceFile(env.disk, join(path, 'IDENTITY'), bytes))
  return identity
}

/** Makes the node another member and sets the old identity aside. */
export function renewIdentity(directory: DataDirectory): void {
  const { env, path, identity } = directory
  directory.identity = door(path, () => writeNewIdentity(env, path, identity.nodeId))
}

function openIdentity(env: Env, path: string, nodeId: string, isFormed: boolean): Identity {
  const state = readState(env.disk, path, 'IDENTITY')
  if (!state) {
    if (isFormed) throw corrupt(path, 'IDENTITY', 'it is missing and CLUSTER is there')
    return writeNewIdentity(env, path, nodeId)
  }
  const { incarnation } = state
  if (typeof state['nodeId'] !== 'string' || typeof incarnation !== 'string' || fromHex(incarnation).length !== 16) {
    throw corrupt(path, 'IDENTITY', 'its content is not an identity')
  }
  if (state['nodeId'] !== nodeId) {
    const reason = `${path} belongs to node ${state['nodeId']}, not to ${nodeId}: give each node its own folder.`
    throw new VacancyError('data_conflict', { reason })
  }
  return { nodeId, incarnation }
}

function decodeCluster(path: string, state: State | undefined): Cluster | undefined {
  if (!state) return undefined
  const {
    clusterId,
    shardId,
    codecs,
    codecHash,
    baseIndex,
    baseTerm,
    voters,
    isFounder = true,
    wasVoter = false,
    drawsGenesis = false,
    snapshotDigest = '',
  } = state
  const isWhole =
    typeof clusterId === 'string' &&
    fromHex(clusterId).length === 16 &&
    typeof shardId === 'string' &&
    isTexts(codecs) &&
    typeof codecHash === 'string' &&
    fromHex(codecHash).length === 32 &&
    Number.isSafeInteger(baseIndex) &&
    Number.isSafeInteger(baseTerm) &&
    typeof isFounder === 'boolean' &&
    typeof wasVoter === 'boolean' &&
    typeof drawsGenesis === 'boolean' &&
    typeof snapshotDigest === 'string' &&
    isTexts(voters)
  if (!isWhole) throw corrupt(path, 'CLUSTER', 'its content is not a genesis')
  return {
    clusterId,
    shardId,
    codecs,
    codecHash,
    baseIndex: baseIndex as number,
    baseTerm: baseTerm as number,
    voters,
    ...(snapshotDigest === '' ? {} : { snapshotDigest }),
    ...(isFounder ? {} : { isFounder }),
    ...(wasVoter ? { wasVoter } : {}),
    ...(drawsGenesis ? { drawsGenesis } : {}),
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Empty for input that is not hexadecimal. */
function fromHex(text: string): Uint8Array {
  if (!/^([0-9a-f]{2})*$/.test(text)) return new Uint8Array(0)
  return Uint8Array.from({ length: text.length / 2 }, (_, i) => Number.parseInt(text.slice(2 * i, 2 * i + 2), 16))
}

/** The genesis of a folder, without opening it. @throws `corrupt_data` */
export function readCluster(disk: Disk, path: string): Cluster | undefined {
  return decodeCluster(path, readState(disk, path, 'CLUSTER'))
}

/** The node id of a folder, without opening it; undefined for a new one. @throws `corrupt_data` */
export function readNodeId(disk: Disk, path: string): string | undefined {
  const nodeId = readState(disk, path, 'IDENTITY')?.['nodeId']
  return typeof nodeId === 'string' ? nodeId : undefined
}

/**
 * Moves the data set aside under `name` back to its place, and sets the present data aside.
 *
 * @returns the new location of the present data, relative to the folder; empty when there were none
 */
export function restoreAside(directory: DataDirectory, name: string): string {
  const { env, path } = directory
  const from = join(path, 'quarantine', name)
  const names = env.disk.list(from)
  const place = setAside(directory, names, 'replaced')
  for (const entry of names) {
    renameFile(env.disk, join(from, entry), join(path, entry))
    syncFolder(env.disk, path)
  }
  return place
}
