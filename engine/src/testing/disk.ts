/**
 * A disk in memory that loses unsynced changes in a crash (docs/design/testing.md#simulation,
 * docs/design/testing.md#storage-tests).
 *
 * Every change is an effect. A file's effects are its writes, split into 512-byte sectors, and its changes of length; a
 * folder's effects are added, removed and moved names. A sync makes all earlier effects durable: `syncData` those of
 * one file, `syncDirectory` those of one folder. After a crash each unsynced effect has happened or not, independently
 * of the others and in order. So a rename may survive without the content of the renamed file, a length without its
 * bytes, and the second half of a write without the first.
 *
 * For tests there are a log of operations, faults that can be injected into any of them, and syncs that can be
 * disabled.
 */

import { assert } from '@vacancy/shared'
import type { Random } from '@vacancy/testkit/random'
import type { Disk, FileStat } from '../env.ts'

const SECTOR_BYTES = 512

type FileEffect =
  /** The file grew to this many bytes. `lost`: dropped by a failed sync; later syncs do not restore it. */
  | { kind: 'length'; bytes: number; operation: number; lost: boolean }
  | { kind: 'sector'; at: number; bytes: Uint8Array; operation: number; lost: boolean }

/** Changed names of one folder, applied atomically. */
type FolderEffect = {
  readonly names: readonly (readonly [name: string, node: Node | undefined])[]
  /**
   * A move between folders consists of two effects. The name leaves the source only after it was added to the target,
   * unless only the source is synced. So both need a sync, the target first.
   */
  readonly needs: FolderEffect | undefined
  readonly operation: number
  isDurable: boolean
}

type File = {
  readonly isDirectory: false
  /** The content that readers see. */
  content: Uint8Array
  length: number
  durable: Uint8Array
  durableLength: number
  effects: FileEffect[]
}

type Folder = {
  readonly isDirectory: true
  names: Map<string, Node>
  durable: Map<string, Node>
  effects: FolderEffect[]
}

type Node = File | Folder

type DiskCall =
  | 'open'
  | 'create'
  | 'read'
  | 'write'
  | 'syncData'
  | 'close'
  | 'rename'
  | 'unlink'
  | 'makeDirectory'
  | 'removeDirectory'
  | 'list'
  | 'stat'
  | 'syncDirectory'
  | 'space'

export type DiskOperation = {
  /** Sequence number among all operations of this disk, from 0. */
  readonly number: number
  readonly call: DiskCall
  readonly path: string
  readonly bytes: number
  /** The injected fault. */
  fault: Fault | undefined
}

/** A fault of one operation. */
export type Fault =
  /** It fails with this errno. A failed sync loses the effects it should have made durable, as in real kernels. */
  | { kind: 'fail'; code: string }
  /** A partial write; with `code`, the rest fails. */
  | { kind: 'short'; bytes: number; code?: string }
  /** The machine stops before the operation. */
  | { kind: 'crash' }
  /** A sync that reports success and does nothing. */
  | { kind: 'ignore' }

/** The machine has stopped: the disk can only be passed to `crash`. */
export class CrashError extends Error {}

export type SimulatedDisk = Disk & {
  readonly root: Folder
  readonly operations: DiskOperation[]
  /** Locked files, whatever their names are by now. */
  readonly locks: Set<File>
  /** Descriptors that were not closed. */
  openFiles(): number
  /** Call sites of syncs (`wal.ts:123`) by operation number; filled when `recordSites` is set. */
  readonly sites: Map<number, string>
  recordSites: boolean
  fault: (operation: DiskOperation) => Fault | undefined
  /** Capacity in bytes. */
  capacityBytes: number
  isReadOnly: boolean
  /**
   * Overwriting needs space as well until the next sync, as on copy-on-write file systems: once per sector, or for each
   * write.
   */
  copiesOnWrite: boolean | 'each time'
  crashed: boolean
}

export type SimulatedDiskOptions = { capacityBytes?: number }

export function createSimulatedDisk({ capacityBytes = 2 ** 40 }: SimulatedDiskOptions = {}): SimulatedDisk {
  return buildDisk(createFolder(), capacityBytes)
}

/**
 * Decides whether an unsynced effect survives a crash.
 *
 * @param kind a change of names, or a sector or the length of a file
 * @param operation number of the operation that caused the effect
 */
export type Survives = (kind: 'names' | 'file', operation: number) => boolean

/**
 * The disk after the machine has stopped.
 *
 * @param survives decides for each unsynced effect, in order, whether it happened
 * @returns a new disk; the old one is unchanged, so that other outcomes can be tried
 */
export function crash(disk: SimulatedDisk, survives: Survives): SimulatedDisk {
  const outcome = { survives, decided: new Map<FolderEffect, boolean>(), seen: new Map<Node, Node>() }
  return buildDisk(afterCrash(disk.root, outcome) as Folder, disk.capacityBytes)
}

/** The process was killed but the machine was not: a new process sees everything, synced or not. */
export function restart(disk: SimulatedDisk): SimulatedDisk {
  return buildDisk(disk.root, disk.capacityBytes)
}

/** The same disk as another process sees it while those before live. */
export function shareDisk(disk: SimulatedDisk): SimulatedDisk {
  return buildDisk(disk.root, disk.capacityBytes, disk.locks)
}

/** An independent copy with the same synced and unsynced effects. */
export function fork(disk: SimulatedDisk): SimulatedDisk {
  const nodes = new Map<Node, Node>()
  const effects = new Map<FolderEffect, FolderEffect>()
  const copyEffect = (effect: FolderEffect): FolderEffect => {
    const copied = effects.get(effect)
    if (copied) return copied
    const { isDurable, needs, operation } = effect
    const names = effect.names.map(([name, node]) => [name, node && copyNode(node)] as const)
    const copy = { names, needs: needs && copyEffect(needs), operation, isDurable }
    effects.set(effect, copy)
    return copy
  }
  const copyNode = (node: Node): Node => {
    const copied = nodes.get(node)
    if (copied) return copied
    if (!node.isDirectory) {
      const file = { ...node, content: node.content.slice(), durable: node.durable.slice(), effects: [...node.effects] }
      file.effects = file.effects.map((effect) => ({ ...effect }))
      nodes.set(node, file)
      return file
    }
    const folder = createFolder()
    nodes.set(node, folder)
    for (const [name, child] of node.names) folder.names.set(name, copyNode(child))
    for (const [name, child] of node.durable) folder.durable.set(name, copyNode(child))
    folder.effects = node.effects.map(copyEffect)
    return folder
  }
  return buildDisk(copyNode(disk.root) as Folder, disk.capacityBytes)
}

/** Up to this many effects, every combination is tried. */
const COMBINED_MAX = 4

/**
 * Selects outcomes of a crash: all effects; none; all combinations of a few effects, or of a few names with and without
 * all file effects; each operation alone and each one missing; up to `samples` single effects alone and missing; and
 * `samples` random combinations.
 */
export function* crashOutcomes(disk: SimulatedDisk, random: Random, samples: number): Generator<SimulatedDisk> {
  // Lost effects hide others (a file whose name is lost), so the counts are upper bounds.
  let names = 0
  let count = 0
  const operations = new Set<number>()
  yield crash(disk, (kind, operation) => {
    count++
    if (kind === 'names') names++
    operations.add(operation)
    return true
  })
  if (count === 0) return
  if (count <= COMBINED_MAX) {
    for (let set = 0; set < 2 ** count - 1; set++) yield crash(disk, indexChooser(bitOf(set)))
    return
  }
  yield crash(disk, () => false)
  for (let set = 1; names <= COMBINED_MAX && set < 2 ** names - 1; set++) {
    for (const files of [false, true]) {
      const choose = indexChooser(bitOf(set))
      yield crash(disk, (kind) => (kind === 'names' ? choose() : files))
    }
  }
  for (const chosen of operations) {
    yield crash(disk, (_, operation) => operation === chosen)
    yield crash(disk, (_, operation) => operation !== chosen)
  }
  const each = Math.min(count, samples)
  for (let i = 0; i < each; i++) {
    const chosen = each === count ? i : random.below(count)
    yield crash(
      disk,
      indexChooser((at) => at === chosen),
    )
    yield crash(
      disk,
      indexChooser((at) => at !== chosen),
    )
  }
  for (let i = 0; i < samples; i++) {
    const oneIn = 2 + random.below(6)
    const mostly = random.below(2) === 1
    yield crash(disk, () => (random.below(oneIn) === 0) !== mostly)
  }
}

const bitOf = (set: number) => (at: number) => ((set >>> at) & 1) === 1

function indexChooser(choose: (at: number) => boolean): () => boolean {
  let at = 0
  return () => choose(at++)
}

/** Removes all free space. */
export function fillDisk(disk: SimulatedDisk): SimulatedDisk {
  disk.capacityBytes = usedBytes(disk.root)
  return disk
}

/** Overwrites durable bytes directly: bit rot, or a misdirected write. */
export function damage(disk: SimulatedDisk, path: string, position: number, bytes: Uint8Array): void {
  const file = findFile(disk.root, path)
  assert(position + bytes.length <= file.length, 'damage must be within the file')
  file.content.set(bytes, position)
  file.durable.set(bytes, position)
}

/** Truncates a durable file directly. */
export function cut(disk: SimulatedDisk, path: string, bytes: number): void {
  const file = findFile(disk.root, path)
  file.length = bytes
  file.durableLength = bytes
  file.content.fill(0, bytes)
  file.durable.fill(0, bytes)
}

/** A copy of a file's bytes as readers see them. */
export function contentOf(disk: SimulatedDisk, path: string): Uint8Array {
  const file = findFile(disk.root, path)
  return file.content.slice(0, file.length)
}

/** An independent copy with everything synced. */
export function copyDisk(disk: SimulatedDisk): SimulatedDisk {
  return crash(disk, () => true)
}

/** Every path with its bytes, sorted, to check that nothing changed. */
export function picture(disk: SimulatedDisk): Map<string, Uint8Array> {
  const found = new Map<string, Uint8Array>()
  const walk = (folder: Folder, path: string): void => {
    for (const name of [...folder.names.keys()].sort()) {
      const node = folder.names.get(name) as Node
      if (node.isDirectory) walk(node, `${path}/${name}`)
      else found.set(`${path}/${name}`, node.content.slice(0, node.length))
    }
  }
  walk(disk.root, '')
  return found
}

function buildDisk(root: Folder, capacityBytes: number, locks = new Set<File>()): SimulatedDisk {
  const open: (File | undefined)[] = []
  /** Written but unsynced sectors with `copiesOnWrite`: they already have their new location. */
  const copied = new Map<File, Set<number>>()
  /** The same with a new location for each write, in bytes. */
  let copiedBytes = 0
  const disk: SimulatedDisk = {
    root,
    operations: [],
    locks,
    sites: new Map(),
    recordSites: false,
    fault: () => undefined,
    capacityBytes,
    isReadOnly: false,
    copiesOnWrite: false,
    crashed: false,

    openFiles: () => open.filter((file) => file !== undefined).length,
    open(path, mode) {
      begin(disk, mode === 'create' ? 'create' : 'open', path)
      if (mode !== 'read' && disk.isReadOnly) throw errno('EROFS', path)
      const file = mode === 'create' ? createFile(root, path, disk.operations.length) : findFile(root, path)
      return open.push(file) - 1
    },
    read(descriptor, bytes, start, length, position) {
      const file = opened(open, descriptor)
      begin(disk, 'read', pathOf(root, file), length)
      const count = Math.max(0, Math.min(length, file.length - position))
      bytes.set(file.content.subarray(position, position + count), start)
      return count
    },
    write(descriptor, bytes, start, length, position) {
      const file = opened(open, descriptor)
      const path = pathOf(root, file)
      const fault = begin(disk, 'write', path, length)
      const requested = fault?.kind === 'short' ? Math.min(fault.bytes, length) : length
      let copies = 0
      for (const sectors of copied.values()) copies += sectors.size
      const free = Math.max(0, disk.capacityBytes - usedBytes(root) - copies * SECTOR_BYTES)
      // Bytes within the file already have space, even on a full disk.
      let room = allocated(file.length) + free
      if (disk.copiesOnWrite === true) room = copyUpTo(copied, file, position, position + requested, free)
      if (disk.copiesOnWrite === 'each time') room = position + free - copiedBytes
      const fits = Math.max(0, Math.min(requested, room - position))
      if (disk.copiesOnWrite === 'each time') copiedBytes += allocated(fits)
      if (fits > 0) writeFile(file, bytes.subarray(start, start + fits), position, disk.operations.length)
      if (fault?.kind === 'short' && fault.code !== undefined) throw errno(fault.code, path)
      if (fits === 0 && length > 0 && requested > 0) throw errno('ENOSPC', path)
      return fits
    },
    syncData(descriptor) {
      const file = opened(open, descriptor)
      const path = pathOf(root, file)
      const fault = begin(disk, 'syncData', path, 0, () => {
        for (const effect of file.effects) effect.lost = true
      })
      if (fault?.kind === 'ignore') return
      syncFile(file)
      copied.clear()
      copiedBytes = 0
    },
    close(descriptor) {
      const file = opened(open, descriptor)
      begin(disk, 'close', pathOf(root, file))
      open[descriptor] = undefined
    },
    rename(from, to) {
      begin(disk, 'rename', `${from} → ${to}`)
      const source = parentOf(root, from)
      const target = parentOf(root, to)
      const node = source.folder.names.get(source.name)
      if (!node) throw errno('ENOENT', from)
      const replaced = target.folder.names.get(target.name)
      // As POSIX has it: a folder replaces an empty one.
      if (replaced?.isDirectory && replaced.names.size > 0) throw errno('ENOTEMPTY', to)
      if (replaced && replaced.isDirectory !== node.isDirectory)
        throw errno(node.isDirectory ? 'ENOTDIR' : 'EISDIR', to)
      if (source.folder === target.folder) {
        changeNames(disk.operations.length, source.folder, [
          [source.name, undefined],
          [target.name, node],
        ])
      } else {
        const arrival = changeNames(disk.operations.length, target.folder, [[target.name, node]])
        changeNames(disk.operations.length, source.folder, [[source.name, undefined]], arrival)
      }
    },
    unlink(path) {
      begin(disk, 'unlink', path)
      const { folder, name } = parentOf(root, path)
      const node = folder.names.get(name)
      if (!node) throw errno('ENOENT', path)
      if (node.isDirectory) throw errno('EISDIR', path)
      changeNames(disk.operations.length, folder, [[name, undefined]])
    },
    makeDirectory(path) {
      begin(disk, 'makeDirectory', path)
      const { folder, name } = parentOf(root, path)
      if (folder.names.has(name)) throw errno('EEXIST', path)
      changeNames(disk.operations.length, folder, [[name, createFolder()]])
    },
    removeDirectory(path) {
      begin(disk, 'removeDirectory', path)
      const { folder, name } = parentOf(root, path)
      const node = folder.names.get(name)
      if (!node?.isDirectory) throw errno('ENOTDIR', path)
      if (node.names.size > 0) throw errno('ENOTEMPTY', path)
      changeNames(disk.operations.length, folder, [[name, undefined]])
    },
    list(path) {
      begin(disk, 'list', path)
      return [...findFolder(root, path).names.keys()].sort()
    },
    stat(path): FileStat | undefined {
      begin(disk, 'stat', path)
      const node = find(root, path)
      return node && { bytes: node.isDirectory ? 0 : node.length, isDirectory: node.isDirectory }
    },
    syncDirectory(path) {
      const fault = begin(disk, 'syncDirectory', path)
      const folder = findFolder(root, path)
      if (fault?.kind === 'ignore') return
      syncFolder(folder)
    },
    space(path) {
      begin(disk, 'space', path)
      return { freeBytes: Math.max(0, disk.capacityBytes - usedBytes(root)), totalBytes: disk.capacityBytes }
    },
    lock(path) {
      if (!find(root, path)) disk.close(disk.open(path, 'create'))
      const file = findFile(root, path)
      if (locks.has(file)) return undefined
      locks.add(file)
      return { isInPlace: () => find(root, path) === file, release: () => void locks.delete(file) }
    },
  }
  return disk
}

/**
 * Stops the machine, or the process, before one of the next changing operations.
 *
 * @param draw decides before which one; often before one of the first four, at the start of pending work
 */
export function stopBefore(disk: SimulatedDisk, draw: number, onStop: () => void): void {
  let left = draw % 2 === 0 ? (draw >>> 1) % 4 : (draw >>> 1) % 48
  disk.fault = ({ call }) => {
    if (![...CHANGES, 'syncData', 'syncDirectory'].includes(call) || left-- > 0) return undefined
    onStop()
    return { kind: 'crash' }
  }
}

/** Logs the operation and applies its fault. @param onSyncFailed the effect of a failed sync on the data */
function begin(
  disk: SimulatedDisk,
  call: DiskCall,
  path: string,
  bytes = 0,
  onSyncFailed?: () => void,
): Fault | undefined {
  if (disk.crashed) throw new CrashError('the machine has stopped')
  const operation: DiskOperation = { number: disk.operations.length, call, path, bytes, fault: undefined }
  disk.operations.push(operation)
  const isSync = call === 'syncData' || call === 'syncDirectory'
  if (isSync && disk.recordSites) disk.sites.set(operation.number, callSite())
  const fault = disk.fault(operation)
  operation.fault = fault
  if (fault?.kind === 'crash') {
    disk.crashed = true
    throw new CrashError(`the machine stops before operation ${operation.number}: ${call} ${path}`)
  }
  if (fault?.kind === 'fail') {
    onSyncFailed?.()
    throw errno(fault.code, path)
  }
  assert(fault?.kind !== 'short' || call === 'write', 'only writes can be short')
  assert(fault?.kind !== 'ignore' || isSync, 'only syncs can be disabled')
  if (disk.isReadOnly && CHANGES.includes(call)) throw errno('EROFS', path)
  return fault
}

const CHANGES: readonly DiskCall[] = ['create', 'write', 'rename', 'unlink', 'makeDirectory', 'removeDirectory']

/** Production stack frames that called a sync, innermost first: a helper and its caller; empty for calls of tests. */
function callSite(): string {
  const frames = (new Error().stack ?? '').split('\n').slice(1)
  const outside = frames.filter((frame) => /\/src\/(?!testing\/)/.test(frame) && !frame.includes('.test.ts'))
  return outside
    .slice(0, 3)
    .map((frame) => /([\w-]+[.]ts:\d+):\d+\)?$/.exec(frame)?.[1] ?? '?')
    .join(' < ')
}

function errno(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code, path })
}

function createFolder(): Folder {
  return { isDirectory: true, names: new Map(), durable: new Map(), effects: [] }
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.')
}

function find(root: Folder, path: string): Node | undefined {
  let node: Node | undefined = root
  for (const part of segmentsOf(path)) {
    if (!node?.isDirectory) return undefined
    node = node.names.get(part)
  }
  return node
}

function findFile(root: Folder, path: string): File {
  const node = find(root, path)
  if (!node) throw errno('ENOENT', path)
  if (node.isDirectory) throw errno('EISDIR', path)
  return node
}

function findFolder(root: Folder, path: string): Folder {
  const node = find(root, path)
  if (!node) throw errno('ENOENT', path)
  if (!node.isDirectory) throw errno('ENOTDIR', path)
  return node
}

function parentOf(root: Folder, path: string): { folder: Folder; name: string } {
  const parts = segmentsOf(path)
  const name = parts.pop()
  assert(name !== undefined, 'the root has no name')
  return { folder: findFolder(root, parts.join('/')), name }
}

function createFile(root: Folder, path: string, operation: number): File {
  const { folder, name } = parentOf(root, path)
  if (folder.names.has(name)) throw errno('EEXIST', path)
  const none = new Uint8Array(0)
  const file: File = { isDirectory: false, content: none, length: 0, durable: none, durableLength: 0, effects: [] }
  changeNames(operation, folder, [[name, file]])
  return file
}

function opened(open: (File | undefined)[], descriptor: number): File {
  const file = open[descriptor]
  if (!file) throw errno('EBADF', String(descriptor))
  return file
}

/** Name of an open file for the operation log; removed files have none. */
function pathOf(root: Folder, file: File): string {
  const search = (folder: Folder, path: string): string | undefined => {
    for (const [name, node] of folder.names) {
      if (node === file) return `${path}/${name}`
      if (node.isDirectory) {
        const found = search(node, `${path}/${name}`)
        if (found !== undefined) return found
      }
    }
    return undefined
  }
  return search(root, '') ?? '(removed)'
}

function changeNames(
  operation: number,
  folder: Folder,
  names: FolderEffect['names'],
  needs?: FolderEffect,
): FolderEffect {
  const effect: FolderEffect = { names, needs, operation, isDurable: false }
  applyNames(folder.names, effect)
  folder.effects.push(effect)
  return effect
}

function applyNames(names: Map<string, Node>, effect: FolderEffect): void {
  for (const [name, node] of effect.names) {
    if (node) names.set(name, node)
    else names.delete(name)
  }
}

function syncFolder(folder: Folder): void {
  for (const effect of folder.effects) {
    applyNames(folder.durable, effect)
    effect.isDurable = true
  }
  folder.effects = []
}

/** Allocates new locations for the sectors of a write, as far as possible. @returns the end of the allocated range */
function copyUpTo(copied: Map<File, Set<number>>, file: File, from: number, to: number, freeBytes: number): number {
  let sectors = copied.get(file)
  if (!sectors) {
    sectors = new Set()
    copied.set(file, sectors)
  }
  let free = freeBytes
  let end = from
  for (let sector = Math.floor(from / SECTOR_BYTES); end < to; sector++) {
    if (!sectors.has(sector)) {
      if (free < SECTOR_BYTES) return end
      free -= SECTOR_BYTES
      sectors.add(sector)
    }
    end = (sector + 1) * SECTOR_BYTES
  }
  return end
}

function allocated(bytes: number): number {
  return Math.ceil(bytes / SECTOR_BYTES) * SECTOR_BYTES
}

function usedBytes(folder: Folder): number {
  let used = 0
  for (const node of folder.names.values()) used += node.isDirectory ? usedBytes(node) : allocated(node.length)
  return used
}

/** Grows in large steps, so that many small writes take linear time. */
function withRoom(bytes: Uint8Array, length: number): Uint8Array {
  if (length <= bytes.length) return bytes
  const grown = new Uint8Array(Math.max(length, bytes.length * 2, 4096))
  grown.set(bytes)
  return grown
}

function writeFile(file: File, bytes: Uint8Array, position: number, operation: number): void {
  const end = position + bytes.length
  file.content = withRoom(file.content, end)
  file.content.set(bytes, position)
  if (end > file.length) {
    file.length = end
    file.effects.push({ kind: 'length', bytes: end, operation, lost: false })
  }
  for (let at = position; at < end; ) {
    const next = Math.min(end, (Math.floor(at / SECTOR_BYTES) + 1) * SECTOR_BYTES)
    file.effects.push({
      kind: 'sector',
      at,
      bytes: bytes.slice(at - position, next - position),
      operation,
      lost: false,
    })
    at = next
  }
}

/** Makes effects durable, except those lost by an earlier failed sync. */
function syncFile(file: File): void {
  const kept: FileEffect[] = []
  for (const effect of file.effects) {
    if (effect.lost) kept.push(effect)
    else applyEffect(file, effect)
  }
  file.effects = kept
}

function applyEffect(file: { durable: Uint8Array; durableLength: number }, effect: FileEffect): void {
  if (effect.kind === 'length') {
    file.durableLength = Math.max(file.durableLength, effect.bytes)
    file.durable = withRoom(file.durable, effect.bytes)
    return
  }
  file.durable = withRoom(file.durable, effect.at + effect.bytes.length)
  file.durable.set(effect.bytes, effect.at)
}

type Outcome = {
  readonly survives: Survives
  /** Decides each effect once, even if others depend on it. */
  readonly decided: Map<FolderEffect, boolean>
  readonly seen: Map<Node, Node>
}

function afterCrash(node: Node, outcome: Outcome): Node {
  const earlier = outcome.seen.get(node)
  if (earlier) return earlier
  const next = node.isDirectory ? folderAfterCrash(node, outcome) : fileAfterCrash(node, outcome)
  outcome.seen.set(node, next)
  return next
}

function folderAfterCrash(folder: Folder, outcome: Outcome): Folder {
  const names = new Map(folder.durable)
  for (const effect of folder.effects) {
    if (hasHappened(effect, outcome)) applyNames(names, effect)
  }
  const next = createFolder()
  for (const [name, node] of names) next.names.set(name, afterCrash(node, outcome))
  next.durable = new Map(next.names)
  return next
}

function hasHappened(effect: FolderEffect, outcome: Outcome): boolean {
  if (effect.isDurable) return true
  const decided = outcome.decided.get(effect)
  if (decided !== undefined) return decided
  const happened = outcome.survives('names', effect.operation) && (!effect.needs || hasHappened(effect.needs, outcome))
  outcome.decided.set(effect, happened)
  return happened
}

function fileAfterCrash(file: File, { survives }: Outcome): File {
  const left = { durable: file.durable.slice(), durableLength: file.durableLength }
  for (const effect of file.effects) if (survives('file', effect.operation)) applyEffect(left, effect)
  const content = withRoom(left.durable, left.durableLength)
  // Bytes beyond the surviving length are not part of the file.
  content.fill(0, left.durableLength)
  return {
    isDirectory: false,
    content,
    length: left.durableLength,
    durable: content.slice(),
    durableLength: left.durableLength,
    effects: [],
  }
}
