/**
 * What the first bytes of a chosen file say: which of the two files it is, and whether its header can be read. The builder
 * checks every row (docs/design/control-plane.md#imports).
 */
import {
  FORM_ROWS,
  FORMAT_BYTES,
  firstCells,
  formatOf,
  IMPORT_COLUMNS,
  importFileOf,
  otherForm,
  otherSeparator,
  readImportHeader,
} from '@vacancy/shared'
import type { FileKind } from '@vacancy/shared/contract'
import { heads as copy } from './copy.ts'

const HEAD_BYTES = 64 << 10

/** Texts complete "hotels.csv …". */
export type FileHead =
  | { readonly kind: undefined; readonly fault: string }
  | {
      readonly kind: FileKind
      /** What to verify in the header; '' for nothing. */
      readonly note: string
      /** Of the whole file, by the length of the first rows; undefined for a compressed file. */
      readonly rows: number | undefined
    }

export async function readHead(file: File): Promise<FileHead> {
  if (file.size === 0) return refused(copy.empty)
  const isZipped = formatOf(await firstBytes(file.stream(), FORMAT_BYTES))?.name === 'gzip'
  const unpacked = isZipped ? file.stream().pipeThrough(new DecompressionStream('gzip')) : file.stream()
  const head = await firstBytes(unpacked, HEAD_BYTES)
  const format = formatOf(head)
  if (format) return refused(`${format.is}: ${format.fix}`)
  if (head.includes(0)) return refused(copy.nul)
  let text: string
  try {
    // As a stream: the last character may continue after the head.
    text = new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true })
  } catch {
    return refused(copy.utf8)
  }
  const found = readFirstRow(text, head.length === HEAD_BYTES)
  if (found.kind === undefined) return found
  return { ...found, rows: isZipped ? undefined : Math.round((found.rows / head.length) * file.size) }
}

const refused = (fault: string) => ({ kind: undefined, fault })

/** @param isCut the text ends before the file does. @returns with the rows in the text */
function readFirstRow(
  text: string,
  isCut: boolean,
): { kind: undefined; fault: string } | { kind: FileKind; note: string; rows: number } {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => line.trim() !== '')
  if (start < 0) return refused(copy.noRows)
  let row = ''
  let end = start
  do row += `${lines[end++]}\n`
  while (row.split('"').length % 2 === 0 && end < lines.length)
  if (row.split('"').length % 2 === 0 || (isCut && end === lines.length)) return refused(copy.brokenLine(start + 1))
  const cells = firstCells(row)
  const kind = importFileOf(cells)
  if (kind === undefined) {
    const hint = /\r(?!\n)/.test(row) ? copy.carriageReturns : ''
    const [properties, packages] = [IMPORT_COLUMNS.properties.length, IMPORT_COLUMNS.packages.length]
    return refused(otherSeparator(cells) ?? copy.columns(cells.length, start + 1, properties, packages) + hint)
  }
  const header = readImportHeader(kind, cells)
  if (header.kind === 'refused') return refused(copy.inLine(start + 1, header.reason))
  const data = lines.slice(header.kind === 'header' ? end : start).filter((line) => line.trim() !== '')
  const order = header.kind === 'header' ? header.order : undefined
  // The last row may be cut.
  const rows = (isCut ? data.slice(0, -1) : data).slice(0, FORM_ROWS).map(firstCells)
  const form = otherForm(kind, order ? rows.map((row) => order.map((place) => row[place] ?? '')) : rows)
  if (form) return refused(copy.form(IMPORT_COLUMNS[kind][form.column] ?? '', form.looksLike))
  if (header.kind === 'none') return { kind, note: '', rows: data.length }
  const note = header.warning === undefined ? '' : copy.inLine(start + 1, header.warning)
  return { kind, note: header.order ? copy.otherOrder : note, rows: data.length }
}

async function firstBytes(stream: ReadableStream<Uint8Array<ArrayBuffer>>, bytes: number): Promise<Uint8Array> {
  const reader = stream.getReader()
  const pieces: Uint8Array<ArrayBuffer>[] = []
  for (let read = 0; read < bytes; ) {
    const { done, value } = await reader.read()
    if (done) break
    pieces.push(value)
    read += value.length
  }
  await reader.cancel()
  return new Uint8Array(await new Blob(pieces).slice(0, bytes).arrayBuffer())
}
