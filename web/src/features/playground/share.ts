/** A request as a part of an address: JSON, deflated, in base64url. What comes back is somebody's, and is checked. */
import { COMMANDS, isCommandName, type JsonFields } from '@vacancy/shared/wire'
import type { QueryCommand } from './catalogue.ts'
import type { Draft } from './request.ts'

export const SHARE_CHARS_MAX = 1_800
/** Of the JSON behind a link: a short text may inflate to a very long one. */
const JSON_BYTES_MAX = 262_144

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
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return { ok: false, reason: 'it has characters that no link has' }
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
    const json = await inflate(bytes)
    const value = JSON.parse(json) as { s?: unknown; n?: unknown; c?: unknown; f?: unknown }
    const { s: shard = '', n: node = '', c: command, f: fields } = value
    if (typeof shard !== 'string' || typeof node !== 'string') return { ok: false, reason: 'its shard is no name' }
    if (typeof command !== 'string' || !isCommandName(command) || command === 'LOGIN') {
      return { ok: false, reason: 'it names no command' }
    }
    const known = fieldsOfShape(command, fields)
    return known
      ? { ok: true, draft: { shard, node, command, fields: known } }
      : { ok: false, reason: `it has fields that ${command} has not` }
  } catch (error) {
    return { ok: false, reason: error instanceof TooLong ? error.message : 'it is cut off or changed' }
  }
}

/** A link may hold a request that is not finished: what is wrong with it is told when it is run. */
function fieldsOfShape(command: QueryCommand, fields: unknown): JsonFields | undefined {
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return undefined
  const names = new Set<string>(COMMANDS[command].fields.map(({ name }) => name))
  const isValue = (value: unknown) =>
    typeof value === 'string' ||
    typeof value === 'number' ||
    (Array.isArray(value) && value.every((entry) => typeof entry === 'string'))
  const isKnown = Object.entries(fields).every(([name, value]) => names.has(name) && isValue(value))
  return isKnown ? (fields as JsonFields) : undefined
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
      throw new TooLong('what it holds is too long')
    }
    text += decoder.decode(value, { stream: true })
  }
}
