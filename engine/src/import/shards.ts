/**
 * More packages than one shard takes: the input is split by whole segments, and each part is built as a shard.
 *
 *   properties.csv   which segment a property is in
 *   packages.csv     how many packages each segment has; then each record, unchanged, to the part of its segment
 *   parts            one after the other: build-snapshot as for a shard of its own
 *
 * Segments go in the order of properties.csv into the first shard that has room for them. Unreadable records go
 * to the first part, whose build reports the error.
 */

import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { packPropertyIdInto, VacancyError } from '@vacancy/shared'
import { changeOf } from '@vacancy/shared/node'
import type { Env } from '../env.ts'
import { type Cells, cellText, createCells, LINE_BYTES_MAX, readRecord, type Scanned } from './csv.ts'
import {
  buildSnapshot,
  type ImportOptions,
  type ImportOutcome,
  type ImportSummary,
  PACKAGES_FILE,
  PROPERTIES_FILE,
  SEED_FILE,
} from './import.ts'

/** The segments of each shard; next to the folders of the shards. */
export const SHARDS_FILE = 'shards.json'
/** The parts of the input, while they are built. */
export const PARTS_FOLDER = 'parts.tmp'
const SHARDS_MAX = 256
const READ_BYTES = 8 << 20
const WRITE_BYTES = 1 << 20

export type ShardsOptions = ImportOptions & {
  /** Maximum packages per shard. */
  readonly packagesMax: number
  /** Called when a shard is built. */
  readonly onShard?: (summary: ImportSummary) => void
}

type ShardPart = {
  readonly shardId: string
  readonly folder: string
  readonly segments: readonly string[]
  /** Of the files: nights outside the window count as well. */
  readonly packages: number
}

export type ShardsOutcome =
  | { readonly ok: true; readonly shards: readonly (ShardPart & { readonly summary: ImportSummary })[] }
  | { readonly ok: false; readonly shardId: string; readonly outcome: Extract<ImportOutcome, { ok: false }> }

/** @throws VacancyError usage_error for a segment larger than a shard may be, and for existing folders */
export async function buildShards(env: Env, options: ShardsOptions): Promise<ShardsOutcome> {
  const { inputPath, outputPath, packagesMax, shardId } = options
  const inputs = [PROPERTIES_FILE, PACKAGES_FILE].map((name) => join(inputPath, name))
  const opened = inputs.map((path) => statSync(path, { throwIfNoEntry: false }))
  const segments = countSegments(inputPath)
  const parts = assign(segments, packagesMax, shardId)
  for (const { folder } of parts) {
    if (existsSync(join(outputPath, folder, SEED_FILE)) && !options.overwrite)
      throw usage(`${join(outputPath, folder, SEED_FILE)} is there already; --overwrite replaces it`)
  }
  const work = join(outputPath, PARTS_FOLDER)
  rmSync(work, { recursive: true, force: true })
  const built: (ShardPart & { readonly summary: ImportSummary })[] = []
  let isDone = false
  try {
    splitFiles(inputPath, work, segments, parts)
    for (const [i, path] of inputs.entries()) {
      const change = changeOf(path, opened[i] as Stats)
      if (change !== '') throw new VacancyError('data_conflict', { reason: `${path} ${change}` })
    }
    for (const part of parts) {
      const folder = join(outputPath, part.folder)
      const from = join(work, part.folder)
      const outcome = await buildSnapshot(env, {
        ...options,
        shardId: part.shardId,
        inputPath: from,
        outputPath: folder,
      })
      if (!outcome.ok) return { ok: false, shardId: part.shardId, outcome }
      built.push({ ...part, summary: outcome.summary })
      rmSync(from, { recursive: true })
      options.onShard?.(outcome.summary)
    }
    writeFileSync(join(outputPath, SHARDS_FILE), `${JSON.stringify({ shards: built.map(manifestOf) }, undefined, 2)}\n`)
    isDone = true
    return { ok: true, shards: built }
  } finally {
    rmSync(work, { recursive: true, force: true })
    // All or nothing: some shards of a failed plan could be mistaken for the whole.
    if (!isDone) for (const { folder } of built) rmSync(join(outputPath, folder, SEED_FILE), { force: true })
  }
}

const manifestOf = ({ shardId, folder, segments, summary }: ShardPart & { readonly summary: ImportSummary }) => ({
  ...{ shardId, snapshot: `${folder}/${SEED_FILE}`, snapshotId: summary.snapshotId },
  ...{ packages: summary.packages, properties: summary.properties, segments },
})

// Counting.

type Segments = {
  readonly names: string[]
  readonly packages: number[]
  /** By packed property id: the number of its segment. */
  readonly ofProperty: Map<string, number>
}

function countSegments(inputPath: string): Segments {
  const numbers = new Map<string, number>()
  const segments: Segments = { names: [], packages: [], ofProperty: new Map() }
  let column = 1
  eachRecord(join(inputPath, PROPERTIES_FILE), {
    header: (names) => {
      column = names.includes('segment') ? names.indexOf('segment') : 1
    },
    record: (cells, id) => {
      if (id === undefined || column >= cells.count) return
      const name = cellText(cells, column)
      let number = numbers.get(name)
      if (number === undefined) {
        number = segments.names.push(name) - 1
        segments.packages.push(0)
        numbers.set(name, number)
      }
      segments.ofProperty.set(id, number)
    },
  })
  eachRecord(join(inputPath, PACKAGES_FILE), {
    record: (_cells, id) => {
      const number = id === undefined ? undefined : segments.ofProperty.get(id)
      if (number !== undefined) segments.packages[number] = segments.packages[number] + 1
    },
  })
  return segments
}

/** First fit, in the order of the segments. */
function assign({ names, packages }: Segments, packagesMax: number, shardId: string): ShardPart[] {
  const parts: { segments: string[]; packages: number }[] = []
  for (const [number, name] of names.entries()) {
    const count = packages[number]
    if (count > packagesMax)
      throw usage(
        `segment ${JSON.stringify(name)} has ${count} packages, --max-shard-packages is ${packagesMax}, and a segment is in one shard only`,
      )
    const roomy = parts.find((each) => each.packages + count <= packagesMax)
    const part = roomy ?? { segments: [], packages: 0 }
    if (roomy === undefined) parts.push(part)
    part.segments.push(name)
    part.packages += count
  }
  if (parts.length > SHARDS_MAX)
    throw usage(`the data would take ${parts.length} shards of ${packagesMax} packages; at most ${SHARDS_MAX} are made`)
  if (parts.length === 0) parts.push({ segments: [], packages: 0 })
  return parts.map((part, at) => ({ shardId: `${shardId}${at + 1}`, folder: `${shardId}${at + 1}`, ...part }))
}

// Splitting.

function splitFiles(inputPath: string, work: string, segments: Segments, parts: readonly ShardPart[]): void {
  const partOf = new Map(parts.flatMap((part, at) => part.segments.map((name) => [name, at] as const)))
  const ofSegment = segments.names.map((name) => partOf.get(name) as number)
  for (const { folder } of parts) mkdirSync(join(work, folder), { recursive: true })
  for (const file of [PROPERTIES_FILE, PACKAGES_FILE]) {
    const outputs = parts.map(({ folder }) => createOutput(join(work, folder, file)))
    try {
      eachRecord(join(inputPath, file), {
        start: (bytes) => {
          for (const output of outputs) put(output, bytes)
        },
        record: (_cells, id, bytes) => {
          const number = id === undefined ? undefined : segments.ofProperty.get(id)
          put(outputs[number === undefined ? 0 : ofSegment[number]] as Output, bytes)
        },
      })
      for (const output of outputs) flush(output)
    } finally {
      for (const { file: descriptor } of outputs) closeSync(descriptor)
    }
  }
}

type Output = { readonly file: number; readonly bytes: Buffer; used: number }

function createOutput(path: string): Output {
  return { file: openSync(path, 'w'), bytes: Buffer.allocUnsafe(WRITE_BYTES), used: 0 }
}

function put(output: Output, bytes: Uint8Array): void {
  if (output.used + bytes.length > output.bytes.length) flush(output)
  if (bytes.length > output.bytes.length) {
    writeAll(output.file, bytes)
    return
  }
  output.bytes.set(bytes, output.used)
  output.used += bytes.length
}

function flush(output: Output): void {
  writeAll(output.file, output.bytes.subarray(0, output.used))
  output.used = 0
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at)
}

// Reading.

const NEWLINE = 0x0a

type Visitor = {
  /** Bytes before the first record: a header, empty lines. */
  readonly start?: (bytes: Uint8Array) => void
  /** Lower-cased names of the header, without `_`, `-` and blanks. */
  readonly header?: (names: readonly string[]) => void
  /**
   * A line above the limit comes in several parts.
   *
   * @param id packed; undefined when it cannot be read
   */
  readonly record: (cells: Cells, id: string | undefined, bytes: Uint8Array) => void
}

/** Every record of a file, in order, with its bytes. */
function eachRecord(path: string, visitor: Visitor): void {
  const file = openFile(path)
  try {
    const cells = createCells()
    const id = new Uint8Array(16)
    const packed = Buffer.from(id.buffer)
    const bytes = Buffer.allocUnsafe(READ_BYTES + LINE_BYTES_MAX)
    const total = fstatSync(file).size
    let column = 0
    let isFirst = true
    let isInLongLine = false
    let position = 0
    let filled = 0
    let at = 0
    while (position < total) {
      bytes.copyWithin(0, at, filled)
      filled -= at
      at = 0
      const read = readSync(file, bytes, filled, Math.min(bytes.length - filled, total - position), position)
      if (read === 0 && position < total) throw failed(path, 'it became shorter while it was read')
      // A byte order mark is not part of a name.
      if (position === 0 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) at = 3
      position += read
      filled += read
      const isLast = position >= total
      while (at < filled) {
        const from = at
        if (isInLongLine) {
          const end = bytes.subarray(at, filled).indexOf(NEWLINE)
          isInLongLine = end < 0
          at = end < 0 ? filled : at + end + 1
          visitor.record(cells, undefined, bytes.subarray(from, at))
          continue
        }
        const scanned: Scanned = readRecord(cells, bytes, at, filled, isLast)
        if (scanned === 'incomplete') break
        at = cells.next
        const piece = bytes.subarray(from, at)
        if (scanned === 'blank') continue
        isInLongLine = scanned === 'long'
        if (isFirst) {
          isFirst = false
          const names = scanned === 'record' ? namesOf(cells) : []
          if (names.includes('propertyid')) {
            column = names.indexOf('propertyid')
            visitor.header?.(names)
            visitor.start?.(piece)
            continue
          }
        }
        const isKnown =
          scanned === 'record' &&
          column < cells.count &&
          packPropertyIdInto(cells.text, cells.starts[column], cells.ends[column], id, 0)
        visitor.record(cells, isKnown ? packed.toString('latin1') : undefined, piece)
      }
    }
  } finally {
    closeSync(file)
  }
}

function namesOf(cells: Cells): string[] {
  return Array.from({ length: Math.min(cells.count, cells.starts.length) }, (_, cell) =>
    cellText(cells, cell)
      .toLowerCase()
      .replace(/[_\-\s]/g, ''),
  )
}

function openFile(path: string): number {
  try {
    return openSync(path, 'r')
  } catch (cause) {
    throw failed(path, (cause as Error).message, cause)
  }
}

const failed = (path: string, reason: string, cause?: unknown): VacancyError =>
  new VacancyError('failure', { reason: `${path} cannot be read: ${reason}` }, { cause })

const usage = (reason: string): VacancyError => new VacancyError('usage_error', { reason })
