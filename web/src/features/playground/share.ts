/**
 * A request in a URL: JSON, deflated, in base64url. A request that is too long is stored by the control plane under a
 * short id. Links are untrusted and checked.
 */
import { COMMANDS, type FieldSpec, isCommandName, type JsonFields } from '@vacancy/shared/wire'
import { ApiProblem, call } from '../../lib/api.ts'
import type { QueryCommand } from './catalogue.ts'
import * as copy from './copy.ts'
import type { Draft } from './request.ts'

export const SHARE_CHARS_MAX = 1_800
/** Prefix of a short id; not a base64url character. */
const SHORT = '~'
/** Limit of the inflated JSON: a short text may inflate to a very long one. */
const JSON_BYTES_MAX = 262_144

/**
 * The value of `?q=` in a link.
 *
 * @throws ApiProblem when the request is too long for a URL and the control plane does not store it
 */
export async function shareOf(draft: Draft): Promise<string> {
  const q = await encodeShare(draft)
  if (q.length <= SHARE_CHARS_MAX) return q
  const { shard, node, command, fields } = draft
  const body = { shard, node: node || null, command, fields: { ...fields } as never }
  const { id } = await call('POST /api/v1/shared-requests', { body })
  return SHORT + id
}

/** The request of `?q=`, or why it cannot be opened. */
export async function openShare(q: string): Promise<Shared> {
  if (!q.startsWith(SHORT)) return await decodeShare(q)
  try {
    const kept = await call('GET /api/v1/shared-requests/{id}', { params: { id: q.slice(SHORT.length) } })
    return requestOf({ s: kept.shard, n: kept.node ?? '', c: kept.command, f: kept.fields })
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    return { ok: false, reason: error.message.replace(/\.$/, '') }
  }
}

export async function encodeShare({ shard, node, command, fields }: Draft): Promise<string> {
  const json = JSON.stringify({ s: shard, ...(node && { n: node }), c: command, f: fields })
  const stream = new Blob([json]).stream().pipeThrough(new CompressionStream('deflate-raw'))
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer())
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

export type Shared = { readonly ok: true; readonly draft: Draft } | { readonly ok: false; readonly reason: string }

export async function decodeShare(text: string): Promise<Shared> {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return { ok: false, reason: copy.linkErrors.characters }
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
    const json = await inflate(bytes)
    return requestOf(JSON.parse(json) as Stored)
  } catch (error) {
    return { ok: false, reason: error instanceof TooLong ? error.message : copy.linkErrors.damaged }
  }
}

/** Stored form: shard, node, command, fields. */
type Stored = { readonly s?: unknown; readonly n?: unknown; readonly c?: unknown; readonly f?: unknown }

/** Checks a stored request; commands and fields may have changed since. */
export function requestOf({ s: shard = '', n: node = '', c: command, f: fields }: Stored): Shared {
  if (typeof shard !== 'string' || typeof node !== 'string') return { ok: false, reason: copy.linkErrors.shard }
  if (typeof command !== 'string' || !isCommandName(command) || command === 'LOGIN') {
    return { ok: false, reason: copy.linkErrors.command }
  }
  const known = fieldsOfShape(command, fields)
  return known
    ? { ok: true, draft: { shard, node, command, fields: known } }
    : { ok: false, reason: copy.linkErrors.fields(command) }
}

/** Checks names and types only: a link may hold an incomplete request, which is reported on running it. */
function fieldsOfShape(command: QueryCommand, fields: unknown): JsonFields | undefined {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return undefined
  const specs: readonly FieldSpec[] = COMMANDS[command].fields
  const widths = new Map(specs.map(({ name, width }) => [name, width]))
  const isEntry = (entry: unknown, name: string) => {
    const isNumbers = widths.get(name) === 'u8s' || widths.get(name) === 'u64s'
    return typeof entry === 'string' || (isNumbers && typeof entry === 'number') || isLineShape(entry)
  }
  const isValue = (value: unknown, name: string) =>
    typeof value === 'string' ||
    typeof value === 'number' ||
    (Array.isArray(value) && value.every((entry) => isEntry(entry, name)))
  const isKnown = Object.entries(fields).every(([name, value]) => widths.has(name) && isValue(value, name))
  return isKnown ? (fields as JsonFields) : undefined
}

/** A line of a stay: text, numbers and switches by name. Its fields are checked when the request is encoded. */
function isLineShape(entry: unknown): boolean {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return false
  return Object.values(entry).every((value) => ['string', 'number', 'boolean'].includes(typeof value))
}

class TooLong extends Error {}

async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader()
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    length += value.length
    if (length > JSON_BYTES_MAX) {
      await reader.cancel()
      throw new TooLong(copy.linkErrors.tooLong)
    }
    text += decoder.decode(value, { stream: true })
  }
}
