/**
 * What is told of an uploaded file before it is built from: its SHA-256, how many lines with data it has, which of the
 * two files it is, and that it is text at all. Gzip is unpacked on the way, no further than limits allow.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { link, open, realpath, rm, statfs, symlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { importFileOf, readImportHeader } from '@vacancy/shared'
import { type FileKind, IMPORT_LIMITS } from '@vacancy/shared/contract'

const PIECE_BYTES = 1 << 20
const NEWLINE = 0x0a
const RETURN = 0x0d
const QUOTE = 0x22
const BLANKS = new Set([0x20, 0x09, RETURN])
/** The first line with data is looked at for its columns, no further than this. */
const FIRST_LINE_BYTES_MAX = 65_536
/** Small files may grow by any factor. */
const UNPACKED_FREE_BYTES = 64 << 20
const RESERVE_BYTES = 256 << 20
const SPACE_LOOK_BYTES = 64 << 20

/** What is wrong with a file as a whole: the user's matter, with what to do. */
export class FileFault extends Error {
  override readonly name = 'FileFault'
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.hint = hint
  }
}

export type Reading = {
  /** Of the bytes that were uploaded. */
  readonly sha256: string
  /** Lines with data: neither empty nor the header. */
  readonly rows: number
  /** Of these, how many were left out of what the builder gets. */
  readonly rejected: number
  readonly isUnpacked: boolean
  /** By the names or the number of columns of its first line; undefined when it is neither. */
  readonly kind: FileKind | undefined
  /** Columns of its first line with data. */
  readonly columns: number
}

export type ReadingParts = {
  readonly source: string
  /** Where the file is to lie for the builder: the same bytes, or the unpacked ones. */
  readonly target: string
  /** As people call it, for what is said. */
  readonly name: string
  readonly signal: AbortSignal
  /** Lines to leave out, from 1; then the target is a copy. */
  readonly without?: ReadonlySet<number> | undefined
  /** Bytes of the source read so far. */
  readonly onProgress: (bytes: number) => void
}

/** @throws FileFault; errno errors, ENOSPC above all */
export async function readUpload(parts: ReadingParts): Promise<Reading> {
  const { source, target, name } = parts
  await rm(target, { force: true })
  const head = await firstBytes(source, 6)
  const magic = head.subarray(0, 2).toString('hex')
  if (magic === '1f8b') return await unpack(parts)
  if (head.subarray(0, 4).toString('hex') === '504b0304') {
    throw new FileFault(`${name} is a ZIP archive.`, 'Unpack it, or compress the file itself with gzip.')
  }
  if (magic === 'fffe' || magic === 'feff') throw new FileFault(`${name} is UTF-16.`, 'Save it as UTF-8.')
  if (parts.without) return await copyWithout(parts, parts.without)
  await linkOrName(source, target)
  const lines = createLines(name)
  const digest = createHash('sha256')
  let bytes = 0
  for await (const piece of createReadStream(source, { highWaterMark: PIECE_BYTES, signal: parts.signal })) {
    digest.update(piece as Buffer)
    takeLines(lines, piece as Buffer)
    bytes += (piece as Buffer).length
    parts.onProgress(bytes)
  }
  return { sha256: digest.digest('hex'), isUnpacked: false, rejected: 0, ...endLines(lines) }
}

/** A file of the import folder lies elsewhere, perhaps on another disk: there a name has to do. */
async function linkOrName(source: string, target: string): Promise<void> {
  const real = await realpath(source)
  await link(real, target).catch(async (error: NodeJS.ErrnoException) => {
    // Another disk, or a file of somebody else's: the system refuses hard links to these.
    if (error.code !== 'EXDEV' && error.code !== 'EPERM') throw error
    await symlink(real, target)
  })
}

async function copyWithout(parts: ReadingParts, without: ReadonlySet<number>): Promise<Reading> {
  const digest = createHash('sha256')
  let bytes = 0
  const pieces = async function* () {
    for await (const piece of createReadStream(parts.source, { highWaterMark: PIECE_BYTES, signal: parts.signal })) {
      digest.update(piece as Buffer)
      bytes += (piece as Buffer).length
      parts.onProgress(bytes)
      yield piece as Buffer
    }
  }
  const counted = await writeLines(parts, pieces(), without)
  return { sha256: digest.digest('hex'), isUnpacked: false, ...counted }
}

/** Writes what is read, but for some lines, and counts both. Looks for room on the way. */
async function writeLines(
  { target, name }: ReadingParts,
  pieces: AsyncIterable<Buffer>,
  without: ReadonlySet<number> | undefined,
): Promise<Pick<Reading, 'rows' | 'rejected' | 'kind' | 'columns'>> {
  const [all, left] = [createLines(name), createLines(name)]
  const file = await open(target, 'w')
  let written = 0
  let nextLook = 0
  let line = 1
  try {
    for await (const piece of pieces) {
      if (written >= nextLook) {
        nextLook = written + SPACE_LOOK_BYTES
        await checkRoom(target)
      }
      takeLines(all, piece)
      const [kept, next] = without ? leaveOut(piece, line, without) : [piece, line]
      line = next
      if (without) takeLines(left, kept)
      // All of it: a single write may take less than it is given.
      await file.appendFile(kept)
      written += kept.length
    }
  } finally {
    await file.close()
  }
  const { rows, kind, columns } = endLines(all)
  return { rows, kind, columns, rejected: without ? rows - endLines(left).rows : 0 }
}

/** @param line number of the line that the piece begins in. @returns what stays, and the line that it ends in */
function leaveOut(piece: Buffer, line: number, without: ReadonlySet<number>): [kept: Buffer, line: number] {
  const kept: Buffer[] = []
  let at = 0
  let number = line
  while (at < piece.length) {
    const newline = piece.indexOf(NEWLINE, at)
    const end = newline < 0 ? piece.length : newline + 1
    if (!without.has(number)) kept.push(piece.subarray(at, end))
    if (newline >= 0) number++
    at = end
  }
  return [Buffer.concat(kept), number]
}

async function unpack(parts: ReadingParts): Promise<Reading> {
  const { source, name, signal, onProgress } = parts
  const digest = createHash('sha256')
  let packed = 0
  let unpacked = 0
  const noted = async function* () {
    for await (const piece of createReadStream(source, { highWaterMark: PIECE_BYTES, signal })) {
      digest.update(piece as Buffer)
      packed += (piece as Buffer).length
      onProgress(packed)
      yield piece as Buffer
    }
  }
  const input = Readable.from(noted())
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES })
  // A pipe passes no errors on: without this the loop would wait for ever.
  input.on('error', (error) => gunzip.destroy(error))
  const bounded = async function* () {
    for await (const piece of input.pipe(gunzip) as AsyncIterable<Buffer>) {
      unpacked += piece.length
      if (unpacked > UNPACKED_FREE_BYTES && unpacked > packed * IMPORT_LIMITS.unpackFactorMax) {
        const factor = Math.round(unpacked / packed)
        throw new FileFault(
          `${name} grows to more than ${factor} times its size when it is unpacked.`,
          `At most ${IMPORT_LIMITS.unpackFactorMax} times is unpacked; upload the file as it is.`,
        )
      }
      if (unpacked > IMPORT_LIMITS.fileBytesMax) {
        throw new FileFault(
          `${name} has more than ${IMPORT_LIMITS.fileBytesMax} bytes when it is unpacked.`,
          'Split the data over more shards.',
        )
      }
      yield piece
    }
  }
  try {
    const counted = await writeLines(parts, bounded(), parts.without)
    return { sha256: digest.digest('hex'), isUnpacked: true, ...counted }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (code.startsWith('Z_')) {
      throw new FileFault(`${name} is a damaged gzip file.`, 'Compress it again, or upload it as it is.')
    }
    throw error
  } finally {
    input.destroy()
  }
}

async function checkRoom(target: string): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(target))
  if (bavail * bsize > RESERVE_BYTES) return
  throw Object.assign(new Error('no room to unpack'), { code: 'ENOSPC' })
}

async function firstBytes(path: string, bytes: number): Promise<Buffer> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Counts lines piece by piece. A line end inside quotes is an error of the builder's, so lines are what lies between. */
type Lines = {
  readonly name: string
  rows: number
  /** The line at hand holds more than blanks. */
  hasData: boolean
  first: Buffer[]
  firstBytes: number
  /** The first line with data ends, so far, inside of quotes. */
  isInQuotes: boolean
  kind: FileKind | undefined
  columns: number
  isFirstDone: boolean
  isHeader: boolean
}

function createLines(name: string): Lines {
  return {
    name,
    rows: 0,
    hasData: false,
    first: [],
    firstBytes: 0,
    isInQuotes: false,
    kind: undefined,
    columns: 0,
    isFirstDone: false,
    isHeader: false,
  }
}

function takeLines(lines: Lines, piece: Buffer): void {
  if (piece.includes(0)) {
    throw new FileFault(`${lines.name} holds NUL bytes: it is no text.`, 'Export it as CSV in UTF-8.')
  }
  let at = 0
  while (at < piece.length) {
    const newline = piece.indexOf(NEWLINE, at)
    const end = newline < 0 ? piece.length : newline
    if (!lines.isFirstDone) keepFirst(lines, piece.subarray(at, end))
    if (!lines.hasData) lines.hasData = hasData(piece, at, end)
    if (newline < 0) return
    endLine(lines)
    at = newline + 1
  }
}

function hasData(piece: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (!BLANKS.has(piece[at] as number)) return true
  return false
}

function keepFirst(lines: Lines, part: Buffer): void {
  const room = FIRST_LINE_BYTES_MAX - lines.firstBytes
  const kept = Buffer.from(part.subarray(0, room))
  lines.first.push(kept)
  lines.firstBytes += kept.length
  for (const byte of kept) if (byte === QUOTE) lines.isInQuotes = !lines.isInQuotes
}

function endLine(lines: Lines): void {
  if (lines.hasData) {
    if (!lines.isFirstDone && lines.isInQuotes && lines.firstBytes < FIRST_LINE_BYTES_MAX) {
      // A quoted name spans several lines: the header continues on the next one.
      keepFirst(lines, Buffer.from('\n'))
      return
    }
    lines.rows++
    if (!lines.isFirstDone) lookAtFirst(lines)
  } else if (!lines.isFirstDone) {
    lines.first = []
    lines.firstBytes = 0
    lines.isInQuotes = false
  }
  lines.hasData = false
}

function lookAtFirst(lines: Lines): void {
  lines.isFirstDone = true
  const line = Buffer.concat(lines.first)
  lines.first = []
  const start = line.subarray(0, 3).toString('hex') === 'efbbbf' ? 3 : 0
  const cells = cellsOf(line.subarray(start).toString('utf8'))
  const kind = importFileOf(cells)
  lines.kind = kind
  lines.columns = cells.length
  lines.isHeader = kind !== undefined && readImportHeader(kind, cells).kind !== 'none'
}

/** The cells of a first line: a comma inside of quotes is data. */
function cellsOf(line: string): string[] {
  const cells = ['']
  let isQuoted = false
  for (const character of line) {
    if (character === '"') isQuoted = !isQuoted
    else if (character === ',' && !isQuoted) cells.push('')
    else cells.push((cells.pop() ?? '') + character)
  }
  return cells.map((cell) => cell.trim())
}

function endLines(lines: Lines): Pick<Reading, 'rows' | 'kind' | 'columns'> {
  if (lines.hasData) {
    // A quote that never closes: what was kept of it is a row.
    if (!lines.isFirstDone) lookAtFirst(lines)
    lines.rows++
  }
  return { rows: lines.rows - (lines.isHeader ? 1 : 0), kind: lines.kind, columns: lines.columns }
}
