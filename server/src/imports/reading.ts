/**
 * Reads an uploaded file before the build: computes its SHA-256, counts its lines with data, and checks that it is text
 * and which of the two files it is. Gzip is unpacked, within limits.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { link, open, realpath, rm, stat, statfs, symlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { FORMAT_BYTES, firstCells, formatOf, importFileOf, otherSeparator, readImportHeader } from '@vacancy/shared'
import { type FileKind, IMPORT_LIMITS } from '@vacancy/shared/contract'
import { changeOf } from '@vacancy/shared/node'

const PIECE_BYTES = 1 << 20
const NEWLINE = 0x0a
const RETURN = 0x0d
const QUOTE = 0x22
const BLANKS = new Set([0x20, 0x09, RETURN])
/** The columns of the first line with data are read up to this length. */
const FIRST_LINE_BYTES_MAX = 65_536
/** Files that unpack to less than this may grow by any factor. */
const UNPACKED_FREE_BYTES = 64 << 20
const RESERVE_BYTES = 256 << 20
const SPACE_LOOK_BYTES = 64 << 20

/** An error of a whole file, for the user, with a hint. */
export class FileFault extends Error {
  override readonly name = 'FileFault'
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.hint = hint
  }
}

export type Reading = {
  /** Of the uploaded bytes. */
  readonly sha256: string
  /** Lines with data: neither empty nor the header. */
  readonly rows: number
  /** How many of these were omitted from the copy for the builder. */
  readonly rejected: number
  readonly isUnpacked: boolean
  /** From the names or the number of columns of its first line; undefined when it is neither file. */
  readonly kind: FileKind | undefined
  /** Columns of its first line with data. */
  readonly columns: number
  /** What its first line separates cells by instead of commas, as a sentence about the file. */
  readonly separator: string | undefined
}

export type ReadingParts = {
  readonly source: string
  /** The path of the file for the builder, with the same bytes or the unpacked ones. */
  readonly target: string
  /** Its name in messages. */
  readonly name: string
  readonly signal: AbortSignal
  /** Lines to omit, from 1; then the target is a copy. */
  readonly without?: ReadonlySet<number> | undefined
  /** Bytes of the source read so far. */
  readonly onProgress: (bytes: number) => void
}

/** @throws FileFault; errno errors, ENOSPC above all */
export async function readUpload(parts: ReadingParts): Promise<Reading> {
  const opened = await stat(parts.source)
  const reading = await readWhole(parts)
  const change = changeOf(parts.source, opened)
  if (change === '') return reading
  throw new FileFault(`${parts.name} ${change}.`, 'Import it again when its writer has finished.')
}

async function readWhole(parts: ReadingParts): Promise<Reading> {
  const { source, target, name } = parts
  await rm(target, { force: true })
  const format = formatOf(await firstBytes(source, FORMAT_BYTES))
  if (format?.name === 'gzip') return await unpack(parts)
  if (format)
    throw new FileFault(`${name} ${format.is}.`, `${format.fix.charAt(0).toUpperCase()}${format.fix.slice(1)}.`)
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

/** A file of the import folder may be on another disk; then a symbolic link is used. */
async function linkOrName(source: string, target: string): Promise<void> {
  const real = await realpath(source)
  await link(real, target).catch(async (error: NodeJS.ErrnoException) => {
    // The system refuses hard links to other disks and to files of other users.
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

/** Copies the file without the lines to omit and counts both. Checks the free disk space meanwhile. */
async function writeLines(
  { target, name }: ReadingParts,
  pieces: AsyncIterable<Buffer>,
  without: ReadonlySet<number> | undefined,
): Promise<Counted & Pick<Reading, 'rejected'>> {
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
      // In a loop, because a single write may be partial.
      await file.appendFile(kept)
      written += kept.length
    }
  } finally {
    await file.close()
  }
  const counted = endLines(all)
  return { ...counted, rejected: without ? counted.rows - endLines(left).rows : 0 }
}

/** @param line number of the line at the start of the piece. @returns the remaining bytes, and the line at its end */
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
  // A pipe does not forward errors: without this the loop would wait forever.
  input.on('error', (error) => gunzip.destroy(error))
  const bounded = async function* () {
    for await (const piece of input.pipe(gunzip) as AsyncIterable<Buffer>) {
      unpacked += piece.length
      if (unpacked > UNPACKED_FREE_BYTES && unpacked > packed * IMPORT_LIMITS.unpackFactorMax) {
        const factor = Math.round(unpacked / packed)
        throw new FileFault(
          `${name} unpacks to more than ${factor} times its size.`,
          `The limit is ${IMPORT_LIMITS.unpackFactorMax} times. Upload the file uncompressed.`,
        )
      }
      if (unpacked > IMPORT_LIMITS.fileBytesMax) {
        throw new FileFault(
          `${name} unpacks to more than ${IMPORT_LIMITS.fileBytesMax} bytes.`,
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
      throw new FileFault(`${name} is a damaged gzip file.`, 'Compress it again, or upload it uncompressed.')
    }
    throw error
  } finally {
    input.destroy()
  }
}

async function checkRoom(target: string): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(target))
  if (bavail * bsize > RESERVE_BYTES) return
  throw Object.assign(new Error('no disk space to unpack'), { code: 'ENOSPC' })
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

/** Counts lines piece by piece. Line ends inside quotes are row errors of the builder, so every line end counts. */
type Lines = ReturnType<typeof createLines>

function createLines(name: string) {
  return {
    name,
    rows: 0,
    /** The current line contains more than blanks. */
    hasData: false,
    first: [] as Buffer[],
    firstBytes: 0,
    /** The first line with data ends inside quotes so far. */
    isInQuotes: false,
    kind: undefined as FileKind | undefined,
    columns: 0,
    separator: undefined as string | undefined,
    isFirstDone: false,
    isHeader: false,
  }
}

function takeLines(lines: Lines, piece: Buffer): void {
  if (piece.includes(0)) {
    throw new FileFault(`${lines.name} contains NUL bytes: it is not text.`, 'Export it as CSV in UTF-8.')
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
  const cells = firstCells(line.subarray(start).toString('utf8'))
  const kind = importFileOf(cells)
  lines.kind = kind
  lines.columns = cells.length
  lines.separator = kind === undefined ? otherSeparator(cells) : undefined
  lines.isHeader = kind !== undefined && readImportHeader(kind, cells).kind !== 'none'
}

type Counted = Pick<Reading, 'rows' | 'kind' | 'columns' | 'separator'>

function endLines(lines: Lines): Counted {
  if (lines.hasData) {
    // An unclosed quote: the text so far is the row.
    if (!lines.isFirstDone) lookAtFirst(lines)
    lines.rows++
  }
  const { rows, isHeader, kind, columns, separator } = lines
  return { rows: rows - (isHeader ? 1 : 0), kind, columns, separator }
}
