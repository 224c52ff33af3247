/** A request as a part of an address: JSON, deflated, in base64url. What comes back is checked like anything typed. */
import { type Draft, parseRequest } from './request.ts'

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
    const parsed = parseRequest(JSON.stringify({ command: value.c, fields: value.f }))
    if (!parsed.ok) return { ok: false, reason: parsed.reason }
    const { s: shard = '', n: node = '' } = value
    if (typeof shard !== 'string' || typeof node !== 'string') return { ok: false, reason: 'its shard is no name' }
    return { ok: true, draft: { shard, node, ...parsed.draft } }
  } catch (error) {
    return { ok: false, reason: error instanceof TooLong ? error.message : 'it is cut off or changed' }
  }
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
