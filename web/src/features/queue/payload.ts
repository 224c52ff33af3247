/** Payloads of jobs: decoding, the views of them, and what a person types as one. Pure. */
import type { JobView } from '@vacancy/shared/contract'
import { csvOf } from '../playground/rows.ts'

/** Longer payloads are shown in part. */
export const SHOWN_BYTES = 256 * 1_024

/** Bytes of base64 that the queue has accepted. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64)
  const bytes = new Uint8Array(binary.length)
  for (let n = 0; n < binary.length; n++) bytes[n] = binary.charCodeAt(n)
  return bytes
}

const CHUNK = 0x8000

export function base64Of(bytes: Uint8Array): string {
  let binary = ''
  for (let n = 0; n < bytes.length; n += CHUNK) binary += String.fromCharCode(...bytes.subarray(n, n + CHUNK))
  return btoa(binary)
}

/** Undefined for bytes that are not UTF-8. A character that the limit cuts is left out. */
export function textOf(bytes: Uint8Array, isCut = false): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: isCut })
  } catch {
    // Not UTF-8: the caller shows the bytes instead.
    return undefined
  }
}

/** What is wrong with a JSON text; undefined for a valid one. */
export function jsonFault(text: string): string | undefined {
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

/** Deeper levels are not indented further: a payload of brackets would otherwise grow with the square of its size. */
const DEPTH_MAX = 40

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g

/** Indents a valid JSON text without reading its values, so that numbers of any size and repeated keys stay as they are. */
export function indentJson(text: string): string {
  const out: string[] = []
  let depth = 0
  let before = ''
  const newLine = () => out.push(`\n${'  '.repeat(Math.min(depth, DEPTH_MAX))}`)
  for (const [token] of text.matchAll(TOKEN)) {
    const isClosing = token === '}' || token === ']'
    const isAfterOpening = before === '{' || before === '['
    if (isClosing) depth--
    // An empty object or list stays on its line.
    if (isClosing ? !isAfterOpening : isAfterOpening || before === ',') newLine()
    out.push(token === ':' ? ': ' : token)
    if (token === '{' || token === '[') depth++
    before = token
  }
  return out.join('')
}

const ROW_BYTES = 16

/** `00000010  7b 22 …  |{"…|`, sixteen bytes a line. */
export function hexOf(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let n = 0; n < bytes.length; n += ROW_BYTES) {
    const row = [...bytes.subarray(n, n + ROW_BYTES)]
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const text = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('')
    lines.push(`${n.toString(16).padStart(8, '0')}  ${hex.padEnd(ROW_BYTES * 3 - 1)}  |${text}|`)
  }
  return lines.join('\n')
}

/** The beginning of a payload as one line; undefined for bytes that are not UTF-8. */
export function headText(head: string): string | undefined {
  const text = textOf(bytesOf(head), true)
  // Control characters would change how the line looks.
  return text?.replaceAll(/\s+/g, ' ').replaceAll(/\p{Cc}|\p{Cf}/gu, '·')
}

export type PayloadKind = 'json' | 'text' | 'base64' | 'none'

/** A payload as a person edits it. */
export type TypedPayload = { readonly kind: PayloadKind; readonly text: string }

/** The form in which a stored payload is edited. */
export function typedOf(data: string | null): TypedPayload {
  if (data === null) return { kind: 'none', text: '' }
  const text = textOf(bytesOf(data))
  if (text === undefined) return { kind: 'base64', text: data }
  return { kind: jsonFault(text) === undefined ? 'json' : 'text', text }
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Whether the queue accepts it as base64. White space, as line breaks of `base64`, is ignored. */
export const isBase64 = (text: string): boolean => BASE64.test(withoutSpace(text))

const withoutSpace = (text: string): string => text.replaceAll(/\s+/g, '')

/** Base64 of a valid payload; null for none. JSON is sent as typed. */
export function dataOf({ kind, text }: TypedPayload): string | null {
  if (kind === 'none') return null
  return kind === 'base64' ? withoutSpace(text) : base64Of(new TextEncoder().encode(text))
}

/** `77120` → `77120-retry-1` → `77120-retry-2`: the new id tells where the job comes from. */
export function retryId(id: string): string {
  const [, base = id, times = '0'] = /^(.*)-retry-(\d{1,6})$/s.exec(id) ?? []
  const suffix = `-retry-${Number(times) + 1}`
  return `${cutTo(base, ID_BYTES - suffix.length)}${suffix}`
}

const ID_BYTES = 256

function cutTo(text: string, bytes: number): string {
  const encoded = new TextEncoder().encode(text)
  return encoded.length <= bytes ? text : (textOf(encoded.subarray(0, bytes), true) ?? '')
}

/** A name for a file, whatever the ids contain. */
export function fileName(parts: readonly string[], extension: string): string {
  const safe = parts.map((part) => part.replaceAll(/[^A-Za-z0-9._-]+/g, '-').slice(0, 60)).join('-')
  return `${safe.replace(/^[.-]+/, '') || 'job'}.${extension}`
}

/** Jobs as a table for a spreadsheet, without their payloads. */
export function jobsCsv(jobs: readonly JobView[]): string {
  return csvOf({
    columns: ['id', 'topic', 'reason', 'failures', 'deliveries', 'submitted', 'died', 'bytes', 'error'],
    rows: jobs.map((job) => [
      job.id,
      job.topic,
      job.reason ?? '',
      job.failures,
      job.deliveries,
      job.createdAt,
      job.deadAt ?? '',
      job.bytes,
      job.lastError ?? '',
    ]),
  })
}

/** One job a line, with its payload in base64. */
export const jobsJsonLines = (jobs: readonly JobView[]): string =>
  jobs.map((job) => `${JSON.stringify(job)}\n`).join('')
