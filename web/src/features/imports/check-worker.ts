/**
 * Checks import files in a worker: a sample at once (the first MiB, the last 64 KiB and pieces in between), every row on
 * request. It also computes the digests of uploads.
 */
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex } from '@noble/hashes/utils.js'
import type { FileKind } from '@vacancy/shared/contract'
import {
  type Checker,
  checkLines,
  checkPiece,
  createChecker,
  HEAD_BYTES,
  kindOf,
  PIECE_BYTES,
  samplePlaces,
} from './check.ts'
import * as copy from './check-copy.ts'

const MEBIBYTE = 1 << 20
const READ_BYTES = 4 << 20
const PROGRESS_MS = 200

export type CheckFile = { readonly kind: FileKind; readonly file: File }
export type CheckRequest =
  | {
      readonly t: 'check'
      readonly id: number
      readonly files: readonly CheckFile[]
      readonly codecs: readonly string[] | undefined
      readonly today: string
      readonly lastDay: string
      readonly priceDecimals: number
      readonly full: boolean
    }
  | { readonly t: 'classify'; readonly id: number; readonly files: readonly File[] }
  | { readonly t: 'fingerprint'; readonly id: number; readonly file: File }
  | { readonly t: 'digest'; readonly id: number; readonly blob: Blob }
  | { readonly t: 'stop'; readonly id: number }

export type FileReport = ReturnType<typeof reportOf>
export type CheckReport = { readonly full: boolean; readonly files: readonly FileReport[]; readonly stopped: boolean }

/** The kind of a file, by content. */
export type Classified = { readonly kind: FileKind | undefined; readonly fault: string; readonly zipped: boolean }

export type CheckReply =
  | { readonly id: number; readonly progress: number }
  | { readonly id: number; readonly report: CheckReport }
  | { readonly id: number; readonly classified: readonly Classified[] }
  | { readonly id: number; readonly digest: string }
  | { readonly id: number; readonly error: string }

const stopped = new Set<number>()

self.onmessage = ({ data }: MessageEvent<CheckRequest>) => {
  if (data.t === 'stop') {
    stopped.add(data.id)
    return
  }
  handle(data).then(
    (value) => self.postMessage(value),
    (error: unknown) => self.postMessage({ id: data.id, error: (error as Error).message } satisfies CheckReply),
  )
}

async function handle(request: Exclude<CheckRequest, { t: 'stop' }>): Promise<CheckReply> {
  const { id } = request
  switch (request.t) {
    case 'digest':
      return { id, digest: bytesToHex(sha256(new Uint8Array(await request.blob.arrayBuffer()))) }
    case 'fingerprint':
      return { id, digest: await fingerprint(request.file) }
    case 'classify':
      return { id, classified: await Promise.all(request.files.map(classify)) }
    case 'check':
      return { id, report: await check(request) }
  }
}

/** The same as in the control plane (server/src/imports/uploads.ts). */
async function fingerprint(file: File): Promise<string> {
  const digest = sha256.create().update(new TextEncoder().encode(`${file.size}\n`))
  for (const part of [file.slice(0, MEBIBYTE), file.slice(Math.max(0, file.size - MEBIBYTE))]) {
    digest.update(new Uint8Array(await part.arrayBuffer()))
  }
  return bytesToHex(digest.digest())
}

async function classify(file: File): Promise<Classified> {
  if (file.size === 0) return { kind: undefined, fault: copy.fileFaults.empty, zipped: false }
  const zipped = await isGzip(file)
  const head = new Uint8Array(await textOf(file, zipped).slice(0, PIECE_BYTES))
  const begin = (head[0] ?? 0) * 256 + (head[1] ?? 0)
  if (begin === 0xfffe || begin === 0xfeff) return { kind: undefined, fault: copy.fileFaults.utf16, zipped }
  if (begin === 0x504b) return { kind: undefined, fault: copy.fileFaults.zip, zipped }
  if (head.includes(0)) return { kind: undefined, fault: copy.fileFaults.nul, zipped }
  return { ...kindOf(new TextDecoder().decode(head)), zipped }
}

async function isGzip(file: File): Promise<boolean> {
  const [a, b] = new Uint8Array(await file.slice(0, 2).arrayBuffer())
  return a === 0x1f && b === 0x8b
}

/** Reads a file; gzip is unpacked as a stream, so pieces from the middle are not available. */
function textOf(file: File, zipped: boolean) {
  const stream = () => (zipped ? file.stream().pipeThrough(new DecompressionStream('gzip')) : file.stream())
  return {
    stream,
    async slice(start: number, end: number): Promise<ArrayBuffer> {
      if (!zipped) return await file.slice(start, end).arrayBuffer()
      const reader = stream().getReader()
      const pieces: Uint8Array<ArrayBuffer>[] = []
      let bytes = 0
      try {
        while (bytes < end) {
          const { done, value } = await reader.read()
          if (done) break
          pieces.push(value)
          bytes += value.length
        }
      } finally {
        await reader.cancel()
      }
      return await new Blob(pieces).slice(start, end).arrayBuffer()
    },
  }
}

async function check(request: Extract<CheckRequest, { t: 'check' }>): Promise<CheckReport> {
  const { id, full, codecs, today, lastDay, priceDecimals } = request
  const total = request.files.reduce((sum, { file }) => sum + file.size, 0)
  const reports: FileReport[] = []
  let knownIds: ReadonlySet<string> | undefined
  let before = 0
  // Properties first, since packages refer to them.
  const files = [...request.files].sort((a, b) => (a.kind === 'properties' ? -1 : b.kind === 'properties' ? 1 : 0))
  for (const { kind, file } of files) {
    const checker = createChecker({
      kind,
      codecs,
      today,
      lastDay,
      priceDecimals,
      knownIds: kind === 'packages' ? knownIds : undefined,
    })
    const zipped = await isGzip(file)
    if (full) {
      await readAll(checker, file, zipped, id, (bytes) => {
        self.postMessage({ id, progress: (before + bytes) / total } satisfies CheckReply)
      })
      if (kind === 'properties' && !stopped.has(id)) knownIds = checker.ids
    } else await readSample(checker, file, zipped)
    before += file.size
    reports.push(reportOf(checker, file, full && !stopped.has(id)))
  }
  return { full, files: reports, stopped: stopped.delete(id) }
}

function reportOf(checker: Checker, file: File, isWhole: boolean) {
  const { kind, bytes, rows, header, preview, findings } = checker
  return {
    kind,
    bytesChecked: bytes,
    rows,
    /** Rows of the whole file, extrapolated from the sample. */
    rowsEstimate: isWhole || bytes === 0 ? rows : Math.round((rows / bytes) * Math.max(bytes, file.size)),
    header,
    preview,
    findings: [...findings.values()],
  }
}

async function readSample(checker: Checker, file: File, zipped: boolean): Promise<void> {
  const source = textOf(file, zipped)
  const places = zipped ? undefined : samplePlaces(file.size, Math.random)
  const headBytes = places || zipped ? HEAD_BYTES : file.size
  const head = await source.slice(0, headBytes)
  // Only the start of a compressed file can be read without unpacking all of it.
  const isWhole = zipped ? head.byteLength < HEAD_BYTES : places === undefined
  checkLines(checker, new TextDecoder().decode(head), 1, isWhole)
  checker.bytes += head.byteLength
  for (const from of places ?? []) {
    const piece = await source.slice(from, from + PIECE_BYTES)
    const isEnd = from + piece.byteLength >= file.size
    if (checkPiece(checker, new TextDecoder().decode(piece), isEnd)) checker.bytes += piece.byteLength
  }
}

async function readAll(
  checker: Checker,
  file: File,
  zipped: boolean,
  id: number,
  onProgress: (bytes: number) => void,
): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  let line = 1
  let progressAt = 0
  let pending: Uint8Array<ArrayBuffer>[] = []
  let pendingBytes = 0
  const take = (isLast: boolean) => {
    const text = rest + pending.map((piece) => decoder.decode(piece, { stream: true })).join('')
    const { lines, end } = checkLines(checker, text, line, isLast)
    line += lines
    rest = text.slice(end)
    pending = []
    pendingBytes = 0
  }
  const reader = textOf(file, zipped).stream().getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done || stopped.has(id)) break
    pending.push(value)
    pendingBytes += value.length
    checker.bytes += value.length
    if (pendingBytes >= READ_BYTES) take(false)
    if (performance.now() - progressAt > PROGRESS_MS) {
      progressAt = performance.now()
      onProgress(Math.min(checker.bytes, file.size))
    }
  }
  await reader.cancel()
  take(true)
}
