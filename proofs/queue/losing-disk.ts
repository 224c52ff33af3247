/**
 * A disk in memory that keeps no more than was synced, for tests. Of what was not synced, a power cut keeps, tears or
 * loses each piece on its own, and of names in the folder it keeps the first few changes.
 */
import { assert } from '@vacancy/shared'
import type { Random } from '@vacancy/testkit/random'

/**
 * - `cut`: the power fails; what was not synced may be lost
 * - `kill`: the process ends, and the next one sees everything, synced or not
 * - `sync`: a sync fails, and the system forgets that its pieces were to be written
 * - `write`: a write fails half-way
 * - `full`: no room for a write
 */
export const DISK_FAULTS = ['cut', 'kill', 'sync', 'write', 'full'] as const
export type DiskFault = (typeof DISK_FAULTS)[number]

/** `forgotten`: read as if it were written, although nothing will write it any more. */
type Piece = { readonly bytes: Buffer; state: 'dirty' | 'durable' | 'forgotten' }
type File = Piece[]
type NameChange = { readonly name: string; readonly file: File | undefined }

export type LosingDisk = {
  readonly random: Random
  /** As the process sees them. */
  names: Map<string, File>
  durableNames: Map<string, File>
  /** Since the folder was synced. */
  nameChanges: NameChange[]
  /** The fault that is to happen after so many operations. */
  plan: { readonly fault: DiskFault; readonly after: number } | undefined
  operations: number
  isOff: boolean
  onFault: (fault: DiskFault) => void
}

export class DiskError extends Error {
  override readonly name = 'DiskError'
  readonly isFull: boolean

  constructor(message: string, isFull = false) {
    super(message)
    this.isFull = isFull
  }
}

export function createLosingDisk(random: Random): LosingDisk {
  return {
    random,
    names: new Map(),
    durableNames: new Map(),
    nameChanges: [],
    plan: undefined,
    operations: 0,
    isOff: false,
    onFault: () => undefined,
  }
}

export function planFault(disk: LosingDisk, fault: DiskFault, after: number): void {
  disk.plan = { fault, after: disk.operations + after }
}

/** The process starts again, after a power cut with what is left. */
export function startAgain(disk: LosingDisk, isCut: boolean): void {
  disk.isOff = false
  if (!isCut) return
  const kept = disk.nameChanges.slice(0, disk.random.below(disk.nameChanges.length + 1))
  for (const change of kept) applyName(disk.durableNames, change)
  const files = new Map([...disk.durableNames.values()].map((file) => [file, leftOf(file, disk.random)]))
  disk.names = new Map([...disk.durableNames].map(([name, file]) => [name, files.get(file) as File]))
  disk.durableNames = new Map(disk.names)
  disk.nameChanges = []
}

/** What a power cut leaves of a file. A lost piece with another one behind it becomes zeros. */
function leftOf(file: File, random: Random): File {
  const left: Buffer[] = []
  let zeros = 0
  for (const { bytes, state } of file) {
    const length = state === 'durable' ? bytes.length : state === 'forgotten' ? 0 : lengthLeft(bytes, random)
    if (length > 0) {
      left.push(Buffer.alloc(zeros), bytes.subarray(0, length))
      zeros = 0
    }
    zeros += bytes.length - length
  }
  return [{ bytes: Buffer.concat(left), state: 'durable' }]
}

function lengthLeft({ length }: Buffer, random: Random): number {
  return [length, 0, random.below(length + 1)][random.below(3)] as number
}

function applyName(names: Map<string, File>, { name, file }: NameChange): void {
  if (file === undefined) names.delete(name)
  else names.set(name, file)
}

// --- Operations, each of which may fail ---

/** @returns the fault that happens now, if it is one of these */
function operation(disk: LosingDisk, faults: readonly DiskFault[]): DiskFault | undefined {
  if (disk.isOff) throw new DiskError('the machine is off')
  disk.operations++
  const { plan } = disk
  if (plan === undefined || disk.operations < plan.after || !faults.includes(plan.fault)) return undefined
  disk.plan = undefined
  if (plan.fault === 'cut' || plan.fault === 'kill') disk.isOff = true
  disk.onFault(plan.fault)
  return plan.fault
}

function fileOf({ names }: LosingDisk, name: string): File {
  const file = names.get(name)
  assert(file !== undefined, `the file ${name} exists`)
  return file
}

export function readFile({ names, isOff }: LosingDisk, name: string): Buffer | undefined {
  if (isOff) throw new DiskError('the machine is off')
  const file = names.get(name)
  return file === undefined ? undefined : Buffer.concat(file.map(({ bytes }) => bytes))
}

/** Creates a file, empty, instead of one of the same name. */
export function createFile(disk: LosingDisk, name: string): void {
  if (operation(disk, ['cut', 'kill']) !== undefined) throw new DiskError('the machine is off')
  changeName(disk, { name, file: [] })
}

export function appendFile(disk: LosingDisk, name: string, bytes: Buffer): void {
  const file = fileOf(disk, name)
  const fault = operation(disk, ['cut', 'kill', 'write', 'full'])
  if (fault === 'full') throw new DiskError('no room', true)
  const written = fault === undefined ? bytes : bytes.subarray(0, disk.random.below(bytes.length + 1))
  if (written.length > 0) file.push({ bytes: written, state: 'dirty' })
  if (fault !== undefined) throw new DiskError(`a write failed: ${fault}`)
}

export function syncFile(disk: LosingDisk, name: string): void {
  const file = fileOf(disk, name)
  const fault = operation(disk, ['cut', 'kill', 'sync'])
  if (fault === 'cut' || fault === 'kill') throw new DiskError('the machine is off')
  for (const piece of file)
    if (piece.state === 'dirty')
      piece.state = fault === undefined || disk.random.below(2) === 0 ? 'durable' : 'forgotten'
  if (fault !== undefined) throw new DiskError('a sync failed')
}

export function renameFile(disk: LosingDisk, from: string, to: string): void {
  const file = fileOf(disk, from)
  if (operation(disk, ['cut', 'kill']) !== undefined) throw new DiskError('the machine is off')
  changeName(disk, { name: to, file })
  changeName(disk, { name: from, file: undefined })
}

export function removeFile(disk: LosingDisk, name: string): void {
  if (operation(disk, ['cut', 'kill']) !== undefined) throw new DiskError('the machine is off')
  changeName(disk, { name, file: undefined })
}

/** Makes names durable: those of new files, and those that changed. */
export function syncFolder(disk: LosingDisk): void {
  const fault = operation(disk, ['cut', 'kill', 'sync'])
  if (fault !== undefined) throw new DiskError(`a sync of the folder failed: ${fault}`)
  for (const change of disk.nameChanges.splice(0)) applyName(disk.durableNames, change)
}

function changeName(disk: LosingDisk, change: NameChange): void {
  applyName(disk.names, change)
  disk.nameChanges.push(change)
}
